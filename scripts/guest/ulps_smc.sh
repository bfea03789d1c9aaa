# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the kernel's own SMC-R, on kverbs' core or on mainline's, from one network namespace
# to another.

# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

insert() {
	two_hosts && core_up && add_device emu0 near0 && add_device_there emu1 veth0 && load_ulp smc
}

# sockets [<KiB>]: each way. The data must be RDMA's, not TCP's: 16 KiB are four messages at least.
# Returns 2 if it was TCP's, and 1 if it did not arrive.
sockets() {
	before=$(packets) sent='' kib=${1:-4096}
	smc_check serve 10.0.0.1 "$kib" &
	server=$!
	# SMC listens there as TCP, too.
	if ! { PORT=7 retry 100 listening && there smc_check send 10.0.0.1 "$kib" && wait $server; }; then
		kill $server 2>/dev/null
		return 1
	fi
	sent=$(($(packets) - before))
	[ $sent -ge $((kib / 16)) ] || return 2
}

# check() passes the argument on.
# shellcheck disable=SC2120
rdma_is_used() {
	sockets "$@" && return
	[ -z "$sent" ] || fail "SMC-R fell back to TCP: emu1 sent $sent messages"
	return 1
}

# One end of each link of the group is on it. The group lasts for some minutes without connections, and
# only what is sent on a link tells the other end, some seconds later: until then SMC takes the links
# for new connections, and falls back to TCP.
device_goes() {
	echo 0 >$CONFIG/emu1/enable && [ ! -e $IB/emu1 ] &&
		there sh -c "echo 1 >$CONFIG/emu1/enable" && retry 100 [ -e $IB/emu1 ] || return 1
	for _ in $(seq 20); do
		sockets
		case $? in
		0) return ;;
		1) return 1 ;;
		esac
		usleep 500000
	done
	rdma_is_used
}

# The server is killed under traffic: its client learns of it, and others connect.
server_is_killed() {
	before=$(packets)
	smc_check serve 10.0.0.1 $((64 << 10)) &
	server=$!
	PORT=7 retry 100 listening || return 1
	there smc_check send 10.0.0.1 $((64 << 10)) 2>/tmp/client &
	client=$!
	retry_while $client packets_beyond $((before + 100)) && kill -KILL $server || return 1
	wait $server
	wait $client
	[ $? -eq 1 ] && rdma_is_used
}

# Closed sockets linger for a moment.
is_idle() {
	[ "$(cat /sys/module/smc/refcnt)" -eq 0 ]
}

stop() {
	retry 100 is_idle && unload smc
}

insert || exit 1
check "sockets of SMC-R" rdma_is_used "${SMC_KIB:-}"
check "the server is killed" server_is_killed
check "a device goes, and comes back" device_goes
on_mainline || check "SMC ends" stop
check "the devices go" remove_devices
unload_all
hosts_end
