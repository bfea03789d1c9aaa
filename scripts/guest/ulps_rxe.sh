# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: a mainline driver on kverbs' core, and ULPs on its devices: rdma_rxe, whose
# packets cross a pair of network devices. It knows one network namespace only, in which the
# ends of the pair reach each other by link-local addresses.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

devices() {
	two_ends && rdmalink add rxe0 rxe end0 && rdmalink add rxe1 rxe veth0
}

insert() {
	load kverbs contract=warn && load rdma_rxe && load rdma_cm && devices
}

# refused_link <name> <type> <network device>
refused_link() {
	! rdmalink add "$@" 2>/dev/null
}

# One of no driver, one on no network device, one on a taken one, one of a name that is taken.
bad_links_are_refused() {
	refused_link rxe2 none lo && refused_link rxe2 rxe nodev && refused_link rxe2 rxe end0 &&
		refused_link rxe0 rxe lo && [ ! -e $IB/rxe2 ]
}

sent() {
	cat "$IB/$1/ports/1/hw_counters/sent_pkts"
}

# Each message is a packet, and so is each answer.
echoes() {
	before=$(sent rxe0)
	load kverbs_echo_client to="$(address veth0)%end0" && unload kverbs_echo_client &&
		sent_beyond $((before + 99))
}

disk() {
	DISK_FAMILY=ipv6 DISK_AT=$(address veth0)%veth0 DISK_HOST=$(address veth0)%end0
	load nvmet-rdma && load nvme-rdma && disk_over_rdma && unload nvme-rdma nvmet-rdma
}

sent_beyond() {
	[ "$(sent rxe0)" -gt "$1" ]
}

# Its messages are flushed, or it learns of the removal first.
ended_by_removal() {
	dmesg | grep -qE '1000000000 messages to .* and back: -(5|103)$'
}

# rdma_rxe removes its devices when their network devices go, a little later.
netdev_goes() {
	before=$(sent rxe0)
	insmod /modules/kverbs_echo_client.ko to="$(address veth0)%end0" rounds=1000000000 2>/dev/null &
	client=$!
	retry_while $client sent_beyond $((before + 100)) && ip link del end0 || return 1
	! wait $client && ended_by_removal && retry 100 is_gone $IB/rxe0 && retry 100 is_gone $IB/rxe1
}

driver_goes() {
	unload rdma_rxe && is_gone $IB/rxe0 && is_gone $IB/rxe1
}

insert || exit 1
check "links that cannot be are refused" bad_links_are_refused
load kverbs_echo_server || exit 1
check "messages from rxe0 to rxe1 and back" echoes
check "a disk over rdma_rxe" disk
check "the network device goes under traffic" netdev_goes
check "devices come back" devices
check "messages from rxe0 to rxe1 and back, again" echoes
unload kverbs_echo_server
check "a driver that goes takes its devices along" driver_goes
unload_all
