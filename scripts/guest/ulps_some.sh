# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: several of the scripts of the kernel's own ULPs, one after the other: SCRIPTS, which
# are in /bin, separated by colons.

for script in $(echo "$SCRIPTS" | tr : ' '); do
	result "progress: $script"
	# shellcheck source=/dev/null
	. "/bin/$script.sh"
done
