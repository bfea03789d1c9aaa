# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: load, run, unload, twice over; all polling contexts, all
# operations; scattered messages, several pairs, and ports bound to netdevs.
# SCALE multiplies the number of messages.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

insert() {
	load kverbs contract=warn && load kverbs_ca && load kverbs_emu "$@" && load kverbs_pingpong run=0
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
check "a key that does not exist is refused" refuses wnidow=3 "unknown key in 'wnidow=3'.*the keys are: .* window"
check "a value that is none is refused" refuses window=x "'window=x' is not a number"
check "pingpong on one device" pingpong_ok initiator=emu0 target=emu0 iters=500
unload_all

for dev in dummy0 dummy1; do
	add_dummy $dev
done
insert devices=2 netdev=dummy0,dummy1 || exit 1
check "the port of emu0 is Ethernet" \
	grep -q Ethernet /sys/class/infiniband/emu0/ports/1/link_layer
check "pingpong over Ethernet ports" pingpong_ok iters=500
unload_all
check "nothing is left in sysfs" [ ! -e /sys/class/infiniband/emu0 ]
