# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: measures what many queue pairs on a device, and many
# devices with many clients, cost. A nanosecond is an instruction.
#
#   QPS      number of queue pairs; compared with a tenth as many
#   DEVICES  number of devices; compared with a quarter as many

RESULT=$DEBUGFS/kverbs_scale/result
QPS=${QPS:-2000}
DEVICES=${DEVICES:-200}
CLIENTS=16
FEW_CLIENTS=64
MANY_CLIENTS=256

# Limits: bytes of a queue pair; per cent for a message on one of many; per cent
# for the cost of one of many.
MAX_BYTES=16384
MAX_RANDOM=120
MAX_EACH=130

# percent <one> <other>: sets ratio, <one> in per cent of <other>
percent() {
	ratio=$((($1 * 100 + $2 / 2) / $2))
}

# linear <what> <cost of one of many> <cost of one of few>
linear() {
	percent "$2" "$3"
	check "$1: $2 instructions each, $ratio% of what each of few costs" \
		[ "$ratio" -le $MAX_EACH ]
}

# --- queue pairs -----------------------------------------------------------

# qps <number>: sets bytes, create_ns, connect_ns, destroy_ns, only_ns, random_ns
qps() {
	bytes=0 create_ns=0 connect_ns=0 destroy_ns=0 only_ns=0 random_ns=0
	load kverbs_scale qps="$1" || return
	line=$(cat "$RESULT")
	unload kverbs_scale
	result "progress: $line"
	for pair in $line; do
		case $pair in
		bytes=* | *_ns=*) export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
	[ "$random_ns" -gt 0 ]
}

check_qps() {
	qps $((QPS / 10)) || return
	few_create=$create_ns few_connect=$connect_ns few_destroy=$destroy_ns
	qps "$QPS" || return
	check "a queue pair takes $bytes bytes" [ "$bytes" -le $MAX_BYTES ]
	percent "$random_ns" "$only_ns"
	check "a message on one of $QPS queue pairs costs $random_ns instructions, $ratio% of one on the only pair" \
		[ "$ratio" -le $MAX_RANDOM ]
	linear "creating $QPS queue pairs" "$create_ns" "$few_create"
	linear "connecting $QPS queue pairs" "$connect_ns" "$few_connect"
	linear "destroying $QPS queue pairs" "$destroy_ns" "$few_destroy"
}

# Messages of the first size take no memory, if that is computed in 32 bits; those of the second
# take more than kmalloc() gives.
too_much_memory() {
	for size in 2147483648 4194304; do
		! insmod /modules/kverbs_scale.ko qps=4 size=$size 2>/tmp/refused || return
		grep -q 'out of range' /tmp/refused || return
	done
}

# --- devices and clients ---------------------------------------------------

# devices <number> <clients>: sets make_ns and drop_ns, for each device, without
# the time that is spent waiting for grace periods
devices() {
	load kverbs_scale clients="$2" || return
	made=$(emudevs make "$1") || fail "$1 devices: not made"
	grep -q "devices=$1\$" "$RESULT" || fail "$1 devices: $(cat "$RESULT")"
	dropped=$(emudevs drop "$1") || fail "$1 devices: not dropped"
	unload kverbs_scale
	make_ns=$((${made% *} / $1)) drop_ns=$((${dropped% *} / $1))
	result "progress: devices=$1 clients=$2 make_ns=$make_ns drop_ns=$drop_ns" \
		"(with waiting: $((${made#* } / $1)) $((${dropped#* } / $1)))"
	[ $make_ns -gt 0 ] && [ $drop_ns -gt 0 ]
}

check_devices() {
	devices $((DEVICES / 4)) $CLIENTS || return
	few_make=$make_ns few_drop=$drop_ns
	devices "$DEVICES" $CLIENTS || return
	linear "registering $DEVICES devices, $CLIENTS clients" "$make_ns" "$few_make"
	linear "unregistering $DEVICES devices, $CLIENTS clients" "$drop_ns" "$few_drop"
}

# Cost that a client adds to a device, without the cost of the device itself. The latter
# varies between runs by 2%, which is as much as 15 clients add: hence "few" is not a
# very small number.
check_clients() {
	devices "$DEVICES" 1 || return
	no_make=$make_ns no_drop=$drop_ns
	devices "$DEVICES" $FEW_CLIENTS || return
	few_make=$((make_ns - no_make)) few_drop=$((drop_ns - no_drop))
	devices "$DEVICES" $MANY_CLIENTS || return
	linear "$DEVICES devices come, $MANY_CLIENTS clients" \
		$(((make_ns - no_make) / (MANY_CLIENTS - 1))) $((few_make / (FEW_CLIENTS - 1)))
	linear "$DEVICES devices go, $MANY_CLIENTS clients" \
		$(((drop_ns - no_drop) / (MANY_CLIENTS - 1))) $((few_drop / (FEW_CLIENTS - 1)))
}

load kverbs && load kverbs_emu devices=1 || exit 1
check "messages that are too large are refused" too_much_memory
check_qps || fail "queue pairs: no result"
unload kverbs_emu
load kverbs_emu devices=0 || exit 1
check_devices || fail "devices: no result"
check_clients || fail "clients: no result"
