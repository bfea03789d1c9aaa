# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Debian's unmodified RDMA programs on the software HCA, under the kernel's own
# ib_core and ib_uverbs, or on kverbs' core, if that is what is there to be tested; what processes
# can do besides; and hostile processes. DOORBELLS: how many of them the latter ring.
# PROGRAMS=sleep leaves out programs that poll all the time: on a single CPU without preemption,
# each of the two ends does so until its time is up.

# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=cores.sh
. /bin/cores.sh

CONFIG=/sys/kernel/config/kverbs_emu
DOORBELLS=${DOORBELLS:-9000}
SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

DEV=emu0
HOST=127.0.0.1

# What there is of them is listed with its process, and nothing else.
resources_are_listed() {
	rm -f /tmp/ready
	# The MAD layer has some of its own.
	rdma resource show emu0 >/tmp/resources || return 1
	uverbs_hostile emu0 hold /tmp/ready &
	holder=$!
	retry 400 [ -e /tmp/ready ] || return 1
	rdma dev show emu0 && rdma link show emu0/1 && rdma resource show emu0 &&
		rdma resource show qp link emu0/1 | grep "pid $holder comm uverbs_hostile" &&
		found_by_number &&
		rdma resource show mr dev emu0 | grep "pid $holder" &&
		rdma resource show cq dev emu0 | grep "pid $holder" &&
		rdma resource show pd dev emu0 | grep "pid $holder" &&
		rdma resource show ctx dev emu0 | grep "pid $holder" &&
		rdma statistic show link emu0/1 | grep port_xmit_packets &&
		grep "context=handler vector=$(($(grep -c ^processor /proc/cpuinfo) - 1)) " \
			/sys/kernel/debug/kverbs/emu0/cq
	shown=$?
	kill -9 $holder
	wait $holder
	[ $shown -eq 0 ] && retry 100 no_more_resources
} 2>/dev/null

# The last of the process's queue pairs, by the number that the list has.
found_by_number() {
	number=$(rdma resource show qp link emu0/1 |
		sed -n "s/.* lqpn \([0-9]*\) .* pid $holder .*/\1/p" | tail -n 1)
	[ -n "$number" ] && rdma resource show qp link emu0/1 lqpn "$number" |
		grep " lqpn $number .* pid $holder "
}

no_more_resources() {
	rdma resource show emu0 | cmp -s - /tmp/resources
}

polling() {
	[ "${PROGRAMS:-all}" = all ]
}

devices_are_listed() {
	ibv_devices | grep -q emu0 && ibv_devinfo -v -d emu0 >/tmp/devinfo &&
		grep -q 'transport:.*InfiniBand' /tmp/devinfo &&
		grep -q 'state:.*PORT_ACTIVE' /tmp/devinfo &&
		grep -q 'link_layer:.*InfiniBand' /tmp/devinfo &&
		grep -q 'max_cqe:.*1048575' /tmp/devinfo && grep -q 'MEM_WINDOW' /tmp/devinfo
}

verbs_are_right() {
	timeout 300 uverbs_check emu0 && timeout 300 uverbs_rules emu0
}

# A process scribbles over its rings while another one's messages must arrive.
hostile_beside_traffic() {
	touch /tmp/traffic
	uverbs_hostile emu0 traffic /tmp/traffic >/tmp/bystander 2>&1 &
	bystander=$!
	echo "seed $SEED"
	uverbs_hostile emu0 scribble "$DOORBELLS" "$SEED"
	ended=$?
	rm /tmp/traffic
	wait $bystander
	right=$?
	cat /tmp/bystander
	[ $ended -eq 0 ] && [ $right -eq 0 ]
}

# The device goes while a process sends, which then leaves as usual.
device_goes() {
	mkdir $CONFIG/going && echo 1 >$CONFIG/going/enable || return 1
	rm -f /tmp/ready
	timeout 100 uverbs_hostile going hold /tmp/ready &
	holder=$!
	retry 400 [ -e /tmp/ready ] && echo 0 >$CONFIG/going/enable && rmdir $CONFIG/going &&
		[ ! -e /sys/class/infiniband/going ] && wait $holder
}

# killed <how many>: processes that are killed as they send leave nothing.
killed() {
	for _ in $(seq "$1"); do
		rm -f /tmp/ready
		uverbs_hostile emu0 hold /tmp/ready &
		holder=$!
		retry 400 [ -e /tmp/ready ] && kill -9 $holder || return 1
		wait $holder
	done 2>/dev/null
	true
}

# The same of a process that has its rings scribbled over.
killed_scribbling() {
	for _ in $(seq "$1"); do
		uverbs_hostile emu0 scribble 100000000 "$SEED" &
		holder=$!
		retry 400 grep -q '[1-9]' /sys/class/infiniband/emu0/ports/1/hw_counters/port_xmit_packets
		usleep $((SEED % 1000 * 1000))
		kill -9 $holder || return 1
		wait $holder
	done 2>/dev/null
	true
}

# hoards <controller> <its limit> <entries of a CQ> <fewest> <most> <error>: a process in a cgroup
# with this limit can make so many CQs, and then gets this error. It is not killed, and all comes
# back.
hoards() {
	[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup || return 1
	echo "+$1" >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p /sys/fs/cgroup/hoard &&
		echo "$2" >/sys/fs/cgroup/hoard/"$1".max || return 1
	for _ in 1 2; do
		sh -c "echo \$\$ >/sys/fs/cgroup/hoard/cgroup.procs; exec uverbs_hostile emu0 hoard $3" \
			>/tmp/hoard || return 1
		cat /tmp/hoard
		read -r nr why </tmp/hoard
		[ "$nr" -ge "$4" ] && [ "$nr" -le "$5" ] && [ "$why" = "$6" ] || return 1
	done
	# The kernel frees an rdma cgroup that has limits left, but not what the device has of it,
	# and trips over that when the device goes.
	echo "$2" | sed 's/=[0-9]*/=max/g; s/^[0-9].*/max/' >/sys/fs/cgroup/hoard/"$1".max &&
		rmdir /sys/fs/cgroup/hoard
}

# To the core it is the same driver, and the last to go would take the other's devices.
not_beside_rxe() {
	! insmod /modules/kverbs_emu.ko 2>/dev/null && rmmod rdma_rxe && insmod /modules/kverbs_emu.ko &&
		! insmod /lib/modules/rdma_rxe.ko 2>/dev/null && ! loaded rdma_rxe && rmmod kverbs_emu
}

# --- InfiniBand ports ----------------------------------------------------------------

! loaded rdma_rxe || check "rdma_rxe is not loaded beside it" not_beside_rxe
insert_hca || exit 1
[ -c /dev/infiniband/uverbs0 ] || fail "there is no /dev/infiniband/uverbs0"
chmod 666 /dev/infiniband/uverbs0
check "ibv_devices and ibv_devinfo know the device" devices_are_listed
! own_core ||
	check "objects are listed with their process" resources_are_listed
check "ibv_rc_pingpong, with events" both_ends ibv_rc_pingpong -e -n 200
check "ibv_srq_pingpong, with events" both_ends ibv_srq_pingpong -e -n 200
if polling; then
	check "ibv_rc_pingpong" both_ends ibv_rc_pingpong
	check "ibv_rc_pingpong, with checked data" both_ends ibv_rc_pingpong -c -s 65536
	check "ibv_uc_pingpong" both_ends ibv_uc_pingpong
	check "ibv_srq_pingpong" both_ends ibv_srq_pingpong
fi
check "verbs of processes, right and wrong ones" verbs_are_right
check "a process that scribbles over its rings harms nobody" hostile_beside_traffic
# User Mode Linux has no cgroups.
if ! grep -q 'User Mode Linux' /proc/cpuinfo; then
	check "memory of queues is charged to a cgroup" hoards memory 40M 65535 2 5 ENOMEM
	check "objects are charged to a cgroup" \
		hoards rdma "emu0 hca_handle=2 hca_object=10" 1 8 10 EAGAIN
fi
check "a device goes, and a process has it open" device_goes
check "processes are killed as they send" killed 5
check "processes are killed as they scribble" killed_scribbling 3
check "the verbs are as they were" verbs_are_right
remove_hca

# --- Ethernet ports ------------------------------------------------------------------

add_dummy dummy0 10.0.0.1/24
HOST=10.0.0.1
insert_hca netdev=dummy0 || exit 1
check "ibv_rc_pingpong, by GID" both_ends ibv_rc_pingpong -g 0 -e -n 200
check "ibv_ud_pingpong, with events" both_ends ibv_ud_pingpong -g 1 -e -n 200
check "verbs of processes, on an Ethernet port" verbs_are_right
check "rping" both_ends_by_address rping -s -a 10.0.0.1 -C 20 -- -c -a 10.0.0.1 -C 20 -V
check "ucmatose" both_ends_by_address ucmatose -- -s 10.0.0.1
check "udaddy" both_ends_by_address udaddy -- -s 10.0.0.1
if polling; then
	check "ibv_ud_pingpong" both_ends ibv_ud_pingpong -g 1
	# -F: an emulated clock is not as steady as perftest wants it.
	for test in ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat; do
		check $test both_ends $test -F -n 200
	done
	for test in ib_send_bw ib_write_bw ib_read_bw; do
		check $test both_ends $test -F -n 200 -s 4096
	done
	check "ib_send_bw, datagrams" both_ends ib_send_bw -F -c UD -n 200 -s 1024
	# perftest 4.5 tries again with what it has freed, if it is refused.
	READY=cm_listens check "ib_write_bw, connected by rdma_cm" both_ends_by_address \
		ib_write_bw -F -R -n 200 -- -F -R -n 200 10.0.0.1
fi
remove_hca
