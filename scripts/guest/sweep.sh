# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: fails each allocation of device registration and of a run's set-up in
# turn, or with EVERY and FROM some of them. Between them all must still work. Of the init
# of modules, see init_fail_nth.sh.

# shellcheck source=pingpong.sh
. /bin/pingpong.sh

# sweep <what> <failnth arguments>
sweep() {
	what=$1
	shift
	read -r began _ </proc/uptime
	if out=$(failnth "$@" 2>&1); then
		read -r now _ </proc/uptime
		out="$out ($((${now%.*} - ${began%.*})) s)"
		result "progress: sweep over $what: $out"
		pass "allocation failures, $what"
	else
		fail "allocation failures, $what: $out"
	fi
}

export EVERY FROM
CONFIG=/sys/kernel/config/kverbs_emu
RUN="iters=8 window=4 pairs=2 size=64 timeout=5"

load kverbs_emu || exit 1
load kverbs_pingpong run=0 || exit 1

mkdir $CONFIG/swept || exit 1
# What the kernel says without memory for the name of a platform device: EINVAL.
export ERRNO=22:10
sweep "registering a device" $CONFIG/swept/enable 1 0
add_dummy dummy7
echo dummy7 >$CONFIG/swept/netdev
sweep "registering an Ethernet device" $CONFIG/swept/enable 1 0
unset ERRNO
rmdir $CONFIG/swept

for ctx in $CONTEXTS; do
	sweep "setting up a run, $ctx" "$PINGPONG/run" "ctx=$ctx $RUN"
	check "pingpong afterwards, $ctx" pingpong_ok "ctx=$ctx iters=200"
done
