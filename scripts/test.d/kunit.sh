# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part kunit of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# Modules whose suites post, poll and dispatch from many threads: they also run with the
# contract checker off, for posts and polls take another path then.
STRESS="kunit_cq_stress kunit_emu_stress kunit_emu_lockfree kunit_core_event_stress kunit_exercise"

# Limits are for guests that hang: a busy host makes them several times as slow.
check_kunit() {
	local kernel=$1 dir=$2 name=kunit-$1 unwatched='' cases
	# Watched they are on the other one.
	[ "$kernel" != lean ] || unwatched=${STRESS// /:}
	check_guest "KUnit suites, $kernel" "$name" --kernel "$kernel" \
		--limit $((3000 * scale)) \
		--suites "$(kunit_suites)" --breaks all \
		--env "SCALE=$scale UNWATCHED=$unwatched" \
		--modules "$(run_modules "$dir") $dir/kverbs_edu.ko $(echo "$dir"/kunit/*.ko)" \
		--run "$KV_SCRIPTS/runs/kunit.sh"
	[ -e "$work/$name.ktap" ] || return 0
	tally_cases "$name"
	[ "$kernel" = debug ] || check_rows "$kernel"
	[ "$kernel" = lean ] || check_skips "each failing of allocations was run, $kernel" \
		"$name" "$NO_INJECTION"
	cases=$(grep -c '^ok ' "$work/$name.ktap" || true)
	echo "        $cases cases, $(sed -n 's/^suites //p' "$work/$name.ktap") suites"
}

check_rows() {
	"$KV_SCRIPTS/conformance" --ktap "$work/kunit-$1.ktap" >"$work/rows.out" 2>&1 || true
	check_empty "each row of the conformance table was shown, $1" "$work/rows.out"
}

# What has cases that need two CPUs, NMIs or exact stack traces, and what is written to be run
# on several at once. The default tier runs it in one guest with what needs PCI devices: with
# the leaks that are looked for at its end, a guest costs more than some suites. The stress of
# events and the scheduler's suite, which wants a clock, take a minute: --full has them.
TWO_CPUS=kunit_core_event,kunit_cq_contexts,kunit_cq_life,kunit_cq_stress,kunit_cq_thread
TWO_CPUS+=,kunit_emu_lockfree,kunit_emu_ring,kunit_emu_stress
TWO_CPUS+=,kunit_core_objects,kunit_core_memory,kunit_cq_pool,kunit_cq_debugfs
TWO_CPUS+=,kunit_emu_cq_ring,kunit_emu_peer,kunit_emu_busy

part_kunit() {
	if quick; then
		need_build uml
		spawn "KUnit suites, uml" check_kunit uml "$MODULES_DIR"
		return
	fi
	need_build debug
	spawn "KUnit suites, debug" check_kunit debug "$MODULES_DIR"
	needs=()
	need_build lean
	spawn "KUnit suites, lean" check_kunit lean "$MODULES_DIR"
}
