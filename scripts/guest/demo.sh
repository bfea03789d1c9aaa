# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: SENDs of 64 bytes in each polling context, and 64 KiB by each operation.
# Throughput is measured with 64 messages outstanding, latency with one.
#
#   ALL  1: each combination of context, operation and three sizes instead

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

SIZES="64 4096 65536"

# Under emulation a message costs microseconds, and its bytes matter more.
count_for() {
	case $1 in
	64) count=10000 ping=300 ;;
	4096) count=3000 ping=200 ;;
	*) count=300 ping=50 ;;
	esac
}

# Sends one line of the table, which the host prints as it arrives.
show() {
	result "progress: $(printf '%-10s %-10s %6s %10s %8s %9s %9s %7s %9s' "$@")"
}

# one_row <context> <operation> <bytes>
one_row() {
	count_for "$3"
	pingpong_ok "ctx=$1 op=$2 size=$3 window=64 iters=$count verify=1" || return
	rate=$msgs_per_s mb=$mb_per_s sum=$msgs good=$verified bad=$errors
	pingpong_ok "ctx=$1 op=$2 size=$3 window=1 iters=$ping verify=1" || return
	sum=$((sum + msgs)) good=$((good + verified)) bad=$((bad + errors))
	total=$((total + sum)) rows=$((rows + 1))
	show "$1" "$2" "$3" "$rate" "$mb" \
		"$(us "$lat_p50_ns")" "$(us "$lat_p99_ns")" "$bad" "$good"
}

# nanoseconds as microseconds with one digit behind the point
us() {
	echo "$(($1 / 1000)).$(($1 % 1000 / 100))"
}

for ko in kverbs kverbs_emu; do
	load $ko
done
load kverbs_pingpong run=0 || exit 1

total=0 rows=0
show context operation bytes msgs/s MB/s p50/us p99/us errors verified
if [ "${ALL:-0}" = 1 ]; then
	for ctx in $CONTEXTS; do
		result "progress: "
		for op in $OPERATIONS; do
			for size in $SIZES; do
				one_row "$ctx" "$op" "$size"
			done
		done
	done
else
	for ctx in $CONTEXTS; do
		one_row "$ctx" send 64
	done
	for op in $OPERATIONS; do
		one_row workqueue "$op" 65536
	done
fi
result "total: $rows combinations, $total messages"
