# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part ulps of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# build_ulps <kernel>
build_ulps() {
	local status=0 log=$KV_BUILD/logs/build-ulps-$1.log
	"$KV_SCRIPTS/ulps" --kernel "$1" >"$log" 2>&1 || status=$?
	check_build "the kernel's own ULPs build, $1" "$log" $status
	return $status
}

# Sources of another version are refused: one line, exit status 2.
ulps_of_another_version() {
	local status=0
	"$KV_SCRIPTS/ulps" --kernel 6.1 >"$work/ulps-6.1.said" 2>&1 || status=$?
	: >"$work/ulps-6.1.out"
	if [ $status -ne 2 ] || [ "$(wc -l <"$work/ulps-6.1.said")" -ne 1 ]; then
		echo "exit status $status, not 2, or more than a line:" >"$work/ulps-6.1.out"
		cat "$work/ulps-6.1.said" >>"$work/ulps-6.1.out"
	fi
	check_empty "ULPs of another kernel version are refused" "$work/ulps-6.1.out"
}

part_ulps() {
	local modules
	! quick || return 0
	need_build 6.12
	modules=$("$KV_SCRIPTS/ulps" --kernel 6.12 --list | tr '\n' ' ')
	build_job "${build_index["build, 6.12"]}" "build, ULPs, 6.12" build_ulps 6.12
	spawn "ULPs of another kernel version" ulps_of_another_version
	spawn_guest "the kernel's own ULPs, 6.12" ulps-6.12 --kernel 6.12 \
		--need "veth nvmet nvme-fabrics" --limit $((300 * scale)) \
		--modules "$(run_modules "$MODULES_DIR") $modules" \
		--file "$KV_SCRIPTS/guest/smc_check.c" --file "$KV_SCRIPTS/guest/disk.sh" --file "$KV_SCRIPTS/guest/ends.sh" \
		--run "$KV_SCRIPTS/guest/ulps.sh"
	spawn "processes use kverbs' core, 6.12" check_userspace \
		"processes use kverbs' core, 6.12" ulps-user-6.12 --kernel 6.12 \
		--need dummy --env "DOORBELLS=$((9000 * scale))" --limit $((560 * scale)) \
		--modules "$(run_modules "$MODULES_DIR") $modules" \
		--file "$KV_SCRIPTS/guest/ends.sh" --run "$KV_SCRIPTS/guest/userspace.sh"
	spawn "processes make random commands on kverbs' core, 6.12" check_userspace \
		"processes make random commands on kverbs' core, 6.12" ulps-fuzz-6.12 --kernel 6.12 \
		--env "OPERATIONS=$((50000 * scale * scale))" --limit $((900 * scale)) \
		--modules "$(run_modules "$MODULES_DIR") $modules" \
		--run "$KV_SCRIPTS/guest/uverbs_fuzz.sh"
	spawn "RDMA to the memory of a GPU on kverbs' core, 6.12" check_userspace \
		"RDMA to the memory of a GPU, by processes on kverbs' core, 6.12" ulps-gpu-6.12 \
		--kernel 6.12 --limit $((200 * scale)) --env DMABUFS=pinned \
		--modules "$(run_modules "$MODULES_DIR") $MODULES_DIR/kverbs_fake_gpu.ko $modules" \
		--run "$KV_SCRIPTS/guest/gpu.sh"
}
