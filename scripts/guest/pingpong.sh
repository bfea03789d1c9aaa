# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by run scripts in the guest: drives kverbs_pingpong.
# shellcheck disable=SC2034

PINGPONG=$DEBUGFS/kverbs_pingpong
CONTEXTS="direct softirq thread workqueue unbound"
OPERATIONS="send send_imm write write_imm read"
SCALE=${SCALE:-1}

# Results of the last run.
verdict=none ns=0 msgs=0 errors=0 verified=0 msgs_per_s=0 mb_per_s=0
lat_p50_ns=0 lat_p99_ns=0

# pingpong key=value...: performs one run and leaves its result in $line and the
# variables above.
pingpong() {
	verdict=none msgs=0 errors=0 verified=0 err=0
	if ! echo "$*" >"$PINGPONG/run"; then
		err=1
	fi
	line=$(tr '\n' ' ' <"$PINGPONG/result")
	for pair in $line; do
		case $pair in
		verdict=* | msgs=* | errors=* | verified=* | msgs_per_s=* | \
		mb_per_s=* | lat_p50_ns=* | lat_p99_ns=* | ns=*)
			export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
	[ "$err" -eq 0 ] && [ "$verdict" = ok ] && [ "$errors" = 0 ]
}

# A run that must succeed, with every message verified.
pingpong_ok() {
	if pingpong "$@" && [ "$msgs" -gt 0 ] && [ "$verified" = "$msgs" ]; then
		return 0
	fi
	fail "pingpong $*: ${line:-no result}"
	return 1
}

# all_runs <context>: each operation in several shapes. SCALE multiplies the number of messages.
all_runs() {
	bad=0
	for op in $OPERATIONS; do
		for shape in "size=1 window=1 iters=50" \
			"size=64 window=64 iters=$((2000 * SCALE))" \
			"size=5000 sges=3 window=16 iters=$((200 * SCALE))" \
			"size=65536 window=8 pairs=2 iters=$((20 * SCALE))"; do
			pingpong_ok "ctx=$1 op=$op $shape" || bad=1
		done
	done
	for shape in "window=1 iters=50" "window=64 iters=$((2000 * SCALE))" \
		"window=16 sig=5 pairs=2 iters=$((200 * SCALE))"; do
		pingpong_ok "ctx=$1 op=fetch_add size=8 $shape" || bad=1
	done
	return $bad
}
