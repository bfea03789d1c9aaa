# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: devices and clients come and go, in every way and at any moment, with traffic.
# Documentation/hotplug.rst states the guarantees.
#
# CYCLES: number of repetitions (20); BOUND: milliseconds that remove(), the unplugging of a
# device and the unloading of the client may take (2000); CASES: groups of checks, separated by
# colons (all); FAULT: a deliberate bug of kverbs_hotplug; TRIES: how often, 20 times a second,
# to check for an expected event (300). The programs need /bin/ca_hotplug.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

CONFIG=/sys/kernel/config/kverbs_emu
HOTPLUG=$DEBUGFS/kverbs_hotplug
CYCLES=${CYCLES:-20}
BOUND=${BOUND:-2000}
FAULT=${FAULT:-fault=none}
TRIES=${TRIES:-300}
# scripts/test has a patience of 4 on an idle machine, and more if others keep it busy.
BUSY=$((KV_PATIENCE > 4 ? KV_PATIENCE / 4 : 1))
BOUND=$((BOUND * BUSY))
TRIES=$((TRIES * BUSY))
CASES=${CASES:-devices:clients:both:netdevs:cpus:peers:moments:orders:programs}

# Longest times so far: of remove() in microseconds, the others in milliseconds.
longest=0 longest_unplug=0 longest_unload=0
KINDS="direct softirq thread workqueue unbound plain"
OPERATIONS="sends writes reads atomics"

# put <value> <file>
put() {
	echo "$1" >"$2"
}

# Loads the modules with the contract checker on; CONTRACT=off for a kernel that has none.
load_core() {
	load kverbs contract=warn && load kverbs_ca &&
		grep -qx "${CONTRACT:-warn}" /sys/module/kverbs/parameters/contract
}

# insert_client [parameters]
insert_client() {
	insmod /modules/kverbs_hotplug.ko bound_ms="$BOUND" "$FAULT" "$@"
}

# Sets hundredths, the time since boot in 1/100 s, without leading zeros, which would make it
# octal.
clock() {
	read -r hundredths _ </proc/uptime
	hundredths=${hundredths%.*}${hundredths#*.}
	while [ "${hundredths#0}" ] && [ "${hundredths#0}" != "$hundredths" ]; do
		hundredths=${hundredths#0}
	done
}

# timed <command>...: checks that it ends within the bound. Sets took, in milliseconds.
timed() {
	clock
	began=$hundredths
	"$@" || return 1
	clock
	took=$(((hundredths - began) * 10))
	[ $took -lt "$BOUND" ] || {
		echo "hotplug: $* took $took ms"
		return 1
	}
}

# On unloading, the client logs how long its longest remove() took.
remove_client() {
	dmesg -c >/dev/null
	timed rmmod kverbs_hotplug || return 1
	[ "$took" -le "$longest_unload" ] || longest_unload=$took
	dmesg >/tmp/dmesg
	while read -r line; do
		case $line in
		*"longest remove() took"*)
			line=${line##*took }
			[ "${line% us}" -le "$longest" ] || longest=${line% us} ;;
		esac
	done </tmp/dmesg
}

# tell_longest <what>: reports the longest times, and resets them
tell_longest() {
	result "progress: $1: remove() took $longest us, unplugging $longest_unplug ms," \
		"unloading the client $longest_unload ms at most"
	longest=0 longest_unplug=0 longest_unload=0
}

insert_all() {
	load_core && load kverbs_emu && insert_client
}

# count_in <counts> <key>: sets value.
count_in() {
	value=" $1"
	value=${value#* "$2"=}
	value=${value%% *}
}

# count <key>: sets value to a counter of kverbs_hotplug.
count() {
	read -r counts <"$HOTPLUG/stats"
	count_in "$counts" "$1"
}

# zero <keys>: checks that these counters are 0.
zero() {
	for key in "$@"; do
		count "$key"
		[ "$value" -eq 0 ] || {
			echo "hotplug: $key: $counts"
			return 1
		}
	done
}

# moved <count> <keys>: checks that each of these counters has reached the count.
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

# traffic <count>: checks that each kind of queue has completed at least that many requests,
# and that each operation has completed as often.
traffic() {
	# shellcheck disable=SC2086
	moved "$1" $KINDS $OPERATIONS
}

# states <count>: checks that remove() found a queue pair in each state at least that many
# times.
states() {
	moved "$1" reset init rtr rts sqd sqe err
}

# With no device left, checks that every posted request has completed, once, and in time.
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

# Compared with the earlier counters, each kind of queue has sent.
has_grown() {
	for key in $KINDS; do
		count_in "$before" "$key"
		grown=$value
		count "$key"
		[ "$value" -gt "$grown" ] || return 1
	done
}

# Checks that traffic moves now, on each kind of queue.
grows() {
	read -r before <"$HOTPLUG/stats"
	soon has_grown || {
		echo "hotplug: before: $before now: $counts"
		return 1
	}
}

on() {
	put 1 "$CONFIG/$1/enable"
}

# Takes a device away, within the bound.
off() {
	timed put 0 "$CONFIG/$1/enable" || return 1
	[ "$took" -le "$longest_unplug" ] || longest_unplug=$took
}

# Takes a device away without a time limit, as something holds it up.
off_held() {
	put 0 "$CONFIG/$1/enable"
}

# soon command...: retries, for what happens a moment later.
soon() {
	retry "$TRIES" "$@"
}

off_both() {
	off emu0 && off emu1
}

# Unplugs everything, checks the accounts, and unloads the modules.
finish() {
	check "$1: the devices go in time" off_both
	check "$1: each request has completed once, in time" accounted
	count posted
	result "progress: $1: $value requests"
	check "$1: the client is unloaded in time" remove_client
	tell_longest "$1"
	unload_all
}

# --- devices and clients -----------------------------------------------------------

# Takes the <n>-th device away and brings it back.
device_cycle() {
	off emu$((n % 2)) && on emu$((n % 2))
}

# cycles <number> <command>...
cycles() {
	number=$1
	shift
	n=0
	while [ $n -lt "$number" ]; do
		"$@" || return 1
		n=$((n + 1))
	done
}

# holds <command>: runs it while processes have the devices open
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

# Checks that the programs saw devices go: at least a tenth of the times that each of these
# went.
handles_seen() {
	read -r seen0 </tmp/held0
	read -r seen1 </tmp/held1
	echo "seen: $seen0 and $seen1"
	[ "$seen0" -ge $((CYCLES / 20)) ] && [ "$seen1" -ge $((CYCLES / 20)) ]
}

case_devices() {
	insert_all || return
	check "$CYCLES devices are unplugged and plugged in, with handles open" \
		holds cycles "$CYCLES" device_cycle
	check "processes have seen them go" handles_seen
	check "each kind of queue had traffic" traffic "$CYCLES"
	check "receives of SRQs were among them" moved "$CYCLES" shared
	check "queue pairs were in every state" states "$CYCLES"
	check "no session has failed" zero failed errors
	finish devices
}

# Needs a registered device.
client_cycle() {
	insert_client first="$n" && moved 1 adds && soon traffic 1 && zero failed errors &&
		remove_client
}

case_clients() {
	load_core && load kverbs_emu devices=1 || return
	check "$CYCLES clients are loaded and unloaded" cycles "$CYCLES" client_cycle
	tell_longest clients
	unload_all
}

# far <name>: sets far to the number of rounds of that loop.
far() {
	far=
	read -r far <"/tmp/loop.$1"
	[ -n "$far" ] || far=0
}

# loop <name> <other> <number> <command>...: repeats the command that often, and until the
# other loop has done as many rounds. Sets overlap: the rounds of the other loop in the
# meantime.
loop() {
	me=$1 other=$2 number=$3
	shift 3
	far "$other"
	first=$far
	n=0
	# What the other one does before this one begins would not count.
	: >"/tmp/loop.$me.begun"
	soon [ -e "/tmp/loop.$other.begun" ] || {
		put 0 /tmp/loop.failed
		return 1
	}
	while far "$other" && { [ $n -lt "$number" ] || [ "$far" -lt "$number" ]; }; do
		[ ! -e /tmp/loop.failed ] || return 1
		"$@" || {
			put "$n" /tmp/loop.failed
			return 1
		}
		n=$((n + 1))
		put $n "/tmp/loop.$me"
	done
	overlap=$((far - first))
	put "$longest_unplug" "/tmp/loop.$me.unplug"
}

# at_once <number> <command> <command>: runs both concurrently, each at least that often.
at_once() {
	rm -f /tmp/loop.*
	put 0 /tmp/loop.this
	put 0 /tmp/loop.that
	(loop that this "$1" "$2") &
	that=$!
	loop this that "$1" "$3"
	this=$?
	wait $that && [ $this -eq 0 ] || return 1
	# The result of the other shell.
	read -r took </tmp/loop.that.unplug
	[ "$took" -le "$longest_unplug" ] || longest_unplug=$took
	result "progress: $n of $3, $overlap of $2 meanwhile"
	[ "$overlap" -ge $(($1 - 2)) ]
}

# It is a matter of chance whether a device exists when the client arrives: met counts those
# that do.
loose_client_cycle() {
	insert_client first="$n" && zero failed errors && count adds || return 1
	met=$((met + value))
	remove_client
}

case_both() {
	load_core && load kverbs_emu || return
	met=0
	check "$CYCLES devices and $CYCLES clients come and go at once" \
		at_once "$CYCLES" device_cycle loose_client_cycle
	check "they met" [ "$met" -ge "$CYCLES" ]
	tell_longest both
	unload_all
}

# --- network devices -----------------------------------------------------------------

port_is() {
	grep -q "$1" $PORT/state
}

PORT=/sys/class/infiniband/roce0/ports/1

# ndev_is <name>: checks that the GID belongs to that network device.
ndev_is() {
	grep -qsx "$1" $PORT/gid_attrs/ndevs/0
}

# Checks that there is no GID and no network device of one; attributes that cannot be read
# count as empty.
gids_are_gone() {
	! grep -qv '^0000:0000:0000:0000:0000:0000:0000:0000$' $PORT/gids/* &&
		! grep -qs . $PORT/gid_attrs/ndevs/*
}

# Renames it while it is up, if the kernel can: Debian's 6.1 cannot.
rename() {
	case $(uname -r) in
	6.1.*) ip link set hp0 down && ip link set hp0 name hp1 && ip link set hp1 up ;;
	*) ip link set hp0 name hp1 ;;
	esac
}

# A port is bound to a network device that is renamed, which its HCA remembers, goes and
# comes back.
netdev_cycle() {
	ip link add hp0 type dummy && ip link set hp0 up && put hp0 $CONFIG/roce0/netdev &&
		on roce0 && soon ndev_is hp0 && grows || return 1
	rename && soon ndev_is hp1 && soon port_is ACTIVE && grows || return 1
	grep -qx hp1 $CONFIG/roce0/netdev && off roce0 && on roce0 && soon ndev_is hp1 && grows ||
		return 1
	ip link set hp1 down && soon port_is DOWN && ip link set hp1 up &&
		soon port_is ACTIVE && soon ndev_is hp1 && grows || return 1
	ip link del hp1 && soon port_is DOWN && soon gids_are_gone || return 1
	ip link add hp0 type dummy && ip link set hp0 up &&
		put hp0 $CONFIG/roce0/port1/netdev && soon port_is ACTIVE &&
		ip link del hp0 && off roce0
}

case_netdevs() {
	load_core && load kverbs_emu devices=0 && insert_client links=1 || return
	mkdir $CONFIG/roce0
	check "$((CYCLES / 4)) network devices go under a bound port" cycles $((CYCLES / 4)) netdev_cycle
	check "there was traffic over them" traffic $((CYCLES / 8))
	rmdir $CONFIG/roce0
	check "netdevs: each request has completed once, in time" accounted
	unload_all
}

# --- processors ------------------------------------------------------------------------

CPU1=/sys/devices/system/cpu/cpu1/online

# The HCA's threads for the CPU may run on both.
runners_are_free() {
	for name in kverbs_emu/1 kverbs_user/1; do
		runner=$(grep -lsx $name /proc/[0-9]*/comm)
		grep -q '^Cpus_allowed_list:[[:space:]]*0-' "${runner%comm}status" || return 1
	done
}

# Traffic moves while the CPU is offline, also on a device that was added meanwhile.
cpu_cycle() {
	put 0 $CPU1 && grows && off emu0 && on emu0 && grows && put 1 $CPU1 && off emu1 &&
		put 0 $CPU1 && on emu1 && grows && put 1 $CPU1
}

cpu_toggle() {
	put 0 $CPU1 && put 1 $CPU1
}

case_cpus() {
	load_core && load kverbs_emu && insert_client || return
	check "the CPU of a vector goes, $((CYCLES / 5)) times" cycles $((CYCLES / 5)) cpu_cycle
	check "it goes and comes at any moment" at_once $((CYCLES / 2)) device_cycle cpu_toggle
	check "the HCA's thread for the CPU may run anywhere" runners_are_free
	check "cpus: there was traffic" traffic 1
	check "cpus: no session has failed" zero failed errors
	finish cpus
}

# --- peers ------------------------------------------------------------------------------

# Counts of emu0: mostly of the runs between the two devices, whose messages are long.
sent() {
	read -r sent </sys/class/infiniband/emu0/ports/1/counters/port_xmit_data
}

has_sent() {
	sent && [ "$sent" -ge "$1" ]
}

# Starts a run between two devices, and waits until it sends.
start_run() {
	sent
	put "initiator=emu0 target=emu1 op=write size=4096 iters=1000000 window=16 timeout=30" \
		"$DEBUGFS/kverbs_pingpong/run" 2>/dev/null &
	run=$!
	retry_while $run has_sent $((sent + 500000))
}

# Checks that the run has ended and reports that a device has gone: ENODEV.
run_lost_device() {
	! wait "$1" && grep -qw 'err=-19' "$DEBUGFS/kverbs_pingpong/result"
}

peer_cycle() {
	start_run && off emu$((n % 2)) && run_lost_device $run && on emu$((n % 2))
}

case_peers() {
	insert_all && load kverbs_pingpong run=0 || return
	check "one of two devices goes in the midst of traffic between them" cycles 6 peer_cycle
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

device() {
	put "$1" "$HOTPLUG/device"
}

# kverbs_hotplug's device goes by itself; afterwards its name is free.
went() {
	soon is_gone /sys/class/infiniband/hotplug0 && device off
}

# Checks that these processes exist and are blocked in the kernel.
blocked() {
	for pid in "$@"; do
		grep -q '^State:.*D' "/proc/$pid/status" || return 1
	done
}

# ended <pid>...: checks that each ends with success
ended() {
	for pid in "$@"; do
		wait "$pid" || return 1
	done
}

# While a client is held up, others come and go.
others_pass() {
	insmod /modules/kverbs_pingpong.ko run=0 && rmmod kverbs_pingpong && off emu1 && on emu1
}

# held <what> <pid>...: checks that while the gate holds a callback in <what>, these processes
# wait and no others do, and that they end in time when it opens.
held() {
	word=$1
	shift
	# Other activity wakes them up briefly to check; a process that has ended never blocks
	# again.
	soon gate_waits "$word" && soon blocked "$@" && others_pass && gate_waits "$word" &&
		soon blocked "$@" && gate_waits "$word" && gate go && timed ended "$@"
}

unplug_in_add() {
	gate add emu0 &
	adder=$!
	soon gate_waits add || return 1
	off_held emu0 &
	held add $adder $! && is_gone /sys/class/infiniband/emu0 && gate off && on emu0
}

# ib_unregister_device() while ib_register_device() is running.
unregister_in_register() {
	gate add hotplug0
	device on &
	plug=$!
	soon gate_waits add || return 1
	device off &
	held add $plug $! && went && gate off
}

# The others use ib_unregister_device_queued(), from inside of the client.
unregister_in_add() {
	gate add hotplug0 unplug
	device on &
	held add $! && went && gate off
}

unregister_in_remove() {
	gate remove hotplug0 unplug && device on || return 1
	gate off &
	held remove $! && went
}

# The event reports that the device is broken; the work item that its handler queues removes
# the device, and still uses it.
unregister_in_event() {
	gate event hotplug0 unplug && device on && device fatal && soon gate_waits event ||
		return 1
	held event && went && gate off
}

unplug_in_remove() {
	gate remove emu0
	gate off &
	remover=$!
	soon gate_waits remove || return 1
	off_held emu0 &
	held remove $remover $! && is_gone /sys/class/infiniband/emu0 && on emu0
}

# The other way round: the client is unloaded while the device goes.
unload_in_remove() {
	gate remove emu0
	off_held emu0 &
	unplug=$!
	soon gate_waits remove || return 1
	gate off &
	held remove $unplug $! && is_gone /sys/class/infiniband/emu0 && on emu0
}

unplug_in_event() {
	gate event emu0
	put down $CONFIG/emu0/port1/state
	soon gate_waits event || return 1
	off_held emu0 &
	held event $! && is_gone /sys/class/infiniband/emu0 && gate off &&
		put active $CONFIG/emu0/port1/state && on emu0
}

unload_in_event() {
	gate event emu0
	put down $CONFIG/emu0/port1/state
	soon gate_waits event || return 1
	gate off &
	unloader=$!
	soon blocked $unloader || return 1
	off_held emu0 &
	held event $unloader $! && put active $CONFIG/emu0/port1/state && on emu0
}

case_moments() {
	load_core && load kverbs_emu && insert_client links=1 || return
	check "a device goes while a client comes to it" unplug_in_add
	check "a device goes while it comes" unregister_in_register
	check "a client has its device go from add()" unregister_in_add
	check "a client has its device go from remove()" unregister_in_remove
	check "a client has its device go from an event's work" unregister_in_event
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

# unload_order <names>: unloads all modules in this order, including those that provide memory
# if they are listed. A module that another one uses cannot go.
unload_order() {
	insert_all && load kverbs_pingpong run=0 || return 1
	case " $* " in
	*" fake_gpu "*) load kverbs_fake_gpu size_mb=1 && load kverbs_bar_mem || return 1 ;;
	esac
	for module in "$@"; do
		case $module in
		kverbs) in_use kverbs_p2pdma kverbs_peer_mem && timed rmmod kverbs || return 1
			continue ;;
		bar_mem) in_use kverbs_p2pdma ;;
		fake_gpu) in_use kverbs_peer_mem ;;
		emu | ca | hotplug | pingpong) in_use kverbs kverbs_p2pdma kverbs_peer_mem ;;
		esac && timed rmmod "kverbs_$module" || return 1
	done
}

# possible <names>: with the places where tests delay a thread, kverbs_p2pdma uses kverbs_peer_mem.
possible() {
	case " $* " in
	*" peer_mem "*"p2pdma "*) ! grep -q '^kverbs_p2pdma .*kverbs_peer_mem' /etc/depends ;;
	esac
}

# A run between two devices holds kverbs_pingpong and no other module: it loses the devices.
unload_in_run() {
	insert_all && load kverbs_pingpong run=0 && start_run || return 1
	in_use kverbs_pingpong kverbs && timed rmmod kverbs_hotplug &&
		timed rmmod kverbs_emu &&
		run_lost_device "$run" && rmmod kverbs_pingpong kverbs_ca kverbs kverbs_p2pdma kverbs_peer_mem
}

# A configfs directory or an open file also holds a module.
held_modules() {
	insert_all && mkdir $CONFIG/held || return 1
	in_use kverbs_emu && rmdir $CONFIG/held || return 1
	rmmod kverbs_hotplug
	(
		exec 5</dev/infiniband/ca/emu0
		rmmod kverbs_emu && in_use kverbs_ca kverbs
	) && unload_all
}

case_orders() {
	for order in "ca emu hotplug pingpong" "emu ca pingpong hotplug" "hotplug emu ca pingpong" \
		"hotplug pingpong emu ca" "pingpong emu ca hotplug" "ca pingpong hotplug emu"; do
		for core in "p2pdma peer_mem" "peer_mem p2pdma"; do
			# shellcheck disable=SC2086
			! possible $core || check "unloading in the order $order, core, $core" \
				unload_order $order kverbs $core
		done
	done
	for order in \
		"fake_gpu bar_mem emu ca hotplug pingpong kverbs p2pdma peer_mem" \
		"bar_mem emu fake_gpu pingpong hotplug ca kverbs peer_mem p2pdma" \
		"ca hotplug emu pingpong kverbs fake_gpu peer_mem bar_mem p2pdma" \
		"emu pingpong ca hotplug kverbs bar_mem p2pdma fake_gpu peer_mem"; do
		# shellcheck disable=SC2086
		! possible $order || check "unloading in the order $order" unload_order $order
	done
	check "modules go while a run is under way" unload_in_run
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
