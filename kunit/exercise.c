// SPDX-License-Identifier: GPL-2.0-only
/*
 * The randomised exerciser: its threads, how a failure is made short, and the suite.
 * See exercise.h.
 *
 * The module's parameters: seed=, count= operations, threads=; lie=, the number of a
 * mistake, see enum x_lie; replay=, a sequence as a failure prints it, to be run alone.
 *
 * Locking: a world is its thread's; see exercise_post.c for what completions do to it.
 * What is shared is there before the threads and after them.
 */
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <kunit/test.h>

#include "exercise.h"
#include "lib.h"

/* In full. */
#define OPERATIONS	10000000ULL
/* Where instrumentation makes each of them cost so much more. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 10 : 1)
#define THREADS		4
#define MAX_THREADS	X_MAX_THREADS
/* Operations of an episode, those that do nothing included. */
#define EPISODE		1500
/* So many are enough to find each mistake of the self-test. */
#define LIE_OPERATIONS	40000
/* To what each of them is to be shrunk, if not to less. */
#define LIE_LENGTH	10
/* The mistakes are found from any; from this one always the same. */
#define LIE_SEED	1
/* So many show all there is: each operation, each way in which a request ends. */
#define ENOUGH		200000
/*
 * Operations of a part, which has a seed of its own: the kernel's detector of hung tasks
 * takes a case that goes on for a minute for one.
 */
#define PART		(100000 / DEBUG_SHARE)
/* More than there are kinds of operations. */
#define KINDS		96
/* A sequence of so many is short: more is tried to make it shorter. */
#define SHORT		24
/* So often an episode is run by itself, before its failure is taken for one of chance. */
#define TRIES		20
/* While a failure is shrunk, what does not come in this time does not come. */
#define SHRINK_PATIENCE	(2 * HZ)

static unsigned int seed_param;
module_param_named(seed, seed_param, uint, 0444);
MODULE_PARM_DESC(seed, "seed of the operations, 0 for a random one");
static unsigned long count_param;
module_param_named(count, count_param, ulong, 0444);
MODULE_PARM_DESC(count, "operations, 0 for what is due");
static unsigned int threads_param = THREADS;
module_param_named(threads, threads_param, uint, 0444);
MODULE_PARM_DESC(threads, "threads, at most 16");
static unsigned int lie_param;
module_param_named(lie, lie_param, uint, 0444);
MODULE_PARM_DESC(lie, "make a mistake, to see a failure: 1 to 8");
static char *replay_param;
module_param_named(replay, replay_param, charp, 0444);
MODULE_PARM_DESC(replay, "run this sequence alone");

/**
 * struct failure - what went wrong
 * @there: something did
 * @thread: in this thread
 * @first: number of the first operation of the episode
 * @at: operation of the episode, or their number if it was at the end
 * @why: what
 */
struct failure {
	bool there;
	u32 thread;
	u32 first;
	u32 at;
	char why[160];
};

struct run;

/**
 * struct x_thread - a thread
 * @run: what it is part of
 * @id: its number
 * @w: its world
 * @done: operations that were done
 * @skipped: operations that did nothing
 * @by_kind: the same, by kind
 * @ended: requests, by the status they had
 * @failure: what went wrong
 */
struct x_thread {
	struct run *run;
	u32 id;
	struct x_world *w;
	u64 done;
	u64 skipped;
	u64 by_kind[KINDS];
	u64 ended[X_STATUSES];
	struct failure failure;
} ____cacheline_aligned_in_smp;

/**
 * struct run - some threads that exercise
 * @s: what they share
 * @seed: of their operations
 * @quota: operations of each
 * @lie: mistake for the self-test
 * @stop: one has failed
 * @threads: how many
 * @t: the threads
 * @ops: a sequence, for shrinking
 * @nr_ops: its length
 * @trial: a part of it
 * @why: how the sequence failed last
 */
struct run {
	struct x_shared s;
	u32 seed;
	u64 quota;
	enum x_lie lie;
	bool stop;
	u32 threads;
	struct x_thread t[MAX_THREADS];
	struct x_op ops[EPISODE];
	u32 nr_ops;
	struct x_op trial[EPISODE];
	char why[160];
};

/* --- worlds --- */

static void share(struct x_world *w, enum x_kind kind, void *ptr)
{
	w->ptr[kind][X_SHARED] = ptr;
	xm_make(w, kind, X_SHARED, 0);
}

/* An empty world: all but its buffer starts anew. */
static void begin_world(struct x_world *w, enum x_lie lie, unsigned long patience)
{
	struct x_shared *s = w->s;
	unsigned long mem = w->user_mem;
	struct x_own *own = w->own;
	u32 id = w->id;
	u64 dma[X_DEVS];
	u8 *buf[X_DEVS];

	memcpy(dma, w->dma, sizeof(dma));
	memcpy(buf, w->buf, sizeof(buf));
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->id = id;
	w->user_mem = mem;
	w->own = own;
	memcpy(w->buf, buf, sizeof(buf));
	memcpy(w->dma, dma, sizeof(dma));
	w->lie = lie;
	w->patience = patience;
	init_waitqueue_head(&w->wait);
	x_clear_words(w);
	x_clear_user(w);
	x_own_begin(w);
	share(w, X_PD, s->pd);
	share(w, X_CQ, s->cq);
	w->cq_how[X_SHARED] = X_CQ_SOFTIRQ;
	share(w, X_SRQ, s->srq);
}

static void end_qp(struct x_world *w, int slot)
{
	struct x_op op = { .a = slot };

	for (op.b = 0; op.b < X_GROUPS; op.b++) {
		if (w->qp[slot].groups & BIT(op.b))
			x_mcast_leave(w, &op);
	}
	/* What waits for it finds nobody from here on, and fails. */
	if (!*w->why)
		x_settle(w);
	x_want(w, "destroying a QP at the end", 0, ib_destroy_qp(w->ptr[X_QP][slot]));
	xm_queue_clear(&w->qp[slot].sq);
	xm_queue_clear(&w->qp[slot].rq);
	xm_gone(w, X_QP, slot);
	xm_run(w);
}

static void end_cq(struct x_world *w, int slot)
{
	struct ib_cq *cq = w->ptr[X_CQ][slot];

	if (w->cq_how[slot] == X_CQ_POOL)
		ib_cq_pool_put(cq, X_CQE);
	else if (w->cq_how[slot] <= X_CQ_POLLED)
		x_want(w, "destroying a CQ at the end", 0, ib_destroy_cq_user(cq, NULL));
	else
		ib_free_cq(cq);
}

static void end_pd(struct x_world *w, int slot)
{
	int ret = ib_dealloc_pd_user(w->ptr[X_PD][slot], NULL);

	x_want(w, "freeing a PD at the end", 0, ret);
	if (!ret)
		w->ptr[X_PD][slot] = NULL;
}

static void end_obj(struct x_world *w, enum x_kind kind, int slot)
{
	void *ptr = w->ptr[kind][slot];

	switch (kind) {
	case X_QP:
		return end_qp(w, slot);
	case X_MR:
	case X_USER:
		x_want(w, "freeing a region at the end", 0, ib_dereg_mr(ptr));
		break;
	case X_MW:
		x_want(w, "freeing a window at the end", 0, ib_dealloc_mw(ptr));
		break;
	case X_FMR:
		x_want(w, "freeing an FMR at the end", 0, ib_dealloc_fmr(ptr));
		break;
	case X_AH:
		x_want(w, "freeing an address at the end", 0, ib_destroy_ah(ptr));
		break;
	case X_SRQ:
		x_want(w, "freeing an SRQ at the end", 0, ib_destroy_srq_user(ptr, NULL));
		break;
	case X_CQ:
		return end_cq(w, slot);
	default:
		return end_pd(w, slot);
	}
}

static void end_kind(struct x_world *w, enum x_kind kind)
{
	bool shared = kind == X_PD || kind == X_CQ || kind == X_SRQ;
	int slot;

	for (slot = shared; slot < X_SLOTS; slot++) {
		if (w->ptr[kind][slot])
			end_obj(w, kind, slot);
	}
}

/* After a failure, too: then the first one counts, and all is freed as it can be. */
static enum x_verdict end_world(struct x_world *w)
{
	static const u8 order[] = { X_QP, X_MW, X_MR, X_USER, X_FMR, X_AH, X_SRQ, X_CQ, X_PD };
	int i;

	if (!*w->why)
		x_settle(w);
	if (w->listening)
		x_listen(w, &(struct x_op){});
	x_end_ca(w);
	x_end_registry(w);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		end_kind(w, order[i]);
	for (i = 0; i < w->nr_leaked; i++)
		ib_dereg_mr(w->leaked[i]);
	/* Those that a leak had kept. */
	if (w->nr_leaked)
		end_kind(w, X_PD);
	if (atomic_read(&w->seen) != w->expected)
		x_want(w, "completions at the end", w->expected, atomic_read(&w->seen));
	return *w->why ? X_FAILED : X_DONE;
}

/* --- threads --- */

static void note_failure(struct x_thread *t, u32 first, u32 at)
{
	struct failure *f = &t->failure;

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

	begin_world(t->w, t->run->lie, KVT_TIMEOUT);
	for (i = 0; i < EPISODE; i++) {
		x_draw(&op, t->run->seed, t->id, first + i);
		verdict = x_run_op(t->w, &op);
		if (verdict == X_FAILED)
			break;
		t->skipped += verdict == X_SKIPPED;
		t->by_kind[op.kind] += verdict == X_DONE;
		WRITE_ONCE(t->done, t->done + (verdict == X_DONE));
	}
	if (end_world(t->w)) {
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
		first += EPISODE;
		cond_resched();
	}
	kthread_unuse_mm(t->run->s.mm);
	return 0;
}

static u64 all_done(const struct run *run)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < run->threads; i++)
		sum += READ_ONCE(run->t[i].done);
	return sum;
}

/* Waits for as long as there is progress. */
static bool join(const struct run *run, struct kvt_thread *t)
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
static struct failure *run_threads(struct kunit *test, struct run *run)
{
	struct kvt_thread *k[MAX_THREADS];
	struct failure *first = NULL;
	u32 i, hangs;

	for (i = 0; i < run->threads; i++)
		k[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, thread_fn, &run->t[i]);
	for (i = 0; i < run->threads && join(run, k[i]); i++)
		;
	hangs = i;
	WRITE_ONCE(run->stop, true);
	/* Those behind it end soon, or hang as well. */
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

/* --- shrinking --- */

/* Runs a sequence by itself. Returns the operation that failed, or -1. */
static int try(struct run *run, u32 thread, const struct x_op *ops, u32 nr)
{
	struct x_world *w = run->t[thread].w;
	u32 i;

	begin_world(w, run->lie, SHRINK_PATIENCE);
	for (i = 0; i < nr; i++) {
		if (x_run_op(w, &ops[i]) == X_FAILED)
			break;
	}
	if (!end_world(w))
		return -1;
	strscpy(run->why, w->why, sizeof(run->why));
	return i;
}

/* Leaves out @len operations from @start on, if it fails nevertheless. */
static bool shrink_by(struct run *run, u32 thread, u32 start, u32 len)
{
	u32 rest;
	int at;

	len = min(len, run->nr_ops - start);
	rest = run->nr_ops - start - len;
	memcpy(run->trial, run->ops, start * sizeof(*run->ops));
	memcpy(run->trial + start, run->ops + start + len, rest * sizeof(*run->ops));
	at = try(run, thread, run->trial, start + rest);
	if (at < 0)
		return false;
	/* Nor is anything needed after the one that fails. */
	run->nr_ops = min(start + rest, (u32)at + 1);
	memcpy(run->ops, run->trial, run->nr_ops * sizeof(*run->ops));
	return true;
}

/* Leaves out as much as can be: halves, quarters, and so on, down to single ones. */
static void shrink(struct run *run, u32 thread)
{
	u32 len = max(run->nr_ops / 2, 1U), start;
	bool any;

	do {
		any = false;
		for (start = 0; start < run->nr_ops;) {
			if (shrink_by(run, thread, start, len))
				any = true;
			else
				start += len;
			cond_resched();
		}
		if (len == 1 && !any)
			break;
		len = max(len / 2, 1U);
	} while (run->nr_ops);
}

/* Leaves out any run of operations, of any length: one that undoes what one did. */
static bool shrink_anywhere(struct run *run, u32 thread)
{
	u32 len, start;

	if (run->nr_ops > SHORT)
		return false;
	for (len = run->nr_ops - 1; len > 1; len--) {
		for (start = 0; start + len <= run->nr_ops; start++) {
			if (shrink_by(run, thread, start, len))
				return true;
		}
	}
	return false;
}

/*
 * Takes what is shared by all, and what is connected to itself, where that will do: the
 * arguments are 0. Returns false if it never does.
 */
static bool simplify(struct run *run, u32 thread)
{
	/* Bits: b, c, r. */
	static const u8 tries[] = { 7, 3, 1, 2, 4 };
	bool any = false;
	struct x_op *op, was;
	u32 i;

	for (i = 0; i < run->nr_ops * ARRAY_SIZE(tries); i++) {
		op = &run->ops[i / ARRAY_SIZE(tries)];
		was = *op;
		op->b = tries[i % ARRAY_SIZE(tries)] & 1 ? 0 : op->b;
		op->c = tries[i % ARRAY_SIZE(tries)] & 2 ? 0 : op->c;
		op->r = tries[i % ARRAY_SIZE(tries)] & 4 ? 0 : op->r;
		if (!memcmp(op, &was, sizeof(was)) ||
		    try(run, thread, run->ops, run->nr_ops) >= 0)
			any |= memcmp(op, &was, sizeof(was)) != 0;
		else
			*op = was;
	}
	return any;
}

/* Draws the episode anew. Returns false if it does not fail by itself. */
static bool find_short(struct run *run, const struct failure *f)
{
	u32 i;

	run->nr_ops = min_t(u32, f->at + 1, EPISODE);
	for (i = 0; i < run->nr_ops; i++)
		x_draw(&run->ops[i], run->seed, f->thread, f->first + i);
	for (i = 0; try(run, f->thread, run->ops, run->nr_ops) < 0; i++) {
		if (i == TRIES)
			return false;
	}
	do
		shrink(run, f->thread);
	while (simplify(run, f->thread) || shrink_anywhere(run, f->thread));
	return true;
}

/* The operations before a failure that chance has a part in. */
static void print_last(struct kunit *test, const struct run *run)
{
	char line[64];
	u32 i = run->nr_ops > SHORT ? run->nr_ops - SHORT : 0;

	for (; i < run->nr_ops; i++) {
		x_write_op(&run->ops[i], line, sizeof(line));
		kunit_info(test, "before it: %s", line);
	}
}

static void print_sequence(struct kunit *test, struct run *run)
{
	char line[64];
	u32 i;

	for (i = 0; i < run->nr_ops; i++) {
		x_write_op(&run->ops[i], line, sizeof(line));
		kunit_info(test, "replay: %s%s", line, i + 1 < run->nr_ops ? "/" : "");
	}
}

static void report(struct kunit *test, struct run *run, const struct failure *f)
{
	kunit_err(test, "seed %u, thread %u, operation %u: %s", run->seed, f->thread,
		  f->first + f->at, f->why);
	if (!find_short(run, f)) {
		kunit_err(test, "by itself, the episode does not fail in %u runs", TRIES);
		print_last(test, run);
		return;
	}
	kunit_err(test, "shrunk to %u operations: %s", run->nr_ops, run->why);
	print_sequence(test, run);
}

/* --- what is shared --- */

static void defer(struct kunit *test, void (*fn)(void *arg), void *arg)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fn, arg));
}

static void put_device_fn(void *arg)
{
	ib_device_put(arg);
}

static void dealloc_pd_fn(void *arg)
{
	ib_dealloc_pd(arg);
}

static void free_cq_fn(void *arg)
{
	ib_free_cq(arg);
}

static void destroy_srq_fn(void *arg)
{
	ib_destroy_srq(arg);
}

static void get_devices(struct kunit *test, struct x_shared *s)
{
	static const char *const names[X_DEVS] = { "emu0", "emu1" };
	struct ib_port_attr attr;
	int i;

	for (i = 0; i < X_DEVS; i++) {
		s->dev[i] = ib_device_get_by_name(names[i], RDMA_DRIVER_UNKNOWN);
		KUNIT_ASSERT_NOT_NULL_MSG(test, s->dev[i], "no device: load kverbs_emu");
		defer(test, put_device_fn, s->dev[i]);
		KUNIT_ASSERT_EQ(test, 0, ib_query_port(s->dev[i], X_PORT, &attr));
		s->lid[i] = attr.lid;
		KUNIT_ASSERT_EQ(test, 0, s->dev[i]->ops.query_gid(s->dev[i], X_PORT, 0,
								  &s->gid[i]));
	}
}

static void make_shared(struct kunit *test, struct x_shared *s, u32 threads)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	get_devices(test, s);
	s->pd = ib_alloc_pd(s->dev[0], 0);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(s->pd));
	defer(test, dealloc_pd_fn, s->pd);
	s->cq = ib_alloc_cq(s->dev[0], NULL, X_CQE * threads, 0, IB_POLL_SOFTIRQ);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(s->cq));
	defer(test, free_cq_fn, s->cq);
	s->srq = ib_create_srq(s->pd, &init);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(s->srq));
	defer(test, destroy_srq_fn, s->srq);
}

/* Nobody has left anything behind. */
static void check_shared(struct kunit *test, const struct x_shared *s)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->cq->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->srq->usecnt));
	/* The SRQ. */
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
	struct x_world *w = kvzalloc(sizeof(*w), GFP_KERNEL);
	u64 dma;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->s = s;
	w->id = id;
	w->user_mem = kunit_vm_mmap(test, NULL, 0, X_USER_PAGES * PAGE_SIZE,
				    PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, w->user_mem);
	s->mm = current->mm;
	x_own_new(test, w);
	defer(test, free_world, w);
	for (i = 0; i < X_DEVS; i++) {
		w->buf[i] = kzalloc(X_BUF, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, w->buf[i]);
		dma = ib_dma_map_single(s->dev[i], w->buf[i], X_BUF, DMA_BIDIRECTIONAL);
		KUNIT_ASSERT_EQ(test, 0, ib_dma_mapping_error(s->dev[i], dma));
		w->dma[i] = dma;
	}
	return w;
}

static void free_run(void *arg)
{
	kvfree(arg);
}

/* Many operations wait for grace periods. */
#define EXPEDITED	"/sys/kernel/rcu_expedited"

static void unexpedite(void *arg)
{
	kvt_write_file(EXPEDITED, "0");
}

static struct run *new_run(struct kunit *test, u64 count, u32 threads, enum x_lie lie, u32 seed)
{
	struct run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, run);
	defer(test, free_run, run);
	run->threads = clamp_t(u32, threads, 1, MAX_THREADS);
	run->quota = max_t(u64, div_u64(count, run->threads), 1);
	run->lie = lie;
	run->seed = seed;
	make_shared(test, &run->s, run->threads);
	for (i = 0; i < run->threads; i++) {
		run->t[i].run = run;
		run->t[i].id = i;
		run->t[i].w = new_world(test, &run->s, i);
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(EXPEDITED, "1"));
	defer(test, unexpedite, NULL);
	return run;
}

/* --- the suite --- */

/* A seed that was given is that of the first part; the others have those behind it. */
static u32 the_seed(struct kunit *test, u64 count, u32 part)
{
	u32 seed = seed_param;

	if (!seed)
		seed = kvt_seed(test, "operations", count);
	kunit_info(test, "part %u: seed %u", part, seed + part);
	return seed + part;
}

static void read_sequence(struct kunit *test, struct run *run, const char *text)
{
	int used;

	while (*text) {
		KUNIT_ASSERT_LT_MSG(test, run->nr_ops, EPISODE, "too many operations");
		used = x_read_op(&run->ops[run->nr_ops], text);
		KUNIT_ASSERT_GT_MSG(test, used, 0, "no operation: %s", text);
		run->nr_ops++;
		text += used;
		text += *text == '/';
	}
}

static void replay(struct kunit *test)
{
	struct run *run = new_run(test, 1, 1, lie_param, 1);
	int at;

	read_sequence(test, run, replay_param);
	at = try(run, 0, run->ops, run->nr_ops);
	if (at >= 0) {
		kunit_err(test, "operation %d: %s", at, run->why);
		KUNIT_FAIL(test, "%s", run->why);
	}
	check_shared(test, &run->s);
}

/* Of all parts so far; they run one after the other. */
static u64 all_by_kind[KINDS];
static u64 all_ended[X_STATUSES];

static void add_up(const struct run *run)
{
	u32 t;
	int i;

	for (t = 0; t < run->threads; t++) {
		for (i = 0; i < KINDS; i++)
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

/* Or it shows less than it should. */
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
	return replay_param ? 1 : DIV_ROUND_UP_ULL(all_operations(), PART);
}

/* KUnit wants a pointer for each; they are the number of the part, and 1. */
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
	struct failure *f;
	struct run *run;
	u32 i;

	if (replay_param) {
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
		report(test, run, f);
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
};

static const struct lie lies[] = {
	{ "a region that does not count", X_LIE_COUNT },
	{ "a change of state that is not legal", X_LIE_STATE },
	{ "a status", X_LIE_STATUS },
	{ "a queue that is never full", X_LIE_EVER },
	{ "completions that are lost", X_LIE_LOST },
	{ "completions that come twice", X_LIE_TWICE },
	{ "a change that has no effect", X_LIE_QUERY },
	{ "regions that leak", X_LIE_LEAK },
};

static void lie_name(const struct lie *lie, char *desc)
{
	strscpy(desc, lie->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lie, lies, lie_name);

static void mistakes_are_found_and_made_short(struct kunit *test)
{
	const struct lie *lie = test->param_value;
	struct failure *f;
	struct run *run;

	if (replay_param || lie_param)
		kunit_skip(test, "not with replay= or lie=");
	/* It shows something about the exerciser, not about what it calls. */
	if (DEBUG_SHARE > 1)
		kunit_skip(test, "shown on kernels without instrumentation");
	/* Nor does it want another seed each time. */
	run = new_run(test, LIE_OPERATIONS, 1, lie->lie, seed_param ?: LIE_SEED);
	f = run_threads(test, run);
	KUNIT_ASSERT_NOT_NULL_MSG(test, f, "it was not found");
	kunit_info(test, "operation %u of seed %u: %s", f->first + f->at, run->seed, f->why);
	KUNIT_ASSERT_TRUE(test, find_short(run, f));
	print_sequence(test, run);
	KUNIT_EXPECT_GT(test, run->nr_ops, 0);
	KUNIT_EXPECT_LE(test, run->nr_ops, LIE_LENGTH);
	/* The same sequence is right without the mistake. */
	run->lie = X_TRUE;
	KUNIT_EXPECT_EQ(test, -1, try(run, f->thread, run->ops, run->nr_ops));
	check_shared(test, &run->s);
}

static struct kunit_case exercise_cases[] = {
	KUNIT_CASE_PARAM(mistakes_are_found_and_made_short, lie_gen_params),
	KUNIT_CASE_PARAM_ATTR(random_calls_do_what_the_model_says, part_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite exercise_suite = {
	.name = "exercise",
	.test_cases = exercise_cases,
};

kunit_test_suites(&exercise_suite);

MODULE_DESCRIPTION("KUnit: random calls of the verbs interface against a model");
MODULE_LICENSE("GPL");
