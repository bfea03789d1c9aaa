# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: tests memory of two fake GPUs with RDMA, by the programs of
# tools/tests; each of their cases is a check. OPERATIONS and SEED are for the
# counters in sysfs. GPUS=bar: their memory must be that of PCI devices. MOVES=1: the
# kernel can notify of dma-bufs that move; MOVES=0: it cannot.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

PEERS=/sys/kernel/mm/memory_peers

load kverbs_fake_gpu devices=2 size_mb=8 || exit 1
load kverbs contract=warn && load kverbs_ca && load kverbs_emu devices=0 && load kverbs_peer_move || exit 1
if [ "${GPUS:-}" = bar ]; then
	check "the memory is that of PCI devices" grep -q kverbs_fake_gpu /proc/iomem
fi
export MOVES
cases fake_gpu
cases peer_e2e
cases peer_dmabuf
cases peer_sysfs --operations "${OPERATIONS:?}" --seed "${SEED:?}"
unload kverbs_peer_move kverbs_fake_gpu
check "clients leave nothing in sysfs" [ -z "$(ls $PEERS)" ]
unload_all
check "nothing is left in sysfs" [ ! -e $PEERS ]
check "no node is left" [ ! -e /dev/fake_gpu0 ]
