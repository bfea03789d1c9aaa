# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Shared by run scripts: runs programs of tools/tests; each of their cases is a
# check.

# cases <program> [arguments]: runs it, and turns its lines into results; the last
# line must be their count.
cases() {
	program=$1
	"$@" >/tmp/cases 2>&1
	status=$?
	cat /tmp/cases
	seen=0 planned=none failed=0
	while read -r verdict rest; do
		case $verdict in
		ok) pass "$program: $rest" ;;
		not)
			fail "$program: ${rest#ok }"
			failed=$((failed + 1)) ;;
		skip) result "progress: skipped: $program: $rest" ;;
		1..*)
			planned=${verdict#1..}
			continue ;;
		*)
			[ "$status" -eq 0 ] || result "progress: $program: $verdict $rest"
			continue ;;
		esac
		seen=$((seen + 1))
	done </tmp/cases
	[ "$seen" = "$planned" ] || fail "$program: $seen of $planned cases, status $status"
	[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || fail "$program: status $status"
}
