# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Measures the cost of
# registering and deregistering peer memory beyond the client's own functions: the
# registry, the core and the software HCA. The memory consists of non-contiguous pages
# of 64 KiB, which is the most work. The cost with MANY other regions must equal the
# cost with FEW.
#
# Limits, in instructions: for 64 KiB, both together; for each additional page of
# larger memory; and the cost with many regions in per cent of that with few.

FEW=${FEW:-10}
MANY=${MANY:-100000}
MAX_REGION=${MAX_REGION:-10000}
MAX_PAGE=${MAX_PAGE:-550}
MAX_RATIO=${MAX_RATIO:-110}

BENCH=$DEBUGFS/kverbs_peerbench

# measure <number of other regions> <file for the result>
measure() {
	echo "$1" >"$BENCH/live" && cat "$BENCH/cost" >"$2" || return
	while read -r line; do
		result "progress: $line"
	done <"$2"
	[ -s "$2" ]
}

pages=0 reg_ns=0 dereg_ns=0 client_reg_ns=0 client_dereg_ns=0

# figure <file> <bytes>: sets pages, and reg and dereg without the client's part
figure() {
	line=$(grep " bytes=$2 " "$1")
	for pair in $line; do
		case $pair in
		pages=* | *_ns=*) export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
	reg=$((reg_ns - client_reg_ns)) dereg=$((dereg_ns - client_dereg_ns))
	[ $reg -gt 0 ] && [ $dereg -gt 0 ]
}

# flat <what> <cost> <cost with few>
flat() {
	ratio=$((($2 * 100 + $3 / 2) / $3))
	check "$1, $MANY regions: $2 instructions, $ratio% of the $3 with $FEW" \
		[ $ratio -le "$MAX_RATIO" ]
}

# check_size <name> <bytes>
check_size() {
	figure /few "$2" || return
	few_reg=$reg few_dereg=$dereg
	figure /many "$2" || return
	flat "registering $1" $reg $few_reg
	flat "deregistering $1" $dereg $few_dereg
	if [ "$pages" -eq 1 ]; then
		one=$((few_reg + few_dereg))
		check "$1 and back: $one instructions" [ $one -le "$MAX_REGION" ]
		return
	fi
	page=$(((few_reg + few_dereg - one) / (pages - 1)))
	check "$1 and back: $page instructions for each further page" \
		[ $page -le "$MAX_PAGE" ]
}

load kverbs && load kverbs_emu devices=1 && load kverbs_peerbench || exit 1
wait_idle || exit 1
measure "$FEW" /few || fail "$FEW regions: no result"
measure "$MANY" /many || fail "$MANY regions: no result"
check_size "64 KiB" 65536 || fail "64 KiB: no figures"
check_size "2 MiB" 2097152 || fail "2 MiB: no figures"
check_size "1 GiB" 1073741824 || fail "1 GiB: no figures"
