# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part stock of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# check_userspace <arguments of check_guest>: with Debian's RDMA programs, and ours, in the guest.
check_userspace() {
	local name=$2 tree
	tree=$("$KV_SCRIPTS/userland" "$KV_SCRIPTS/guest/uverbs_check.c" \
		"$KV_SCRIPTS/guest/uverbs_hostile.c" 2>"$work/$name.userland") || {
		check_failed "$1" "$work/$name.userland"
		return
	}
	check_guest "$@" --tree "$tree"
}

# stock_mainline <kernel>: under the kernel's own ib_core, if it has one. That of User Mode
# Linux has no rdma_cm, but KASAN and lockdep look on.
stock_mainline() {
	local kernel=$1 tree core disk=(--need "dummy nvmet-rdma nvme-rdma" --env "SCALE=$scale DISK=yes")
	local processes=(--need "dummy rdma_ucm rdma_rxe" --env "DOORBELLS=$((9000 * scale))")
	# It is not in the -cloud kernels.
	[[ $kernel != *-cloud ]] || processes[1]="dummy rdma_ucm"
	kernel_of "$kernel"
	STOCK_NAME=$KERNEL_BUILT_FOR
	tree=$(kernel_tree "$STOCK_NAME")
	grep -q '^CONFIG_INFINIBAND=' "$tree/include/config/auto.conf" || return 0
	need_mainline "$STOCK_NAME"
	if [ "$kernel" = uml ]; then
		core=$tree/drivers/infiniband/core
		MAINLINE_MODULES="$core/ib_core.ko $core/ib_uverbs.ko $MAINLINE_MODULES"
		disk=(--env "SCALE=$scale")
		processes=(--env "DOORBELLS=$((9000 * scale)) PROGRAMS=no")
	fi
	spawn_guest "the software HCA under mainline's core, $STOCK_NAME" "mainline-$STOCK_NAME" \
		--kernel "$kernel" "${disk[@]}" --limit $((240 * scale)) \
		--modules "$MAINLINE_MODULES" --file "$KV_SCRIPTS/guest/pingpong.sh" \
		--file "$KV_SCRIPTS/guest/rdmalink.c" --run "$KV_SCRIPTS/guest/mainline.sh"
	spawn "processes use the software HCA, $STOCK_NAME" check_userspace \
		"processes use the software HCA, $STOCK_NAME" "userspace-$STOCK_NAME" \
		--kernel "$kernel" "${processes[@]}" --limit $((560 * scale)) \
		--modules "$MAINLINE_MODULES" --run "$KV_SCRIPTS/guest/userspace.sh"
}

# stock_run <kernel>: under kverbs' own core.
stock_run() {
	need_stock "$1"
	spawn_guest "load, run, unload, $STOCK_NAME" "stock-$STOCK_NAME" \
		--kernel "$1" --need dummy --env "SCALE=$scale" \
		--limit $((240 * scale)) \
		--modules "$(run_modules "$MODULES_DIR")" \
		--file "$KV_SCRIPTS/guest/pingpong.sh" \
		--run "$KV_SCRIPTS/guest/stock.sh"
	spawn_guest "links, ports and faults, $STOCK_NAME" "control-$STOCK_NAME" \
		--kernel "$1" --need dummy --limit 300 \
		--modules "$(run_modules "$MODULES_DIR")" \
		--file "$KV_SCRIPTS/guest/pingpong.sh" \
		--run "$KV_SCRIPTS/guest/control.sh"
}

part_stock() {
	local kernel kernels=("${stock_kernels[@]}")
	! quick || kernels=(uml)
	for kernel in "${kernels[@]}"; do
		stock_run "$kernel"
		quick || spawn_guest "GIDs of what is on top of network devices, $STOCK_NAME" \
			"uppers-$STOCK_NAME" --kernel "$kernel" \
			--need "dummy 8021q macvlan bridge bonding" --limit 300 \
			--modules "$(run_modules "$MODULES_DIR")" \
			--run "$KV_SCRIPTS/guest/uppers.sh"
		quick || stock_mainline "$kernel"
	done
	quick && return
	stock_mainline uml
	# What differs there is when code is preempted, and which modules of mainline's there are.
	stock_run 6.12-rt
	stock_mainline 6.12-cloud
	stock_mainline 6.1-cloud
}
