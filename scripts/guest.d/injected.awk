# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints it without what is known not to be of ours, or meant:
#
# The traces of allocations that a test made fail (sweep() of kunit/fail_nth.c): vmalloc()
# says of each one that failed who wanted it, as loudly as of something that is wrong. One
# that is not known to be a test's stays, and so does what is wrong behind one whose end is
# lost: the variable "splats" says what that looks like.
#
# Races of the kernel with itself. KCSAN can be told to leave out a function, but some of
# these are called for timers and work of ours, too. So the whole report is looked at: it
# goes only if one of them is on top of one stack, there is another, and no function of a
# module has led to either.

BEGIN {
	# A CPU that goes idle looks at what its timer interrupt writes; the scheduler's tick
	# looks at a timer of another CPU, and at flags of the worker that it interrupts; who
	# sleeps looks at what the timer's end writes; timers of a CPU that wakes are looked at
	# by the one that had them meanwhile; who closes a serial port looks whether its
	# interrupt is under way.
	split("tick_nohz_idle_got_tick hrtimer_active kthread_data do_nanosleep " \
	      "__tmigr_cpu_activate __synchronize_hardirq", names)
	for (i in names)
		kernels[names[i]] = 1
}

# Prints what was held back, or not.
function finish() {
	if (!inside)
		return
	if (!(inside == "race" ? races_with_itself() : injected))
		printf "%s", trace
	trace = inside = ""
	injected = called = 0
}

# --- allocations -----------------------------------------------------------

/vmalloc error: .* allocation failed/ {
	finish()
	inside = "allocation"
}

# --- races -----------------------------------------------------------------

/BUG: KCSAN: data-race in / {
	finish()
	inside = "race"
	title = $0
	sub(/.*data-race in /, "", title)
	sub(/[[:space:]]*$/, "", title)
	interrupted = ours = counted = 0
}

# The digits of a number, without the zeros before them.
function digits(hex) {
	sub(/^0x0*/, "", hex)
	return hex
}

# The value of so few digits that no bit of it is lost.
function value(hex,    i, v) {
	for (i = 1; i <= length(hex); i++)
		v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return v + 0
}

# Has it grown as a count does? In a work item are pointers and, above flags, the number of
# a pool. No frame would tell whose it is: its own function is not called yet.
function grew(from, to) {
	from = digits(from)
	to = digits(to)
	return length(from) <= 8 && length(to) <= 8 && value(to) > value(from) &&
	       value(to) - value(from) < 65536
}

# Besides, workqueues count on two CPUs at a time what they have begun.
function races_with_itself(    sides) {
	if (ours || !ended || split(title, sides, " / ") != 2)
		return 0
	if (title == "process_one_work / process_one_work")
		return counted
	return sides[1] in kernels || sides[2] in kernels
}

inside == "race" && / to 0x[0-9a-f]+ of [0-9]+ bytes by / { interrupted = 0 }

# What an interrupt has interrupted has not called it.
inside == "race" && / asm_(sysvec_|common_interrupt)/ { interrupted = 1 }

inside == "race" && !interrupted && /\+0x[0-9a-f]+\/0x[0-9a-f]+ \[/ { ours = 1 }

inside == "race" && /value changed: 0x[0-9a-f]+ -> 0x[0-9a-f]+/ {
	counted = match($0, /0x[0-9a-f]+ -> 0x[0-9a-f]+/) &&
		  split(substr($0, RSTART, RLENGTH), values, " -> ") && grew(values[1], values[2])
}

# --- both ------------------------------------------------------------------

# But for its own head, there is none of them in a trace, and in a report.
inside == "allocation" && $0 ~ splats && !(/Call Trace:/ && !called++) { finish() }
inside == "race" && $0 ~ splats && !/BUG: KCSAN: data-race in / { finish() }

!inside {
	print
	next
}

{ trace = trace $0 "\n" }
/ sweep\+0x.*\[kverbs_kunit\]/ { injected = 1 }
inside == "allocation" && / <\/TASK>/ { finish() }
inside == "race" && /==========/ {
	ended = 1
	finish()
	ended = 0
}

END { finish() }
