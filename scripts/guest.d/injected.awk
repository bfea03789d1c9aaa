# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints it without the traces of allocations that a test made fail
# (sweep() of kunit/fail_nth.c): vmalloc() says of each one that failed who wanted it, as
# loudly as of something that is wrong. One that is not known to be a test's stays, and so
# does what is wrong behind one whose end is lost: the variable "splats" says what that
# looks like.
#
# Nor does it print that KCSAN has seen workqueues count, on two CPUs at a time, what they
# have begun. KCSAN can only be told to leave out what has that function on either side,
# and that would be work of ours that is overwritten or freed while it is queued, too.

/KCSAN: data-race in process_one_work \/ process_one_work[[:space:]]*$/ { next }

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
