# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part sweep of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# All there is.
init_modules() {
	local name
	run_modules "$1"
	for name in edu fake_gpu bar_mem limit cqbench scale cabench peerbench \
		peer_move p2p_offload p2pbench p2pwrite hotplug; do
		printf '%s ' "$1/kverbs_$name.ko"
	done
}

need_initfail() {
	need_dir "$1" "$KV_SCRIPTS/initfail"
}

# check_init <kernel> <number> <which modules>: MODULES=..., or OTHERS=... for all but these.
# On one processor: loading modules patches code, which all others wait for.
check_init() {
	local kernel=$1 machine=()
	[ "$kernel" = uml ] || machine=(--qemu "-device edu")
	check_guest "allocation failures in the init of modules, $kernel, $2" \
		"init-fail-nth-$kernel-$2" --kernel "$kernel" --limit 3600 \
		--append rcupdate.rcu_expedited=1 --smp 1 \
		${machine[@]+"${machine[@]}"} --env "$3 $TURNS" \
		--modules "$(init_modules "${built[$kernel]}") $(extra_dir "$kernel" initfail)/kverbs_initfail.ko" \
		--file "$KV_SCRIPTS/guest/failinit.c" --run "$KV_SCRIPTS/guest/init_fail_nth.sh"
}

# Which allocations fail: a tenth of them, others each time, or all.
TURNS=EVERY=1
whole || TURNS="EVERY=10 FROM=$((RANDOM % 10 + 1))"

part_sweep() {
	local core=kverbs_peer_mem:kverbs_p2pdma:kverbs:kverbs_ca kernel=debug
	! quick || kernel=uml
	need_build "$kernel"
	spawn_guest "allocation failures, $kernel" sweep --kernel "$kernel" --limit 3600 \
		--append rcupdate.rcu_expedited=1 --env "$TURNS" \
		--modules "$(run_modules "$MODULES_DIR")" \
		--file "$KV_SCRIPTS/guest/failnth.c" --run "$KV_SCRIPTS/guest/sweep.sh"
	need_initfail "$kernel"
	if whole; then
		spawn "allocation failures in init, 1" check_init $kernel 1 MODULES=$core:kverbs_emu
		spawn "allocation failures in init, 2" check_init $kernel 2 OTHERS=$core:kverbs_emu
	else
		spawn "allocation failures in init, $kernel" \
			check_init $kernel 1 MODULES=$core:kverbs_pingpong
	fi
}
