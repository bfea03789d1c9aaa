# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount, on a machine of scripts/p2p-machine: measures what an RDMA WRITE
# into peer-to-peer memory costs, and one into system memory; and what allocating such memory
# costs. Each measurement is a line "row: kind=... bytes=... ...".

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

# rows <kind> <module>: what its file "cost" has
rows() {
	cat "$DEBUGFS/$2/cost" >/tmp/cost || fail "$2: no result"
	while read -r line; do
		result "row: kind=$1 $line"
	done </tmp/cost
	result "progress: $1"
}

load kverbs_bar_mem || exit 1
provide "${iv0:?}"
load kverbs && load kverbs_emu devices=1 pci="${hca0:?}" && load kverbs_p2pwrite &&
	load kverbs_p2pbench || exit 1
wait_idle || exit 1
rows write kverbs_p2pwrite
rows alloc kverbs_p2pbench
