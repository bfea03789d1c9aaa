# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Checks that finding the
# provider for 64 clients among 64 costs at most MAX_NS, and how that grows.

MAX_NS=${MAX_NS:-5000000}

load kverbs_p2pdma own_provider=1 && load kverbs_kunit && sleep 2 || exit 1
load kunit_p2p_scale max_ns="$MAX_NS"
dmesg | sed -n 's/.*# find_[a-z_]*: \(.* ns=.*\|.* costs .*\)/progress: \1/p' |
	while read -r line; do
		result "$line"
	done
