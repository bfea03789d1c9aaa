# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: tests peer-to-peer memory with RDMA, by the program p2p_rdma of
# tools/tests; each of its cases is a check. The machine is one of scripts/p2p-machine;
# the variables that it prints hold the addresses. OWN=1: our provider does the work on
# any kernel.

# shellcheck source=ca_cases.sh
. /bin/ca_cases.sh

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

CONFIG=/sys/kernel/config/kverbs_emu

# An HCA below a PCI function goes with the function, and may come back with it.
parent_goes() {
	mkdir $CONFIG/child && echo "$hca0" >$CONFIG/child/pci &&
		echo 1 >$CONFIG/child/enable && [ -e /sys/class/infiniband/child ] &&
		! echo >$CONFIG/child/pci &&
		echo 1 >"$PCI/devices/$hca0/remove" && is_gone "$PCI/devices/$hca0" &&
		[ "$(cat $CONFIG/child/enable)" = 0 ] &&
		[ ! -e /sys/class/infiniband/child ] &&
		! echo 1 >$CONFIG/child/enable &&
		echo 1 >"$PCI/rescan" && soon is_there "$hca0" &&
		[ "$(cat $CONFIG/child/pci)" = "$hca0" ] &&
		echo 1 >$CONFIG/child/enable && [ -e /sys/class/infiniband/child ]
	done=$?
	rmdir $CONFIG/child
	return $done
}

# bad_parents <text>..
bad_parents() {
	mkdir $CONFIG/child || return
	done=0
	for text in "$@"; do
		! echo "$text" >$CONFIG/child/pci || done=1
	done
	rmdir $CONFIG/child
	return $done
}

load kverbs_p2pdma own_provider="${OWN:-0}" || exit 1
load kverbs_bar_mem && load kverbs contract=warn && load kverbs_ca &&
	load kverbs_emu devices=0 &&
	load kverbs_peer_move || exit 1
provide "${iv0:?}" "${pair0:?}" ${iv1:+"$iv1"}
export hca0 iv0 pair0 iv1
set_fault_knobs
cases p2p_rdma
check "what is no PCI address is no parent" bad_parents 1 0000:00 00:00.8 00:20.0 100:00.0 \
	0000:00:00.0x x0000:00:00.0
check "an HCA goes with its PCI parent" parent_goes "${hca0:?}"
unload kverbs_emu
check "a PCI parent is named when the module is loaded" \
	load kverbs_emu devices=2 pci="$hca0"
check "the first device is there" [ -e "$PCI/devices/$hca0/kverbs_emu"*/infiniband/emu0 ]
check "the second is elsewhere" [ ! -e "$PCI/devices/$hca0/kverbs_emu"*/infiniband/emu1 ]
