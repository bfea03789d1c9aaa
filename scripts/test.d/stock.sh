# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part stock of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# check_tools "<arguments of scripts/userland>" <arguments of check_guest>: with Debian's RDMA
# programs, and ours, in the guest.
check_tools() {
	local tree
	# shellcheck disable=SC2086
	tree=$("$KV_SCRIPTS/userland" $1 2>"$work/$3.userland") || {
		check_failed "$2" "$work/$3.userland"
		return
	}
	check_guest "${@:2}" --tree "$tree"
}

# check_userspace <arguments of check_guest>: with what there is to check verbs of processes.
check_userspace() {
	check_tools "$(echo "$KV_SCRIPTS"/guest/uverbs_*.c)" "$@"
}

spawn_userspace() {
	spawn "$1" check_userspace "$@"
}

# check_programs <what it shows> <module> [<arguments of scripts/programs>]
check_programs() {
	local said
	said=$(mktemp -d "$work/programs.XXXXXX")
	if "$KV_SCRIPTS/programs" --module "${@:2}" >"$said/tables" 2>"$said/log"; then
		check_passed "$1"
	else
		check_failed "$1" "$said/log"
	fi
	cat "$said/tables"
	grep 'connections a second' "$said/log" || true
}

# tshark_agrees <file> <what tools/frames prints of it>: on each operation and PSN.
tshark_agrees() {
	diff <(tshark -r "$1" -T fields -e infiniband.bth.psn -e infiniband.bth.destqp 2>/dev/null |
		sed 's/\t0x0*/ 0x/') <(sed -n 's/.* \(0x[^ ]*\) psn=\([0-9]*\) .*/\2 \1/p' "$2")
}

# check_frames <directory>: what the guest has captured there.
check_frames() {
	local file name operation agree=true
	for file in "$1"/*.pcapng; do
		"$KV_ROOT/tools/frames" "$file" >"$file.frames" 2>&1 || {
			check_failed "the frames of $(basename "$file") are right" "$file.frames"
			return
		}
		! have tshark || tshark_agrees "$file" "$file.frames" >"$1/tshark" 2>&1 || agree=false
	done
	! have tshark || if $agree; then
		check_passed "tshark decodes what was captured"
	else
		check_failed "tshark decodes what was captured" "$1/tshark"
	fi
	for name in rc:RC_SEND_{FIRST,MIDDLE,LAST} rc:RC_ACK uc:UC_SEND_LAST ud:UD_SEND_ONLY \
		write:RC_WRITE_{FIRST,MIDDLE,LAST} read:RC_READ_RE{QUEST,SPONSE_MIDDLE} \
		atomic:RC_{FETCH_ADD,ATOMIC_ACK} verbs:{RC_ATOMIC_WRITE,nak=2}; do
		operation=${name#*:}
		grep -qw -- "$operation" "$1/${name%:*}.pcapng.frames" || {
			echo "no $operation in ${name%:*}.pcapng" >"$1/missing"
			check_failed "each operation is captured" "$1/missing"
			return
		}
	done
	check_passed "each operation is captured"
}

# check_capture <arguments of check_guest>
check_capture() {
	local share=$work/$2.share
	mkdir -p "$share"
	check_userspace "$@" --share "$share"
	check_frames "$share"
}

# stock_processes <kernel>: unmodified programs, and hostile processes, under the kernel's own
# ib_core. In User Mode Linux, KASAN and lockdep look on.
stock_processes() {
	local need="dummy rdma_ucm rdma_rxe" env append=''
	need_mainline "$STOCK_NAME"
	env="DOORBELLS=$((9000 * scale))"
	# It is not in the -cloud kernels.
	[[ $1 != *-cloud ]] || need="dummy rdma_ucm"
	# Processes register memory twice, as they may; mainline's core then maps it twice.
	[ "$1" != uml ] || env+=" PROGRAMS=sleep" append=dma_debug=off
	spawn_userspace "processes use the software HCA, $STOCK_NAME" "userspace-$STOCK_NAME" \
		--kernel "$1" --need "$need" --env "$env" --append "$append" \
		--limit $((560 * scale)) --modules "$MAINLINE_MODULES" \
		--run "$KV_SCRIPTS/guest/userspace.sh"
}

# stock_mainline <kernel>: what else there is under the kernel's own ib_core, if it has one.
stock_mainline() {
	local kernel=$1 tree dmabufs=moves append='' operations=$((50000 * scale * scale))
	kernel_of "$kernel"
	STOCK_NAME=$KERNEL_BUILT_FOR
	tree=$(kernel_tree "$STOCK_NAME")
	grep -q '^CONFIG_INFINIBAND=' "$tree/include/config/auto.conf" || return 0
	stock_processes "$kernel"
	grep -qx CONFIG_DMABUF_MOVE_NOTIFY=y "$tree/.config" || dmabufs=pinned
	# In full, five million; with the checks of User Mode Linux, half a million. There, nvme-rdma maps
	# small pieces of memory that share a cache line.
	[ "$kernel" != uml ] || append=dma_debug=off operations=$((50000 * scale))
	spawn_guest "the software HCA under mainline's core, $STOCK_NAME" "mainline-$STOCK_NAME" \
		--kernel "$kernel" --need "dummy nvmet-rdma nvme-rdma" --append "$append" \
		--env "SCALE=$scale DISK=yes" --limit $((240 * scale)) \
		--modules "$MAINLINE_MODULES" --file "$KV_SCRIPTS/guest/rdmalink.c" \
		--run "$KV_SCRIPTS/guest/mainline.sh"
	[[ $kernel = *-cloud ]] || spawn_userspace \
		"processes make random commands, $STOCK_NAME" "uverbs-fuzz-$STOCK_NAME" \
		--kernel "$kernel" --append "$append" --env "OPERATIONS=$operations" --limit $((900 * scale)) \
		--modules "$MAINLINE_MODULES" --run "$KV_SCRIPTS/guest/uverbs_fuzz.sh"
	spawn_userspace "RDMA to the memory of a fake GPU, $STOCK_NAME" "gpu-$STOCK_NAME" \
		--kernel "$kernel" --limit $((200 * scale)) --modules "$MAINLINE_MODULES" \
		--env "DMABUFS=$dmabufs" --run "$KV_SCRIPTS/guest/gpu.sh"
	[ "$kernel" = uml ] || spawn_userspace \
		"memory that the HCA does not reach, mainline's core, $STOCK_NAME" \
		"copy-$STOCK_NAME" --kernel "$kernel" --append swiotlb=force --limit 200 \
		--modules "$MAINLINE_MODULES" --run "$KV_SCRIPTS/guest/copy.sh"
	spawn_userspace "network namespaces have the software HCA, $STOCK_NAME" "netns-$STOCK_NAME" \
		--kernel "$kernel" --need "veth bridge dummy rdma_ucm" --limit $((400 * scale)) \
		--modules "$MAINLINE_MODULES" --run "$KV_SCRIPTS/guest/netns.sh"
	# These have no 9p, by which the frames come back.
	[[ $kernel != *-cloud ]] && [ "$kernel" != uml ] || return 0
	build_command
	spawn "messages are captured, $STOCK_NAME" check_capture \
		"messages of the software HCA are captured, $STOCK_NAME" "capture-$STOCK_NAME" \
		--kernel "$kernel" --need "dummy rdma_ucm" --limit $((300 * scale)) \
		--modules "$MAINLINE_MODULES" --file "$KVERBS_COMMAND" \
		--run "$KV_SCRIPTS/guest/capture.sh"
}

# stock_run <kernel>: under kverbs' own core.
stock_run() {
	need_stock "$1"
	spawn_guest "load, run, unload, $STOCK_NAME" "stock-$STOCK_NAME" \
		--kernel "$1" --need dummy --env "SCALE=$scale" \
		--limit $((240 * scale)) \
		--modules "$(run_modules "$MODULES_DIR")" --run "$KV_SCRIPTS/guest/stock.sh"
	spawn_guest "links, ports and faults, $STOCK_NAME" "control-$STOCK_NAME" \
		--kernel "$1" --need dummy --limit 300 \
		--modules "$(run_modules "$MODULES_DIR")" --run "$KV_SCRIPTS/guest/control.sh"
}

# What every user of the device runs.
stock_programs() {
	local what="programs on the software HCA and on rdma_rxe"
	need_mainline 6.12
	spawn "$what" check_programs "$what" "${MAINLINE_MODULES%% *}" \
		--parts "devinfo,pingpongs,cm_programs,qperfs,fios,pyverbs"
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
	needs=()
	if quick; then
		stock_processes uml
		return
	fi
	stock_programs
	stock_mainline uml
	# What differs there is when code is preempted, and which modules of mainline's there are.
	stock_run 6.12-rt
	# Another architecture: its memory is ordered less.
	stock_run 6.12-arm64
	stock_mainline 6.12-cloud
	stock_mainline 6.1-cloud
}
