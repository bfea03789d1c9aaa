# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: OPERATIONS operations on memory of four fake GPUs, from SEED. One of
# their clients leaves it to the core to unmap invalidated memory, and one never
# invalidates.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

load kverbs_fake_gpu devices=4 size_mb=32 mode=unmaps,core,unmaps,never || exit 1
# So that a processor preempted by the host is not mistaken for a client that hangs.
echo 10000 >/sys/module/kverbs_peer_mem/parameters/invalidate_wait_ms
load kverbs contract=warn && load kverbs_ca && load kverbs_emu devices=0 && load kverbs_peer_move || exit 1
cases peer_stress --operations "${OPERATIONS:?}" --seed "${SEED:?}"
sed -n 's/^# //p' /tmp/cases | while read -r line; do
	result "progress: $line"
done
unload_all
check "nothing is left in sysfs" [ ! -e /sys/kernel/mm/memory_peers ]
