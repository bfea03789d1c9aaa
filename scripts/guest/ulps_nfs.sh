# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own NFS over RDMA, on kverbs' core or on mainline's. The server is in
# the first network namespace, the client in another.

# shellcheck source=hosts.sh
. /bin/hosts.sh
# shellcheck source=files.sh
. /bin/files.sh
# shellcheck source=nfs.sh
. /bin/nfs.sh

insert() {
	two_hosts && core_up && add_device emu0 near0 && add_device_there emu1 veth0
}

# moved <words before> <device>: it has sent the file since.
moved() {
	[ $(($(words "$2") - $1)) -ge $((FILE_MIB << 18)) ]
}

# The server has what was written, and the client reads it from there.
file_is_right() {
	before=$(words emu0)
	cmp /tmp/pattern "/tmp/export/$1" && echo 3 >/proc/sys/vm/drop_caches &&
		cmp /tmp/pattern "/tmp/there/$1" && moved "$before" emu0
}

file_holds() {
	before=$(words emu1)
	write_file "$1" && moved "$before" emu1 && file_is_right "$1"
}

# device_goes <emu0|emu1>: the mount is hard: whoever writes waits until the device is back.
device_goes() {
	before=$(packets)
	write_file late &
	writer=$!
	retry_while $writer packets_beyond $((before + 200)) && echo 0 >"$CONFIG/$1/enable" &&
		[ ! -e "$IB/$1" ] || return 1
	if [ "$1" = emu1 ]; then
		there sh -c "echo 1 >$CONFIG/$1/enable"
	else
		echo 1 >"$CONFIG/$1/enable"
	fi
	wait $writer && file_is_right late && rm /tmp/there/late
}

stop() {
	nfs_ends && unload rpcrdma
}

insert || exit 1
check "an NFS server on RDMA" nfs_server_up
check "a mount over RDMA" nfs_mount there
check "a file holds what was written" file_holds file
check "a link goes down under traffic, and comes back" link_of_files_goes
check "the client's device goes under traffic, and comes back" device_goes emu1
check "the server's device goes under traffic, and comes back" device_goes emu0
check "client and server end" stop
check "the devices go" remove_devices
unload_all
hosts_end
