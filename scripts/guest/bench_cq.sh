# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: measures mainline's CQ layer over rdma_rxe, then ours over the
# software HCA. Each measurement is a line "row: layer=... ...".
#
#   CQS       numbers of CQs, separated by commas
#   LOADS     per cent of the open loop's maximum rate, likewise
#   MESSAGES  messages of a run over the software HCA
#   RXE       the same over rdma_rxe, which takes ten times as long; 0: leave
#             mainline out
#   COSTS     no: leave out what needs a single processor

# shellcheck source=cqbench.sh
. /bin/cqbench.sh

CQS=$(echo "$CQS" | tr , ' ')
LOADS=$(echo "$LOADS" | tr , ' ')

row() {
	result "row: layer=$layer $*"
}

# Measures the cost of a completion: in one CQ, and with as many spread over many
# CQs.
costs() {
	for shape in "cqs=1 count=4096" "cqs=64 count=64"; do
		# shellcheck disable=SC2086
		cqbench mode=burst ctx=bare $shape && row "$line"
		for ctx in $contexts; do
			# shellcheck disable=SC2086
			cqbench mode=burst ctx="$ctx" $shape && row "$line"
		done
	done
}

timing() {
	[ ! -e /sys/module/kverbs/parameters/cq_timing ] ||
		echo "$1" >/sys/module/kverbs/parameters/cq_timing
}

# Closed loop for the rate; open loop with everything due at once, which gives its
# maximum rate, and at fractions of that.
loads() {
	timing 0
	cqbench mode=load ctx="$1" cqs="$2" count="$count" rate=0 delay=0 || return
	row "$line"
	timing 1
	cqbench mode=load ctx="$1" cqs="$2" count="$count" rate=100000000 || return
	row "$line load=100"
	top=$per_s
	for load in $LOADS; do
		cqbench mode=load ctx="$1" cqs="$2" count="$count" \
			rate=$((top * load / 100)) && row "$line load=$load"
	done
}

measure() {
	result "progress: $layer"
	wait_idle || return 1
	[ "$COSTS" = no ] || costs
	for ctx in $contexts; do
		for cqs in $CQS; do
			loads "$ctx" "$cqs"
		done
		result "progress:   $ctx"
	done
}

with_mainline() {
	layer=mainline count=$RXE
	contexts="direct softirq workqueue unbound"
	add_dummy dummy0 10.0.0.1/24
	load mainline_cqbench && rdmalink add rxe0 rxe dummy0 || return 1
	measure
	# Both export the same symbols.
	unload mainline_cqbench rdma_rxe ib_uverbs ib_core
}

with_kverbs() {
	layer=kverbs count=$MESSAGES contexts=$CONTEXTS
	for ko in kverbs kverbs_emu kverbs_cqbench; do
		load $ko || return 1
	done
	measure
}

row "clocksource=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
[ "$RXE" = 0 ] || with_mainline || fail "mainline could not be measured"
with_kverbs || fail "kverbs could not be measured"
