# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own NFS over RDMA, on kverbs' core or on mainline's. The server is in
# the first network namespace, the client in another.

# shellcheck source=hosts.sh
. /bin/hosts.sh

FILE_MIB=16
NFSD=/proc/fs/nfsd
RPC=/proc/net/rpc
FOREVER=2147483647
# Any port of the client, no check of subtrees, a file system that is known by its number.
EXPORT_FLAGS=$((0x2 | 0x400 | 0x2000))

insert() {
	two_hosts && core_up && add_device emu0 near0 && add_device_there emu1 veth0
}

# What exportfs and rpc.mountd would tell the kernel: whose address is whose, what they may
# mount, and where it is.
export_to_there() {
	mount -t tmpfs none /tmp/export && mount -t nfsd nfsd $NFSD &&
		echo "nfsd 10.0.0.2 $FOREVER there" >$RPC/auth.unix.ip/channel &&
		echo "there /tmp/export $FOREVER $EXPORT_FLAGS 65534 65534 0" >$RPC/nfsd.export/channel &&
		printf 'there 1 %s %s /tmp/export\n' '\x00000000' $FOREVER >$RPC/nfsd.fh/channel
}

# Without version 3, which wants rpcbind, and without a grace period for clients of an earlier
# server.
server_up() {
	mkdir -p /tmp/export /var/lib/nfs/v4recovery && export_to_there && load_ulp rpcrdma &&
		echo -3 >$NFSD/versions && echo "rdma 20049" >$NFSD/portlist && echo 4 >$NFSD/threads && echo Y >$NFSD/v4_end_grace
}

mount_it() {
	mkdir -p /tmp/there && there mount -i -t nfs4 10.0.0.1:/ /tmp/there \
		-o vers=4.2,proto=rdma,port=20049,addr=10.0.0.1,clientaddr=10.0.0.2,sec=sys
}

# write_file <name>: by the client.
write_file() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$FILE_MIB 2>/dev/null &&
		dd if=/tmp/pattern of="/tmp/there/$1" bs=1M conv=fsync 2>/dev/null
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

# The server's threads have left their last files to a work item, which may still hold the export.
nfs_ends() {
	umount /tmp/there && echo 0 >$NFSD/threads && umount $NFSD &&
		retry 100 umount /tmp/export 2>/dev/null && unload rpcrdma
}

insert || exit 1
check "an NFS server on RDMA" server_up
check "a mount over RDMA" mount_it
check "a file holds what was written" file_holds file
check "the client's device goes under traffic, and comes back" device_goes emu1
check "the server's device goes under traffic, and comes back" device_goes emu0
check "client and server end" nfs_ends
check "the devices go" remove_devices
unload_all
hosts_end
