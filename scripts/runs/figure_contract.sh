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

# switch <mode of the checker>
switch() {
	echo "$1" >/sys/module/kverbs/parameters/contract
	grep -qx "$1" /sys/module/kverbs/parameters/contract && return
	fail "the checker is not $1"
	return 1
}

# post_cost <mode of the checker> <context>: sets each_ps.
post_cost() {
	switch "$1" && cqbench mode=post ctx="$2" count=4096
}

# difference <mode> <context> <context to compare with, while the checker is off>: sets
# more, the middle one of five. Where a run's memory lies makes a difference of some
# instructions too, so what is compared is measured in turn.
difference() {
	: >/tmp/differences
	for _ in 1 2 3 4 5; do
		post_cost off "$3" || return 1
		before=$each_ps
		post_cost "$1" "$2" || return 1
		echo $((each_ps - before)) >>/tmp/differences
	done
	more=$(sort -n /tmp/differences | sed -n 3p)
	[ "$before" -gt 0 ] || fail "nothing is measured"
}

# check_post <mode of the checker> <context> <context to compare with> <limit>
check_post() {
	difference "$1" "$2" "$3" || exit 1
	check "a post costs $(tenths "$more") instructions more with contract=$1, ctx=$2" \
		[ "$more" -le $(($4 * 1000)) ]
	[ "$1" = off ] || [ "$more" -gt 0 ] || fail "the checker costs nothing: it is off"
}

load kverbs contract=off || exit 1
for ko in kverbs_emu kverbs_cqbench; do
	load $ko || exit 1
done
check_post off direct bare "$MAX_OFF"
check_post warn direct bare "$MAX_WARN"
# By a done(), and in hard interrupt: what it costs there without the checker is not the
# driver's method's alone.
for ctx in softirq workqueue thread hardirq; do
	check_post warn $ctx $ctx "$MAX_WARN"
done
# None of it may have been a report.
check "the checker found nothing" \
	[ "$(grep -c '^report=' "$DEBUGFS/kverbs/contract")" = 0 ]
