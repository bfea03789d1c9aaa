# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: devices, ports and links through configfs, with traffic over
# them; faults through debugfs.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

CONFIG=/sys/kernel/config/kverbs_emu
FAULTS=/sys/kernel/debug/kverbs_emu
TRACE=/sys/kernel/tracing

# put <value> <file>
put() {
	echo "$1" 2>/dev/null >"$2"
}

# refused <errno's text> command...
refused() {
	want=$1
	shift
	if "$@" 2>/tmp/refused >&2; then
		echo "not refused: $*"
		return 1
	fi
	grep -q "$want" /tmp/refused || {
		cat /tmp/refused
		return 1
	}
}

put_loud() {
	echo "$1" >"$2"
}

# reads <value> <file>
reads() {
	got=$(cat "$2")
	[ "$got" = "$1" ] || {
		echo "$2: $got, not $1"
		return 1
	}
}

# port_shows <text> <device/port> <attribute>: checks an attribute in sysfs.
port_shows() {
	grep -q -i "$1" "/sys/class/infiniband/${2%/*}/ports/${2#*/}/$3" || {
		echo "$2 $3: $(cat "/sys/class/infiniband/${2%/*}/ports/${2#*/}/$3")"
		return 1
	}
}

# soon command...: retries, because the midlayer's caches follow events a moment
# later.
soon() {
	retry 100 quietly "$@" || {
		cat /tmp/soon
		return 1
	}
}

quietly() {
	"$@" >/tmp/soon
}

# tells <event's text> command...: checks by tracing that the core passes on the
# event.
tells() {
	want=$1
	shift
	echo >$TRACE/trace
	"$@" || return 1
	grep -q "ib_event:.*$want" $TRACE/trace || {
		echo "no event '$want' of: $*"
		grep ib_event $TRACE/trace
		return 1
	}
}

# Reads how often a fault could have been injected, and how often it was.
asked() {
	sed -n "s/^$2 \(.*\) .*/\1/p" "$FAULTS/$1/faults/injected"
}

injected() {
	sed -n "s/^$2 .* //p" "$FAULTS/$1/faults/injected"
}

# fault <device> <file> <value>
fault() {
	put "$3" "$FAULTS/$1/faults/$2"
}

no_faults() {
	for kind in comp_error delay port_flap drop_notify cq_overflow alloc_fail; do
		fault "$1" $kind 0
	done
}

# --- directories -------------------------------------------------------------

defaults() {
	reads active $CONFIG/rail0/port1/state &&
		reads 0 $CONFIG/rail0/port1/lid &&
		reads "0 0xffff" $CONFIG/rail0/port1/pkeys &&
		reads "" $CONFIG/rail0/port1/gids &&
		reads auto $CONFIG/rail0/port1/mtu &&
		reads auto $CONFIG/rail0/port1/width &&
		reads auto $CONFIG/rail0/port1/speed
}

set_up() {
	put 77 $CONFIG/rail0/port1/lid &&
		put 5 $CONFIG/rail0/port1/sm_lid &&
		put "3 fe80::1234" $CONFIG/rail0/port1/gids &&
		put "2 0x8005" $CONFIG/rail0/port1/pkeys &&
		put 1024 $CONFIG/rail0/port1/mtu &&
		put 1x $CONFIG/rail0/port1/width &&
		put qdr $CONFIG/rail0/port1/speed &&
		put init $CONFIG/rail0/port1/state
}

set_up_is_seen() {
	port_shows "^0x4d$" rail0/1 lid &&
		port_shows "^0x5$" rail0/1 sm_lid &&
		port_shows "fe80:.*:1234$" rail0/1 gids/3 &&
		port_shows "^0x8005$" rail0/1 pkeys/2 &&
		port_shows "INIT" rail0/1 state &&
		port_shows "^10 Gb/sec (1X QDR)" rail0/1 rate
}

more_ports() {
	refused "Invalid argument" mkdir $CONFIG/rail0/port3 &&
		mkdir $CONFIG/rail0/port2 $CONFIG/rail0/port3 &&
		reads 3 $CONFIG/rail0/ports &&
		refused "busy" rmdir $CONFIG/rail0/port2 &&
		put 1 $CONFIG/rail0/enable &&
		[ -d /sys/class/infiniband/rail0/ports/3 ] &&
		refused "busy" rmdir $CONFIG/rail0/port3 &&
		refused "busy" mkdir $CONFIG/rail0/port4 &&
		refused "busy" put_loud 1 $CONFIG/rail0/ports &&
		put 0 $CONFIG/rail0/enable &&
		refused "busy" put_loud 2 $CONFIG/rail0/ports &&
		refused "not empty" rmdir $CONFIG/rail0 &&
		rmdir $CONFIG/rail0/port3 &&
		rmdir $CONFIG/rail0/port2 &&
		reads 1 $CONFIG/rail0/ports
}

param_devices() {
	reads 1 $CONFIG/emu0/enable &&
		reads 1 $CONFIG/emu0/port1/lid &&
		refused "permitted" rmdir $CONFIG/emu0 &&
		refused "permitted" rmdir $CONFIG/emu0/port1 &&
		refused "permitted" mkdir $CONFIG/emu0/port2 &&
		put 0 $CONFIG/emu0/enable &&
		[ ! -e /sys/class/infiniband/emu0 ] &&
		put 1 $CONFIG/emu0/enable &&
		[ -e /sys/class/infiniband/emu0 ]
}

# --- live changes --------------------------------------------------------------

link_events() {
	tells "port error" put down $CONFIG/emu0/port1/state &&
		port_shows DOWN emu0/1 state &&
		tells "port active" put active $CONFIG/emu0/port1/state &&
		port_shows ACTIVE emu0/1 state
}

table_events() {
	tells "LID change" put 300 $CONFIG/emu0/port1/lid &&
		port_shows "^0x12c$" emu0/1 lid &&
		tells "P_Key change" put "1 0x8001" $CONFIG/emu0/port1/pkeys &&
		port_shows "^0x8001$" emu0/1 pkeys/1 &&
		tells "GID change" put "1 fe80::9" $CONFIG/emu0/port1/gids &&
		soon port_shows "fe80:.*:0009$" emu0/1 gids/1 &&
		tells "GID change" put 1 $CONFIG/emu0/port1/gids &&
		soon port_shows "^[0:]*$" emu0/1 gids/1 &&
		tells "SM change" put 9 $CONFIG/emu0/port1/sm_lid &&
		port_shows "^0x9$" emu0/1 sm_lid
}

injected_events() {
	for event in port_active:active port_err:error lid_change:LID \
		pkey_change:P_Key gid_change:GID sm_change:SM \
		client_reregister:reregister; do
		tells "port=1.*${event#*:}" put "${event%:*} 1" $FAULTS/emu0/event || return 1
	done
	tells "device fatal" put device_fatal $FAULTS/emu0/event &&
		refused "No such" put_loud "port_err 2" $FAULTS/emu0/event &&
		refused "No such" put_loud "qp_fatal 99" $FAULTS/emu0/event &&
		refused "No such" put_loud "cq_err 99999" $FAULTS/emu0/event &&
		refused "No such" put_loud "srq_err 99999" $FAULTS/emu0/event &&
		refused "Invalid" put_loud "port_er 1" $FAULTS/emu0/event &&
		refused "Invalid" put_loud "port_err" $FAULTS/emu0/event &&
		refused "Invalid" put_loud "device_fatal 1" $FAULTS/emu0/event
}

refusals() {
	refused "busy" put_loud "$(cat $CONFIG/emu0/port1/lid)" $CONFIG/emu1/port1/lid &&
		refused "Invalid" put_loud 49152 $CONFIG/emu0/port1/lid &&
		refused "Invalid" put_loud 3000 $CONFIG/emu0/port1/mtu &&
		refused "Invalid" put_loud 3x $CONFIG/emu0/port1/width &&
		refused "Invalid" put_loud up $CONFIG/emu0/port1/state &&
		refused "Invalid" put_loud "64 fe80::1" $CONFIG/emu0/port1/gids &&
		refused "Invalid" put_loud "1 fe80" $CONFIG/emu0/port1/gids &&
		refused "Invalid" put_loud "16 1" $CONFIG/emu0/port1/pkeys &&
		refused "Invalid" put_loud dummy0 $CONFIG/emu0/port1/netdev
}

# --- Ethernet ------------------------------------------------------------------

netdevs() {
	mkdir $CONFIG/roce0 &&
		put dummy0 $CONFIG/roce0/netdev &&
		reads dummy0 $CONFIG/roce0/port1/netdev &&
		put 1 $CONFIG/roce0/enable &&
		port_shows ACTIVE roce0/1 state &&
		tells "port error" ip link set dummy0 down &&
		tells "port active" put dummy1 $CONFIG/roce0/port1/netdev &&
		port_shows ACTIVE roce0/1 state &&
		tells "port error" put down $CONFIG/roce0/port1/state &&
		tells "port active" put active $CONFIG/roce0/port1/state &&
		tells "port error" put "" $CONFIG/roce0/port1/netdev &&
		reads "" $CONFIG/roce0/port1/netdev &&
		refused "No such device" put_loud none9 $CONFIG/roce0/port1/netdev &&
		refused "Invalid" put_loud 7 $CONFIG/roce0/port1/lid &&
		refused "Invalid" put_loud armed $CONFIG/roce0/port1/state &&
		rmdir $CONFIG/roce0 &&
		ip link set dummy0 up
}

# What is enabled again looks for the network device by the name that it had last.
last_name() {
	ip link add dummy2 type dummy && mkdir $CONFIG/roce1 &&
		put dummy2 $CONFIG/roce1/netdev && put 1 $CONFIG/roce1/enable &&
		ip link set dummy2 name other2 &&
		reads other2 $CONFIG/roce1/port1/netdev && ip link del other2 &&
		reads "" $CONFIG/roce1/port1/netdev &&
		put 0 $CONFIG/roce1/enable && reads other2 $CONFIG/roce1/port1/netdev &&
		refused "No such device" put_loud 1 $CONFIG/roce1/enable &&
		ip link add other2 type dummy && put 1 $CONFIG/roce1/enable &&
		rmdir $CONFIG/roce1 && ip link del other2
}

# --- traffic -------------------------------------------------------------------

# A run that must fail, with this text in the kernel's log.
pingpong_fails() {
	want=$1
	shift
	dmesg -c >/dev/null
	if pingpong timeout=5 "$@"; then
		echo "pingpong $*: ${line:-}"
		return 1
	fi
	[ -z "$want" ] || dmesg | grep -q "$want" || {
		dmesg | tail -n 5
		return 1
	}
}

runs() {
	pingpong_ok initiator=emu0 target=emu1 op=write size=64 window=16 iters=200
}

link_state_stops_traffic() {
	runs && put down $CONFIG/emu1/port1/state &&
		pingpong_fails "" initiator=emu0 target=emu1 &&
		put active $CONFIG/emu1/port1/state && runs
}

moved_lid() {
	put 0xbfff $CONFIG/emu1/port1/lid && runs
}

pkeys_part() {
	put "0 0x8001" $CONFIG/emu1/port1/pkeys &&
		pingpong_fails "retry" initiator=emu0 target=emu1 &&
		put "0 0x0001" $CONFIG/emu0/port1/pkeys && runs &&
		put "0 0x0001" $CONFIG/emu1/port1/pkeys &&
		pingpong_fails "retry" initiator=emu0 target=emu1 &&
		put "0 0xffff" $CONFIG/emu0/port1/pkeys &&
		put "0 0xffff" $CONFIG/emu1/port1/pkeys && runs
}

# --- faults --------------------------------------------------------------------

# once <device> <kind>: checks that at least one fault was injected.
once() {
	[ "$(injected "$1" "$2")" -gt 0 ] || {
		echo "no $2 on $1"
		return 1
	}
}

comp_errors() {
	fault emu0 comp_status rem_op_err && reads REM_OP_ERR $FAULTS/emu0/faults/comp_status &&
		fault emu0 comp_error 20000 &&
		pingpong_fails "remote operation error" op=write iters=100000 &&
		once emu0 comp_error && no_faults emu0 && runs
}

# Counts the work requests until one fails, for a seed.
until_error() {
	fault emu0 seed "$1"
	pingpong timeout=5 op=write window=1 pairs=1 iters=100000
	asked emu0 comp_error
}

replays() {
	fault emu0 comp_error 5000
	first=$(until_error 7)
	second=$(until_error 7)
	third=$(until_error 8)
	no_faults emu0
	echo "failed after $first, $second and $third"
	[ "$first" -gt 0 ] && [ "$first" = "$second" ] && [ "$first" != "$third" ]
}

delays() {
	fault emu0 delay 1000000
	fault emu0 delay_us 2000
	pingpong_ok op=write window=1 iters=50 || return 1
	no_faults emu0
	echo "50 delays of 2 ms took ${ns:?} ns"
	once emu0 delay && [ "$ns" -ge 100000000 ]
}

flaps() {
	fault emu0 seed 1
	fault emu0 port_flap_ms 5
	fault emu0 port_flap 5000
	tells "port error" pingpong_ok op=write window=16 iters=2000 || return 1
	no_faults emu0
	once emu0 port_flap && soon port_shows ACTIVE emu0/1 state &&
		grep -q "ib_event:.*port active" $TRACE/trace
}

overflows() {
	fault emu0 cq_overflow 10000
	pingpong_fails "" op=write iters=100000 || return 1
	no_faults emu0
	once emu0 cq_overflow && runs
}

failing_allocations() {
	fault emu0 alloc_fail 1000000
	pingpong_fails "" op=write || return 1
	no_faults emu0
	once emu0 alloc_fail && runs
}

fault_refusals() {
	refused "Invalid" put_loud 1000001 $FAULTS/emu0/faults/delay &&
		refused "Invalid" put_loud 0 $FAULTS/emu0/faults/delay_us &&
		refused "Invalid" put_loud success $FAULTS/emu0/faults/comp_status &&
		refused "Invalid" put_loud 99 $FAULTS/emu0/faults/comp_status
}

for dev in dummy0 dummy1; do
	add_dummy $dev
done
load kverbs contract=warn && load kverbs_ca && load kverbs_emu && load kverbs_pingpong run=0 || exit 1
echo 1 >$TRACE/events/kverbs/ib_event/enable || exit 1

mkdir $CONFIG/rail0
check "a new device's port is as documented" defaults
check "a port is set up before its device is there" set_up
put 1 $CONFIG/rail0/enable
check "what was set up is what consumers see" set_up_is_seen
put 0 $CONFIG/rail0/enable
check "ports come and go in order" more_ports
rmdir $CONFIG/rail0
check "the devices of the parameters have directories" param_devices
check "a change of the link raises its event" link_events
check "changes of tables raise their events" table_events
check "invalid settings are refused" refusals
check "each event can be injected" injected_events
check "an Ethernet port follows its network device" netdevs
check "the last name of a network device that has gone is kept" last_name
check "a link that is down stops traffic" link_state_stops_traffic
check "traffic finds a LID that has moved" moved_lid
check "ports of different partitions do not reach each other" pkeys_part
check "completions fail with the requested status" comp_errors
check "the same seed fails the same request" replays
check "completions are late" delays
check "traffic survives a port that flaps" flaps
check "a completion queue can overflow" overflows
check "allocations can fail" failing_allocations
check "settings out of range are refused" fault_refusals
fault emu1 delay 1
unload_all
check "nothing is left in sysfs" [ ! -e /sys/class/infiniband/emu0 ]
check "nothing is left in configfs" [ ! -e $CONFIG ]
check "nothing is left in debugfs" [ ! -e $FAULTS ]
