# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on the KCSAN kernel: another run script, /bin/$RUN, with the detector of
# data races switched on; it is off when the kernel starts. A race is told on the console.

# Races of the kernel with itself, seen in runs: a CPU that goes idle looks at what
# its timer interrupt writes; the scheduler's tick looks at a timer of another CPU, and
# at flags of the worker that it interrupts; who sleeps looks at what the timer's end
# writes; timers of a CPU that wakes are looked at by the one that had them meanwhile. None
# of these functions reads or writes memory of ours. See guest.d/injected.awk, too.
KERNEL_RACES="tick_nohz_idle_got_tick hrtimer_active kthread_data do_nanosleep
	__tmigr_cpu_activate"

# One access in so many is watched for a while, by each CPU.
skip=/sys/module/kcsan/parameters/skip_watch
[ ! -w $skip ] || echo "${SKIP:-1000}" >$skip
for name in $KERNEL_RACES; do
	echo "!$name" >"$DEBUGFS/kcsan"
done
echo on >"$DEBUGFS/kcsan"
check "KCSAN is on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"

# shellcheck source=kunit.sh
(. "/bin/$RUN") || fail "$RUN: exit status $?"

check "KCSAN is still on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"
echo off >"$DEBUGFS/kcsan"
# Or nothing was watched.
check "KCSAN has set up watchpoints" grep -q "^setup_watchpoints: [1-9]" "$DEBUGFS/kcsan"
result "progress: KCSAN $(grep "^setup_watchpoints" "$DEBUGFS/kcsan")"
