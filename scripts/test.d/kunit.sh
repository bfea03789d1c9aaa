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
		--run "$KV_SCRIPTS/guest/kunit.sh"
	[ -e "$work/$name.ktap" ] || return 0
	tally_cases "$name"
	[ "$kernel" = debug ] || quick || check_rows "$kernel" "$work/$name.ktap"
	[ "$kernel" = lean ] || check_skips "each failing of allocations was run, $kernel" \
		"$name" "$NO_INJECTION"
	cases=$(grep -c '^ok ' "$work/$name.ktap" || true)
	echo "        $cases cases, $(sed -n 's/^suites //p' "$work/$name.ktap") suites"
}

# check_rows <where> <cases of a run>...
check_rows() {
	cat "${@:2}" >"$work/rows"
	"$KV_SCRIPTS/conformance" --ktap "$work/rows" >"$work/rows.out" 2>&1 || true
	check_empty "each row of the conformance table was shown, $1" "$work/rows.out"
}

# What has cases that need two CPUs, NMIs or exact stack traces, and what is written to be run
# on several at once: modules, or "module:suite.case" where User Mode Linux has the others. The
# default tier runs it in one guest with what needs PCI devices: with the leaks that are looked
# for at its end, a guest costs more than some suites. The stress of events and the scheduler's
# suite, which wants a clock, take a minute: --full has them. every_case_ran() tells of a case
# that is missing here.
ON_THE_BUS="kunit_emu_peer:emu_peer.memory_on_the_bus_*"
TWO_CPUS="kunit_core_event,kunit_cq_contexts,kunit_cq_stress,kunit_cq_thread"
TWO_CPUS+=",kunit_emu_lockfree,kunit_emu_ring,kunit_emu_stress,kunit_emu_busy"
TWO_CPUS+=",kunit_cq_life:cq_destroy.*,kunit_cq_life:cq_drain.two_drain_qps_of_one_cq"
TWO_CPUS+=",kunit_cq_life:cq_life.done_may_free_another_cq_of_its_lane"
TWO_CPUS+=",kunit_cq_life:cq_life.cqs_of_a_lane_are_freed_in_a_storm"
TWO_CPUS+=",kunit_core_objects:core_objects_qp.reset_waits_for_*"
TWO_CPUS+=",kunit_core_memory:core_srq_event.destroy_waits_for_*"
TWO_CPUS+=",kunit_cq_pool:cq_pool.least_loaded_*,kunit_cq_pool:cq_pool.get_and_trim_*"
TWO_CPUS+=",kunit_cq_debugfs:cq_debugfs.state_tells_*"
TWO_CPUS+=",kunit_emu_cq_ring:emu_cq_ring.either_told_or_notified"
TWO_CPUS+=",kunit_emu_standstill:emu_standstill.news_for_*"
TWO_CPUS+=",kunit_emu_standstill:emu_standstill.write_goes_where_*"
TWO_CPUS+=",kunit_emu_datagram:emu_conform_uc.u7_what_is_behind_*"
TWO_CPUS+=",kunit_emu_peer:emu_peer.long_message_*"
TWO_CPUS+=",kunit_emu_peer:emu_peer.memory_comes_and_goes"
TWO_CPUS+=",$ON_THE_BUS"
TWO_CPUS+=",kunit_emu_peer:emu_peer.m10_*"

# What one kernel or machine cannot run, another must: a case that is skipped everywhere tests
# nothing, but for rows of the conformance table that only a wire can show. The default tier judges
# the suites that it has in QEMU, and lists the others, which --full runs there.
every_case_ran() {
	local ran
	ran=$(cat "$work"/*.ktap)
	awk '
	$1 == "suites" || $1 == "said" || $1 == "broken" { next }
	$1 == "skip" { why[$2] = $0; sub(/^skip [^ ]* /, "", why[$2]); next }
	{ case_ran[$NF] = 1 }
	END {
		for (name in why)
			if (!(name in case_ran) && why[name] !~ /^wire: /)
				print name ": " why[name]
	}
	' <<<"$ran" | sort >"$work/skipped"
	if quick; then
		# Suites of which the guest in QEMU ran a case.
		{ cat "$work"/p2p-*.ktap 2>/dev/null || true; } |
			sed -n 's/^\(not \)\{0,1\}ok \([^. ]*\)\..*/\2/p' | sort -u |
			awk 'NR == FNR { here[$0] = 1; next }
			{ split($0, part, ".") } part[1] in here' - "$work/skipped" >"$work/not-run"
		# Some rows want two CPUs, and were shown there.
		check_rows "uml and debug" "$work"/*.ktap
		sed -n 's/^skip \([^ ]*\) /\1: /p' "$work/kunit-uml.ktap" \
			>"$KV_BUILD/logs/kunit-uml.skipped" 2>/dev/null || true
		echo "        $(wc -l <"$KV_BUILD/logs/kunit-uml.skipped") cases are skipped in User Mode" \
			"Linux, see $KV_BUILD/logs/kunit-uml.skipped; $(wc -l <"$work/skipped") are left to --full"
	else
		cp "$work/skipped" "$work/not-run"
	fi
	check_empty "each case that one kernel skips has run on another" "$work/not-run"
}

# What wants PCI devices of a PC, or CONFIG_DMABUF_MOVE_NOTIFY, is left out on stock kernels; and random
# calls, which take longer than all others, unless everything is run in full.
portable_suites() {
	local not='^kunit_(p2p|edu|emu_p2p)|^[^ ]* core_dmabuf '
	whole || not+='|^kunit_exercise '
	"$KV_SCRIPTS/kunit" --modules | grep -vE "$not" | cut -d ' ' -f 2
}

# check_stock_kunit <kernel>: one of Debian's, to which KUnit is added as a module.
check_stock_kunit() {
	local what="KUnit suites on a stock kernel, $1" out=$work/kunit-$1.out suites
	mapfile -t suites < <(portable_suites)
	if "$KV_SCRIPTS/kunit" --kernel "$1" --limit $((3000 * scale)) --scale "$scale" \
		"${suites[@]}" >"$out" 2>&1; then
		check_passed "$what"
	else
		grep -vE '^\[PASSED\]|^=' "$out" >"$out.failed" || true
		check_failed "$what" "$out.failed"
	fi
	grep '^Testing complete' "$out" | sed 's/^/        /' || true
}

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
	needs=()
	# Memory that is ordered less. Not 6.12-rt, on which nobody has seen all of them pass.
	spawn "KUnit suites on a stock kernel, 6.12-arm64" check_stock_kunit 6.12-arm64
}
