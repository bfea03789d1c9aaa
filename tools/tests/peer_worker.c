// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker of peer_stress: performs random operations, one after the other, and knows the
 * possible outcomes of each. It fills memory of a GPU with a colour of its own before anything
 * else can access it, and only that colour is ever written there. So data read from it must
 * have that colour; anything else comes from foreign memory.
 *
 * A second thread of the worker frees and moves memory that the worker hands over to it: from
 * then until the memory is FREED, operations may succeed or fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer_stress.h"

#define SLOTS		8
#define REGIONS		24
#define PAGES_MAX	2
#define HOST_SIZE	8192
/* Messages at a time; each counts as an operation. */
#define MESSAGES_MAX	32

/* Fill byte of host memory before data arrive: neither a colour nor poison. */
#define BLANK		0xee

/* State of a slot. Only the worker makes it LIVE, DOOMED or EMPTY. */
enum state { EMPTY, LIVE, DOOMED, FREED };

/**
 * struct slot - memory of a GPU
 * @state: enum state
 * @moving: the other thread is moving it
 * @mem: the memory
 * @gpu: the GPU that it belongs to
 * @colour: value of all its bytes
 * @buf: dma-buf of it, or -1
 * @made: serial number of the allocation
 */
static struct slot {
	_Atomic int state;
	_Atomic bool moving;
	struct mem mem;
	unsigned int gpu;
	unsigned char colour;
	int buf;
	uint64_t made;
} slots[SLOTS];

/**
 * struct entry - a region
 * @used: the entry holds a region
 * @hca: the HCA where it is registered
 * @region: the region
 * @slot: the slot of its memory
 * @made: @made of that slot at the registration
 * @gpu: the GPU of the memory
 * @colour: colour of the memory
 * @length: bytes
 */
static struct entry {
	bool used;
	unsigned int hca;
	struct region region;
	struct slot *slot;
	uint64_t made;
	unsigned int gpu;
	unsigned char colour;
	size_t length;
} entries[REGIONS];

/**
 * struct hca - an open HCA
 * @there: it is open
 * @epoch: its shared->hca at the time of opening
 * @ca: the channel adapter
 * @host: region of system memory, registered there
 */
static struct hca {
	bool there;
	uint64_t epoch;
	struct ca ca;
	struct region host;
} hcas[HCAS];

static int gpus[GPUS];
static int movers[HCAS][HCAS];
static unsigned char *host;
static sem_t handed_over;
static _Atomic uint64_t done;
static uint64_t chance, made;
static unsigned int me, my_life;

/* --- possible outcomes of an operation --------------------------------------------------- */

/* Values of shared->gpu and shared->hca before the operation. */
static uint64_t gpu_before[GPUS], hca_before[HCAS];

static void look_before(void)
{
	unsigned int i;

	for (i = 0; i < GPUS; i++)
		gpu_before[i] = shared->gpu[i];
	for (i = 0; i < HCAS; i++)
		hca_before[i] = shared->hca[i];
}

/* The client has been in this state since before the operation. */
static bool client_was(unsigned int gpu, enum weather what)
{
	return gpu_before[gpu] % WEATHERS == what && shared->gpu[gpu] == gpu_before[gpu];
}

/* The HCA has been there since it was opened. */
static bool hca_was_there(unsigned int h)
{
	return hcas[h].epoch == shared->hca[h] && shared->hca[h] % WEATHERS == THERE;
}

static bool is_loss(long ret)
{
	return ret == -ENODEV || ret == -EIO || ret == -EFAULT || ret == -ECANCELED ||
	       ret == -ENOENT || ret == -EINVAL || ret == -ETIMEDOUT;
}

/* Expected outcome, from what was known before the operation. */
enum prospect { MUST_SUCCEED, MUST_FAIL, MAY_FAIL };

static void count_good(enum op op, unsigned int n)
{
	shared->good[op] += n;
	shared->ops += n;
	done += n;
}

static void count(enum op op, bool good)
{
	count_good(op, good);
	if (good)
		return;
	shared->lost[op]++;
	shared->ops++;
	done++;
}

static void judge(enum op op, long ret, enum prospect prospect, const char *what)
{
	if (!ret && prospect != MUST_FAIL)
		count(op, true);
	else if (is_loss(ret) && prospect != MUST_SUCCEED)
		count(op, false);
	else
		complain("worker %u, life %u, operation %llu: %s: %s", me, my_life,
			 (unsigned long long)done, what,
			 ret ? strerror(-ret) : "it should have failed");
}

static void wrong(const char *what, unsigned int got, unsigned int want)
{
	complain("worker %u, life %u, operation %llu: %s: %#x, not %#x", me, my_life,
		 (unsigned long long)done, what, got, want);
}

/* --- HCAs ----------------------------------------------------------------------------------- */

static void movers_close(unsigned int h)
{
	unsigned int i;

	for (i = 0; i < HCAS; i++) {
		if (movers[h][i] >= 0)
			close(movers[h][i]);
		movers[h][i] = -1;
		if (movers[i][h] >= 0)
			close(movers[i][h]);
		movers[i][h] = -1;
	}
}

/* The HCA has gone, along with everything on it. */
static void hca_drop(unsigned int h)
{
	unsigned int i;

	if (!hcas[h].there)
		return;
	movers_close(h);
	close(hcas[h].ca.fd);
	hcas[h].there = false;
	for (i = 0; i < REGIONS; i++) {
		if (entries[i].hca == h)
			entries[i].used = false;
	}
}

static bool hca_try(unsigned int h)
{
	struct hca *hca = &hcas[h];
	char path[64];

	hca->epoch = shared->hca[h];
	if (hca->epoch % WEATHERS != THERE)
		return false;
	snprintf(path, sizeof(path), CA_DIR "%s", hca_names[h]);
	hca->ca.fd = open(path, O_RDWR | O_CLOEXEC);
	if (hca->ca.fd < 0)
		return false;
	hca->there = true;
	return !ca_open(hca->ca.fd, 0, &hca->ca.handle) &&
	       !ca_alloc_pd(hca->ca.fd, hca->ca.handle, &hca->ca.pd) &&
	       !peer_reg_path(&hca->ca, host, HOST_SIZE, KVERBS_CA_PATH_HOST, &hca->host);
}

/* Returns an open HCA, opening it if possible; else NULL. */
static struct hca *hca_get(unsigned int h)
{
	if (hcas[h].there && hcas[h].epoch != shared->hca[h])
		hca_drop(h);
	if (hcas[h].there)
		return &hcas[h];
	if (hca_try(h))
		return &hcas[h];
	if (hca_was_there(h))
		complain("worker %u, life %u: cannot open %s", me, my_life, hca_names[h]);
	hca_drop(h);
	return NULL;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Draws one of this worker's colours, which no other worker uses. */
static unsigned char draw_colour(void)
{
	return 1 + me * 16 + chance_below(&chance, 16);
}

static void do_alloc(struct slot *slot)
{
	unsigned int gpu = chance_below(&chance, GPUS);
	size_t size = GPU_PAGE * (1 + chance_below(&chance, PAGES_MAX));
	unsigned char colour = draw_colour();

	judge(OP_ALLOC, gpu_try_alloc(gpus[gpu], size, &slot->mem), MUST_SUCCEED, "ALLOC");
	memset(slot->mem.at, colour, size);
	slot->gpu = gpu;
	slot->colour = colour;
	slot->buf = -1;
	slot->made = ++made;
	slot->state = LIVE;
}

/* Its regions stay until they are deregistered. */
static void recycle(struct slot *slot)
{
	munmap(slot->mem.at, slot->mem.size);
	if (slot->buf >= 0)
		close(slot->buf);
	slot->state = EMPTY;
}

/* Frees it here or in the other thread, at random. */
static void do_free(struct slot *slot)
{
	if (chance_below(&chance, 2) || slot->moving) {
		slot->state = DOOMED;
		sem_post(&handed_over);
		return;
	}
	judge(OP_FREE, gpu_free(&slot->mem), MUST_SUCCEED, "FREE");
	slot->state = FREED;
}

/* Handles what was handed over. Memory that is also doomed moves first. */
static void take_over(struct slot *slot)
{
	long ret = 0;

	if (slot->moving) {
		ret = gpu_move(&slot->mem);
		if (ret && ret != -EBUSY)
			complain("worker %u: MOVE: %s", me, strerror(-ret));
		count(OP_MOVE, true);
		slot->moving = false;
	}
	if (slot->state == DOOMED) {
		ret = gpu_free(&slot->mem);
		if (ret)
			complain("worker %u: FREE: %s", me, strerror(-ret));
		count(OP_FREE, true);
		slot->state = FREED;
	}
}

static void *companion(void *unused)
{
	unsigned int i;

	(void)unused;
	for (;;) {
		sem_wait(&handed_over);
		for (i = 0; i < SLOTS; i++)
			take_over(&slots[i]);
	}
	return NULL;
}

static void do_move(struct slot *slot)
{
	if (slot->state != LIVE)
		return;
	slot->moving = true;
	sem_post(&handed_over);
}

static void do_slot(struct slot *slot)
{
	if (slot->state == FREED)
		recycle(slot);
	if (slot->state == EMPTY)
		do_alloc(slot);
	else if (slot->state == LIVE)
		do_free(slot);
}

static void do_export(struct slot *slot)
{
	if (slot->state != LIVE || slot->buf >= 0)
		return;
	slot->buf = gpu_export(&slot->mem);
	count(OP_EXPORT, true);
}

static void do_touch(struct slot *slot)
{
	size_t at;

	if (slot->state != LIVE)
		return;
	at = chance_below(&chance, slot->mem.size);
	if ((unsigned char)slot->mem.at[at] != slot->colour)
		wrong("memory", (unsigned char)slot->mem.at[at], slot->colour);
	count(OP_TOUCH, true);
}

/* --- regions -------------------------------------------------------------- */

/* Tells whether the region still has its memory: MUST_SUCCEED, MUST_FAIL, or MAY_FAIL. */
static enum prospect memory_of(const struct entry *e)
{
	bool lasts = e->region.attr.path == KVERBS_CA_PATH_PEER ?
		     e->gpu == GPU_LASTING :
		     e->region.attr.flags & KVERBS_CA_MR_PINNED;

	if (lasts || (e->made == e->slot->made && e->slot->state == LIVE))
		return MUST_SUCCEED;
	if (e->made == e->slot->made && e->slot->state == DOOMED)
		return MAY_FAIL;
	return MUST_FAIL;
}

static enum prospect worse_of(enum prospect a, enum prospect b)
{
	if (a == MUST_FAIL || b == MUST_FAIL)
		return MUST_FAIL;
	return a == MAY_FAIL || b == MAY_FAIL ? MAY_FAIL : MUST_SUCCEED;
}

static enum prospect prospect_of_hca(unsigned int h)
{
	return hca_was_there(h) ? MUST_SUCCEED : MAY_FAIL;
}

/* @before: state of the slot before. */
static enum prospect prospect_of_reg(const struct slot *slot, int before,
				     enum kverbs_ca_path path)
{
	enum prospect prospect = before == LIVE ? MUST_SUCCEED :
				 before == DOOMED ? MAY_FAIL : MUST_FAIL;

	if (path == KVERBS_CA_PATH_DMABUF || client_was(slot->gpu, THERE))
		return prospect;
	return worse_of(prospect, client_was(slot->gpu, ABSENT) ? MUST_FAIL : MAY_FAIL);
}

static void check_attr(const struct entry *e, enum kverbs_ca_path path)
{
	const struct kverbs_ca_mr_attr *attr = &e->region.attr;
	char name[16];

	snprintf(name, sizeof(name), "fake_gpu%u", e->gpu);
	if (attr->path != path)
		wrong("path", attr->path, path);
	if (path == KVERBS_CA_PATH_PEER && strcmp(attr->peer, name))
		wrong("peer", attr->peer[8], name[8]);
	if (!attr->lkey || !attr->rkey)
		wrong("keys", attr->lkey, attr->rkey);
}

/* Draws mostly slots that are LIVE, if there are any. */
static struct slot *draw_slot(void)
{
	struct slot *slot;
	int tries = 4;

	do {
		slot = &slots[chance_below(&chance, SLOTS)];
	} while (slot->state != LIVE && --tries);
	return slot;
}

/* Draws mostly entries that are in use, for operations that need one. */
static struct entry *draw_entry(enum op op)
{
	struct entry *e;
	int tries = 8;

	do {
		e = &entries[chance_below(&chance, REGIONS)];
	} while (!e->used && op != OP_REG && --tries);
	return e;
}

/* Draws a part of the memory, and a path. */
static void draw_region(struct kverbs_ca_reg_mr *reg, const struct slot *slot,
			const struct ca *ca)
{
	size_t from = chance_below(&chance, slot->mem.size - 64) & ~7UL;
	size_t len = 64 + chance_below(&chance, slot->mem.size - 64 - from + 1);

	peer_fill(reg, ca, slot->mem.at + from, len);
	if (slot->buf >= 0 && chance_below(&chance, 2)) {
		reg->path = KVERBS_CA_PATH_DMABUF;
		reg->flags = KVERBS_CA_REG_FD;
		reg->fd = slot->buf;
		reg->offset = from;
	} else {
		reg->path = chance_below(&chance, 2) ? KVERBS_CA_PATH_ANY : KVERBS_CA_PATH_PEER;
	}
}

static void do_reg(struct entry *e)
{
	unsigned int h = chance_below(&chance, HCAS);
	struct slot *slot = draw_slot();
	struct hca *hca = hca_get(h);
	struct kverbs_ca_reg_mr reg;
	int before = slot->state;
	long ret;

	if (before == EMPTY || !hca)
		return;
	draw_region(&reg, slot, &hca->ca);
	look_before();
	ret = peer_reg(&hca->ca, &reg, &e->region);
	/* If the HCA has gone, that is the reason of the failure. */
	judge(OP_REG, ret, worse_of(prospect_of_reg(slot, before, reg.path),
				    prospect_of_hca(h)), "REG_MR");
	if (ret)
		return;
	e->used = true;
	e->hca = h;
	e->slot = slot;
	e->made = slot->made;
	e->gpu = slot->gpu;
	e->colour = slot->colour;
	e->length = reg.length;
	check_attr(e, reg.path == KVERBS_CA_PATH_ANY ? KVERBS_CA_PATH_PEER : reg.path);
}

static void do_dereg(struct entry *e)
{
	struct hca *hca = hca_get(e->hca);

	if (!hca || !e->used)
		return;
	judge(OP_DEREG, region_dereg(&e->region), prospect_of_hca(e->hca), "DEREG_MR");
	e->used = false;
}

static void do_query(struct entry *e)
{
	struct hca *hca = hca_get(e->hca);
	struct kverbs_ca_mr_attr attr;
	enum prospect before, after;
	bool revoked;
	long ret;

	if (!hca || !e->used)
		return;
	before = memory_of(e);
	ret = region_query(&e->region, &attr);
	after = memory_of(e);
	judge(OP_QUERY, ret, prospect_of_hca(e->hca), "QUERY_MR");
	if (ret || !hca_was_there(e->hca))
		return;
	revoked = attr.flags & KVERBS_CA_MR_REVOKED;
	/* A region of a dma-buf only waits, until its move is found to lead nowhere. */
	if (before == MUST_FAIL && !revoked && attr.path == KVERBS_CA_PATH_PEER)
		wrong("flags of a region that was invalidated", attr.flags,
		      KVERBS_CA_MR_REVOKED);
	if (after == MUST_SUCCEED && revoked)
		wrong("flags", attr.flags, 0);
	if (attr.lkey != e->region.attr.lkey || attr.rkey != e->region.attr.rkey)
		wrong("keys", attr.lkey, e->region.attr.lkey);
}

static void do_list(void)
{
	unsigned int h = chance_below(&chance, HCAS), want = 2, i;
	struct hca *hca = hca_get(h);
	struct kverbs_ca_list list;
	long ret;

	if (!hca)
		return;
	ret = ca_list(hca->ca.fd, hca->ca.handle, &list, sizeof(list));
	judge(OP_LIST, ret == -EOVERFLOW ? 0 : ret, prospect_of_hca(h), "LIST");
	for (i = 0; i < REGIONS; i++)
		want += entries[i].used && entries[i].hca == h;
	if (ret == -EOVERFLOW && hca_was_there(h) && list.count != want)
		wrong("objects", list.count, want);
}

/* Asks all clients, or only one that owns none of the memory here. */
static void do_set_peer(void)
{
	unsigned int h = chance_below(&chance, HCAS);
	struct hca *hca = hca_get(h);
	struct region region;
	long ret;

	if (!hca)
		return;
	ret = peer_set(&hca->ca, "nobody", NULL);
	if (!ret) {
		ret = peer_reg_path(&hca->ca, host, HOST_SIZE, KVERBS_CA_PATH_PEER, &region);
		judge(OP_SET_PEER, ret, MUST_FAIL, "REG_MR by a name that nobody has");
		ret = peer_set(&hca->ca, "", NULL);
	}
	judge(OP_SET_PEER, ret, prospect_of_hca(h), "SET_PEER");
}

/* --- data ----------------------------------------------------------------- */

static int mover_get(unsigned int from, unsigned int to)
{
	int *mover = &movers[from][to];
	long ret;

	if (*mover >= 0)
		return *mover;
	*mover = open(MOVE_RUN, O_RDWR | O_CLOEXEC);
	if (*mover < 0)
		complain("worker %u: " MOVE_RUN ": %s", me, strerror(errno));
	ret = mover_join(*mover, 0, &hcas[from].ca);
	if (!ret)
		ret = mover_join(*mover, 1, &hcas[to].ca);
	if (!ret)
		return *mover;
	judge(OP_WRITE, ret, worse_of(prospect_of_hca(from), prospect_of_hca(to)), "join");
	close(*mover);
	return *mover = -1;
}

/* The region has memory whose contents are no longer preserved. */
static bool is_neglected(const struct entry *e)
{
	return memory_of(e) == MUST_SUCCEED &&
	       (e->made != e->slot->made || e->slot->state != LIVE);
}

/* Checks that each byte that arrived, which may be only some of them, has that colour. */
static void check_arrived(const struct entry *e, size_t len, bool all)
{
	bool neglected = is_neglected(e);
	size_t i;

	for (i = 0; i < len; i++) {
		if (host[i] != e->colour && (all || host[i] != BLANK) &&
		    (!neglected || host[i] != FAKE_GPU_POISON))
			wrong("what arrived", host[i], e->colour);
	}
	for (; i < HOST_SIZE; i++) {
		if (host[i] != BLANK)
			wrong("what is behind", host[i], BLANK);
	}
}

static const char *const op_names[OPS] = {
	[OP_WRITE] = "write", [OP_READ] = "read", [OP_SEND] = "send", [OP_FADD] = "fadd",
};

static void draw_move(struct move *m, const struct entry *e, enum op op)
{
	uint32_t max = e->length < HOST_SIZE ? e->length : HOST_SIZE;

	*m = (struct move) { .op = op_names[op], .other = &e->region };
	m->len = op == OP_FADD ? 8 : 1 + chance_below(&chance, max);
	m->count = 1 + chance_below(&chance, MESSAGES_MAX);
	m->other_at = chance_below(&chance, e->length - m->len + 1);
	/* Adds 0, so that the colour stays. */
	if (op == OP_FADD)
		m->other_at &= ~7UL;
}

/* The host's memory belongs to the side itself; the region to the other side. */
static void do_data(struct entry *e, enum op op)
{
	unsigned int from = chance_below(&chance, HCAS);
	enum prospect before;
	struct move m;
	int mover;
	long ret;

	if (!hca_get(e->hca) || !e->used || !hca_get(from) || !e->used)
		return;
	mover = mover_get(from, e->hca);
	if (mover < 0)
		return;
	draw_move(&m, e, op);
	m.own = &hcas[from].host;
	memset(host, BLANK, HOST_SIZE);
	if (op == OP_WRITE || op == OP_SEND)
		memset(host, e->colour, m.len);
	before = memory_of(e);
	ret = mover_do(mover, &m);
	/* Only this thread dooms memory, so it has not become doomed meanwhile. */
	judge(op, ret, worse_of(before, worse_of(prospect_of_hca(from),
						 prospect_of_hca(e->hca))), m.op);
	check_arrived(e, m.len, !ret);
	if (!ret)
		count_good(op, m.count - 1);
}

/* --- chance --------------------------------------------------------------- */

/* Favours cheap operations, so that more of them meet. */
static const unsigned char weights[OPS] = {
	[OP_ALLOC] = 2, [OP_FREE] = 1, [OP_MOVE] = 2, [OP_EXPORT] = 2,
	[OP_TOUCH] = 26, [OP_SET_PEER] = 1, [OP_REG] = 10, [OP_DEREG] = 7,
	[OP_QUERY] = 27, [OP_LIST] = 6, [OP_WRITE] = 4, [OP_READ] = 8, [OP_SEND] = 2,
	[OP_FADD] = 2,
};

static enum op draw_op(void)
{
	uint32_t at = chance_below(&chance, 100);
	unsigned int op;

	for (op = 0; op < OPS - 1 && at >= weights[op]; op++)
		at -= weights[op];
	return op;
}

/* The client wants to go, and waits for this worker to let go. */
static void let_clients_go(void)
{
	unsigned int i;

	for (i = 0; i < REGIONS; i++) {
		if (entries[i].used &&
		    entries[i].region.attr.path == KVERBS_CA_PATH_PEER &&
		    shared->gpu[entries[i].gpu] % WEATHERS == GOING)
			do_dereg(&entries[i]);
	}
}

static void operate(void)
{
	enum op op = draw_op();
	struct entry *e = draw_entry(op);

	switch (op) {
	case OP_ALLOC:
	case OP_FREE:
		do_slot(&slots[chance_below(&chance, SLOTS)]);
		break;
	case OP_MOVE:
		do_move(draw_slot());
		break;
	case OP_EXPORT:
		do_export(draw_slot());
		break;
	case OP_TOUCH:
		do_touch(draw_slot());
		break;
	case OP_SET_PEER:
		do_set_peer();
		break;
	case OP_REG:
	case OP_DEREG:
		if (e->used)
			do_dereg(e);
		else
			do_reg(e);
		break;
	case OP_QUERY:
		do_query(e);
		break;
	case OP_LIST:
		do_list();
		break;
	default:
		do_data(e, op);
	}
}

/* --- a life --------------------------------------------------------------- */

static void begin(void)
{
	pthread_t thread;
	unsigned int i, j;

	chance = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (me + 1ULL) << 32 ^
		 (uint64_t)my_life << 40;
	chance_draw(&chance);
	/* The parent process supervises this one. */
	alarm(0);
	host = mmap(NULL, HOST_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (host == MAP_FAILED)
		complain("mmap: %s", strerror(errno));
	for (i = 0; i < GPUS; i++)
		gpus[i] = gpu_open(i);
	for (i = 0; i < HCAS; i++) {
		for (j = 0; j < HCAS; j++)
			movers[i][j] = -1;
	}
	sem_init(&handed_over, 0, 0);
	if (pthread_create(&thread, NULL, companion, NULL))
		complain("worker %u: no thread", me);
}

/**
 * work - run a worker, until the test is over or the process is killed
 * @number: number of the worker
 * @life: how many workers of that number there were before
 */
void work(unsigned int number, unsigned int life)
{
	me = number;
	my_life = life;
	begin();
	while (!shared->over && !shared->failed) {
		operate();
		let_clients_go();
	}
}
