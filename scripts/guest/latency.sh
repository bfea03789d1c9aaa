# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction, and a microsecond of the
# kernel's latency tracers a thousand of them. Runs each of the LOADS, which are cases of the
# suites of kunit_emu_latency separated by colons, posted from each context, and judges the
# longest time that the tracers have found: with preemption or interrupts off at most MAX_OFF
# thousand instructions, and with interrupts off, when posted from hard interrupt, at most
# MAX_IRQ thousand.

MAX_OFF=${MAX_OFF:-200}
MAX_IRQ=${MAX_IRQ:-20}

TRACING=/sys/kernel/tracing
FILTER=/sys/module/kunit/parameters/filter_glob

# run_load <load> <context>: sets longest
run_load() {
	printf %s "$1" >$FILTER
	echo 0 >$TRACING/tracing_max_latency
	load kunit_emu_latency trace=1 context="$2" && unload kunit_emu_latency
	longest=$(cat $TRACING/tracing_max_latency)
}

# Where the longest time began and ended.
where() {
	sed -n 's/.*=> started at: *//p; s/.*=> ended at: */to /p' $TRACING/trace | tr '\n' ' '
}

# measure <what> <limit> <load> <context>
measure() {
	run_load "$3" "$4"
	if [ "$longest" -eq 0 ]; then
		fail "$3, $4: the tracer has seen nothing"
		return
	fi
	check "$3, $4: $longest thousand instructions with $1 off, $(where)" \
		[ "$longest" -le "$2" ]
	[ "$longest" -le "$2" ] || head -n 100 $TRACING/trace
}

# trace <tracer>: selects it. It looks at nothing but loads, from the first one on.
trace() {
	echo 0 >$TRACING/tracing_on
	echo "$1" >$TRACING/current_tracer || fail "no tracer $1"
	echo 1 >$TRACING/tracing_on
	run_load emu_latency.idle task
}

# contexts <load>: those that make a difference
contexts() {
	case $1 in
	*_of_2_gib | *.flush_of_longest_queues | *.return_from_sqe) echo task ;;
	emu_latency_process.*) echo task ;;
	*) echo task softirq hardirq ;;
	esac
}

mount -t tracefs tracefs $TRACING
# When many pages are allocated or freed in a row, the kernel's allocator moves up to 2,016 of them
# at once, with its lock held, which takes twice as long as all that is to be measured. It moves
# fewer when a CPU keeps few.
echo 1000000 >/proc/sys/vm/percpu_pagelist_high_fraction || fail "no limit on pages of a CPU"
load kverbs && load kverbs_emu && load kverbs_kunit || exit 1
# Let work left from booting or loading finish.
sleep 2
LOADS=$(echo "$LOADS" | tr : ' ')

trace preemptirqsoff
for load in $LOADS; do
	for context in $(contexts "$load"); do
		measure "preemption or interrupts" "$MAX_OFF" "$load" "$context"
	done
done

trace irqsoff
for load in $LOADS; do
	case $(contexts "$load") in
	*hardirq*) measure interrupts "$MAX_IRQ" "$load" hardirq ;;
	esac
done
