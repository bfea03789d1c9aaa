# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: a hostile host sends MADS management datagrams, from SEED, to the GSI of another,
# whose connection manager serves others meanwhile; and many connections at a time.

# shellcheck source=ends.sh
. /bin/ends.sh
# shellcheck source=hosts.sh
. /bin/hosts.sh

SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
MADS=${MADS:-20000}
ECHO_PORT=7
CONNECTIONS=${CONNECTIONS:-200}

insert() {
	two_hosts && core_up && load ib_uverbs && load rdma_ucm && add_device emu0 near0 &&
		add_device_there emu1 veth0 && load kverbs_echo_server
}

# A client in the kernel, which sends without an end.
client_lasts() {
	there insmod /modules/kverbs_echo_client.ko to=10.0.0.1 rounds=1000000000 2>/dev/null &
	client=$!
	client_goes_on
}

client_goes_on() {
	before=$(packets)
	retry_while "$client" packets_beyond $((before + 100)) && kill -0 "$client"
}

# Its server ends, and so does it, since its connection is closed.
client_ends() {
	unload kverbs_echo_server && ! wait "$client" &&
		dmesg | grep -qE '1000000000 messages to 10.0.0.1 and back: -(5|104)$'
}

# A new connection, with messages that are compared.
pings() {
	there timeout 100 rping -c -a 10.0.0.1 -C 2 -V >/tmp/ping 2>&1 || {
		cat /tmp/ping
		return 1
	}
}

# heard <at least> <file>: what the file of counters of emu0's connection manager has.
heard() {
	count=$(cat "$IB/emu0/ports/1/$2")
	[ "$count" -ge "$1" ] || {
		echo "$2: $count, of at least $1"
		return 1
	}
}

# What was sent has arrived: requests were answered, accepted ones among them; answers that nobody
# had asked for were looked at; and some that came in a connection, but too late.
was_heard() {
	heard $((MADS / 10)) cm_rx_msgs/req && heard $((MADS / 20)) cm_tx_msgs/rep &&
		heard $((MADS / 40)) cm_tx_msgs/rej && heard $((MADS / 400)) cm_rx_msgs/rtu &&
		heard $((MADS / 4000)) cm_rx_duplicates/rtu
}

# attack <seed>: others connect all the time that it takes.
attack() {
	echo "seed $1"
	there uverbs_mad emu1 10.0.0.2 10.0.0.1 $ECHO_PORT "$MADS" "$1" >/tmp/attack 2>&1 &
	attacker=$! harmed=false
	while kill -0 $attacker 2>/dev/null; do
		pings || {
			harmed=true
			break
		}
		made=$((made + 1))
	done
	wait $attacker
	ended=$?
	cat /tmp/attack
	echo "$made connections were made meanwhile"
	! $harmed && return $ended
}

# A machine that is busy with others' work may connect once while an attack lasts.
attacks() {
	made=0 round=0
	while [ $made -lt 2 ]; do
		attack $((SEED + round)) || return
		round=$((round + 1))
		[ $round -lt 20 ] || return 1
	done
}

# rping's server has no end.
server_up() {
	rping -s -P -a 10.0.0.1 >/tmp/server 2>&1 &
	server=$!
	retry 200 cm_listens
}

# many_at_a_time: they are made by steps, each for all of them, and closed as well. cmtime's server
# has no end.
many_at_a_time() {
	cmtime >/tmp/server 2>&1 &
	server=$!
	if ! retry 200 cm_listens || ! there timeout 400 cmtime -s 10.0.0.1 -c "$CONNECTIONS" \
		>/tmp/client 2>&1; then
		ends_failed
		return
	fi
	cat /tmp/client
	kill $server
	wait $server
	grep -q '^ *disconnect' /tmp/client
}

no_connections() {
	! rdma resource show cm_id | grep -v LISTEN | grep -q emu
}

insert || exit 1
contract_begins
server_up || fail "no server"
check "others' connections, before harm is meant" pings
check "one that lasts" client_lasts
check "hostile MADs, and others connect" attacks
check "they were heard" was_heard
check "one that lasts goes on" client_goes_on
check "its end" client_ends
kill $server
wait $server
check "many connections at a time" many_at_a_time
check "nothing is left of them" retry 400 no_connections
contract_kept "hostile MADs"
check "the devices go" remove_devices
unload_all
hosts_end
