// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads use the memory of four peer-memory clients of different kinds. The clients
 * invalidate memory at random times, also from within their own functions, and are
 * unregistered and registered again meanwhile.
 */
#include "peer/rig.h"

#define CLIENTS		4
#define THREADS		4
#define USERS		8
#define OPERATIONS	1000000

/* The shortest possible timeout, so that many invalidations give up waiting. */
#define WAIT_MS		1

static const char * const names[CLIENTS] = { "kvt_a", "kvt_b", "kvt_c", "kvt_d" };

static const enum peer_kind kinds[CLIENTS] = {
	PEER_UNMAPS, PEER_CORE, PEER_NEVER, PEER_UNMAPS,
};

/* What the threads share. */
struct storm {
	struct peer_mock *m[CLIENTS];	/* the clients */
	u32 seed;			/* seed of draw() */
	atomic_t draws;			/* numbers returned by draw() */
	u64 rounds;			/* operations of each thread */
	atomic_t made;			/* regions got */
	atomic_t revoked;		/* regions that were revoked */
	atomic_t invalidated;		/* invalidations */
	atomic_t wrong;			/* wrong results */
};

struct storm_thread {
	struct storm *storm;
	u32 rand;
	struct peer_user users[USERS];
};

/* Draws a random number; may be called by any thread. */
static u32 draw(struct storm *s)
{
	u32 rand = (s->seed + (u32)atomic_inc_return(&s->draws) * 2654435761U) | 1;

	kvt_rand(&rand);
	return kvt_rand(&rand);
}

static void invalidate(struct storm *s, struct peer_pin *pin)
{
	atomic_inc(&s->invalidated);
	peer_pin_invalidate(pin);
}

/* Hook of the clients' functions. */
static void any_function(struct peer_pin *pin)
{
	struct storm *s = pin->mock->arg;
	u32 r = draw(s);

	if (r % 16 == 0)
		cond_resched();
	if ((r >> 8) % 32 == 0)
		invalidate(s, pin);
	if ((r >> 16) % 1024 == 0)
		schedule_timeout_uninterruptible(1);
}

static void any_revoke(struct peer_user *u)
{
	struct storm *s = u->arg;
	u32 r = draw(s);

	atomic_inc(&s->revoked);
	if (r % 16 == 0)
		cond_resched();
	if ((r >> 8) % 32 == 0)
		invalidate(s, u->pin);
}

/* Invalidates the memory of a random pin of a random client. */
static void invalidate_any(struct storm_thread *t)
{
	u32 r = kvt_rand(&t->rand);
	struct peer_pin *pin = peer_mock_pin(t->storm->m[r % CLIENTS], r >> 8);

	if (!pin)
		return;
	invalidate(t->storm, pin);
	peer_pin_put(pin);
}

/* Draws a request. Each user of a thread has an address range of its own. */
static void draw_request(struct storm_thread *t, struct peer_user *u)
{
	u32 r = kvt_rand(&t->rand), nr = r % CLIENTS;
	unsigned long addr = PEER_BASE(nr) + (u - t->users) * SZ_1M + (r >> 8) % SZ_64K;

	peer_user_init(u, addr, 1 + kvt_rand(&t->rand) % (4 * SZ_64K));
	u->arg = t->storm;
	u->on_revoke = any_revoke;
	if (kvt_rand(&t->rand) % 4 == 0)
		u->req.name = names[nr];
	u->req.revocable = kvt_rand(&t->rand) % 16;
}

static bool may_fail(const struct peer_user *u, int ret)
{
	switch (ret) {
	case -ECANCELED:
	case -EFAULT:
	case -ENODEV:
		return true;
	case -ENOENT:
		return u->req.name;
	case -EOPNOTSUPP:
		return !u->req.revocable;
	default:
		return false;
	}
}

static void get(struct storm_thread *t, struct peer_user *u)
{
	int ret;

	draw_request(t, u);
	ret = peer_user_get(u);
	if (ret && !may_fail(u, ret))
		atomic_inc(&t->storm->wrong);
	if (ret)
		return;
	atomic_inc(&t->storm->made);
	if (u->req.revocable && kvt_rand(&t->rand) % 8)
		peer_user_activate(u);
}

static void put(struct storm_thread *t, struct peer_user *u)
{
	peer_user_put(u);
	if (atomic_read(&u->wrong))
		atomic_inc(&t->storm->wrong);
}

static void operation(struct storm_thread *t)
{
	struct peer_user *u = &t->users[kvt_rand(&t->rand) % USERS];

	if (!u->region) {
		get(t, u);
		return;
	}
	switch (kvt_rand(&t->rand) % 8) {
	case 0 ... 1:
		if (!u->active && !u->revoked && u->req.revocable)
			peer_user_activate(u);
		else
			peer_user_access(u);
		break;
	case 2 ... 3:
		invalidate_any(t);
		break;
	case 4:
		peer_user_stop(u);
		break;
	case 5:
		peer_user_access(u);
		break;
	default:
		put(t, u);
	}
}

static int storm_fn(void *arg)
{
	struct storm_thread *t = arg;
	u64 i;

	for (i = 0; i < t->storm->rounds; i++) {
		operation(t);
		cond_resched();
	}
	for (i = 0; i < USERS; i++)
		if (t->users[i].region)
			put(t, &t->users[i]);
	return 0;
}

static struct kvt_thread *begin_thread(struct kunit *test, struct storm *s, u32 rand, int cpu)
{
	struct storm_thread *t = kvt_zalloc(test, sizeof(*t));

	t->storm = s;
	t->rand = rand | 1;
	return kvt_thread_start(test, cpu, storm_fn, t);
}

static struct peer_mock *storm_client(struct kunit *test, struct storm *s, int nr)
{
	struct peer_mock *m = peer_mock_new(test, nr, names[nr], kinds[nr]);
	enum peer_call call;

	for (call = PEER_GET_PAGES; call < PEER_CALLS; call++)
		m->on[call] = any_function;
	m->fill_early = nr % 2;
	m->arg = s;
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	return m;
}

static struct storm *storm_up(struct kunit *test, struct kvt_thread **threads)
{
	struct storm *s = kvt_zalloc(test, sizeof(*s));
	u64 count = kvt_count(OPERATIONS / PEER_ROUNDS);
	u32 rand = kvt_seed(test, "operations of four threads", count);
	int i;

	s->seed = rand;
	s->rounds = count / THREADS;
	peer_set_wait(test, WAIT_MS);
	for (i = 0; i < CLIENTS; i++)
		s->m[i] = storm_client(test, s, i);
	for (i = 0; i < THREADS; i++)
		threads[i] = begin_thread(test, s, kvt_rand(&rand), i % 2 ? kvt_other_cpu() : 0);
	return s;
}

/* Unregisters a client and registers it again, now and then with functions that fail. */
static void reload(struct kunit *test, struct storm *s)
{
	u32 r = draw(s);
	struct peer_mock *m = s->m[r % CLIENTS];

	peer_mock_unregister(m);
	if (atomic_read(&m->live))
		atomic_inc(&s->wrong);
	m->ret[PEER_GET_PAGES] = (r >> 8) % 16 ? 0 : -EFAULT;
	m->ret[PEER_DMA_MAP] = (r >> 16) % 16 ? 0 : -EFAULT;
	if (peer_mock_register(m))
		atomic_inc(&s->wrong);
}

static bool any_running(struct kvt_thread **threads)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (kvt_thread_running(threads[i]))
			return true;
	return false;
}

static void expect_balance(struct kunit *test, const char *name)
{
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, name, "live_mrs"));
	KUNIT_EXPECT_EQ(test, peer_count(test, name, "num_alloc_mrs"),
			peer_count(test, name, "num_dealloc_mrs"));
	KUNIT_EXPECT_EQ(test, peer_count(test, name, "num_reg_pages"),
			peer_count(test, name, "num_dereg_pages"));
	KUNIT_EXPECT_EQ(test, peer_count(test, name, "num_reg_bytes"),
			peer_count(test, name, "num_dereg_bytes"));
}

static void memory_may_go_at_any_time(struct kunit *test)
{
	struct kvt_thread *threads[THREADS];
	struct storm *s = storm_up(test, threads);
	int i, reloads = 0;

	for (; any_running(threads); reloads++) {
		reload(test, s);
		schedule_timeout_idle(1 + draw(s) % 8);
	}
	for (i = 0; i < THREADS; i++)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(threads[i]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->wrong));
	for (i = 0; i < CLIENTS; i++) {
		PEER_EXPECT_IDLE(test, s->m[i]);
		expect_balance(test, names[i]);
	}
	kunit_info(test, "%d regions, %d invalidations, %d revoked, %d reloads",
		   atomic_read(&s->made), atomic_read(&s->invalidated),
		   atomic_read(&s->revoked), reloads);
	KUNIT_EXPECT_GT(test, atomic_read(&s->revoked), 0);
}

static struct kunit_case peer_stress_cases[] = {
	KUNIT_CASE_PARAM_ATTR(memory_may_go_at_any_time, peer_next_round,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};
KVT_SUITE(peer_stress);

MODULE_DESCRIPTION("KUnit: peer memory that is taken away at random");
MODULE_LICENSE("GPL");
