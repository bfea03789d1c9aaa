# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by run scripts in the guest: what a message costs, over a device or as the limit.
# shellcheck disable=SC2034

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

LIMIT=$DEBUGFS/kverbs_limit

# What is measured, kverbs, mainline, limit or cpu; and the devices.
layer=kverbs from=emu0 same=emu0 other=emu1

# limit key=value...: performs one run of kverbs_limit, and leaves its result as pingpong
# does.
limit() {
	verdict=none msgs=0 ns=0
	err=0
	echo "$*" >"$LIMIT/run" || err=1
	line=$(cat "$LIMIT/result")
	for pair in $line; do
		case $pair in
		verdict=* | msgs=* | ns=*) export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
	[ $err -eq 0 ] && [ "$verdict" = ok ]
}

# With a batch of 1 as most ULPs do it, else that many in a chain.
message_once() {
	if [ "$layer" = limit ]; then
		limit "op=$1 size=$4 window=$5 iters=$7"
		return
	fi
	how="plain=1"
	[ "$6" = 1 ] || how="batch=$6"
	case $1 in
	send_srq) how="$how op=send srq=1" ;;
	memcpy | fetch_add) how="batch=$6 op=$1" ;;
	*) how="$how op=$1" ;;
	esac
	pingpong "$devices ctx=$2 $how size=$4 window=$5 iters=$7 verify=0 lat=0"
}

# message <operation> <context> <to> <bytes> <window> <batch> <messages>: runs twice, the first
# time to warm up, and reports a row. Leaves what a message cost in each. <to> is "same" or
# "other": the device at the other end.
message() {
	devices="initiator=$from target=$same"
	[ "$3" = same ] || devices="initiator=$from target=$other"
	warm=$(($7 / 8))
	[ $warm -ge "$5" ] || warm=$5
	each=0
	shape="layer=$layer op=$1 ctx=$2 to=$3 size=$4 window=$5 batch=$6"
	if message_once "$1" "$2" "$3" "$4" "$5" "$6" "$warm" && message_once "$@"; then
		each=$((ns / msgs))
		result "row: $shape msgs=$msgs ns=$ns"
	else
		fail "$shape: ${line:-no result}"
		return 1
	fi
}
