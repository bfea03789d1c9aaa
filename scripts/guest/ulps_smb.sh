# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own SMB Direct on kverbs' core: cifs mounts what ksmbd exports. Both
# know the first network namespace only.

# shellcheck source=hosts.sh
. /bin/hosts.sh
# shellcheck source=files.sh
. /bin/files.sh

FILE_MIB=8
SERVER=10.0.0.1
CLIENT=10.0.0.2
OPTIONS=ip=$SERVER,rdma,vers=3.1.1,username=kverbs,password=secret,cache=none
CONTROL=/sys/class/ksmbd-control

# The server's end0 and the client's veth0 reach each other over the link: what is sent from here is
# routed by a table that does not know that both addresses are this host's.
two_ipv4_ends() {
	for name in default all; do
		echo 1 >"/proc/sys/net/ipv4/conf/$name/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$name/rp_filter"
	done
	ip link add end0 type veth && ip addr add $SERVER/24 dev end0 &&
		ip addr add $CLIENT/24 dev veth0 && ip link set end0 up && ip link set veth0 up &&
		ip route add $SERVER dev veth0 src $CLIENT table 100 &&
		ip route add $CLIENT dev end0 src $SERVER table 100 &&
		ip rule add iif lo table 100 pref 10 && ip rule add table local pref 20 &&
		ip rule del table local pref 0
}

# The ping: if a neighbour answers at once, rdma_cm has not yet listed whom to tell, and cifs gives
# up.
insert() {
	ip link set lo up && core_up && two_ipv4_ends && add_device emu0 end0 &&
		add_device emu1 veth0 && retry 40 ping -c 1 -W 1 $SERVER >/dev/null
}

# The daemon tells the kernel what it exports, and who may use that. It wants users that /etc/passwd
# has, and a place for its lock.
server_up() {
	mkdir -p /tmp/export /tmp/there /etc/ksmbd /run && mount -t tmpfs none /tmp/export &&
		echo root:x:0:0::/:/bin/sh >/etc/passwd && echo root:x:0: >/etc/group || return
	cat >/etc/ksmbd/ksmbd.conf <<-END
	[there]
		path = /tmp/export
		read only = no
		force user = root
		force group = root
	END
	ksmbd.adduser -a kverbs -p secret >/dev/null && load ksmbd || return
	ksmbd.mountd -n >/dev/null &
	daemon=$!
	retry_while "$daemon" grep -q running $CONTROL/stats
}

smb_mount() {
	load cifs && mount -i -t cifs //$SERVER/there /tmp/there -o $OPTIONS
}

# moved <words before>: one of the two has sent the file since. The server moves data both ways, by
# RDMA READ and WRITE, and either may count the answer to a READ.
moved() {
	[ $(($(words emu0) + $(words emu1) - $1)) -ge $((FILE_MIB << 18)) ]
}

# The server has what was written, and the client reads it from there.
file_is_right() {
	before=$(($(words emu0) + $(words emu1)))
	cmp /tmp/pattern "/tmp/export/$1" && cmp /tmp/pattern "/tmp/there/$1" && moved "$before"
}

file_holds() {
	before=$(($(words emu0) + $(words emu1)))
	write_file "$1" && moved "$before" && file_is_right "$1"
}

# device_goes <emu0|emu1>: without traffic, as cifs waits for ever for a SEND that fails. The
# next write waits until cifs has connected again.
device_goes() {
	echo 0 >"$CONFIG/$1/enable" && [ ! -e "$IB/$1" ] && echo 1 >"$CONFIG/$1/enable" &&
		file_holds late && rm /tmp/there/late
}

# Both leave what they have to threads, which may still run when the command has ended.
unload_soon() {
	retry 2000 rmmod "$1" 2>/tmp/rmmod && return
	cat /tmp/rmmod
	return 1
}

stop() {
	umount /tmp/there && unload_soon cifs &&
		echo hard >$CONTROL/kill_server && kill "$daemon" &&
		unload_soon ksmbd && umount /tmp/export
}

insert || exit 1
check "an SMB server on RDMA" server_up
check "a mount over SMB Direct" smb_mount
check "a file holds what was written" file_holds file
check "a link goes down under traffic, and comes back" link_of_files_goes
check "the client's device goes and comes back" device_goes emu1
check "the server's device goes and comes back" device_goes emu0
check "client and server end" stop
check "the devices go" remove_devices
unload_all
