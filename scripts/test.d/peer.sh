# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part peer of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# Two GPUs whose memory is a PCI device's.
PEER_BARS=
for gpu in gpu0 gpu1; do
	PEER_BARS+=" -object memory-backend-ram,id=$gpu,size=8M,share=on"
	PEER_BARS+=" -device ivshmem-plain,memdev=$gpu"
done

peer_modules() {
	echo "$(run_modules "$1") $1/kverbs_fake_gpu.ko $1/kverbs_peer_move.ko"
}

# Can importers of dma-bufs be told that one moves?
dmabufs_move() {
	grep -cx 'CONFIG_DMABUF_MOVE_NOTIFY=y' "$(kernel_tree "$1")/.config" || true
}

# check_peer <kernel> <what it was built for> <operations> <what the GPUs are> [options]
check_peer() {
	local kernel=$1 tree=$2 operations=$3 gpus=$4 name
	shift 4
	program_files "fake_gpu peer_e2e peer_dmabuf peer_sysfs"
	name=peer-$kernel
	[ "$gpus" = ram ] || name+=-$gpus
	check_guest "peer memory, $kernel, $gpus" "$name" --kernel "$kernel" \
		--append "$CA_APPEND" --limit $((900 * scale)) "${FILES[@]}" \
		--env "OPERATIONS=$operations SEED=$RANDOM GPUS=$gpus MOVES=$(dmabufs_move "$tree")" \
		--modules "$(peer_modules "${built[$tree]}")" --run "$KV_SCRIPTS/guest/peer.sh" "$@"
}

# check_peer_stress <kernel> <operations>: it wants each operation to have met a device that
# goes, which on one CPU is up to chance.
check_peer_stress() {
	check_guest "peer memory under stress, $1" "peer-stress-$1" --kernel "$1" \
		--limit $((900 + 300 * scale)) --append "$CA_APPEND" \
		--env "OPERATIONS=$2 SEED=$RANDOM" \
		--modules "$(peer_modules "${built[$1]}")" --file "$PROGRAMS/peer_stress" \
		--run "$KV_SCRIPTS/guest/peer_stress.sh"
}

part_peer() {
	local kernel
	need_programs
	if quick; then
		need_build uml
		spawn "peer memory, uml" check_peer uml uml 1000 ram
		return
	fi
	need_build debug
	spawn "peer memory under stress, debug" check_peer_stress debug $((100000 * scale))
	spawn "peer memory, debug" check_peer debug debug $((1000 * scale)) ram
	for kernel in "${stock_kernels[@]}"; do
		need_stock "$kernel"
		spawn "peer memory, $STOCK_NAME" check_peer "$kernel" "$STOCK_NAME" $((10000 * scale)) ram
	done
	need_build 6.12
	spawn "peer memory of PCI devices, 6.12" check_peer 6.12 6.12 $((1000 * scale)) bar --qemu "$PEER_BARS"
}
