# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures what a
# message between queue pairs of one device costs, as scripts/bench hca does. The
# limits are MAX_SEND and MAX_PINGPONG for a SEND of 64 bytes with 64 outstanding
# and with one, and MAX_COPY for 64 KiB, in per cent of the cost of memcpy().

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

MAX_SEND=${MAX_SEND:-620}
MAX_PINGPONG=${MAX_PINGPONG:-3500}
MAX_COPY=${MAX_COPY:-130}

# cost <operation> <bytes> <window> <messages>: sets each. The first run warms up.
cost() {
	shape="initiator=emu0 target=emu0 ctx=workqueue verify=0 lat=0 op=$1 size=$2 window=$3"
	each=0
	if pingpong "$shape iters=$(($4 / 8))" && pingpong "$shape iters=$4"; then
		each=$((ns / msgs))
	else
		fail "pingpong $shape: $line"
	fi
	[ $each -gt 0 ]
}

check_copy() {
	cost "$1" 65536 "$2" 800 || return
	ratio=$((each * 100 / copy))
	check "a message of 64 KiB costs $each instructions, $ratio% of memcpy(), $1, window $2" \
		[ $ratio -le "$MAX_COPY" ]
}

for ko in kverbs kverbs_emu; do
	load $ko || exit 1
done
load kverbs_pingpong run=0 || exit 1
# Let work left from booting or loading finish.
sleep 2

cost send 64 64 20000 &&
	check "a 64-byte message costs $each instructions" [ $each -le "$MAX_SEND" ]
cost send 64 1 5000 &&
	check "a 64-byte message costs $each instructions when each waits for the last" \
		[ $each -le "$MAX_PINGPONG" ]
cost fetch_add 8 64 20000 && pass "an atomic operation costs $each instructions"

cost memcpy 65536 64 800 && copy=$each || exit 1
for op in send write read; do
	for window in 1 64; do
		check_copy $op $window
	done
done
