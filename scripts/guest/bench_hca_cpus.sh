# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on two processors, in real time. Each round is a line "row: ...".
#
# op=cpus: messages per second of one pair of queue pairs on one CPU, and of two pairs on two.
# These alternate, so that the machine's other work affects both.
#
# op=ends: one pair whose ends have their completions on one CPU each; messages per second and
# their latencies, over mainline's rdma_rxe and over the software HCA.
#
#   ROUNDS  how many rounds
#   ITERS   messages of a pair
#   RXE     the same over rdma_rxe, in op=ends; 0: leave mainline out

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

SHAPE="ctx=workqueue op=send size=64 verify=0"

# measured <key=value>...: a run
measured() {
	pingpong "$SHAPE $*" && return
	fail "pingpong $*: $line"
	return 1
}

# rate <pairs>: sets msgs_per_s
rate() {
	measured "initiator=emu0 target=emu0 window=64 lat=0 pairs=$1 cpus=$1 iters=$ITERS"
}

two_pairs() {
	result "progress: two CPUs"
	rate 1 && rate 2 || return 1
	for round in $(seq "$ROUNDS"); do
		rate 1 || return 1
		one=$msgs_per_s
		rate 2 || return 1
		result "row: layer=kverbs op=cpus round=$round one_per_s=$one two_per_s=$msgs_per_s"
	done
}

# ends <layer> <device> <messages>: without cpus=, each CQ has a CPU of its own.
ends() {
	result "progress: an end on each CPU, $1"
	for round in 0 $(seq "$ROUNDS"); do
		for window in 64 1; do
			measured "initiator=$2 target=$2 batch=1 window=$window lat=1 iters=$3" ||
				return 1
			# The first one warms up.
			[ "$round" -gt 0 ] || continue
			result "row: layer=$1 op=ends window=$window round=$round" \
				"per_s=$msgs_per_s p50_ns=$lat_p50_ns p99_ns=$lat_p99_ns"
		done
	done
}

with_mainline() {
	add_dummy dummy0 10.0.0.1/24
	load mainline_pingpong run=0 && rdmalink add rxe0 rxe dummy0 || return 1
	ends mainline rxe0 "$RXE" || return 1
	# Both export the same symbols.
	unload mainline_pingpong rdma_rxe ib_uverbs ib_core
}

with_kverbs() {
	load kverbs && load kverbs_emu && load kverbs_pingpong run=0 || return 1
	ends kverbs emu0 "$((ITERS / 10))" && two_pairs
}

[ "$RXE" = 0 ] || with_mainline || fail "mainline could not be measured"
with_kverbs || fail "kverbs could not be measured"
