# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own RDS, on kverbs' core or on mainline's. It knows one network
# namespace, in which the ends of a link reach each other by link-local addresses. When it goes, and
# when its device goes, it breaks the contract: see ulps.rst.

# shellcheck source=hosts.sh
. /bin/hosts.sh

MESSAGES=200

insert() {
	core_up && two_ends && add_device emu0 end0 && add_device emu1 veth0 && load_ulp rds_rdma
}

# serve: until the server can take messages. What it needs to be there is its socket.
serve() {
	rds_check serve "$(address veth0)" veth0 &
	server=$!
	retry 100 is_bound
}

is_bound() {
	grep -q rds_check "/proc/$server/cmdline" && readlink "/proc/$server/fd/3" | grep -q socket
}

# Messages of 50,000 bytes.
echoes() {
	before=$(words emu0)
	rds_check send "$(address end0)" end0 "$(address veth0)" end0 $MESSAGES &&
		[ $(($(words emu0) - before)) -ge $((MESSAGES * 12500)) ]
}

link_goes() {
	flaps_under emu0 rds_check send "$(address end0)" end0 "$(address veth0)" end0 $MESSAGES
}

# The device of the sender goes and comes back. RDS connects again, and no message is lost.
device_goes() {
	before=$(packets emu0)
	rds_check send "$(address end0)" end0 "$(address veth0)" end0 $((MESSAGES * 10)) &
	sender=$!
	retry_while $sender packets_beyond $((before + 500)) emu0 && echo 0 >$CONFIG/emu0/enable &&
		[ ! -e $IB/emu0 ] && echo 1 >$CONFIG/emu0/enable && wait $sender
}

# The sender is killed. What is on its way to it is lost, and nobody else's.
sender_is_killed() {
	before=$(packets emu0)
	rds_check send "$(address end0)" end0 "$(address veth0)" end0 $((MESSAGES * 100)) &
	sender=$!
	retry_while $sender packets_beyond $((before + 500)) emu0 && kill -KILL $sender || return 1
	wait $sender
	echoes
}

stop() {
	kill $server
	wait $server
	unload rds_rdma
}

insert || exit 1
serve || fail "no server"
on_mainline || contract_begins
check "messages of RDS" echoes
on_mainline || contract_kept "a transfer by RDS"
check "a link goes down under traffic, and comes back" link_goes
check "a sender is killed" sender_is_killed
# What RDS breaks then, mainline's core warns of.
on_mainline || check "a device goes under traffic, and comes back" device_goes
check "RDS ends" stop
on_mainline || contract_kept "the end of RDS" 7 8
check "the devices go" remove_devices
unload_all
