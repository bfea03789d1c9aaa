# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, whose instructions QEMU's plugin counts (scripts/bench.d/count.c): performs the
# cases, each twice as message does, so that every other pair of marks counts. The addresses
# of all symbols go to the host by the directory that they share.
#
#   CASES     cases, separated by colons: layer,op,ctx,to,size,window,batch
#   MESSAGES  messages of a case

# shellcheck source=message.sh
. /bin/message.sh

load kverbs && load kverbs_emu && load kverbs_pingpong run=0 && load kverbs_limit || exit 1
cat /proc/kallsyms >/share/kallsyms
wait_idle || exit 1
for each in $(echo "$CASES" | tr : ' '); do
	layer=${each%%,*}
	# shellcheck disable=SC2046
	set -- $(echo "${each#*,}" | tr , ' ')
	message "$@" "$MESSAGES"
done
