# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: an NFS server on RDMA, which exports /tmp/export to NFS_CLIENT, and its
# mount at /tmp/there. Wants hosts.sh.

NFS_SERVER=10.0.0.1
NFS_CLIENT=10.0.0.2

NFSD=/proc/fs/nfsd
RPC=/proc/net/rpc
FOREVER=2147483647
# Any port of the client, no check of subtrees, a file system that is known by its number.
EXPORT_FLAGS=$((0x2 | 0x400 | 0x2000))

# What exportfs and rpc.mountd would tell the kernel: whose address is whose, what they may
# mount, and where it is.
nfs_export() {
	mount -t tmpfs none /tmp/export && mount -t nfsd nfsd $NFSD &&
		echo "nfsd $NFS_CLIENT $FOREVER there" >$RPC/auth.unix.ip/channel &&
		echo "there /tmp/export $FOREVER $EXPORT_FLAGS 65534 65534 0" >$RPC/nfsd.export/channel &&
		printf 'there 1 %s %s /tmp/export\n' '\x00000000' $FOREVER >$RPC/nfsd.fh/channel
}

# Without version 3, which wants rpcbind, and without a grace period for clients of an earlier
# server.
nfs_server_up() {
	mkdir -p /tmp/export /var/lib/nfs/v4recovery && nfs_export && load_ulp rpcrdma &&
		echo -3 >$NFSD/versions && echo "rdma 20049" >$NFSD/portlist &&
		echo 4 >$NFSD/threads && echo Y >$NFSD/v4_end_grace
}

# nfs_mount [<command that runs it elsewhere>]
nfs_mount() {
	mkdir -p /tmp/there && "$@" mount -i -t nfs4 $NFS_SERVER:/ /tmp/there \
		-o vers=4.2,proto=rdma,port=20049,addr=$NFS_SERVER,clientaddr=$NFS_CLIENT,sec=sys
}

# The server's threads have left their last files to a work item, which may still hold the export.
nfs_ends() {
	umount /tmp/there && echo 0 >$NFSD/threads && umount $NFSD &&
		retry 100 umount /tmp/export 2>/dev/null
}
