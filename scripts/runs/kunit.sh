# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: every KUnit module in turn, which runs its suites as it loads.
# SCALE multiplies the stress counts. CONTRACT is what the contract checker does.

load kverbs contract="${CONTRACT:-warn}"
load kverbs_emu
load kverbs_kunit scale="${SCALE:-1}"
for path in /modules/kunit_*.ko; do
	name=${path##*/}
	name=${name%.ko}
	load "$name" && unload "$name"
done
