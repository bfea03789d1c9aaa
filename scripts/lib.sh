# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions that the scripts share. Sourced, never run.
#
# The variables set here are for the scripts that source it.
# shellcheck disable=SC2034

set -eEuo pipefail
# What programs say is read: not in the user's language.
export LC_ALL=C.UTF-8
# A command that fails unchecked must not end a script silently. Status 2 is die()'s, which
# has said why.
trap '[ $? -eq 2 ] || echo "${0##*/}: line $LINENO: failed: $BASH_COMMAND" >&2' ERR

# insmod, modinfo, depmod: a user's PATH may lack them.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# scripts/ and the checkout around it.
KV_SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KV_ROOT=${KV_SCRIPTS%/*}

# Kernels, images and downloads survive a "make clean" and a new clone.
KV_CACHE=${KVERBS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kverbs}
[[ $KV_CACHE = /* ]] || KV_CACHE=$KV_ROOT/$KV_CACHE
KV_BUILD=${BUILD:-$KV_ROOT/build}
[[ $KV_BUILD = /* ]] || KV_BUILD=$KV_ROOT/$KV_BUILD
KV_JOBS=$(nproc)

say() {
	printf '%s\n' "$*" >&2
}

# For what the user can mend: says what to do, in one line. Failed checks are status 1.
die() {
	trap - ERR
	printf '%s: error: %s\n' "${0##*/}" "$*" >&2
	exit 2
}

usage_error() {
	die "$*, see --help"
}

# usage: print the comment block at the top of the script as its help.
show_help() {
	sed -n '4,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$0"
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# as_replacement <text>: as sed takes it between slashes.
as_replacement() {
	# In ${//}, versions of bash differ in what & is.
	# shellcheck disable=SC2001
	sed 's,[\\&/],\\&,g' <<<"$1"
}

# hash_of <files and directories of the checkout>: one hash of all of them.
hash_of() {
	(cd "$KV_ROOT" && find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha1sum |
		sha1sum | cut -d " " -f 1)
}

# Can as_root() do it? A sudo that wants a password has nobody to ask without a terminal.
can_be_root() {
	[ "$(id -u)" -eq 0 ] || { have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

# Runs a command as root, whoever the user is.
as_root() {
	can_be_root ||
		die "root is needed for: $* (run it as root, or let sudo do so without a password)"
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Prints the innermost directory of a path that there is.
what_there_is() {
	local path=$1
	[[ $path = /* ]] || path=$PWD/$path
	until [ -e "$path" ]; do
		path=${path%/*}
		: "${path:=/}"
	done
	echo "$path"
}

# Most of what the tests build was built before, in the same place: objects are kept, if the user has
# ccache, and it can write. scripts/deps installs it for the tests.
CCACHE_DIR=${CCACHE_DIR:-$KV_CACHE/ccache}
if [ -d /usr/lib/ccache ] && [ -w "$(what_there_is "$CCACHE_DIR")" ]; then
	PATH=/usr/lib/ccache:$PATH
	# Otherwise ccache runs the preprocessor first, which takes a quarter more processor time. Kbuild
	# has the compiler list the headers in any case.
	export CCACHE_DIR CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-2G} CCACHE_DEPEND=1
fi

# Prints how a place is named to the scripts.
variable_of() {
	case $1/ in
	"$KV_CACHE"/*) echo KVERBS_CACHE ;;
	"$KV_BUILD"/*) echo BUILD ;;
	*) echo TMPDIR ;;
	esac
}

# need_writable <directory, which need not exist> [<what else to do>]: before anything is put there.
need_writable() {
	local dir
	dir=$(what_there_is "$1")
	[[ -d $dir && -w $dir && -x $dir ]] ||
		die "$dir is no directory that is writable by $(id -un 2>/dev/null || id -u): run as" \
			"root, or ${2:-name another one with $(variable_of "$1")=<dir>}"
}

# need_space <GiB> <directory, which need not exist>: before something large is begun.
need_space() {
	local dir free
	need_writable "$2"
	dir=$(what_there_is "$2")
	free=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$free" -ge "$1" ] ||
		die "$dir has $free GiB free, $1 are needed. Make room, or name another place" \
			"with $(variable_of "$2")=<dir>"
}

# Ends the processes that $1 started and that are still running.
end_children() {
	local child children=()
	trap - ERR
	read -ra children <"/proc/$1/task/$1/children" || true
	for child in ${children[@]+"${children[@]}"}; do
		end_children "$child"
		kill "$child" 2>/dev/null || true
	done
}

# The release of a kernel build tree, as uname prints it.
tree_release() {
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
		"$1/include/generated/utsrelease.h"
}

# The release that a kernel image (bzImage) carries in its header.
image_release() {
	local offset
	offset=$(od -An -tu2 -j $((0x20e)) -N2 "$1") || return
	dd if="$1" bs=1 skip=$((offset + 0x200)) count=128 status=none |
		tr '\0' '\n' | sed -n '1s/ .*//p'
}

# What scripts/kernels provides: names, not patterns, for "6.12-foo" is none.
is_test_kernel() {
	[[ $1 =~ ^(lean|debug|kcsan|gcov|latency|uml)$ ]]
}

is_stock_kernel() {
	[[ $1 =~ ^(stock|6\.12|6\.1|6\.(12|1)-(rt|cloud|arm64))$ ]]
}

is_provided() {
	is_test_kernel "$1" || is_stock_kernel "$1"
}

KV_KERNELS="6.12 6.1, these with -rt, -cloud or -arm64, lean debug kcsan gcov latency uml"

# Prints where the image is of a kernel that is not provided.
image_of() {
	case $1 in
	*/*) echo "$1" ;;
	*)
		if [ -e "/boot/vmlinuz-$1" ]; then
			echo "/boot/vmlinuz-$1"
		else
			echo "$KV_CACHE/stock/$1/boot/vmlinuz-$1"
		fi ;;
	esac
}

# need_kernel <what --kernel was given>: before anything is installed, fetched or built for it.
need_kernel() {
	local image
	! is_provided "$1" || return 0
	image=$(image_of "$1")
	[[ -f $image && -r $image ]] ||
		die "no kernel image for '$1'. Give the path of a vmlinuz, an installed version, or" \
			"one of: $KV_KERNELS"
}

# kernel_of <what --kernel was given>: sets KERNEL_IMAGE, KERNEL_RELEASE,
# KERNEL_MODULES (its own modules, or empty), KERNEL_NAME, and KERNEL_BUILT_FOR, what
# build_modules() calls it.
kernel_of() {
	local kernel=$1 root
	KERNEL_NAME=$kernel
	KERNEL_BUILT_FOR=$kernel
	need_kernel "$kernel"
	if is_provided "$kernel"; then
		KERNEL_IMAGE=$("$KV_SCRIPTS/kernels" --image "$kernel") || exit
	else
		KERNEL_IMAGE=$(image_of "$kernel")
	fi
	if [ "$kernel" = uml ]; then
		KERNEL_RELEASE=$(tree_release "${KERNEL_IMAGE%/*}")
		KERNEL_MODULES=${KERNEL_IMAGE%/*}/root/lib/modules/$KERNEL_RELEASE
		return
	fi
	case $KERNEL_IMAGE in
	*-arm64) KERNEL_RELEASE=${KERNEL_IMAGE##*/vmlinuz-} ;;
	*) KERNEL_RELEASE=$(image_release "$KERNEL_IMAGE" 2>/dev/null) || true ;;
	esac
	[[ $KERNEL_RELEASE = [0-9]*.* ]] || die "$KERNEL_IMAGE is not a kernel image"
	[[ $kernel != */* ]] || KERNEL_BUILT_FOR=$KERNEL_RELEASE
	root=$(dirname "$(dirname "$KERNEL_IMAGE")")
	KERNEL_MODULES=
	# A test kernel's are in its build tree.
	for root in "$root" "${KERNEL_IMAGE%/arch/*}/root" /; do
		if [ -d "${root%/}/lib/modules/$KERNEL_RELEASE/kernel" ]; then
			KERNEL_MODULES=${root%/}/lib/modules/$KERNEL_RELEASE
			break
		fi
	done
}

# The build tree that fits a kernel, to use as KDIR. It may be named by its path.
kernel_tree() {
	local dir
	if [[ $1 = /* ]]; then
		echo "$1"
		return
	fi
	if is_provided "$1"; then
		"$KV_SCRIPTS/kernels" --tree "$1"
		return
	fi
	for dir in "/lib/modules/$1/build" "/usr/src/linux-headers-$1" \
		"$KV_CACHE/stock/$1/usr/src/linux-headers-$1"; do
		[ -e "$dir/Makefile" ] || continue
		echo "$dir"
		return
	done
	die "no headers for kernel '$1'. If there is one of this version, run: apt-get install" \
		"linux-headers-$1; else take one of: $KV_KERNELS"
}

# build_modules <kernel> [make arguments]: sets MODULES_DIR; returns the
# build's status, with its output in BUILD_LOG. With the flags that the Makefile has for
# everybody, since others would build everything again.
build_modules() {
	local kernel=$1 tree release path=$PATH
	shift
	need_writable "$KV_BUILD"
	tree=$(kernel_tree "$kernel") || exit
	if [[ $kernel = *-arm64 ]]; then
		path=$("$KV_SCRIPTS/kernels" --cross) || exit
		path+=:$PATH
	fi
	release=$(tree_release "$tree")
	MODULES_DIR=$KV_BUILD/$release
	BUILD_LOG=$KV_BUILD/logs/build-$release.log
	mkdir -p "$KV_BUILD/logs"
	# One at a time for a kernel: a suite may be run while the tests are.
	PATH=$path flock "$KV_BUILD/.build-$release.lock" \
		make -C "$KV_ROOT" -j"$KV_JOBS" BUILD="$KV_BUILD" KDIR="$tree" "$@" \
		>"$BUILD_LOG" 2>&1
}

# check_symbols_anew <directory of a build> <file with the versions of symbols>...: kbuild does not
# see that such a file has changed, and would leave modules there that the kernel refuses.
check_symbols_anew() {
	local dir=$1 file
	shift
	for file in "$@"; do
		[ ! "$file" -nt "$dir/Module.symvers" ] || rm -f "$dir/Module.symvers"
	done
}

build_modules_or_die() {
	build_modules "$@" && return
	build_complaints "$BUILD_LOG" | sed "s,$MODULES_DIR/,,g; 10q" >&2
	die "the modules do not build, see $BUILD_LOG"
}

# Builds the command kverbs for guests, which have no libraries. Sets KVERBS_COMMAND.
build_command() {
	KVERBS_COMMAND=$KV_BUILD/static/kverbs
	need_writable "$KV_BUILD"
	mkdir -p "$KV_BUILD/logs"
	make -C "$KV_ROOT/tools" O="$KV_BUILD/static" STATIC=1 \
		>"$KV_BUILD/logs/build-command.log" 2>&1 ||
		die "the command kverbs does not build, see $KV_BUILD/logs/build-command.log"
}

# mainline_sources <ulp> <module> <directory>: lays out a ULP's sources to be
# built with the kernel's own rdma headers and symbols.
mainline_sources() {
	local objects folder
	objects=$(awk -v name="kverbs_$1-y" '$1 == name { on = 1 }
		on { print; on = /\\$/ }' "$KV_ROOT/Kbuild")
	folder=$(grep -om 1 'ulp/[a-z0-9_/]*/' <<<"$objects" | head -n 1)
	cp "$KV_ROOT/$folder"*.[ch] "$3/"
	{
		echo "obj-m := $2.o"
		objects=${objects//"$folder"/}
		echo "${objects/#kverbs_$1-y/$2-y}"
		printf 'ccflags-y += -DKVERBS_VERSION=\\"%s\\"\n' "$(<"$KV_ROOT/VERSION")"
	} >"$3/Kbuild"
}

# The modules to run, in the order in which they can be inserted.
run_modules() {
	local name
	for name in kverbs_peer_mem kverbs_p2pdma kverbs kverbs_ca kverbs_emu kverbs_pingpong; do
		printf '%s ' "$1/$name.ko"
	done
}

# --- packages -------------------------------------------------------------

in_git() {
	git -C "$KV_ROOT" rev-parse --git-dir >/dev/null 2>&1
}

# Files that git tracks, or would; without git, all but what was built.
source_files() {
	cd "$KV_ROOT"
	if in_git; then
		git ls-files -co --exclude-standard
	else
		find . -type f -not -path './build/*' -not -path './.git/*' -printf '%P\n'
	fi
}

# package_version: VERSION's. That of a snapshot sorts before it, and after those that lead to it.
package_version() {
	local version
	version=$(<"$KV_ROOT/VERSION")
	if in_git && ! git -C "$KV_ROOT" describe --exact-match --match "v$version" >/dev/null 2>&1; then
		version+="~git$(TZ=UTC git -C "$KV_ROOT" log -1 --format=%cd --date=format-local:%Y%m%d)"
		version+=".$(git -C "$KV_ROOT" rev-list --count HEAD).$(git -C "$KV_ROOT" log -1 --format=%h)"
	fi
	echo "$version"
}

# --- what kernels say -------------------------------------------------------

# Patterns of what a kernel prints when something is wrong. "INFO:" also starts
# harmless lines, so those are spelled out.
SPLATS='BUG:|WARNING:|INFO: (task|rcu|suspicious|trying to register)'
SPLATS+='|INFO: .* (blocked for|detected stall)|possible recursive locking'
SPLATS+='|UBSAN:|KASAN:|KCSAN:|Oops|general protection|unreferenced object'
SPLATS+='|refcount_t:|Kernel panic|Call Trace:|ODEBUG:|soft lockup|stack guard'
SPLATS+='|list_(add|del) corruption|scheduling while atomic|DMA-API: .*device'

# --- checks and their tally --------------------------------------------------

# Each check of a script is one line, and one line of $KV_TALLY.
KV_TALLY=${KV_TALLY:-}

tally() {
	if [ -n "$KV_TALLY" ]; then
		echo "$1 $2" >>"$KV_TALLY"
	fi
}

has_failed() {
	grep -q '^failed ' "$KV_TALLY"
}

# Prints what has passed so far.
passed_checks() {
	sed -n 's/^ok //p' "$KV_TALLY"
}

check_passed() {
	echo "ok      $1"
	tally ok "$1"
}

# check_failed <what> [file with the reasons]
check_failed() {
	echo "FAILED  $1"
	[ $# -lt 2 ] || sed -n '1,40s/^/        /p' "$2"
	tally failed "$1"
}

# checks_begin: for a script that is a list of checks, and adds to its caller's tally or has one of its
# own. Sets work, a directory that goes with it.
checks_begin() {
	work=$(mktemp -d)
	trap 'end_children $$; rm -rf "$work"' EXIT
	KV_TALLY=${KV_TALLY:-$work/tally}
	touch "$KV_TALLY"
	failed_before=$(grep -c '^failed ' "$KV_TALLY" || true)
}

# The end of such a script, with status 1 if one of its checks has failed.
checks_end() {
	[ "$(grep -c '^failed ' "$KV_TALLY" || true)" -eq "$failed_before" ] || exit 1
}

# expect <what> command...: passes when the command succeeds; else the end of what it has written to
# $work/said is shown.
expect() {
	: >"$work/said"
	if "${@:2}"; then
		check_passed "$1"
	else
		tail -n 40 "$work/said" >"$work/tail"
		check_failed "$1" "$work/tail"
	fi
}

# check_empty <what> <file>: passes when nothing was found.
check_empty() {
	if [ -s "$2" ]; then
		check_failed "$1" "$2"
	else
		check_passed "$1"
	fi
}

# Complaints in the log of a build.
build_complaints() {
	grep -E '(warning|error|ERROR|WARNING):|undefined!|\*\*\*|Error [0-9]' "$1" |
		grep -vE 'Skipping BTF|^make' || true
}

# what_failed <log of a build that failed>: the first error, or else the last line.
what_failed() {
	grep -m1 -E '(error|ERROR):|undefined!|\*\*\*' "$1" || tail -n 1 "$1"
}

# check_build <what> <log> <status>
check_build() {
	local found
	found=$(mktemp)
	build_complaints "$2" >"$found"
	if [ "$3" -ne 0 ] && [ ! -s "$found" ]; then
		tail -n 5 "$2" >"$found"
	fi
	check_empty "$1" "$found"
	rm -f "$found"
}
