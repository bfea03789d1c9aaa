// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: shrinks the sequence of operations that failed.
 *
 * The episode that failed is run again by the case's own thread, alone, and operations that
 * the failure does not need are left out. A shorter sequence is kept only if it fails in the
 * same way, and if an empty sequence passes afterwards: state that a failure leaves behind
 * could make any sequence fail. The search uses a short timeout; its result is run again
 * with the timeout of the threads.
 */
#include <linux/ctype.h>

#include "fuzz/run.h"

/* Most operations that are printed of an episode whose failure did not occur again. */
#define LAST		24
/* Timeout of the search, in jiffies, for anything that a world waits for. */
#define PATIENCE	(2 * HZ)
/* Limit of the search: a case may take 300 s, and must have reported by then. */
#define SEARCH_NS	(120ULL * NSEC_PER_SEC)

/* --- running a sequence --- */

/**
 * x_run_as() - runs a sequence once
 * @run: the run
 * @thread: number of the thread as which it is run
 * @ops: the sequence
 * @nr: its length
 * @patience: timeout of the world, in jiffies
 *
 * Return: the index of the operation that failed, @nr if x_end_world() failed, or -1. The
 * thread's x_world.why says how it failed.
 */
int x_run_as(struct x_run *run, u32 thread, const struct x_op *ops, u32 nr, unsigned long patience)
{
	struct x_world *w = run->t[thread].w;
	u32 i;

	x_begin_world(w, run->lie, patience);
	for (i = 0; i < nr; i++) {
		if (x_run_op(w, &ops[i]) == X_FAILED)
			break;
	}
	return x_end_world(w) ? i : -1;
}

/* Does an empty sequence pass? */
static bool is_clean(struct x_run *run)
{
	struct x_search *s = &run->search;

	if (x_run_as(run, s->thread, NULL, 0, PATIENCE) >= 0)
		s->spoilt = true;
	return !s->spoilt;
}

static const char *skip_number(const char *text)
{
	while (isdigit(*text))
		text++;
	return text;
}

/* Are the texts the same but for their numbers? */
static bool is_like(const char *a, const char *b)
{
	while (*a == *b || (isdigit(*a) && isdigit(*b))) {
		if (!*a)
			return true;
		a = isdigit(*a) ? skip_number(a) : a + 1;
		b = isdigit(*b) ? skip_number(b) : b + 1;
	}
	return false;
}

/*
 * Runs a sequence, and returns the index of the operation that failed; -1 if none did, or not
 * as the thread's.
 */
static int fails(struct x_run *run, const struct x_op *ops, u32 nr, unsigned long patience)
{
	struct x_search *s = &run->search;
	char why[sizeof(s->why)];
	int at;

	if (s->spoilt || ktime_get_ns() > s->end)
		return -1;
	at = x_run_as(run, s->thread, ops, nr, patience);
	cond_resched();
	if (at < 0)
		return -1;
	strscpy(why, run->t[s->thread].w->why, sizeof(why));
	if (!is_clean(run) || !is_like(why, s->like))
		return -1;
	strscpy(s->why, why, sizeof(s->why));
	return at;
}

/* --- shrinking --- */

/* Removes @len operations from @start on, if the rest still fails. */
static bool shrink_by(struct x_run *run, u32 start, u32 len)
{
	struct x_search *s = &run->search;
	u32 rest;
	int at;

	len = min(len, s->nr - start);
	rest = s->nr - start - len;
	memcpy(s->trial, s->ops, start * sizeof(*s->ops));
	memcpy(s->trial + start, s->ops + start + len, rest * sizeof(*s->ops));
	at = fails(run, s->trial, start + rest, PATIENCE);
	if (at < 0)
		return false;
	/* The operations after the one that failed are not needed, either. */
	s->nr = min(start + rest, (u32)at + 1);
	memcpy(s->ops, s->trial, s->nr * sizeof(*s->ops));
	return true;
}

/* Removes what is not needed: halves, quarters, and so on, down to single operations. */
static void shrink(struct x_run *run)
{
	u32 len = max(run->search.nr / 2, 1U), start;
	bool any;

	do {
		any = false;
		for (start = 0; start < run->search.nr;) {
			if (shrink_by(run, start, len))
				any = true;
			else
				start += len;
		}
		if (len == 1 && !any)
			break;
		len = max(len / 2, 1U);
	} while (run->search.nr);
}

/**
 * x_shorten() - shortens a sequence that fails
 * @run: the run, with the sequence in x_search.ops
 * @thread: number of the thread that failed
 * @why: how the thread failed
 *
 * Return: true if the failure occurred again, and x_search.ops is a short sequence that
 * failed so; false if it did not.
 */
bool x_shorten(struct x_run *run, u32 thread, const char *why)
{
	struct x_search *s = &run->search;

	s->thread = thread;
	s->end = ktime_get_ns() + SEARCH_NS;
	s->spoilt = false;
	s->confirmed = false;
	strscpy(s->like, why, sizeof(s->like));
	if (!is_clean(run) || fails(run, s->ops, s->nr, PATIENCE) < 0)
		return false;
	shrink(run);
	s->end = ktime_get_ns() + SEARCH_NS;
	s->confirmed = fails(run, s->ops, s->nr, KVT_TIMEOUT) >= 0;
	return true;
}

/**
 * x_find_short() - looks for a short sequence that fails as a thread did
 * @run: the run of the thread, which has ended
 * @f: the thread's failure
 *
 * Return: as x_shorten().
 */
bool x_find_short(struct x_run *run, const struct x_failure *f)
{
	struct x_search *s = &run->search;
	u32 i;

	/* Draw the operations again, up to the one that failed. */
	s->nr = min_t(u32, f->at + 1, X_EPISODE);
	for (i = 0; i < s->nr; i++)
		x_draw(&s->ops[i], run->seed, f->thread, f->first + i);
	return x_shorten(run, f->thread, f->why);
}

/* --- reports --- */

static void report_not_found(struct kunit *test, const struct x_search *s)
{
	u32 i = s->nr > LAST ? s->nr - LAST : 0;
	char line[X_OP_TEXT];

	if (s->spoilt)
		kunit_err(test, "an empty sequence fails, too: something was left behind");
	else
		kunit_err(test, "the episode did not fail so when it was run alone");
	for (; i < s->nr; i++) {
		x_write_op(&s->ops[i], line, sizeof(line));
		kunit_info(test, "before it: %s", line);
	}
}

/**
 * x_print_sequence() - prints how to replay the sequence
 * @test: the running case
 * @run: the run, after x_find_short()
 */
void x_print_sequence(struct kunit *test, const struct x_run *run)
{
	const struct x_search *s = &run->search;
	char line[X_OP_TEXT], lie[24] = "";
	u32 i;

	if (run->lie)
		snprintf(lie, sizeof(lie), " --lie %u", run->lie);
	kunit_info(test, "replay with: --thread %u%s", s->thread, lie);
	for (i = 0; i < s->nr; i++) {
		x_write_op(&s->ops[i], line, sizeof(line));
		kunit_info(test, "replay: %s%s", line, i + 1 < s->nr ? "/" : "");
	}
}

/**
 * x_report() - reports how a thread failed, and a short sequence that fails so
 * @test: the running case
 * @run: the run
 * @f: the thread's failure
 */
void x_report(struct kunit *test, struct x_run *run, const struct x_failure *f)
{
	const struct x_search *s = &run->search;

	kunit_err(test, "seed %u, thread %u, operation %u: %s", run->seed, f->thread,
		  f->first + f->at, f->why);
	if (!x_find_short(run, f)) {
		report_not_found(test, s);
		return;
	}
	kunit_err(test, "shrunk to %u operations: %s", s->nr, s->why);
	if (s->spoilt)
		kunit_err(test, "not confirmed: an empty sequence fails, too, by now");
	else if (s->confirmed)
		kunit_err(test, "confirmed: it fails with the full patience");
	else
		kunit_err(test, "not confirmed: it does not fail with the full patience");
	x_print_sequence(test, run);
}

/**
 * x_read_sequence() - parses a sequence as printed by x_print_sequence()
 * @test: the running case, which fails if @text is invalid
 * @run: the run; its x_search.ops is set
 * @text: the printed operations, joined
 */
void x_read_sequence(struct kunit *test, struct x_run *run, const char *text)
{
	struct x_search *s = &run->search;
	int used;

	for (s->nr = 0; *text; s->nr++) {
		KUNIT_ASSERT_LT_MSG(test, s->nr, X_EPISODE, "too many operations");
		used = x_read_op(&s->ops[s->nr], text);
		KUNIT_ASSERT_GT_MSG(test, used, 0, "no operation: %.*s", X_OP_TEXT, text);
		text += used;
		text += *text == '/';
	}
}
