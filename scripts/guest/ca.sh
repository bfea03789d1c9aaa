# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: runs the programs of tools/tests that are in /bin; each of their cases
# is a check. TESTS holds their names, separated by colons; ONLY a word of the names of the
# cases that are wanted, if not all are.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

for dev in dummy0 dummy1; do
	add_dummy $dev
done
# For the case that registers huge pages, where the kernel has some.
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 4 >/proc/sys/vm/nr_hugepages
load kverbs contract=warn && load kverbs_ca && load kverbs_emu || exit 1
for test in $(echo "${TESTS:?}" | tr : " "); do
	cases "$test" ${ONLY:+"$ONLY"}
done
unload_all
check "no node is left" [ ! -e /dev/infiniband/ca/emu0 ]
check "nothing is left in sysfs" [ ! -e /sys/class/kverbs_ca ]
