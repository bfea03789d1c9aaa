# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the software HCA in network namespaces, under the kernel's own ib_core.
# Each namespace has a device of its own, on a network device of its own; a bridge joins those,
# over which the programs of both ends meet.

NAMESPACES="0 1 2 3 4 5 6 7 8 9"
IB=/sys/class/infiniband

# inside <number> <command>: in a namespace, where sysfs shows what is in it
inside() {
	pid=$(cat /tmp/netns"$1")
	shift
	nsenter -t "$pid" -n -m "$@"
}

# Its process keeps it. It is known by name, too, as "ip netns" does that.
make_namespace() {
	unshare -n -m sh -c "mount -t sysfs sysfs /sys && echo \$\$ >/tmp/netns$1 && exec sleep 100000" &
	retry 400 [ -s /tmp/netns"$1" ] || return 1
	pid=$(cat /tmp/netns"$1")
	mkdir -p /run/netns && touch /run/netns/ns"$1" &&
		mount --bind /proc/"$pid"/ns/net /run/netns/ns"$1"
}

# give_netdev <number> <address>: eth0 there, joined by the bridge here. The other end of a new
# veth has the first name that is free.
give_netdev() {
	ip link add port"$1" type veth &&
		ip link set veth0 netns "$(cat /tmp/netns"$1")" &&
		ip link set port"$1" master br0 && ip link set port"$1" up &&
		inside "$1" ip link set veth0 name eth0 &&
		inside "$1" ip addr add "$2"/24 dev eth0 && inside "$1" ip link set eth0 up &&
		inside "$1" ip link set lo up
}

# give_device <number>: roce<number> there, which is here first
give_device() {
	inside "$1" rdma link add roce"$1" type emu netdev eth0 &&
		rdma dev set roce"$1" netns ns"$1"
}

namespaces_have_devices() {
	rdma system set netns exclusive && ip link add br0 type bridge && ip link set br0 up ||
		return 1
	for i in $NAMESPACES; do
		make_namespace "$i" && give_netdev "$i" 10.1.0.$((i + 1)) && give_device "$i" || return 1
	done
}

# Each sees its own, and nobody else's.
devices_are_apart() {
	! rdma dev | grep roce || return 1
	for i in $NAMESPACES; do
		[ "$(inside "$i" rdma dev | grep -o 'roce[0-9]*')" = roce"$i" ] &&
			[ "$(inside "$i" ls $IB)" = roce"$i" ] &&
			[ "$(inside "$i" ibv_devices | grep -c roce)" -eq 1 ] || return 1
	done
}

# gid_of <number> <device> [<address>]: the index of the GID that its IPv4 address has with RoCE v2,
# or this one, as it is in a GID
gid_of() {
	inside "$1" sh -c "cd $IB/$2/ports/1 && grep -l '0000:ffff:${3:-}' gids/* 2>/dev/null" |
		while read -r gid; do
			inside "$1" grep -q v2 "$IB/$2/ports/1/gid_attrs/types/${gid#gids/}" &&
				echo "${gid#gids/}"
		done | head -n 1
}

# soon_gid_of <arguments of gid_of>: sets gid, which comes some time after the address.
soon_gid_of() {
	retry 400 has_gid_of "$@" || why "$2 has no GID"
}

has_gid_of() {
	gid=$(gid_of "$@")
	[ -n "$gid" ]
}

# meet <number> <device> <gid> <number> <device> <gid> <address> <program> [<arguments>]: the
# program at both ends; the second, which has that address, serves.
meet() {
	from=$1 from_device=$2 from_gid=$3 to=$4 to_device=$5 to_gid=$6 address=$7
	shift 7
	inside "$to" timeout 100 "$@" -d "$to_device" -g "$to_gid" >/tmp/server 2>&1 &
	server=$!
	retry 400 inside "$to" grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null &&
		inside "$from" timeout 100 "$@" -d "$from_device" -g "$from_gid" "$address" \
			>/tmp/client 2>&1 && wait $server && return
	cat /tmp/server /tmp/client
	kill $server 2>/dev/null
	return 1
}

# a_to_b <number> <device> <number> <device> <address> <program> [<arguments>]
a_to_b() {
	soon_gid_of "$1" "$2" || return
	a_gid=$gid
	soon_gid_of "$3" "$4" || return
	b_gid=$gid
	a=$1 a_device=$2 b=$3 b_device=$4 b_address=$5
	shift 5
	meet "$a" "$a_device" "$a_gid" "$b" "$b_device" "$b_gid" "$b_address" "$@"
}

# Each to the next, and back.
namespaces_talk() {
	for i in $NAMESPACES; do
		next=$(((i + 1) % 10))
		a_to_b "$i" roce"$i" $next roce$next 10.1.0.$((next + 1)) \
			ibv_rc_pingpong -c -n 100 || return 1
	done
	a_to_b 0 roce0 5 roce5 10.1.0.6 ibv_ud_pingpong -n 100
}

device_is_renamed() {
	inside 0 rdma dev set roce0 name renamed &&
		[ "$(inside 0 rdma dev | grep -o renamed)" = renamed ] &&
		a_to_b 0 renamed 1 roce1 10.1.0.2 ibv_rc_pingpong -n 100 &&
		a_to_b 1 roce1 0 renamed 10.1.0.1 ibv_rc_pingpong -n 100 &&
		inside 0 rdma dev set renamed name roce0
}

# The queue pair of a process that waits for its other end, where it is and nowhere else.
resources_are_shown() {
	inside 2 sh -c "echo \$\$ >/tmp/waiting && exec ibv_rc_pingpong -d roce2 -g 0" >/dev/null &
	waiting=$!
	retry 400 sh -c "nsenter -t $(cat /tmp/netns2) -n rdma res show qp link roce2 |
		grep -q ibv_rc_pingpong" && inside 2 rdma res show cq | grep -q roce2 &&
		inside 2 rdma res show mr | grep -q ibv_rc_pingpong &&
		! rdma res show qp | grep -q ibv_rc_pingpong &&
		! inside 3 rdma res show qp | grep -q ibv_rc_pingpong
	shown=$?
	kill "$(cat /tmp/waiting)"
	wait $waiting 2>/dev/null
	return $shown
}

# statistic <number> <counter>
statistic() {
	inside "$1" rdma statistic show link roce"$1"/1 | tr ' ' '\n' |
		grep -x -A1 "$2" | tail -n 1
}

# Under the names of rdma_rxe. A link that goes down is counted.
statistics_are_shown() {
	for counter in rcvd_rnr_err send_rnr_err retry_exceeded_err retry_rnr_exceeded_err; do
		[ -n "$(statistic 4 $counter)" ] || { fail "no $counter"; return 1; }
	done
	[ "$(statistic 4 port_xmit_packets)" -gt 0 ] || return 1
	downs=$(statistic 4 link_downed)
	inside 4 ip link set eth0 down && inside 4 ip link set eth0 up &&
		[ "$(statistic 4 link_downed)" -eq $((downs + 1)) ] &&
		retry 200 inside 4 grep -q ACTIVE $IB/roce4/ports/1/state
}

# sends_to_itself <number> <address>, as it is in a GID
sends_to_itself() {
	soon_gid_of "$1" roce"$1" "$2" || return
	meet "$1" roce"$1" "$gid" "$1" roce"$1" "$gid" 127.0.0.1 ibv_rc_pingpong -n 100
}

# Both have one address. Whoever sends there reaches his own device.
address_is_of_the_namespace() {
	for i in 8 9; do
		inside $i ip addr add 10.9.9.9/24 dev eth0 || return 1
	done
	for i in 8 9; do
		other=$((17 - i))
		ours=$(statistic $i port_xmit_packets) theirs=$(statistic $other port_rcv_packets)
		sends_to_itself $i 0a09:0909 &&
			[ "$(statistic $i port_xmit_packets)" -ge $((ours + 200)) ] &&
			[ "$(statistic $other port_rcv_packets)" -eq "$theirs" ] || return 1
	done
}

# To and fro, until there is nothing to move any more.
move_about() {
	while rdma dev set moved netns ns0 &&
		nsenter -t "$(cat /tmp/netns0)" -n rdma dev set moved netns here; do :; done 2>/dev/null
}

# While the core moves a device it is enabled nowhere; its network device goes at any moment.
moved_device_goes() {
	touch /run/netns/here && mount --bind /proc/self/ns/net /run/netns/here || return 1
	for _ in $(seq 20); do
		ip link add gone type dummy && rdma link add moved type emu netdev gone || return 1
		move_about &
		ip link del gone && retry 400 [ ! -e /proc/$! ] || return 1
	done
	! rdma dev | grep moved || return 1
	! nsenter -t "$(cat /tmp/netns0)" -n rdma dev | grep moved || return 1
	umount /run/netns/here
}

# With the namespace goes its network device, and with that the device; or it is back here.
namespace_goes() {
	umount /run/netns/ns"$1" && kill "$(cat /tmp/netns"$1")" || return 1
	wait "$(cat /tmp/netns"$1")"
	retry 400 [ ! -e /sys/class/net/port"$1" ] &&
		retry 400 sh -c "! rdma dev | grep -q 'roce$1'"
}

# The last one first: those that were made later have its mount, too.
namespaces_go() {
	for i in 9 8 7 6 5 4 3 2 1 0; do
		namespace_goes $i 2>/dev/null || return 1
	done
	ip link del br0 && retry 100 rdma system set netns shared
}

load kverbs_emu devices=0 || exit 1
check "ten network namespaces have a device each" namespaces_have_devices
check "a namespace sees its own device only" devices_are_apart
check "namespaces talk to each other" namespaces_talk
check "a device is renamed in its namespace" device_is_renamed
check "rdma res shows what a namespace has" resources_are_shown
check "rdma statistic shows the counters" statistics_are_shown
check "an address that two namespaces have is that of one's own" address_is_of_the_namespace
check "a device that is being moved goes with its network device" moved_device_goes
check "namespaces go, and their devices with them" namespaces_go
unload_all
