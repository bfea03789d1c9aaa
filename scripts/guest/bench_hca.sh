# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: measures what a message costs over mainline's rdma_rxe, then over the
# software HCA, without a device (kverbs_limit), and what its bytes cost when the CPU copies
# them. Each measurement is a line "row: layer=... op=... ...".
#
#   SIZES     bytes, separated by commas; other than 64 between queue pairs of one device
#   WINDOWS   messages outstanding, likewise
#   BYTES     maximum that a run moves
#   MESSAGES  maximum number of messages of a run
#   RXE       the same over rdma_rxe, which takes twenty times as long; 0: leave
#             mainline out

# shellcheck source=message.sh
. /bin/message.sh

SIZES=$(echo "$SIZES" | tr , ' ')
WINDOWS=$(echo "$WINDOWS" | tr , ' ')
SINGLE="send write read send_srq"
BATCHED="send write read"
BATCH=16

# As many messages as the maximum and BYTES allow, but at least a few windows.
iters_of() {
	iters=$((BYTES / $1))
	[ "$iters" -lt "$most" ] || iters=$most
	[ "$iters" -gt $((4 * $2)) ] || iters=$((4 * $2))
}

# each_of <operation> <context> <to> <sizes> <windows> <batch>
each_of() {
	for size in $4; do
		for window in $5; do
			iters_of "$size" "$window"
			message "$1" "$2" "$3" "$size" "$window" "$6" "$iters"
		done
	done
}

# over <contexts>: one request a call, then batches.
over() {
	result "progress: $layer"
	wait_idle || return 1
	for op in $SINGLE; do
		for ctx in $1; do
			each_of "$op" "$ctx" same "$SIZES" "$WINDOWS" 1
			[ -z "$other" ] || each_of "$op" "$ctx" other 64 "$WINDOWS" 1
		done
		result "progress:   $op"
	done
	for op in $BATCHED; do
		each_of "$op" workqueue same "$SIZES" 64 $BATCH
		for ctx in $1; do
			[ "$ctx" = workqueue ] || each_of "$op" "$ctx" same 64 64 $BATCH
		done
		[ -z "$other" ] || each_of "$op" workqueue other 64 64 $BATCH
	done
	each_of fetch_add workqueue same 8 64 $BATCH
	result "progress:   batches"
}

with_mainline() {
	layer=mainline most=$RXE from=rxe0 same=rxe0 other=''
	add_dummy dummy0 10.0.0.1/24
	load mainline_pingpong run=0 && rdmalink add rxe0 rxe dummy0 || return 1
	# Without its counterpart of ctx=thread.
	over "workqueue unbound softirq direct"
	# Both export the same symbols.
	unload mainline_pingpong rdma_rxe ib_uverbs ib_core
}

with_kverbs() {
	layer=kverbs most=$MESSAGES from=emu0 same=emu0 other=emu1
	load kverbs && load kverbs_emu && load kverbs_pingpong run=0 || return 1
	over "workqueue unbound thread softirq direct"
	layer=cpu
	each_of memcpy workqueue same "8 $SIZES" 64 $BATCH
}

with_limit() {
	layer=limit most=$MESSAGES
	load kverbs_limit || return 1
	for op in $SINGLE; do
		each_of "$op" direct same "$SIZES" "$WINDOWS" 1
	done
	result "progress: limit"
}

[ "$RXE" = 0 ] || with_mainline || fail "mainline could not be measured"
with_kverbs || fail "kverbs could not be measured"
with_limit || fail "the limit could not be measured"
