# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by run scripts in the guest: drives kverbs_cqbench.
# shellcheck disable=SC2034

CQBENCH=$DEBUGFS/kverbs_cqbench
CONTEXTS="direct softirq thread workqueue unbound"

# Results of the last run.
each_ps=0 per_s=0 bursts=0 schedules=0

# cqbench key=value...: performs one run and leaves its result in $line and the
# variables above.
cqbench() {
	line='' each_ps=0 per_s=0 bursts=0 schedules=0
	if ! echo "$*" >"$CQBENCH/run"; then
		line=$(cat "$CQBENCH/result")
		fail "cqbench $*: ${line:-no result}"
		return 1
	fi
	line=$(cat "$CQBENCH/result")
	for pair in $line; do
		case $pair in
		each_ps=* | per_s=* | bursts=* | schedules=*)
			export "${pair%%=*}"="${pair#*=}" ;;
		esac
	done
}

# cost <context> [key=value...]: sets cost_ps, what a completion costs beyond a
# plain loop of ib_poll_cq(), in thousandths of a nanosecond. Leaves the result
# of the context's run in $line and the variables above.
cost() {
	cost_ctx=$1
	shift
	cqbench mode=burst ctx=bare "$@" || return 1
	bare_ps=$each_ps
	cqbench mode=burst ctx="$cost_ctx" "$@" || return 1
	cost_ps=$((each_ps - bare_ps))
}

# thousandths with one digit behind the point, rounded
tenths() {
	tenths=$((($1 < 0 ? -$1 : $1) + 50))
	sign=
	[ "$1" -ge 0 ] || sign=-
	echo "$sign$((tenths / 1000)).$((tenths % 1000 / 100))"
}
