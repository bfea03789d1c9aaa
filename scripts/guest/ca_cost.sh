# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures what
# channel-adapter requests cost: from user space, in per cent of an ioctl that only
# copies the same number of bytes; from the kernel, in instructions.

MAX_QUERY=${MAX_QUERY:-300}
MAX_LEADING=${MAX_LEADING:-150}

# Sets variables from a line of key=value.
import() {
	for pair in $1; do
		case $pair in
		bytes=* | *_ns=*) export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
}

bytes=0 query_ns=0 copy_ns=0 leading_ns=0 port_ns=0 full_ns=0 loop_ns=0

load kverbs && load kverbs_emu devices=1 ports=2 && load kverbs_cabench || exit 1
wait_idle || exit 1

if line=$(ca_cost emu0) && import "$line" && [ "$copy_ns" -gt 0 ]; then
	ratio=$((query_ns * 100 / copy_ns))
	check "QUERY_CA of $bytes bytes costs $query_ns instructions, $ratio% of a bare ioctl's $copy_ns" \
		[ $ratio -le "$MAX_QUERY" ]
else
	fail "ca_cost: no result"
fi

if line=$(cat "$DEBUGFS/kverbs_cabench/kernel") && import "$line" && [ "$leading_ns" -gt 0 ]; then
	check "a kernel request of the two leading fields costs $leading_ns instructions" \
		[ "$leading_ns" -le "$MAX_LEADING" ]
	pass "of a port: $port_ns; of $bytes bytes: $full_ns; the loop: $loop_ns"
else
	fail "kverbs_cabench: no result"
fi
