# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the software HCA under the kernel's own ib_core. Load, run, unload, with
# InfiniBand ports and with Ethernet ports; what sysfs shows; devices and network devices that
# go; with DISK=yes a disk over RDMA, by the kernel's own rdma_cm, nvmet-rdma and nvme-rdma.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh
# shellcheck source=disk.sh
. /bin/disk.sh

IB=/sys/class/infiniband
CONFIG=/sys/kernel/config/kverbs_emu
# Mainline has no counterpart of ctx=thread.
MAINLINE_CONTEXTS="direct softirq workqueue unbound"

insert() {
	load kverbs_emu "$@" && load kverbs_pingpong run=0
}

# shows <file below the device's directory> <what its first line begins with>
shows() {
	read -r line <"$IB/$1" && case $line in "$2"*) true ;; *) false ;; esac && return
	fail "$1 shows '$line', not '$2'"
	return 1
}

counted() {
	read -r packets <"$IB/emu0/ports/1/hw_counters/port_xmit_packets" && [ "$packets" -gt 0 ]
}

sysfs_of_infiniband() {
	shows emu0/node_type "1: CA" && shows emu0/fw_ver 1.0.0 &&
		shows emu0/node_desc "kverbs software HCA" &&
		shows emu0/ports/1/state "4: ACTIVE" && shows emu0/ports/1/phys_state "5: LinkUp" &&
		shows emu0/ports/1/link_layer InfiniBand && shows emu0/ports/1/rate "100 Gb/sec" &&
		shows emu0/ports/1/lid 0x && shows emu0/ports/1/pkeys/0 0xffff &&
		shows emu0/ports/1/gids/0 fe80:
}

sysfs_of_ethernet() {
	shows emu0/ports/1/link_layer Ethernet && shows emu0/ports/1/state "4: ACTIVE" &&
		shows emu0/ports/1/gid_attrs/ndevs/0 dummy0 &&
		grep -q "RoCE v2" $IB/emu0/ports/1/gid_attrs/types/*
}

# Processes find it as what it is to them.
open_to_processes() {
	[ -c /dev/infiniband/uverbs0 ] &&
		read -r line </sys/class/infiniband_verbs/uverbs0/ibdev && [ "$line" = emu0 ] &&
		read -r line </sys/class/infiniband_verbs/uverbs0/abi_version && [ "$line" = 2 ]
}

# A device that goes under traffic, which ends.
device_goes() {
	mkdir $CONFIG/emu2 && echo 1 >$CONFIG/emu2/enable || return 1
	pingpong initiator=emu2 target=emu0 iters=1000000000 &
	retry_while $! grep -q '[1-9]' $IB/emu2/ports/1/hw_counters/port_xmit_packets &&
		echo 0 >$CONFIG/emu2/enable && [ ! -e $IB/emu2 ] && rmdir $CONFIG/emu2 && wait
}

# The device goes before the port of the target: ulps.rst has what lockdep says otherwise.
disk_over_link() {
	DISK_HOST=10.0.3.1
	rdmalink add disk emu dummy3 && disk_of_target && rdmalink delete disk && target_down
}

# A network device that goes, with the port that is bound to it left behind.
netdev_goes() {
	ip link del dummy1 && shows emu1/ports/1/state "1: DOWN" && pingpong_ok target=emu0 iters=500
}

# --- devices by netlink ---

# refused <command>: it must fail, and only complain
refused() {
	! "$@" 2>/dev/null || { fail "'$*' succeeded"; return 1; }
}

link_adds() {
	rdmalink add link0 emu dummy2 && shows link0/ports/1/state "4: ACTIVE" &&
		shows link0/ports/1/gid_attrs/ndevs/0 dummy2 &&
		pingpong_ok initiator=link0 target=emu0 iters=500
}

# A network device serves one port, a name one device; there must be a network device; and
# what has a directory is removed there.
link_refuses() {
	refused rdmalink add link1 emu dummy2 && refused rdmalink add emu0 emu dummy3 &&
		refused rdmalink add link1 emu nodev && refused rdmalink delete emu0 &&
		[ ! -e $IB/link1 ]
}

link_deletes() {
	rdmalink delete link0 && [ ! -e $IB/link0 ]
}

# Twenty of each, at once: whatever comes first, nothing is left of it.
links_race() {
	(
		for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
			rdmalink add link1 emu dummy2 2>/dev/null
		done
	) &
	for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
		rdmalink delete link1 2>/dev/null
	done
	wait
	[ ! -e $IB/link1 ] || rdmalink delete link1
}

link_goes_with_netdev() {
	rdmalink add link2 emu dummy2 && ip link del dummy2 && retry 100 [ ! -e $IB/link2 ]
}

# knows_state <device>: whether the core's copy of its port's state is right.
knows_state() {
	insmod /modules/kverbs_mainline_check.ko cached_of="$1" 2>/dev/null &&
		rmmod kverbs_mainline_check
}

# The core reads the state of a port early in the registration. The link goes down at one moment
# of it or another.
link_changes_meanwhile() {
	ip link add dummy4 type dummy && mkdir $CONFIG/emu3 && echo dummy4 >$CONFIG/emu3/netdev ||
		return 1
	for moment in $(seq 1 3 90); do
		ip link set dummy4 up
		echo 1 >$CONFIG/emu3/enable &
		usleep $((moment * 1000))
		ip link set dummy4 down
		wait
		retry 40 knows_state emu3 || {
			fail "the link went down after $moment ms, and the core does not know"
			return 1
		}
		echo 0 >$CONFIG/emu3/enable
	done
	rmdir $CONFIG/emu3 && ip link del dummy4
}

# --- the run ------------------------------------------------------------------

insert || exit 1
check "sysfs shows an InfiniBand device" sysfs_of_infiniband
for ctx in $MAINLINE_CONTEXTS; do
	check "pingpong, $ctx" all_runs "$ctx"
done
check "pingpong on one device" pingpong_ok initiator=emu0 target=emu0 iters=500
check "messages are counted" counted
check "the device keeps to its limits, and serves a process's memory" load kverbs_mainline_check
check "processes can open it" open_to_processes
check "a device goes under traffic" device_goes
unload_all
check "nothing is left in sysfs" [ ! -e $IB/emu0 ]

for i in 0 1 2 3; do
	add_dummy dummy$i 10.0.$i.1/24
done
insert netdev=dummy0,dummy1 || exit 1
check "sysfs shows an Ethernet device" sysfs_of_ethernet
check "pingpong over Ethernet ports" all_runs workqueue
check "a device by netlink" link_adds
check "what netlink refuses" link_refuses
check "a device is deleted by netlink" link_deletes
check "devices come and go by netlink at once" links_race
check "a device by netlink goes with its network device" link_goes_with_netdev
[ "${DISK:-no}" = no ] || check "a disk over RDMA" disk_over_link
rmmod kverbs_mainline_check 2>/dev/null
check "a link changes while a device is registered" link_changes_meanwhile
check "a network device goes" netdev_goes
rdmalink add link3 emu dummy3 || fail "cannot add link3"
unload_all
check "a device by netlink goes with the module" [ ! -e $IB/link3 ]
