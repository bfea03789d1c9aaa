# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: measures the kernel's own ULPs on its own core, over the software HCA and over
# rdma_rxe: writes and reads of MIB, 1 MiB a call, that pass by the page cache of who makes them, from
# a device to itself. The other end keeps them in memory. Each is a line "row: how=... ulp=... device=...
# way=... bytes=... ns=...": nanoseconds in which the CPU was not idle, if instructions are counted, or
# all.
#
#   ULPS  some of nvme, srp and nfs, separated by colons
#   HOW   count or time, which is said in each row
#   MIB   what is moved each way, into a disk or file of DISK_MIB
#   IDLE  in real time: see wait_idle

# Initiators are where their targets are, without a command that would run them elsewhere.
# shellcheck disable=SC2119

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh
# shellcheck source=nfs.sh
. /bin/nfs.sh
# shellcheck source=srp.sh
. /bin/srp.sh

DISK_MIB=64
DISK_HOST=10.0.0.1
NFS_CLIENT=10.0.0.1
CORE=mainline

# Sets now, and idle: nanoseconds since the guest has booted, and those of them in which it had
# nothing to do.
read_clock() {
	cat /proc/timer_list >/tmp/clock
	now=$(sed -n 's/^now at \([0-9]*\) nsecs$/\1/p' /tmp/clock)
	idle=$(awk '$1 ~ /^[.](idle|iowait)_sleeptime$/ { ns += $3 } END { printf "%.0f\n", ns }' /tmp/clock)
}

# copy_all <times> <arguments of dd>
copy_all() {
	for _ in $(seq "$1"); do
		dd bs=1M count=$DISK_MIB "$2" "$3" "$4" 2>/tmp/dd || {
			cat /tmp/dd
			return 1
		}
	done
}

# measure <ulp> <device> <way> <arguments of dd>
measure() {
	wait_idle && read_clock || return
	began=$now rested=$idle
	copy_all $((MIB / DISK_MIB)) "$4" "$5" "$6" && read_clock || return
	ns=$((now - began))
	[ "$HOW" = time ] || ns=$((ns - idle + rested))
	result "row: how=$HOW ulp=$1 device=$2 way=$3 bytes=$((MIB << 20)) ns=$ns"
	result "progress: $1 over $2: $3"
}

# both_ways <ulp> <device> <disk or file>
both_ways() {
	measure "$1" "$2" write if=/dev/zero of="$3" oflag=direct &&
		measure "$1" "$2" read if="$3" of=/dev/null iflag=direct
}

nvme_runs() {
	target_up && nvme_connect && both_ways nvme "$1" /dev/nvme0n1 &&
		echo 1 >/sys/class/nvme/nvme0/delete_controller && retry 200 is_gone /dev/nvme0n1 &&
		target_down
}

srp_runs() {
	SRP_HCA=$1 SRP_USER=$1
	srp_target_up && srp_login && retry 200 [ -b /dev/sda ] && both_ways srp "$1" /dev/sda || return
	# Debian's modules stay, so that the initiator has to be told.
	echo 1 >/sys/block/sda/device/delete && retry 200 is_gone /dev/sda || return
	for port in /sys/class/srp_remote_ports/*/delete; do
		echo 1 >"$port" || return
	done
	srp_target_down
}

nfs_runs() {
	nfs_server_up && nfs_mount && both_ways nfs "$1" /tmp/there/file && nfs_ends
}

# all_over <device>
all_over() {
	for ulp in $(echo "$ULPS" | tr : ' '); do
		"${ulp}_runs" "$1" || fail "$ulp over $1"
	done
}

# The HCA and rdma_rxe are not there at the same time.
rmmod rdma_rxe && add_dummy dummy0 10.0.0.1/24 && core_up && add_device emu0 dummy0 || exit 1
all_over emu0
remove_devices && unload_all && insmod /lib/modules/rdma_rxe.ko &&
	rdmalink add rxe0 rxe dummy0 || exit 1
all_over rxe0
