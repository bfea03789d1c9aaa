# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on the machine "tree" of scripts/p2p-machine: checks the route of each
# pair of functions against a table; the effect of ACS, by writes to config space; and
# the command kverbs p2p, which is in /bin. Each JSON document goes to the host as one
# line of results that begins with "json: ".
#
# ACROSS=host: the processors forward requests through the host bridge (AMD Zen);
# refused: they are not known to. OWN=1: our provider manages the memory on any kernel.
# shellcheck disable=SC2154

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

# shellcheck source=tool_lib.sh
. /bin/tool_lib.sh

P2P=$DEBUGFS/kverbs_p2pdma
POLICY=/sys/module/kverbs_p2pdma/parameters/policy
ACROSS=${ACROSS:-refused}
OWN=${OWN:-0}

# --- verdicts ----------------------------------------------------------------------

# route <provider> <client>: prints the line of the pair
route() {
	grep "^provider=$1 client=$2 " "$P2P/matrix"
}

# route_has <provider> <client> <key=value>..
route_has() {
	line=" $(route "$1" "$2") "
	shift 2
	for pair in "$@"; do
		case $line in
		*" $pair "*) ;;
		*)
			echo "no $pair in:$line"
			return 1
			;;
		esac
	done
}

# expect <what> <provider> <client> <hops> <map> <why>: checks both directions if the
# client could also provide.
expect() {
	distance=$4
	[ "$5" != refused ] || distance=-1
	check "$1: $5, $6" route_has "$2" "$3" distance="$distance" hops="$4" map="$5" why="$6"
}

# across <what> <provider> <client> <hops>: through the host bridge
across() {
	if [ "$ACROSS" = host ]; then
		expect "$@" host zen
	else
		expect "$@" refused not_listed
	fi
}

verdicts() {
	expect "the same function" "$iv0" "$iv0" 0 bus same_function
	expect "two functions of a slot" "$pair0" "$pair1" 2 bus common_bridge
	expect "two functions of a root port's slot" "$iv4" "$edu1" 2 bus common_bridge
	expect "the same switch" "$iv0" "$edu0" 4 bus common_bridge
	expect "the same switch, from a slot of two" "$pair1" "$nvme0" 4 bus common_bridge
	expect "the same switch, another one" "$iv2" "$edu2" 4 bus common_bridge
	across "two switches" "$iv0" "$edu2" 8
	across "two switches, back" "$iv2" "$hca0" 8
	across "two root ports" "$iv1" "$hca1" 4
	across "a switch and a root port" "$iv1" "$edu0" 6
	across "two host bridges" "$iv0" "$edu3" 6
	across "two host bridges, back" "$iv3" "$iv1" 4
	across "two root ports of the second host bridge" "$iv3" "$edu3" 4
}

# --- ACS ---------------------------------------------------------------------------

# bridge_above <function>: prints its address
bridge_above() {
	basename "$(dirname "$(readlink -f "$PCI/devices/$1")")"
}

# config <function> <offset> <bytes>: prints the number there
config() {
	od -An -v -t "u$3" -j "$2" -N "$3" "$PCI/devices/$1/config" | tr -d ' '
}

# acs_of <function>: prints the offset of its ACS capability, which has number 13
acs_of() {
	at=256
	while [ "$at" -ge 256 ]; do
		header=$(config "$1" "$at" 4)
		if [ $((header & 0xffff)) -eq 13 ]; then
			echo "$at"
			return
		fi
		at=$((header >> 20))
	done
	return 1
}

# set_acs <function> <bits>: bits of the first byte of ACS control
set_acs() {
	acs=$(acs_of "$1") || return 1
	printf '%b' "\\0$(printf %o "$2")" |
		dd of="$PCI/devices/$1/config" bs=1 seek=$((acs + 6)) conv=notrunc 2>/dev/null
	[ "$(config "$1" $((acs + 6)) 1)" -eq "$2" ]
}

# redirected <bits>: the port above redirects requests for a function of the same slot
redirected() {
	port=$(bridge_above "$iv4")
	set_acs "$port" "$1" || return 1
	if [ "$ACROSS" = host ]; then
		route_has "$iv4" "$edu1" distance=2 map=host why=zen
	else
		route_has "$iv4" "$edu1" distance=-1 map=refused why=acs
	fi && route_has "$iv4" "$edu1" hops=2 bridge="$port" acs_ports=1 redirects="$port"
}

passed_on() {
	set_acs "$(bridge_above "$iv4")" "$1" &&
		route_has "$iv4" "$edu1" distance=2 map=bus why=common_bridge acs_ports=0
}

# The root port is above the switch, and requests within the switch do not get there.
not_on_the_way() {
	set_acs "$(bridge_above "$(bridge_above "$(bridge_above "$iv0")")")" 12 &&
		route_has "$iv0" "$edu0" distance=4 map=bus acs_ports=0
}

acs() {
	check "ACS: P2P Request Redirect redirects" redirected 4
	check "ACS: it does not any more" passed_on 0
	check "ACS: P2P Completion Redirect does" redirected 8
	check "ACS: both do" redirected 12
	check "ACS: Source Validation does not" passed_on 1
	check "ACS: Upstream Forwarding does not" passed_on 16
	check "ACS: none" passed_on 0
	check "ACS: above the bridge that they share it does not matter" not_on_the_way
}

# --- the command -------------------------------------------------------------------

told_to_load() {
	gives 1 kverbs p2p && err "kverbs_p2pdma is not loaded" "make load"
}

told_to_be_root() {
	gives 1 su user -s /bin/sh -c "kverbs p2p" && err "as root"
}

told_to_mount() {
	umount "$DEBUGFS"
	gives 1 kverbs p2p && err "mount -t debugfs"
	status=$?
	mount -t debugfs debugfs "$DEBUGFS"
	return $status
}

told_of_no_provider() {
	gives 1 kverbs p2p && err "no provider" "kverbs_bar_mem" &&
		gives 0 kverbs p2p --json && json && out '"providers": \[\]'
}

# cells <client> <pattern>: its row of the matrix
cells() {
	out "^${1#0000:}  $2\$"
}

# Columns: pair0, pair1, iv0, iv1, iv4, iv2, iv3.
shows_matrix() {
	gives 0 kverbs p2p &&
		out "^  $iv0  16 MiB, 16 MiB available, published, kept by .*kverbs_bar_mem\$" &&
		out "^CLIENT .*${pair0#0000:} .*${iv0#0000:} .*${iv3#0000:} *\$" '^  -  *refused' &&
		if [ "$ACROSS" = host ]; then
			cells "$edu0" '- *4 bus *4 bus *4 bus *6 host *6 host *8 host *6 host *'
		else
			cells "$edu0" '- *4 bus *4 bus *4 bus *-  *-  *-  *- *' &&
				cells "$pair1" 'kverbs_bar_mem *2 bus *0 bus *4 bus .*' &&
				cells "$edu1" '- *-  *-  *-  *-  *2 bus  *-  *- *'
		fi
}

shows_some_rows() {
	gives 0 kverbs p2p "$edu0" "${edu1#0000:}" && out "^${edu0#0000:} " "^${edu1#0000:} " &&
		! out "^${edu2#0000:} " >/dev/null &&
		gives 1 kverbs p2p 0000:ff:1f.7 && err "no client 0000:ff:1f.7"
}

says_why() {
	port=$(bridge_above "$iv4")
	set_acs "$port" 4 && gives 0 kverbs p2p --why "$edu1" && set_acs "$port" 0 &&
		out "^$edu1 (-) to the memory of $iv4 (kverbs_bar_mem):\$" \
			"pci=disable_acs_redir=$port\$" &&
		if [ "$ACROSS" = refused ]; then
			out "refused: ports redirect it" "refused: no bridge is above both" \
				"Put both below one switch"
		else
			out "by the host bridge, 2 ports: processors of AMD Zen"
		fi && gives 0 kverbs p2p --why "$edu0" &&
		out "by bus address, 4 ports" "The bridge above both: $(bridge_above \
			"$(bridge_above "$edu0")")"
}

is_json() {
	gives 0 kverbs p2p --json && json &&
		out "\"provider\": \"$iv0\"" '"distance": null\|"map": "host"' &&
		[ "$(grep -c '"hops"' /tmp/out)" -eq "$(wc -l <"$P2P/matrix")" ]
}

usage() {
	gives 2 kverbs p2p --fly && err "^kverbs p2p" && gives 0 kverbs p2p --help && out "\-\-why"
}

# --- the policy --------------------------------------------------------------------

# A route that is refused, under each policy.
policies() {
	if [ "$OWN" = 0 ] && grep -q keeper=kernel "$P2P/providers"; then
		echo force >$POLICY && route_has "$iv0" "$edu3" map=refused why=not_listed
		return
	fi
	for policy in warn force; do
		echo $policy >$POLICY &&
			route_has "$iv0" "$edu3" distance=6 map=host why=by_policy &&
			route_has "$iv0" "$edu0" distance=4 map=bus why=common_bridge &&
			gives 0 kverbs p2p && out '6 host! ' || return 1
	done
	echo deny >$POLICY && route_has "$iv0" "$edu3" distance=-1 map=refused why=not_listed
}

echo "user:x:1000:1000::/:/bin/sh" >>/etc/passwd
check "the command tells what to load" told_to_load
load kverbs_p2pdma own_provider="$OWN" && load kverbs_bar_mem || exit 1
check "the command wants root" told_to_be_root
check "the command wants debugfs" told_to_mount
check "the command tells that there is no provider" told_of_no_provider
provide "$pair0" "$pair1" "$iv0" "$iv1" "$iv2" "$iv3" "$iv4"
verdicts
acs
check "the command shows the matrix" shows_matrix
check "the command shows rows of it" shows_some_rows
check "the command says why" says_why
check "the command writes JSON" is_json
check "the command tells how it is used" usage
[ "$ACROSS" = host ] || check "the policy decides what is not known" policies
kverbs p2p
