# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, which has ivshmem devices: runs the KUnit suites of peer-to-peer DMA
# twice: with the kernel managing the providers' memory, and with our code doing so. SCALE
# multiplies the stress counts.

for own in 0 1; do
	load kverbs_p2pdma own_provider=$own || exit 1
	load kverbs contract=warn || exit 1
	load kverbs_kunit scale="${SCALE:-1}"
	load kverbs_emu || exit 1
	for path in /modules/kunit_*.ko; do
		name=${path##*/}
		name=${name%.ko}
		load "$name" && unload "$name"
	done
	unload_all
done
