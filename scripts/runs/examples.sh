# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the examples of the documentation, on two devices.

# example <module> <what it says on each device>
example() {
	load "$1" || return
	[ "$(dmesg | grep -c "$2")" -eq 2 ] || fail "$1 does not say on both devices: $2"
	unload "$1"
}

load kverbs
load kverbs_emu
example hello 'hello from emu[01]: success, 42'
example cq_before 'cq_before: 64 messages on emu[01]$'
example cq_after 'cq_after: 64 messages on emu[01]$'
unload kverbs_emu
unload kverbs
