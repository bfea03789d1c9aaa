# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# How scripts/test runs guests, and counts what they report.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# guest <name> <arguments>: runs it, with its results in $work/<name>.
guest() {
	local name=$1
	shift
	"$KV_SCRIPTS/vm" --name "$name" --results "$work/$name" \
		${keep[@]+"${keep[@]}"} "$@" >"$work/$name.out" 2>&1
}

# Counts the checks that a run reported from inside.
count_reports() {
	[ -e "$work/$1" ] || return 0
	sed -n 's/^pass: /ok /p' "$work/$1" |
		while read -r verdict what; do
			tally "$verdict" "$what"
		done
}

# check_guest <what> <name> <arguments>: a run that must be green.
check_guest() {
	local what=$1 name=$2
	shift 2
	if guest "$name" "$@"; then
		check_passed "$what ($(sed -n 's/^PASS [^(]*(\([0-9]* s\).*/\1/p' \
			"$work/$name.out"))"
	else
		check_failed "$what" "$work/$name.out"
	fi
	count_reports "$name"
	[ ! -e "$work/$name" ] || sed -n 's/^progress: /        /p' "$work/$name"
}

# kunit_suites [<list>]: how many suites there are, or in a list, separated by commas, of
# modules, which may be there more than once, and of "module:suite.case", which is one.
kunit_suites() {
	"$KV_SCRIPTS/kunit" --modules | awk -v some="${1:-}" '
		{ suites[$1]++ }
		END {
			n = split(some, list, ",")
			for (i = 1; i <= n; i++)
				sum += list[i] ~ /:/ ? 1 : suites[list[i]]
			print some == "" ? NR : sum + 0
		}'
}

# kunit_modules <list>: the modules of such a list, with a blank behind each.
kunit_modules() {
	tr ',' '\n' <<<"$1" | sed 's/:.*//' | sort -u | tr '\n' ' '
}

# module_paths <directory of our modules> <list>: with kverbs_kunit, which all need.
module_paths() {
	local name
	printf '%s ' "$1/kunit/kverbs_kunit.ko"
	for name in $(kunit_modules "$2"); do
		printf '%s ' "$1/kunit/$name.ko"
	done
}

# tally_cases <name of a run>: its KUnit cases
tally_cases() {
	local verdict what
	while read -r verdict what; do
		case $verdict in
		ok) tally ok "$what" ;;
		not) tally failed "${what#ok }" ;;
		skip) say "        skipped: $what" ;;
		esac
	done <"$work/$1.ktap"
}

# Why cases are skipped where no allocation can be made to fail; see kvt_need_injection().
NO_INJECTION='CONFIG_FAILSLAB|ignore-gfp-wait'

# check_skips <what> <name of a run> <reasons>: no case was skipped for one of them.
check_skips() {
	grep -E "^skip .*($3)" "$work/$2.ktap" >"$work/$2.lacks" || true
	check_empty "$1" "$work/$2.lacks"
}
