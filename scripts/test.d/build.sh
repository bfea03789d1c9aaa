# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts/test builds.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# Where the modules are for each kernel, whether they are built yet or not.
declare -A built

# Sparse, with the endian checks.
SPARSE=CF=-D__CHECK_ENDIAN__

# split_exports <module>: the functions exported by it of which the compiler has made two. In the
# second, _RET_IP_ is in the first, not in the caller whom the contract checker is to name.
split_exports() {
	nm "$1" | awk '
		sub(/^__ksymtab_/, "", $3) { exported[$3] }
		sub(/\.part\..*/, "", $3) && $3 !~ /^__pfx_/ { split_up[$3] }
		END { for (f in split_up) if (f in exported) print f }'
}

# build_kernel <kernel> [make arguments]
build_kernel() {
	local kernel=$1 status=0 found
	build_modules "$@" || status=$?
	check_build "builds without a warning, $kernel" "$BUILD_LOG" $status
	[ $status -eq 0 ] || return $status
	found=$(mktemp)
	split_exports "${built[$kernel]}/kverbs.ko" >"$found"
	check_empty "exported functions are in one piece, $kernel" "$found"
	rm -f "$found"
}

# suites_for <kernel>: sets suites, arguments of make. The default tier builds for the debug
# kernel the suites that it runs there.
suites_for() {
	suites=()
	[ "$1" != latency ] || suites=(KVERBS_SUITES=kunit_emu_latency)
	[ "$1" != debug ] || ! quick || suites=("KVERBS_SUITES=$(kunit_modules "$P2P_SUITES,$TWO_CPUS")")
}

# need_build <kernel>: jobs registered from now on need the modules for it. Sets
# MODULES_DIR, where they will be. Sparse looks at what stock kernels run, which the default
# tier has no time for, and at the suites.
need_build() {
	local kernel=$1 checks=() suites
	if [ -z "${built[$kernel]:-}" ]; then
		built[$kernel]=$KV_BUILD/$(tree_release "$(kernel_tree "$kernel")")
	fi
	case $kernel in
	uml | debug | kcsan | gcov | latency | *-arm64) ;;
	*) checks=(C=2 "$SPARSE") ;;
	esac
	suites_for "$kernel"
	build_job "" "build, $kernel" build_kernel "$kernel" ${checks[@]+"${checks[@]}"} \
		${suites[@]+"${suites[@]}"}
	MODULES_DIR=${built[$kernel]}
}

# The same for a kernel as --kernel has it. Sets STOCK_NAME, what it is called.
need_stock() {
	kernel_of "$1"
	STOCK_NAME=$KERNEL_BUILT_FOR
	need_build "$STOCK_NAME"
}

# Where build_dir() builds these sources for this kernel.
extra_dir() {
	echo "$KV_BUILD/extra/$(basename "$2")-$1"
}

# build_dir <what> <kernel> <directory of sources> [make arguments]: sources beside ours,
# linked into the build directory.
build_dir() {
	local what=$1 kernel=$2 source=$3 dir tree status=0 log arch=() arg
	shift 3
	tree=$(kernel_tree "$kernel")
	dir=$(extra_dir "$kernel" "$source")
	log=$KV_BUILD/logs/build-$(basename "$source")-$kernel.log
	mkdir -p "$dir" "$KV_BUILD/logs"
	find "$dir" -type l -delete
	cp -rsf "$(realpath "$source")"/* "$dir/"
	for arg in "$@"; do
		[[ $arg != KBUILD_EXTRA_SYMBOLS=* ]] || check_symbols_anew "$dir" "${arg#*=}"
	done
	[ "$kernel" != uml ] || arch=(ARCH=um)
	make -C "$tree" -j"$KV_JOBS" M="$dir" ${arch[@]+"${arch[@]}"} W=1 "$@" modules >"$log" 2>&1 || status=$?
	check_build "$what" "$log" $status
	return $status
}

# need_dir <kernel> <directory of sources> [make arguments]: jobs registered from now on
# need it, and it needs our modules, which need_build() has registered. Sets EXTRA_DIR, where
# it will be.
need_dir() {
	local kernel=$1 source=$2
	shift 2
	EXTRA_DIR=$(extra_dir "$kernel" "$source")
	build_job "${build_index["build, $kernel"]}" \
		"build, $(basename "$source"), $kernel" build_dir \
		"$(basename "$source") builds, $kernel" "$kernel" "$source" "$@"
}

# ulp_against_mainline <kernel> <ulp>: the same source, with the kernel's own rdma
# headers and symbols.
ulp_against_mainline() {
	local source=$work/mainline-$2
	mkdir -p "$source"
	mainline_sources "$2" "kverbs_$2" "$source"
	build_dir "$2 builds against mainline's headers, $1" "$1" "$source"
}

# build_for_mainline <kernel>: the software HCA for mainline's core, and what runs on it; with sparse,
# which the default tier has no time for.
build_for_mainline() {
	local kernel=$1 status=0 source=$work/mainline-guest checks=(C=2 "$SPARSE")
	! quick || checks=()
	build_modules "$kernel" CORE=mainline ${checks[@]+"${checks[@]}"} || status=$?
	check_build "the software HCA builds for mainline's core, $kernel" "$BUILD_LOG" $status
	[ $status -eq 0 ] || return $status
	mkdir -p "$source"
	mainline_sources pingpong kverbs_pingpong "$source"
	cp "$KV_SCRIPTS/mainline-check/"*.c "$source/"
	cat "$KV_SCRIPTS/mainline-check/Kbuild" >>"$source/Kbuild"
	build_dir "what runs on it builds, $kernel" "$kernel" "$source"
}

# need_mainline <kernel>: jobs registered from now on need what that builds. Sets
# MAINLINE_MODULES, what it will be.
need_mainline() {
	local dir
	dir=$(extra_dir "$1" "$work/mainline-guest")
	build_job "" "build for mainline, $1" build_for_mainline "$1"
	MAINLINE_MODULES="$KV_BUILD/$(tree_release "$(kernel_tree "$1")")/mainline/kverbs_emu.ko"
	MAINLINE_MODULES+=" ${MAINLINE_MODULES%emu.ko}fake_gpu.ko"
	MAINLINE_MODULES+=" $dir/kverbs_pingpong.ko $dir/kverbs_mainline_check.ko"
}

# The examples, as a user would build them.
need_examples() {
	need_build "$1"
	need_dir "$1" "$KV_ROOT/Documentation/examples" KVERBS="$MODULES_DIR"
}

# Once more, against mainline's headers.
examples_against_mainline() {
	mkdir -p "$work/mainline-examples-$1"
	cp "$KV_ROOT"/Documentation/examples/* "$work/mainline-examples-$1/"
	build_dir "the examples build against mainline's headers, $1" "$1" \
		"$work/mainline-examples-$1"
}

# Programs among them; static, for a guest has no libraries.
examples_programs() {
	local name log=$KV_BUILD/logs/build-programs.log status=0
	mkdir -p "$KV_BUILD/logs"
	for name in ca_ioctl ca_uring; do
		gcc -static -O2 -Wall -Wextra -Werror -I"$KV_ROOT/include/uapi" \
			-o "$work/$name" "$KV_ROOT/Documentation/examples/$name.c" \
			-luring || status=$?
	done >"$log" 2>&1
	examples_python >>"$log" 2>&1 || status=$?
	check_build "the programs among the examples build" "$log" $status
	return $status
}

# Debian's Python, with what the example imports: a guest has none.
examples_python() {
	local root=$work/python lib library
	rm -rf "$root"
	lib=$(/usr/bin/python3 -I -c 'import os; print(os.path.dirname(os.__file__))')
	mkdir -p "$root/usr/bin" "$root/$lib" "$root/dev"
	cp -L /usr/bin/python3 "$root/usr/bin/"
	cp "$lib"/*.py "$root/$lib/"
	cp -r "$lib/encodings" "$lib/collections" "$root/$lib/"
	for library in $(ldd /usr/bin/python3 | grep -o '/[^ ]*'); do
		mkdir -p "$root/${library%/*}"
		cp -L "$library" "$root/$library"
	done
	cp "$KV_ROOT/Documentation/examples/ca_query.py" "$root/"
	tar -C "$root" -cf "$work/python.tar" .
}

# examples_guest <kernel> <directory of our modules> <directory of the examples>
examples_guest() {
	check_guest "the examples run, $1" "examples-$1" --kernel "$1" \
		--modules "$(run_modules "$2") $(echo "$3"/*.ko)" \
		--file "$work/ca_ioctl" --file "$work/ca_uring" --file "$work/python.tar" \
		--run "$KV_SCRIPTS/guest/examples.sh"
}

# Every name of the verbs API that ULPs use: compiled, and linked.
api_names() {
	build_dir "the names that ULPs use are there, $1" "$1" "$KV_SCRIPTS/api-check" \
		KVERBS="$2" KBUILD_EXTRA_SYMBOLS="$2/Module.symvers"
}

# The C code in the README is one of the examples, word for word.
example_in_readme() {
	local file
	awk '/^```/ { inside = $0 == "```c"; next } inside' "$KV_ROOT/README.md" \
		>"$work/readme.c"
	for file in "$KV_ROOT"/Documentation/examples/*.c; do
		if cmp -s "$file" "$work/readme.c"; then
			check_passed "the README's example is the one that is built"
			return
		fi
	done
	echo "the C block in README.md is no file of Documentation/examples/" \
		>"$work/readme.out"
	check_failed "the README's example is the one that is built" "$work/readme.out"
}

# Without a warning, and with links that lead somewhere.
site_is_made() {
	"$KV_SCRIPTS/html" >"$work/html.out" 2>&1 && : >"$work/html.out"
	check_empty "the documentation as a site" "$work/html.out"
}

# Whoever builds, users with make or scripts with build_modules(), uses what is there: they
# have the same flags.
check_no_rebuild() {
	local log=$KV_BUILD/logs/rebuild.log ours suites
	suites_for "$1"
	ours=(make -C "$KV_ROOT" BUILD="$KV_BUILD" KDIR="$(kernel_tree "$1")"
		${suites[@]+"${suites[@]}"})
	{
		"${ours[@]}"
		"${ours[@]}" -j1 modules
		"${ours[@]}" kverbs_emu.ko
		build_modules "$1" ${suites[@]+"${suites[@]}"}
		cat "$BUILD_LOG"
	} >"$log" 2>&1
	grep -q 'kverbs_emu.ko' "$log" || echo "make did not run: see $log" >"$work/rebuild.out"
	grep -E '^  (CC|LD)\b.*\.k?o$' "$log" >>"$work/rebuild.out" || true
	check_empty "nothing is compiled twice, $1" "$work/rebuild.out"
}

check_layers() {
	"$KV_SCRIPTS/layers" "$1" >"$work/layers.out" 2>&1 || true
	check_empty "no call and no include runs upward" "$work/layers.out"
}

part_builds() {
	local kernel ulp
	spawn "the README's example" example_in_readme
	spawn "changes of the interface" "$KV_SCRIPTS/check-abi"
	spawn "bad input" "$KV_SCRIPTS/check-input"
	spawn "packages" "$KV_SCRIPTS/check-packaging"
	need_build debug
	spawn "make after make, debug" check_no_rebuild debug
	spawn "calls between the floors" check_layers "$MODULES_DIR"
	needs=()
	build_job "" "build, programs among the examples" examples_programs
	if quick; then
		need_examples uml
		spawn "examples, uml" examples_guest uml "$MODULES_DIR" "$EXTRA_DIR"
		spawn "names that ULPs use, uml" api_names uml "$MODULES_DIR"
		return
	fi
	spawn "the documentation as a site" site_is_made
	! whole || [ "$(id -u)" -ne 0 ] || spawn "Debian packages" "$KV_SCRIPTS/check-deb"
	for kernel in lean debug "${stock_kernels[@]}"; do
		need_build "$kernel"
	done
	for kernel in 6.12 6.1; do
		for ulp in pingpong cqbench scale; do
			spawn "$ulp against mainline, $kernel" ulp_against_mainline "$kernel" $ulp
		done
		spawn "examples against mainline, $kernel" examples_against_mainline "$kernel"
		need_examples "$kernel"
		spawn "examples, $kernel" examples_guest "$kernel" "$MODULES_DIR" "$EXTRA_DIR"
		spawn "names that ULPs use, $kernel" api_names "$kernel" "$MODULES_DIR"
		spawn "install-dev, $kernel" "$KV_SCRIPTS/check-install-dev" "$kernel" "$MODULES_DIR"
		need_mainline "$kernel"
		spawn "modules_install and kverbs switch, $kernel" "$KV_SCRIPTS/check-switch" "$kernel"
	done
	# It watches what they do; mainline's ib_core is not there.
	need_examples debug
	spawn "examples, debug" examples_guest debug "$MODULES_DIR" "$EXTRA_DIR"
	# What part_stock() does not run.
	need_build 6.1-arm64
}
