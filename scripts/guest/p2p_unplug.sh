# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a machine of scripts/p2p-machine with QEMU's monitor on the third
# serial port: providers go while their memory is allocated and a list of clients is
# bound to them. Users of the memory see errors; nothing is freed while in use.
#
# BY=button: devices are unplugged by the button at their slot; sysfs: by the same steps,
# but without the kernel's slot driver, whose locking lockdep complains about (6.12).
# SAYS: a word from the log message about a provider that waits; empty: there is none.
# OWN=1: our provider manages the memory on any kernel.
# shellcheck disable=SC2154

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

MONITOR=/dev/ttyS2

# The monitor's greeting may arrive before stty runs, and the terminal's echo of it
# begins a line: the first newline may end an escape sequence, the second ends the line.
monitor() {
	printf '\n\n%s\n' "$*" >$MONITOR
}

# unplug <name> <address>: acts like the button at the slot, which asks the driver to let
# go. BY=sysfs: acts like an administrator, who waits for the removal.
unplug() {
	if [ "$BY" = button ]; then
		monitor device_del "$1"
	else
		(exec 4>&-; echo 1 >"$PCI/devices/$2/remove") &
	fi
}

setup() {
	session setup hca=emu0 peer=emu1 engine="$edu0" bytes=8192 "$@"
}

# No memory can be allocated from a provider that goes: it is not found, or has none.
gives_none() {
	exec 5>&4
	session_open
	! setup "$@" && { tells step=find || tells step=alloc; }
	gave_none=$?
	session_close
	exec 4>&5 5>&-
	return $gave_none
}

# The CPU can access the memory as before: that is the first step of a run. The other
# steps find that the provider goes, or work as before if the kernel manages the memory.
keeps_memory() {
	session run seed="$SEED" || ! tells step=prepare && ! tells step=none
}

# Starts a run, $running, which is under way on return: it has the peer send in each round.
run_begins() {
	before=$(packets emu1)
	session run rounds=1000 seed="$SEED" &
	running=$!
	retry_while $running packets_beyond "$before" emu1 && kill -0 $running
}

# failed <pid>: checks that it ends with an error.
failed() {
	! wait "$1"
}

# The driver has let go, and the operation that caused this has not finished.
waits() {
	[ -z "$(driver_of "$1")" ] && is_there "$1" && kill -0 "$2"
}

# Our provider logs what it waits for, also if the kernel has no provider of its own.
says_so() {
	dmesg | grep "$1" | grep -q "$SAYS"
}

stty -F $MONITOR raw -echo
load kverbs_p2pdma own_provider="${OWN:-0}" && load kverbs_bar_mem && load kverbs_edu || exit 1
load kverbs contract=warn && load kverbs_ca && load kverbs_emu devices=2 pci="$hca0" && load kverbs_p2p_offload || exit 1

# A session that is notified lets go at once, even in the middle of a run.
provide "$nvme0"
session_open
check "a session uses the provider" setup
check "a run is under way" run_begins
unplug nvme0 "$nvme0"
check "the provider is unplugged during a run" soon is_gone "$PCI/devices/$nvme0"
check "the run has ended with an error" failed "$running"
check "the session has nothing any more" session_fails 19 run
session_close
session_open
check "there is no provider to be found" session_fails 18 setup hca=emu0 peer=emu1 \
	engine="$edu0"
session_close

# A session that keeps the memory holds up the unplugging until it frees it.
provide "$iv0"
session_open
check "a session keeps memory of it" setup provider="$iv0" keep=1
unplug iv0 "$iv0"
check "its driver lets it go" soon waits "$iv0" $$
check "the memory is still there" keeps_memory
check "nobody else gets any" gives_none provider="$iv0"
check "the unplugging waits" waits "$iv0" $$
[ -z "$SAYS" ] || check "the log tells for what" soon says_so "$iv0"
session_close
check "it ends when the memory is freed" soon is_gone "$PCI/devices/$iv0"

# Likewise the unbinding of its driver. The process that waits must not have the
# session's file open.
provide "$pair0"
session_open
check "another session keeps memory" setup keep=1
(exec 4>&-; unbind "$pair0") &
unbinding=$!
check "the driver lets the provider go" soon waits "$pair0" $unbinding
check "its memory is still there" keeps_memory
check "nobody else gets any of it" gives_none
check "the unbinding waits" waits "$pair0" $unbinding
session_close
check "the unbinding ends when the memory is freed" wait $unbinding
check "no provider is left" [ ! -e "$PCI/devices/$pair0/p2pmem" ]

# Likewise the removal of the device by sysfs.
provide "$pair1"
session_open
check "a third session keeps memory" setup keep=1
(exec 4>&-; echo 1 >"$PCI/devices/$pair1/remove") &
removing=$!
check "the driver lets it go" soon waits "$pair1" $removing
check "its memory is there, too" keeps_memory
session_close
check "the removal ends when the memory is freed" wait $removing
check "the device is gone" soon is_gone "$PCI/devices/$pair1"
echo 1 >"$PCI"/rescan
check "it is found again" soon is_there "$pair1"

# Unbinding a provider whose memory no session keeps does not wait.
provide "$pair1"
session_open
check "a session lets go" setup
check "unbinding does not wait" unbind "$pair1"
check "that session has nothing any more" session_fails 19 run
session_close

# A client that goes.
provide "$pair0"
session_open
check "a session uses the engine" setup
check "another run is under way" run_begins
unplug edu0 "$edu0"
check "the engine is unplugged during a run" soon is_gone "$PCI/devices/$edu0"
check "that run has ended with an error" failed "$running"
check "the session finds no engine" session_fails 19 run
session_close
check "all memory is free" cmp "$PCI/devices/$pair0/p2pmem/size" \
	"$PCI/devices/$pair0/p2pmem/available"
