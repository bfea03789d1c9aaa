# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: programs of RDMA that have two ends, on the device DEV, whose address is HOST.

# A port as in /proc/net: 18515, on which the programs meet, unless PORT says otherwise.
listening() {
	grep -q "$(printf ':%04X .* 0A ' "${PORT:-18515}")" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# The server can be reached, or is no more.
server_is_up() {
	listening || ! kill -0 "$server" 2>/dev/null
}

# Shows what both said, and ends the server. SIGNAL is what ends a program that takes too long.
ends_failed() {
	cat /tmp/server /tmp/client
	kill -s "${SIGNAL:-TERM}" "$server" 2>/dev/null
	wait "$server"
	return 1
}

# both_ends <program> [<arguments>]: runs a server and a client of it, which is told of HOST.
both_ends() {
	: >/tmp/client
	timeout "${PATIENCE:-100}" "$@" -d "$DEV" >/tmp/server 2>&1 &
	server=$!
	retry 400 server_is_up && timeout "${PATIENCE:-100}" "$@" -d "$DEV" "$HOST" >/tmp/client 2>&1 &&
		wait $server && return
	ends_failed
}

# client <command>: again, for the server may not be there yet, which some take badly; but not once
# that has ended, or if it took too long.
client() {
	for _ in $(seq "${TRIES:-60}"); do
		timeout -s "${SIGNAL:-TERM}" "${PATIENCE:-100}" "$@" >/tmp/client 2>&1 && return
		case $? in
		137 | 143) return 1 ;;
		esac
		kill -0 "$server" 2>/dev/null || return
		usleep 50000
	done
	return 1
}

# A server waits for connections by rdma_cm, as RDMA netlink has it.
cm_listens() {
	rdma resource show cm_id | grep -q LISTEN
}

# both_ends_by_address <program> <arguments of the server> -- <arguments of the client>: READY is
# a command that tells that the server can be reached, for a client that must not be refused.
# CLIENT is the client's program, if that has another name.
both_ends_by_address() {
	program=$1
	shift
	ours=
	while [ "$1" != -- ]; do
		ours="$ours $1"
		shift
	done
	shift
	: >/tmp/client
	# shellcheck disable=SC2086
	timeout -s "${SIGNAL:-TERM}" "${PATIENCE:-100}" "$program" $ours >/tmp/server 2>&1 &
	server=$!
	[ -z "${READY:-}" ] || retry 200 "$READY" || { ends_failed; return; }
	client "${CLIENT:-$program}" "$@" || { ends_failed; return; }
	[ -z "${ENDLESS:-}" ] || {
		kill $server
		wait $server
		return 0
	}
	wait $server || ends_failed
}

# without_end <arguments of both_ends_by_address>: the server does not end by itself.
without_end() {
	ENDLESS=yes both_ends_by_address "$@"
}
