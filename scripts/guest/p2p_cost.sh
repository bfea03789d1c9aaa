# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, under -icount: a nanosecond is an instruction. Checks that allocating
# and freeing a page of peer-to-peer memory costs at most MAX_PAGE, even when nine
# tenths of the provider's memory are allocated.

MAX_PAGE=${MAX_PAGE:-400}
# shellcheck source=p2p_lib.sh
. /bin/p2p_lib.sh

load kverbs_p2pdma && load kverbs_bar_mem && load kverbs_p2pbench || exit 1
provide "${iv0:?}"
wait_idle || exit 1

cat "$DEBUGFS/kverbs_p2pbench/cost" >/cost || fail "kverbs_p2pbench: no result"
pages=0
while read -r line; do
	result "progress: $line"
	case $line in
	bytes=4096*)
		pages=$((pages + 1))
		used=${line#*used=}
		check "a page and back, ${used%% *}% allocated: ${line##*=} instructions" \
			[ "${line##*=}" -le "$MAX_PAGE" ]
		;;
	esac
done </cost
check "pages were measured with little and with much allocated" [ $pages -eq 2 ]
