# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by run scripts in the guest, on a machine of scripts/p2p-machine: devices and
# their drivers, and sessions of kverbs_p2p_offload.

PCI=/sys/bus/pci
OFFLOAD=$DEBUGFS/kverbs_p2p_offload/run

# driver_of <address>: prints its name, or nothing.
driver_of() {
	[ ! -e "$PCI/devices/$1/driver" ] || basename "$(readlink "$PCI/devices/$1/driver")"
}

driven_by() {
	[ "$(driver_of "$2")" = "$1" ]
}

bind() {
	echo "$1" >"$PCI/devices/$2/driver_override"
	echo "$2" >$PCI/drivers_probe
	driven_by "$1" "$2"
}

unbind() {
	echo "$1" >"$PCI/devices/$1/driver/unbind"
}

# provide <address>..: publishes its memory.
provide() {
	for address in "$@"; do
		check "$address provides memory" bind kverbs_bar_mem "$address"
	done
}

# is_there <address>
is_there() {
	[ -e "$PCI/devices/$1" ]
}

# soon command...: retries for up to 30 s, as the events that it depends on take time.
soon() {
	retry 600 "$@"
}

# A session is an open file, descriptor 4; its latest result is in $told.
session_open() {
	exec 4<>"$OFFLOAD"
}

session_close() {
	exec 4>&-
}

# session <command>: returns the status of the command.
session() {
	done=0
	echo "$*" >&4 2>/tmp/session || done=1
	told=$(cat <&4)
	echo "p2p_offload: $*: $told"
	return $done
}

# session_fails <errno> <command>
session_fails() {
	want=$1
	shift
	! session "$@" || return 1
	tells "status=-$want"
}

# tells <word>: checks that it is in the latest result.
tells() {
	case " $told " in
	*" $1 "*) ;;
	*) return 1 ;;
	esac
}

# told_of <key>: prints its value from the latest result.
told_of() {
	for pair in $told; do
		[ "${pair%%=*}" != "$1" ] || echo "${pair#*=}"
	done
}
