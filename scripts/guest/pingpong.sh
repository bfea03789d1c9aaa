# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by run scripts in the guest: drives kverbs_pingpong.
# shellcheck disable=SC2034

PINGPONG=$DEBUGFS/kverbs_pingpong
CONTEXTS="direct softirq thread workqueue unbound"
OPERATIONS="send send_imm write write_imm read"

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
