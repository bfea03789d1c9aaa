// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients of peer memory: which ones can register, which client is asked for a range of
 * memory, the order in which its functions are called, the counters in sysfs, and
 * unregistration.
 */
#include "lib/console.h"
#include "peer/rig.h"

#define MANY		300
#define TEXT_LEN	1024

/* Registration that is refused */

/* A defect for which registration refuses a client: a name, or bytes of the structure. */
struct refusal {
	const char *what;	/* name of the parameter */
	const char *words;	/* words that the kernel log must contain */
	const char *name;	/* the name; NULL: the bytes below */
	size_t at;		/* offset of the first byte */
	size_t len;		/* number of bytes */
	u8 byte;		/* their value */
};

#define BYTES(field, length, value)						\
	.at = offsetof(struct peer_memory_client_ex, field), .len = length, .byte = value
#define WITHOUT(method)								\
	{ "no " #method, #method, BYTES(client.method, sizeof(void *), 0) }

static const struct refusal refusals[] = {
	{ "no name", "name", "" },
	{ "name without end", "name", BYTES(client.name, IB_PEER_MEMORY_NAME_MAX, 'n') },
	{ "name with a slash", "name", "kvt/a" },
	{ "name of a directory", "name", ".." },
	{ "version without end", "version", BYTES(client.version, IB_PEER_MEMORY_VER_MAX, 'v') },
	{ "unknown flag", "flag", BYTES(flags, sizeof(u32), BIT(1)) },
	WITHOUT(acquire), WITHOUT(get_pages), WITHOUT(dma_map), WITHOUT(dma_unmap),
	WITHOUT(put_pages),
};

KUNIT_ARRAY_PARAM_DESC(refusal, refusals, what);

static void bad_client_is_refused_with_the_reason(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a", PEER_UNMAPS);
	struct peer_memory_client_ex good = m->ex;
	struct kvt_console *console = kvt_console_watch(test, r->words);

	if (r->name)
		strscpy(m->ex.client.name, r->name, sizeof(m->ex.client.name));
	else
		memset((void *)&m->ex + r->at, r->byte, r->len);
	KUNIT_EXPECT_EQ(test, -EINVAL, peer_mock_register(m));
	KUNIT_EXPECT_GE(test, kvt_console_times(console), 1);
	m->ex = good;
	KUNIT_EXPECT_EQ(test, 0, peer_mock_register(m));
}

static void second_client_of_a_name_is_refused(struct kunit *test)
{
	struct peer_mock *a = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_mock *b = peer_mock_new(test, 1, "kvt_a", PEER_CORE);
	struct kvt_console *console = kvt_console_watch(test, "kvt_a");

	KUNIT_EXPECT_EQ(test, -EINVAL, peer_mock_register(b));
	KUNIT_EXPECT_GE(test, kvt_console_times(console), 1);
	peer_mock_unregister(a);
	KUNIT_EXPECT_EQ(test, 0, peer_mock_register(b));
}

static void longest_name_is_good(struct kunit *test)
{
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a", PEER_CORE);
	char *name = m->ex.client.name, text[16];

	memset(name, 'n', IB_PEER_MEMORY_NAME_MAX - 1);
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_EXPECT_GT(test, peer_read(name, "version", text, sizeof(text)), 0);
}

/* A client without the optional functions release and get_page_size, and without version. */
static void least_client_is_good(struct kunit *test)
{
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a", PEER_NEVER);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	void (*release)(void *context) = m->ex.client.release;
	struct peer_visit v;
	struct peer_pin *pin;

	m->ex.client.release = NULL;
	m->ex.client.get_page_size = NULL;
	m->page_size = PAGE_SIZE;
	memset(m->ex.client.version, 0, sizeof(m->ex.client.version));
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	pin = peer_mock_pin(m, 0);
	peer_user_put(u);
	KUNIT_EXPECT_EQ(test, PEER_FREED, pin->state);
	peer_visit_begin(&v);
	release(pin);
	peer_visit_end(&v);
	peer_pin_put(pin);
	PEER_EXPECT_IDLE(test, m);
}

/* How a client declares its structure. */
struct version_row {
	const char *what;	/* name of the parameter */
	char last;		/* last byte of the version; not 0 for an extended structure */
	size_t ex_size;		/* size that the structure declares, in bytes */
	u32 flags;		/* flags of the client */
	/* The core must take it for a client that unmaps invalidated memory itself. */
	bool unmaps;
};

#define FLAGS_END offsetofend(struct peer_memory_client_ex, flags)

static const struct version_row version_rows[] = {
	{ "plain", 0, 0, 0, false },
	{ "plain before anything", 0, SIZE_MAX, U32_MAX, false },
	{ "extended", 1, FLAGS_END, PEER_MEM_INVALIDATE_UNMAPS, true },
	{ "extended, any last byte", -1, FLAGS_END, PEER_MEM_INVALIDATE_UNMAPS, true },
	{ "extended without flags", 1, FLAGS_END, 0, false },
	{ "of a later time", 1, 4096, PEER_MEM_INVALIDATE_UNMAPS, true },
	{ "of no size", 1, 0, PEER_MEM_INVALIDATE_UNMAPS, false },
	{ "too small for the flags", 1, FLAGS_END - 1, U32_MAX, false },
};

KUNIT_ARRAY_PARAM_DESC(version_row, version_rows, what);

static void structure_is_read_as_given(struct kunit *test)
{
	const struct version_row *row = test->param_value;
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a",
					    row->unmaps ? PEER_UNMAPS : PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct peer_memory_client_ex before;

	m->ex.client.version[IB_PEER_MEMORY_VER_MAX - 1] = row->last;
	m->ex.ex_size = row->ex_size;
	m->ex.flags = row->flags;
	before = m->ex;
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(u->pin));
	KUNIT_EXPECT_EQ(test, !row->unmaps, peer_mock_calls(m, PEER_PUT_PAGES));
	peer_user_put(u);
	peer_mock_unregister(m);
	KUNIT_EXPECT_MEMEQ(test, &before, &m->ex, sizeof(before));
	PEER_EXPECT_IDLE(test, m);
}

/* Which client is asked */

static struct peer_mock *tagged(struct kunit *test, int nr, const char *name,
				const char *tag, struct kvt_trace *tr)
{
	struct peer_mock *m = peer_mock_new(test, nr, name, PEER_CORE);

	m->tag = tag;
	m->trace = tr;
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	return m;
}

static void clients_are_asked_in_order_of_registration(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct peer_mock *c = tagged(test, 2, "kvt_c", "c:", tr);
	struct peer_mock *a = tagged(test, 0, "kvt_a", "a:", tr);
	struct peer_mock *b = tagged(test, 1, "kvt_b", "b:", tr);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_STREQ(test, "kvt_a", peer_region_client(u->region));
	KVT_EXPECT_TRACE(test, tr, "c:pass a:acquire a:get_pages a:dma_map");
	peer_user_put(u);
	peer_mock_unregister(c);
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(c));
	kvt_trace_reset(tr);
	u->req.addr = PEER_BASE(4);
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	KVT_EXPECT_TRACE(test, tr, "a:pass b:pass c:pass");
	PEER_EXPECT_IDLE(test, a);
	PEER_EXPECT_IDLE(test, b);
	PEER_EXPECT_IDLE(test, c);
}

static void memory_of_nobody_is_not_had(struct kunit *test)
{
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	u->req.revocable = false;
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	u->req.name = "kvt_a";
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_user_get(u));
}

static void client_is_asked_by_name_with_private_data(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct peer_mock *a = tagged(test, 0, "kvt_a", "a:", tr);
	struct peer_mock *b = tagged(test, 1, "kvt_b", "b:", tr);
	struct peer_user *u = peer_user_new(test, PEER_BASE(1), SZ_64K);
	u8 data[IB_PEER_MEMORY_DATA_MAX];

	memset(data, 0x5a, sizeof(data));
	u->req.name = "kvt_b";
	u->req.data = data;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KVT_EXPECT_TRACE(test, tr, "b:acquire b:get_pages b:dma_map");
	KUNIT_EXPECT_TRUE(test, b->has_data);
	KUNIT_EXPECT_MEMEQ(test, data, b->data, sizeof(data));
	KUNIT_EXPECT_STREQ(test, "kvt_b", (const char *)b->name);
	peer_user_put(u);

	u->req.data = NULL;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_FALSE(test, b->has_data);
	peer_user_put(u);

	kvt_trace_reset(tr);
	u->req.name = "kvt_a";
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	KVT_EXPECT_TRACE(test, tr, "a:pass");
	u->req.name = "kvt";
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_user_get(u));
	u->req.name = "";
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_user_get(u));
	KVT_EXPECT_TRACE(test, tr, "a:pass");
	PEER_EXPECT_IDLE(test, a);
	PEER_EXPECT_IDLE(test, b);
}

static void client_that_is_not_named_gets_no_data(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_FALSE(test, m->has_data);
	KUNIT_EXPECT_STREQ(test, "-", (const char *)m->name);
}

static void who_cannot_revoke_gets_what_is_never_invalidated(struct kunit *test)
{
	struct peer_mock *a = peer_mock_up(test, 0, "kvt_a", PEER_UNMAPS);
	struct peer_mock *b = peer_mock_up(test, 1, "kvt_b", PEER_CORE);
	struct peer_mock *c = peer_mock_up(test, 2, "kvt_c", PEER_NEVER);
	struct peer_user *u = peer_user_new(test, PEER_BASE(2), SZ_64K);

	u->req.revocable = false;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_STREQ(test, "kvt_c", peer_region_client(u->region));
	peer_user_put(u);
	u->req.addr = PEER_BASE(0);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, peer_user_get(u));
	u->req.name = "kvt_b";
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, peer_user_get(u));
	u->req.name = "kvt_c";
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	KUNIT_EXPECT_STREQ(test, "", (const char *)a->name);
	KUNIT_EXPECT_STREQ(test, "", (const char *)b->name);
	PEER_EXPECT_IDLE(test, c);
}

static void who_can_revoke_gets_what_is_never_invalidated_too(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_NEVER);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	m->trace = tr;
	u->trace = tr;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	peer_user_access(u);
	peer_user_put(u);
	KVT_EXPECT_TRACE(test, tr,
				   "acquire get_pages dma_map activate put dma_unmap put_pages release");
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&u->revokes));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&u->wrong));
	PEER_EXPECT_IDLE(test, m);
}

/* What the client's functions return */

static const int refusing_acquires[] = { -1, 2, -ENOMEM, INT_MAX, INT_MIN };

KVT_NUMBER_PARAM(refusing_acquire, refusing_acquires, "%d");

static void anything_but_1_of_acquire_is_a_no(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct peer_mock *a = tagged(test, 0, "kvt_a", "a:", tr);
	struct peer_mock *b = tagged(test, 1, "kvt_b", "b:", tr);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	a->ret[PEER_ACQUIRE] = *(const int *)test->param_value;
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(u));
	KVT_EXPECT_TRACE(test, tr, "a:acquire b:pass");
	PEER_EXPECT_IDLE(test, a);
	PEER_EXPECT_IDLE(test, b);
}

/* A function of the client that fails. */
struct failure_row {
	enum peer_call call;	/* the function */
	int ret;		/* what it returns */
	int want;		/* error that the user of the memory must get */
	const char *trace;	/* calls of the client that are expected */
};

static const struct failure_row failure_rows[] = {
	{ PEER_GET_PAGES, -EFAULT, -EFAULT, "acquire get_pages release" },
	{ PEER_GET_PAGES, -ENOMEM, -ENOMEM, "acquire get_pages release" },
	{ PEER_GET_PAGES, 1, -EINVAL, "acquire get_pages release" },
	{ PEER_GET_PAGES, -100000, -EINVAL, "acquire get_pages release" },
	{ PEER_DMA_MAP, -EIO, -EIO, "acquire get_pages dma_map put_pages release" },
	{ PEER_DMA_MAP, 1, -EINVAL, "acquire get_pages dma_map put_pages release" },
	{ PEER_DMA_MAP, INT_MIN, -EINVAL, "acquire get_pages dma_map put_pages release" },
};

static void failure_row_name(const struct failure_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %d",
		 row->call == PEER_GET_PAGES ? "get_pages" : "dma_map", row->ret);
}

KUNIT_ARRAY_PARAM(failure_row, failure_rows, failure_row_name);

static void failure_is_passed_on_and_nobody_else_asked(struct kunit *test)
{
	const struct failure_row *row = test->param_value;
	struct peer_mock *a = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_mock *b = peer_mock_up(test, 1, "kvt_b", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	a->trace = kvt_trace_new(test);
	a->ret[row->call] = row->ret;
	KUNIT_EXPECT_EQ(test, row->want, peer_user_get(u));
	KVT_EXPECT_TRACE(test, a->trace, row->trace);
	KUNIT_EXPECT_STREQ(test, "", (const char *)b->name);
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "live_mrs"));
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "num_alloc_mrs"));
	PEER_EXPECT_IDLE(test, a);
}

static void result_of_dma_unmap_does_not_matter(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	m->ret[PEER_DMA_UNMAP] = -EBUSY;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_put(u);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_PUT_PAGES));
	PEER_EXPECT_IDLE(test, m);
}

static void client_is_told_who_writes(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_TRUE(test, u->pin->write);
	KUNIT_EXPECT_PTR_EQ(test, u->req.dma_device, u->pin->device);
	peer_user_put(u);
	u->req.writable = false;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_FALSE(test, u->pin->write);
	peer_user_put(u);
	PEER_EXPECT_IDLE(test, m);
}

static void calls_have_their_order(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct kvt_trace *tr = kvt_trace_new(test);

	m->trace = tr;
	u->trace = tr;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_PAGE_SIZE));
	peer_user_activate(u);
	peer_user_stop(u);
	peer_user_put(u);
	KVT_EXPECT_TRACE(test, tr,
				   "acquire get_pages dma_map activate stop dma_unmap put_pages put release");
	kvt_trace_reset(tr);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_stop(u);
	peer_user_stop(u);
	peer_user_put(u);
	KVT_EXPECT_TRACE(test, tr,
				   "acquire get_pages dma_map stop dma_unmap put_pages stop put release");
	PEER_EXPECT_IDLE(test, m);
}

static void numbers_are_not_0_and_not_the_same(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user **u = kunit_kcalloc(test, MANY, sizeof(*u), GFP_KERNEL);
	u64 last = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, u);
	for (i = 0; i < MANY; i++) {
		u[i] = peer_user_new(test, PEER_BASE(0) + i * SZ_64K, SZ_64K);
		KUNIT_ASSERT_EQ(test, 0, peer_user_get(u[i]));
		KUNIT_EXPECT_GT(test, u[i]->pin->number, last);
		KUNIT_EXPECT_LE(test, u[i]->pin->number, U32_MAX);
		last = u[i]->pin->number;
	}
	KUNIT_EXPECT_EQ(test, MANY, peer_count(test, "kvt_a", "live_mrs"));
	for (i = 0; i < MANY; i += 2)
		peer_user_put(u[i]);
	/* Numbers are not used again: a stale one must not name a new region. */
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u[0]));
	KUNIT_EXPECT_GT(test, u[0]->pin->number, last);
	for (i = 1; i < MANY; i += 2)
		peer_user_put(u[i]);
	peer_user_put(u[0]);
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "live_mrs"));
	PEER_EXPECT_IDLE(test, m);
}

/* Slow clients */

static struct kvt_gate hold;

static void hold_here(struct peer_pin *pin)
{
	kvt_gate_sleep(&hold);
}

static int get_fn(void *arg)
{
	return peer_user_get(arg);
}

static const enum peer_call slow_calls[] = {
	PEER_ACQUIRE, PEER_GET_PAGES, PEER_DMA_MAP, PEER_PAGE_SIZE,
};

KVT_NUMBER_PARAM(slow_call, slow_calls, "call %d");

static struct kvt_thread *held_up(struct kunit *test, struct peer_mock *m,
				  enum peer_call call, int (*fn)(void *arg), void *arg)
{
	struct kvt_thread *t;

	kvt_gate_init(&hold);
	m->on[call] = hold_here;
	t = kvt_thread_start(test, -1, fn, arg);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&hold.entered));
	m->on[call] = NULL;
	return t;
}

static void slow_client_holds_up_nobody(struct kunit *test)
{
	enum peer_call call = *(const enum peer_call *)test->param_value;
	struct peer_mock *a = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_mock *b = peer_mock_up(test, 1, "kvt_b", PEER_CORE);
	struct peer_user *slow = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0) + SZ_64K, SZ_64K);
	struct kvt_thread *t = held_up(test, a, call, get_fn, slow);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_put(u);
	u->req.addr = PEER_BASE(1);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_put(u);
	peer_mock_unregister(b);
	KUNIT_EXPECT_EQ(test, 0, peer_mock_register(b));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	kvt_gate_open(&hold);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, hold.in_time);
	KUNIT_EXPECT_EQ(test, 0, t->ret);
	peer_user_put(slow);
	PEER_EXPECT_IDLE(test, a);
	PEER_EXPECT_IDLE(test, b);
}

/* The end of a client */

static int unregister_fn(void *arg)
{
	peer_mock_unregister(arg);
	return 0;
}

static void unregistration_waits_for_a_slow_call(struct kunit *test)
{
	enum peer_call call = *(const enum peer_call *)test->param_value;
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *slow = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct kvt_thread *t = held_up(test, m, call, get_fn, slow), *end;

	end = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(end));
	kvt_gate_open(&hold);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, hold.in_time);
	KUNIT_ASSERT_EQ(test, 0, t->ret);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(end));
	peer_user_put(slow);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(end));
	PEER_EXPECT_IDLE(test, m);
}

/* Gets the memory over and over until that fails, as another thread unregisters the client. */
static int result_when_it_goes(struct peer_user *u)
{
	unsigned long end = jiffies + KVT_TIMEOUT;
	int ret;

	while (!(ret = peer_user_get(u)) && time_before(jiffies, end)) {
		peer_user_put(u);
		schedule();
	}
	return ret;
}

static void nobody_asks_a_client_that_goes(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_UNMAPS);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct peer_user *late = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct kvt_thread *t;
	int asked;

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	t = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_EQ(test, -ENODEV, result_when_it_goes(late));
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	asked = peer_mock_calls(m, PEER_ACQUIRE);
	KUNIT_EXPECT_EQ(test, -ENODEV, peer_user_get(late));
	late->req.name = "kvt_a";
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_user_get(late));
	KUNIT_EXPECT_EQ(test, asked, peer_mock_calls(m, PEER_ACQUIRE));
	/* The client can still invalidate the memory that is in use. */
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(u->pin));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&u->revokes));
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	peer_user_put(u);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	PEER_EXPECT_IDLE(test, m);
}

/* Slow, because the log says so only after unregistration has waited for some time. */
static void unregistration_says_for_whom_it_waits(struct kunit *test)
{
	struct kvt_console *device = kvt_console_watch(test, "kvt_rdma7");
	struct kvt_console *whose;
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	struct kvt_thread *t;

	u->req.user = "kvt_rdma7";
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	whose = kvt_console_watch(test, "kvt_a");
	t = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(device));
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(whose));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	peer_user_put(u);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	PEER_EXPECT_IDLE(test, m);
}

/* Counters and lists */

struct count_row {
	const char *file;
	u64 want;
};

static void expect_counts(struct kunit *test, const struct count_row *rows, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, rows[i].want,
				    peer_count(test, "kvt_a", rows[i].file), "%s",
				    rows[i].file);
}

/* The user registers 100,000 bytes, which are in three of the client's pages. */
static void client_is_counted(struct kunit *test)
{
	static const struct count_row made[] = {
		{ "num_alloc_mrs", 1 }, { "num_dealloc_mrs", 0 },
		{ "num_reg_pages", 3 }, { "num_dereg_pages", 0 },
		{ "num_reg_bytes", 100000 }, { "num_dereg_bytes", 0 },
		{ "num_free_callbacks", 0 }, { "live_mrs", 1 }, { "num_revokes", 0 },
		{ "num_invalidate_waits", 0 }, { "num_invalidate_timeouts", 0 },
		{ "max_revoke_us", 0 },
	}, invalidated[] = {
		{ "num_alloc_mrs", 1 }, { "num_dealloc_mrs", 1 },
		{ "num_reg_pages", 3 }, { "num_dereg_pages", 3 },
		{ "num_reg_bytes", 100000 }, { "num_dereg_bytes", 100000 },
		{ "num_free_callbacks", 1 }, { "live_mrs", 1 }, { "num_revokes", 1 },
	}, again[] = {
		{ "num_alloc_mrs", 1 }, { "num_dealloc_mrs", 1 },
		{ "num_dereg_bytes", 100000 }, { "num_free_callbacks", 2 },
		{ "live_mrs", 0 }, { "num_revokes", 1 },
		{ "num_invalidate_waits", 0 }, { "num_invalidate_timeouts", 0 },
	};
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_UNMAPS);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0) + SZ_32K, 100000);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	expect_counts(test, made, ARRAY_SIZE(made));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(u->pin));
	expect_counts(test, invalidated, ARRAY_SIZE(invalidated));
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_pin_invalidate(u->pin));
	peer_user_put(u);
	expect_counts(test, again, ARRAY_SIZE(again));
	PEER_EXPECT_IDLE(test, m);
}

static void slow_revoke(struct peer_user *u)
{
	u64 end = ktime_get_ns() + 3 * NSEC_PER_MSEC;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static void longest_revoke_is_shown(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_UNMAPS);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	u64 most;

	u->on_revoke = slow_revoke;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(u->pin));
	peer_user_put(u);
	most = peer_count(test, "kvt_a", "max_revoke_us");
	KUNIT_EXPECT_GE(test, most, 3000);
	KUNIT_EXPECT_LT(test, most, 20 * USEC_PER_SEC);
	u->on_revoke = NULL;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	peer_user_activate(u);
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(u->pin));
	peer_user_put(u);
	KUNIT_EXPECT_GE(test, peer_count(test, "kvt_a", "max_revoke_us"), most);
	PEER_EXPECT_IDLE(test, m);
}

static void directory_is_there_while_the_client_is(struct kunit *test)
{
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a", PEER_CORE);
	char text[32];

	KUNIT_EXPECT_EQ(test, -ENOENT, peer_read("kvt_a", "version", text, sizeof(text)));
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_EXPECT_EQ(test, 3, peer_read("kvt_a", "version", text, sizeof(text)));
	KUNIT_EXPECT_STREQ(test, "1.0", (const char *)text);
	peer_mock_unregister(m);
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_read("kvt_a", "version", text, sizeof(text)));
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "num_alloc_mrs"));
}

static void live_regions_are_listed(struct kunit *test)
{
	static const char path[] = "/sys/kernel/debug/kverbs_peer_mem/kvt_a/regions";
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0) + 0x5000, 777);
	char *text = kvt_zalloc(test, TEXT_LEN);

	u->req.user = "kvt_rdma7";
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_GT(test, kvt_read_debugfs(path, text, TEXT_LEN), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "kvt_rdma7"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "777"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, current->comm));
	peer_user_put(u);
	KUNIT_EXPECT_GE(test, kvt_read_debugfs(path, text, TEXT_LEN), 0);
	KUNIT_EXPECT_NULL(test, strstr(text, "kvt_rdma7"));
	PEER_EXPECT_IDLE(test, m);
}

static struct kunit_case peer_registry_cases[] = {
	KUNIT_CASE_PARAM(bad_client_is_refused_with_the_reason, refusal_gen_params),
	KUNIT_CASE(second_client_of_a_name_is_refused),
	KUNIT_CASE(longest_name_is_good),
	KUNIT_CASE(least_client_is_good),
	KUNIT_CASE_PARAM(structure_is_read_as_given, version_row_gen_params),
	KUNIT_CASE(clients_are_asked_in_order_of_registration),
	KUNIT_CASE(memory_of_nobody_is_not_had),
	KUNIT_CASE(client_is_asked_by_name_with_private_data),
	KUNIT_CASE(client_that_is_not_named_gets_no_data),
	KUNIT_CASE(who_cannot_revoke_gets_what_is_never_invalidated),
	KUNIT_CASE(who_can_revoke_gets_what_is_never_invalidated_too),
	KUNIT_CASE_PARAM(anything_but_1_of_acquire_is_a_no, refusing_acquire_gen_params),
	KUNIT_CASE_PARAM(failure_is_passed_on_and_nobody_else_asked, failure_row_gen_params),
	KUNIT_CASE(result_of_dma_unmap_does_not_matter),
	KUNIT_CASE(client_is_told_who_writes),
	KUNIT_CASE(calls_have_their_order),
	KUNIT_CASE(numbers_are_not_0_and_not_the_same),
	KUNIT_CASE_PARAM(slow_client_holds_up_nobody, slow_call_gen_params),
	KUNIT_CASE_PARAM(unregistration_waits_for_a_slow_call, slow_call_gen_params),
	KUNIT_CASE(nobody_asks_a_client_that_goes),
	KUNIT_CASE_SLOW(unregistration_says_for_whom_it_waits),
	KUNIT_CASE(client_is_counted),
	KUNIT_CASE(longest_revoke_is_shown),
	KUNIT_CASE(directory_is_there_while_the_client_is),
	KUNIT_CASE(live_regions_are_listed),
	{}
};
KVT_SUITE(peer_registry);

MODULE_DESCRIPTION("KUnit: the registry of peer memory");
MODULE_LICENSE("GPL");
