# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a machine of scripts/p2p-machine: tests p2pmem/ in sysfs with the
# program p2p_sysfs of tools/tests; each of its cases is a check. OWN=1: our provider
# does the work on any kernel.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

load kverbs_p2pdma own_provider="${OWN:-0}" && load kverbs_bar_mem || exit 1
provide "${iv0:?}"
export iv0
cases p2p_sysfs
