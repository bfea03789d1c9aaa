# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: measures what registering and deregistering peer memory costs
# beyond the client's own functions, by size and by the number of other regions. Each
# measurement is a line "row: live=... bytes=... ...".
#
#   LIVE  numbers of other regions, separated by commas

LIVE=$(echo "$LIVE" | tr , ' ')
BENCH=$DEBUGFS/kverbs_peerbench

# measure <number of other regions>
measure() {
	echo "$1" >"$BENCH/live" && cat "$BENCH/cost" >/tmp/cost || return
	while read -r line; do
		result "row: $line"
	done </tmp/cost
	result "progress: $1 other regions"
}

load kverbs && load kverbs_emu devices=1 && load kverbs_peerbench || exit 1
wait_idle || exit 1
for live in $LIVE; do
	measure "$live" || fail "$live regions: no result"
done
