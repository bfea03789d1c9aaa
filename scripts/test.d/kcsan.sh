# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part kcsan of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# check_races <what> <run>[:<variant>] "<variables>" "<modules>" [options]
check_races() {
	local what=$1 run=${2%%:*} name=kcsan-${2/:/-} variables=$3 modules=$4
	shift 4
	check_guest "no data race in $what, kcsan" "$name" --kernel kcsan --limit 3600 \
		--append "$CA_APPEND" --env "RUN=$run.sh $variables" \
		--modules "$modules" --run "$KV_SCRIPTS/guest/kcsan.sh" "$@"
}

# The modules' paths, of suites that may not be built yet.
all_suites() {
	module_paths "$1" "$("$KV_SCRIPTS/kunit" --modules | cut -d ' ' -f 1 | uniq | paste -sd,)"
}

spawn_races() {
	spawn "races in $1" check_races "$@"
}

# A module that is not instrumented has no races.
check_instrumented() {
	local ko
	for ko in "$1"/*.ko "$1"/kunit/*.ko; do
		[[ $(nm -u "$ko") == *__tsan_* ]] || echo "$ko"
	done >"$work/instrumented.out"
	check_empty "KCSAN sees what our modules do" "$work/instrumented.out"
}

expect_race_red() {
	echo 'load kverbs_selftest fault=race' >"$work/race.sh"
	is_red race 'data-race in race_counter' --kernel kcsan --modules "$1" \
		--env RUN=race.sh --file "$work/race.sh" --run "$KV_SCRIPTS/guest/kcsan.sh"
}

# The suites of peer-to-peer DMA, which skip themselves where they lack a device.
check_p2p_races() {
	local suites=$P2P_SUITES,$P2P_LONG_SUITES
	p2p_machine
	check_races "the KUnit suites for a machine with providers" p2p_kunit "" \
		"$(run_modules "$1") $1/kverbs_edu.ko $(module_paths "$1" "$suites")" \
		--suites $((2 * $(kunit_suites "$suites"))) "${MACHINE[@]}"
	[ ! -e "$work/kcsan-p2p_kunit.ktap" ] ||
		check_skips "no suite lacks a device, kcsan" kcsan-p2p_kunit \
			"ivshmem devices|edu device"
}

# What is watched is chosen by chance: the counts are not those of --long.
part_kcsan() {
	local dir core name stress='' tests="ca_abi ca_objects ca_memory ca_access ca_events ca_uring"
	need_programs
	need_build kcsan
	dir=$MODULES_DIR core=$(run_modules "$MODULES_DIR")
	spawn "KCSAN sees our modules" check_instrumented "$dir"
	need_dir kcsan "$KV_SCRIPTS/selftest" KVERBS_KUNIT=m
	spawn "a seeded race" expect_race_red "$EXTRA_DIR/kverbs_selftest.ko"
	spawn_races "the KUnit suites" kunit "" \
		"$core $dir/kverbs_edu.ko $(all_suites "$dir")" \
		--suites "$(kunit_suites)" --breaks all
	for name in kverbs_kunit $STRESS; do
		stress+=" $dir/kunit/$name.ko"
	done
	spawn_races "the stress suites, unwatched" kunit:unwatched \
		"UNWATCHED=${STRESS// /:}" "$core $stress" --suites "$(wc -w <<<"$STRESS")"
	spawn_races "hot-plug" hotplug "CYCLES=40 BOUND=20000" \
		"$(hotplug_modules "$dir")" --need dummy --file "$PROGRAMS/ca_hotplug"
	spawn_races "hostile callers" ca_fuzz "REQUESTS=200000 SEED=$RANDOM" "$core" \
		--file "$PROGRAMS/ca_fuzz"
	spawn_races "peer memory under stress" peer_stress "OPERATIONS=20000 SEED=$RANDOM" \
		"$(peer_modules "$dir")" --file "$PROGRAMS/peer_stress"
	spawn "races in the KUnit suites for a machine with providers" check_p2p_races "$dir"
	p2p_machine --monitor "$work/monitor-kcsan"
	spawn_races "providers that go" p2p_unplug \
		"BY=button SAYS=waiting OWN=1 SEED=$RANDOM $("$KV_SCRIPTS/p2p-machine" --print names)" \
		"$(p2p_modules kcsan "$dir")" "${MACHINE[@]}"
	program_files "fake_gpu peer_e2e peer_dmabuf peer_sysfs"
	spawn_races "peer memory" peer \
		"OPERATIONS=500 SEED=$RANDOM GPUS=ram MOVES=$(dmabufs_move kcsan)" \
		"$(peer_modules "$dir")" "${FILES[@]}"
	program_files "$tests"
	spawn_races "the interface to user space" ca "TESTS=${tests// /:}" "$core" \
		--need dummy "${FILES[@]}"
	spawn_races "links, ports and faults" control "" "$core" --need dummy
}
