# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own 9p client over RDMA, in the first network namespace, which is the
# only one that it knows; the server is a process of another.

# shellcheck source=hosts.sh
. /bin/hosts.sh

FILE_MIB=16

insert() {
	two_hosts && core_up && load_ulp ib_uverbs && load_ulp rdma_ucm && add_device emu0 near0 &&
		add_device_there emu1 veth0 && load_ulp 9pnet_rdma
}

server_up() {
	there uverbs_9p 10.0.0.2 $FILE_MIB &
	server=$!
	retry 100 listens
}

listens() {
	there rdma resource show cm_id | grep -q LISTEN
}

mount_it() {
	mkdir -p /tmp/there && mount -t 9p 10.0.0.2 /tmp/there \
		-o trans=rdma,port=5640,version=9p2000.L,msize=65536,cache=none
}

# moved <words before> <device>: it has sent the file since.
moved() {
	[ $(($(words "$2") - $1)) -ge $((FILE_MIB << 18)) ]
}

write_file() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$FILE_MIB 2>/dev/null &&
		dd if=/tmp/pattern of=/tmp/there/file bs=1M conv=notrunc,fsync 2>/dev/null
}

file_holds() {
	to=$(words emu0) from=$(words emu1)
	write_file && cmp /tmp/pattern /tmp/there/file && moved "$to" emu0 && moved "$from" emu1
}

client_ends() {
	umount /tmp/there && unload 9pnet_rdma
}

insert || exit 1
check "a server of 9p" server_up
check "a mount over RDMA" mount_it
check "a file holds what was written" file_holds
check "a file holds what was written, once more" file_holds
check "client ends" client_ends
kill "$server"
wait "$server"
check "the devices go" remove_devices
unload_all
hosts_end
