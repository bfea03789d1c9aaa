# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: SRP on InfiniBand ports, on kverbs' core or on the kernel's own: the initiator asks
# the subnet administrator for the path to the target, and connects to a service ID there.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh
# shellcheck source=srp.sh
. /bin/srp.sh

# The target takes the GUID of the first HCA otherwise. Those of emulated ones begin with 02, as the
# service IDs do that the connection manager gives away itself, and it refuses others of these.
SERVICE=1000000000000001

load_target() {
	if on_mainline; then
		rmmod ib_srpt && insmod /lib/modules/ib_srpt.ko srpt_service_guid=0x$SERVICE
	else
		load ib_srpt srpt_service_guid=0x$SERVICE
	fi
}

login() {
	dgid=$(tr -d : <$IB/emu0/ports/1/gids/0)
	echo "id_ext=$SERVICE,ioc_guid=$SERVICE,dgid=$dgid,pkey=ffff,service_id=$SERVICE" \
		>/sys/class/infiniband_srp/srp-emu1-1/add_target
}

connects() {
	login && retry 200 [ -b /dev/sda ]
}

device_goes() {
	disk_goes /dev/sda emu1 && echo 1 >$CONFIG/emu1/enable &&
		retry 100 [ -e /sys/class/infiniband_srp/srp-emu1-1 ] && login &&
		retry 200 [ -b /dev/sda ] && disk_holds /dev/sda
}

# Without an administrator there is no path, and with it there is one again.
nobody_answers() {
	echo 0 >$CONFIG/emu0/port1/sm && ! login 2>/dev/null && echo 1 >$CONFIG/emu0/port1/sm
}

ends() {
	unload ib_srp && retry 200 is_gone /dev/sda && srp_unexport && unload ib_srpt
}

core_up && add_ib_devices && load_target && srp_export "$(guid emu1)" || exit 1
load_ulp ib_srp
check "without a subnet administrator nobody connects" nobody_answers
check "a disk by SRP on InfiniBand" connects
check "it holds what was written" disk_holds /dev/sda
check "the initiator's device goes under traffic, and comes back" device_goes
on_mainline || check "initiator and target end" ends
check "the devices go" remove_devices
unload_all
