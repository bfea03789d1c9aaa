# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own block devices over RDMA, on kverbs' core or on its own: SRP from one
# network namespace to another; RNBD and NVMe, which know one namespace, from one end of a link to the
# other. With FILES, each has a file system for a while.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh
# shellcheck source=srp.sh
. /bin/srp.sh

insert() {
	two_hosts && core_up && add_device emu0 near0 && add_device_there emu1 veth0 &&
		two_ends && add_device emu2 end0 && add_device emu3 veth0
}

# --- SRP --------------------------------------------------------------------------------

srp_connects() {
	load_ulp ib_srp && srp_login there && retry 200 [ -b /dev/sda ]
}

srp_device_goes() {
	disk_goes /dev/sda emu1 && there sh -c "echo 1 >$CONFIG/emu1/enable" &&
		retry 100 [ -e $IB/emu1 ] && srp_login there && retry 200 [ -b /dev/sda ] &&
		disk_holds /dev/sda
}

srp_disables() {
	echo 0 >"$tpg/enable"
}

srp_enables() {
	echo 1 >"$tpg/enable"
}

# It tries to connect again each second, not after ten.
srp_target_stops() {
	echo 1 >"$(echo /sys/class/srp_remote_ports/port-*)/reconnect_delay" &&
		target_stops /dev/sda emu1 srp_disables srp_enables
}

srp_ends() {
	unload ib_srp && retry 200 is_gone /dev/sda && srp_target_down && unload ib_srpt
}

# --- RNBD -------------------------------------------------------------------------------

rnbd_map() {
	echo "sessname=s path=ip:$(address veth0)%end0 device_path=dev/loop0" \
		>/sys/class/rnbd-client/ctl/map_device && retry 100 [ -b /dev/rnbd0 ]
}

rnbd_connects() {
	dd if=/dev/zero of=/tmp/disk bs=1M count=$DISK_MIB 2>/dev/null
	losetup /dev/loop0 /tmp/disk && load rnbd-server && load rnbd-client && rnbd_map
}

# The client's HCA goes under reads, and its path is closed: somebody must open it again.
rnbd_device_goes() {
	read_disk /dev/rnbd0 emu2 && echo 0 >$CONFIG/emu2/enable &&
		is_gone $IB/emu2 && echo 1 >$CONFIG/emu2/enable || return 1
	wait $reader
	retry 100 rnbd_reconnects && retry 200 rnbd_is_connected && disk_holds /dev/rnbd0
}

# The server ends the session under reads, which fail.
rnbd_server_disconnects() {
	keep_sending emu2 copy_disk /dev/rnbd0 &&
		echo 1 >"$(echo /sys/class/rtrs-server/s/paths/*)/disconnect" || return 1
	! wait "$sender" && rm /tmp/busy && retry 100 rnbd_reconnects && retry 200 rnbd_is_connected &&
		disk_holds /dev/rnbd0
}

rnbd_reconnects() {
	echo 1 2>/dev/null >"$(echo /sys/class/rtrs-client/s/paths/*)/reconnect"
}

rnbd_is_connected() {
	grep -q '^connected' /sys/class/rtrs-client/s/paths/*/state
}

rnbd_ends() {
	echo normal >/sys/block/rnbd0/rnbd/unmap_device && retry 100 is_gone /dev/rnbd0 &&
		unload rnbd-client rnbd-server rtrs-client rtrs-server rtrs-core &&
		losetup -d /dev/loop0
}

# --- NVMe -------------------------------------------------------------------------------

nvme_connects() {
	DISK_FAMILY=ipv6 DISK_AT=$(address veth0)%veth0 DISK_HOST=$(address veth0)%end0
	DISK_OPTIONS=,reconnect_delay=1
	load_ulp nvmet-rdma && load_ulp nvme-rdma && target_up && nvme_connect
}

nvme_unlinks() {
	rm $NVMET/ports/1/subsystems/disk
}

nvme_links() {
	ln -s $NVMET/subsystems/disk $NVMET/ports/1/subsystems/disk
}

nvme_device_goes() {
	disk_goes /dev/nvme0n1 emu2 && echo 1 >$CONFIG/emu2/enable && retry 100 nvme_connect &&
		disk_holds /dev/nvme0n1
}

# The target's HCA goes under reads, for good: the host tries to connect again until it is told to
# give up. The target does not listen then, and its port can go without what lockdep complains of
# otherwise: see ulps.rst.
nvme_target_goes() {
	read_disk /dev/nvme0n1 emu2 && echo 0 >$CONFIG/emu3/enable &&
		is_gone $IB/emu3 && retry 200 nvme_is connecting &&
		echo 1 >/sys/class/nvme/nvme0/delete_controller || return 1
	wait $reader
	retry 200 is_gone /dev/nvme0n1
}

# nvme_is <state>
nvme_is() {
	grep -qx "$1" /sys/class/nvme/nvme0/state
}

nvme_ends() {
	target_down && unload nvme-rdma nvmet-rdma
}

# --- the run ----------------------------------------------------------------------------

# disk_runs <kind>: DISKS are those that this run has, all if it is not set.
disk_runs() {
	case " ${DISKS:-srp rnbd nvme} " in
	*" $1 "*) ;;
	*) false ;;
	esac
}

# Where there are the programs for it.
files() {
	[ -z "${FILES:-}" ] || check "a file system on it holds what fio has written" disk_has_files "$1"
}

insert || exit 1
! disk_runs srp || {
	srp_target_up || fail "no SRP target"
	check "a disk by SRP" srp_connects
	check "it holds what was written" disk_holds /dev/sda
	files /dev/sda
	check "a link goes down under traffic, and comes back" link_of_disk_goes /dev/sda emu1
	check "the target stops under traffic, and starts again" srp_target_stops
	check "the initiator's device goes under traffic, and comes back" srp_device_goes
	check "initiator and target end" srp_ends
}
# Debian's kernels do not have it.
on_mainline || ! disk_runs rnbd || {
	check "a disk by RNBD" rnbd_connects
	check "it holds what was written" disk_holds /dev/rnbd0
	files /dev/rnbd0
	check "a link goes down under traffic, and comes back" link_of_disk_goes /dev/rnbd0 emu2
	check "the server disconnects under traffic" rnbd_server_disconnects
	check "the client's device goes under traffic, and comes back" rnbd_device_goes
	check "client and server end" rnbd_ends
}
! disk_runs nvme || {
	check "a disk by NVMe" nvme_connects
	check "it holds what was written" disk_holds /dev/nvme0n1
	files /dev/nvme0n1
	check "a link goes down under traffic, and comes back" link_of_disk_goes /dev/nvme0n1 emu2
	# Lockdep, which stock kernels have not, complains of that: see ulps.rst.
	[ -e /proc/lockdep ] ||
		check "the target stops under traffic, and starts again" target_stops /dev/nvme0n1 emu2 \
			nvme_unlinks nvme_links
	check "the host's device goes under traffic, and comes back" nvme_device_goes
	check "the target's device goes under traffic" nvme_target_goes
	check "host and target end" nvme_ends
}
check "the devices go" remove_devices
unload_all
ip link del end0
hosts_end
