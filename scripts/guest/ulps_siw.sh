# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: another mainline driver on kverbs' core: siw, whose devices speak iWARP, by the
# kernel's TCP over a pair of network devices, and are connected by iw_cm. It knows one network
# namespace only, in which the ends of the pair reach each other by link-local addresses.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

devices() {
	two_ends && rdmalink add siw0 siw end0 && rdmalink add siw1 siw veth0
}

insert() {
	load kverbs contract=warn && load siw && load ib_uverbs && load rdma_ucm && devices
}

is_iwarp() {
	grep -q '^4: RNIC$' "$IB/siw0/node_type" && [ "$(cat "$IB/siw0/ports/1/link_layer")" = Ethernet ]
}

# Messages that are compared, of processes, which need the library of this driver.
pings() {
	both_ends_by_address rping -s -a :: -C 20 -V -- -c -a "$(address veth0)%end0" -C 20 -V
}

disk() {
	DISK_FAMILY=ipv6 DISK_AT=$(address veth0)%veth0 DISK_HOST=$(address veth0)%end0
	load nvmet-rdma && load nvme-rdma && target_up && nvme_connect && disk_holds /dev/nvme0n1
}

sent() {
	cat /sys/class/net/end0/statistics/tx_bytes
}

sent_beyond() {
	[ "$(sent)" -gt "$1" ]
}

# The host's device goes under reads, and takes its controller and disk along.
device_goes() {
	before=$(sent)
	dd if=/dev/nvme0n1 of=/dev/null bs=16k count=100000 iflag=direct 2>/dev/null &
	reader=$!
	retry 400 sent_beyond $((before + 200000)) && rdma link delete siw0 && is_gone $IB/siw0 || return 1
	wait $reader
	retry 200 [ ! -e /dev/nvme0n1 ]
}

# siw removes its devices when their network devices go, a little later; the target's listener goes
# with its own.
netdev_goes() {
	ip link del end0 && retry 100 is_gone $IB/siw1 && target_down && unload nvme-rdma nvmet-rdma
}

driver_goes() {
	unload siw && is_gone $IB/siw0 && is_gone $IB/siw1
}

insert || exit 1
check "a device of siw" is_iwarp
check "rping" pings
check "a disk over siw" disk
check "the host's device goes under traffic" device_goes
check "the network device goes" netdev_goes
check "devices come back" devices
check "rping, again" pings
check "a driver that goes takes its devices along" driver_goes
unload_all
