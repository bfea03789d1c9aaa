# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on the KCSAN kernel: runs another run script, /bin/$RUN, with the data race
# detector switched on; it is off when the kernel starts. Races are reported on the console;
# see vm.d/injected.awk for those within the kernel itself.

# Each CPU watches one access in this many for a while.
skip=/sys/module/kcsan/parameters/skip_watch
[ ! -w $skip ] || echo "${SKIP:-1000}" >$skip
echo on >"$DEBUGFS/kcsan"
check "KCSAN is on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"

# shellcheck source=kunit.sh
(. "/bin/$RUN") || fail "$RUN: exit status $?"

check "KCSAN is still on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"
echo off >"$DEBUGFS/kcsan"
# Otherwise nothing was watched.
check "KCSAN has set up watchpoints" grep -q "^setup_watchpoints: [1-9]" "$DEBUGFS/kcsan"
result "progress: KCSAN $(grep "^setup_watchpoints" "$DEBUGFS/kcsan")"
