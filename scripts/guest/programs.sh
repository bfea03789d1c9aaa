# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: unmodified programs on the software HCA and then on rdma_rxe, beside each other
# for whoever compares them; or, if that is what is there to be tested, on the software HCA on
# kverbs' core. Each result is a line "row: <device>|<program>|<result>|<seconds>".
#
#   PARTS     some of the parts; see scripts/programs
#   TESTS     parts of the names of pyverbs' tests

# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=disk.sh
. /bin/disk.sh
# shellcheck source=cores.sh
. /bin/cores.sh

HOST=10.0.0.1
NETDEV=eth0
PYVERBS=/usr/share/doc/rdma-core/tests
PATIENCE=100
TRIES=30
PARTS=${PARTS:-devinfo,pingpongs,cm_programs,perftests,qperfs,fabrics,fios,mpis,disk,pyverbs}

# row <program> <command>: runs it, and says how it ended. What the device does not have is
# skipped; 95 is EOPNOTSUPP. What fails by a bug of the program's own is broken.
row() {
	name=$1
	shift
	read -r before _ </proc/uptime
	if "$@" >/tmp/said 2>&1; then
		outcome=ok
	else
		outcome="failed: $(grep -v '^ *$\|^Terminated$\|^Killed$' /tmp/said | tail -n 1 | tr '|' '/')"
		case $outcome in
		*'not supported' | *' 95') outcome="skipped: ${outcome#*: }" ;;
		*'its own bug: '*) outcome="broken: ${outcome#*bug: }" ;;
		esac
		echo "--- $name on $DEV:"
		cat /tmp/said
	fi
	read -r after _ </proc/uptime
	result "row: $DEV|$name|$outcome|$(awk "BEGIN { printf \"%.1f\", $after - $before }")"
}

# broken <what its client says> <why> <command>: a program that fails on any RoCE device, and in no
# other way than this; or it works.
broken() {
	says=$1 why=$2
	shift 2
	"$@" && return
	if grep -q "$says" /tmp/client; then
		echo "its own bug: $why"
	else
		echo "its client did not say: $says"
	fi
	return 1
}

# The first commands of userspace.rst. Here the kernel's modules are loaded, and ours is built.
documented() {
	mkdir -p "/build/$(uname -r)" && ln -s /modules "/build/$(uname -r)/mainline" || return
	(
		# shellcheck disable=SC2317
		make() { :; }
		# shellcheck disable=SC2317
		modprobe() { :; }
		cd / && . /bin/documented.sh
	) >/tmp/said 2>&1 && return
	cat /tmp/said
	return 1
}

device_is_listed() {
	ibv_devices | grep "$DEV" && ibv_devinfo -v -d "$DEV" | grep 'state:.*PORT_ACTIVE'
}

# The port goes down and comes back.
asyncwatch() {
	ibv_asyncwatch -d "$DEV" >/tmp/events 2>&1 &
	watcher=$!
	retry 100 grep -q 'async_event\|events' /tmp/events
	ip link set $NETDEV down && ip link set $NETDEV up && retry 200 grep -q 'PORT_ACTIVE\|port active' /tmp/events
	seen=$?
	kill $watcher
	cat /tmp/events
	return $seen
}

devinfo() {
	row "ibv_devinfo -v" device_is_listed
	row ibv_asyncwatch asyncwatch
}

# On the kernel's core these two have been inserted with the kernel's other modules.
disk() {
	! own_core || { load nvmet-rdma && load nvme-rdma; }
	row "nvme-rdma and nvmet-rdma" disk_over_rdma
	! own_core || unload nvme-rdma nvmet-rdma
}

pingpongs() {
	for kind in rc uc ud srq xsrq; do
		for more in "" " -e"; do
			# shellcheck disable=SC2086
			row "ibv_${kind}_pingpong$more" both_ends ibv_${kind}_pingpong -g "$GID" -n 200$more
		done
	done
	row "ibv_rc_pingpong -c -s 65536" both_ends ibv_rc_pingpong -g "$GID" -c -s 65536 -n 50
}

# The sender is tried until the receiver, who may join late, has had enough.
multicast() {
	timeout $PATIENCE mckey -m 230.1.1.1 -b $HOST -C 10 >/tmp/server 2>&1 &
	server=$!
	while kill -0 $server 2>/dev/null; do
		timeout $PATIENCE mckey -m 230.1.1.1 -b $HOST -s -C 10 >/tmp/client 2>&1
	done
	wait $server || ends_failed
}

rping_alone() {
	row "rping -V" both_ends_by_address rping -s -a $HOST -C 20 -- -c -a $HOST -C 20 -V
}

cm_programs() {
	rping_alone
	row ucmatose both_ends_by_address ucmatose -- -s $HOST
	row udaddy both_ends_by_address udaddy -- -s $HOST
	row mckey multicast
	row cmtime without_end cmtime -b $HOST -c 10 -- -s $HOST -c 10
	row rstream both_ends_by_address rstream -b $HOST -S 1024 -C 20 -- -s $HOST -S 1024 -C 20
	row riostream both_ends_by_address riostream -b $HOST -S 1024 -C 20 -- -s $HOST -S 1024 -C 20
	# What it says is errno of its clean-up: before that, ibv_create_ah() has failed by EINVAL.
	TRIES=1 PATIENCE=20 row udpong broken 'rconnect: No such file' "its AHs have no GRH" \
		without_end udpong -b $HOST -C 20 -- -s $HOST -C 20
	CLIENT=rdma_client READY=cm_listens row "rdma_server, rdma_client" both_ends_by_address \
		rdma_server -s $HOST -p 7999 -- -s $HOST -p 7999
}

# A thousand connections at a time, some times: each step is made for all of them before the next.
# What a connection takes of two steps is told besides.
thousands() {
	: >/tmp/steps
	for _ in $(seq "${CM_RUNS:-10}"); do
		PATIENCE=400 without_end cmtime -b $HOST -c 1000 -- -s $HOST -c 1000 || return
		cat /tmp/client >>/tmp/steps
	done
	awk -v dev="$DEV" -v runs="${CM_RUNS:-10}" '$1 == "connect" || $1 == "disconnect" {
			n[$1]++
			us[$1] += $NF
		}
		END {
			if (n["connect"] != runs || n["disconnect"] != runs)
				exit 1
			printf "progress: %s: %.0f connections a second, %.0f ended, %d in all\n", dev,
				1000000 * runs / us["connect"], 1000000 * runs / us["disconnect"],
				1000 * runs
		}' /tmp/steps >/tmp/rate && result "$(cat /tmp/rate)"
}

connections() {
	row "cmtime -c 1000, ${CM_RUNS:-10} times" thousands
}

perftests() {
	for test in ib_send ib_write ib_read ib_atomic; do
		# -F: an emulated clock is not as steady as perftest wants it.
		row "${test}_lat" both_ends ${test}_lat -F -x "$GID" -n 200
		row "${test}_bw" both_ends ${test}_bw -F -x "$GID" -n 200
		# A client that is refused crashes, in librdmacm.
		for tool in ${test}_lat ${test}_bw; do
			READY=cm_listens row "$tool -R" both_ends_by_address "$tool" -F -R -n 100 -- \
				-F -R -n 100 $HOST
		done
		[ $test = ib_atomic ] || row "${test}_bw -a" both_ends ${test}_bw -F -x "$GID" -a -n 5
	done
	for test in ib_send ib_write; do
		row "${test}_lat -c UC" both_ends ${test}_lat -F -x "$GID" -c UC -n 200
		row "${test}_bw -c UC" both_ends ${test}_bw -F -x "$GID" -c UC -n 200
		row "${test}_bw -c UC -a" both_ends ${test}_bw -F -x "$GID" -c UC -a -n 5
	done
	row "ib_send_lat -c UD" both_ends ib_send_lat -F -x "$GID" -c UD -n 200 -s 1024
	row "ib_send_bw -c UD" both_ends ib_send_bw -F -x "$GID" -c UD -n 200 -s 1024
	row "ib_send_bw -e" both_ends ib_send_bw -F -x "$GID" -e -n 200
	row "ib_send_bw --use-srq" both_ends ib_send_bw -F -x "$GID" --use-srq -n 200
}

# The client measures something, and its server is there for the next. That has bugs of its own: it
# tells the port before it listens, so that the client may be refused; and what it forks crashes as
# each test ends, for it destroys the QP of the ID that has listened, which has none.
qperf_measures() {
	for _ in 1 2 3 4 5; do
		timeout $PATIENCE qperf -t 1 -cm 1 $HOST "$1" >/tmp/client 2>&1
		status=$?
		cat /tmp/client
		grep -q 'Event rejected' /tmp/client || break
	done
	[ "$status" -eq 0 ] && grep -q ' = *[0-9.]*[1-9]' /tmp/client && kill -0 "$server"
}

qperfs() {
	qperf &
	server=$!
	PORT=19765 retry 100 listening
	for test in rc_lat rc_bw rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_poll_lat \
		rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
		row "qperf $test" qperf_measures $test
	done
	kill $server
	wait $server
}

# ucx_by <transport>: it needs UD, too, to connect. With an IPv4 GID, it drops each datagram unless
# its completion's sl says what kind of GID it is, which only mlx5's does.
ucx_by() {
	export UCX_NET_DEVICES="$DEV:1" UCX_IB_GID_INDEX=0 UCX_TLS="$1,ud_verbs:aux,self"
}

fabrics() {
	row "fi_pingpong -p verbs -e msg" both_ends_by_address fi_pingpong -p verbs -e msg -I 20 -- \
		-p verbs -e msg -I 20 $HOST
	row "fi_pingpong -p verbs -e rdm" both_ends_by_address \
		fi_pingpong -p "verbs;ofi_rxm" -e rdm -I 20 -- -p "verbs;ofi_rxm" -e rdm -I 20 $HOST
	PATIENCE=40
	for tl in rc_verbs ud_verbs; do
		ucx_by $tl
		row "ucx_perftest -t tag_lat, $tl" both_ends_by_address \
			ucx_perftest -t tag_lat -n 100 -w 10 -- $HOST -t tag_lat -n 100 -w 10
	done
	PATIENCE=100
}

# fio_moves <verb> [<further options>]: 64 blocks. The server posts all receives at once, for
# fio does not repeat what finds none. Jobs are threads, and end with fio, whatever they wait for.
# After a name come the options of its job, the engine before what only it knows.
fio_moves() {
	fio_verb=$1
	shift
	set -- --ioengine=rdma --port=8888 --thread --bs=4k --size=256k "$@"
	READY=cm_listens SIGNAL=KILL PATIENCE=20 TRIES=1 both_ends_by_address fio \
		--name=server "$@" --rw=read --iodepth=64 -- \
		--name=client "$@" --rw=write --iodepth=1 --iodepth_batch_complete=1 \
		--hostname=$HOST --verb="$fio_verb" || return
	cat /tmp/server /tmp/client
	grep -q 'issued rwts: total=0,64,0,0' /tmp/client || return
	[ "$fio_verb" != send ] || grep -q 'issued rwts: total=64,0,0,0' /tmp/server
}

# The receiver verifies what was sent to it.
fios() {
	row "fio, ioengine=rdma, verb=send, verify" fio_moves send --verify=crc32c --verify_fatal=1
	row "fio, ioengine=rdma, verb=write" fio_moves write
	row "fio, ioengine=rdma, verb=read" fio_moves read
}

mpis() {
	ucx_by rc_verbs
	row "mpi4py.bench ringtest, Open MPI over UCX" timeout 40 mpirun.openmpi \
		--allow-run-as-root --oversubscribe -n 2 --mca plm isolated --mca pml ucx \
		-x UCX_TLS -x UCX_NET_DEVICES -x UCX_IB_GID_INDEX \
		python3.11 -m mpi4py.bench ringtest
}

# All generic tests of pyverbs, as lines "py: <device>|<test>|<outcome>".
pyverbs() {
	# shellcheck disable=SC2046
	(cd $PYVERBS && timeout 900 python3.11 /bin/pyverbs_tests.py /tmp/tests --dev "$DEV" \
		$(echo "${TESTS:-}" | tr , ' ')) >/tmp/said 2>&1 || cat /tmp/said
	while read -r line; do
		result "py: $DEV|$line"
	done </tmp/tests
}

all_programs() {
	for part in $(echo "$PARTS" | tr , ' '); do
		$part
	done
}

# --- the run ------------------------------------------------------------------

mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
hostname guest
echo "127.0.0.1 localhost guest" >/etc/hosts
ip addr add $HOST/24 dev $NETDEV
ip link set $NETDEV up
# Of each address there are a RoCE v1 and a v2 GID.
GID=3
if own_core; then
	DEV=emu0
	check "kverbs' core and the software HCA are inserted" insert_hca netdev=$NETDEV
	all_programs
	remove_hca
	exit
fi
rmmod rdma_rxe || exit 1

for DEV in emu0 rxe0; do
	if [ "$DEV" = emu0 ]; then
		check "the commands of userspace.rst give a device" documented
	else
		insmod /lib/modules/rdma_rxe.ko && rdma link add "$DEV" type rxe netdev $NETDEV || exit 1
		GID=1
	fi
	all_programs
	if [ "$DEV" = emu0 ]; then
		unload_all
	else
		rdma link delete "$DEV"
	fi
done
