# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints it without the traces of allocations that a test made fail
# (sweep() of kunit/fail_nth.c): vmalloc() says of each one that failed who wanted it, as
# loudly as of something that is wrong. One that is not known to be a test's stays, and so
# does what is wrong behind one whose end is lost: the variable "splats" says what that
# looks like.

function finish() {
	if (!injected)
		printf "%s", trace
	trace = ""
	inside = injected = called = 0
}

/vmalloc error: .* allocation failed/ {
	finish()
	inside = 1
}

# But for its own head, there is none of them in a trace.
inside && $0 ~ splats && !(/Call Trace:/ && !called++) { finish() }

!inside {
	print
	next
}

{ trace = trace $0 "\n" }
/ sweep\+0x.*\[kverbs_kunit\]/ { injected = 1 }
/ <\/TASK>/ { finish() }

END { finish() }
