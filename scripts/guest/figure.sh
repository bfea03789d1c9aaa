# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures what a
# message between queue pairs of one device costs, as scripts/bench hca does.
#
#   MAX_SINGLE    limits of 64 bytes, 64 outstanding, one request a call, in each context
#   MAX_OTHER     the limit of a SEND so posted to another device, where its lanes take turns
#   MAX_PINGPONG  the limit of a SEND so posted with one outstanding
#   MAX_BATCHED   limits of 64 bytes in batches of 16
#   MAX_PAGE      limits of 4 KiB so posted, in instructions beyond those of memcpy()
#   MAX_COPY      the limit of 64 KiB, in per cent of the cost of memcpy()

# shellcheck source=message.sh
. /bin/message.sh

MAX_SINGLE=${MAX_SINGLE:-"send=600 write=435 read=455 send_srq=605"}
MAX_OTHER=${MAX_OTHER:-600}
MAX_PINGPONG=${MAX_PINGPONG:-1150}
MAX_BATCHED=${MAX_BATCHED:-"send=465 write=330"}
MAX_PAGE=${MAX_PAGE:-"send=575 write=430 read=440"}
MAX_COPY=${MAX_COPY:-105}

# cost <limit> <arguments of message>: sets each. What else the guest does meanwhile is no cost of a
# message: a figure beyond the limit is measured once more, and the smaller one counts.
cost() {
	most=$1
	shift
	message "$@" || return
	[ "$each" -gt "$most" ] || return 0
	once=$each
	message "$@" || return
	result "progress: $* cost $once instructions at first, then $each"
	[ "$each" -le "$once" ] || each=$once
}

# check_page <operation>=<limit>
check_page() {
	cost $((copy + ${1#*=})) "${1%=*}" workqueue same 4096 64 1 4000 || return
	check "a message of 4 KiB costs $each instructions, $((each - copy)) more than memcpy(), ${1%=*}" \
		[ $((each - copy)) -le "${1#*=}" ]
}

check_copy() {
	cost $((copy * MAX_COPY / 100)) "$1" workqueue same 65536 "$2" 1 800 || return
	ratio=$((each * 100 / copy))
	check "a message of 64 KiB costs $each instructions, $ratio% of memcpy(), $1, window $2" \
		[ $ratio -le "$MAX_COPY" ]
}

# check_each <operation>=<limit> <context> <window> <batch> [other]
check_each() {
	cost "${1#*=}" "${1%=*}" "$2" "${5:-same}" 64 "$3" "$4" 8000 || return
	how="one request a call${5:+, to the other device}"
	[ "$4" = 1 ] || how="batches of $4"
	check "a message of 64 bytes costs $each instructions, ${1%=*}, $2, window $3, $how" \
		[ "$each" -le "${1#*=}" ]
}

for ko in kverbs kverbs_emu; do
	load $ko || exit 1
done
load kverbs_pingpong run=0 || exit 1
wait_idle || exit 1

for ctx in $CONTEXTS; do
	for what in $MAX_SINGLE; do
		check_each "$what" "$ctx" 64 1
	done
	check_each "send=$MAX_PINGPONG" "$ctx" 1 1
	case $ctx in
	softirq | workqueue) check_each "send=$MAX_OTHER" "$ctx" 64 1 other ;;
	esac
	for what in $MAX_BATCHED; do
		check_each "$what" "$ctx" 64 16
	done
done
message fetch_add workqueue same 8 64 16 8000 && pass "an atomic operation costs $each instructions"

message memcpy workqueue same 4096 64 16 4000 && copy=$each || exit 1
for what in $MAX_PAGE; do
	check_page "$what"
done
message memcpy workqueue same 65536 64 16 800 && copy=$each || exit 1
for op in send write read; do
	for window in 1 64; do
		check_copy $op $window
	done
done
