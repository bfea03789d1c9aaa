# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on two processors, in real time: measures messages per second of
# one pair of queue pairs on one CPU, and of two pairs on two. These alternate,
# so that the machine's other work affects both. Each round is a line "row: ...".
#
#   ROUNDS  how many rounds
#   ITERS   messages of a pair

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

SHAPE="initiator=emu0 target=emu0 ctx=workqueue op=send size=64 window=64 verify=0 lat=0"

# rate <pairs>: sets msgs_per_s
rate() {
	pingpong "$SHAPE pairs=$1 cpus=$1 iters=$ITERS" && return
	fail "pingpong, $1 pairs: $line"
	return 1
}

for ko in kverbs kverbs_emu; do
	load $ko || exit 1
done
load kverbs_pingpong run=0 || exit 1

result "progress: two CPUs"
rate 1 && rate 2 || exit 1
for round in $(seq "$ROUNDS"); do
	rate 1 || exit 1
	one=$msgs_per_s
	rate 2 || exit 1
	result "row: layer=kverbs op=cpus round=$round one_per_s=$one two_per_s=$msgs_per_s"
done
