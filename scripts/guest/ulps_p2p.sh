# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a machine of scripts/p2p-machine with QEMU's monitor and a disk: NVMe target
# copy offload. The kernel's own target, on kverbs' core, exports an NVMe drive whose memory
# buffer the data go through: the software HCA, whose PCI parent is beside the drive, moves them
# from there to the host and back, the drive from there to its medium and back.
#
# Who counts: the map of p2pdma, what was mapped for the HCA; the HCA, all that it sent and
# received; and QEMU, by its trace in the file TRACE, what the drive has read and written where,
# for the host of this guest to look at.
# shellcheck disable=SC2154

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh
# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

DRIVE=/dev/nvme0n1
DISK=/dev/nvme1n1
# Bytes that are written, and read.
DATA=$((2 * (DISK_MIB << 20)))
TRACING=$DEBUGFS/tracing
MONITOR=/dev/ttyS2

# --- the machine --------------------------------------------------------------------

is_published() {
	grep -qx 1 "$PCI/devices/$nvme0/p2pmem/published"
}

available() {
	cat "$PCI/devices/$nvme0/p2pmem/available"
}

# add_device_at <name> <network device> <PCI address>
add_device_at() {
	mkdir "$CONFIG/$1" && echo "$2" >"$CONFIG/$1/netdev" && echo "$3" >"$CONFIG/$1/pci" &&
		echo 1 >"$CONFIG/$1/enable"
}

drive_up() {
	load kverbs_p2pdma && load kverbs_bar_mem && load nvme && soon driven_by nvme "$nvme0" && soon is_published &&
		soon [ -b $DRIVE ]
}

insert() {
	drive_up && core_up && two_ends && add_device emu0 end0 &&
		add_device_at emu1 veth0 "$hca0" && load nvmet-rdma && load nvme-rdma
}

# --- the monitor --------------------------------------------------------------------

monitor() {
	printf '\n\n%s\n' "$*" >$MONITOR
}

# drive_trace_is <0|1>
drive_trace_is() {
	: >/tmp/monitor
	monitor info trace-events 'pci_nvme_map_addr*'
	retry 20 grep -q "pci_nvme_map_addr_cmb : state $1" /tmp/monitor &&
		grep -q "pci_nvme_map_addr : state $1" /tmp/monitor
}

# drive_trace <on|off> <0|1>
drive_trace() {
	monitor trace-event 'pci_nvme_map_addr*' "$1"
	retry 20 drive_trace_is "$2"
}

drive_trace_begins() {
	stty -F $MONITOR raw -echo
	cat $MONITOR >>/tmp/monitor &
	reader_of_monitor=$!
	monitor logfile "$TRACE"
	drive_trace on 1
}

drive_trace_ends() {
	drive_trace off 0
	ended=$?
	kill "$reader_of_monitor"
	# Its end must not interrupt what reports the result.
	wait "$reader_of_monitor"
	return $ended
}

# --- the counters -------------------------------------------------------------------

# mapped_of <provider>: bytes of its memory that were mapped for the target's HCA, by bus address.
mapped_of() {
	client=$(basename "$(readlink -f $IB/emu1/device)")
	awk -v from="provider=$1" -v to="client=$client" '
		/ p2p_map: / && / by=bus / && / ret=0$/ && index($0, from) && index($0, to " ") {
			sub(/.* bytes=/, ""); sum += $1 }
		END { printf "%d\n", sum }' "$TRACING/trace"
}

# What the target's HCA has sent and received, in bytes.
hca_moved() {
	(
		cd $IB/emu1/ports/1/hw_counters || exit 1
		echo $((4 * ($(cat port_xmit_data) + $(cat port_rcv_data))))
	)
}

# --- what is checked ----------------------------------------------------------------

# exported [<provider>]: with the memory of the nearest, if none is named. The host waits ten seconds
# for a command whose answer is lost.
exported() {
	echo 10 >/sys/module/nvme_core/parameters/io_timeout
	DISK_FAMILY=ipv6 DISK_AT=$(address veth0)%veth0 DISK_HOST=$(address veth0)%end0
	DISK_NODE=$DISK DISK_OPTIONS=,reconnect_delay=1
	# Data that come with a command are in memory of the system.
	DISK_INLINE=0
	target_exports $DRIVE p2pmem "${1:-1}" && nvme_connect
}

# uses_memory_of <provider>
uses_memory_of() {
	dmesg | grep -q "nvmet: using p2pmem on $1 for nsid 1"
}

written_and_read() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$DISK_MIB 2>/dev/null
	echo >"$TRACING/trace"
	echo 1 >"$TRACING/events/kverbs_p2pdma/p2p_map/enable"
	before=$(hca_moved)
	dd if=/tmp/pattern of=$DISK bs=1M oflag=direct 2>/dev/null &&
		dd if=$DISK of=/tmp/back bs=1M count=$DISK_MIB iflag=direct 2>/dev/null &&
		cmp /tmp/pattern /tmp/back || return 1
	moved=$(($(hca_moved) - before))
	echo 0 >"$TRACING/events/kverbs_p2pdma/p2p_map/enable"
}

# The HCA moved all data, and little else: commands and completions, of 64 and 16 bytes.
hca_moved_data() {
	rest=$((moved - DATA))
	[ $rest -gt 0 ] && [ $rest -lt 65536 ]
}

# all_was_mapped <provider>
all_was_mapped() {
	mapped=$(mapped_of "$1")
	result "progress: the HCA moved $moved bytes, $mapped of them from and to memory of $1"
	hca_moved_data && [ "$mapped" = $DATA ]
}

# What the counters say when the data go through memory of the system: the target does not ask for
# the drive's if its HCA has no PCI parent.
none_was_mapped() {
	echo 0 >$CONFIG/emu1/enable && echo >$CONFIG/emu1/pci && echo 1 >$CONFIG/emu1/enable && exported &&
		written_and_read && hca_moved_data && [ "$(mapped_of "$nvme0")" = 0 ] &&
		host_goes && target_down
}

drive_holds() {
	echo 3 >/proc/sys/vm/drop_caches
	dd if=$DRIVE of=/tmp/back bs=1M count=$DISK_MIB 2>/dev/null && cmp /tmp/pattern /tmp/back
}

# The provider that the user has named, which is not the nearest.
through_another() {
	exported "$iv0" && uses_memory_of "$iv0" && written_and_read && all_was_mapped "$iv0" &&
		host_goes && target_down
}

memory_is_free() {
	[ "$(available)" = "$free" ]
}

host_goes() {
	echo 1 >/sys/class/nvme/nvme1/delete_controller && retry 200 is_gone $DISK
}

# $reader reads the disk again and again, until that fails, and the HCA sends for it by now.
read_until_failure() {
	before=$(packets emu0)
	while dd if="$DISK" of=/dev/null bs=16k iflag=direct 2>/dev/null; do :; done &
	reader=$!
	retry_while $reader packets_beyond $((before + 50)) emu0
}

# The drive is taken from its driver under reads, which fail; nothing waits for the target. If the HCA
# finds the memory of a read gone, the target does not notice, and the host's command times out.
drive_goes() {
	read_until_failure && unbind "$nvme0" || return 1
	wait $reader
	[ ! -e "$PCI/devices/$nvme0/p2pmem" ] && host_goes && target_down
}

drive_comes_back() {
	echo "$nvme0" >$PCI/drivers/nvme/bind && soon is_published && soon [ -b $DRIVE ] &&
		exported && drive_holds
}

# The target's HCA goes under reads, for good, and its listener with it.
hca_goes() {
	read_until_failure && echo 0 >$CONFIG/emu1/enable && is_gone $IB/emu1 && host_goes ||
		return 1
	wait $reader
	target_down && retry 100 memory_is_free && echo 1 >$CONFIG/emu1/enable
}

# --- the run ------------------------------------------------------------------------

insert || exit 1
provide "$iv0"
free=$(available)
check "the target exports the drive with its memory" exported
check "it uses this memory, of the nearest provider" uses_memory_of "$nvme0"
check "the drive is traced" drive_trace_begins
check "what was written can be read" written_and_read
check "the trace ends" drive_trace_ends
check "no byte of data was mapped elsewhere" all_was_mapped "$nvme0"
check "the drive has it" drive_holds
check "all of the drive's memory is free" memory_is_free
check "the drive goes under traffic" drive_goes
check "it comes back, and is exported again" drive_comes_back
check "the target's device goes under traffic, and leaves no memory allocated" hca_goes
check "a provider that the user names is taken" through_another
check "without a PCI parent, no byte goes through this memory" none_was_mapped
unload nvme-rdma nvmet-rdma
check "the devices go" remove_devices
unload_all
ip link del end0
