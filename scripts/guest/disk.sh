# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: a disk over RDMA at DISK_HOST, by nvmet-rdma and nvme-rdma, which are
# loaded. A link-local address goes by one name where it is, DISK_AT, and by another elsewhere.
# What traffic and devices are needed for wants hosts.sh, too.
# shellcheck disable=SC2154

DISK_HOST=10.0.0.1
DISK_AT=
DISK_FAMILY=ipv4
# Bytes up to which the target takes the data of a write with its command; empty: the default.
DISK_INLINE=
# Where the disk appears at the host, and what else the host is told when it connects.
DISK_NODE=/dev/nvme0n1
DISK_OPTIONS=

NVMET=/sys/kernel/config/nvmet
DISK_MIB=16
TARGET=/sys/kernel/config/target

# target_exports <file or device> <attribute of its namespace> <value>
target_exports() {
	mkdir $NVMET/subsystems/disk && echo 1 >$NVMET/subsystems/disk/attr_allow_any_host &&
		mkdir $NVMET/subsystems/disk/namespaces/1 || return 1
	(
		cd $NVMET/subsystems/disk/namespaces/1 || exit 1
		echo "$3" >"$2" && printf %s "$1" >device_path && echo 1 >enable
	) && mkdir $NVMET/ports/1 || return 1
	(
		cd $NVMET/ports/1 || exit 1
		[ -z "$DISK_INLINE" ] || echo "$DISK_INLINE" >param_inline_data_size || exit 1
		echo rdma >addr_trtype && echo $DISK_FAMILY >addr_adrfam &&
			echo "${DISK_AT:-$DISK_HOST}" >addr_traddr && echo 4420 >addr_trsvcid
	) && ln -s $NVMET/subsystems/disk $NVMET/ports/1/subsystems/disk
}

target_up() {
	dd if=/dev/zero of=/tmp/disk bs=1M count=$DISK_MIB 2>/dev/null
	target_exports /tmp/disk buffered_io 1
}

target_down() {
	rm $NVMET/ports/1/subsystems/disk && rmdir $NVMET/ports/1 &&
		rmdir $NVMET/subsystems/disk/namespaces/1 $NVMET/subsystems/disk
}

# disk_reads_back <device>: what is written there, which is in /tmp/pattern then, can be read.
disk_reads_back() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$DISK_MIB 2>/dev/null &&
		dd if=/tmp/pattern of="$1" bs=1M conv=fsync 2>/dev/null &&
		echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/pattern "$1"
}

# disk_holds <device>: the same, and the file behind it has it.
disk_holds() {
	disk_reads_back "$1" && cmp /tmp/pattern /tmp/disk
}

# fio_runs <options>: random writes of a file of 8 MiB in /tmp/files, or what verifies them.
fio_runs() {
	fio --name=file --directory=/tmp/files --ioengine=psync --thread --direct=1 --bs=16k --size=8m \
		--rw=randwrite --verify=crc32c --verify_fatal=1 "$@" >/tmp/fio 2>&1 &&
		grep -q 'err= 0' /tmp/fio && return
	cat /tmp/fio
	return 1
}

# disk_has_files <disk>: a file system on it, in which fio verifies what it has written, after it
# was mounted again.
disk_has_files() {
	mkdir -p /tmp/files && mkfs.ext4 -q "$1" && mount -t ext4 "$1" /tmp/files &&
		fio_runs --do_verify=0 && umount /tmp/files && mount -t ext4 "$1" /tmp/files &&
		fio_runs --verify_only && umount /tmp/files && return
	umount /tmp/files
	return 1
}

# read_disk <disk> <HCA> [<file>]: $reader copies the disk there, and the HCA sends for it by now.
read_disk() {
	before=$(packets "$2")
	dd if="$1" of="${3:-/dev/null}" bs=16k iflag=direct 2>/dev/null &
	reader=$!
	retry 400 packets_beyond $((before + 50)) "$2"
}

# copy_disk <disk>: into /tmp/read
copy_disk() {
	dd if="$1" of=/tmp/read bs=16k iflag=direct 2>/tmp/dd && return
	cat /tmp/dd
	return 1
}

# link_of_disk_goes <disk> <HCA>: under reads, which wait, and go on.
link_of_disk_goes() {
	flaps_under "$2" copy_disk "$1" && disk_holds "$1"
}

# target_stops <disk> <HCA> <command that stops the target> <command that starts it>: under reads,
# which wait until the initiator has connected again.
target_stops() {
	keep_sending "$2" copy_disk "$1" && $3 && retry 400 is_silent "$2" && kill -0 "$sender" && $4
	stopped=$?
	rm /tmp/busy
	wait "$sender" && [ $stopped -eq 0 ] && cmp /tmp/read /tmp/disk && disk_holds "$1"
}

# disk_goes <disk> <HCA>: the initiator's HCA goes under reads, which end, and takes its disk along.
disk_goes() {
	read_disk "$1" "$2" && echo 0 >"$CONFIG/$2/enable" || return 1
	wait $reader
	retry 200 is_gone "$1"
}

nvme_connect() {
	echo "transport=rdma,traddr=$DISK_HOST,trsvcid=4420,nqn=disk$DISK_OPTIONS" >/dev/nvme-fabrics &&
		retry 200 [ -b $DISK_NODE ]
}

# The target is left.
disk_of_target() {
	target_up && nvme_connect && disk_holds /dev/nvme0n1 &&
		echo 1 >/sys/class/nvme/nvme0/delete_controller
}

disk_over_rdma() {
	disk_of_target && target_down
}

# A disk of the SCSI target whose contents are those of /tmp/disk.
backstore_up() {
	dd if=/dev/zero of=/tmp/disk bs=1M count=$DISK_MIB 2>/dev/null
	mkdir -p $TARGET/core/fileio_0/disk || return 1
	(
		cd $TARGET/core/fileio_0/disk || exit 1
		echo "fd_dev_name=/tmp/disk,fd_dev_size=$((DISK_MIB << 20)),fd_buffered_io=1" >control &&
			echo 1 >enable
	)
}
