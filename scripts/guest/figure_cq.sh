# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures what a
# completion costs beyond a loop of ib_poll_cq() in batches of 16, in one CQ and in
# each of 64, and how often a burst schedules the polling context. MAX_COST,
# MAX_COST_MANY and MAX_SCHEDULES are the limits.

# shellcheck source=cqbench.sh
. /bin/cqbench.sh

MAX_COST=${MAX_COST:-14}
MAX_COST_MANY=${MAX_COST_MANY:-16}
MAX_SCHEDULES=${MAX_SCHEDULES:-1}

check_cost() {
	cost "$1" count=4096 || return
	check "a completion costs $(tenths "$cost_ps") instructions, $1" \
		[ "$cost_ps" -le $((MAX_COST * 1000)) ]
	cost "$1" cqs=64 count=64 || return
	check "a completion costs $(tenths "$cost_ps") instructions with 64 CQs, $1" \
		[ "$cost_ps" -le $((MAX_COST_MANY * 1000)) ]
}

# A few sizes: less than a batch, and more than a round.
check_schedules() {
	all=0 of=0
	for count in 2 16 300 4096; do
		cqbench mode=burst ctx="$1" count=$count || return
		all=$((all + schedules)) of=$((of + bursts))
	done
	check "$of bursts schedule the context $all times, $1" \
		[ "$all" -le $((of * MAX_SCHEDULES)) ]
	[ "$1" = direct ] || [ "$all" -gt 0 ] || fail "nothing counts schedulings"
}

for ko in kverbs kverbs_emu kverbs_cqbench; do
	load $ko || exit 1
done
for ctx in $CONTEXTS; do
	check_cost "$ctx"
	check_schedules "$ctx"
done
