# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures what the contract
# checker adds to ib_post_send(), ib_post_recv() and ib_post_srq_recv(), on top of the
# driver's own method. MAX_OFF and MAX_WARN are the limits for the modes off and warn.

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

# post_cost <verb> <mode of the checker> <context>: sets each_ps. The verb is cqbench's
# mode: post, recv or srq.
post_cost() {
	switch "$2" && cqbench mode="$1" ctx="$3" count=4096
}

# difference <verb> <mode> <context> <context to compare with, while the checker is off>:
# sets more, the median of five. The placement of a run's memory also makes a difference of
# some instructions, so the two are measured alternately.
difference() {
	: >/tmp/differences
	for _ in 1 2 3 4 5; do
		post_cost "$1" off "$4" || return 1
		before=$each_ps
		post_cost "$1" "$2" "$3" || return 1
		echo $((each_ps - before)) >>/tmp/differences
	done
	more=$(sort -n /tmp/differences | sed -n 3p)
	[ "$before" -gt 0 ] || fail "nothing is measured"
}

# check_cost <verb> <mode of the checker> <context> <context to compare with> <limit>
check_cost() {
	case $1 in
	post) call=ib_post_send ;;
	recv) call=ib_post_recv ;;
	srq) call=ib_post_srq_recv ;;
	esac
	difference "$1" "$2" "$3" "$4" || exit 1
	check "$call() costs $(tenths "$more") instructions more with contract=$2, ctx=$3" \
		[ "$more" -le $(($5 * 1000)) ]
	[ "$2" = off ] || [ "$more" -gt 0 ] || fail "the checker costs nothing: it is off"
}

load kverbs contract=off || exit 1
for ko in kverbs_emu kverbs_cqbench; do
	load $ko || exit 1
done
for verb in post recv srq; do
	check_cost $verb off direct bare "$MAX_OFF"
	check_cost $verb warn direct bare "$MAX_WARN"
	# Posts from a done() and in hard interrupt: there the cost without the checker is
	# more than that of the driver's method.
	for ctx in softirq workqueue thread hardirq; do
		check_cost $verb warn $ctx $ctx "$MAX_WARN"
	done
done
# None of this may have caused a report.
check "the checker found nothing" \
	[ "$(grep -c '^report=' "$DEBUGFS/kverbs/contract")" = 0 ]
