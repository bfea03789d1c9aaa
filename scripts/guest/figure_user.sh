# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. What a SEND of 64 bytes costs a
# process on the software HCA, with the doorbell's system call, and on rdma_rxe.
#
#   MAX_SENDS   limits on the software HCA, by the number of SENDs that one call posts

MAX_SENDS=${MAX_SENDS:-"1=4500 16=2350"}

# cost <device> <window>: sets each
cost() {
	each=$(uverbs_cost "$1" 2000 "$2") && [ "$each" -gt 0 ] && return
	fail "no figure of $1, window $2"
	return 1
}

rmmod rdma_rxe || exit 1
add_dummy dummy0 10.0.0.1/24
load kverbs_emu devices=1 netdev=dummy0 || exit 1
wait_idle
for limit in $MAX_SENDS; do
	cost emu0 "${limit%=*}" &&
		check "a process's SEND of 64 bytes costs $each instructions, ${limit%=*} a call" \
			[ "$each" -le "${limit#*=}" ]
done
unload_all
insmod /lib/modules/rdma_rxe.ko && rdma link add rxe0 type rxe netdev dummy0 || exit 1
wait_idle
for window in 1 16; do
	cost rxe0 $window && pass "the same on rdma_rxe: $each instructions, $window a call"
done
rdma link delete rxe0
