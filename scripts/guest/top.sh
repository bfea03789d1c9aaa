# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: what "kverbs top" shows while the pingpong ULP runs, for scripts/top-svg.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

for ko in kverbs kverbs_emu; do
	load $ko
done
load kverbs_pingpong run=0 || exit 1
echo 1 >/sys/module/kverbs/parameters/cq_timing

kverbs top --count 10 >/tmp/top 2>&1 &
top=$!
while kill -0 $top 2>/dev/null; do
	for shape in "op=send size=64 pairs=4" "op=write size=4096 pairs=2" "op=read size=65536"; do
		pingpong_ok "ctx=softirq $shape window=64 iters=20000" || exit 1
	done
done
wait $top || fail "kverbs top"
while IFS= read -r line; do
	result "view: $line"
done </tmp/top
