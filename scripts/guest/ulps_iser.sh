# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own iSER, iSCSI over RDMA, on kverbs' core or on mainline's, by
# Debian's open-iscsi. Both ends know one network namespace, in which the ends of a link reach each
# other by link-local addresses.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

NAME=iqn.2026-11.org.example:disk
TPG=$TARGET/iscsi/$NAME/tpgt_1

insert() {
	ip link set lo up && core_up && two_ends && add_device emu0 end0 && add_device emu1 veth0
}

target_is_up() {
	load_ulp ib_isert && backstore_up && mkdir -p $TPG/np/"[::]:3260" $TPG/lun/lun_0 || return 1
	(
		cd $TPG || exit 1
		ln -s $TARGET/core/fileio_0/disk lun/lun_0/disk && echo 0 >attrib/authentication &&
			echo 1 >attrib/generate_node_acls && echo 0 >attrib/demo_mode_write_protect &&
			echo 1 >enable && echo 1 >np/"[::]:3260"/iser
	)
}

target_ends() {
	(
		cd $TPG || exit 1
		echo 0 >np/"[::]:3260"/iser && echo 0 >enable && rm lun/lun_0/disk
	) && rmdir $TPG/np/"[::]:3260" $TPG/lun/lun_0 $TPG ${TPG%/*} $TARGET/iscsi \
		$TARGET/core/fileio_0/disk && unload ib_isert
}

# node <arguments of iscsiadm>
node() {
	iscsiadm -m node -T $NAME -p "$portal" "$@"
}

initiator_is_up() {
	portal="[$(address veth0)%end0]:3260"
	mkdir -p /etc/iscsi /run/lock/iscsi && : >/etc/iscsi/iscsid.conf &&
		echo "InitiatorName=$NAME-user" >/etc/iscsi/initiatorname.iscsi &&
		echo root:x:0:0::/:/bin/sh >/etc/passwd && load_ulp ib_iser || return 1
	# It ends its process group.
	setsid iscsid -f &
	retry 100 node -I iser -o new && node --login && retry 200 [ -b /dev/sda ]
}

# The target's device goes under reads, which wait until it is back and iscsid has connected
# again. With the initiator's, its SCSI host would go from sysfs, which is a child of the device
# that emu0 is on: reads go on, but iscsiadm does not find the session any more.
device_goes() {
	echo 3 >/proc/sys/vm/drop_caches
	read_disk /dev/sda emu0 /tmp/read && echo 0 >$CONFIG/emu1/enable &&
		is_gone $IB/emu1 && echo 1 >$CONFIG/emu1/enable || return 1
	wait $reader && cmp /tmp/read /tmp/disk && disk_holds /dev/sda
}

disable() {
	echo 0 >$TPG/enable
}

enable() {
	echo 1 >$TPG/enable
}

initiator_ends() {
	node --logout && retry 200 is_gone /dev/sda && iscsiadm -k 0 && wait && unload ib_iser
}

# carried: 16 MiB from the initiator, and back.
carried() {
	[ "$(words emu0)" -ge $((DISK_MIB << 18)) ] && [ "$(words emu1)" -ge $((DISK_MIB << 18)) ]
}

insert || exit 1
check "an iSCSI target on RDMA" target_is_up
check "a disk by iSER" initiator_is_up
check "it holds what was written" disk_holds /dev/sda
check "RDMA has carried it" carried
check "a link goes down under traffic, and comes back" link_of_disk_goes /dev/sda emu0
check "the target stops under traffic, and starts again" target_stops /dev/sda emu0 disable enable
check "the target's device goes under traffic, and comes back" device_goes
check "the initiator ends" initiator_ends
check "the target ends" target_ends
check "the devices go" remove_devices
unload_all
