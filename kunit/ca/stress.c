// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads submit, cancel and close channel-adapter requests without coordination, also
 * while the device is unregistered. Each request must end exactly once, and the objects
 * that were made must be those that were freed or are left.
 */
#include "ca/rig.h"
#include "lib/mock.h"

#define THREADS		4
#define JOBS		16
#define HANDLES		8
#define PDS		16
#define ROUNDS		100000

/* An open CA, or a PD of one; @pd is 0 for a CA. */
struct ca_thing {
	u64 handle;
	u64 pd;
};

/* What the threads share. */
struct storm {
	struct mock *m;			/* the device */
	spinlock_t lock;		/* guards @handles and @pds */
	/* Known CAs, which may have been closed meanwhile; handle 0 marks a free entry. */
	struct ca_thing handles[HANDLES];
	struct ca_thing pds[PDS];	/* known PDs, likewise */
	u64 rounds;			/* maximum number of submissions per thread */
	bool gone;			/* the device's unregistration has returned */
	atomic_t begun;			/* submissions that returned -EINPROGRESS */
	atomic_t called;		/* callbacks */
	atomic_t late;			/* callbacks after the end of the unregistration */
	atomic_t opened;		/* successful OPENs */
	atomic_t closed;		/* successful CLOSEs */
	atomic_t made;			/* successful ALLOC_PDs */
	atomic_t freed;			/* successful DEALLOC_PDs */
	atomic_t cancelled;		/* successful cancellations */
	atomic_t wrong;			/* unexpected results */
};

/* One request of a thread. */
struct job {
	struct ib_ca_request req;
	struct storm *storm;	/* what the threads share */
	struct completion over;	/* completed by done() */
	bool busy;		/* @req was submitted, and its result has not been checked yet */
	bool cancelled;		/* @req was cancelled */
	u64 answer[4];		/* output buffer */
};

struct storm_thread {
	struct storm *storm;
	u32 rand;
	struct job jobs[JOBS];
};

static void storm_done(struct ib_ca_request *req)
{
	struct job *job = container_of(req, struct job, req);

	atomic_inc(&job->storm->called);
	if (READ_ONCE(job->storm->gone))
		atomic_inc(&job->storm->late);
	complete(&job->over);
}

/* Adds a CA or a PD to its table. Returns false if the table is full. */
static bool remember(struct storm *s, struct ca_thing *things, u32 nr, u64 handle, u64 pd)
{
	bool room = false;
	u32 i;

	spin_lock(&s->lock);
	for (i = 0; i < nr && !room; i++) {
		if (things[i].handle)
			continue;
		things[i] = (struct ca_thing) { .handle = handle, .pd = pd };
		room = true;
	}
	spin_unlock(&s->lock);
	return room;
}

static void forget(struct storm *s, struct ca_thing *things, u32 nr, u64 handle, u64 pd)
{
	u32 i;

	spin_lock(&s->lock);
	for (i = 0; i < nr; i++)
		if (things[i].handle == handle && things[i].pd == pd)
			things[i] = (struct ca_thing) {};
	spin_unlock(&s->lock);
}

static struct ca_thing any_of(struct storm *s, const struct ca_thing *things, u32 which)
{
	struct ca_thing thing;

	spin_lock(&s->lock);
	thing = things[which];
	spin_unlock(&s->lock);
	return thing;
}

/* An object that is in no table can always be freed, unless the device is gone. */
static void count_freed(struct storm *s, ssize_t ret, atomic_t *count)
{
	if (!ret)
		atomic_inc(count);
	else if (ret != -ENODEV)
		atomic_inc(&s->wrong);
}

static void keep_handle(struct storm *s, const struct ib_ca_request *req)
{
	atomic_inc(&s->opened);
	if (!remember(s, s->handles, HANDLES, req->handle, 0))
		count_freed(s, ca_rig_close(s->m->ibdev, req->handle), &s->closed);
}

static void keep_pd(struct storm *s, const struct ib_ca_request *req)
{
	atomic_inc(&s->made);
	if (!remember(s, s->pds, PDS, req->handle, req->object))
		count_freed(s, ca_rig_dealloc(s->m->ibdev, req->handle, req->object), &s->freed);
}

static void drop_handle(struct storm *s, const struct ib_ca_request *req)
{
	atomic_inc(&s->closed);
	forget(s, s->handles, HANDLES, req->handle, 0);
}

static void drop_pd(struct storm *s, const struct ib_ca_request *req)
{
	atomic_inc(&s->freed);
	forget(s, s->pds, PDS, req->handle, req->object);
}

static bool is_error_of(u32 op, ssize_t ret)
{
	switch (ret) {
	case -ENOENT:
		return op != KVERBS_CA_OPEN;
	case -EBUSY:
		return op == KVERBS_CA_CLOSE || op == KVERBS_CA_DEALLOC_PD;
	case -EOVERFLOW:
		return op == KVERBS_CA_LIST || op == KVERBS_CA_QUERY_CA;
	default:
		return false;
	}
}

static void look_at(struct storm *s, struct job *job)
{
	struct ib_ca_request *req = &job->req;
	ssize_t ret = req->result;

	if (job->cancelled != (ret == -ECANCELED))
		atomic_inc(&s->wrong);
	else if (!ret && req->op == KVERBS_CA_OPEN)
		keep_handle(s, req);
	else if (!ret && req->op == KVERBS_CA_ALLOC_PD)
		keep_pd(s, req);
	else if (!ret && req->op == KVERBS_CA_CLOSE)
		drop_handle(s, req);
	else if (!ret && req->op == KVERBS_CA_DEALLOC_PD)
		drop_pd(s, req);
	else if (!job->cancelled && !is_error_of(req->op, ret))
		atomic_inc(&s->wrong);
}

/* Waits for the job's callback, one time in four after an attempt to cancel the request. */
static void end_job(struct storm_thread *t, struct job *job)
{
	if (!job->busy)
		return;
	if (kvt_rand(&t->rand) % 4 == 0 && !ib_ca_cancel(&job->req)) {
		job->cancelled = true;
		atomic_inc(&t->storm->cancelled);
	}
	if (!kvt_wait(&job->over)) {
		atomic_inc(&t->storm->wrong);
		return;
	}
	job->busy = false;
	look_at(t->storm, job);
}

static void choose(struct storm_thread *t, struct job *job)
{
	static const u32 ops[] = {
		KVERBS_CA_OPEN, KVERBS_CA_CLOSE, KVERBS_CA_ALLOC_PD,
		KVERBS_CA_DEALLOC_PD, KVERBS_CA_DEALLOC_PD, KVERBS_CA_LIST,
		KVERBS_CA_QUERY_CA, KVERBS_CA_CLOSE,
	};
	u32 r = kvt_rand(&t->rand), place = r >> 8;
	struct storm *s = t->storm;
	struct ib_ca_request *req = &job->req;
	struct ca_thing thing = {};

	*req = (struct ib_ca_request) {
		.op = ops[r % ARRAY_SIZE(ops)],
		.version = KVERBS_CA_VERSION,
		.done = storm_done,
	};
	if (req->op == KVERBS_CA_DEALLOC_PD)
		thing = any_of(s, s->pds, place % PDS);
	else if (req->op != KVERBS_CA_OPEN)
		thing = any_of(s, s->handles, place % HANDLES);
	req->handle = thing.handle;
	req->object = thing.pd;
	if (req->op == KVERBS_CA_LIST || req->op == KVERBS_CA_QUERY_CA) {
		req->out = job->answer;
		req->out_len = 8 + r % 16;
	}
	if (req->op == KVERBS_CA_QUERY_CA)
		req->flags = KVERBS_CA_FRESH;
}

/* A cached query returns at once, even if another thread closes the handle meanwhile. */
static void query_any(struct storm_thread *t)
{
	struct ca_thing thing = any_of(t->storm, t->storm->handles, kvt_rand(&t->rand) % HANDLES);
	u64 answer[2];
	ssize_t ret = CA_CALL(t->storm->m->ibdev, QUERY_CA,
			      .handle = thing.handle, .out = answer,
			      .out_len = sizeof(answer));

	if (ret != -EOVERFLOW && ret != -ENOENT && ret != -ENODEV)
		atomic_inc(&t->storm->wrong);
	if (ret == -EOVERFLOW && !thing.handle)
		atomic_inc(&t->storm->wrong);
}

/* Returns false if the device is gone. */
static bool one_round(struct storm_thread *t)
{
	struct job *job = &t->jobs[kvt_rand(&t->rand) % JOBS];
	ssize_t ret;

	query_any(t);
	end_job(t, job);
	choose(t, job);
	job->cancelled = false;
	reinit_completion(&job->over);
	ret = ib_ca_submit(t->storm->m->ibdev, &job->req);
	if (ret == -EINPROGRESS) {
		atomic_inc(&t->storm->begun);
		job->busy = true;
	} else if (ret != -ENODEV) {
		atomic_inc(&t->storm->wrong);
	}
	return ret != -ENODEV;
}

static int storm_fn(void *arg)
{
	struct storm_thread *t = arg;
	u64 i;

	for (i = 0; i < t->storm->rounds && one_round(t); i++)
		cond_resched();
	for (i = 0; i < JOBS; i++)
		end_job(t, &t->jobs[i]);
	return 0;
}

static struct kvt_thread *begin_thread(struct kunit *test, struct storm *s, u32 rand, int cpu)
{
	struct storm_thread *t = kvt_zalloc(test, sizeof(*t));
	int i;

	t->storm = s;
	t->rand = rand | 1;
	for (i = 0; i < JOBS; i++) {
		t->jobs[i].storm = s;
		init_completion(&t->jobs[i].over);
	}
	return kvt_thread_start(test, cpu, storm_fn, t);
}

static struct storm *storm_up(struct kunit *test, u64 rounds, struct kvt_thread **threads)
{
	struct storm *s = kvt_zalloc(test, sizeof(*s));
	u32 rand = kvt_seed(test, "requests of four threads", rounds * THREADS);
	int i;

	spin_lock_init(&s->lock);
	s->rounds = rounds;
	s->m = mock_up(test, "kvtm_a");
	for (i = 0; i < THREADS; i++)
		threads[i] = begin_thread(test, s, kvt_rand(&rand), i % 2 ? kvt_other_cpu() : 0);
	return s;
}

static void expect_right(struct kunit *test, struct storm *s, struct kvt_thread **threads)
{
	int i;

	for (i = 0; i < THREADS; i++)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(threads[i]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->wrong));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->begun), atomic_read(&s->called));
	kunit_info(test, "%d begun, %d cancelled, %d CAs and %d PDs made",
		   atomic_read(&s->begun), atomic_read(&s->cancelled),
		   atomic_read(&s->opened), atomic_read(&s->made));
}

static void what_was_made_is_what_was_freed_and_what_is_there(struct kunit *test)
{
	struct kvt_thread *threads[THREADS];
	struct storm *s = storm_up(test, kvt_count(ROUNDS) / THREADS, threads);
	struct mock *m = s->m;

	expect_right(test, s, threads);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->opened), mock_calls(m, MOCK_open_ca));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->closed), mock_calls(m, MOCK_close_ca));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->made), mock_calls(m, MOCK_alloc_pd));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->freed), mock_calls(m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->opened) - atomic_read(&s->closed),
			atomic_read(&m->live[MOCK_CA]));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->made) - atomic_read(&s->freed),
			atomic_read(&m->live[MOCK_PD]));
	KUNIT_EXPECT_GT(test, atomic_read(&s->freed), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&s->closed), 0);
	mock_unregister(m);
	MOCK_EXPECT_IDLE(test, m);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->wrong_ca));
}

static void device_may_go_at_any_time(struct kunit *test)
{
	struct kvt_thread *threads[THREADS];
	struct storm *s = storm_up(test, U64_MAX, threads);

	while (atomic_read(&s->called) < kvt_count(ROUNDS) / 4)
		cond_resched();
	mock_unregister(s->m);
	WRITE_ONCE(s->gone, true);
	MOCK_EXPECT_IDLE(test, s->m);
	expect_right(test, s, threads);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->late));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->m->wrong_ca));
}

static struct kunit_case ca_stress_cases[] = {
	KUNIT_CASE_SLOW(what_was_made_is_what_was_freed_and_what_is_there),
	KUNIT_CASE_SLOW(device_may_go_at_any_time),
	{}
};
KVT_SUITE(ca_stress);
