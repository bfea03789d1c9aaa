# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The default tier stays within ten minutes, whatever is added to it; BUDGET_MINUTES allows for
# noise of a tenth. On a busy machine a clock says nothing of that. So what is
# counted is the processor time that the run has used, in units of a fixed computation: how
# long that takes is measured again and again during the run, in processor time as well, for
# what a processor does in a second depends on its neighbours, of which some are not even in
# this machine. Two processors that are idle otherwise give the tier BUDGET_UNITS in that time.
#
# Beside others that keep the processors busy, guests run longer, and their timers tick all that
# time: then the tier may use BUSY_PERCENT more.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# Processor time that the computation took on the machine for which the budget was set, in
# milliseconds: when it was idle, and during a run.
IDLE_UNIT_MS=1430
UNIT_MS=1740
# The run measures a tenth of the computation at a time.
SAMPLE_SECONDS=15
BUDGET_MINUTES=11
# Of two such processors, 95 % of the time at work.
BUDGET_UNITS=$((BUDGET_MINUTES * 60 * 2 * 950 / UNIT_MS))
BUSY_PERCENT=30

# Processor time of the whole machine, in milliseconds; what its host takes away is used, too.
machine_ms() {
	awk -v hz="$(getconf CLK_TCK)" \
		'$1 == "cpu" { print int(($2 + $3 + $4 + $7 + $8 + $9) * 1000 / hz) }' /proc/stat
}

# children_ms <process>: processor time of its children, as far as it has waited for them, in
# milliseconds.
children_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{
		sub(/.*\) /, "")
		print int(($14 + $15) * 1000 / hz)
	}' "/proc/$1/stat"
}

# measure_unit <tenths>: prints the processor time of so much of the computation, in milliseconds.
measure_unit() {
	local me=$BASHPID before
	before=$(children_ms "$me")
	busybox awk -v "n=${1}00000" 'BEGIN { for (i = 0; i < 4 * n; i++) x = (x * 75 + 74) % 65537 }'
	echo $(($(children_ms "$me") - before))
}

# Until it is terminated; what it measures then is finished, or not told.
sample_units() {
	local nap=
	trap '[ -z "$nap" ] || kill "$nap" 2>/dev/null || true; exit 0' TERM
	while :; do
		measure_unit 1
		sleep $SAMPLE_SECONDS &
		nap=$!
		wait $nap
		nap=
	done
}

# Exports KV_PATIENCE, by which the limits of guests are multiplied: how many times as long as on an
# idle machine of that speed the computation takes now, others being busy; twice that, for they
# may become busier, and at least 4.
budget_begins() {
	local began=${EPOCHREALTIME/./} took
	measure_unit 10 >/dev/null
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	KV_PATIENCE=$((2 * (took / IDLE_UNIT_MS + 1)))
	export KV_PATIENCE=$((KV_PATIENCE < 4 ? 4 : KV_PATIENCE))
	if $budgeted; then
		sample_units >"$work/units" 9>&- &
		sampler=$!
	fi
	used_before=$(children_ms $$)
	machine_before=$(machine_ms)
}

# cold_work <command>: what the next run finds done: its processor time is not the tier's.
cold_work() {
	local me=$BASHPID before status=0
	before=$(children_ms "$me")
	"$@" || status=$?
	echo $(($(children_ms "$me") - before)) >>"$work/cold"
	return $status
}

# over_budget <processor time of the run> <of others, in milliseconds> <of the unit>: says so, if it is.
over_budget() {
	local units=$(($1 / $3)) limit=$BUDGET_UNITS
	# All of it where others had a third of what the run had.
	local busy=$((3 * BUSY_PERCENT * $2 / ($1 + 1)))
	limit=$((limit * (100 + (busy < BUSY_PERCENT ? busy : BUSY_PERCENT)) / 100))
	[ "$units" -le "$limit" ] || echo "$units units, of $limit that are allowed:" \
		"move something to --full, or make it faster: see the slowest parts"
}

# Made-up runs: within the budget and beyond it, alone and beside others.
check_budget() {
	local unit=$UNIT_MS run
	run=$((BUDGET_UNITS * unit))
	{
		over_budget $run 0 $unit
		over_budget $((run * 125 / 100)) $((run / 2)) $unit
		[ -n "$(over_budget $((run * 11 / 10)) 0 $unit)" ] || echo "not red: a tenth too much"
		[ -n "$(over_budget $((run * 14 / 10)) $run $unit)" ] ||
			echo "not red: too much beside others"
	} >"$work/check_budget.out"
	check_empty "a run that exceeds its budget is told" "$work/check_budget.out"
}

budget_kept() {
	local used unit others cold=0
	kill "$sampler" 2>/dev/null || true
	wait "$sampler" || true
	used=$(($(children_ms $$) - used_before))
	others=$(($(machine_ms) - machine_before - used))
	[ ! -e "$work/cold" ] || cold=$(awk '{ sum += $1 } END { print sum }' "$work/cold")
	unit=$(awk -v unit="$UNIT_MS" '{ sum += $1 }
		END { print NR ? int(10 * sum / NR) : unit }' "$work/units")
	echo "        $((used / 1000)) s of processor time in $((SECONDS - started)) s, of which" \
		"$((cold / 1000)) s not the next time; the rest is $(((used - cold) / unit)) units" \
		"of $unit ms; others used $((others / 1000)) s;" \
		"$BUDGET_UNITS units are $BUDGET_MINUTES minutes of two processors"
	quick || return 0
	over_budget $((used - cold)) "$others" "$unit" >"$work/budget.out"
	check_empty "the default tier keeps within its $BUDGET_MINUTES minutes" "$work/budget.out"
}
