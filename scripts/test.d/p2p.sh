# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part p2p of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# p2p_machine <options of scripts/p2p-machine>: sets MACHINE, options for guests. In the default
# tier, waiting for grace periods would take a quarter of the time, and the search for leaks
# reads the descriptor of each page.
p2p_machine() {
	local append
	append="$CA_APPEND $("$KV_SCRIPTS/p2p-machine" "$@" --print append)"
	! quick || append+=" rcupdate.rcu_expedited=1"
	MACHINE=(--qemu "$("$KV_SCRIPTS/p2p-machine" "$@")" --append "$append")
	! quick || MACHINE+=(--mem 512)
}

# p2p_modules <what it was built for> <directory>: the test kernels have a driver for the
# machine's NVMe controller that provides its memory.
p2p_modules() {
	local tree name
	run_modules "$2"
	for name in bar_mem edu p2p_offload peer_move; do
		printf '%s ' "$2/kverbs_$name.ko"
	done
	case $1 in
	lean | debug)
		tree=$(kernel_tree "$1")/drivers/nvme/host
		echo "$tree/nvme-core.ko $tree/nvme.ko" ;;
	esac
}

# check_p2p <what> <run> <kernel> <what it was built for> "<variables>" [options]: on the
# machine that MACHINE is.
check_p2p() {
	local what=$1 run=$2 kernel=$3 tree=$4 variables=$5
	shift 5
	check_guest "$what, $tree" "p2p-$tree-${what//[ ,]/-}" --kernel "$kernel" --limit 800 \
		--env "$("$KV_SCRIPTS/p2p-machine" --print names) SEED=$RANDOM $variables" \
		--modules "$(p2p_modules "$tree" "${built[$tree]}")" \
		--run "$KV_SCRIPTS/guest/$run.sh" "${MACHINE[@]}" "$@"
}

# check_p2p_moves <kernel> <what it was built for> <machine> "<variables>": what the
# processors and the IOMMU make of it.
check_p2p_moves() {
	local ways options=()
	case $3 in
	plain) ways="IN_SWITCH=bus ACROSS=refused" ;;
	zen) ways="IN_SWITCH=bus ACROSS=host IN_SLOT=bus" options=(--zen) ;;
	pt) ways="IN_SWITCH=bus ACROSS=host IN_SLOT=host" options=(--zen --iommu pt) ;;
	translated)
		ways="IN_SWITCH=none ACROSS=host IN_SLOT=host"
		options=(--zen --iommu translated) ;;
	esac
	p2p_machine ${options[@]+"${options[@]}"}
	check_p2p "peer-to-peer DMA, $3" p2p "$1" "$2" "$ways $4"
}

# check_p2p_unplug <kernel> <what it was built for> <who keeps the memory> "<variables>":
# QEMU's monitor is in the guest. On the debug kernel, lockdep dislikes the locks of the
# kernel's own driver of hot-plug slots.
check_p2p_unplug() {
	local by=button
	[ "$2" != debug ] || by=sysfs
	p2p_machine --monitor "$work/monitor-$2-$3"
	check_p2p "providers that go, $3" p2p_unplug "$1" "$2" "BY=$by $4"
}

# check_p2p_routes <kernel> <what it was built for> <who keeps the memory> <host|refused>
check_p2p_routes() {
	local what="routes, $3, $4" own=0
	[ "$3" = kernel ] || own=1
	if [ "$4" = host ]; then p2p_machine --zen; else p2p_machine; fi
	check_p2p "$what" p2p_matrix "$1" "$2" "OWN=$own ACROSS=$4" --file "$PROGRAMS/kverbs"
	check_json "the JSON of $what is valid, $2" "p2p-$2-${what//[ ,]/-}"
}

# check_p2p_program <kernel> <what it was built for> <who keeps the memory> <program>: it
# tells of each of its cases.
check_p2p_program() {
	local own=0
	[ "$3" = kernel ] || own=1
	p2p_machine
	check_p2p "$4, $3" "$4" "$1" "$2" "OWN=$own" --file "$PROGRAMS/$4"
}

# Modules whose suites want a machine with providers, and those of them that take long.
P2P_SUITES=kunit_edu,kunit_emu_p2p,kunit_p2p,kunit_p2p_route
P2P_LONG_SUITES=kunit_p2p_fail_nth,kunit_p2p_model,kunit_p2p_scale

# check_p2p_kunit <kernel> <directory of our modules> <who keeps the memory, in turn> <modules>:
# 0 for the kernel, 1 for us; the modules are separated by commas.
check_p2p_kunit() {
	local what="KUnit suites for a machine with providers" name breaks=()
	# The other suites break it on purpose.
	! quick || breaks=(--breaks all)
	name="p2p-$1-${what//[ ,]/-}"
	p2p_machine
	check_p2p "$what" p2p_kunit "$1" "$1" \
		"SCALE=$scale OWN=${3// /:} SUITES=$4" --limit $((2400 * scale)) \
		--suites $(($(wc -w <<<"$3") * $(kunit_suites "$4"))) ${breaks[@]+"${breaks[@]}"} \
		--modules "$(run_modules "$2") $2/kverbs_edu.ko $(module_paths "$2" "$4")"
	[ -e "$work/$name.ktap" ] || return 0
	tally_cases "$name"
	check_skips "no suite lacks a device or the failing of allocations" \
		"$name" "ivshmem devices|edu device|$NO_INJECTION"
}

# p2p_spawn <kernel> <what it was built for> <check> [arguments]
p2p_spawn() {
	local check=$3 arguments=("${@:4}")
	case $check in
	unplug) spawn "providers that go, ${4:-}, $2" check_p2p_unplug "$1" "$2" "${arguments[@]}" ;;
	routes) spawn "routes, $4, $5, $2" check_p2p_routes "$1" "$2" "${arguments[@]}" ;;
	p2p_*) spawn "$check, $4, $2" check_p2p_program "$1" "$2" "$4" "$check" ;;
	*) spawn "peer-to-peer DMA, $check, $2" check_p2p_moves "$1" "$2" "$check" "$4" ;;
	esac
}

# p2p_stock <kernel> [<checks>]: these, or all.
p2p_stock() {
	local kernel=$1 check
	need_stock "$kernel"
	shift
	if [ $# -eq 0 ] || whole; then
		set -- plain zen pt translated unplug refused host p2p_rdma p2p_sysfs
	fi
	for check in "$@"; do
		case $check in
		unplug) p2p_spawn "$kernel" "$STOCK_NAME" unplug ours SAYS=waiting ;;
		refused | host) p2p_spawn "$kernel" "$STOCK_NAME" routes ours "$check" ;;
		p2p_*) p2p_spawn "$kernel" "$STOCK_NAME" "$check" ours ;;
		*) p2p_spawn "$kernel" "$STOCK_NAME" "$check" NVME=bar_mem ;;
		esac
	done
}

# The default tier has the suites; --full meets each machine and each check on one kernel
# or another, --long on all of them.
part_p2p() {
	local kernel who=1 suites=$P2P_SUITES,$TWO_CPUS
	quick || who="0 1" suites="$P2P_SUITES,$P2P_LONG_SUITES,$ON_THE_BUS"
	need_programs
	need_build debug
	spawn "KUnit suites for a machine with providers, debug" \
		check_p2p_kunit debug "$MODULES_DIR" "$who" "$suites"
	! quick || return 0
	p2p_spawn debug debug zen NVME=kernel
	p2p_spawn debug debug unplug ours "SAYS=waiting OWN=1"
	if whole; then
		p2p_spawn debug debug plain "NVME=bar_mem OWN=1"
		p2p_spawn debug debug unplug kernel SAYS=
		p2p_spawn debug debug p2p_rdma ours
		p2p_spawn debug debug p2p_sysfs ours
	fi
	need_build lean
	p2p_spawn lean lean translated NVME=kernel
	p2p_spawn lean lean p2p_rdma kernel
	if whole; then
		p2p_spawn lean lean plain NVME=kernel
		p2p_spawn lean lean routes kernel refused
		p2p_spawn lean lean p2p_sysfs kernel
	fi
	for kernel in "${stock_kernels[@]}"; do
		case $kernel in
		6.12) p2p_stock "$kernel" plain pt unplug refused p2p_sysfs ;;
		6.1) p2p_stock "$kernel" plain zen translated host p2p_rdma ;;
		*) p2p_stock "$kernel" ;;
		esac
	done
}
