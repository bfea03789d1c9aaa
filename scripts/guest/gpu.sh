# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: RDMA to the memory of a fake GPU, registered as a dma-buf, on either core, and by its
# address on kverbs'. uverbs_gpu is who registers it. DMABUFS: moves or pinned, what the kernel does
# with a dma-buf that is registered.

# shellcheck source=cores.sh
. /bin/cores.sh

nothing_is_left() {
	! rdma res show mr | grep -q uverbs_gpu && rmmod kverbs_fake_gpu
}

load kverbs_fake_gpu || exit 1
insert_hca "$@" || exit 1
peer=
! own_core || peer=peer
check "RDMA to the memory of the fake GPU" timeout 300 uverbs_gpu emu0 "$DMABUFS" $peer
check "nothing of it is left" nothing_is_left
remove_hca
