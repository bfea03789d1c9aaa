# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: a root with the kernel's modules and ours, as they are installed, and Debian's
# modprobe. Loads the software HCA under mainline's core, moves to kverbs' and back, with users
# in the way, with failures and with interruptions.

export PATH=/sbin:/bin
SYSFS=/sys/class/infiniband
ON=/etc/modprobe.d/kverbs-switch.conf
TRIAL=/run/modprobe.d/kverbs-switch.conf

# The shell would take its own.
modprobe() {
	/sbin/modprobe "$@"
}

# says <pattern> command...: the command fails, and says so
says() {
	pattern=$1
	shift
	"$@" >/tmp/said 2>&1 || {
		grep -q -e "$pattern" /tmp/said && return
	}
	echo "$*, which had to fail with '$pattern':"
	cat /tmp/said
	return 1
}

mainline_is_on() {
	loaded ib_core && ! loaded kverbs && [ ! -e $ON ] && [ ! -e $TRIAL ]
}

kverbs_is_on() {
	loaded kverbs && loaded kverbs_ca && ! loaded ib_core && [ -e $ON ] && [ ! -e $TRIAL ] &&
		[ -c /dev/infiniband/ca/emu0 ] && kverbs switch status
}

stock_has_hca() {
	modprobe kverbs_emu devices=1 && loaded ib_core && loaded ib_uverbs && ! loaded kverbs &&
		[ -e $SYSFS/emu0 ] && [ -c /dev/infiniband/uverbs0 ]
}

# Drivers of GPUs need it beside mainline's core.
helpers_are_found() {
	modprobe -a kverbs_peer_mem kverbs_p2pdma && loaded kverbs_peer_mem && loaded kverbs_p2pdma &&
		mainline_is_on
}

# A process, named, keeps all as it is.
user_is_named() {
	# It need not read what it has open.
	# shellcheck disable=SC2217
	sleep 10000 <"$1" &
	retry 200 grep -qx sleep /proc/$!/comm
	says "process $! (sleep) has $1 open" kverbs switch "$2"
	status=$?
	kill $!
	wait $!
	return $status
}

switches_on() {
	kverbs switch on && kverbs_is_on
}

theirs_is_refused() {
	says "kverbs is on, and excludes it" modprobe ib_uverbs && ! loaded ib_core &&
		says . modprobe rdma_rxe && ! loaded ib_core
}

# All modules gone, then what the unit kverbs.service does.
comes_up_on() {
	rmmod kverbs_pingpong kverbs_emu kverbs_ca kverbs kverbs_peer_mem kverbs_p2pdma || return
	modprobe -a kverbs_ca kverbs_emu && kverbs_is_on
}

switches_off() {
	kverbs switch off && mainline_is_on && loaded kverbs_emu && [ -c /dev/infiniband/uverbs0 ]
}

# The software HCA does not load.
failure_is_undone() {
	echo "options kverbs_emu devices=1000" >/etc/modprobe.d/broken.conf
	rmmod kverbs_emu
	modprobe ib_uverbs
	says "kverbs stays off: nothing has changed" kverbs switch on
	status=$?
	rm /etc/modprobe.d/broken.conf
	[ $status -eq 0 ] && mainline_is_on && loaded ib_uverbs && modprobe kverbs_emu
}

# The same, when kverbs is on but not loaded: the machine does not stay without a stack.
failure_turns_it_off() {
	modprobe -r kverbs_emu && modprobe ib_uverbs && goes on || return
	rmmod kverbs_emu kverbs_ca kverbs kverbs_peer_mem kverbs_p2pdma || return
	says "kverbs is on, but not loaded" kverbs switch status || return
	! kverbs switch status --json >/tmp/said || return
	echo "options kverbs_emu devices=1000" >/etc/modprobe.d/broken.conf
	says "kverbs is off now, and mainline's stack is loaded" kverbs switch on
	status=$?
	rm /etc/modprobe.d/broken.conf
	[ $status -eq 0 ] && mainline_is_on && modprobe kverbs_emu
}

# by_modprobe <commands>: makes a modprobe in /tmp/cut that does this first.
by_modprobe() {
	mkdir -p /tmp/cut
	cat >/tmp/cut/modprobe <<-END
	#!/bin/sh
	$1
	exec /sbin/modprobe "\$@"
	END
	chmod +x /tmp/cut/modprobe
}

# with_etc_read_only command...
with_etc_read_only() {
	mount --bind /etc/modprobe.d /etc/modprobe.d && mount -o remount,bind,ro /etc/modprobe.d || return
	"$@"
	status=$?
	umount /etc/modprobe.d && return $status
}

# Nothing of what works is taken down.
stays_on_if_it_must() {
	goes on && with_etc_read_only says "kverbs stays on" kverbs switch on && kverbs_is_on
	status=$?
	goes off && return $status
}

# Anybody may ask, and nothing is written for that.
dry_run_writes_nothing() {
	modprobe ib_uverbs && with_etc_read_only kverbs switch on --dry-run >/tmp/said && mainline_is_on
}

stays_off_if_it_must() {
	modprobe ib_uverbs && with_etc_read_only says "nothing has changed" kverbs switch on && mainline_is_on
}

# It can be written when the switch begins, and no more when modprobe is run.
read_only_halfway() {
	by_modprobe "mount --bind /etc/modprobe.d /etc/modprobe.d; mount -o remount,bind,ro /etc/modprobe.d"
	says "$1" with_path kverbs switch on
	status=$?
	while umount /etc/modprobe.d 2>/dev/null; do
		:
	done
	return $status
}

with_path() {
	PATH=/tmp/cut:/sbin:$PATH "$@"
}

comes_back_from_halfway() {
	modprobe ib_uverbs && read_only_halfway "kverbs stays off" && mainline_is_on
}

stays_on_from_halfway() {
	goes on && read_only_halfway "kverbs stays on" && kverbs_is_on
	status=$?
	goes off && return $status
}

second_is_refused() {
	by_modprobe "kverbs switch off >>/tmp/second 2>&1"
	: >/tmp/second
	PATH=/tmp/cut:/sbin:$PATH kverbs switch on && kverbs_is_on &&
		grep -q "another kverbs switch is running" /tmp/second && goes off
}

# By insmod, it was not installed. Nothing is left to repeat.
stray_is_named() {
	hca=$(/sbin/modinfo -n kverbs_emu) && modprobe -r kverbs_emu && mv "$hca" /tmp/ && /sbin/depmod &&
		modprobe ib_uverbs && insmod "/tmp/${hca##*/}" && goes on &&
		says "kverbs_emu is not installed" kverbs switch off && mainline_is_on
	status=$?
	mv "/tmp/${hca##*/}" "$hca" && /sbin/depmod && modprobe kverbs_emu && return $status
}

# cut <module> on|off: the command is killed when modprobe is to load this one
cut() {
	by_modprobe "if [ \"\$1\" = $1 ]; then kill -9 \$PPID; exit 1; fi"
	! PATH=/tmp/cut:/sbin:$PATH kverbs switch "$2" >/tmp/said 2>&1 && ! grep -q "kverbs is" /tmp/said
}

# Nothing in /etc: the machine would come up with mainline's stack.
interrupted_on_is_repeated() {
	cut "$1" on && [ ! -e $ON ] && says "a switch was interrupted" kverbs switch status &&
		switches_on
}

interrupted_on_is_given_up() {
	cut "$1" on && [ ! -e $ON ] && switches_off
}

interrupted_off_is_repeated() {
	cut "$1" off && [ ! -e $ON ] && switches_off
}

# What the machine would boot with: one of the two, and all of it.
comes_up_whole() {
	[ ! -e $ON ] || { grep -q "^install ib_core" $ON && loaded kverbs_ca && loaded kverbs_emu; }
}

# goes on|off: that way, which is then so
goes() {
	kverbs switch "$1" >/tmp/said 2>&1 || return
	case $1 in
	on) kverbs_is_on >/tmp/said 2>&1 ;;
	off) mainline_is_on && loaded kverbs_emu ;;
	esac
}

recovers() {
	comes_up_whole || return
	[ $((point % 2)) -eq 0 ] || goes "$2" || return
	goes "$1" && goes "$2"
}

# cut_anywhere on|off <the other>: the command is killed before each of its calls that change
# something, in turn, and then repeated, or given up, every other time.
cut_anywhere() {
	point=0
	while true; do
		point=$((point + 1))
		cutat $point kverbs switch "$1" >/tmp/cut.said 2>&1
		status=$?
		[ $status -eq 99 ] || break
		recovers "$@" || {
			echo "$1, point $point, $(tail -n 1 /tmp/cut.said):"
			cat /tmp/said
			ls /etc/modprobe.d /run/modprobe.d
			return 1
		}
	done
	result "progress: switch $1 was killed at $((point - 1)) points"
	[ "$status" -eq 0 ] && [ $point -gt 10 ] && goes "$1"
}

check "modprobe kverbs_emu makes a device under mainline's core" stock_has_hca
check "kverbs is refused, with what to do" says "To switch it on: kverbs switch on" modprobe kverbs
check "but not what drivers need beside mainline's core" helpers_are_found
check "who uses mainline's device is named" user_is_named /dev/infiniband/uverbs0 on
check "and all stays as it was" mainline_is_on
check "switch on" switches_on
check "mainline's core is refused, with what to do" theirs_is_refused
check "a module of kverbs is found" modprobe kverbs_pingpong run=0
check "kverbs is there after a boot" comes_up_on
check "who uses kverbs' device is named" user_is_named /dev/infiniband/ca/emu0 off
check "switch off" switches_off
check "what fails is undone" failure_is_undone
check "also where kverbs was on before" failure_turns_it_off
check "but not where it cannot be switched off" stays_on_if_it_must
check "nothing is removed where nothing can be written" stays_off_if_it_must
check "a dry run does not write" dry_run_writes_nothing
check "if that is seen too late, what was there comes back" comes_back_from_halfway
check "or stays" stays_on_from_halfway
check "a second one at once is refused" second_is_refused
check "a module that is not installed is named" stray_is_named
check "on is interrupted and repeated" interrupted_on_is_repeated kverbs_emu
check "off is interrupted and repeated" interrupted_off_is_repeated ib_uverbs
check "on is interrupted and given up" interrupted_on_is_given_up kverbs_ca
check "on is interrupted anywhere" cut_anywhere on off
check "off is interrupted anywhere" cut_anywhere off on
check "on again" switches_on
check "and off" switches_off
check "all of it is removed" modprobe -r kverbs_emu
