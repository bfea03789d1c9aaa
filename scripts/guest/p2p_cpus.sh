# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on two processors: checks that for allocating and freeing pages of
# peer-to-peer memory, the gain from the second CPU is at least MIN_PERCENT of the
# gain of threads that share nothing.
# shellcheck disable=SC2154

MIN_PERCENT=${MIN_PERCENT:-85}

# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

load kverbs_p2pdma && load kverbs_bar_mem && load kverbs_p2pbench || exit 1
provide "$iv0"

measure() {
	percent=0
	line=$(cat "$DEBUGFS/kverbs_p2pbench/cpus")
	result "progress: $line"
	case $line in
	*" percent="*) percent=${line##*=} ;;
	esac
}

gains() {
	[ "$percent" -ge "$MIN_PERCENT" ]
}

once_or_twice measure gains
check "pages on two CPUs: $percent% of the gain of what shares nothing" gains
