# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: RDMA to the memory of a fake GPU, registered as a dma-buf, on either core, and by its
# address on kverbs'. uverbs_gpu is who registers it. DMABUFS: moves or pinned, what the kernel does
# with a dma-buf that is registered.

# shellcheck source=cores.sh
. /bin/cores.sh
# shellcheck source=ends.sh
. /bin/ends.sh

CLIENT=/sys/kernel/mm/memory_peers/fake_gpu0
DEV=emu0 HOST=127.0.0.1
# perftest's own name for memory that is not the system's.
ONTO_GPU="ib_write_bw -F -s 65536 --mmap=/dev/fake_gpu0"

regions_of_gpu() {
	cat $CLIENT/num_alloc_mrs
}

# Both ends have the memory of the GPU, which the core finds by its address.
perftest_onto_gpu() {
	before=$(regions_of_gpu)
	# shellcheck disable=SC2086
	both_ends $ONTO_GPU -n 500 && [ $(($(regions_of_gpu) - before)) -eq 2 ]
}

# Both ends are killed in the middle of a run that would go on for long.
perftest_is_killed() {
	regions=$(regions_of_gpu) before=$(packets $DEV)
	$ONTO_GPU -d $DEV -D 1000 >/tmp/server 2>&1 &
	server=$!
	retry 400 server_is_up || {
		ends_failed
		return
	}
	$ONTO_GPU -d $DEV -D 1000 $HOST >/tmp/client 2>&1 &
	client=$!
	retry_while $client packets_beyond $((before + 1000)) $DEV &&
		[ $(($(regions_of_gpu) - regions)) -eq 2 ] && kill -KILL $server $client
	killed=$?
	wait $server $client
	[ $killed -eq 0 ] && retry 400 nothing_is_registered
}

nothing_is_registered() {
	[ "$(regions_of_gpu)" -eq "$(cat $CLIENT/num_dealloc_mrs)" ]
}

nothing_is_left() {
	! rdma res show mr | grep -q uverbs_gpu && rmmod kverbs_fake_gpu
}

load kverbs_fake_gpu || exit 1
insert_hca "$@" || exit 1
peer=
! own_core || peer=peer
check "RDMA to the memory of the fake GPU" timeout 300 uverbs_gpu emu0 "$DMABUFS" $peer
if own_core; then
	check "ib_write_bw onto the memory of the fake GPU" perftest_onto_gpu
	check "it is killed as it writes" perftest_is_killed
fi
check "nothing of it is left" nothing_is_left
remove_hca
