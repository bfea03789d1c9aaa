# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: each allocation of the init of each module fails in turn, or with EVERY and
# FROM some of them, see guest/failinit.c. Where that made init fail, nothing may be left:
# no module, nothing in sysfs or debugfs, no memory. A driver's init with a device there is
# that of the device, too. Not so of bar_mem: giving memory pages is up to the kernel, which
# does not survive all of it; the suite p2p_fail_nth has what is ours of it.

# What init may fail with, but for ENOMEM, and how often: where a client has no memory for
# one of its two devices, it does not have it (ENODEV), once each, and once more where one
# allocation is the n-th and the next time, as others came before it, the one after; where
# the kernel has none for the name of a platform device, or for the directory of a module's
# drivers, it says EINVAL; and so does fake_gpu where the registry of peer memory, which
# returns only NULL, has no memory for its client.
may_fail_with() {
	case $1 in
	kverbs_pingpong) echo 19:3 ;;
	kverbs_emu | kverbs_edu | kverbs_bar_mem) echo 22:10 ;;
	kverbs_fake_gpu) echo 22:40 ;;
	esac
}

# Whose init asks for nothing but files in debugfs, without which it does.
survives() {
	case $1 in
	kverbs_p2pdma | kverbs_p2pbench) echo 1 ;;
	esac
}

# sweep <module> [parameters]
sweep() {
	module=$1
	shift
	result "progress: init of $module${*:+, $*}"
	read -r began _ </proc/uptime
	if ! out=$(ERRNO=$(may_fail_with "$module") SURVIVES=$(survives "$module") \
		failinit "/modules/$module.ko" "$*" 2>&1); then
		fail "allocation failures in the init of $module: $out"
		! loaded "$module" || unload "$module"
		return
	fi
	read -r now _ </proc/uptime
	result "progress: $out ($((${now%.*} - ${began%.*})) s)"
	pass "allocation failures in the init of $module"
}

# All of them, or a list, as MODULES=kverbs_scale:kverbs_edu; or OTHERS than those of it.
wanted() {
	case ":${OTHERS:-}:" in
	*":$1:"*) return 1 ;;
	esac
	case ":${MODULES:-$1}:" in
	*":$1:"*) return 0 ;;
	esac
	return 1
}

# swept <module> [parameters], if it is here and wanted
swept() {
	wanted "$1" || return 0
	[ -e "/modules/$1.ko" ] || {
		fail "$1 is not here"
		return
	}
	sweep "$@"
}

export EVERY FROM
load kverbs_initfail || exit 1
# What others are loaded on top of stays.
swept kverbs_peer_mem
load kverbs_peer_mem || exit 1
swept kverbs_p2pdma
load kverbs_p2pdma || exit 1
swept kverbs
load kverbs || exit 1
swept kverbs_ca
load kverbs_ca || exit 1
swept kverbs_emu devices=1
load kverbs_emu devices=2 || exit 1

# Not all of the kernel is at ease with failures. It enables the device by ACPI, which uses
# what it has freed: that is done before. And it warns when files of an interrupt go that
# could not be made: one that is no MSI has them from the first time on.
for device in /sys/bus/pci/devices/*; do
	[ "$(cat "$device/vendor" "$device/device")" = "0x1234
0x11e8" ] || continue
	echo 0 >"$device/msi_bus"
	echo 1 >"$device/enable"
done
swept kverbs_edu
load kverbs_edu || exit 1
swept kverbs_fake_gpu size_mb=1
swept kverbs_bar_mem
swept kverbs_pingpong run=1 iters=4 window=2 pairs=1 size=64 timeout=5
swept kverbs_limit
swept kverbs_cqbench
swept kverbs_scale clients=2 qps=4 depth=2 messages=4 size=8
swept kverbs_cabench
swept kverbs_peerbench
swept kverbs_peer_move
swept kverbs_p2p_offload
swept kverbs_p2pbench
swept kverbs_p2pwrite
[ ! -e /modules/kverbs_hotplug.ko ] || swept kverbs_hotplug starved=1
