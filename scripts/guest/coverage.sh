# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on the gcov kernel and a machine with providers: runs suites by
# /bin/kunit.sh and sends what they have executed. FAILING are those that let allocations
# fail, EXERCISING is the exerciser, OTHERS are all others, and PROVIDERS those of them that
# want providers; each is a list as SUITES is. The first and the last run once more with our
# code managing the providers' memory.

# The counters of a module stay when it goes, until they are reset.
GCOV=$DEBUGFS/gcov

# run_suites <own_provider> "<modules>"
run_suites() {
	load kverbs_p2pdma own_provider="$1"
	SUITES=$2
	# shellcheck source=kunit.sh
	(. /bin/kunit.sh) || fail "kunit.sh: exit status $?"
	unload_all
}

# send_counters <name>: as an archive in base64, between two lines. debugfs tells no sizes,
# which tar wants.
send_counters() {
	find "$GCOV" -name '*.gcda' >/tmp/counters
	while read -r file; do
		mkdir -p "/tmp/gcov/${file%/*}"
		cat "$file" >"/tmp/gcov/$file"
	done </tmp/counters
	result "counters $1"
	tar -C "/tmp/gcov/$GCOV" -cz . | base64 >"$RESULTS"
	result "end of counters $1"
	rm -r /tmp/gcov
	echo 0 >"$GCOV/reset"
}

echo 0 >"$GCOV/reset"
run_suites 0 "$FAILING"
run_suites 1 "$FAILING"
send_counters failing
run_suites 0 "$EXERCISING"
send_counters exercising
run_suites 0 "$OTHERS"
run_suites 1 "$PROVIDERS"
send_counters others
