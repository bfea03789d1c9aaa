# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints it without the traces of allocations that a test made fail
# (sweep() of kunit/fail_nth.c): vmalloc() says of each one that failed who wanted it, as
# loudly as of something that is wrong. One that is not known to be a test's stays.

function finish() {
	if (!injected)
		printf "%s", trace
	trace = ""
	inside = injected = 0
}

/vmalloc error: .* allocation failed/ {
	finish()
	inside = 1
}

!inside {
	print
	next
}

{ trace = trace $0 "\n" }
/ sweep\+0x.*\[kverbs_kunit\]/ { injected = 1 }
/ <\/TASK>/ { finish() }

END { finish() }
