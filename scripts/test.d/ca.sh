# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part ca of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# What runs in user space: the command and its checks, and the tests.
PROGRAMS=$KV_BUILD/static

need_programs() {
	build_job "" "build, tools" tools_build
}

tools_build() {
	local out=$PROGRAMS log=$KV_BUILD/logs/build-tools.log status=0
	mkdir -p "$out" "$KV_BUILD/logs"
	{
		make -C "$KV_ROOT/tools" -j"$KV_JOBS" O="$out" STATIC=1 &&
			make -C "$KV_ROOT/tools/tests" -j"$KV_JOBS" BUILD="$out"
	} >"$log" 2>&1 || status=$?
	check_build "the tools build" "$log" $status
	[ "$status" -eq 0 ] || return $status
	make -s -C "$KV_ROOT/tools" O="$out" STATIC=1 check >"$work/tools.out" 2>&1 || true
	awk '/^ok / { tell() } /^FAILED / { tell() } /^ / { why = why "\n" $0 }
	function tell() { flush(); line = $0; why = "" }
	function flush() { if (line != "") print line why }
	END { flush() }' "$work/tools.out"
	sed -n 's/^ok  */ok /p; s/^FAILED  */failed /p' "$work/tools.out" >>"$KV_TALLY"
	grep -q '^ok ' "$work/tools.out" ||
		check_failed "checks of the command" "$work/tools.out"
}

# Memory may be registered a hundred times. The debugging of the DMA API warns where more
# than seven mappings have a cache line: it is off.
CA_APPEND=dma_debug=off

# program_files <names>: sets FILES, options for guests that run these programs.
program_files() {
	local name
	FILES=()
	for name in $1; do
		FILES+=(--file "$PROGRAMS/$name")
	done
}

# check_ca <kernel> <programs> <modules>: they tell of each of their cases.
check_ca() {
	local kernel=$1
	program_files "$2"
	check_guest "the interface to user space, $kernel" "ca-$kernel" \
		--kernel "$kernel" --append $CA_APPEND --need dummy --limit 1800 --env "TESTS=${2// /:}" \
		--modules "$(run_modules "$3")" "${FILES[@]}" --run "$KV_SCRIPTS/guest/ca.sh"
}

# check_ca_bounce <kernel> <modules>: no user's memory is registered by way of a copy.
check_ca_bounce() {
	program_files ca_memory
	check_guest "memory that the HCA does not reach, $1" "ca-bounce-$1" --kernel "$1" \
		--append "$CA_APPEND swiotlb=force" --need dummy --limit 300 \
		--env "TESTS=ca_memory ONLY=copy" --modules "$(run_modules "$2")" "${FILES[@]}" \
		--run "$KV_SCRIPTS/guest/ca.sh"
}

# check_json <what> <name of a run>: what the command wrote as JSON is read here: a guest
# has no parser.
check_json() {
	[ -e "$work/$2" ] || return 0
	sed -n 's/^json: //p' "$work/$2" >"$work/$2.json"
	python3 - "$work/$2.json" >"$work/$2.json.out" 2>&1 <<-'END' || true
	import json, sys
	lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
	if not lines:
	    print("there are none")
	for line in lines:
	    try:
	        json.loads(line)
	    except ValueError as error:
	        print(error, "in:", line)
	END
	check_empty "$1" "$work/$2.json.out"
}

# The command wants inotify, which the test kernels do not have.
check_ca_tool() {
	local kernel=$1
	check_guest "the command kverbs, $kernel" "ca-tool-$kernel" --kernel "$kernel" \
		--need dummy --limit 300 --modules "$(run_modules "$2") $2/kverbs_fake_gpu.ko" \
		--file "$PROGRAMS/kverbs" --run "$KV_SCRIPTS/guest/ca_tool.sh"
	check_json "the command's JSON is valid, $kernel" "ca-tool-$kernel"
}

# The patterns that the fuzzer looks for are those of slub_debug=P, which KASAN on User Mode
# Linux takes for errors of the allocator.
# check_ca_fuzz <kernel> <requests> <directory of our modules>
check_ca_fuzz() {
	local append=$CA_APPEND
	[ "$1" = uml ] || append+=" slub_debug=P"
	check_guest "hostile callers, $1" "ca-fuzz-$1" --kernel "$1" \
		--limit $((1800 * scale)) --append "$append" \
		--env "REQUESTS=$2 SEED=$RANDOM" \
		--modules "$(run_modules "$3")" --file "$PROGRAMS/ca_fuzz" \
		--run "$KV_SCRIPTS/guest/ca_fuzz.sh"
}

part_ca() {
	local kernel tests="ca_abi ca_objects ca_memory ca_access ca_events ca_uring"
	need_programs
	if quick; then
		need_build uml
		spawn "hostile callers, uml" check_ca_fuzz uml 300000 "$MODULES_DIR"
		spawn "the interface to user space, uml" check_ca uml "$tests" "$MODULES_DIR"
		return
	fi
	need_build debug
	spawn "hostile callers, debug" check_ca_fuzz debug $((1000000 * scale)) "$MODULES_DIR"
	spawn "the interface to user space, debug" check_ca debug "$tests" "$MODULES_DIR"
	tests+=" ca_abi32 ca_objects32 ca_memory32 ca_events32"
	for kernel in "${stock_kernels[@]}"; do
		need_stock "$kernel"
		spawn "the interface to user space, $STOCK_NAME" check_ca "$kernel" "$tests" "$MODULES_DIR"
		spawn "memory that the HCA does not reach, $STOCK_NAME" \
			check_ca_bounce "$kernel" "$MODULES_DIR"
		spawn "the command kverbs, $STOCK_NAME" check_ca_tool "$kernel" "$MODULES_DIR"
	done
}
