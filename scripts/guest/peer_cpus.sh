# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on two processors: registrations of peer memory do not wait for each
# other. Two CPUs make and free regions at MIN_PERCENT of the rate of one. A busy host
# cannot provide that much: there, MIN_SHARE per cent of the rate of two threads that share
# nothing suffices, but no less than LEAST. And while a call to a client's function does
# not return, regions of other memory come and go, even of the same client. If the second CPU
# goes offline in the middle of a measurement, the measurement fails, and nothing else does.

MIN_PERCENT=${MIN_PERCENT:-170}
MIN_SHARE=${MIN_SHARE:-90}
LEAST=${LEAST:-130}

BENCH=$DEBUGFS/kverbs_peerbench

load kverbs && load kverbs_emu devices=1 && load kverbs_peerbench || exit 1

cat "$BENCH/slow" >/slow || fail "kverbs_peerbench: no result"
calls=0
while read -r line; do
	calls=$((calls + 1))
	check "while it is in a call: $line" \
		[ "${line#* }" = "quick=0 same=0 held=0 waited=0" ]
done </slow
check "$calls functions were held up" [ $calls -eq 6 ]

measure() {
	percent=0 apart=0
	line=$(cat "$BENCH/cpus")
	result "progress: $line"
	case $line in
	*" percent="*)
		percent=${line##*=}
		apart=${line##*apart_gain=}
		apart=${apart%% *} ;;
	esac
}

gains() {
	[ "$percent" -ge "$MIN_PERCENT" ] ||
		{ [ "$percent" -ge "$LEAST" ] && [ $((100 * percent)) -ge $((MIN_SHARE * apart)) ]; }
}

# Goes on for as long as it can, and fails for want of a CPU.
measure_and_fail() {
	! cat "$BENCH/cpus" >/dev/null 2>/tmp/error && grep -q 'No such device or address' /tmp/error
}

# The threads of a batch are there.
measures() {
	grep -qs kverbs_peerbenc /proc/[0-9]*/comm
}

# cpu_goes <times>
cpu_goes() {
	echo 1000000 >"$BENCH/enough"
	for _ in $(seq "$1"); do
		measure_and_fail &
		retry_while $! measures || return
		while kill -0 $! 2>/dev/null; do
			echo 0 >/sys/devices/system/cpu/cpu1/online
			usleep 20000
			echo 1 >/sys/devices/system/cpu/cpu1/online
			usleep 50000
		done
		wait $! || return
	done
}

once_or_twice measure gains
check "regions on two CPUs: $percent% of the rate of one, $apart% of what shares nothing" gains
check "a CPU may go offline in the middle" cpu_goes 10
