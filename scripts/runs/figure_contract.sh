# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. What the contract
# checker adds to a post, beyond the driver's own method. MAX_OFF and MAX_WARN are the
# limits while it is off and while it warns.

# shellcheck source=cqbench.sh
. /bin/cqbench.sh

MAX_OFF=${MAX_OFF:-2}
MAX_WARN=${MAX_WARN:-60}

# post_cost <context>: sets least_ps, the least of five runs: where a run's memory lies
# makes a difference of a few instructions.
post_cost() {
	least_ps=
	for _ in 1 2 3 4 5; do
		cqbench mode=post ctx="$1" count=4096 || return 1
		[ -n "$least_ps" ] && [ "$least_ps" -le "$each_ps" ] || least_ps=$each_ps
	done
}

# check_post <mode of the checker> <limit>
check_post() {
	echo "$1" >/sys/module/kverbs/parameters/contract
	post_cost direct || return
	more=$((least_ps - bare))
	check "a post costs $(tenths $more) instructions more with contract=$1" \
		[ $more -le $(($2 * 1000)) ]
}

load kverbs contract=off || exit 1
for ko in kverbs_emu kverbs_cqbench; do
	load $ko || exit 1
done
post_cost bare || exit 1
bare=$least_ps
[ "$bare" -gt 0 ] || fail "nothing is measured"
check_post off "$MAX_OFF"
check_post warn "$MAX_WARN"
# None of it may have been a report.
check "the checker found nothing" \
	[ "$(grep -c '^report=' "$DEBUGFS/kverbs/contract")" = 0 ]
