# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Checks that an RDMA WRITE
# into peer-to-peer memory costs at most MAX_RATIO per cent of one into system memory, or
# MAX_MORE instructions more, through either kind of region: to find the memory costs the same
# for any length, which shows beside a message that costs next to nothing. The machine is
# scripts/p2p-machine's.

MAX_RATIO=${MAX_RATIO:-110}
MAX_MORE=${MAX_MORE:-80}

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

# near <per cent> <instructions more>
near() {
	[ "$1" -le "$MAX_RATIO" ] || [ "$2" -le "$MAX_MORE" ]
}

load kverbs_bar_mem || exit 1
provide "${iv0:?}"
load kverbs && load kverbs_emu devices=1 pci="${hca0:?}" && load kverbs_p2pwrite || exit 1
wait_idle || exit 1

cat "$DEBUGFS/kverbs_p2pwrite/cost" >/cost || fail "kverbs_p2pwrite: no result"
lines=0
while read -r bytes region host p2p; do
	lines=$((lines + 1))
	ratio=$(((${p2p#*=} * 100 + ${host#*=} / 2) / ${host#*=}))
	check "WRITE of ${bytes#*=} bytes, ${region#*=} region: ${p2p#*=} instructions, $ratio% of host memory's ${host#*=}" \
		near "$ratio" $((${p2p#*=} - ${host#*=}))
done </cost
check "all were measured" [ $lines -eq 6 ]
