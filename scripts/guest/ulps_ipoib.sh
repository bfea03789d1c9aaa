# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own IP over InfiniBand, on kverbs' core or on mainline's. Two devices
# on the emulated InfiniBand fabric, the network device of one in the first network namespace, that
# of the other in another. Port 1 of emu0 is the subnet manager's, whose subnet administrator both
# ask. With IPERF, iperf3 runs, too.

# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

PORT=5001
MIB=4
IPERF_MIB=16
NET=/sys/class/net

insert() {
	another_host && core_up && add_ib_devices && load_ulp ib_ipoib
}

has_carrier() {
	[ "$(cat "$NET/$1/carrier" 2>/dev/null)" = 1 ]
}

carrier_there() {
	[ "$(there ip link show ib1 | grep -c LOWER_UP)" = 1 ]
}

near_up() {
	retry 100 [ -e $NET/ib0 ] && ip addr add 10.1.0.1/24 dev ib0 && ip link set ib0 up &&
		retry 200 has_carrier ib0
}

far_up() {
	retry 100 [ -e $NET/ib1 ] && ip link set ib1 netns "$other" &&
		there ip addr add 10.1.0.2/24 dev ib1 && there ip link set ib1 up &&
		retry 200 carrier_there
}

pings() {
	ping -c 1 -W 1 10.1.0.2 >/dev/null
}

soon_pings() {
	retry 40 pings
}

# By link-local addresses: neighbours are asked for in multicast groups of their own.
pings_by_ipv6() {
	far=$(there ip -6 addr show dev ib1 | sed -n 's|.*inet6 \(fe80:[^/]*\)/.*|\1|p')
	[ -n "$far" ] && ping6 -c 1 -W 1 -I ib0 "$far" >/dev/null
}

# As many bytes as were sent, and the same, went by RDMA. A server whose input ends says so to
# its client, which would end, too: so it has one without end.
tcp() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$MIB 2>/dev/null
	before=$(words emu1)
	nc -l -p $PORT <&9 >/tmp/got 2>/dev/null &
	server=$!
	retry 100 listening && there nc 10.1.0.1 $PORT </tmp/pattern && wait $server &&
		cmp /tmp/pattern /tmp/got &&
		[ $(($(words emu1) - before)) -ge $((MIB << 18)) ]
}

# iperf [<argument>]: four connections at once. What the sender holds at the end is never sent,
# and may be a third.
iperf() {
	before=$(($(words emu0) + $(words emu1)))
	timeout 100 iperf3 -s -1 -p $PORT >/tmp/iperf 2>&1 &
	server=$!
	retry 100 listening &&
		there timeout 100 iperf3 -c 10.1.0.1 -p $PORT -P 4 -n ${IPERF_MIB}M "$@" >/tmp/client 2>&1 &&
		wait $server && grep -q 'SUM.*receiver' /tmp/client &&
		[ $(($(words emu0) + $(words emu1) - before)) -ge $((IPERF_MIB << 17)) ] && return
	cat /tmp/iperf /tmp/client
	kill $server 2>/dev/null
	wait $server
	return 1
}

both_iperfs() {
	iperf && iperf -R
}

# What goes receives, and answers nothing: when a device goes while it sends, IPoIB leaves work
# behind that uses the network device after it is freed (reschedule_napi_work), and KASAN says so.
# With TRAFFIC=tcp it sends.
ignore_pings() {
	for host in "" there; do
		$host sh -c "echo $1 >/proc/sys/net/ipv4/icmp_echo_ignore_all"
	done
}

# traffic <device that goes>
traffic() {
	sender=emu1 server=''
	# Not by there(): the shell's own process would be the one to kill.
	if [ "${TRAFFIC:-}" = tcp ]; then
		nc -l -p $PORT <&9 >/dev/null 2>&1 &
		server=$!
		retry 100 listening || return 1
		nsenter -t "$other" -n nc 10.1.0.1 $PORT </dev/zero 2>/dev/null &
	elif [ "$1" = emu0 ]; then
		ignore_pings 1
		nsenter -t "$other" -n ping -i 0.001 -s 2000 10.1.0.1 >/dev/null 2>&1 &
	else
		ignore_pings 1
		sender=emu0
		ping -i 0.001 -s 2000 10.1.0.2 >/dev/null 2>&1 &
	fi
	client=$!
	retry_while $client packets_beyond $(($(packets $sender) + 100)) $sender
}

traffic_ends() {
	for process in $server $client; do
		kill "$process" 2>/dev/null
		wait "$process"
	done
	ignore_pings 0
}

# The network device of the other host goes with its device.
device_goes() {
	traffic emu1 && echo 0 >$CONFIG/emu1/enable && is_gone $IB/emu1 && traffic_ends &&
		! there ip link show ib1 2>/dev/null && echo 1 >$CONFIG/emu1/enable &&
		far_up && soon_pings && tcp
}

# With emu0, all that its administrator knew. emu1 joins its groups anew, when it is told to.
manager_goes() {
	traffic emu0 && echo 0 >$CONFIG/emu0/enable && is_gone $NET/ib0 && traffic_ends &&
		echo 1 >$CONFIG/emu0/enable && near_up && soon_pings && tcp
}

link_goes() {
	echo down >$CONFIG/emu1/port1/state && ! pings && echo active >$CONFIG/emu1/port1/state &&
		soon_pings && tcp
}

# Reliable connections below IP, by the connection manager, where the kernel has them. A packet as
# large as IP has them is one message then.
CONNECTED_MTU=65520

can_connect() {
	[ -e $NET/ib0/mode ]
}

# The other host's files are those of its network namespace.
connected_there() {
	mkdir -p /tmp/there && there sh -c "mount -t sysfs sys /tmp/there &&
		echo connected >/tmp/there/class/net/ib1/mode && umount /tmp/there" &&
		there ip link set ib1 mtu $CONNECTED_MTU
}

pings_of_one_message() {
	before=$(packets)
	ping -c 10 -W 1 -s 60000 10.1.0.2 >/dev/null && [ $(($(packets) - before)) -lt 30 ]
}

connected() {
	echo connected >$NET/ib0/mode && ip link set ib0 mtu $CONNECTED_MTU && connected_there &&
		soon_pings && retry 3 pings_of_one_message && tcp
}

connected_device_goes() {
	traffic emu1 && echo 0 >$CONFIG/emu1/enable && is_gone $IB/emu1 && traffic_ends &&
		echo 1 >$CONFIG/emu1/enable && far_up && connected_there && soon_pings &&
		retry 3 pings_of_one_message && tcp
}

# Both are down first, and for longer than the work sleeps that IPoIB leaves behind when it sends in
# that moment: nobody could wait for that (Documentation/ulps.rst).
ipoib_ends() {
	ip link set ib0 down && there ip link set ib1 down && sleep 1 && unload ib_ipoib &&
		is_gone $NET/ib0
}

mkfifo /tmp/open && exec 9<>/tmp/open
insert || exit 1
check "network devices of IP over InfiniBand come up" near_up
check "another one in another network namespace" far_up
check "they reach each other" soon_pings
check "and by IPv6" retry 40 pings_by_ipv6
check "data arrives as it was sent, by TCP" tcp
[ -z "${IPERF:-}" ] || check "iperf3, in both directions" both_iperfs
check "a link goes down, and comes back" link_goes
check "a device goes under traffic, and comes back" device_goes
check "the subnet administrator goes under traffic, and comes back" manager_goes
! can_connect || {
	check "connections below IP" connected
	[ -z "${IPERF:-}" ] || check "iperf3 over these, in both directions" both_iperfs
	check "a device goes under connections, and comes back" connected_device_goes
}
on_mainline || check "IP over InfiniBand ends" ipoib_ends
check "the devices go" remove_devices
unload_all
kill "$other"
