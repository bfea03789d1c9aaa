# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In each of two guests with a network between them: rdma_rxe at both ends, on kverbs' core where
# that is among the modules to be tested, on the kernel's own core in the other guest.
#
#   END   server, or client
#
# Both go through the same programs. The server runs its end of each; the client tries until the
# server is there.

# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=cores.sh
. /bin/cores.sh

SERVER=10.7.0.1
CLIENT=10.7.0.2
DISK_HOST=$SERVER
LOSS=1%

serves() {
	[ "$END" = server ]
}

if serves; then own=$SERVER other=$CLIENT; else own=$CLIENT other=$SERVER; fi
if own_core; then here="kverbs' core"; else here="the kernel's core"; fi

network_up() {
	ip addr add $own/24 dev eth0 && ip link set eth0 up &&
		retry 600 ping -c 1 -W 1 $other >/dev/null
}

device_up() {
	! own_core || { load kverbs contract=warn && load ib_uverbs && load rdma_rxe; } || return 1
	rdmalink add rxe0 rxe eth0
}

# refused: the client has come before its server.
refused() {
	grep -qiE "couldn't connect|connection refused" /tmp/said
}

# end <program and arguments>: this end of it.
end() {
	if serves; then
		timeout 100 "$@" -d rxe0 >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
		return
	fi
	for _ in $(seq 200); do
		timeout 100 "$@" -d rxe0 $SERVER >/tmp/said 2>&1 && return
		refused || break
		usleep 50000
	done
	cat /tmp/said
	return 1
}

# The server waits until the client has said something, which it prints.
tell() {
	retry 200 nc $SERVER 7000 -e echo "$@"
}

hear() {
	timeout 200 nc -l -p 7000
}

sum_of() {
	md5sum "$1" | cut -c1-32
}

serve_disk() {
	target_up || return 1
	said=$(hear)
	[ "$said" = "$(sum_of /tmp/disk)" ] || { echo "a sum of '$said' is not the disk's"; return 1; }
	target_down
}

use_disk() {
	retry 100 nvme_connect 2>/dev/null && disk_reads_back $DISK_NODE &&
		echo 1 >/sys/class/nvme/nvme0/delete_controller && tell "$(sum_of /tmp/pattern)"
}

disk() {
	if serves; then serve_disk; else use_disk; fi
}

everything_up() {
	network_up && device_up && { ! own_core || { load nvmet-rdma && load nvme-rdma; }; }
}

# Not the one of busybox, which knows no netem.
lossy() {
	/usr/bin/tc qdisc add dev eth0 root netem loss $LOSS
}

# It is for the packets that were lost that the others show anything.
some_were_lost() {
	/usr/bin/tc -s qdisc show dev eth0 | grep 'dropped [1-9]'
}

# connected <what> <pings> <messages> <size>: with a timeout of 268 ms, which a busy machine does not
# reach for packets that were not lost.
connected() {
	check "RC, $1, $here" end ibv_rc_pingpong -g 1 -n "$2"
	check "RDMA WRITE, $1, $here" end ib_write_bw -F -x 1 -u 16 -n "$3" -s "$4"
	check "RDMA READ, $1, $here" end ib_read_bw -F -x 1 -u 16 -n "$3" -s "$4"
	check "nvme-rdma, $1, $here" disk
}

everything_up || exit 1
connected "between two machines" 300 100 65536
check "UC, between two machines, $here" end ibv_uc_pingpong -g 1 -n 300
check "UD, between two machines, $here" end ibv_ud_pingpong -g 1 -n 300
check "$LOSS of the packets are lost from now on, $here" lossy
connected "with $LOSS of the packets lost" 300 50 16384
check "packets were lost, $here" some_were_lost
/usr/bin/tc qdisc del dev eth0 root
if serves; then hear; else tell end; fi
unload nvme-rdma nvmet-rdma 2>/dev/null
unload_all
