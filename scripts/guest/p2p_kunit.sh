# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, which has ivshmem devices: runs the KUnit suites of peer-to-peer DMA: with
# the kernel managing the providers' memory, and with our code doing so. OWN names one of
# these, 0 or 1, or both, with a colon between. SUITES names modules, as in kunit.sh. SCALE
# multiplies the stress counts.

run_module() {
	load "$1" && unload "$1"
}

for own in $(echo "${OWN:-0:1}" | tr : ' '); do
	load kverbs_p2pdma own_provider="$own" || exit 1
	load kverbs contract=warn && load kverbs_ca || exit 1
	load kverbs_kunit scale="${SCALE:-1}" patience="$KV_PATIENCE"
	load kverbs_emu || exit 1
	for_each_suite run_module "${SUITES:-}"
	unload_all
done
