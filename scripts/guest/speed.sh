# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: perftest on the software HCA and on rdma_rxe, one after the other, and how much
# faster the former is. What the programs say of time is good for that only.

# shellcheck source=ends.sh
. /bin/ends.sh

HOST=10.0.0.1

# figure <column> <program> <arguments>: prints a column of the last line of figures.
figure() {
	column=$1
	shift
	both_ends "$@" -F -x 0 >/tmp/said || {
		cat /tmp/said >/dev/console
		fail "$1 on $DEV"
		return
	}
	awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= 5 { figure = $column }
		END { print figure }' /tmp/client
}

# Sets latency, rate and rate_of_bytes: us; million messages a second; MB/s. The latency is the
# typical one: the average is of how long the host lets the guest wait.
measure() {
	latency=$(figure 5 ib_send_lat -n 1000 -s 64)
	rate=$(figure 5 ib_send_bw -n 2000 -s 64)
	rate_of_bytes=$(figure 4 ib_write_bw -n 500 -s 65536)
	pass "$DEV: ib_send_lat 64 B $latency us, ib_send_bw 64 B $rate million messages/s," \
		"ib_write_bw 64 KiB $rate_of_bytes MB/s"
}

# ratio_of <more> <less>: how many times, in tenths
ratio_of() {
	awk "BEGIN { print int(10 * $1 / $2) }"
}

# How many tenths as fast as on rdma_rxe, of each: sets lat, messages and bytes.
compare() {
	DEV=emu0
	load kverbs_emu devices=1 netdev=dummy0 || exit 1
	measure
	ours="$latency $rate $rate_of_bytes"
	unload_all
	DEV=rxe0
	insmod /lib/modules/rdma_rxe.ko && rdma link add rxe0 type rxe netdev dummy0 || exit 1
	measure
	rdma link delete rxe0 && rmmod rdma_rxe || exit 1
	# shellcheck disable=SC2086
	set -- $ours
	lat=$(ratio_of "$latency" "$1")
	messages=$(ratio_of "$2" "$rate")
	bytes=$(ratio_of "$3" "$rate_of_bytes")
}

fast() {
	[ "$lat" -ge 30 ] && [ "$messages" -ge 50 ] && [ "$bytes" -ge 30 ]
}

# faster <what> <tenths> <times>
faster() {
	check "$1: $(($2 / 10)).$(($2 % 10)) times as fast as on rdma_rxe, at least $3" \
		[ "$2" -ge $(($3 * 10)) ]
}

rmmod rdma_rxe || exit 1
add_dummy dummy0 $HOST/24
once_or_twice compare fast
faster "ib_send_lat, 64 B" "$lat" 3
faster "ib_send_bw, 64 B" "$messages" 5
faster "ib_write_bw, 64 KiB" "$bytes" 3
