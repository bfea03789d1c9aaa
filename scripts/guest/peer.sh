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

# Unbinding waits for as long as a process has the file of the GPU, and says so.
unbinding_says_what_it_waits_for() {
	gpu=$(find /sys/bus/pci/drivers/kverbs_fake_gpu/ -name '0000:*' | head -n 1)
	exec 3</dev/fake_gpu0 4</dev/fake_gpu1
	(
		exec 3<&- 4<&-
		echo "${gpu##*/}" >/sys/bus/pci/drivers/kverbs_fake_gpu/unbind
	) &
	unbinder=$!
	retry 400 sh -c "dmesg | grep -q 'fake_gpu[01]: removal waiting for processes that use'"
	said=$?
	exec 3<&- 4<&-
	wait $unbinder && [ $said -eq 0 ]
}
[ "${GPUS:-}" != bar ] ||
	check "unbinding a GPU says what it waits for" unbinding_says_what_it_waits_for
unload kverbs_peer_move kverbs_fake_gpu
check "clients leave nothing in sysfs" [ -z "$(ls $PEERS)" ]
unload_all
check "nothing is left in sysfs" [ ! -e $PEERS ]
check "no node is left" [ ! -e /dev/fake_gpu0 ]
