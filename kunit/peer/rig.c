// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mock clients of the peer-memory registry (the core); user.c has the other side.
 *
 * A pin is what a client knows of a region. It is listed from acquire() until release(),
 * which waits, as a driver's must, until no thread is in the core's invalidate function for
 * the pin any more, so that nobody invalidates through a handle that is gone.
 *
 * Locking: the mock's lock guards lists and states, and is never held across a call into
 * the core.
 *
 * Errors of the core are counted as wrong: a call that is not legal in the state of the pin,
 * two calls for one pin at a time, a call with other locks held than when the thread entered
 * the core, and a scatter table that is not bit for bit what the client left.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "peer/rig.h"

static const char * const call_names[PEER_CALLS] = {
	"acquire", "get_pages", "dma_map", "dma_unmap", "put_pages", "", "release",
};

/* The states in which a call is legal, and the state of the pin after it. */
static const struct {
	unsigned long from;
	enum peer_state to;
} moves[PEER_CALLS] = {
	[PEER_ACQUIRE] = { BIT(PEER_ACQUIRED), PEER_ACQUIRED },
	[PEER_GET_PAGES] = { BIT(PEER_ACQUIRED), PEER_PINNED },
	[PEER_DMA_MAP] = { BIT(PEER_PINNED), PEER_MAPPED },
	[PEER_DMA_UNMAP] = { BIT(PEER_MAPPED), PEER_UNMAPPED },
	[PEER_PUT_PAGES] = { BIT(PEER_UNMAPPED) | BIT(PEER_PINNED), PEER_FREED },
	[PEER_PAGE_SIZE] = { BIT(PEER_MAPPED), PEER_MAPPED },
	[PEER_RELEASE] = { BIT(PEER_ACQUIRED) | BIT(PEER_FREED), PEER_RELEASED },
};

/* Clients */

/* The clients of the running case. */
static struct peer_mock *mocks[PEER_MOCKS];

static void mock_word(struct peer_mock *m, const char *word)
{
	if (m->trace)
		kvt_trace_add(m->trace, "%s%s", m->tag, word);
}

static void mock_wrong(struct peer_mock *m, const char *what)
{
	if (atomic_inc_return(&m->wrong) == 1)
		pr_info("client %s: wrong: %s\n", m->ex.client.name, what);
}

/* Is the table the same as when the client made it? */
static bool same_table(const struct peer_pin *pin, const struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;

	if (memcmp(sgt, &pin->copy, sizeof(*sgt)))
		return false;
	for_each_sgtable_sg(sgt, sg, i)
		if (memcmp(sg, &pin->sgl[i], sizeof(*sg)))
			return false;
	return true;
}

static int keep_table(struct peer_pin *pin, const struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;

	pin->sgl = kvcalloc(sgt->orig_nents, sizeof(*sg), GFP_KERNEL);
	if (!pin->sgl)
		return -ENOMEM;
	for_each_sgtable_sg(sgt, sg, i)
		pin->sgl[i] = *sg;
	pin->copy = *sgt;
	return 0;
}

/* Makes a table of pages of the mock's page size, no two of them contiguous. */
static int fill_pages(struct peer_pin *pin, struct sg_table *sgt, int *nmap)
{
	unsigned long page = pin->mock->page_size;
	unsigned long first = ALIGN_DOWN(pin->addr, page);
	unsigned long count = (ALIGN(pin->addr + pin->size, page) - first) / page;
	struct scatterlist *sg;
	unsigned long i;
	int ret = sg_alloc_table(sgt, count, GFP_KERNEL);

	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		sg->length = page;
		sg_dma_address(sg) = PEER_DMA + 2 * i * page;
		sg_dma_len(sg) = page;
	}
	*nmap = count;
	return 0;
}

static int make_table(struct peer_pin *pin, struct sg_table *sgt)
{
	struct peer_mock *m = pin->mock;
	int ret;

	ret = m->fill ? m->fill(pin, sgt, &pin->nmap) :
			fill_pages(pin, sgt, &pin->nmap);
	if (ret)
		return ret;
	ret = keep_table(pin, sgt);
	if (ret)
		sg_free_table(sgt);
	return ret;
}

static void free_table(struct peer_pin *pin)
{
	struct sg_table own = pin->copy;

	if (!pin->sgl)
		return;
	sg_free_table(&own);
	kvfree(pin->sgl);
	pin->sgl = NULL;
}

/* Checks and counts a call. Returns what it must return instead of doing its work, or 0. */
static int call_begin(struct peer_pin *pin, enum peer_call call)
{
	struct peer_mock *m = pin->mock;

	atomic_inc(&m->calls[call]);
	if (atomic_inc_return(&pin->inside) != 1)
		mock_wrong(m, "two calls for one region");
	if (!peer_visit_right())
		mock_wrong(m, "called with a lock held");
	if (!(moves[call].from & BIT(READ_ONCE(pin->state))))
		mock_wrong(m, call_names[call]);
	if (call != PEER_PAGE_SIZE)
		mock_word(m, call_names[call]);
	if (m->on[call])
		m->on[call](pin);
	return m->ret[call];
}

static int call_end(struct peer_pin *pin, enum peer_call call, int ret)
{
	struct peer_mock *m = pin->mock;

	if (!ret) {
		spin_lock(&m->lock);
		WRITE_ONCE(pin->state, moves[call].to);
		spin_unlock(&m->lock);
	}
	atomic_dec(&pin->inside);
	return ret;
}

static void keep_request(struct peer_mock *m, const void *data, const char *name)
{
	spin_lock(&m->lock);
	m->has_data = data;
	if (data)
		memcpy(m->data, data, sizeof(m->data));
	strscpy(m->name, name ?: "-", sizeof(m->name));
	spin_unlock(&m->lock);
}

static struct peer_pin *pin_new(struct peer_mock *m, unsigned long addr, size_t size)
{
	struct peer_pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL | __GFP_NOFAIL);

	pin->mock = m;
	refcount_set(&pin->ref, 1);
	pin->addr = addr;
	pin->size = size;
	pin->state = PEER_ACQUIRED;
	pin->maker = current;
	pin->nmap = PEER_SILENT;
	init_waitqueue_head(&pin->idle);
	return pin;
}

static int mock_acquire(struct peer_mock *m, unsigned long addr, size_t size, void *data,
			char *name, void **context)
{
	struct peer_pin *pin;

	keep_request(m, data, name);
	if (addr < PEER_BASE(m->nr) || addr - PEER_BASE(m->nr) >= PEER_SPAN) {
		mock_word(m, "pass");
		return 0;
	}
	pin = pin_new(m, addr, size);
	if (call_begin(pin, PEER_ACQUIRE)) {
		kfree(pin);
		return m->ret[PEER_ACQUIRE];
	}
	atomic_inc(&m->live);
	spin_lock(&m->lock);
	list_add(&pin->entry, &m->pins);
	spin_unlock(&m->lock);
	*context = pin;
	call_end(pin, PEER_ACQUIRE, 0);
	return 1;
}

/* acquire() gets no pointer to its client, so each client needs a function of its own. */
#define ACQUIRE(nr)							\
static int mock_acquire_##nr(unsigned long addr, size_t size,		\
			     void *data, char *name, void **context)	\
{									\
	return mock_acquire(mocks[nr], addr, size, data, name, context);\
}

ACQUIRE(0)
ACQUIRE(1)
ACQUIRE(2)
ACQUIRE(3)
ACQUIRE(4)

static typeof(mock_acquire_0) * const mock_acquires[PEER_MOCKS] = {
	mock_acquire_0, mock_acquire_1, mock_acquire_2, mock_acquire_3, mock_acquire_4,
};

static int mock_get_pages(unsigned long addr, size_t size, int write, int force,
			  struct sg_table *sgt, void *context, u64 number)
{
	struct peer_pin *pin = context;
	struct peer_mock *m = pin->mock;
	int ret;

	if (addr != pin->addr || size != pin->size || force || !number ||
	    memchr_inv(sgt, 0, sizeof(*sgt)))
		mock_wrong(m, "arguments of get_pages");
	spin_lock(&m->lock);
	pin->number = number;
	spin_unlock(&m->lock);
	pin->write = write;
	pin->sgt = sgt;
	ret = call_begin(pin, PEER_GET_PAGES);
	if (!ret && m->fill_early)
		ret = make_table(pin, sgt);
	return call_end(pin, PEER_GET_PAGES, ret);
}

static int mock_dma_map(struct sg_table *sgt, void *context, struct device *device,
			int dmasync, int *nmap)
{
	struct peer_pin *pin = context;
	struct peer_mock *m = pin->mock;
	int ret;

	if (dmasync || sgt != pin->sgt || (m->fill_early && !same_table(pin, sgt)))
		mock_wrong(m, "arguments of dma_map");
	pin->device = device;
	ret = call_begin(pin, PEER_DMA_MAP);
	if (!ret && !m->fill_early)
		ret = make_table(pin, sgt);
	if (!ret && pin->nmap != PEER_SILENT)
		*nmap = pin->nmap;
	return call_end(pin, PEER_DMA_MAP, ret);
}

static int mock_dma_unmap(struct sg_table *sgt, void *context, struct device *device)
{
	struct peer_pin *pin = context;
	struct peer_mock *m = pin->mock;
	int ret = call_begin(pin, PEER_DMA_UNMAP);

	if (device != pin->device || sgt != pin->sgt || !pin->sgl || !same_table(pin, sgt))
		mock_wrong(m, "arguments of dma_unmap");
	call_end(pin, PEER_DMA_UNMAP, 0);
	return ret;
}

static void mock_put_pages(struct sg_table *sgt, void *context)
{
	struct peer_pin *pin = context;

	call_begin(pin, PEER_PUT_PAGES);
	if (sgt != pin->sgt || (pin->sgl && !same_table(pin, sgt)))
		mock_wrong(pin->mock, "arguments of put_pages");
	free_table(pin);
	call_end(pin, PEER_PUT_PAGES, 0);
}

static unsigned long mock_get_page_size(void *context)
{
	struct peer_pin *pin = context;

	call_begin(pin, PEER_PAGE_SIZE);
	call_end(pin, PEER_PAGE_SIZE, 0);
	return pin->mock->page_size;
}

static bool pin_is_idle(struct peer_pin *pin)
{
	bool idle;

	spin_lock(&pin->mock->lock);
	idle = !pin->invalidating;
	spin_unlock(&pin->mock->lock);
	return idle;
}

/* Waits until no thread is in the core's invalidate function for the pin; counts a timeout. */
static void wait_idle(struct peer_pin *pin)
{
	if (!wait_event_timeout(pin->idle, pin_is_idle(pin), KVT_TIMEOUT))
		mock_wrong(pin->mock, "release and invalidation wait for each other");
}

static void mock_release(void *context)
{
	struct peer_pin *pin = context;
	struct peer_mock *m = pin->mock;

	wait_idle(pin);
	call_begin(pin, PEER_RELEASE);
	spin_lock(&m->lock);
	list_del(&pin->entry);
	spin_unlock(&m->lock);
	call_end(pin, PEER_RELEASE, 0);
	/* Wait for threads that came since; in state RELEASED no more can begin to invalidate. */
	wait_idle(pin);
	atomic_dec(&m->live);
	peer_pin_put(pin);
}

static void mock_end(void *arg)
{
	struct peer_mock *m = arg;

	peer_mock_unregister(m);
	mocks[m->nr] = NULL;
}

/**
 * peer_mock_new() - a client that is not registered yet
 * @test: the running case, which unregisters the client when it ends
 * @nr: index of the client, below PEER_MOCKS
 * @name: name of the client
 * @kind: how the client invalidates
 *
 * The page size is 64 KiB. The case may change any member before peer_mock_register().
 *
 * Return: the client, which lives as long as the case.
 */
struct peer_mock *peer_mock_new(struct kunit *test, int nr, const char *name, enum peer_kind kind)
{
	struct peer_mock *m = kvt_zalloc(test, sizeof(*m));

	KUNIT_ASSERT_NULL(test, mocks[nr]);
	mocks[nr] = m;
	m->nr = nr;
	m->kind = kind;
	m->page_size = SZ_64K;
	m->tag = "";
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->pins);
	m->ex.client = (struct peer_memory_client) {
		.acquire = mock_acquires[nr],
		.get_pages = mock_get_pages,
		.dma_map = mock_dma_map,
		.dma_unmap = mock_dma_unmap,
		.put_pages = mock_put_pages,
		.get_page_size = mock_get_page_size,
		.release = mock_release,
	};
	strscpy(m->ex.client.name, name, sizeof(m->ex.client.name));
	strscpy(m->ex.client.version, "1.0", IB_PEER_MEMORY_VER_MAX - 1);
	m->ex.client.version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	m->ex.ex_size = sizeof(m->ex);
	m->ex.flags = kind == PEER_UNMAPS ? PEER_MEM_INVALIDATE_UNMAPS : 0;
	kvt_defer(test, mock_end, m);
	return m;
}
EXPORT_SYMBOL_GPL(peer_mock_new);

/**
 * peer_mock_register() - register a client
 * @m: the client
 *
 * Return: 0, or -EINVAL if the core refused it.
 */
int peer_mock_register(struct peer_mock *m)
{
	void *handle = ib_register_peer_memory_client(&m->ex.client,
						      m->kind == PEER_NEVER ? NULL :
						      &m->invalidate);

	/* The core may have called acquire(), but the mock invalidates only once @handle is set. */
	spin_lock(&m->lock);
	m->handle = handle;
	spin_unlock(&m->lock);
	return handle ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(peer_mock_register);

/**
 * peer_mock_unregister() - unregister a client if it is registered
 * @m: the client
 *
 * Context: Process. Waits until none of the client's memory is in use.
 */
void peer_mock_unregister(struct peer_mock *m)
{
	if (m->handle)
		ib_unregister_peer_memory_client(m->handle);
	m->handle = NULL;
}
EXPORT_SYMBOL_GPL(peer_mock_unregister);

/**
 * peer_mock_up() - a client that is registered
 * @test: the running case, which unregisters the client when it ends
 * @nr: index of the client, below PEER_MOCKS
 * @name: name of the client
 * @kind: how the client invalidates
 *
 * Return: the client, which lives as long as the case.
 */
struct peer_mock *peer_mock_up(struct kunit *test, int nr, const char *name, enum peer_kind kind)
{
	struct peer_mock *m = peer_mock_new(test, nr, name, kind);

	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	return m;
}
EXPORT_SYMBOL_GPL(peer_mock_up);

/**
 * peer_mock_calls() - how often a function of a client was called
 * @m: the client
 * @call: the function
 *
 * Return: the number of calls.
 */
int peer_mock_calls(const struct peer_mock *m, enum peer_call call)
{
	return atomic_read(&m->calls[call]);
}
EXPORT_SYMBOL_GPL(peer_mock_calls);

/**
 * peer_mock_pin() - one of a client's pins
 * @m: the client
 * @which: index of the pin, modulo the number of pins; 0 is the newest
 *
 * Return: the pin, with a reference to be put by peer_pin_put(); NULL if there is none.
 */
struct peer_pin *peer_mock_pin(struct peer_mock *m, u32 which)
{
	struct peer_pin *pin, *found = NULL;
	u32 live = 0;

	spin_lock(&m->lock);
	list_for_each_entry(pin, &m->pins, entry)
		live++;
	which %= max(live, 1U);
	list_for_each_entry(pin, &m->pins, entry) {
		if (which--)
			continue;
		refcount_inc(&pin->ref);
		found = pin;
		break;
	}
	spin_unlock(&m->lock);
	return found;
}
EXPORT_SYMBOL_GPL(peer_mock_pin);

/**
 * peer_pin_put() - put a reference on a pin
 * @pin: the pin
 */
void peer_pin_put(struct peer_pin *pin)
{
	if (refcount_dec_and_test(&pin->ref))
		kfree(pin);
}
EXPORT_SYMBOL_GPL(peer_pin_put);

/* Returns whether the pin may be invalidated; it is then kept until invalidate_end(). */
static bool invalidate_begin(struct peer_pin *pin)
{
	struct peer_mock *m = pin->mock;
	bool may;

	spin_lock(&m->lock);
	may = pin->state != PEER_RELEASED && pin->number && m->invalidate && m->handle;
	pin->invalidating += may;
	spin_unlock(&m->lock);
	return may;
}

static void invalidate_end(struct peer_pin *pin)
{
	spin_lock(&pin->mock->lock);
	if (!--pin->invalidating)
		wake_up_all(&pin->idle);
	spin_unlock(&pin->mock->lock);
}

/* The core has returned 0, perhaps to several threads: the first of them unmaps. */
static void unmap_own(struct peer_pin *pin)
{
	struct peer_mock *m = pin->mock;
	bool mine;

	spin_lock(&m->lock);
	mine = pin->state == PEER_PINNED || pin->state == PEER_MAPPED;
	if (mine)
		WRITE_ONCE(pin->state, PEER_FREED);
	spin_unlock(&m->lock);
	if (!mine)
		return;
	if (atomic_read(&pin->inside))
		mock_wrong(m, "the core is in a call for what it gave up");
	mock_word(m, "cleanup");
	free_table(pin);
}

/* Checks what the core promises when its invalidate function returns 0. */
static void after_invalidation(struct peer_pin *pin)
{
	enum peer_state state;

	if (pin->mock->kind == PEER_UNMAPS)
		unmap_own(pin);
	state = READ_ONCE(pin->state);
	if (state == PEER_PINNED || state == PEER_MAPPED || state == PEER_UNMAPPED)
		mock_wrong(pin->mock, "invalidated, and still there");
}

/**
 * peer_pin_invalidate() - invalidate a pin: the client takes the memory away
 * @pin: the pin; the caller has a reference, or is in a call for this pin
 *
 * A client of kind PEER_UNMAPS then unmaps the memory itself.
 *
 * Return: what the core returned; -ENOENT if the pin cannot be invalidated.
 */
int peer_pin_invalidate(struct peer_pin *pin)
{
	struct peer_mock *m = pin->mock;
	struct peer_visit v;
	int ret;

	if (!invalidate_begin(pin))
		return -ENOENT;
	if (!m->quiet)
		mock_word(m, "invalidate");
	peer_visit_begin(&v);
	ret = m->invalidate(m->handle, pin->number);
	peer_visit_end(&v);
	if (!ret)
		after_invalidation(pin);
	if (m->trace && !m->quiet)
		kvt_trace_add(m->trace, "%s=%d", m->tag, ret);
	invalidate_end(pin);
	return ret;
}
EXPORT_SYMBOL_GPL(peer_pin_invalidate);

/**
 * peer_pin_invalidate_here() - for &peer_mock.on: invalidate a pin within a call for it
 * @pin: the pin
 */
void peer_pin_invalidate_here(struct peer_pin *pin)
{
	peer_pin_invalidate(pin);
}
EXPORT_SYMBOL_GPL(peer_pin_invalidate_here);

/* Returns the newest pin that this thread acquired for the address, with a reference. */
static struct peer_pin *find_pin(struct peer_mock *m, unsigned long addr)
{
	struct peer_pin *pin, *found = NULL;

	spin_lock(&m->lock);
	list_for_each_entry(pin, &m->pins, entry) {
		if (pin->maker != current || pin->addr != addr)
			continue;
		refcount_inc(&pin->ref);
		found = pin;
		break;
	}
	spin_unlock(&m->lock);
	return found;
}

/**
 * peer_mock_made() - the pin of the memory that this thread has just got
 * @addr: first byte of the memory
 *
 * Return: the pin, with a reference to be put by peer_pin_put(); NULL if the memory is not
 * a mock's.
 */
struct peer_pin *peer_mock_made(unsigned long addr)
{
	struct peer_pin *pin = NULL;
	int i;

	for (i = 0; i < PEER_MOCKS && !pin; i++)
		if (mocks[i])
			pin = find_pin(mocks[i], addr);
	return pin;
}
EXPORT_SYMBOL_GPL(peer_mock_made);
