// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread does random operations on regions of four peer clients, and a model counts what
 * each must change: the files of each client in sysfs must show the same counts.
 */
#include "peer/rig.h"

#define CLIENTS		4
#define USERS		24
#define OPERATIONS	100000
/* Enough for each client to have registered something. */
#define FEWEST_OPERATIONS 500

/* Operations after which one random file, or every file, is compared with the model. */
#define LOOK_AT_ONE	4
#define LOOK_AT_ALL	500

/* The files in sysfs, whose values the model counts. */
enum counter {
	ALLOC_MRS,
	DEALLOC_MRS,
	REG_PAGES,
	DEREG_PAGES,
	REG_BYTES,
	DEREG_BYTES,
	FREE_CALLBACKS,
	LIVE_MRS,
	REVOKES,
	WAITS,
	TIMEOUTS,
	COUNTERS,
};

static const char * const counter_files[COUNTERS] = {
	[ALLOC_MRS] = "num_alloc_mrs",
	[DEALLOC_MRS] = "num_dealloc_mrs",
	[REG_PAGES] = "num_reg_pages",
	[DEREG_PAGES] = "num_dereg_pages",
	[REG_BYTES] = "num_reg_bytes",
	[DEREG_BYTES] = "num_dereg_bytes",
	[FREE_CALLBACKS] = "num_free_callbacks",
	[LIVE_MRS] = "live_mrs",
	[REVOKES] = "num_revokes",
	[WAITS] = "num_invalidate_waits",
	[TIMEOUTS] = "num_invalidate_timeouts",
};

static const char * const names[CLIENTS] = { "kvt_a", "kvt_b", "kvt_c", "kvt_d" };

static const enum peer_kind kinds[CLIENTS] = {
	PEER_UNMAPS, PEER_CORE, PEER_NEVER, PEER_UNMAPS,
};

/* State of a user's region; DOOMED: invalidated before its activation; GONE: unmapped. */
enum stage {
	STAGE_NONE,
	STAGE_MADE,
	STAGE_DOOMED,
	STAGE_ACTIVE,
	STAGE_GONE,
};

struct model_user {
	struct peer_user u;
	struct peer_mock *m;
	enum stage stage;
	u64 pages;
};

/* Clients, users, and the expected values of the files. */
struct model {
	struct kunit *test;		/* the running case */
	u32 rand;			/* state of kvt_rand() */
	struct peer_mock *m[CLIENTS];	/* the clients */
	struct model_user users[USERS];	/* users of the clients' memory */
	u64 count[CLIENTS][COUNTERS];	/* by client, expected value of each file */
};

static u64 *counters(struct model *model, struct peer_mock *m)
{
	return model->count[m->nr];
}

static void count_made(struct model *model, struct model_user *mu)
{
	u64 *count = counters(model, mu->m);

	count[ALLOC_MRS]++;
	count[REG_PAGES] += mu->pages;
	count[REG_BYTES] += mu->u.req.size;
}

static void count_gone(struct model *model, struct model_user *mu)
{
	u64 *count = counters(model, mu->m);

	count[DEALLOC_MRS]++;
	count[DEREG_PAGES] += mu->pages;
	count[DEREG_BYTES] += mu->u.req.size;
}

/* What goes wrong while a region is made; TAKEN_*: the client invalidates it in a callback. */
enum mishap {
	NO_MISHAP,
	GET_PAGES_FAILS,
	DMA_MAP_FAILS,
	TAKEN_IN_GET_PAGES,
	TAKEN_IN_DMA_MAP,
	TAKEN_IN_PAGE_SIZE,
	MISHAPS,
};

static void arrange(struct peer_mock *m, enum mishap mishap)
{
	m->ret[PEER_GET_PAGES] = mishap == GET_PAGES_FAILS ? -EFAULT : 0;
	m->ret[PEER_DMA_MAP] = mishap == DMA_MAP_FAILS ? -EFAULT : 0;
	m->on[PEER_GET_PAGES] = mishap == TAKEN_IN_GET_PAGES ?
				peer_pin_invalidate_here : NULL;
	m->on[PEER_DMA_MAP] = mishap == TAKEN_IN_DMA_MAP ?
			      peer_pin_invalidate_here : NULL;
	m->on[PEER_PAGE_SIZE] = mishap == TAKEN_IN_PAGE_SIZE ?
				peer_pin_invalidate_here : NULL;
}

/* Counts what making the region must change. Returns what peer_user_get() must return. */
static int count_mishap(struct model *model, struct model_user *mu, enum mishap mishap)
{
	if (mishap == GET_PAGES_FAILS || mishap == DMA_MAP_FAILS)
		return -EFAULT;
	if (mu->m->kind == PEER_NEVER)
		mishap = NO_MISHAP;
	if (mishap != NO_MISHAP)
		counters(model, mu->m)[FREE_CALLBACKS]++;
	if (mishap == TAKEN_IN_GET_PAGES)
		return -ECANCELED;
	count_made(model, mu);
	if (mishap == NO_MISHAP)
		return 0;
	count_gone(model, mu);
	return -ECANCELED;
}

/* Draws a client, and a range within up to six of its pages, at any offset. */
static void draw_request(struct model *model, struct model_user *mu)
{
	u32 nr = kvt_rand(&model->rand) % CLIENTS;
	unsigned long addr = PEER_BASE(nr) + kvt_rand(&model->rand) % SZ_1G;
	size_t size = 1 + kvt_rand(&model->rand) % (5 * SZ_64K);

	mu->m = model->m[nr];
	peer_user_init(&mu->u, addr, size);
	if (kvt_rand(&model->rand) % 2)
		mu->u.req.name = names[nr];
	mu->pages = (ALIGN(addr + size, SZ_64K) - ALIGN_DOWN(addr, SZ_64K)) / SZ_64K;
}

static void get(struct model *model, struct model_user *mu)
{
	u32 r = kvt_rand(&model->rand);
	enum mishap mishap = r % 4 ? NO_MISHAP : (r >> 8) % MISHAPS;
	int want, ret;

	draw_request(model, mu);
	want = count_mishap(model, mu, mishap);
	arrange(mu->m, mishap);
	ret = peer_user_get(&mu->u);
	arrange(mu->m, NO_MISHAP);
	KUNIT_ASSERT_EQ_MSG(model->test, want, ret, "mishap %d", mishap);
	if (ret)
		return;
	counters(model, mu->m)[LIVE_MRS]++;
	mu->stage = STAGE_MADE;
}

static void activate(struct model *model, struct model_user *mu)
{
	enum stage before = mu->stage;

	peer_user_activate(&mu->u);
	mu->stage = before == STAGE_DOOMED ? STAGE_GONE : STAGE_ACTIVE;
	if (before != STAGE_DOOMED)
		return;
	counters(model, mu->m)[REVOKES]++;
	count_gone(model, mu);
}

/* Counts what an invalidation must change. Returns what it must return. */
static int count_invalidation(struct model *model, struct model_user *mu)
{
	if (mu->m->kind == PEER_NEVER)
		return -ENOENT;
	counters(model, mu->m)[FREE_CALLBACKS]++;
	switch (mu->stage) {
	case STAGE_MADE:
	case STAGE_DOOMED:
		mu->stage = STAGE_DOOMED;
		return -EINPROGRESS;
	case STAGE_ACTIVE:
		mu->stage = STAGE_GONE;
		counters(model, mu->m)[REVOKES]++;
		count_gone(model, mu);
		return 0;
	default:
		return mu->m->kind == PEER_UNMAPS ? -ENOENT : 0;
	}
}

static void invalidate(struct model *model, struct model_user *mu)
{
	int want = count_invalidation(model, mu);

	KUNIT_ASSERT_EQ(model->test, want, peer_pin_invalidate(mu->u.pin));
}

static void stop(struct model *model, struct model_user *mu)
{
	if (mu->stage != STAGE_GONE)
		count_gone(model, mu);
	peer_user_stop(&mu->u);
	mu->stage = STAGE_GONE;
}

static void put(struct model *model, struct model_user *mu)
{
	if (mu->stage != STAGE_GONE)
		count_gone(model, mu);
	counters(model, mu->m)[LIVE_MRS]--;
	peer_user_put(&mu->u);
	mu->stage = STAGE_NONE;
	KUNIT_ASSERT_EQ(model->test, 0, atomic_read(&mu->u.wrong));
}

static void operation(struct model *model)
{
	struct model_user *mu = &model->users[kvt_rand(&model->rand) % USERS];

	if (mu->stage == STAGE_NONE) {
		get(model, mu);
		return;
	}
	switch (kvt_rand(&model->rand) % 8) {
	case 0 ... 2:
		if (mu->stage == STAGE_MADE || mu->stage == STAGE_DOOMED)
			activate(model, mu);
		break;
	case 3 ... 4:
		invalidate(model, mu);
		break;
	case 5:
		stop(model, mu);
		break;
	default:
		put(model, mu);
	}
}

static void look_at(struct model *model, int nr, enum counter c)
{
	KUNIT_ASSERT_EQ_MSG(model->test, model->count[nr][c],
			    peer_count(model->test, names[nr], counter_files[c]),
			    "%s of %s", counter_files[c], names[nr]);
}

static void look_at_all(struct model *model)
{
	enum counter c;
	int nr;

	for (nr = 0; nr < CLIENTS; nr++)
		for (c = 0; c < COUNTERS; c++)
			look_at(model, nr, c);
}

/* Puts all regions, so that the clients can unregister after an assertion has failed. */
static void model_end(void *arg)
{
	struct model *model = arg;
	int i;

	for (i = 0; i < USERS; i++)
		if (model->users[i].u.region)
			peer_user_put(&model->users[i].u);
}

static struct model *model_up(struct kunit *test, u64 count)
{
	struct model *model = kvt_zalloc(test, sizeof(*model));
	int nr;

	model->test = test;
	model->rand = kvt_seed(test, "operations", count);
	for (nr = 0; nr < CLIENTS; nr++)
		model->m[nr] = peer_mock_up(test, nr, names[nr], kinds[nr]);
	kvt_defer(test, model_end, model);
	return model;
}

static void files_say_what_has_been_done(struct kunit *test)
{
	u64 i, count = max_t(u64, kvt_count(OPERATIONS / PEER_ROUNDS), FEWEST_OPERATIONS);
	struct model *model = model_up(test, count);
	u32 r;

	for (i = 0; i < count; i++) {
		operation(model);
		r = kvt_rand(&model->rand);
		if (i % LOOK_AT_ONE == 0)
			look_at(model, r % CLIENTS, (r >> 8) % COUNTERS);
		if (i % LOOK_AT_ALL == 0)
			look_at_all(model);
		cond_resched();
	}
	for (i = 0; i < USERS; i++)
		if (model->users[i].stage != STAGE_NONE)
			put(model, &model->users[i]);
	look_at_all(model);
	for (i = 0; i < CLIENTS; i++) {
		PEER_EXPECT_IDLE(test, model->m[i]);
		KUNIT_EXPECT_GT(test, model->count[i][ALLOC_MRS], 0);
		KUNIT_EXPECT_EQ(test, model->count[i][ALLOC_MRS], model->count[i][DEALLOC_MRS]);
		KUNIT_EXPECT_EQ(test, 0, model->count[i][LIVE_MRS]);
	}
}

static struct kunit_case peer_model_cases[] = {
	KUNIT_CASE_PARAM_ATTR(files_say_what_has_been_done, peer_next_round,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};
KVT_SUITE(peer_model);
