# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part ulps of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# What there is of them for User Mode Linux.
UML_PARTS=(cm uverbs siw nvme smc ipoib echo)

# ulps_modules <kernel> [<part>...]: in the order in which they can be inserted.
ulps_modules() {
	"$KV_SCRIPTS/ulps" --kernel "$1" --list "${@:2}" | tr '\n' ' '
}

# build_ulps <kernel> [<part>...]
build_ulps() {
	local status=0 log=$KV_BUILD/logs/build-ulps-$1${2:+-$2}.log
	"$KV_SCRIPTS/ulps" --kernel "$1" "${@:2}" >"$log" 2>&1 || status=$?
	check_build "the kernel's own ULPs build, $1${2:+: ${*:2}}" "$log" $status
	return $status
}

# uml_ulps_dir: where those for User Mode Linux are kept, by what they are made of: headers of
# kverbs, and what lays them out. They do not depend on what the core and the drivers do.
uml_ulps_dir() {
	local hash
	hash=$(cd "$KV_ROOT" && {
		kernel_tree uml
		find include ulp/stock ulp/echo scripts/ulps scripts/probe scripts/probes Kbuild -type f -print0 |
			sort -z | xargs -0 sha1sum
	} | sha1sum)
	echo "$KV_CACHE/ulps/${hash:0:12}"
}

# build_uml_ulps: the default tier takes those that have been built before.
build_uml_ulps() {
	local kept out=$1/ulps
	kept=$(uml_ulps_dir)
	if quick && [ -e "$kept/.complete" ]; then
		mkdir -p "$out"
		cp "$kept"/*.ko "$out/"
		check_passed "the kernel's own ULPs build, uml (as the last time)"
		return
	fi
	cold_work build_ulps uml "${UML_PARTS[@]}" || return
	keep_ulps "$out" "$kept"
}

# keep_ulps <from> <to>: at once, as others may look for them, or keep the same.
keep_ulps() {
	local new
	mkdir -p "${2%/*}"
	new=$(mktemp -d "$2.XXXXXX")
	cp "$1"/*.ko "$new/"
	touch "$new/.complete"
	chmod 755 "$new"
	[ -e "$2/.complete" ] || rm -rf "$2"
	mv -T "$new" "$2" 2>/dev/null || rm -rf "$new"
}

# headers_of <version> <directory> [<option>]: what scripts/ulps reads of a kernel before it refuses
# one. All options that are needed are set, and this one.
headers_of() {
	local dir=$2/include/generated
	mkdir -p "$dir/uapi/linux" "$2/include/config"
	echo "#define UTS_RELEASE \"$1-none\"" >"$dir/utsrelease.h"
	awk -v version="$1" 'BEGIN {
		split(version, part, ".")
		print "#define LINUX_VERSION_MAJOR " part[1]
		print "#define LINUX_VERSION_PATCHLEVEL " part[2]
		print "#define LINUX_VERSION_SUBLEVEL " part[3]
	}' >"$dir/uapi/linux/version.h"
	printf 'CONFIG_%s=y\n' INFINIBAND INFINIBAND_ADDR_TRANS SMC "${@:3}" >"$2/include/config/auto.conf"
}

# refused <version> <what the line has> [<option>]: one line, exit status 2.
refused() {
	local status=0 said
	headers_of "$1" "$work/headers-$1" "${@:3}"
	said=$("$KV_SCRIPTS/ulps" --kdir "$work/headers-$1" cm 2>&1) || status=$?
	[ $status -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -q -- "$2" <<<"$said" ||
		echo "$1: exit status $status, not 2, or other than a line with '$2': $said"
}

# There are no sources of the one, and others of the other. Those that there are have been unpacked,
# which would be told of, too.
ulps_of_another_version() {
	"$KV_SCRIPTS/deps" ulps-6.1 >/dev/null 2>&1 || true
	"$KV_SCRIPTS/kernels" --source 6.1 >/dev/null 2>&1 || true
	{
		refused 6.6.1 "6.12 and 6.1 only"
		refused 6.1.1 "linux-source-6.1 has the sources of"
		refused 6.12.1 "is built with CONFIG_SECURITY_INFINIBAND" SECURITY_INFINIBAND
		refused 6.12.1 "linux-source-6.12 has the sources of"
	} >"$work/ulps-refused.out"
	check_empty "ULPs of another kernel version are refused" "$work/ulps-refused.out"
}

# ulps_guest <what> <script> <modules of the kernel that it needs> [options of scripts/vm]
# On $kernel.
ulps_guest() {
	local what=$1 name=$2 need=$3 script=${2%%-*}
	shift 3
	spawn_guest "$what, $kernel" "$name-$kernel" --kernel "$kernel" --need "veth $need" \
		--limit $((400 * scale)) --modules "$modules" \
		--file "$KV_SCRIPTS/guest/smc_check.c" --file "$KV_SCRIPTS/guest/rds_check.c" \
		--file "$KV_SCRIPTS/guest/rdmalink.c" \
		--run "$KV_SCRIPTS/guest/$script.sh" "$@"
}

# mainline_ulps_guest <script> <modules of the kernel, those of RDMA among them> [options]
mainline_ulps_guest() {
	ulps_guest "the kernel's own core: $1" "$1-mainline" "$2" --env CORE=mainline "${@:3}"
}

# machine <server or client> <directory> <its modules>: a guest whose network is the other one.
machine() {
	local end=$1 other=client dir=$2 mac=1
	[ "$end" = server ] || other=server mac=2
	guest "machines-$(basename "$dir")-$end" --kernel 6.12 --tree "$(cat "$dir/tree")" \
		--env "END=$end" --limit $((400 * scale)) --modules "$3" \
		--need "virtio_net sch_netem nvmet nvme-fabrics crc32_generic $4" \
		--file "$KV_SCRIPTS/guest/rdmalink.c" --run "$KV_SCRIPTS/guest/machines.sh" --qemu \
		"-device virtio-net-pci,netdev=wire,mac=52:54:00:07:00:0$mac -netdev \
dgram,id=wire,local.type=unix,local.path=$dir/$end,remote.type=unix,remote.path=$dir/$other"
}

# check_machines <what> <end that has kverbs' core> <its modules>: the other end has the kernel's own.
check_machines() {
	local what=$1 ours=$2 theirs=client dir=$work/$2 pid status=0 end
	local stock="rdma_ucm rdma_rxe nvmet-rdma nvme-rdma"
	[ "$ours" = server ] || theirs=server
	mkdir "$dir"
	"$KV_SCRIPTS/userland" >"$dir/tree" || return
	machine "$theirs" "$dir" "" "$stock" &
	pid=$!
	machine "$ours" "$dir" "$3" "" || status=1
	wait $pid || status=1
	for end in server client; do
		count_reports "machines-$ours-$end"
	done
	if [ $status -eq 0 ]; then
		check_passed "$what"
	else
		cat "$work/machines-$ours-client.out" >>"$work/machines-$ours-server.out"
		check_failed "$what" "$work/machines-$ours-server.out"
	fi
}

# ulps_machines: rdma_rxe on two machines, with kverbs' core on each in turn.
ulps_machines() {
	local end what modules
	modules="$(run_modules "$MODULES_DIR") $(ulps_modules 6.12 uverbs rxe nvme)"
	for end in server client; do
		what="rdma_rxe on two machines, kverbs' core on the $end, 6.12"
		add_job check "$PARALLEL" "${needs[*]-}" "$what" check_machines "$what" $end "$modules"
	done
}

# Processes, under kverbs' core, on $kernel.
ulps_processes() {
	spawn_userspace "9P, $kernel" "ulps-9p-$kernel" --kernel "$kernel" \
		--need "veth 9pnet 9p" --limit $((300 * scale)) --modules "$modules" \
		--run "$KV_SCRIPTS/guest/ulps_9p.sh"
	spawn_userspace "processes use kverbs' core, $kernel" "ulps-user-$kernel" \
		--kernel "$kernel" --need dummy --env "DOORBELLS=$((9000 * scale))" --limit $((560 * scale)) \
		--modules "$modules" --run "$KV_SCRIPTS/guest/userspace.sh"
}

# The same, with what is enough to run on one kernel.
ulps_processes_more() {
	spawn_userspace "processes make random commands on kverbs' core, 6.12" ulps-fuzz-6.12 \
		--kernel 6.12 --env "OPERATIONS=$((50000 * scale * scale))" --limit $((900 * scale)) \
		--modules "$modules" --run "$KV_SCRIPTS/guest/uverbs_fuzz.sh"
	spawn_userspace "RDMA to the memory of a GPU, by processes on kverbs' core, 6.12" ulps-gpu-6.12 \
		--kernel 6.12 --limit $((200 * scale)) --env DMABUFS=pinned \
		--modules "$modules $MODULES_DIR/kverbs_fake_gpu.ko" --run "$KV_SCRIPTS/guest/gpu.sh"
}

# drive_moved <trace of QEMU> <bytes>: says so if the NVMe drive has moved anything but that much, all of
# it from and to its own memory. The second of its events tells which part of the first that is.
drive_moved() {
	awk -v data="$2" '
		/^pci_nvme_map_addr / { all += $NF }
		/^pci_nvme_map_addr_cmb / { own += $NF }
		END {
			if (all != data || own != data)
				printf "the drive moved %d bytes, %d of them in its memory; %d were copied\n",
					all, own, data
		}' "$1"
}

# check_copy_offload <kernel> "<modules>"
check_copy_offload() {
	local what="NVMe target copy offload, $1" name=ulps-p2p-$1 dir=$work/offload-$1 MACHINE
	p2p_machine --monitor "$dir/monitor" --disk "$dir/disk"
	mkdir -p "$dir"
	truncate -s 24M "$dir/disk"
	check_guest "$what" "$name" --kernel "$1" --need "veth nvme-fabrics" \
		--limit $((400 * scale)) --modules "$2" \
		--env "$("$KV_SCRIPTS/p2p-machine" --print names) TRACE=$dir/trace" \
		"${MACHINE[@]}" --run "$KV_SCRIPTS/guest/ulps_p2p.sh"
	# 16 MiB there and back.
	drive_moved "$dir/trace" $((32 << 20)) >"$work/$name.drive" 2>&1 || true
	check_empty "by its trace, the drive moved all data in its own memory, $1" "$work/$name.drive"
}

# offload_modules <kernel> <NVMe driver> <NVMe target> <its transport>
offload_modules() {
	run_modules "$MODULES_DIR"
	ulps_modules "$1" cm
	echo "$MODULES_DIR/kverbs_bar_mem.ko $MODULES_DIR/ulps/nvme-rdma.ko ${*:2}"
}

# Where the kernel has CONFIG_PCI_P2PDMA, its driver and its target are taken as they are.
ulps_copy_offload() {
	local tree nvme
	needs=()
	need_build 6.12
	nvme=$MODULES_DIR/ulps/p2pmem
	build_job "${build_index["build, 6.12"]}" "build, ULPs, 6.12" build_ulps 6.12
	build_job "${build_index["build, ULPs, 6.12"]}" "build, p2pmem, 6.12" build_ulps 6.12 p2pmem
	spawn "NVMe target copy offload, 6.12" check_copy_offload 6.12 \
		"$(offload_modules 6.12 "$nvme/nvme.ko" "$nvme/nvmet.ko" "$nvme/nvmet-rdma.ko")"
	needs=()
	need_build lean
	build_job "${build_index["build, lean"]}" "build, ULPs, lean" build_ulps lean nvme
	tree=$(kernel_tree lean)/drivers/nvme
	spawn "NVMe target copy offload, lean" check_copy_offload lean \
		"$(offload_modules lean "$tree/host/nvme.ko" "$tree/target/nvmet.ko" \
			"$MODULES_DIR/ulps/nvmet-rdma.ko")"
}

# The same programs under both cores.
ulps_programs() {
	local what="programs end on kverbs' core as on the kernel's"
	need_mainline 6.12
	spawn "$what" check_programs "$what" "${MAINLINE_MODULES%% *}" --own \
		--parts "pingpongs,cm_programs,qperfs,fios,connections,pyverbs" --runs "$scale"
}

# In User Mode Linux: KASAN, lockdep and kmemleak look on. nvme-rdma maps small pieces of memory that
# share a cache line, and processes register memory twice: what is meant for machines that care
# is off. One guest for several scripts, for each boots and looks for leaks.
ulps_uml() {
	local modules append=dma_debug=off what="the connection manager, NVMe, SMC-R and hostile MADs"
	local mads=20000 scripts=ulps:ulps_smc:ulps_disks:ulps_mad
	need_build uml
	# Not siw, which needs modules of the kernel that the others do not.
	modules="$(run_modules "$MODULES_DIR") $(ulps_modules uml cm uverbs nvme smc echo)"
	build_job "${build_index["build, uml"]}" "build, ULPs, uml" build_uml_ulps "$MODULES_DIR"
	! quick || mads=10000
	spawn_userspace "$what, uml" ulps-uml --kernel uml --append "$append" \
		--need "nvmet nvme-fabrics" --limit $((560 * scale)) --modules "$modules" \
		--env "SCRIPTS=$scripts DISK=no DISKS=nvme MADS=$((mads * scale))" \
		--file "$KV_SCRIPTS/guest/smc_check.c" --file "$KV_SCRIPTS/guest/rdmalink.c" \
		--run "$KV_SCRIPTS/guest/ulps_some.sh"
	quick && return
	spawn_userspace "processes use kverbs' core, uml" ulps-user-uml --kernel uml \
		--env "DOORBELLS=$((9000 * scale)) PROGRAMS=sleep" --append "$append" \
		--limit $((560 * scale)) --modules "$modules" --run "$KV_SCRIPTS/guest/userspace.sh"
	# IPoIB frees what its own work still uses, at times: not in the default tier.
	spawn_guest "IP over InfiniBand, uml" ulps_ipoib-uml --kernel uml --append "$append" \
		--limit $((200 * scale)) \
		--modules "$(run_modules "$MODULES_DIR") $(ulps_modules uml ipoib)" \
		--run "$KV_SCRIPTS/guest/ulps_ipoib.sh"
	# siw calls the handlers of a CQ inside its modify_qp.
	spawn_userspace "siw, uml" ulps-siw-uml --kernel uml --append "$append" \
		--need "crc32c_generic nvmet nvme-fabrics" --breaks 3 --limit $((300 * scale)) \
		--modules "$modules $MODULES_DIR/ulps/siw.ko" \
		--file "$KV_SCRIPTS/guest/rdmalink.c" --run "$KV_SCRIPTS/guest/ulps_siw.sh"
	spawn_userspace "processes make random commands on kverbs' core, uml" ulps-fuzz-uml --kernel uml \
		--append "$append" --env "OPERATIONS=$((50000 * scale))" --limit $((900 * scale)) \
		--modules "$modules" --run "$KV_SCRIPTS/guest/uverbs_fuzz.sh"
}

# ulps_on <kernel>: all that there are, on kverbs' core.
ulps_on() {
	local kernel=$1 scsi="target_core_mod target_core_file sd_mod"
	need_build "$kernel"
	modules="$(run_modules "$MODULES_DIR") $(ulps_modules "$kernel")"
	build_job "${build_index["build, $kernel"]}" "build, ULPs, $kernel" build_ulps "$kernel"
	ulps_guest "the connection manager, and NVMe" ulps "nvmet nvme-fabrics"
	ulps_guest "rdma_rxe" ulps_rxe "nvmet nvme-fabrics crc32_generic"
	ulps_guest "SMC-R" ulps_smc "" --env "SMC_KIB=$SMC_KIB"
	ulps_guest "SRP, RNBD and NVMe" ulps_disks \
		"loop nvmet nvme-fabrics ext4 crc32c_generic $scsi scsi_transport_srp" \
		--tools fio --env FILES=yes
	ulps_guest "NFS over RDMA" ulps_nfs "nfsd nfs nfsv4"
	ulps_guest "iSER" ulps_iser \
		"libiscsi scsi_transport_iscsi iscsi_target_mod $scsi crc32c_generic" --tools iscsi
	ulps_guest "IP over InfiniBand" ulps_ipoib "" --tools iperf3 --env IPERF=yes
	ulps_guest "SRP on InfiniBand" ulps_srp_ib "$scsi scsi_transport_srp"
	# RDS frees what it has after it said that it had.
	ulps_guest "RDS" ulps_rds rds --breaks "7 8"
	ulps_processes
}

part_ulps() {
	# What SMC-R carries each way.
	local SMC_KIB=4096
	! whole || SMC_KIB=$((1 << 20))
	local modules kernel=6.12 scsi="target_core_mod target_core_file sd_mod"
	ulps_uml
	! quick || return 0
	needs=()
	spawn "ULPs of another kernel version" ulps_of_another_version
	ulps_on 6.1
	needs=()
	ulps_on 6.12
	# As RDS does.
	ulps_guest "SMB Direct" ulps_smb "ccm cmac gcm ghash_generic nls_utf8" --tools ksmbd \
		--breaks "7 8"
	ulps_processes_more
	ulps_machines

	# As Debian ships them.
	need_mainline 6.12
	modules=$MAINLINE_MODULES
	mainline_ulps_guest ulps_smc smc --env "CORE=mainline SMC_KIB=$SMC_KIB"
	mainline_ulps_guest ulps_disks \
		"ib_srp ib_srpt nvmet-rdma nvme-rdma ext4 crc32c_generic $scsi" \
		--tools fio --env "CORE=mainline FILES=yes"
	mainline_ulps_guest ulps_nfs "nfsd nfs nfsv4 rpcrdma"
	mainline_ulps_guest ulps_iser "ib_iser ib_isert $scsi crc32c_generic" --tools iscsi
	mainline_ulps_guest ulps_rds rds_rdma
	mainline_ulps_guest ulps_ipoib ib_ipoib --tools iperf3 --env "CORE=mainline IPERF=yes"
	mainline_ulps_guest ulps_srp_ib "ib_srp ib_srpt $scsi"
	ulps_programs
	ulps_copy_offload
}
