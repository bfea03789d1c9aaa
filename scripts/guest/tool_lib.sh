# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced in the guest by run scripts that test the output and the exit status of the
# command kverbs.

# gives <status> command...: checks the status; the output goes to /tmp/out and
# /tmp/err.
gives() {
	want=$1 status=0
	shift
	"$@" >/tmp/out 2>/tmp/err || status=$?
	[ $status -eq "$want" ] || {
		echo "$*: exit status $status, not $want"
		cat /tmp/out /tmp/err
		return 1
	}
}

# has <file> pattern...: checks that the file contains each pattern.
has() {
	file=$1
	shift
	for pattern in "$@"; do
		grep -q -e "$pattern" "$file" || {
			echo "no '$pattern' in:"
			cat "$file"
			return 1
		}
	done
}

out() { has /tmp/out "$@"; }

# Errors are reported on stderr only.
err() {
	[ ! -s /tmp/out ] || {
		echo "on stdout:"
		cat /tmp/out
		return 1
	}
	has /tmp/err "$@"
}

# Sends the document in /tmp/out to the host, and leaves it in /tmp/line, as one line.
json() {
	tr -d '\n' </tmp/out >/tmp/line
	result "json: $(cat /tmp/line)"
}
