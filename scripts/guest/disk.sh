# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: a disk over RDMA at 10.0.0.1, by nvmet-rdma and nvme-rdma, which are
# loaded.

NVMET=/sys/kernel/config/nvmet
DISK_MIB=16

target_up() {
	dd if=/dev/zero of=/tmp/disk bs=1M count=$DISK_MIB 2>/dev/null
	mkdir $NVMET/subsystems/disk && echo 1 >$NVMET/subsystems/disk/attr_allow_any_host &&
		mkdir $NVMET/subsystems/disk/namespaces/1 || return 1
	(
		cd $NVMET/subsystems/disk/namespaces/1 || exit 1
		echo 1 >buffered_io && printf /tmp/disk >device_path && echo 1 >enable
	) && mkdir $NVMET/ports/1 || return 1
	(
		cd $NVMET/ports/1 || exit 1
		echo rdma >addr_trtype && echo ipv4 >addr_adrfam && echo 10.0.0.1 >addr_traddr &&
			echo 4420 >addr_trsvcid
	) && ln -s $NVMET/subsystems/disk $NVMET/ports/1/subsystems/disk
}

target_down() {
	rm $NVMET/ports/1/subsystems/disk && rmdir $NVMET/ports/1 &&
		rmdir $NVMET/subsystems/disk/namespaces/1 $NVMET/subsystems/disk
}

disk_holds() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$DISK_MIB 2>/dev/null &&
		dd if=/tmp/pattern of=/dev/nvme0n1 bs=1M conv=fsync 2>/dev/null &&
		echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/pattern /dev/nvme0n1 &&
		cmp /tmp/pattern /tmp/disk
}

disk_over_rdma() {
	target_up && echo "transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=disk" >/dev/nvme-fabrics &&
		retry 200 [ -b /dev/nvme0n1 ] && disk_holds &&
		echo 1 >/sys/class/nvme/nvme0/delete_controller && target_down
}
