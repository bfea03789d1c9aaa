// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: shrinks the sequence of operations that failed.
 *
 * The episode that failed is run again alone or, if it does not fail then, while the other
 * threads run theirs, which are drawn from the seed as before: noise. Operations that the
 * failure does not need are left out. A shorter sequence is kept only if it fails in the
 * same way, and if an empty sequence passes afterwards: state that a failure leaves behind
 * could make any sequence fail. The search uses a short timeout; its result is run again
 * with the timeout of the threads.
 *
 * The case's own thread runs the sequences. The noise lasts for the whole search.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>

#include "fuzz/run.h"

/* Sequences of at most so many operations get the slow search of shrink_anywhere(). */
#define SHORT		24
/* Runs of an episode without a failure, after which the search gives up. */
#define TRIES		20
/*
 * A sequence that needs the noise fails only sometimes. It is run NOISY_RUNS times at least,
 * and until the other threads have done NOISE operations, since a run may be very short.
 */
#define NOISY_RUNS	4
#define NOISE		X_EPISODE
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
 *
 * Return: the index of the operation that failed, @nr if x_end_world() failed, or -1.
 * x_search.seen says how it failed.
 */
int x_run_as(struct x_run *run, u32 thread, const struct x_op *ops, u32 nr)
{
	struct x_world *w = run->t[thread].w;
	u32 i;

	x_begin_world(w, run->lie, run->search.patience);
	for (i = 0; i < nr; i++) {
		if (x_run_op(w, &ops[i]) == X_FAILED)
			break;
	}
	if (!x_end_world(w))
		return -1;
	strscpy(run->search.seen, w->why, sizeof(run->search.seen));
	return i;
}

/* Does an empty sequence pass? */
static bool is_clean(struct x_run *run)
{
	struct x_search *s = &run->search;

	if (x_run_as(run, s->thread, NULL, 0) >= 0)
		s->spoilt = true;
	return !s->spoilt;
}

/* Skips a number, decimal or hexadecimal. */
static const char *skip_number(const char *text)
{
	while (isalnum(*text))
		text++;
	return text;
}

/* Do two failures differ in numbers only? */
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

static bool is_over(const struct x_search *s)
{
	return s->spoilt || ktime_get_ns() > s->end;
}

/* Number of operations that all threads have done; 0 without noise. */
static u64 noise_made(const struct x_run *run)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; run->search.noisy && i < run->threads; i++)
		sum += READ_ONCE(run->t[i].done);
	return sum;
}

/*
 * Runs a sequence until it fails as the thread did, or as often as x_search.runs and NOISE
 * require. Returns the index of the operation that failed, or -1.
 */
static int fails(struct x_run *run, const struct x_op *ops, u32 nr)
{
	struct x_search *s = &run->search;
	u64 enough = noise_made(run) + (s->noisy ? NOISE : 0);
	char why[sizeof(s->why)];
	u32 i;
	int at;

	for (i = 0; (i < s->runs || noise_made(run) < enough) && !is_over(s); i++) {
		at = x_run_as(run, s->thread, ops, nr);
		cond_resched();
		if (at < 0)
			continue;
		strscpy(why, s->seen, sizeof(why));
		if (!is_clean(run) || !is_like(why, s->like))
			continue;
		strscpy(s->why, why, sizeof(s->why));
		return at;
	}
	return -1;
}

/* --- noise --- */

static void make_noise(struct x_thread *t, u32 first)
{
	struct x_run *run = t->run;
	struct x_op op;
	u32 i;

	/* Without the lie, and failures are ignored: the failure of another thread is wanted. */
	x_begin_world(t->w, X_TRUE, PATIENCE);
	for (i = 0; i < X_EPISODE && !READ_ONCE(run->search.quiet); i++) {
		x_draw(&op, run->seed, t->id, first + i);
		if (x_run_op(t->w, &op) == X_FAILED)
			break;
		WRITE_ONCE(t->done, t->done + 1);
	}
	x_end_world(t->w);
}

static int noise_fn(void *arg)
{
	struct x_thread *t = arg;
	struct x_search *s = &t->run->search;
	u32 first;

	kthread_use_mm(t->run->s.mm);
	for (first = s->noise_from; !READ_ONCE(s->quiet); first += X_EPISODE) {
		make_noise(t, first);
		cond_resched();
	}
	kthread_unuse_mm(t->run->s.mm);
	return 0;
}

static void begin_noise(struct kunit *test, struct x_run *run, u32 from)
{
	struct x_search *s = &run->search;
	u32 i;

	s->noisy = true;
	s->noise_from = from;
	s->quiet = false;
	for (i = 0; i < run->threads; i++) {
		if (i != s->thread)
			s->noise[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0,
						       noise_fn, &run->t[i]);
	}
}

static void end_noise(struct kunit *test, struct x_run *run)
{
	struct x_search *s = &run->search;
	u32 i;

	WRITE_ONCE(s->quiet, true);
	for (i = 0; s->noisy && i < run->threads; i++) {
		if (i != s->thread && !kvt_thread_join(s->noise[i]))
			KUNIT_FAIL(test, "thread %u hangs", i);
	}
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
	at = fails(run, s->trial, start + rest);
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

/*
 * Removes one run of operations, of any length and place, such as a creation and the
 * destruction that undoes it. Returns false if none can be removed.
 */
static bool shrink_anywhere(struct x_run *run)
{
	u32 len, start;

	if (run->search.nr > SHORT)
		return false;
	for (len = run->search.nr - 1; len > 1; len--) {
		for (start = 0; start + len <= run->search.nr; start++) {
			if (shrink_by(run, start, len))
				return true;
		}
	}
	return false;
}

/*
 * Sets arguments of operations to 0 where the sequence fails nevertheless; 0 often stands for
 * a shared object. Returns false if no argument could be changed.
 */
static bool simplify(struct x_run *run)
{
	/* Bits 0, 1 and 2: clear x_op.b, x_op.c and x_op.r. */
	static const u8 tries[] = { 7, 3, 1, 2, 4 };
	struct x_search *s = &run->search;
	bool any = false;
	struct x_op *op, was;
	u32 i;

	for (i = 0; i < s->nr * ARRAY_SIZE(tries); i++) {
		op = &s->ops[i / ARRAY_SIZE(tries)];
		was = *op;
		op->b = tries[i % ARRAY_SIZE(tries)] & 1 ? 0 : op->b;
		op->c = tries[i % ARRAY_SIZE(tries)] & 2 ? 0 : op->c;
		op->r = tries[i % ARRAY_SIZE(tries)] & 4 ? 0 : op->r;
		if (!memcmp(op, &was, sizeof(was)))
			continue;
		if (fails(run, s->ops, s->nr) >= 0)
			any = true;
		else
			*op = was;
	}
	return any;
}

/* --- the search --- */

static void begin_search(struct x_search *s, u32 thread, const char *why)
{
	s->thread = thread;
	s->noisy = false;
	s->patience = PATIENCE;
	s->end = ktime_get_ns() + SEARCH_NS;
	s->spoilt = false;
	s->confirmed = false;
	strscpy(s->like, why, sizeof(s->like));
}

/*
 * Does the failure occur again? The number of tries that it took is the number of runs of
 * each shorter sequence, @least at least.
 */
static bool is_seen_again(struct x_run *run, u32 least)
{
	struct x_search *s = &run->search;
	u32 i;

	s->runs = 1;
	for (i = 0; i < TRIES; i++) {
		if (fails(run, s->ops, s->nr) < 0)
			continue;
		s->runs = max(least, i + 1);
		return true;
	}
	return false;
}

/* Reproduces the failure, alone or, if that does not do, with noise. */
static bool find_again(struct kunit *test, struct x_run *run, u32 first)
{
	if (is_seen_again(run, 1))
		return true;
	if (run->threads == 1 || run->search.spoilt)
		return false;
	begin_noise(test, run, first);
	return is_seen_again(run, NOISY_RUNS);
}

static void confirm(struct x_run *run)
{
	struct x_search *s = &run->search;

	s->patience = KVT_TIMEOUT;
	s->runs = max_t(u32, s->runs, s->noisy ? TRIES : 1);
	s->end = ktime_get_ns() + SEARCH_NS;
	s->confirmed = fails(run, s->ops, s->nr) >= 0;
}

/**
 * x_shorten() - shortens a sequence that fails
 * @test: the running case
 * @run: the run, with the sequence in x_search.ops
 * @thread: number of the thread that failed
 * @first: number of the first operation of the other threads, if noise is needed
 * @why: how the thread failed
 *
 * Return: true if the failure occurred again, and x_search.ops is a short sequence that
 * failed so; false if it did not.
 */
bool x_shorten(struct kunit *test, struct x_run *run, u32 thread, u32 first, const char *why)
{
	bool found;

	begin_search(&run->search, thread, why);
	found = is_clean(run) && find_again(test, run, first);
	if (found) {
		do
			shrink(run);
		while (simplify(run) || shrink_anywhere(run));
		confirm(run);
	}
	end_noise(test, run);
	return found;
}

/**
 * x_find_short() - looks for a short sequence that fails as a thread did
 * @test: the running case
 * @run: the run of the thread, which has ended
 * @f: the thread's failure
 *
 * Return: as x_shorten().
 */
bool x_find_short(struct kunit *test, struct x_run *run, const struct x_failure *f)
{
	struct x_search *s = &run->search;
	u32 i;

	/* Draw the operations again, up to the one that failed. */
	s->nr = min_t(u32, f->at + 1, X_EPISODE);
	for (i = 0; i < s->nr; i++)
		x_draw(&s->ops[i], run->seed, f->thread, f->first + i);
	return x_shorten(test, run, f->thread, f->first, f->why);
}

/* --- reports --- */

/* Prints the last operations of an episode whose failure did not occur again. */
static void print_last(struct kunit *test, const struct x_search *s)
{
	u32 i = s->nr > SHORT ? s->nr - SHORT : 0;
	char line[X_OP_TEXT];

	for (; i < s->nr; i++) {
		x_write_op(&s->ops[i], line, sizeof(line));
		kunit_info(test, "before it: %s", line);
	}
}

/* Prints the arguments that scripts/exercise needs besides the sequence. */
static void print_arguments(struct kunit *test, const struct x_run *run)
{
	const struct x_search *s = &run->search;
	char lie[24] = "", noise[64] = "";

	if (run->lie)
		snprintf(lie, sizeof(lie), " --lie %u", run->lie);
	if (s->noisy)
		snprintf(noise, sizeof(noise), " --threads %u --seed %u --noise %u",
			 run->threads, run->seed, s->noise_from);
	kunit_info(test, "replay with: --thread %u%s%s", s->thread, noise, lie);
}

/**
 * x_print_sequence() - prints how to replay the sequence
 * @test: the running case
 * @run: the run, after x_find_short()
 */
void x_print_sequence(struct kunit *test, const struct x_run *run)
{
	const struct x_search *s = &run->search;
	char line[X_OP_TEXT];
	u32 i;

	print_arguments(test, run);
	for (i = 0; i < s->nr; i++) {
		x_write_op(&s->ops[i], line, sizeof(line));
		kunit_info(test, "replay: %s%s", line, i + 1 < s->nr ? "/" : "");
	}
}

static void report_not_found(struct kunit *test, const struct x_run *run)
{
	const struct x_search *s = &run->search;

	if (s->spoilt)
		kunit_err(test, "an empty sequence fails, too: something was left behind");
	else
		kunit_err(test, "the episode does not fail in %u runs by itself%s", TRIES,
			  s->noisy ? ", nor in as many with the other threads under way" : "");
	print_last(test, s);
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
	if (!x_find_short(test, run, f)) {
		report_not_found(test, run);
		return;
	}
	kunit_err(test, "shrunk to %u operations%s: %s", s->nr,
		  s->noisy ? ", with the other threads under way" : "", s->why);
	if (s->spoilt)
		kunit_err(test, "not confirmed: an empty sequence fails, too, by now");
	else if (s->confirmed)
		kunit_err(test, "confirmed: it fails with the full patience");
	else
		kunit_err(test, "not confirmed: it does not fail with the full patience");
	x_print_sequence(test, run);
}

/* --- replay --- */

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

/**
 * x_replay() - runs the sequence in x_search.ops
 * @test: the running case
 * @run: the run
 * @thread: number of the thread as which it is run
 * @noise_from: number of the first operation of the other threads, or negative for no noise.
 *	With noise, the sequence is repeated until it fails or the others have done many
 *	operations
 *
 * Return: the index of the operation that failed, or -1; x_search.seen says how it failed.
 */
int x_replay(struct kunit *test, struct x_run *run, u32 thread, int noise_from)
{
	struct x_search *s = &run->search;
	u64 enough = TRIES * NOISE;
	int at;

	s->thread = thread;
	s->patience = KVT_TIMEOUT;
	s->end = ktime_get_ns() + SEARCH_NS;
	if (noise_from >= 0)
		begin_noise(test, run, noise_from);
	do {
		at = x_run_as(run, thread, s->ops, s->nr);
		cond_resched();
	} while (at < 0 && s->noisy && noise_made(run) < enough && !is_over(s));
	end_noise(test, run);
	return at;
}
