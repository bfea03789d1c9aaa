# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: measures devices that come and go. Each measurement is a line
# "row: kind=... ...":
#
#   kind=clients  processor time that the registration and the unregistration of a device take,
#                 by the number of clients, each of which is told of it
#   kind=plug     one device that comes and goes, with what waiting there is: without a client,
#                 and with kverbs_hotplug's 19 queue pairs, 18 of them with requests in progress
#
#   CLIENTS  numbers of clients, separated by commas
#   DEVICES  devices that come and go together, for kind=clients
#   CYCLES   times that the one device comes and goes

CLIENTS=$(echo "$CLIENTS" | tr , ' ')

# cost make|drop <devices>: sets cpu_ns and all_ns, of all devices
cost() {
	cpu_ns=0 all_ns=0
	spent=$(emudevs "$1" "$2") || fail "emudevs $1 $2"
	cpu_ns=${spent% *} all_ns=${spent#* }
	[ "$cpu_ns" -gt 0 ]
}

by_clients() {
	load kverbs_scale clients="$1" && cost make "$DEVICES" || return
	made=$((cpu_ns / DEVICES))
	cost drop "$DEVICES" || return
	unload kverbs_scale
	result "row: kind=clients clients=$1 come_ns=$made go_ns=$((cpu_ns / DEVICES))"
	result "progress: $1 clients"
}

# cycles <what is there>
cycles() {
	for n in $(seq "$CYCLES"); do
		cost make 1 || return
		come="come_ns=$all_ns come_cpu_ns=$cpu_ns"
		cost drop 1 || return
		result "row: kind=plug client=$1 cycle=$n $come go_ns=$all_ns go_cpu_ns=$cpu_ns"
	done
	result "progress: $CYCLES cycles, client: $1"
}

# Checks that these counters of kverbs_hotplug are 0.
none_of() {
	for key in "$@"; do
		grep -qw "$key=0" "$DEBUGFS/kverbs_hotplug/stats" || return 1
	done
}

load kverbs && load kverbs_emu devices=0 || exit 1
wait_idle || exit 1
for clients in $CLIENTS; do
	by_clients "$clients" || fail "$clients clients: no result"
done
cycles none
load kverbs_hotplug && cycles hotplug
check "each request has completed once, in time" none_of failed lost doubled late wrong over
