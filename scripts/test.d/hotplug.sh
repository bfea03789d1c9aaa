# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part hotplug of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

hotplug_modules() {
	echo "$(run_modules "$1") $1/kverbs_fake_gpu.ko $1/kverbs_bar_mem.ko $1/kverbs_hotplug.ko"
}

# check_hotplug <kernel> <what it was built for> <cycles> <milliseconds> <groups of
# checks> [options]: devices come and go so often, and remove(), unplugging and unloading
# may take so long.
check_hotplug() {
	local kernel=$1 tree=$2 name
	name=hotplug-$tree-${5%%:*}
	check_guest "hot-plug, ${5//:/, }, $tree" "$name" --kernel "$kernel" --need dummy \
		--limit $((1200 + 9 * $3)) --append "$CA_APPEND" \
		--env "CYCLES=$3 BOUND=$4 CASES=$5" \
		--modules "$(hotplug_modules "${built[$tree]}")" \
		--file "$PROGRAMS/ca_hotplug" --run "$KV_SCRIPTS/guest/hotplug.sh" "${@:6}"
}

# Those with cpus, peers and orders want two CPUs.
HOTPLUG_CASES=netdevs:cpus:peers:moments:orders:programs

# On the debug kernel grace periods would take most of the time.
part_hotplug() {
	local kernel quickly=(--append "$CA_APPEND rcupdate.rcu_expedited=1")
	need_programs
	if quick; then
		need_build uml
		# How long a remove() may take is for --full to judge: here the machine may be busy.
		spawn "hot-plug, uml" check_hotplug uml uml 20 60000 \
			devices:clients:both:netdevs:moments:programs
		return
	fi
	need_build debug
	spawn "hot-plug of clients, debug" \
		check_hotplug debug debug $((200 * scale)) 10000 clients:both "${quickly[@]}"
	spawn "hot-plug of devices, debug" \
		check_hotplug debug debug $((200 * scale)) 10000 devices "${quickly[@]}"
	spawn "hot-plug of others, debug" \
		check_hotplug debug debug $((20 * scale)) 10000 $HOTPLUG_CASES "${quickly[@]}"
	for kernel in "${stock_kernels[@]}"; do
		need_stock "$kernel"
		spawn "hot-plug, $STOCK_NAME" check_hotplug "$kernel" "$STOCK_NAME" $((20 * scale)) 5000 \
			devices:clients:both:$HOTPLUG_CASES
	done
}
