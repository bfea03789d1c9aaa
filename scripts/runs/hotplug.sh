# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: devices and clients that come and go, in every way and at any moment,
# with traffic. Documentation/hotplug.rst tells what is promised.
#
# CYCLES: how often (20); BOUND: milliseconds that remove() may take (2000); CASES: which
# groups of checks, with colons between (all); FAULT: a bug of kverbs_hotplug's. The
# programs need /bin/ca_hotplug.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

CONFIG=/sys/kernel/config/kverbs_emu
HOTPLUG=$DEBUGFS/kverbs_hotplug
CYCLES=${CYCLES:-20}
BOUND=${BOUND:-2000}
FAULT=${FAULT:-fault=none}
CASES=${CASES:-devices:clients:both:netdevs:cpus:peers:moments:orders:programs}

# The longest remove() so far, in microseconds.
longest=0

# put <value> <file>
put() {
	echo "$1" >"$2"
}

# With the contract checker on.
load_core() {
	load kverbs contract=warn && grep -qx warn /sys/module/kverbs/parameters/contract
}

# insert_client [parameters]
insert_client() {
	insmod /modules/kverbs_hotplug.ko bound_ms="$BOUND" "$FAULT" "$@"
}

# It tells the log how long its longest remove() took.
remove_client() {
	dmesg -c >/dev/null
	rmmod kverbs_hotplug || return 1
	dmesg >/tmp/dmesg
	while read -r line; do
		case $line in
		*"longest remove() took"*)
			line=${line##*took }
			[ "${line% us}" -le "$longest" ] || longest=${line% us} ;;
		esac
	done </tmp/dmesg
}

# tell_longest <what>: and begin anew
tell_longest() {
	result "progress: $1: remove() took $longest us at most"
	longest=0
}

insert_all() {
	load_core && load kverbs_emu && insert_client
}

# count <key>: sets value, to a count of kverbs_hotplug's.
count() {
	read -r counts <"$HOTPLUG/stats"
	value=" $counts"
	value=${value#* "$1"=}
	value=${value%% *}
}

# zero <keys>: what is not to be.
zero() {
	for key in "$@"; do
		count "$key"
		[ "$value" -eq 0 ] || {
			echo "hotplug: $key: $counts"
			return 1
		}
	done
}

# moved <count> <keys>: each of these has come to that.
moved() {
	least=$1
	shift
	for key in "$@"; do
		count "$key"
		[ "$value" -ge "$least" ] || {
			echo "hotplug: $key: $counts"
			return 1
		}
	done
}

# traffic <count>: each kind of queue has sent that many.
traffic() {
	moved "$1" direct softirq thread workqueue unbound plain
}

# states <count>: that many times a queue pair in each state was left to remove().
states() {
	moved "$1" reset init rtr rts sqd sqe err
}

# No device is there: all that was posted has completed, once, and in time.
accounted() {
	zero lost doubled late wrong idle over || return 1
	ended=0
	for key in completed flushed bad retries errors; do
		count $key
		ended=$((ended + value))
	done
	count posted
	if [ "$value" -eq 0 ] || [ "$ended" -ne "$value" ]; then
		echo "hotplug: $ended ended: $counts"
		return 1
	fi
}

on() {
	put 1 "$CONFIG/$1/enable"
}

off() {
	put 0 "$CONFIG/$1/enable"
}

# soon command...: what happens a moment later.
soon() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return 1
		usleep 50000
	done
}

# Everything is unplugged, and accounted for; the modules go.
finish() {
	off emu0
	off emu1
	check "$1: each request has completed once, in time" accounted
	count posted
	result "progress: $1: $value requests"
	remove_client
	tell_longest "$1"
	unload_all
}

# --- devices and clients -----------------------------------------------------------

# device_cycles <number>: of unplugs, in turn
device_cycles() {
	n=0
	while [ $n -lt "$1" ]; do
		off emu0 && on emu0 && off emu1 && on emu1 || return 1
		n=$((n + 2))
	done
}

# holds <command>: as processes have the devices open
holds() {
	: >/tmp/hold
	ca_hotplug hold emu0 /tmp/hold >/tmp/held0 &
	held0=$!
	ca_hotplug hold emu1 /tmp/hold >/tmp/held1 &
	held1=$!
	"$@"
	held=$?
	rm /tmp/hold
	ended $held0 $held1 && return $held
	cat /tmp/held0 /tmp/held1
	return 1
}

# The programs have seen devices go.
handles_seen() {
	read -r seen0 </tmp/held0
	read -r seen1 </tmp/held1
	echo "seen: $seen0 and $seen1"
	[ "$seen0" -gt 0 ] && [ "$seen1" -gt 0 ]
}

case_devices() {
	insert_all || return
	check "$CYCLES devices are unplugged and plugged in, with handles open" \
		holds device_cycles "$CYCLES"
	check "processes have seen them go" handles_seen
	check "each kind of queue had traffic" traffic "$CYCLES"
	check "queue pairs were in every state" states "$CYCLES"
	check "no session has failed" zero failed errors
	finish devices
}

# client_cycles <number>: with a device there
client_cycles() {
	n=0
	while [ $n -lt "$1" ]; do
		insert_client first=$n || return 1
		moved 1 adds && soon traffic 1 && zero failed errors || return 1
		remove_client || return 1
		n=$((n + 1))
	done
}

case_clients() {
	load_core && load kverbs_emu devices=1 || return
	check "$CYCLES clients are loaded and unloaded" client_cycles "$CYCLES"
	tell_longest clients
	unload_all
}

# Whether a device is there when the client comes is by chance: met counts them.
loose_client_cycles() {
	n=0 met=0
	while [ $n -lt "$1" ]; do
		insert_client first=$n || return 1
		zero failed errors && count adds || return 1
		met=$((met + value))
		remove_client || return 1
		n=$((n + 1))
	done
}

both_cycles() {
	(device_cycles "$1") &
	devices=$!
	loose_client_cycles "$1" && wait $devices
}

case_both() {
	load_core && load kverbs_emu || return
	half=$((CYCLES / 2))
	check "$half devices and $half clients come and go at once" both_cycles $half
	check "they met" [ "${met:-0}" -ge $half ]
	tell_longest both
	unload_all
}

# --- network devices -----------------------------------------------------------------

port_is() {
	grep -q "$1" /sys/class/infiniband/roce0/ports/1/state
}

# A port that is bound to a network device that gets another name, goes and comes back.
netdev_cycle() {
	ip link add hp0 type dummy && ip link set hp0 up && put hp0 $CONFIG/roce0/netdev &&
		on roce0 || return 1
	ip link set hp0 down && ip link set hp0 name hp1 && ip link set hp1 up &&
		soon port_is ACTIVE && ip link del hp1 && soon port_is DOWN || return 1
	ip link add hp0 type dummy && ip link set hp0 up &&
		put hp0 $CONFIG/roce0/port1/netdev && soon port_is ACTIVE &&
		ip link del hp0 && off roce0
}

netdev_cycles() {
	n=0
	while [ $n -lt "$1" ]; do
		netdev_cycle || return 1
		n=$((n + 1))
	done
}

case_netdevs() {
	load_core && load kverbs_emu devices=0 && insert_client links=1 || return
	mkdir $CONFIG/roce0
	check "$((CYCLES / 4)) network devices go under a bound port" netdev_cycles $((CYCLES / 4))
	check "there was traffic over them" traffic $((CYCLES / 8))
	rmdir $CONFIG/roce0
	check "netdevs: each request has completed once, in time" accounted
	unload_all
}

# --- processors ------------------------------------------------------------------------

CPU1=/sys/devices/system/cpu/cpu1/online

cpu_cycles() {
	n=0
	while [ $n -lt "$1" ]; do
		put 0 $CPU1 && off emu0 && on emu0 && put 1 $CPU1 && off emu1 && put 0 $CPU1 &&
			on emu1 && put 1 $CPU1 || return 1
		n=$((n + 1))
	done
}

cpu_toggles() {
	n=0
	while [ $n -lt "$1" ]; do
		put 0 $CPU1 && put 1 $CPU1 || return 1
		n=$((n + 1))
	done
}

cpus_at_once() {
	(device_cycles "$1") &
	devices=$!
	cpu_toggles "$1" && wait $devices
}

case_cpus() {
	load_core && load kverbs_emu && insert_client || return
	check "the CPU of a vector goes, $((CYCLES / 5)) times" cpu_cycles $((CYCLES / 5))
	check "it goes and comes at any moment" cpus_at_once $((CYCLES / 2))
	check "cpus: there was traffic" traffic 1
	check "cpus: no session has failed" zero failed errors
	finish cpus
}

# --- peers ------------------------------------------------------------------------------

# Runs between two devices, one of which goes; stopped: those that had begun.
peer_cycles() {
	n=0 stopped=0
	while [ $n -lt "$1" ]; do
		put "initiator=emu0 target=emu1 op=write iters=1000000 window=16 timeout=30" \
			"$DEBUGFS/kverbs_pingpong/run" 2>/dev/null &
		run=$!
		# Another moment each time.
		usleep $((n * 20000))
		off emu$((n % 2))
		wait $run || stopped=$((stopped + 1))
		on emu$((n % 2)) || return 1
		n=$((n + 1))
	done
}

case_peers() {
	insert_all && load kverbs_pingpong run=0 || return
	check "one of two devices goes in the midst of traffic between them" peer_cycles 6
	check "the traffic has ended" [ "${stopped:-0}" -eq 6 ]
	unload kverbs_pingpong
	finish peers
}

# --- moments -----------------------------------------------------------------------------

gate() {
	put "$*" "$HOTPLUG/gate"
}

gate_waits() {
	read -r state <"$HOTPLUG/gate"
	[ "$state" = "waiting in $1" ]
}

# Processes that are there, and asleep until something happens in the kernel.
blocked() {
	for pid in "$@"; do
		grep -q '^State:.*D' "/proc/$pid/status" || return 1
	done
}

# ended <pid>...: each, with success
ended() {
	for pid in "$@"; do
		wait "$pid" || return 1
	done
}

# While a client is held up, others come and go.
others_pass() {
	insmod /modules/kverbs_pingpong.ko run=0 && rmmod kverbs_pingpong && off emu1 && on emu1
}

# held <what> <pid>...: those wait for whom the gate holds up in <what>, and nobody else
# does; they end when it opens.
held() {
	word=$1
	shift
	soon gate_waits "$word" && soon blocked "$@" && others_pass && gate_waits "$word" &&
		blocked "$@" && gate go && ended "$@"
}

unplug_in_add() {
	gate add emu0 &
	adder=$!
	soon gate_waits add || return 1
	off emu0 &
	held add $adder $! && [ ! -e /sys/class/infiniband/emu0 ] && gate off && on emu0
}

# The device was there first, or the client.
plug_in_add() {
	off emu0
	gate add emu0
	on emu0 &
	plug=$!
	soon gate_waits add || return 1
	off emu0 &
	held add $plug $! && [ ! -e /sys/class/infiniband/emu0 ] && gate off && on emu0
}

unplug_in_remove() {
	gate remove emu0
	gate off &
	remover=$!
	soon gate_waits remove || return 1
	off emu0 &
	held remove $remover $! && [ ! -e /sys/class/infiniband/emu0 ] && on emu0
}

# The other way round: the client is unloaded as the device goes.
unload_in_remove() {
	gate remove emu0
	off emu0 &
	unplug=$!
	soon gate_waits remove || return 1
	gate off &
	held remove $unplug $! && [ ! -e /sys/class/infiniband/emu0 ] && on emu0
}

unplug_in_event() {
	gate event emu0
	put down $CONFIG/emu0/port1/state
	soon gate_waits event || return 1
	off emu0 &
	held event $! && [ ! -e /sys/class/infiniband/emu0 ] && gate off &&
		put active $CONFIG/emu0/port1/state && on emu0
}

unload_in_event() {
	gate event emu0
	put down $CONFIG/emu0/port1/state
	soon gate_waits event || return 1
	gate off &
	unloader=$!
	soon blocked $unloader || return 1
	off emu0 &
	held event $unloader $! && put active $CONFIG/emu0/port1/state && on emu0
}

case_moments() {
	load_core && load kverbs_emu && insert_client links=1 || return
	check "a device goes while a client comes to it" unplug_in_add
	check "a device goes while it comes" plug_in_add
	check "a device goes while a client leaves it" unplug_in_remove
	check "a client leaves a device while that goes" unload_in_remove
	check "a device goes while an event of it is being handled" unplug_in_event
	check "a client goes while it handles an event" unload_in_event
	check "moments: no session has failed" zero failed
	finish moments
}

# --- orders --------------------------------------------------------------------------------

in_use() {
	for name in "$@"; do
		! rmmod "$name" 2>/dev/null || {
			echo "$name: unloaded, though in use"
			return 1
		}
	done
}

# unload_order <modules>: those that are used by nobody, in this order, then the rest.
unload_order() {
	insert_all && load kverbs_pingpong run=0 || return 1
	for module in "$1" "$2" "$3"; do
		in_use kverbs kverbs_p2pdma kverbs_peer_mem && rmmod "$module" || return 1
	done
	in_use kverbs_p2pdma kverbs_peer_mem && rmmod kverbs "$4" "$5"
}

# A directory, and an open file, hold a module too.
held_modules() {
	insert_all && mkdir $CONFIG/held || return 1
	in_use kverbs_emu && rmdir $CONFIG/held || return 1
	rmmod kverbs_hotplug
	(
		exec 5</dev/infiniband/ca/emu0
		rmmod kverbs_emu && in_use kverbs
	) && unload_all
}

case_orders() {
	core="kverbs_p2pdma kverbs_peer_mem"
	for order in "emu hotplug pingpong" "emu pingpong hotplug" "hotplug emu pingpong" \
		"hotplug pingpong emu" "pingpong emu hotplug" "pingpong hotplug emu"; do
		modules=
		for name in $order; do
			modules="$modules kverbs_$name"
		done
		# shellcheck disable=SC2086
		check "unloading in the order $order, core" unload_order $modules $core
		core="${core#* } ${core% *}"
	done
	check "what is held is not unloaded" held_modules
}

# --- programs --------------------------------------------------------------------------------

case_programs() {
	load_core && load kverbs_emu && insert_client || return
	cases ca_hotplug
	finish programs
}

for group in $(echo "$CASES" | tr : " "); do
	read -r start _ </proc/uptime
	"case_$group" || fail "$group: not carried out"
	read -r now _ </proc/uptime
	result "progress: $group took $((${now%.*} - ${start%.*})) s"
done
