# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the GIDs of an Ethernet port follow what is on top of its network device:
# VLAN, macvlan, bridge and bond.

CONFIG=/sys/kernel/config/kverbs_emu

# on <device> <network device>
on() {
	mkdir "$CONFIG/$1" && echo "$2" >"$CONFIG/$1/port1/netdev" && echo 1 >"$CONFIG/$1/enable"
}

# gid <a.b.c.d>: as GIDs have it.
gid() {
	echo "$1" | tr . ' ' | while read -r a b c d; do
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$a" "$b" "$c" "$d"
	done
}

# has <device> <address> <network device>: a GID, and whose it is.
has() {
	port=/sys/class/infiniband/$1/ports/1
	grep -lx "$(gid "$2")" "$port"/gids/* 2>/dev/null | while read -r file; do
		cat "$port/gid_attrs/ndevs/${file##*/}"
	done | grep -qx "$3"
}

has_not() {
	! grep -qx "$(gid "$2")" "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null
}

# soon <command>: it is so within ten seconds.
soon() {
	retry 200 "$@"
}

# up <network device> <address>
up() {
	ip addr add "$2/24" dev "$1" && ip link set "$1" up
}

for dev in low0 low1; do
	add_dummy $dev
done
load kverbs && load kverbs_emu devices=0 || exit 1
on roce0 low0
on roce1 low1

ip link add link low0 name vlan5 type vlan id 5
up vlan5 10.5.0.1
check "a VLAN's address is a GID of the port" soon has roce0 10.5.0.1 vlan5

ip link add link low0 name mac0 type macvlan
up mac0 10.6.0.1
check "a macvlan's address is a GID of the port" soon has roce0 10.6.0.1 mac0
ip addr del 10.6.0.1/24 dev mac0
check "it goes with the address" soon has_not roce0 10.6.0.1
ip link del mac0

ip link add br0 type bridge
ip link set low0 master br0
up br0 10.7.0.1
check "a bridge's address is a GID of the port" soon has roce0 10.7.0.1 br0
ip link set low1 master br0
# Another change has come through after that, so this one has, too.
ip addr add 10.9.0.1/24 dev low1
check "the other port has an address of its own" soon has roce1 10.9.0.1 low1
check "but not the bridge's" has_not roce1 10.7.0.1
ip link set low0 nomaster
check "it moves when the first one leaves the bridge" soon has roce1 10.7.0.1 br0
check "and is gone from the first port" soon has_not roce0 10.7.0.1
ip link del br0

ip link add bond0 type bond
echo active-backup >/sys/class/net/bond0/bonding/mode
for dev in low0 low1; do
	ip link set $dev down
	ip link set $dev master bond0
done
up bond0 10.8.0.1
echo low0 >/sys/class/net/bond0/bonding/active_slave
check "a bond's address is a GID of its active slave's port" soon has roce0 10.8.0.1 bond0
check "and not of the idle one's" soon has_not roce1 10.8.0.1
echo low1 >/sys/class/net/bond0/bonding/active_slave
check "it follows when the bond takes another slave" soon has roce1 10.8.0.1 bond0
check "and leaves the former one" soon has_not roce0 10.8.0.1
ip link del bond0
check "and goes with the bond" soon has_not roce1 10.8.0.1

ip link del vlan5
for dev in roce0 roce1; do
	echo 0 >$CONFIG/$dev/enable
	rmdir $CONFIG/$dev
done
unload_all
