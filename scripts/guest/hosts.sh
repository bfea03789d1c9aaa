# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: software HCAs on network devices, in two network namespaces that are
# hosts to each other. With CORE=mainline on the kernel's own core, whose modules, and those that
# stand on them, the guest has as it boots.

IB=/sys/class/infiniband
CONFIG=/sys/kernel/config/kverbs_emu

on_mainline() {
	[ "${CORE:-}" = mainline ]
}

# core_up: with the connection manager, and no device.
core_up() {
	if on_mainline; then
		load kverbs_emu devices=0
	else
		load kverbs contract=warn && load kverbs_emu devices=0 && load rdma_cm
	fi
}

# load_ulp <module>
load_ulp() {
	on_mainline || load "$1"
}

# there <command>: on the other host. Its namespace lasts as long as the process that made it.
there() {
	nsenter -t "$other" -n "$@"
}

has_namespace() {
	[ "$(readlink "/proc/$other/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

another_host() {
	unshare -n sleep 100000 &
	other=$!
	retry 100 has_namespace
}

# near0 here has 10.0.0.1, veth0 there 10.0.0.2.
two_hosts() {
	# The kernel names its peer, veth0.
	ip link add near0 type veth && another_host && ip link set veth0 netns "$other" &&
		ip addr add 10.0.0.1/24 dev near0 && ip link set near0 up &&
		there ip addr add 10.0.0.2/24 dev veth0 && there ip link set veth0 up
}

# The other host ends, and takes the pair along: another script may make these anew.
hosts_end() {
	kill "$other"
	retry 100 [ ! -e /sys/class/net/near0 ] || fail "near0 has not gone with its namespace"
}

# add_device <name> <network device>: in the namespace of this process.
add_device() {
	mkdir "$CONFIG/$1" && echo "$2" >"$CONFIG/$1/netdev" && echo 1 >"$CONFIG/$1/enable"
}

# Functions do not pass through nsenter.
add_device_there() {
	mkdir "$CONFIG/$1" && there sh -c "echo $2 >$CONFIG/$1/netdev && echo 1 >$CONFIG/$1/enable"
}

# emu0 and emu1 on InfiniBand. emu0 has LID 1, where ports take the subnet manager to be, and is it.
add_ib_devices() {
	mkdir $CONFIG/emu0 $CONFIG/emu1 && echo 1 >$CONFIG/emu0/port1/sm &&
		echo 1 >$CONFIG/emu0/enable && echo 1 >$CONFIG/emu1/enable
}

# guid <device>: the lower half of its first GID, by which SRP names ports.
guid() {
	sed 's/.*:\([0-9a-f]*:[0-9a-f]*:[0-9a-f]*:[0-9a-f]*\)$/\1/' "$IB/$1/ports/1/gids/0"
}

# words <device>: of four bytes, that it has sent.
words() {
	cat "$IB/$1/ports/1/hw_counters/port_xmit_data"
}

remove_devices() {
	for name in "$CONFIG"/*; do
		echo 0 >"$name/enable" && rmdir "$name" || return 1
	done
}

# is_silent <device>: it has sent nothing for a moment. The core reads a device's counters at most
# every 10 ms, so the first look may see what it had sent before.
is_silent() {
	silent=$(packets "$1")
	usleep 200000
	[ "$(packets "$1")" -eq "$silent" ]
}

# link_flaps <device>: its link goes down, during which nothing is sent but what was under way, and
# comes back before those who send give up.
link_flaps() {
	echo down >"$CONFIG/$1/port1/state" || return
	retry 20 is_silent "$1" || why "$1 goes on to send after its link has gone"
	stopped=$?
	silent=$(packets "$1")
	echo active >"$CONFIG/$1/port1/state" || return
	retry 400 packets_beyond $((silent + 50)) "$1" ||
		why "$1 sends nothing once its link is back" || return
	return $stopped
}

# keep_sending <device> <command>: $sender runs the command, which makes the device send, again and
# again, as long as there is /tmp/busy, and fails with the first that does. The device sends by now.
keep_sending() {
	sending=$1 before=$(packets "$1")
	shift
	touch /tmp/busy
	(
		while [ -e /tmp/busy ]; do
			"$@" || why "$1 ended with $?" || exit
		done
	) &
	sender=$!
	retry_while $sender packets_beyond $((before + 50)) "$sending" ||
		why "$sending sends nothing for $1"
}

# flaps_under <device> <command>: its link, under what the command makes it send.
flaps_under() {
	keep_sending "$@" && link_flaps "$1"
	flapped=$?
	rm /tmp/busy
	wait $sender && [ $flapped -eq 0 ]
}

# Two ends of a link in one namespace, for what knows one only: end0 and veth0 reach each other
# by link-local addresses, since each knows its own. The kernel does not look for duplicates.
two_ends() {
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad &&
		echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad &&
		ip link add end0 type veth && ip link set end0 up && ip link set veth0 up &&
		retry 100 address veth0 >/dev/null && retry 100 address end0 >/dev/null
}

# address <network device>: its link-local address
address() {
	ip -6 addr show dev "$1" | sed -n 's|.*inet6 \(fe80:[^/]*\)/.*|\1|p' | grep .
}
