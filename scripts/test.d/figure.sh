# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part figure of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

p2pbench_modules() {
	echo "$1/kverbs_p2pdma.ko $1/kverbs_bar_mem.ko $1/kverbs_p2pbench.ko"
}

# How long preemption and interrupts are off. On a kernel of its own: with sanitizers and
# lockdep, what is counted would be mostly theirs.
spawn_latency() {
	local loads
	need_build latency
	loads=$("$KV_SCRIPTS/kunit" --list 'emu_latency*' | paste -sd:)
	spawn_guest "how long preemption is off" figure_latency --kernel latency --icount \
		--limit 1200 --mem 2048 --append cryptomgr.notests --env "LOADS=$loads" \
		--modules "$(run_modules "$MODULES_DIR")
		$(module_paths "$MODULES_DIR" kunit_emu_latency)" \
		--run "$KV_SCRIPTS/guest/latency.sh"
}

# scripts/bench profile ends with an error unless what it counts is what the clock says.
check_profile() {
	if "$KV_SCRIPTS/bench" profile --quick >"$work/profile" 2>&1; then
		check_passed "a profile counts what the clock says"
	else
		check_failed "a profile counts what the clock says" "$work/profile"
	fi
}

# What processes have of the software HCA, beside rdma_rxe: in instructions, and in time.
spawn_user_figures() {
	local need="dummy rdma_ucm rdma_rxe crc32_generic"
	needs=()
	need_mainline 6.12
	spawn "what a process's message costs" check_tools "$KV_SCRIPTS/guest/uverbs_cost.c" \
		"what a process's message costs" figure_user --kernel 6.12 --icount --limit 300 \
		--append cryptomgr.notests --need "$need" --modules "${MAINLINE_MODULES%% *}" \
		--run "$KV_SCRIPTS/guest/figure_user.sh"
	add_job check "$PARALLEL" "${needs[*]-}" "the speed of perftest" check_tools "" \
		"the speed of perftest" speed --kernel 6.12 --limit 400 --need "$need" \
		--modules "${MAINLINE_MODULES%% *}" --run "$KV_SCRIPTS/guest/speed.sh"
}

# spawn_figure <what> <name> <script> "<modules>" [options]: instructions are counted: the kernel's
# self-tests of its ciphers would count.
spawn_figure() {
	spawn_guest "$1" "$2" --kernel 6.12 --icount --limit 300 --append cryptomgr.notests \
		--run "$KV_SCRIPTS/guest/$3.sh" --modules "$4" "${@:5}"
}

part_figure() {
	local dir core switch
	switch=(--qemu "$("$KV_SCRIPTS/p2p-machine" switch)"
		--env "$("$KV_SCRIPTS/p2p-machine" --print names switch)")
	need_build lean
	spawn_guest "what finding peer-to-peer memory costs" figure_p2p_find \
		--kernel lean --icount --limit 300 --suites 1 \
		--modules "$(run_modules "$MODULES_DIR") $MODULES_DIR/kunit/kverbs_kunit.ko
		$MODULES_DIR/kunit/kunit_p2p_scale.ko" --run "$KV_SCRIPTS/guest/p2p_find.sh"
	need_build 6.12
	dir=$MODULES_DIR core=$(run_modules "$MODULES_DIR")
	spawn_figure "what a message costs" figure figure "$core"
	spawn "a profile and the clock" check_profile
	spawn_figure "what a completion costs" figure_cq figure_cq "$core $dir/kverbs_cqbench.ko"
	spawn_figure "what the contract checker costs" figure_contract figure_contract \
		"$core $dir/kverbs_cqbench.ko"
	spawn_figure "what many objects cost" figure_scale scale "$core $dir/kverbs_scale.ko" \
		--limit $((200 * scale)) --env "QPS=10000 DEVICES=$((100 * scale))" \
		--file "$KV_SCRIPTS/guest/emudevs.c"
	spawn_figure "what channel-adapter requests cost" figure_ca ca_cost \
		"$core $dir/kverbs_cabench.ko" --file "$KV_ROOT/tools/tests/ca_cost.c"
	spawn_figure "what peer memory costs" figure_peer peer_cost "$core $dir/kverbs_peerbench.ko"
	spawn_figure "what an RDMA WRITE into peer-to-peer memory costs" figure_p2p_write \
		p2p_write_cost "$core $dir/kverbs_bar_mem.ko $dir/kverbs_p2pwrite.ko" "${switch[@]}"
	spawn_figure "what peer-to-peer memory costs" figure_p2p p2p_cost \
		"$(p2pbench_modules "$dir")" "${switch[@]}"
	# In real time: they want both of the machine's processors.
	spawn_guest_alone "peer-to-peer memory on two CPUs" p2p_cpus --kernel 6.12 --limit 400 \
		"${switch[@]}" --modules "$(p2pbench_modules "$dir")" --run "$KV_SCRIPTS/guest/p2p_cpus.sh"
	spawn_guest_alone "peer memory on two CPUs" peer_cpus --kernel 6.12 --limit 400 \
		--modules "$core $dir/kverbs_peerbench.ko" --run "$KV_SCRIPTS/guest/peer_cpus.sh"
	spawn_user_figures
	needs=()
	spawn_latency
}
