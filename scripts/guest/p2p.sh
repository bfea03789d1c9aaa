# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a machine of scripts/p2p-machine: moves data between an RDMA peer,
# peer-to-peer memory and a DMA engine, and checks each byte of each step.
#
# IN_SWITCH=bus: data move within a switch, bypassing the host bridge; none: that case is
# skipped, see below. ACROSS=host: the host bridge forwards requests to other ports;
# refused: it is not known to. IN_SLOT=bus: data also move directly within a slot of a
# root port; host: the port redirects them. NVME=bar_mem: our driver provides the NVMe
# controller's memory buffer; kernel: the kernel's own driver does. OWN=1: our provider
# manages the memory on any kernel.
# shellcheck disable=SC2154

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

# moves <how the CA reaches the memory> <how the engine does> <setup arguments>
moves() {
	hca_way=$1
	engine_way=$2
	shift 2
	session_open
	session setup hca=emu0 peer=emu1 "$@" &&
		tells "hca=$hca_way" && tells "engine=$engine_way" &&
		session run rounds=2 seed="$SEED" && tells status=0
	moved=$?
	session_close
	return $moved
}

# refused_setup <errno> <setup arguments>
refused_setup() {
	want=$1
	shift
	session_open
	session_fails "$want" setup hca=emu0 peer=emu1 "$@"
	was_refused=$?
	session_close
	return $was_refused
}

# Expects one of the nearest providers, all of which are in the same switch.
finds_nearest() {
	session_open
	session setup hca=emu0 peer=emu1 engine="$edu0" && tells distance=8
	found=$?
	case $(told_of provider) in
	"$pair0" | "$pair1" | "$iv0" | "$nvme0") ;;
	*) found=1 ;;
	esac
	session_close
	return $found
}

# The peer's CA uses system memory.
no_parent() {
	session_open
	session_fails 19 setup hca=emu1 peer=emu0 engine="$edu0" && tells step=clients
	was_refused=$?
	session_close
	return $was_refused
}

# Free memory of all providers; the kernel's driver keeps queues in the memory of its
# provider.
available() {
	cat "$PCI"/devices/*/p2pmem/available
}

load kverbs_p2pdma own_provider="${OWN:-0}" && load kverbs_bar_mem && load kverbs_edu || exit 1
load kverbs contract=warn && load kverbs_ca && load kverbs_emu devices=2 pci="$hca0" && load kverbs_p2p_offload || exit 1

check "without a provider there is nothing to set up" \
	refused_setup 18 engine="$edu0"
provide "$pair0" "$pair1" "$iv0" "$iv1" "$iv2" "$iv3" "$iv4"
if [ "$NVME" = kernel ]; then
	load nvme
	check "the kernel's driver has the NVMe controller" \
		soon driven_by nvme "$nvme0"
	check "its memory buffer is a provider" \
		soon grep -qx 1 "$PCI/devices/$nvme0/p2pmem/published"
else
	provide "$nvme0"
fi
before=$(available)
check "the nearest provider is found" finds_nearest

# QEMU translates every request of a device behind its IOMMU, even those that a switch
# would route by bus address, so traffic within a switch cannot be tested there.
if [ "$IN_SWITCH" = bus ]; then
	check "RDMA, engine and back within a switch" \
		moves bus bus engine="$edu0" provider="$iv0"
	check "likewise by a function of a slot with two" \
		moves bus bus engine="$edu0" provider="$pair1" bytes=4096
	check "likewise of a length that is no multiple of anything" \
		moves bus bus engine="$edu0" provider="$pair0" bytes=12345
	check "likewise by memory of an NVMe controller" \
		moves bus bus engine="$edu0" provider="$nvme0" bytes=20000
fi

if [ "$ACROSS" = host ]; then
	check "RDMA, engine and back through the host bridge" \
		moves host host engine="$edu0" provider="$iv1" bytes=12345
	check "likewise from and to three root ports" \
		moves host host engine="$edu1" provider="$iv1" bytes=8192
	check "likewise, the engine by what the port above its slot makes of it" \
		moves host "$IN_SLOT" engine="$edu1" provider="$iv4" bytes=8192
	check "likewise from switch to switch" \
		moves host host engine="$edu0" provider="$iv2" bytes=8192
	check "likewise to another host bridge" \
		moves host host engine="$edu0" provider="$iv3" bytes=8192
	check "likewise by an engine there" \
		moves host host engine="$edu3" provider="$iv1" bytes=8192
else
	check "another root port is refused" refused_setup 18 engine="$edu0" provider="$iv1"
	check "another switch is refused" refused_setup 18 engine="$edu0" provider="$iv2"
	check "another host bridge is refused" refused_setup 18 engine="$edu0" provider="$iv3"
	check "an engine elsewhere is refused" refused_setup 18 engine="$edu1" provider="$iv0"
fi

check "a function that is no provider is refused" \
	refused_setup 18 engine="$edu0" provider="$hca0"
check "a function that is no engine is refused" refused_setup 19 engine="$hca0"
check "a CA without a PCI parent is refused" no_parent
check "all memory is free again" [ "$(available)" = "$before" ]
