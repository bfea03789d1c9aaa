# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console and prints it without messages that are known not to be ours, or to be
# intended:
#
# The traces of allocations that a test made fail (sweep() of kunit/fault/sweep.c): vmalloc()
# prints a trace for each failed allocation, just as it would for a real error. A trace that is
# not known to be a test's stays, and so does an error that follows a trace whose end is lost:
# the variable "splats" is the pattern of such errors.
#
# Races of the kernel with itself. KCSAN can be told to leave out a function, but some of these
# functions also run for our timers and work items. So the whole report is examined: it is
# removed only if one of them is on top of one stack, there is a second stack, and no function
# of a module has led to either. Flags of a task may be those of one of ours, and a work item
# that is cancelled is one of ours.

BEGIN {
	# A CPU that goes idle reads what its timer interrupt writes; the scheduler's tick
	# reads a timer of another CPU; a sleeper reads what the expiring timer writes; the CPU
	# that took over the timers of another one still reads them when that one wakes; the
	# closing of a serial port checks whether its interrupt is running.
	split("tick_nohz_idle_got_tick hrtimer_active do_nanosleep __tmigr_cpu_activate " \
	      "__synchronize_hardirq", names)
	for (i in names)
		kernels[names[i]] = 1
}

# Prints the lines that were held back, or drops them.
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
	interrupted = ours = flags = stacks = shrank = 0
}

# Strips the leading zeros of a number.
function digits(hex) {
	sub(/^0x0*/, "", hex)
	return hex
}

# The value of a number of few enough digits that no bit is lost.
function value(hex,    i, v) {
	for (i = 1; i <= length(hex); i++)
		v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return v + 0
}

# Checks whether the value grew as a count does. A work item holds pointers and, above flags,
# the number of a pool.
function grew(from, to) {
	from = digits(from)
	to = digits(to)
	return length(from) <= 8 && length(to) <= 8 && value(to) > value(from) &&
	       value(to) - value(from) < 65536
}

# Checks whether one side reads what the other one writes a few instructions later: an
# increment. No frame tells whose work item is concerned if it is one, because its function has
# not been called yet; but work items have no counts.
function increments(    read, written) {
	read = does[1] == "read" ? 1 : 2
	if (does[read] != "read" || does[3 - read] != "write")
		return 0
	written = value(digits(at[3 - read]))
	read = value(digits(at[read]))
	return written > read && written - read <= 24
}

# Checks whether a worker that takes a work item looks, unmarked, at the flags in it, while
# somebody who cancels the item claims it with an atomic operation, as may happen at any time.
# One of the two stacks is that of the caller of cancel_work_sync().
function cancels() {
	return title == "move_linked_works / try_to_grab_pending" &&
	       (does[1] == "read" && does[2] == "read-write (marked)" ||
		does[2] == "read" && does[1] == "read-write (marked)")
}

# In addition, workqueues count started items on two CPUs at a time; and the end of a grace
# period, and the scheduler's tick in a worker, read flags of the task that they interrupt.
# Neither reads anything else of four bytes that is not its own.
function races_with_itself(    sides) {
	if (!ended || stacks != 2 || split(title, sides, " / ") != 2)
		return 0
	if (flags)
		return cpu[1] == cpu[2]
	if (cancels())
		return 1
	if (ours)
		return 0
	if (title == "process_one_work / process_one_work")
		return increments() && !shrank
	return sides[1] in kernels || sides[2] in kernels
}

inside == "race" && / to 0x[0-9a-f]+ of [0-9]+ bytes by / {
	interrupted = 0
	stacks++
	# "read" and "write" are plain ones; others are "read (marked)", "read-write (marked)".
	does[stacks] = $0
	sub(/ to 0x.*/, "", does[stacks])
	sub(/.*\] /, "", does[stacks])
	cpu[stacks] = $NF
	at[stacks] = ""
	reads_four = /read to 0x[0-9a-f]+ of 4 bytes by interrupt on cpu /
	on_top = 1
}

inside == "race" && on_top && match($0, /\+0x[0-9a-f]+\//) {
	at[stacks] = substr($0, RSTART + 1, RLENGTH - 2)
	if (reads_four && / (rcu_core|kthread_data)\+/)
		flags = 1
	on_top = 0
}

# Functions below an interrupt in the stack did not call it.
inside == "race" && / asm_(sysvec_|common_interrupt)/ { interrupted = 1 }

inside == "race" && !interrupted && /\+0x[0-9a-f]+\/0x[0-9a-f]+ \[/ { ours = 1 }

inside == "race" && /value changed: 0x[0-9a-f]+ -> 0x[0-9a-f]+/ {
	match($0, /0x[0-9a-f]+ -> 0x[0-9a-f]+/)
	split(substr($0, RSTART, RLENGTH), values, " -> ")
	shrank = !grew(values[1], values[2])
}

# --- both ------------------------------------------------------------------

# Apart from its own first line, none of these occurs within a trace or a report.
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
