# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on the KCSAN kernel: another run script, /bin/$RUN, with the detector of
# data races switched on; it is off when the kernel starts. A race is told on the console; see
# guest.d/injected.awk for those of the kernel with itself.

# One access in so many is watched for a while, by each CPU.
skip=/sys/module/kcsan/parameters/skip_watch
[ ! -w $skip ] || echo "${SKIP:-1000}" >$skip
echo on >"$DEBUGFS/kcsan"
check "KCSAN is on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"

# shellcheck source=kunit.sh
(. "/bin/$RUN") || fail "$RUN: exit status $?"

check "KCSAN is still on" grep -q "^enabled: 1" "$DEBUGFS/kcsan"
echo off >"$DEBUGFS/kcsan"
# Or nothing was watched.
check "KCSAN has set up watchpoints" grep -q "^setup_watchpoints: [1-9]" "$DEBUGFS/kcsan"
result "progress: KCSAN $(grep "^setup_watchpoints" "$DEBUGFS/kcsan")"
