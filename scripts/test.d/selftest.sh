# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part selftest of scripts/test: seeded bugs, each of which must turn a run red.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# says <report> <console> <patterns>: each of them, a line each, is in a line of the report;
# of the console, if it begins with "console:".
says() {
	local pattern in
	while read -r pattern; do
		in=$1
		[[ $pattern != console:* ]] || in=$2
		grep -qE "${pattern#console:}" "$in" || return 1
	done <<<"$3"
}

# Of the seeded bugs, those that this tier runs, and those that it leaves to others.
seeds_here=0 seeds_elsewhere=0

# spawn_seed <how many it has> <name> <command>
spawn_seed() {
	seeds_here=$((seeds_here + $1))
	spawn "seed: $2" "${@:3}"
}

# Each tier is to catch nine of ten.
check_seeds() {
	local all=$((seeds_here + seeds_elsewhere))
	echo "        $seeds_here of $all seeded bugs are caught in this tier"
	if [ $((10 * seeds_here)) -lt $((9 * all)) ]; then
		echo "$seeds_here of $all are less than nine of ten"
	fi >"$work/seeds.out"
	check_empty "the tier runs nine of ten seeded bugs" "$work/seeds.out"
}

# is_red <fault> <what its report must say> <arguments of the guest>
is_red() {
	local reason=$2 name=selftest-$1
	local what="the harness notices: $1"
	shift 2
	if guest "$name" --run "$work/$name.sh" --limit 600 "$@"; then
		echo "the run is green" >>"$work/$name.out"
		check_failed "$what" "$work/$name.out"
	elif says "$work/$name.out" "$KV_BUILD/logs/$name.console" "$reason"; then
		check_passed "$what"
		rm -f "$KV_BUILD/logs/$name.console"
	else
		echo "no sign of: $reason" >>"$work/$name.out"
		check_failed "$what" "$work/$name.out"
	fi
}

# expect_red <fault> <kernel> <module> <what its report must say> [options]
expect_red() {
	local fault=$1 kernel=$2 module=$3 reason=$4 scan=no
	[ "$1" != leak ] || scan=yes
	shift 4
	{
		echo 'result "progress: planted"'
		echo "load $(basename "$module" .ko) \$FAULT"
	} >"$work/selftest-$fault.sh"
	is_red "$fault" "$reason" --kernel "$kernel" --modules "$module" \
		--env "FAULT=fault=$fault SCAN_LEAKS=$scan" "$@"
}

# contract_guest <fault> <kernel> <directory of our modules> <module>: sets CONTRACT,
# arguments of a guest in which a client breaks the contract.
contract_guest() {
	CONTRACT=(--kernel "$2" --modules "$(run_modules "$3") $4" --env "FAULT=fault=$1")
	{
		echo 'load kverbs_emu devices=1'
		echo "load $(basename "$4" .ko) \$FAULT"
	} >"$work/selftest-$1.sh"
}

expect_contract_red() {
	local reason=$5
	contract_guest "${@:1:4}"
	is_red "$1" "$reason" "${CONTRACT[@]}"
}

expect_contract_green() {
	local name=selftest-contract_none
	contract_guest contract_none "$@"
	check_guest "a client that keeps the contract is left alone" $name \
		--limit 600 "${CONTRACT[@]}" --run "$work/$name.sh"
}

# stock_contract <kernel> <directory of our modules> <module>: breaches of rules that need
# nothing of the kernel's debugging, and what keeps them. The report tells whose they are; what
# a module left for ever is not the fault of the one that is loaded at the same addresses.
stock_contract() {
	local by='.*\[kverbs_selftest_contract\]' rule='the contract was broken: rule' fault name
	local sections=/sys/module/kverbs_selftest_contract/sections
	local options=(--kernel "$1" --modules "$(run_modules "$2") $3")
	for name in "contract_kept-$1 kept" "contract_stock-$1 sleep chain left lost kept"; do
		{
			echo 'load kverbs contract=warn && load kverbs_emu devices=1'
			for fault in ${name#* }; do
				echo "load kverbs_selftest_contract fault=contract_$fault &&"
				echo "	before=\$at at=\$(cat $sections/.text) &&"
				echo "	unload kverbs_selftest_contract"
			done
			echo "left=\$(contract_counts | sed -n 's/^7 //p')"
			echo "echo \"selftest: left \$left times, at \$at after \$before\" >/dev/kmsg"
		} >"$work/selftest-${name%% *}.sh"
	done
	name=selftest-contract_kept-$1
	check_guest "a client that keeps the contract is left alone, $1" "$name" \
		--limit 600 "${options[@]}" --run "$work/$name.sh"
	is_red "contract_stock-$1" "$rule 1: kverbs_emu: emu0: qp [0-9]+: post_send slept, $by
$rule 3: kverbs_emu: emu0: cq [0-9]+: completion handler inside post_send, $by
$rule 7: kverbs_selftest_contract: emu0: 1 pd left when .*, $by
$rule 8: kverbs_selftest_contract: emu0: pd [0-9]+: dealloc_pd after its remove.*, $by
console:left 2 times, at (0x[0-9a-f]+) after \\1" \
		"${options[@]}"
}

# hotplug_red <fault> <what its report must say> [<milliseconds> [<group of checks> [<tries>]]]: of
# kverbs_hotplug's own faults.
hotplug_red() {
	local dir=${built[$SEEDED]}
	is_red "hotplug_$1" "$2" --kernel "$SEEDED" \
		--modules "$(hotplug_modules "$dir")" \
		--env "FAULT=fault=$1 CASES=${4:-clients} CYCLES=2 BOUND=${3:-5000} TRIES=${5:-60} SCAN_LEAKS=no" \
		--run "$KV_SCRIPTS/guest/hotplug.sh"
}

# expect_red, and that once was enough.
expect_red_at_once() {
	expect_red "$@"
	! grep -q 'Once more' "$work/selftest-$1.out" ||
		check_failed "no hang is blamed on the emulator: $1" "$work/selftest-$1.out"
}

# Samples of guests that were late: stale* and still*, the emulator's faults, and own*.
check_samples() {
	local file whose
	mkdir "$work/samples"
	awk -v dir="$work/samples/" '
		/^= / { file = dir $2; printf "" >file; next }
		NF && file { print >file }' "$KV_SCRIPTS/selftest/samples.txt"
	for file in "$work"/samples/*; do
		whose=own
		! awk -f "$KV_SCRIPTS/vm.d/stale.awk" "$file" || whose=stale
		! awk -f "$KV_SCRIPTS/vm.d/still.awk" "$file" || whose=still
		[[ ${file##*/} == $whose* ]] || echo "${file##*/}: taken for $whose"
	done >"$work/samples.out"
	check_empty "the emulator's hangs are told from a guest's own" "$work/samples.out"
}

# upward: prints what scripts/layers finds in a made-up tree in which the lowest floor calls and
# includes what is above it, and the other way round.
upward() {
	local tree=$work/upward file
	mkdir -p "$tree"/{scripts,core/contract,core/view}
	cp "$KV_SCRIPTS/layers" "$tree/scripts"
	cat >"$tree/core/contract/low.c" <<-'EOF'
	#include "../view/high.h"
	void low(void) { high(); }
	EOF
	cat >"$tree/core/view/high.c" <<-'EOF'
	#include "../contract/low.h"
	void high(void) { low(); }
	EOF
	echo 'void low(void);' >"$tree/core/contract/low.h"
	echo 'void high(void);' >"$tree/core/view/high.h"
	for file in core/contract/low core/view/high; do
		gcc -c -o "$tree/$file.o" "$tree/$file.c"
	done
	"$tree/scripts/layers" "$tree" 2>&1 || echo "status $?"
}

upward_is_red() {
	upward | diff - <(printf '%s\n' 'core/contract/low.c uses high, of core/view/high.c' \
		'core/contract/low.c includes core/view/high.h' 'status 1') \
		>"$work/upward.out" 2>&1 || true
	check_empty "the harness notices: a call and an include that run upward" "$work/upward.out"
}

# This run holds the lock of the build directory.
second_run_is_refused() {
	local out=$work/second.out status=0
	"$KV_SCRIPTS/test" lint >"$out" 2>&1 || status=$?
	if [ $status -eq 2 ] && [ "$(wc -l <"$out")" -eq 1 ] && grep -q "another .* process $$" "$out"; then
		: >"$out"
	else
		echo "status $status" >>"$out"
	fi
	check_empty "a second run in the same build directory is refused" "$out"
}

# interrupt <output> <pattern> <command>: starts the command in a session of its own, and interrupts it
# once it has printed a line like that. Sets session and status.
interrupt() {
	local out=$1 pattern=$2
	shift 2
	status=0
	: >"$out"
	setsid "$@" >"$out" 2>&1 &
	session=$!
	until grep -q "$pattern" "$out" || ! kill -0 "$session" 2>/dev/null; do
		sleep 0.1
	done
	kill -TERM "$session"
	wait "$session" || status=$?
}

# session_members <session>: prints its processes, a line each, but for those that have ended.
session_members() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="$1" '{
		process = $0
		sub(/\).*/, ")", process)
		sub(/.*\) /, "")
		if ($4 == session && $1 != "Z")
			print "left: " process
	}' || true
}

# soon_none <command>: prints what the command prints, which is to be nothing: processes that were
# told to end may need a moment.
soon_none() {
	local tries=$((100 * ${KV_PATIENCE:-1}))
	while [ -n "$("$@")" ] && [ $((tries--)) -gt 0 ]; do
		sleep 0.1
	done
	"$@"
}

interrupted_run_leaves_nothing() {
	local out=$work/interrupted.out session status
	mkdir "$work/nested"
	interrupt "$out" '^\[.*static checks' env "BUILD=$work/nested" "$KV_SCRIPTS/test" lint
	{
		[ "$status" -eq 130 ] || echo "status $status"
		grep -q 'test: interrupted$' "$out" || cat "$out"
		soon_none session_members "$session"
		flock -n "$work/nested/.test.lock" true || echo "the lock is held"
	} >"$out.left"
	check_empty "an interrupted run leaves no process and no lock" "$out.left"
}

# guest_processes <word>: prints those whose command lines have the word, which the guest was booted
# with; User Mode Linux begins a session of its own. grep's has it in another way.
guest_processes() {
	grep -al "[${1:0:1}]${1:1}" /proc/[0-9]*/cmdline 2>/dev/null | sed 's/^/left: /' || true
}

# The guest is busy: where its time is virtual, one that sleeps wakes at once.
interrupted_guest_leaves_nothing() {
	local out=$work/interrupted-guest.out word=interrupted.$$ session status
	printf '%s\n' 'result "progress: busy"' 'while :; do :; done' >"$work/busy.sh"
	interrupt "$out" '^  busy$' "$KV_SCRIPTS/vm" --kernel "$SEEDED" --name interrupted \
		--append "$word" --progress --run "$work/busy.sh"
	{
		[ "$status" -eq 130 ] || echo "status $status"
		grep -q 'vm: interrupted$' "$out" || cat "$out"
		soon_none guest_processes "$word"
	} >"$out.left"
	check_empty "an interrupted guest leaves no process" "$out.left"
}

# Of traces of failed allocations, only those of a test's go; of races, the kernel's own.
check_injected() {
	local consoles=$KV_SCRIPTS/selftest/consoles.txt sign
	{
		awk -v splats="$SPLATS" -f "$KV_SCRIPTS/vm.d/injected.awk" "$consoles" |
			grep -E ': (goes|stays)' |
			diff <(grep ': stays' "$consoles") - || true
		for sign in 'Call Trace:' 'Sanitizer on:'; do
			grep -q "$sign goes" "$consoles" || echo "there is none that goes: $sign"
		done
	} >"$work/injected.out"
	check_empty "failures that a test made, and the kernel's races, are told from others" \
		"$work/injected.out"
}

# init_red <name> <modules> <what its report must say> <faults>: the sweep of an init, with
# each of them. The module is the same each time.
init_red() {
	local fault
	{
		echo 'load kverbs_initfail'
		for fault in $4; do
			echo "why=\$(failinit /modules/kverbs_selftest.ko fault=$fault 2>&1) ||"
			echo "	fail \"$fault: \$why\""
		done
	} >"$work/selftest-$1.sh"
	is_red "$1" "$3" --kernel "$SEEDED_DEBUG" --modules "$2" --file "$KV_SCRIPTS/guest/failinit.c"
}

# Those with init_good are content; a leak is seen later, by kmemleak alone.
sweeps_are_red() {
	local modules=$1
	init_red init_faults "$modules" \
		$'init_errno: .*it fails with 5\ninit_deaf: .*none made\ninit_left: .*is left' \
		"init_good init_errno init_deaf init_left"
	! grep -q init_good: "$work/selftest-init_faults.out" ||
		check_failed "a good init is left alone" "$work/selftest-init_faults.out"
	init_red init_leak "$modules" 'kmemleak: [0-9]+ objects leaked' init_leak
	! grep -q init_leak: "$work/selftest-init_leak.out" ||
		check_failed "a leak is kmemleak's to see" "$work/selftest-init_leak.out"
	echo "echo off >\$DEBUGFS/kmemleak" >"$work/selftest-kmemleak_off.sh"
	is_red kmemleak_off 'kmemleak is off' --kernel "$SEEDED_DEBUG"
}

expect_green() {
	local name=selftest-none
	echo 'load kverbs_selftest' >"$work/$name.sh"
	check_guest "the harness is content with a module without faults" $name \
		--limit 600 --kernel "$SEEDED_DEBUG" --modules "$1" --run "$work/$name.sh"
}

# need_breaches <kernel>: sets BREACHES.
need_breaches() {
	need_build "$1"
	need_dir "$1" "$KV_SCRIPTS/selftest-contract" KVERBS="$MODULES_DIR" \
		KBUILD_EXTRA_SYMBOLS="$MODULES_DIR/Module.symvers"
	BREACHES=$EXTRA_DIR/kverbs_selftest_contract.ko
}

# Where seeded bugs are run: SEEDED if any kernel shows them, SEEDED_DEBUG if only one with
# KASAN, lockdep and kmemleak does.
seeded_on() {
	SEEDED=lean SEEDED_DEBUG=debug
	! quick || SEEDED=uml SEEDED_DEBUG=uml
}

# spawn_emulator_seeds <kernel> <module>: what the emulator does to guests, and where they are.
# Both wait for the limit of a guest: not for the default tier.
spawn_emulator_seeds() {
	spawn_seed 1 breakpoints expect_red_at_once breakpoints "$1" "$2" \
		$'not finished after\nits last result: progress: planted' --limit 20
	spawn_seed 1 hang expect_red_at_once hang "$1" "$2" \
		$'look 3: processor 1 is at ffffffff\nits last result: progress: planted' --limit 20
}

spawn_contract_seeds() {
	local plain=$BREACHES kernel
	spawn_seed 1 contract_panic expect_contract_red contract_panic "$SEEDED" \
		"${built[$SEEDED]}" "$plain" \
		'Kernel panic.*rule 10 of the contract was broken by kverbs_selftest_contract'
	spawn_seed 1 contract_warn expect_contract_red contract_warn "$SEEDED" \
		"${built[$SEEDED]}" "$plain" \
		'the contract was broken: rule 10: kverbs_selftest_contract'
	need_breaches "$SEEDED_DEBUG"
	spawn_seed 1 contract_locks expect_contract_red contract_locks "$SEEDED_DEBUG" \
		"${built[$SEEDED_DEBUG]}" "$BREACHES" $'circular locking\nconsole:kverbs_client_method'
	spawn "seed: none, contract" expect_contract_green "$SEEDED_DEBUG" \
		"${built[$SEEDED_DEBUG]}" "$BREACHES"
	local kernels=(6.12 6.1)
	! quick || kernels=(uml)
	local seeds=4
	for kernel in "${kernels[@]}"; do
		need_breaches "$kernel"
		# The same bugs on each kernel.
		spawn_seed $seeds "contract, $kernel" stock_contract "$kernel" "$MODULES_DIR" "$BREACHES"
		seeds=0
	done
}

# spawn_seeds <directory of those for any kernel> <for one with debugging>
spawn_seeds() {
	local fault
	local -A says=([leak]='kmemleak: [0-9]+ objects leaked' [uaf]='KASAN: slab-use-after-free'
		[locks]='circular locking|lockdep turned itself off'
		[atomic]='BUG: sleeping function')
	for fault in leak uaf locks atomic; do
		spawn_seed 1 "$fault" expect_red $fault "$SEEDED_DEBUG" "$2/kverbs_selftest.ko" \
			"${says[$fault]}"
	done
	spawn_seed 1 panic expect_red panic "$SEEDED" "$1/kverbs_selftest.ko" 'Kernel panic'
	spawn_seed 1 warn expect_red warn "$SEEDED" "$1/kverbs_selftest.ko" 'WARNING:'
	spawn_seed 1 kunit expect_red kunit "$SEEDED" "$1/kverbs_selftest_kunit.ko" \
		$'case failed: kverbs_selftest.fails\nEXPECTATION FAILED\nExpected 1 == 2'
	spawn_seed 1 suites expect_red suites "$SEEDED" "$1/kverbs_selftest_kunit.ko" \
		'1 of 2 suites' --suites 2
	spawn "seed: none" expect_green "$2/kverbs_selftest.ko"
}

# spawn_hotplug_seed <fault> <what its report must say> [..]
spawn_hotplug_seed() {
	spawn_seed 1 "hotplug_$1" hotplug_red "$@"
}

# Mistakes in the model of the random calls, which the suite exercise finds in the part kunit: in
# User Mode Linux, or on the lean kernel.
exerciser_seeds() {
	awk '/^static const struct lie lies/, /^}/ { nr += /X_LIE/ } END { print nr + 0 }' \
		"$KV_ROOT/kunit/fuzz/main.c"
}

part_selftest() {
	local plain
	seeded_on
	spawn "samples of hung guests" check_samples
	spawn "runs beyond the budget" check_budget
	spawn "failures that a test made" check_injected
	spawn "a second run" second_run_is_refused
	spawn "an interrupted run" interrupted_run_leaves_nothing
	spawn "an interrupted guest" interrupted_guest_leaves_nothing
	spawn_seed 1 upward upward_is_red
	need_build "$SEEDED"
	need_dir "$SEEDED" "$KV_SCRIPTS/selftest" KVERBS_KUNIT=m
	plain=$EXTRA_DIR
	if quick; then
		seeds_elsewhere=$((seeds_elsewhere + 2))
	else
		spawn_emulator_seeds lean "$plain/kverbs_selftest.ko"
	fi
	need_build "$SEEDED_DEBUG"
	need_dir "$SEEDED_DEBUG" "$KV_SCRIPTS/selftest" KVERBS_KUNIT=m
	spawn_seeds "$plain" "$EXTRA_DIR"
	plain=$EXTRA_DIR/kverbs_selftest.ko
	need_initfail "$SEEDED_DEBUG"
	# Those of an init, and kmemleak that is off.
	spawn_seed 5 "in an init" sweeps_are_red "$plain $EXTRA_DIR/kverbs_initfail.ko"
	spawn_hotplug_seed lose 'BUG: .* lost=[1-9]'
	spawn_hotplug_seed double 'BUG: .* doubled=[1-9]'
	spawn_hotplug_seed late 'BUG: .* late=[1-9]'
	spawn_hotplug_seed no_drain 'BUG: .* lost=[1-9]'
	spawn_hotplug_seed slow \
		$'BUG: .* over=[1-9]\nconsole:hotplug: rmmod kverbs_hotplug took' 500 clients 300
	spawn_hotplug_seed idle 'BUG: .* idle=[1-9]'
	spawn_hotplug_seed wrong 'BUG: .* wrong=[1-9]'
	spawn_hotplug_seed error 'BUG: .* errors=[1-9]'
	spawn_hotplug_seed open 'a device goes while a client comes to it' 5000 moments
	spawn_hotplug_seed forget \
		$'broken: rule 7: kverbs_hotplug\nconsole:emu0: kverbs_hotplug leaked qp [0-9]+'
	need_breaches "$SEEDED"
	spawn_contract_seeds
	seeds_here=$((seeds_here + $(exerciser_seeds)))
	# A data race.
	has_part kcsan || seeds_elsewhere=$((seeds_elsewhere + 1))
	check_seeds
}
