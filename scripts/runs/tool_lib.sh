# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced in the guest by runs that try the command kverbs: what it prints, and with
# which status it ends.

# gives <status> command...: what it prints goes to /tmp/out and /tmp/err.
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

# has <file> pattern...: each is in it.
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

# What went wrong is said on stderr alone.
err() {
	[ ! -s /tmp/out ] || {
		echo "on stdout:"
		cat /tmp/out
		return 1
	}
	has /tmp/err "$@"
}

# Tells the host about the document in /tmp/out, and leaves it in /tmp/line, as a line.
json() {
	tr -d '\n' </tmp/out >/tmp/line
	result "json: $(cat /tmp/line)"
}
