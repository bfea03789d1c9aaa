# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: load, run, unload, twice over; all polling contexts, all
# operations; scattered messages, several pairs, and ports bound to netdevs.
# SCALE multiplies the number of messages.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

SCALE=${SCALE:-1}

insert() {
	load kverbs contract=warn && load kverbs_ca && load kverbs_emu "$@" && load kverbs_pingpong run=0
}

all_runs() {
	bad=0
	for op in $OPERATIONS; do
		for shape in "size=1 window=1 iters=50" \
			"size=64 window=64 iters=$((2000 * SCALE))" \
			"size=5000 sges=3 window=16 iters=$((200 * SCALE))" \
			"size=65536 window=8 pairs=2 iters=$((20 * SCALE))"; do
			pingpong_ok "ctx=$1 op=$op $shape" || bad=1
		done
	done
	for shape in "window=1 iters=50" "window=64 iters=$((2000 * SCALE))" \
		"window=16 sig=5 pairs=2 iters=$((200 * SCALE))"; do
		pingpong_ok "ctx=$1 op=fetch_add size=8 $shape" || bad=1
	done
	return $bad
}

# refuses <word> <what the log says>
refuses() {
	dmesg -c >/dev/null
	! echo "$1" >"$PINGPONG/run" 2>/dev/null && dmesg | grep -q "$2"
}

insert || exit 1
for ctx in $CONTEXTS; do
	check "pingpong, $ctx" all_runs "$ctx"
done
check "ibstat finds the type of the channel adapter" \
	grep -qx kverbs_emu /sys/class/infiniband/emu0/hca_type
check "ibstat finds the revision of the hardware" grep -qx 1 /sys/class/infiniband/emu0/hw_rev
check "a key that does not exist is refused" refuses wnidow=3 "unknown key in 'wnidow=3'.*There are: .* window"
check "a value that is none is refused" refuses window=x "'window=x' is not a number"
check "pingpong on one device" pingpong_ok initiator=emu0 target=emu0 iters=500
unload_all

for dev in dummy0 dummy1; do
	ip link add $dev type dummy 2>/dev/null
	ip link set $dev up
done
insert devices=2 netdev=dummy0,dummy1 || exit 1
check "the port of emu0 is Ethernet" \
	grep -q Ethernet /sys/class/infiniband/emu0/ports/1/link_layer
check "pingpong over Ethernet ports" pingpong_ok iters=500
unload_all
check "nothing is left in sysfs" [ ! -e /sys/class/infiniband/emu0 ]
