# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: REQUESTS requests of hostile callers, from SEED.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

load kverbs contract=warn && load kverbs_ca && load kverbs_emu || exit 1
cases ca_fuzz --count "${REQUESTS:?}" --seed "${SEED:?}"
sed -n 's/^# //p' /tmp/cases | while read -r line; do
	result "progress: $line"
done
unload_all
check "nothing is left in sysfs" [ ! -e /sys/class/kverbs_ca ]
