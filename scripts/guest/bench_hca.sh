# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: measures what a message costs over mainline's rdma_rxe, then
# over the emulated HCA, and what its bytes cost when the CPU copies them. Each
# measurement is a line "row: layer=... op=... ...".
#
#   SIZES    bytes, separated by commas
#   WINDOWS  messages outstanding, likewise
#   BYTES    maximum that a run moves
#   MESSAGES maximum number of messages of a run over the emulated HCA
#   RXE      the same over rdma_rxe, which takes twenty times as long; 0: leave
#            mainline out

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

SIZES=$(echo "$SIZES" | tr , ' ')
WINDOWS=$(echo "$WINDOWS" | tr , ' ')
PLAIN="ctx=workqueue verify=0 lat=0"

# As many messages as MESSAGES and BYTES allow, but at least a few windows.
iters_of() {
	iters=$((BYTES / $1))
	[ "$iters" -lt "$most" ] || iters=$most
	[ "$iters" -gt $((4 * $2)) ] || iters=$((4 * $2))
}

# one <operation> <bytes> <window>: the first run warms up.
one() {
	iters_of "$2" "$3"
	shape="$devices $PLAIN op=$1 size=$2 window=$3"
	if pingpong "$shape iters=$((iters / 8 + 1))" && pingpong "$shape iters=$iters"; then
		result "row: layer=$layer op=$1 size=$2 window=$3 msgs=$msgs ns=$ns"
	else
		fail "pingpong $shape: $line"
	fi
}

measure() {
	result "progress: $layer"
	# Let work left from booting or loading finish.
	sleep 2
	for op in $1; do
		for window in $WINDOWS; do
			for size in $SIZES; do
				[ "$op" != fetch_add ] || [ "$size" = 8 ] || continue
				one "$op" "$size" "$window"
			done
		done
		result "progress:   $op"
	done
}

with_mainline() {
	layer=mainline most=$RXE devices="initiator=rxe0 target=rxe0"
	ip link show dummy0 >/dev/null 2>&1 || ip link add dummy0 type dummy
	ip link set dummy0 up
	ip addr add 10.0.0.1/24 dev dummy0
	load mainline_pingpong run=0 && rxelink rxe0 dummy0 || return 1
	measure "send write read fetch_add"
	# Both export the same symbols.
	unload mainline_pingpong rdma_rxe ib_uverbs ib_core
}

with_kverbs() {
	layer=kverbs most=$MESSAGES devices="initiator=emu0 target=emu0"
	load kverbs && load kverbs_emu && load kverbs_pingpong run=0 || return 1
	measure "send write read fetch_add"
	layer=cpu
	measure memcpy
}

[ "$RXE" = 0 ] || with_mainline || fail "mainline could not be measured"
with_kverbs || fail "kverbs could not be measured"
