# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: what kverbs capture writes of the messages of Debian's RDMA programs and of
# uverbs_check, under the kernel's own ib_core. The files go to /share, where scripts/test reads
# them with tools/frames and tshark.

CONFIG=/sys/kernel/config/kverbs_emu

# shellcheck source=ends.sh
. /bin/ends.sh

HOST=127.0.0.1
DEV=emu0

# begin_capture <arguments>: returns when it captures. What an earlier one said is not to be seen.
begin_capture() {
	: >/tmp/said
	kverbs capture "$@" 2>/tmp/said &
	capture=$!
	retry 400 grep -q capturing /tmp/said
}

# captured <file> <what the command must say in the end> <command>
captured() {
	file=/share/$1.pcapng said=$2
	shift 2
	begin_capture emu0 -w "$file" --snaplen 8192 && "$@"
	ended=$?
	kill -INT $capture
	wait $capture && [ $ended -eq 0 ] && grep -qx "$said" /tmp/said && return
	cat /tmp/said
	return 1
}

# Ends by itself, and with what it was asked for.
ends_by_count() {
	begin_capture emu0 -w - --snaplen 0 --count 7 >/share/count.pcapng &&
		both_ends ibv_rc_pingpong -n 20 -s 8 && wait $capture &&
		grep -qx "7 messages, 14 frames, 0 messages lost" /tmp/said
}

is_stopped() {
	grep -q "^State:.T" "/proc/$1/status"
}

# The device goes before its messages are read: the capture still has all of them, and ends.
device_goes() {
	mkdir $CONFIG/emu1 && echo 1 >$CONFIG/emu1/enable || return 1
	DEV=emu1
	begin_capture emu1 -w /share/gone.pcapng && kill -STOP $capture &&
		retry 400 is_stopped $capture && both_ends ibv_rc_pingpong -n 20 -s 8 &&
		echo 0 >$CONFIG/emu1/enable && [ ! -e /sys/class/infiniband/emu1 ]
	gone=$?
	DEV=emu0
	kill -CONT $capture
	[ $gone -eq 0 ] || kill -INT $capture
	wait $capture && [ $gone -eq 0 ] && rmdir $CONFIG/emu1 &&
		grep -qx "40 messages, 80 frames, 0 messages lost" /tmp/said && return
	cat /tmp/said
	return 1
}

has_much() {
	[ "$(stat -c %s /tmp/busy.pcapng)" -gt 10000000 ]
}

# More messages than the buffer has records are sent while nobody reads them.
falls_behind() {
	sent=$(packets emu0)
	kill -STOP "$1" && retry 400 is_stopped "$1" && retry 400 packets_beyond $((sent + 1000)) emu0
	behind=$?
	kill -CONT "$1"
	return $behind
}

# There are always messages, more than can be written, and yet a signal ends it.
ends_under_traffic() {
	set -- timeout 200 ibv_rc_pingpong -d emu0 -n 1000000 -s 65536 -m 256
	"$@" >/dev/null 2>&1 &
	server=$!
	retry 400 listening || return 1
	"$@" $HOST >/dev/null 2>&1 &
	client=$!
	begin_capture emu0 -w /tmp/busy.pcapng --snaplen 65536
	retry 400 has_much && falls_behind $capture
	busy=$?
	kill -INT $capture
	wait $capture && [ $busy -eq 0 ] && kill $client && kill $server &&
		grep -q "^[1-9][0-9]* messages, [0-9]* frames, [1-9][0-9]* messages lost" /tmp/said
	ended=$?
	[ $ended -eq 0 ] || kill $client $server
	wait $client $server
	rm /tmp/busy.pcapng
	return $ended
}

only_one_captures() {
	begin_capture emu0 -w /dev/null && ! kverbs capture emu0 -w /dev/null 2>/tmp/refused &&
		grep -q "somebody captures on emu0 already" /tmp/refused
	refused=$?
	kill -INT $capture
	wait $capture
	return $refused
}

# By a rule of a process: the third SEND of either end fails, what it says is what the program says,
# and the rule has hit once.
fault_hits() {
	kverbs fault add emu0 op=send nth=3 status=rem_op_err || return
	both_ends ibv_rc_pingpong -n 20 >/tmp/ended && echo "no end has failed" >/tmp/ended
	kverbs fault --json >/tmp/rules && kverbs fault del emu0 all &&
		grep -q "Failed status remote operation error" /tmp/ended &&
		grep -q '"hits": *1\b' /tmp/rules && both_ends ibv_rc_pingpong -n 20 && return
	cat /tmp/ended /tmp/rules
	return 1
}

# The other commands that the kernel's own core is no hindrance to.
is_seen() {
	kverbs stats >/tmp/said && grep -q '^kverbs_port_active{device="emu0",port="1"} 1$' /tmp/said &&
		kverbs stats --prometheus >/tmp/said &&
		grep -q '^kverbs_port_xmit_packets_total{device="emu0",port="1"} [1-9]' /tmp/said &&
		kverbs top --count 2 --interval 1 >/tmp/said && grep -q '^emu0 ' /tmp/said && return
	cat /tmp/said
	return 1
}

# It has no complaint but that what insmod has loaded is not installed.
is_examined() {
	kverbs doctor >/tmp/said && grep -q '^ok  *devices  *emu0: port 1 is active$' /tmp/said &&
		grep -q '^ok  *permissions .*/uverbs0$' /tmp/said &&
		grep -q '^warn  *modules  *none are installed' /tmp/said && return
	cat /tmp/said
	return 1
}

load kverbs_emu devices=1 || exit 1
check "a rule of a process makes a request fail" fault_hits
check "stats and top have the device" is_seen
check "doctor looks at what is loaded" is_examined
check "RC is captured" captured rc "200 messages, 1000 frames, 0 messages lost" \
	both_ends ibv_rc_pingpong -n 100
check "UC is captured" captured uc "200 messages, 800 frames, 0 messages lost" \
	both_ends ibv_uc_pingpong -n 100
check "a capture ends by its count" ends_by_count
check "two do not capture on one device" only_one_captures
check "a signal ends a capture under traffic" ends_under_traffic
check "a capture has what there was before the device went" device_goes
unload_all

add_dummy dummy0 10.0.0.1/24
HOST=10.0.0.1
load kverbs_emu devices=1 netdev=dummy0 || exit 1
check "datagrams are captured" captured ud "200 messages, 200 frames, 0 messages lost" \
	both_ends ibv_ud_pingpong -g 1 -n 100
check "WRITEs are captured" captured write "20 messages, 120 frames, 0 messages lost" \
	both_ends ib_write_bw -F -n 20 -s 5000
check "READs are captured" captured read "20 messages, 120 frames, 0 messages lost" \
	both_ends ib_read_lat -F -n 20 -s 5000
check "atomics are captured" captured atomic "20 messages, 40 frames, 0 messages lost" \
	both_ends ib_atomic_lat -F -n 20
check "what goes wrong is captured" captured verbs "[0-9]* messages, [0-9]* frames, 0 messages lost" \
	timeout 300 uverbs_check emu0
