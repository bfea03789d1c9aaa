# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own connection manager and ULPs on kverbs' core. emu0 has its IP
# address in the guest's first network namespace, emu1 in another, so that the two are hosts
# to each other.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

insert() {
	two_hosts && load kverbs contract=warn && load kverbs_emu devices=0 &&
		add_device emu0 near0 && add_device_there emu1 veth0 && load rdma_cm
}

# echoes <to>: a client's init is the whole run.
echoes() {
	load kverbs_echo_client to="$1" && unload kverbs_echo_client
}

# The other way round: the client runs on the other host.
echoes_there() {
	there insmod /modules/kverbs_echo_client.ko to="$1" && unload kverbs_echo_client
}

# By the event of the removal (ECONNABORTED), and not by wrong data.
ended_as_aborted() {
	dmesg | grep -q '1000000000 messages to 10.0.0.1 and back: -103$'
}

# emu1 goes while a client sends from it, whose init fails then; and comes back, and works.
device_goes() {
	before=$(packets)
	there insmod /modules/kverbs_echo_client.ko to=10.0.0.1 rounds=1000000000 2>/dev/null &
	client=$!
	retry_while $client packets_beyond $((before + 100)) &&
		echo 0 >$CONFIG/emu1/enable || return 1
	! wait $client && [ ! -e $IB/emu1 ] && ended_as_aborted &&
		there sh -c "echo 1 >$CONFIG/emu1/enable" && retry 100 [ -e $IB/emu1 ] &&
		echoes_there 10.0.0.1
}

# emu1_has <the last 32 bits of an IPv4 GID>
emu1_has() {
	grep -qx "0000:0000:0000:0000:0000:ffff:$1" $IB/emu1/ports/1/gids/* 2>/dev/null
}

# The network device of emu1 comes to this host, without its address, and goes back.
netdev_moves() {
	there ip link set veth0 netns $$ && ip addr add 10.0.0.3/24 dev veth0 &&
		ip link set veth0 up && retry 100 emu1_has 0a00:0003 && ! emu1_has 0a00:0002 ||
		return 1
	ip link set veth0 netns "$other" && there ip addr add 10.0.0.2/24 dev veth0 &&
		there ip link set veth0 up && retry 100 emu1_has 0a00:0002 &&
		! emu1_has 0a00:0003 && echoes_there 10.0.0.1
}

# The server goes while a client sends to it: its connections are closed, and the client sees it.
server_goes() {
	before=$(packets)
	there insmod /modules/kverbs_echo_client.ko to=10.0.0.1 rounds=1000000000 2>/dev/null &
	client=$!
	retry_while $client packets_beyond $((before + 100)) &&
		unload kverbs_echo_server || return 1
	! wait $client && dmesg | grep -qE '1000000000 messages to 10.0.0.1 and back: -(5|104)$' &&
		load kverbs_echo_server && echoes_there 10.0.0.1
}

# told <event> <device> [<network device>]: a listener of RDMA netlink has been.
told() {
	grep -qx "$*" /tmp/told
}

# comes <device> <network device>: and the listener is told.
comes() {
	add_device "$1" "$2" && retry 100 told register "$1" && retry 100 told attach "$1" "$2"
}

# goes <device>: likewise.
goes() {
	! told unregister "$1" && echo 0 >"$CONFIG/$1/enable" && rmdir "$CONFIG/$1" &&
		retry 100 told unregister "$1"
}

# What "rdma monitor" would show of two devices: one's network device moves to another namespace, the
# other's, which is its peer, is deleted with it.
listener_is_told() {
	rdmalink monitor >/tmp/told &
	listener=$!
	# The kernel names the peer.
	retry 100 told listening && ip link add end7 type veth && comes emu7 end7 &&
		comes emu8 veth0 && ip link set end7 netns "$other" &&
		retry 100 told detach emu7 && ! grep -F '?' /tmp/told &&
		there ip link del end7 && retry 100 told detach emu8 && goes emu7 && goes emu8
	heard=$?
	[ $heard -eq 0 ] || cat /tmp/told
	kill $listener
	return $heard
}

# Nobody listens there: the other host says so.
refused() {
	! insmod /modules/kverbs_echo_client.ko to="$1" 2>/dev/null &&
		dmesg | grep -q " $1: rejected, status"
}

# The files of the server's listeners: the maker of an ID is the module.
ids_are_listed() {
	grep -q 'maker=kverbs_echo_server' /sys/kernel/debug/kverbs/emu0/cm_id
}

# DISK=no: without. What lockdep says of it, and then says nothing more, is in ulps.rst.
has_disk() {
	[ "${DISK:-yes}" = yes ]
}

# Target and host are in the first namespace: nvme-rdma connects from there.
disk() {
	load nvmet-rdma && load nvme-rdma && disk_over_rdma && unload nvme-rdma nvmet-rdma
}

# With regions for all reads and writes of the target, for which a device rarely asks.
disk_with_regions() {
	unload rdma_cm iw_cm ib_cm kverbs_mad && load kverbs_mad force_mr=1 && disk &&
		unload rdma_cm iw_cm ib_cm kverbs_mad && load rdma_cm
}

# --- the run ----------------------------------------------------------------------

insert || exit 1
check "a connection that nobody accepts is refused" refused 10.0.0.2
load kverbs_echo_server || exit 1
check "messages on one device" echoes 10.0.0.1
check "messages from emu1 to emu0 and back" echoes_there 10.0.0.1
check "connection managers' IDs are listed" ids_are_listed
check "the server goes under traffic, and comes back" server_goes
check "a device goes under traffic, and comes back" device_goes
check "a network device moves to another host, and back" netdev_moves
check "who listens by RDMA netlink is told of devices" listener_is_told
unload kverbs_echo_server
! has_disk || check "a disk over RDMA, with regions" disk_with_regions
there insmod /modules/kverbs_echo_server.ko || fail "no server on emu1"
check "messages from emu0 to emu1 and back" echoes 10.0.0.2
! has_disk || check "a disk over RDMA" disk
check "the devices go under the server" remove_devices
unload_all
hosts_end
check "nothing is left in sysfs" [ ! -e $IB/emu0 ]
