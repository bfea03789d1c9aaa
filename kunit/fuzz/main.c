// SPDX-License-Identifier: GPL-2.0-only
/*
 * The randomised exerciser: its threads, and the suite. See fuzz.h.
 *
 * The module's parameters: seed=, count= operations, threads=; lie=, the number of a
 * mistake, see enum x_lie; replay=, a sequence as printed by a failure, to be run alone, as
 * thread=.
 *
 * Locking: only its thread uses a world; see post.c for what completions do to it.
 * Shared objects are made before the threads start and freed after they have ended.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>

#include "fuzz/run.h"
#include "lib/objects.h"

/* Operations of a full run, before they are scaled. */
#define OPERATIONS	10000000ULL
/* Divides the operations where instrumentation makes each of them much slower. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 10 : 1)
#define THREADS		4
/* Operations that are enough to find each mistake of the self-test. */
#define LIE_OPERATIONS	40000
/* Threads for a mistake that takes more than one. */
#define LIE_THREADS	3
/* Most operations in the sequence to which the failure of a mistake is shortened. */
#define LIE_LENGTH	10
/* Seed of the self-test: any would find the mistakes, a fixed one is reproducible. */
#define LIE_SEED	1
/* Operations after which every kind, and every status that is checked, must have occurred. */
#define ENOUGH		200000
/*
 * Operations of a part, which is a case of its own with a seed of its own: a case that takes
 * more than a minute would be reported as a hung task.
 */
#define PART		(100000 / DEBUG_SHARE)
static unsigned int seed_param;
module_param_named(seed, seed_param, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random operations; 0: draw one (default: 0)");
static unsigned long count_param;
module_param_named(count, count_param, ulong, 0444);
MODULE_PARM_DESC(count, "Number of operations; 0: chosen by the stress scale (default: 0)");
static unsigned int threads_param = THREADS;
module_param_named(threads, threads_param, uint, 0444);
MODULE_PARM_DESC(threads, "threads, at most 16");
static unsigned int lie_param;
module_param_named(lie, lie_param, uint, 0444);
MODULE_PARM_DESC(lie,
		 "Deliberate mistake to make, 1 to 16, see enum x_lie; 0: none (default: 0)");
/* A charp would be cut off at 1,024 characters. */
static char replay_param[X_REPLAY];
module_param_string(replay, replay_param, sizeof(replay_param), 0);
MODULE_PARM_DESC(replay, "run this sequence alone");
static unsigned int thread_param;
module_param_named(thread, thread_param, uint, 0444);
MODULE_PARM_DESC(thread, "Number of the thread that runs the sequence of replay=");

/* --- threads --- */

static void note_failure(struct x_thread *t, u32 first, u32 at)
{
	struct x_failure *f = &t->failure;

	f->there = true;
	f->thread = t->id;
	f->first = first;
	f->at = at;
	strscpy(f->why, t->w->why, sizeof(f->why));
	WRITE_ONCE(t->run->stop, true);
}

/* Returns false if it failed. */
static bool run_episode(struct x_thread *t, u32 first)
{
	enum x_verdict verdict = X_DONE;
	struct x_op op;
	u32 i;

	x_begin_world(t->w, t->run->lie, KVT_TIMEOUT);
	for (i = 0; i < X_EPISODE; i++) {
		x_draw(&op, t->run->seed, t->id, first + i);
		verdict = x_run_op(t->w, &op);
		if (verdict == X_FAILED)
			break;
		t->skipped += verdict == X_SKIPPED;
		t->by_kind[op.kind] += verdict == X_DONE;
		WRITE_ONCE(t->done, t->done + (verdict == X_DONE));
	}
	if (x_end_world(t->w)) {
		note_failure(t, first, i);
		return false;
	}
	for (i = 0; i < X_STATUSES; i++)
		t->ended[i] += t->w->ended[i];
	return true;
}

static int thread_fn(void *arg)
{
	struct x_thread *t = arg;
	u32 first = 0;

	kthread_use_mm(t->run->s.mm);
	while (t->done < t->run->quota && !READ_ONCE(t->run->stop)) {
		if (!run_episode(t, first))
			break;
		first += X_EPISODE;
		cond_resched();
	}
	kthread_unuse_mm(t->run->s.mm);
	return 0;
}

static u64 all_done(const struct x_run *run)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < run->threads; i++)
		sum += READ_ONCE(run->t[i].done);
	return sum;
}

/* Waits for as long as there is progress. */
static bool join(const struct x_run *run, struct kvt_thread *t)
{
	u64 before;

	do {
		before = all_done(run);
		if (kvt_thread_join(t))
			return true;
	} while (all_done(run) != before);
	return false;
}

/* Returns the first failure, or NULL. */
static struct x_failure *run_threads(struct kunit *test, struct x_run *run)
{
	struct kvt_thread *k[X_MAX_THREADS];
	struct x_failure *first = NULL;
	u32 i, hangs;

	for (i = 0; i < run->threads; i++)
		k[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, thread_fn, &run->t[i]);
	for (i = 0; i < run->threads && join(run, k[i]); i++)
		;
	hangs = i;
	WRITE_ONCE(run->stop, true);
	/* The threads after the one that hangs end soon, or hang as well. */
	for (i++; i < run->threads; i++)
		kvt_thread_join(k[i]);
	for (i = 0; i < run->threads; i++) {
		if (!run->t[i].failure.there)
			continue;
		kunit_info(test, "thread %u: %s", i, run->t[i].failure.why);
		first = first ?: &run->t[i].failure;
	}
	KUNIT_ASSERT_EQ_MSG(test, hangs, run->threads, "thread %u hangs", hangs);
	return first;
}

/* --- objects that the threads share --- */

static void get_devices(struct kunit *test, struct x_shared *s)
{
	static const char *const names[X_DEVS] = { "emu0", "emu1" };
	struct ib_port_attr attr;
	int i;

	for (i = 0; i < X_DEVS; i++) {
		s->dev[i] = kvt_device(test, names[i]);
		KUNIT_ASSERT_EQ(test, 0, ib_query_port(s->dev[i], X_PORT, &attr));
		s->lid[i] = attr.lid;
		KUNIT_ASSERT_EQ(test, 0, s->dev[i]->ops.query_gid(s->dev[i], X_PORT, 0,
								  &s->gid[i]));
	}
}

static void make_shared(struct kunit *test, struct x_shared *s, u32 threads)
{
	get_devices(test, s);
	s->pd = kvt_pd(test, s->dev[0]);
	s->cq = kvt_cq(test, s->dev[0], X_CQE * threads, IB_POLL_SOFTIRQ);
	s->srq = kvt_srq(test, s->pd, 4, 1);
}

/* Checks that the threads have left no users of the shared objects. */
static void check_shared(struct kunit *test, const struct x_shared *s)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->cq->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->srq->usecnt));
	/* The shared SRQ uses the PD. */
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->pd->usecnt));
}

static void free_world(void *arg)
{
	struct x_world *w = arg;
	int i;

	for (i = 0; i < X_DEVS; i++) {
		if (w->dma[i])
			ib_dma_unmap_single(w->s->dev[i], w->dma[i], X_BUF, DMA_BIDIRECTIONAL);
		kfree(w->buf[i]);
	}
	kvfree(w);
}

static struct x_world *new_world(struct kunit *test, struct x_shared *s, u32 id)
{
	struct x_world *w = KVT_PTR(test, kvzalloc(sizeof(*w), GFP_KERNEL));
	u64 dma;
	int i;

	w->s = s;
	w->id = id;
	w->user_mem = kvt_map(test, X_USER_PAGES * PAGE_SIZE);
	s->mm = current->mm;
	x_own_new(test, w);
	kvt_defer(test, free_world, w);
	for (i = 0; i < X_DEVS; i++) {
		w->buf[i] = KVT_PTR(test, kzalloc(X_BUF, GFP_KERNEL));
		dma = ib_dma_map_single(s->dev[i], w->buf[i], X_BUF, DMA_BIDIRECTIONAL);
		KUNIT_ASSERT_EQ(test, 0, ib_dma_mapping_error(s->dev[i], dma));
		w->dma[i] = dma;
	}
	return w;
}

KUNIT_DEFINE_ACTION_WRAPPER(free_run, kvfree, void *);

static struct x_run *new_run(struct kunit *test, u64 count, u32 threads, enum x_lie lie, u32 seed)
{
	struct x_run *run = KVT_PTR(test, kvzalloc(sizeof(*run), GFP_KERNEL));
	u32 i;

	kvt_defer(test, free_run, run);
	KUNIT_ASSERT_LT(test, lie, X_LIES);
	run->threads = clamp_t(u32, threads, 1, X_MAX_THREADS);
	run->quota = max_t(u64, div_u64(count, run->threads), 1);
	run->lie = lie;
	run->seed = seed;
	make_shared(test, &run->s, run->threads);
	for (i = 0; i < run->threads; i++) {
		run->t[i].run = run;
		run->t[i].id = i;
		run->t[i].w = new_world(test, &run->s, i);
	}
	/* Many operations wait for a grace period. */
	kvt_expedite_rcu(test);
	return run;
}

/* --- the suite --- */

/* Returns the seed of a part: the given one, or else a random one, plus the part's number. */
static u32 the_seed(struct kunit *test, u64 count, u32 part)
{
	u32 seed = seed_param;

	if (!seed)
		seed = kvt_seed(test, "operations", count);
	kunit_info(test, "part %u: seed %u", part, seed + part);
	return seed + part;
}

static void replay(struct kunit *test)
{
	struct x_run *run;
	const char *why;
	int at;

	KUNIT_ASSERT_LT(test, thread_param, X_MAX_THREADS);
	run = new_run(test, 1, thread_param + 1, lie_param, seed_param);
	x_read_sequence(test, run, replay_param);
	at = x_run_as(run, thread_param, run->search.ops, run->search.nr, KVT_TIMEOUT);
	if (at >= 0) {
		why = run->t[thread_param].w->why;
		kunit_err(test, "operation %d: %s", at, why);
		KUNIT_FAIL(test, "%s", why);
	}
	check_shared(test, &run->s);
}

/* Sums over all parts so far, which run one after the other. */
static u64 all_by_kind[X_OP_KINDS];
static u64 all_ended[X_STATUSES];

static void add_up(const struct x_run *run)
{
	u32 t;
	int i;

	for (t = 0; t < run->threads; t++) {
		for (i = 0; i < X_OP_KINDS; i++)
			all_by_kind[i] += run->t[t].by_kind[i];
		for (i = 0; i < X_STATUSES; i++)
			all_ended[i] += run->t[t].ended[i];
	}
}

static void check_kinds(struct kunit *test)
{
	int i, least = 0;

	for (i = 0; x_op_name(i); i++) {
		KUNIT_EXPECT_GT_MSG(test, all_by_kind[i], 0, "%s was never done", x_op_name(i));
		if (all_by_kind[i] < all_by_kind[least])
			least = i;
	}
	kunit_info(test, "%s was done %llu times, the others more often", x_op_name(least),
		   all_by_kind[least]);
}

/* Requests must have ended with each of these, or the exerciser covers too little. */
static void check_statuses(struct kunit *test)
{
	static const enum ib_wc_status all[] = {
		IB_WC_SUCCESS, IB_WC_LOC_LEN_ERR, IB_WC_LOC_PROT_ERR, IB_WC_WR_FLUSH_ERR,
		IB_WC_MW_BIND_ERR, IB_WC_REM_INV_REQ_ERR, IB_WC_REM_ACCESS_ERR,
		IB_WC_RETRY_EXC_ERR, IB_WC_RNR_RETRY_EXC_ERR,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		kunit_info(test, "%llu requests ended with '%s'", all_ended[all[i]],
			   ib_wc_status_msg(all[i]));
		KUNIT_EXPECT_GT(test, all_ended[all[i]], 0);
	}
}

static u64 all_operations(void)
{
	return count_param ?: max_t(u64, 1000, kvt_count(OPERATIONS) / DEBUG_SHARE);
}

static u32 nr_parts(void)
{
	return *replay_param ? 1 : DIV_ROUND_UP_ULL(all_operations(), PART);
}

/* The parameter is the part's number plus 1, as a pointer: for KUnit, NULL ends the list. */
static const void *part_gen_params(const void *prev, char *desc)
{
	uintptr_t part = (uintptr_t)prev;

	if (part == nr_parts())
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "part %lu", part);
	return (const void *)(part + 1);
}

static void random_calls_do_what_the_model_says(struct kunit *test)
{
	u32 part = (uintptr_t)test->param_value - 1;
	u64 count = all_operations(), skipped = 0;
	struct x_failure *f;
	struct x_run *run;
	u32 i;

	if (*replay_param) {
		replay(test);
		return;
	}
	count = min_t(u64, count, PART);
	run = new_run(test, count, threads_param, lie_param, the_seed(test, count, part));
	f = run_threads(test, run);
	for (i = 0; i < run->threads; i++)
		skipped += run->t[i].skipped;
	kunit_info(test, "%llu operations were done, %llu had nothing to be done to",
		   all_done(run), skipped);
	if (f) {
		x_report(test, run, f);
		KUNIT_FAIL(test, "%s", f->why);
	}
	add_up(run);
	if (!f && all_operations() >= ENOUGH && part == nr_parts() - 1) {
		check_kinds(test);
		check_statuses(test);
	}
	check_shared(test, &run->s);
}

struct lie {
	const char *name;
	enum x_lie lie;
	u32 threads;
};

static const struct lie lies[] = {
	{ "a region that does not count", X_LIE_COUNT, 1 },
	{ "a change of state that is not legal", X_LIE_STATE, 1 },
	{ "a status", X_LIE_STATUS, 1 },
	{ "a queue that is never full", X_LIE_EVER, 1 },
	{ "completions that are lost", X_LIE_LOST, 1 },
	{ "completions that come twice", X_LIE_TWICE, 1 },
	{ "a change that has no effect", X_LIE_QUERY, 1 },
	{ "regions that leak", X_LIE_LEAK, 1 },
	{ "completions from another CQ", X_LIE_CQ, 1 },
	{ "immediate data that is changed", X_LIE_IMM, 1 },
	{ "polling that fails", X_LIE_POLL, 1 },
	{ "events that nobody expects", X_LIE_EVENT, 1 },
	{ "what is shared is one's own", X_LIE_OWN, LIE_THREADS },
};

KUNIT_ARRAY_PARAM_DESC(lie, lies, name);

static void need_self_test(struct kunit *test)
{
	if (*replay_param || lie_param)
		kunit_skip(test, "not with replay= or lie=");
	/*
	 * The self-test checks the exerciser, not the code that is instrumented, which would take
	 * minutes in an emulator.
	 */
	if (DEBUG_SHARE > 1 && !IS_ENABLED(CONFIG_UML))
		kunit_skip(test, "shown on kernels without instrumentation");
}

static void mistakes_are_found_and_made_short(struct kunit *test)
{
	const struct lie *lie = test->param_value;
	struct x_search *s;
	struct x_failure *f;
	struct x_run *run;

	need_self_test(test);
	/* The seed is fixed unless one was given. */
	run = new_run(test, LIE_OPERATIONS, lie->threads, lie->lie, seed_param ?: LIE_SEED);
	s = &run->search;
	f = run_threads(test, run);
	KUNIT_ASSERT_NOT_NULL_MSG(test, f, "it was not found");
	kunit_info(test, "operation %u of seed %u: %s", f->first + f->at, run->seed, f->why);
	/* What takes several threads does not fail alone. */
	KUNIT_ASSERT_EQ(test, x_find_short(run, f), lie->threads == 1);
	if (lie->threads == 1) {
		x_print_sequence(test, run);
		KUNIT_EXPECT_GT(test, s->nr, 0);
		KUNIT_EXPECT_LE(test, s->nr, LIE_LENGTH);
		KUNIT_EXPECT_TRUE(test, s->confirmed);
		run->lie = X_TRUE;
	}
	/* The sequence passes without the mistake, or without the other threads. */
	KUNIT_EXPECT_EQ_MSG(test, -1, x_run_as(run, f->thread, s->ops, s->nr, KVT_TIMEOUT), "%s",
			    run->t[f->thread].w->why);
	check_shared(test, &run->s);
}

struct search {
	const char *name;
	enum x_lie lie;
	const char *why;
	bool found;
	bool spoilt;
	bool confirmed;
	u32 nr;
};

/* Allocates a PD, does nothing (there is no AH), and looks at the shared PD, which fails. */
#define SEARCHED	"pd_alloc.1.0.0.1/ah_free.0.0.0.0/pd_free.0.0.0.0"

static const struct search searches[] = {
	{ "what fails in another way does not count", X_LIE_KINDS, "two PDs",
	  true, false, true, 2 },
	{ "what never fails so is not found", X_LIE_KINDS, "three PDs", false, false, false, 3 },
	{ "what leaves something behind is left as it is", X_LIE_LEFT, "it is left behind",
	  false, true, false, 3 },
	{ "what takes time only is not confirmed", X_LIE_LATE, "it is late",
	  true, false, false, 1 },
};

KUNIT_ARRAY_PARAM_DESC(search, searches, name);

static void what_is_found_fails_in_the_same_way(struct kunit *test)
{
	const struct search *search = test->param_value;
	struct x_run *run;
	bool found;

	need_self_test(test);
	run = new_run(test, 1, 1, search->lie, LIE_SEED);
	x_read_sequence(test, run, SEARCHED);
	found = x_shorten(run, 0, search->why);
	KUNIT_EXPECT_EQ(test, found, search->found);
	KUNIT_EXPECT_EQ(test, run->search.spoilt, search->spoilt);
	KUNIT_EXPECT_EQ(test, run->search.confirmed, search->confirmed);
	KUNIT_EXPECT_EQ(test, run->search.nr, search->nr);
}

/* Writes a sequence of the greatest length as a failure would, and reads it. */
static void a_sequence_is_read_as_it_was_printed(struct kunit *test)
{
	char *text = kvt_zalloc(test, X_REPLAY);
	struct x_op *ops = KVT_PTR(test, kunit_kcalloc(test, X_EPISODE, sizeof(*ops), GFP_KERNEL));
	struct x_run *run = new_run(test, 1, 1, X_TRUE, LIE_SEED);
	size_t len = 0;
	u32 i;

	for (i = 0; i < X_EPISODE; i++) {
		x_draw(&ops[i], LIE_SEED, 0, i);
		len += x_write_op(&ops[i], text + len, X_OP_TEXT);
		text[len++] = '/';
	}
	KUNIT_EXPECT_LT(test, len, (size_t)X_REPLAY);
	x_read_sequence(test, run, text);
	KUNIT_EXPECT_EQ(test, run->search.nr, X_EPISODE);
	KUNIT_EXPECT_MEMEQ(test, run->search.ops, ops, X_EPISODE * sizeof(*ops));
}

static struct kunit_case exercise_cases[] = {
	KUNIT_CASE(a_sequence_is_read_as_it_was_printed),
	KUNIT_CASE_PARAM(what_is_found_fails_in_the_same_way, search_gen_params),
	KUNIT_CASE_PARAM(mistakes_are_found_and_made_short, lie_gen_params),
	KUNIT_CASE_PARAM_ATTR(random_calls_do_what_the_model_says, part_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};
KVT_SUITE(exercise);

MODULE_DESCRIPTION("KUnit: random calls of the verbs interface against a model");
MODULE_LICENSE("GPL");
