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

# ulps_guest <what> <script> <modules of the kernel that it needs> [options of scripts/vm]
ulps_guest() {
	local what=$1 name=$2 need=$3 script=${2%%-*}
	shift 3
	spawn_guest "$what, 6.12" "$name-6.12" --kernel 6.12 --need "veth $need" \
		--limit $((300 * scale)) --modules "$modules" \
		--file "$KV_SCRIPTS/guest/smc_check.c" --file "$KV_SCRIPTS/guest/rds_check.c" \
		--file "$KV_SCRIPTS/guest/disk.sh" --file "$KV_SCRIPTS/guest/ends.sh" \
		--file "$KV_SCRIPTS/guest/hosts.sh" --file "$KV_SCRIPTS/guest/rdmalink.c" \
		--run "$KV_SCRIPTS/guest/$script.sh" "$@"
}

# mainline_ulps_guest <script> <modules of the kernel, those of RDMA among them> [options]
mainline_ulps_guest() {
	ulps_guest "the kernel's own core: $1" "$1-mainline" "$2" --env CORE=mainline "${@:3}"
}

# Processes, under kverbs' core.
ulps_processes() {
	spawn "processes use kverbs' core, 6.12" check_userspace \
		"processes use kverbs' core, 6.12" ulps-user-6.12 --kernel 6.12 \
		--need dummy --env "DOORBELLS=$((9000 * scale))" --limit $((560 * scale)) \
		--modules "$modules" --file "$KV_SCRIPTS/guest/ends.sh" \
		--run "$KV_SCRIPTS/guest/userspace.sh"
	spawn "processes make random commands on kverbs' core, 6.12" check_userspace \
		"processes make random commands on kverbs' core, 6.12" ulps-fuzz-6.12 --kernel 6.12 \
		--env "OPERATIONS=$((50000 * scale * scale))" --limit $((900 * scale)) \
		--modules "$modules" --run "$KV_SCRIPTS/guest/uverbs_fuzz.sh"
	spawn "RDMA to the memory of a GPU on kverbs' core, 6.12" check_userspace \
		"RDMA to the memory of a GPU, by processes on kverbs' core, 6.12" ulps-gpu-6.12 \
		--kernel 6.12 --limit $((200 * scale)) --env DMABUFS=pinned \
		--modules "$modules $MODULES_DIR/kverbs_fake_gpu.ko" --run "$KV_SCRIPTS/guest/gpu.sh"
}

# The same programs under both cores.
ulps_programs() {
	local what="programs end on kverbs' core as on the kernel's"
	need_mainline 6.12
	spawn "$what" check_programs "$what" "${MAINLINE_MODULES%% *}" --own \
		--parts "pingpongs,rping_alone,pyverbs"
}

part_ulps() {
	local modules scsi="target_core_mod target_core_file sd_mod"
	! quick || return 0
	need_build 6.12
	modules="$(run_modules "$MODULES_DIR") $("$KV_SCRIPTS/ulps" --kernel 6.12 --list | tr '\n' ' ')"
	build_job "${build_index["build, 6.12"]}" "build, ULPs, 6.12" build_ulps 6.12
	spawn "ULPs of another kernel version" ulps_of_another_version
	ulps_guest "the connection manager, and NVMe" ulps "nvmet nvme-fabrics"
	ulps_guest "rdma_rxe" ulps_rxe "nvmet nvme-fabrics crc32_generic"
	ulps_guest "SMC-R" ulps_smc ""
	ulps_guest "SRP, RNBD and NVMe" ulps_disks \
		"loop nvmet nvme-fabrics $scsi scsi_transport_srp"
	ulps_guest "NFS over RDMA" ulps_nfs "nfsd nfs nfsv4"
	ulps_guest "iSER" ulps_iser \
		"libiscsi scsi_transport_iscsi iscsi_target_mod $scsi crc32c_generic" --tools iscsi
	# RDS frees what it has after it said that it had.
	ulps_guest "RDS" ulps_rds rds --breaks "7 8"
	ulps_processes

	# As Debian ships them.
	need_mainline 6.12
	modules=$MAINLINE_MODULES
	mainline_ulps_guest ulps_smc smc
	mainline_ulps_guest ulps_disks "ib_srp ib_srpt nvmet-rdma nvme-rdma $scsi"
	mainline_ulps_guest ulps_nfs "nfsd nfs nfsv4 rpcrdma"
	mainline_ulps_guest ulps_iser "ib_iser ib_isert $scsi crc32c_generic" --tools iscsi
	mainline_ulps_guest ulps_rds rds_rdma
	ulps_programs
}
