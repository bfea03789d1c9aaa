# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount, with several processors: what a message costs, and what a queue
# pair takes, by the number of queue pairs, CQs and CPUs. Each run is done twice, and is a line
# "row: ...".
#
#   RUNS      runs, separated by colons: queue pairs,CQs,CPUs
#   MESSAGES  messages of each CPU

RESULT=$DEBUGFS/kverbs_scale/result

load kverbs && load kverbs_emu devices=1 && load kverbs_scale || exit 1
unload kverbs_scale
wait_idle || exit 1
for each in $(echo "$RUNS:$RUNS" | tr : ' '); do
	# shellcheck disable=SC2046
	set -- $(echo "$each" | tr , ' ')
	load kverbs_scale qps="$1" cqs="$2" cpus="$3" messages="$MESSAGES" || exit 1
	result "row: mode=scale $(cat "$RESULT")"
	result "progress: $1 queue pairs, $2 CQs, $3 CPUs"
	unload kverbs_scale
done
