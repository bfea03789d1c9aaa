# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. The first run
# warms up; the second counts.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

for ko in kverbs kverbs_emu; do
	load $ko
done
load kverbs_pingpong run=0 || exit 1

FIGURE="ctx=workqueue op=send size=64 window=64 verify=0 lat=0"
pingpong "$FIGURE iters=2000" || fail "pingpong: $line"
pingpong "$FIGURE iters=20000" || fail "pingpong: $line"
[ "$msgs" -gt 0 ] && result "figure: $((ns / msgs))"
