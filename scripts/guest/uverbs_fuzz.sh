# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: commands of hostile processes, OPERATIONS of them from SEED, on the software HCA,
# on either core; and commands whose allocations fail, each in turn, where the kernel can do that.
# Nothing may be left of either.

# shellcheck source=cores.sh
. /bin/cores.sh

SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
NODE=/dev/infiniband/uverbs0

# Two unprivileged processes, each with threads that scribble over its rings. A process beside them
# must not notice.
fuzzed() {
	touch /tmp/traffic
	uverbs_hostile emu0 traffic /tmp/traffic >/tmp/bystander 2>&1 &
	bystander=$!
	uverbs_fuzz --count $((OPERATIONS / 2)) --seed "$SEED" $NODE >/tmp/other 2>&1 &
	other=$!
	uverbs_fuzz --count $((OPERATIONS / 2)) --seed $((SEED + 1)) $NODE
	ended=$?
	wait $other
	right=$?
	rm /tmp/traffic
	wait $bystander
	undisturbed=$?
	cat /tmp/other /tmp/bystander
	[ $ended -eq 0 ] && [ $right -eq 0 ] && [ $undisturbed -eq 0 ]
}

insert_hca "$@" || exit 1
chmod 666 $NODE
[ ! -d "$DEBUGFS/failslab" ] ||
	check "each allocation of a command fails in turn" uverbs_nth emu0
check "random commands harm nobody" fuzzed
check "the verbs are as they were" uverbs_check emu0
remove_hca
