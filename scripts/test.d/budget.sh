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
	trap '[ -z "$nap" ] || kill "$nap"; exit 0' TERM
	while :; do
		measure_unit 1
		sleep $SAMPLE_SECONDS &
		nap=$!
		wait $nap
		nap=
	done
}

# Sets patience, by which the limits of guests are multiplied: how many times as long as on an
# idle machine of that speed the computation takes now, others being busy; twice that, for they
# may become busier.
budget_begins() {
	local began=${EPOCHREALTIME/./} took
	measure_unit 10 >/dev/null
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	patience=$((2 * (took / IDLE_UNIT_MS + 1)))
	if $budgeted; then
		sample_units >"$work/units" 9>&- &
		sampler=$!
	fi
	used_before=$(children_ms $$)
	machine_before=$(machine_ms)
}

budget_kept() {
	local used unit units others limit=$BUDGET_UNITS
	kill "$sampler"
	wait "$sampler" || true
	used=$(($(children_ms $$) - used_before))
	others=$(($(machine_ms) - machine_before - used))
	unit=$(awk '{ sum += $1 } END { print int(10 * sum / NR) }' "$work/units")
	units=$((used / unit))
	echo "        $((used / 1000)) s of processor time in $((SECONDS - started)) s, $units units" \
		"of $unit ms; $BUDGET_UNITS units are $BUDGET_MINUTES minutes of two processors"
	quick || return 0
	# Proofs were made and files checked that are remembered from now on.
	if [ -e "$work/cold" ]; then
		echo "        not judged: for the next run, there is less to do"
		return
	fi
	# Others had more than a quarter of what the run had.
	if [ $((4 * others)) -gt "$used" ]; then
		limit=$((BUDGET_UNITS * (100 + BUSY_PERCENT) / 100))
		echo "        others used $((others / 1000)) s: $limit units are allowed"
	fi
	if [ "$units" -gt "$limit" ]; then
		echo "move something to --full, or make it faster: see the slowest parts"
	fi >"$work/budget.out"
	check_empty "the default tier keeps within its $BUDGET_MINUTES minutes" "$work/budget.out"
}
