# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: a disk by SRP, from a target on the HCA SRP_HCA, by rdma_cm to the initiator
# on SRP_USER. Wants disk.sh and hosts.sh.

SRP_PORT=5555
SRP_HOST=10.0.0.1
SRP_HCA=emu0
SRP_USER=emu1

# srp_export <initiator>: what the target, which is loaded, takes for its name.
srp_export() {
	backstore_up && mkdir "$TARGET/srpt" || return 1
	tpg=$TARGET/srpt/$(guid "$SRP_HCA")/$(guid "$SRP_HCA") acl=$tpg/acls/$1
	mkdir -p "$tpg/lun/lun_0" && ln -s "$TARGET/core/fileio_0/disk" "$tpg/lun/lun_0/disk" &&
		mkdir "$acl" && mkdir "$acl/lun_0" && ln -s "$tpg/lun/lun_0" "$acl/lun_0/disk" &&
		echo 1 >"$tpg/enable"
}

srp_unexport() {
	echo 0 >"$tpg/enable" && rm "$acl/lun_0/disk" "$tpg/lun/lun_0/disk" &&
		rmdir "$acl/lun_0" "$acl" "$tpg/lun/lun_0" "$tpg" "${tpg%/*}" "$TARGET/srpt" \
			"$TARGET/core/fileio_0/disk"
}

# What it takes for the initiator's name is its own address, by rdma_cm.
srp_target_up() {
	load_ulp ib_srpt && srp_export $SRP_HOST &&
		echo $SRP_PORT >"$TARGET/srpt/discovery_auth/rdma_cm_port"
}

srp_target_down() {
	echo 0 >"$TARGET/srpt/discovery_auth/rdma_cm_port" && srp_unexport
}

# srp_login [<command that runs it elsewhere>]: the target goes by the GUID of a device.
srp_login() {
	id=$(sed 's/^0x//' /sys/module/ib_srpt/parameters/srpt_service_guid)
	"$@" sh -c "echo id_ext=$id,ioc_guid=$id,dest=$SRP_HOST:$SRP_PORT \
		>/sys/class/infiniband_srp/srp-$SRP_USER-1/add_target"
}
