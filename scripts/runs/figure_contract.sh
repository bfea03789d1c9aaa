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

# switch <mode of the checker>
switch() {
	echo "$1" >/sys/module/kverbs/parameters/contract
	grep -qx "$1" /sys/module/kverbs/parameters/contract && return
	fail "the checker is not $1"
	return 1
}

# check_post <mode of the checker> <context> <what that costs without> <limit>
check_post() {
	switch "$1" || return
	post_cost "$2" || return
	more=$((least_ps - $3))
	check "a post costs $(tenths $more) instructions more with contract=$1, ctx=$2" \
		[ $more -le $(($4 * 1000)) ]
	[ "$1" = off ] || [ $more -gt 0 ] || fail "the checker costs nothing: it is off"
}

load kverbs contract=off || exit 1
for ko in kverbs_emu kverbs_cqbench; do
	load $ko || exit 1
done
post_cost bare || exit 1
[ "$least_ps" -gt 0 ] || fail "nothing is measured"
bare=$least_ps
check_post off direct "$bare" "$MAX_OFF"
check_post warn direct "$bare" "$MAX_WARN"
# By a done(): what it costs there without the checker is not the driver's method's alone.
for ctx in softirq workqueue thread; do
	switch off && post_cost $ctx || exit 1
	check_post warn $ctx "$least_ps" "$MAX_WARN"
done
# None of it may have been a report.
check "the checker found nothing" \
	[ "$(grep -c '^report=' "$DEBUGFS/kverbs/contract")" = 0 ]
