# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for run scripts in the guest. /modules holds the modules to test.

DEBUGFS=/sys/kernel/debug
RESULTS=/dev/ttyS1
FAILED=/tmp/failed

# Sends one line to the host: a result, progress, or anything that a script parses.
result() {
	echo "$*" >$RESULTS
}

# Reports a reason to fail the run. Carries on, so that one run can find several.
fail() {
	echo "guest: FAIL: $*"
	result "fail: $*"
	echo "$*" >>$FAILED
}

pass() {
	result "pass: $*"
}

# why <what failed, of a check>: fails.
why() {
	echo "guest: $*"
	return 1
}

# Checks that a command succeeds: check "what it shows" command...
check() {
	what=$1
	shift
	if "$@"; then pass "$what"; else fail "$what"; fi
}

# Messages that a device has sent: emu1, unless another is named.
packets() {
	cat "/sys/class/infiniband/${1:-emu1}/ports/1/hw_counters/port_xmit_packets"
}

# packets_beyond <number> [<device>]: it has sent more.
packets_beyond() {
	[ "$(packets "${2:-emu1}")" -gt "$1" ]
}

# retry <times> <command>: runs the command until it succeeds, at most so many times, 50 ms apart.
retry() {
	until retry_once "$@"; do
		[ "$1" -gt 1 ] || return 1
		tries=$(($1 - 1))
		shift
		# An argument, for the command may retry something, too.
		set -- $tries "$@"
		usleep 50000
	done
}

# retry_while <process> <command>: until it succeeds, for as long as the process runs, however long
# a busy machine makes that take.
retry_while() {
	process=$1
	shift
	until "$@"; do
		kill -0 "$process" 2>/dev/null || return 1
		usleep 50000
	done
}

# retry_once <times> <command>
retry_once() {
	shift
	"$@"
}

# is_gone <path>
is_gone() {
	[ ! -e "$1" ]
}

# add_dummy <name> [<address>/<bits>]: a network device of nobody's, up. It may be there already.
add_dummy() {
	ip link add "$1" type dummy 2>/dev/null
	[ -z "${2:-}" ] || ip addr add "$2" dev "$1"
	ip link set "$1" up
}

# load <module> [parameters]: inserts a module under test, after those that it needs.
load() {
	name=$1
	shift
	all_needed=$(sed -n "s/^$name //p" /etc/depends)
	for needed in $all_needed; do
		loaded "$needed" || (load "$needed") || return 1
	done
	insmod "/modules/$name.ko" "$@" || {
		fail "insmod $name $*"
		return 1
	}
}

unload() {
	for name in "$@"; do
		rmmod "$name" || fail "rmmod $name"
	done
}

# The kernel has a name without hyphens.
loaded() {
	grep -q "^$(echo "$1" | tr - _) " /proc/modules
}

# Unloads all modules under test, last in first out. The list is copied first, because
# it changes as they go.
unload_all() {
	cut -d ' ' -f 1 /proc/modules >/tmp/modules
	while read -r name; do
		[ ! -e "/modules/$name.ko" ] || unload "$name"
	done </tmp/modules
}

# once_or_twice <measurement> <verdict>: what others do on the machine slows one CPU, or one of two
# programs: a ratio that does not suffice is measured once more, and told.
once_or_twice() {
	"$1"
	"$2" && return
	result "progress: not enough: measured once more"
	"$1"
	"$2"
}

# Prints for how many nanoseconds programs and the kernel's threads have had the CPUs.
time_of_tasks() {
	awk '/^cpu/ { ns += $8 } END { printf "%.0f\n", ns }' /proc/schedstat
}

# Waits until nothing but this script runs, which is less than IDLE ms (10) in each of two
# seconds, and says so: after booting, the kernel tests its ciphers, and modules that have
# just been loaded or unloaded leave work behind. A run that is measured meanwhile would share
# the CPU.
wait_idle() {
	quiet=0 waited=0
	while [ $quiet -lt 2 ]; do
		[ $waited -lt 120 ] || {
			fail "the CPU is still busy after $waited s"
			return 1
		}
		before=$(time_of_tasks)
		sleep 1
		busy=$((($(time_of_tasks) - before) / 1000000))
		waited=$((waited + 1))
		quiet=$((quiet + 1))
		[ $busy -lt "${IDLE:-10}" ] || {
			quiet=0
			result "progress: the CPU is busy, $busy ms of a second: waiting"
		}
	done
	result "progress: the CPU is idle, $busy ms of a second, after $waited s"
}

# for_each_suite <function> [<list>]: calls it with each module of KUnit suites, or with those
# of a list, separated by commas. A module that is loaded runs the cases that match a pattern:
# all, or those of "module:suite.case", which may match several. What matches no case runs
# nothing, without a word.
for_each_suite() {
	each_run=$1
	each_list=${2:-$(cd /modules && echo kunit_*.ko)}
	for each in $(echo "$each_list" | tr ',' ' '); do
		each=${each%.ko}
		pattern='*'
		[ "${each#*:}" = "$each" ] || pattern=${each#*:}
		printf %s "$pattern" >/sys/module/kunit/parameters/filter_glob
		"$each_run" "${each%%:*}"
	done
}

# Prints how often each rule of the contract has been broken so far, as lines "rule
# count".
contract_counts() {
	sed -n 's/^rule \([0-9]*\), .*: \([0-9]*\)$/\1 \2/p' $DEBUGFS/kverbs/contract
}

# Remembers the counts before the next step, see contract_kept.
contract_begins() {
	contract_counts >/tmp/contract
	[ -s /tmp/contract ] || fail "the contract checker has no counts"
}

# contract_kept <what> [rules]: checks that since contract_begins, only these rules were
# broken.
contract_kept() {
	what=$1
	shift
	[ "${CONTRACT:-warn}" = off ] || grep -q '^mode: warn' $DEBUGFS/kverbs/contract ||
		fail "$what switched the contract checker off"
	contract_counts | awk -v meant=" $* " 'NR == FNR { before[$1] = $2; next }
		$2 != before[$1] && !index(meant, " " $1 " ") {
			text = text " rule " $1 ", " $2 - before[$1] " times" }
		END { if (text != "") print text }' /tmp/contract - >/tmp/broken
	[ -s /tmp/broken ] || return 0
	grep '^report=' $DEBUGFS/kverbs/contract
	fail "$what broke the contract:$(cat /tmp/broken)"
}

# Lets allocation failures reach every allocation that may fail, without messages.
set_fault_knobs() {
	for dir in "$DEBUGFS/failslab" "$DEBUGFS/fail_page_alloc"; do
		[ -d "$dir" ] || continue
		echo N >"$dir/ignore-gfp-wait"
		echo 0 >"$dir/verbose"
	done
	[ -d $DEBUGFS/fail_page_alloc ] || return 0
	echo N >$DEBUGFS/fail_page_alloc/ignore-gfp-highmem
	echo 0 >$DEBUGFS/fail_page_alloc/min-order
}

# kmemleak turns itself off when it runs out of memory; then nothing can be read or
# scanned.
scan_once() {
	echo scan >$DEBUGFS/kmemleak
}

# KUnit's kunit_attach_mm() attaches an mm to the thread of a case, whose end does not drop
# the reference that this took: the mm is left, and what MMU notifiers keep for it, 256 bytes
# with a spinlock at the 16th, which any user of the mm may have allocated. On x86 the page
# that the mm has for its own tables hides the leak. Prints all other leaks; on User Mode
# Linux they come without a backtrace.
leaks_but_kunits() {
	if ! grep -q 'User Mode Linux' /proc/cpuinfo; then
		cat
		return
	fi
	awk -v mm="$(cat /sys/kernel/slab/mm_struct/object_size 2>/dev/null)" '
	function finish() {
		if (size == mm && block ~ /comm "kunit_try_catch"/)
			mms++
		else if (size == 256 && block ~ /\n    .. 00 00 00 ad 4e ad de ff ff ff ff/)
			notifiers = notifiers block
		else
			others = others block
		block = ""
	}
	/^unreferenced object/ { finish(); size = $NF + 0 }
	{ block = block $0 "\n" }
	END {
		finish()
		printf "%s%s", others, mms ? "" : notifiers
	}'
}

# kmemleak overlooks objects younger than five seconds, and objects that changed since
# the previous scan; hence two scans and a fixed wait. SCAN_LEAKS=no skips the scan, for
# runs with another purpose.
scan_leaks() {
	[ -w $DEBUGFS/kmemleak ] && [ "${SCAN_LEAKS:-yes}" = yes ] || return 0
	if ! scan_once || ! sleep 6 || ! scan_once; then
		fail "kmemleak is off"
		return
	fi
	leaks_but_kunits <$DEBUGFS/kmemleak >/tmp/leaks
	echo scan=off >$DEBUGFS/kmemleak || fail "kmemleak went off while it looked"
	[ -s /tmp/leaks ] || return 0
	head -n 100 /tmp/leaks
	fail "kmemleak: $(grep -c 'unreferenced object' /tmp/leaks) objects leaked"
}

check_left_behind() {
	unload_all
	while read -r name _; do
		[ -e "/modules/$name.ko" ] && fail "$name is still loaded"
	done </proc/modules

	if [ -e /proc/lockdep_stats ]; then
		grep -q 'debug_locks: *1' /proc/lockdep_stats ||
			fail "lockdep turned itself off"
	fi

	# Taint flags: died, warned, bad page, soft lockup; unsigned and out-of-tree are
	# fine.
	read -r taint </proc/sys/kernel/tainted
	[ $((taint & (1 << 7 | 1 << 9 | 1 << 5 | 1 << 14))) -eq 0 ] ||
		fail "the kernel is tainted by an error ($taint)"
	scan_leaks
}

verdict() {
	if [ -s $FAILED ]; then
		result "verdict: fail ($(wc -l <$FAILED) reasons)"
	else
		result "verdict: pass"
	fi
	sync
}
