// SPDX-License-Identifier: GPL-2.0-only
/*
 * A card with memory of its own, a client of the peer-memory registry, and traffic
 * between that memory and a host's over a connection of the software HCA.
 *
 * A pin is in the card's list from acquire() to release(); card_take_back() holds a
 * reference to it meanwhile. The card's lock is not held in calls into the registry.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/refcount.h>

#include "emu/peer_rig.h"
#include "emu/window.h"
#include "lib/objects.h"

/* A range of the card's memory that is registered. */
struct card_pin {
	struct list_head entry;	/* in &card.pins */
	refcount_t ref;		/* held by the registry, and by callers of card_take_back() */
	size_t at;		/* offset of the range in the card's memory, in bytes */
	size_t len;		/* length in bytes */
	u64 number;	/* core context that the registry passed to get_pages(), 0 before that */
	struct device *device;	/* device that the range is mapped for, or NULL */
	struct sg_table sgt;	/* table of the mapping */
	bool taken;		/* the range was taken back and poisoned */
};

/* The only card that is up: acquire() gets no argument that would tell which. */
static struct card *card;

/* The process sees the card's pages in the order of &card.mem, or in reverse order. */
u8 *card_at(struct card *c, size_t offset)
{
	size_t page = offset / CARD_PAGE ^ c->flip;

	return c->mem + page * CARD_PAGE + offset % CARD_PAGE;
}

static size_t card_rest(size_t offset, size_t len)
{
	return min_t(size_t, len, CARD_PAGE - offset % CARD_PAGE);
}

void card_fill(struct card *c, size_t offset, size_t len, u8 value)
{
	size_t n;

	for (; len; offset += n, len -= n) {
		n = card_rest(offset, len);
		memset(card_at(c, offset), value, n);
	}
}

bool card_all(struct card *c, size_t offset, size_t len, u8 value)
{
	size_t n;

	for (; len; offset += n, len -= n) {
		n = card_rest(offset, len);
		if (memchr_inv(card_at(c, offset), value, n))
			return false;
	}
	return true;
}

void card_write(struct card *c, size_t offset, const u8 *from, size_t len)
{
	size_t n;

	for (; len; offset += n, from += n, len -= n) {
		n = card_rest(offset, len);
		memcpy(card_at(c, offset), from, n);
	}
}

bool card_holds(struct card *c, size_t offset, const u8 *want, size_t len)
{
	size_t n;

	for (; len; offset += n, want += n, len -= n) {
		n = card_rest(offset, len);
		if (memcmp(card_at(c, offset), want, n))
			return false;
	}
	return true;
}

/*
 * Moves the data of each page to another one, by reversing the order of the pages. Nobody
 * may access the memory meanwhile.
 */
void card_move(struct card *c)
{
	size_t page, i;
	u64 *a, *b;

	for (page = 0; page < CARD_PAGES / 2; page++) {
		a = (u64 *)card_at(c, page * CARD_PAGE);
		b = (u64 *)card_at(c, (page ^ (CARD_PAGES - 1)) * CARD_PAGE);
		for (i = 0; i < CARD_PAGE / sizeof(*a); i++)
			swap(a[i], b[i]);
	}
	c->flip ^= CARD_PAGES - 1;
}

/* The client */

static void card_pin_put(struct card_pin *pin)
{
	if (refcount_dec_and_test(&pin->ref))
		kfree(pin);
}

static int card_acquire(unsigned long addr, size_t size, void *data, char *name,
			void **client_context)
{
	size_t at = addr - CARD_BASE;
	struct card_pin *pin;

	if (addr < CARD_BASE || at >= CARD_SIZE || size > CARD_SIZE - at)
		return 0;
	pin = kzalloc(sizeof(*pin), GFP_KERNEL);
	if (!pin)
		return -ENOMEM;
	refcount_set(&pin->ref, 1);
	pin->at = at;
	pin->len = size;
	mutex_lock(&card->lock);
	list_add(&pin->entry, &card->pins);
	mutex_unlock(&card->lock);
	*client_context = pin;
	return 1;
}

static int card_get_pages(unsigned long addr, size_t size, int write, int force,
			  struct sg_table *sg_head, void *client_context,
			  u64 core_context)
{
	struct card_pin *pin = client_context;

	mutex_lock(&card->lock);
	pin->number = core_context;
	mutex_unlock(&card->lock);
	return 0;
}

/* dma-debug lets memory be mapped more than once at a time only with this attribute. */
#define CARD_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

static dma_addr_t card_map_page(struct device *device, size_t offset)
{
	u8 *at = card_at(card, offset);

	if (card->phys)
		return dma_map_resource(device, card->phys + (at - card->mem),
					CARD_PAGE, DMA_BIDIRECTIONAL,
					CARD_DMA_ATTRS);
	return dma_map_page_attrs(device, virt_to_page(at), 0, CARD_PAGE,
				  DMA_BIDIRECTIONAL, CARD_DMA_ATTRS);
}

static void card_unmap_table(struct device *device, struct sg_table *sgt)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (card->phys)
			dma_unmap_resource(device, sg_dma_address(sg), CARD_PAGE,
					   DMA_BIDIRECTIONAL, CARD_DMA_ATTRS);
		else
			dma_unmap_page_attrs(device, sg_dma_address(sg), CARD_PAGE,
					     DMA_BIDIRECTIONAL, CARD_DMA_ATTRS);
	}
}

static int card_map_table(struct device *device, struct sg_table *sgt, size_t page)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_sg(sgt, sg, i) {
		sg->length = CARD_PAGE;
		sg_dma_address(sg) = card_map_page(device, (page + i) * CARD_PAGE);
		sg_dma_len(sg) = CARD_PAGE;
		if (!dma_mapping_error(device, sg_dma_address(sg)))
			continue;
		sgt->nents = i;
		card_unmap_table(device, sgt);
		return -EIO;
	}
	return 0;
}

static int card_dma_map(struct sg_table *sg_head, void *client_context,
			struct device *dma_device, int dmasync, int *nmap)
{
	struct card_pin *pin = client_context;
	size_t page = pin->at / CARD_PAGE;
	int n = DIV_ROUND_UP(pin->at + pin->len, CARD_PAGE) - page, ret;

	if (sg_alloc_table(sg_head, n, GFP_KERNEL))
		return -ENOMEM;
	ret = card_map_table(dma_device, sg_head, page);
	if (ret) {
		sg_free_table(sg_head);
		return ret;
	}
	*nmap = n;
	mutex_lock(&card->lock);
	pin->sgt = *sg_head;
	pin->device = dma_device;
	mutex_unlock(&card->lock);
	return 0;
}

/* The first of dma_unmap() and card_take_back() unmaps. */
static void card_unmap(struct card_pin *pin)
{
	mutex_lock(&card->lock);
	if (pin->device) {
		card_unmap_table(pin->device, &pin->sgt);
		sg_free_table(&pin->sgt);
	}
	pin->device = NULL;
	mutex_unlock(&card->lock);
}

static int card_dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	card_unmap(client_context);
	return 0;
}

static void card_put_pages(struct sg_table *sg_head, void *client_context)
{
}

static unsigned long card_page_size(void *client_context)
{
	return CARD_PAGE;
}

static void card_release(void *client_context)
{
	struct card_pin *pin = client_context;

	mutex_lock(&card->lock);
	list_del(&pin->entry);
	mutex_unlock(&card->lock);
	card_pin_put(pin);
}

static struct card_pin *card_pick(struct card *c, u32 which)
{
	struct card_pin *pin;

	mutex_lock(&c->lock);
	which %= list_count_nodes(&c->pins) ?: 1;
	list_for_each_entry(pin, &c->pins, entry) {
		if (which--)
			continue;
		if (!pin->number)
			break;
		refcount_inc(&pin->ref);
		mutex_unlock(&c->lock);
		return pin;
	}
	mutex_unlock(&c->lock);
	return NULL;
}

/**
 * card_take_back() - free card memory that is registered, as its owner would
 * @c: the card
 * @which: index of the registration, 0 for the newest; taken modulo their number
 *
 * The memory is poisoned when the registry's invalidate function has returned, since
 * nobody may access it any more.
 *
 * Return: what the invalidate function returned; -ENODEV if nothing is registered, or
 * get_pages() was not called yet.
 */
int card_take_back(struct card *c, u32 which)
{
	struct card_pin *pin = card_pick(c, which);
	int ret;

	if (!pin)
		return -ENODEV;
	ret = c->invalidate(c->handle, pin->number);
	card_fill(c, pin->at, pin->len, CARD_POISON);
	/* release: pairs with the acquire in card_has_taken_back() */
	smp_store_release(&pin->taken, true);
	if (!ret && c->unmaps)
		card_unmap(pin);
	card_pin_put(pin);
	return ret;
}

/* Returns whether memory that is registered from @offset on was taken back and poisoned. */
bool card_has_taken_back(struct card *c, size_t offset)
{
	struct card_pin *pin;
	bool taken = false;

	mutex_lock(&c->lock);
	list_for_each_entry(pin, &c->pins, entry)
		/* acquire: pairs with the release in card_take_back() */
		if (pin->at == offset && smp_load_acquire(&pin->taken))
			taken = true;
	mutex_unlock(&c->lock);
	return taken;
}

static void card_down(void *arg)
{
	struct card *c = arg;

	ib_unregister_peer_memory_client(c->handle);
	card = NULL;
}

static void card_free(void *arg)
{
	free_pages((unsigned long)arg, get_order(CARD_SIZE));
}

static void card_register(struct kunit *test, struct card *c)
{
	struct peer_memory_client *client = &c->ex.client;

	strscpy(client->name, "kvt_card", sizeof(client->name));
	client->acquire = card_acquire;
	client->get_pages = card_get_pages;
	client->dma_map = card_dma_map;
	client->dma_unmap = card_dma_unmap;
	client->put_pages = card_put_pages;
	client->get_page_size = card_page_size;
	client->release = card_release;
	client->version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	c->ex.ex_size = sizeof(c->ex);
	c->ex.flags = c->unmaps ? PEER_MEM_INVALIDATE_UNMAPS : 0;

	KUNIT_ASSERT_NULL(test, card);
	card = c;
	c->handle = KVT_PTR(test, ib_register_peer_memory_client(client, &c->invalidate));
	kvt_defer(test, card_down, c);
}

static struct card *card_new(struct kunit *test, void *mem)
{
	struct card *c = kvt_zalloc(test, sizeof(*c));

	mutex_init(&c->lock);
	INIT_LIST_HEAD(&c->pins);
	c->mem = mem;
	c->flip = CARD_PAGES - 1;
	return c;
}

/**
 * card_up() - a card whose memory is pages of the system
 * @test: the running case
 * @unmaps: see &card.unmaps
 *
 * Return: the card, registered.
 */
struct card *card_up(struct kunit *test, bool unmaps)
{
	void *mem = KVT_PTR(test, (void *)__get_free_pages(GFP_KERNEL, get_order(CARD_SIZE)));
	struct card *c;

	kvt_defer(test, card_free, mem);
	c = card_new(test, mem);
	c->unmaps = unmaps;
	card_register(test, c);
	return c;
}

/**
 * card_up_at() - a card whose memory is on the bus
 * @test: the running case
 * @phys: address of the memory on the bus, CARD_SIZE bytes
 * @mem: kernel mapping of the memory
 *
 * Return: the card, registered.
 */
struct card *card_up_at(struct kunit *test, phys_addr_t phys, void *mem)
{
	struct card *c = card_new(test, mem);

	c->phys = phys;
	card_register(test, c);
	return c;
}

/* Unregisters the card before the case ends. None of its memory may be registered. */
void card_end(struct kunit *test, struct card *c)
{
	kunit_release_action(test, card_down, c);
}

/* Registers card memory. Returns the MR, or an ERR_PTR. */
struct ib_mr *card_reg(struct ib_pd *pd, size_t offset, size_t len)
{
	struct ib_mem mem = {
		.path = IB_MEM_PEER,
		.start = CARD_BASE + offset,
		.length = len,
	};

	return ib_reg_mem(pd, &mem, mem.start, PEER_ACCESS);
}

/* The same; fails the case on errors, and the MR is deregistered when the case ends. */
struct ib_mr *card_mr(struct kunit *test, struct card *c, struct ib_pd *pd,
		      size_t offset, size_t len)
{
	return KVT_OWN(test, card_reg(pd, offset, len), kvt_end_mr);
}

void card_mr_end(struct kunit *test, struct ib_mr *mr)
{
	kunit_release_action(test, kvt_end_mr, mr);
}

/* Traffic */

const struct use uses[USES] = {
	{ "send from", IB_WR_SEND, .local = true, .want = IB_WC_LOC_PROT_ERR },
	{ "send into", IB_WR_SEND, .into = true, .want = IB_WC_REM_OP_ERR,
	  .want_recv = IB_WC_LOC_PROT_ERR },
	{ "send from a list", IB_WR_SEND, .local = true, .list = true,
	  .want = IB_WC_LOC_PROT_ERR },
	{ "send into a list", IB_WR_SEND, .into = true, .list = true,
	  .want = IB_WC_REM_OP_ERR, .want_recv = IB_WC_LOC_PROT_ERR },
	{ "write from", IB_WR_RDMA_WRITE, .local = true,
	  .want = IB_WC_LOC_PROT_ERR },
	{ "write into", IB_WR_RDMA_WRITE, .into = true,
	  .want = IB_WC_REM_ACCESS_ERR },
	{ "read into", IB_WR_RDMA_READ, .local = true, .into = true,
	  .want = IB_WC_LOC_PROT_ERR },
	{ "read from", IB_WR_RDMA_READ, .want = IB_WC_REM_ACCESS_ERR },
	{ "atomic, the result", IB_WR_ATOMIC_FETCH_AND_ADD, .local = true,
	  .into = true, .want = IB_WC_LOC_PROT_ERR },
	{ "atomic, the target", IB_WR_ATOMIC_FETCH_AND_ADD, .into = true,
	  .want = IB_WC_REM_ACCESS_ERR },
	{ "write by a window of type 1", IB_WR_RDMA_WRITE, .into = true,
	  .window = IB_MW_TYPE_1, .want = IB_WC_REM_ACCESS_ERR },
	{ "read by a window of type 2", IB_WR_RDMA_READ,
	  .window = IB_MW_TYPE_2, .want = IB_WC_REM_ACCESS_ERR },
};

/* Bytes of host memory before and after the card's memory in a scatter list. */
#define LIST_ENDS	64

static bool use_is_atomic(const struct use *use)
{
	return use->op == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static void traffic_window(struct kunit *test, struct traffic *t)
{
	struct ib_wc wc;

	t->mw = win_new(test, t->r->b.pd, t->use->window);
	KUNIT_ASSERT_EQ(test, 0, win_bind(&t->r->b, t->mw, t->mr, USE_SKIP,
					  USE_LEN - USE_SKIP, PEER_REMOTE, 57));
	RIG_EXPECT_WC(test, t->r->b.scq, &wc, 57, IB_WC_SUCCESS);
}

static void traffic_register(struct kunit *test, struct traffic *t)
{
	struct rig_end *e = t->use->local ? &t->r->a : &t->r->b;

	t->mr = card_mr(test, t->c, e->pd, USE_AT, USE_LEN);
	t->mw = NULL;
	if (t->use->window)
		traffic_window(test, t);
}

/**
 * traffic_up_on() - set up a use of card memory, on a rig without queue pairs
 * @test: the running case
 * @c: the card
 * @use: the use
 * @r: the rig, from rig_new()
 *
 * Return: the traffic; nothing is posted.
 */
struct traffic *traffic_up_on(struct kunit *test, struct card *c,
			      const struct use *use, struct rig *r)
{
	struct traffic *t = kvt_zalloc(test, sizeof(*t));

	t->r = r;
	t->c = c;
	t->use = use;
	r->access = IB_ACCESS_LOCAL_WRITE | PEER_REMOTE;
	rig_start(test, r);
	if (use->local && use->op != IB_WR_SEND)
		rig_register(test, &r->b, PEER_ACCESS);
	traffic_register(test, t);
	return t;
}

/* The same on a new rig, between the two devices of @pair. */
struct traffic *traffic_up(struct kunit *test, struct card *c,
			   const struct use *use, const struct rig_pair *pair)
{
	return traffic_up_on(test, c, use, rig_new(test, pair->a, pair->b));
}

/* Frees the window, if there is one, and deregisters the card's memory. */
void traffic_end(struct kunit *test, struct traffic *t)
{
	if (t->mw)
		win_free(test, t->mw);
	card_mr_end(test, t->mr);
}

/* Registers the memory again and reconnects, so that all is as after traffic_up(). */
void traffic_renew(struct kunit *test, struct traffic *t)
{
	traffic_end(test, t);
	rig_reconnect(test, t->r);
	traffic_register(test, t);
}

/* Returns the bytes that a use of length @len moves: always 8 for an atomic operation. */
u32 traffic_len(const struct traffic *t, u32 len)
{
	return use_is_atomic(t->use) ? sizeof(u64) : len;
}

static struct rig_end *traffic_host_end(struct traffic *t)
{
	return t->use->local ? &t->r->b : &t->r->a;
}

/* Returns where the data is in the buffer of the end that uses host memory. */
u8 *traffic_host(struct traffic *t)
{
	return traffic_host_end(t)->buf + (t->use->list ? LIST_ENDS : 0);
}

/*
 * Fills @sge with the card's memory, between two pieces of @e's buffer if the use is one
 * with a list. Returns the number of elements.
 */
static int traffic_list(struct traffic *t, struct rig_end *e, u32 len, struct ib_sge *sge)
{
	struct ib_sge mem = {
		.addr = t->mr->iova + USE_SKIP,
		.length = len,
		.lkey = t->mr->lkey,
	};

	if (!t->use->list) {
		sge[0] = mem;
		return 1;
	}
	sge[0] = rig_sge(e, 0, LIST_ENDS);
	sge[1] = mem;
	sge[2] = rig_sge(e, LIST_ENDS, LIST_ENDS);
	return 3;
}

/* Fills @sge for a request of @e, with card or host memory. Returns the number of elements. */
static int traffic_sges(struct traffic *t, struct rig_end *e, u32 len, struct ib_sge *sge)
{
	if (e != traffic_host_end(t))
		return traffic_list(t, e, len, sge);
	sge[0] = rig_sge(e, 0, len + (t->use->list ? 2 * LIST_ENDS : 0));
	return 1;
}

int traffic_post_recv(struct traffic *t, u64 id, u32 len)
{
	struct ib_sge sge[3];
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = sge };

	wr.num_sge = traffic_sges(t, &t->r->b, len, sge);
	return ib_post_recv(t->r->b.qp, &wr, NULL);
}

static u64 traffic_remote(struct traffic *t, u32 *rkey)
{
	if (t->use->local) {
		*rkey = t->r->b.mr->rkey;
		return t->r->b.mr->iova;
	}
	*rkey = t->mw ? t->mw->rkey : t->mr->rkey;
	return t->mr->iova + USE_SKIP;
}

static int traffic_post_atomic(struct traffic *t, struct ib_send_wr *wr)
{
	struct ib_atomic_wr atomic = { .wr = *wr, .compare_add = 1 };

	atomic.remote_addr = traffic_remote(t, &atomic.rkey);
	return ib_post_send(t->r->a.qp, &atomic.wr, NULL);
}

static int traffic_post_rdma(struct traffic *t, struct ib_send_wr *wr)
{
	struct ib_rdma_wr rdma = { .wr = *wr };

	rdma.remote_addr = traffic_remote(t, &rdma.rkey);
	return ib_post_send(t->r->a.qp, &rdma.wr, NULL);
}

/**
 * traffic_post() - use the memory once
 * @t: the traffic
 * @id: wr_id of the request, and of the receive if a send needs one
 * @len: bytes; 8 for an atomic operation
 *
 * Return: 0, or the error of ib_post_send() or ib_post_recv().
 */
int traffic_post(struct traffic *t, u64 id, u32 len)
{
	struct ib_sge sge[3];
	struct ib_send_wr wr;
	int ret;

	rig_send_wr(&wr, id, sge, traffic_sges(t, &t->r->a, len, sge));
	wr.opcode = t->use->op;
	if (use_is_atomic(t->use))
		return traffic_post_atomic(t, &wr);
	if (wr.opcode != IB_WR_SEND)
		return traffic_post_rdma(t, &wr);
	ret = traffic_post_recv(t, id, len);
	return ret ?: ib_post_send(t->r->a.qp, &wr, NULL);
}

void traffic_expect(struct kunit *test, struct traffic *t, u64 id,
		    enum ib_wc_status want, enum ib_wc_status want_recv)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, t->r->a.scq, &wc, id, want);
	if (t->use->op == IB_WR_SEND && (want == IB_WC_SUCCESS || want_recv != IB_WC_SUCCESS))
		RIG_EXPECT_WC(test, t->r->b.rcq, &wc, id, want_recv);
}

/* Writes the data of @seed to the source, and other data to the destination. */
void traffic_fill(struct traffic *t, u32 len, u32 seed)
{
	bool from_card = !t->use->into || (use_is_atomic(t->use) && !t->use->local);
	size_t at = USE_AT + USE_SKIP;
	u8 *host = traffic_host(t);

	rig_fill(host, len, seed);
	if (from_card) {
		card_write(t->c, at, host, len);
		memset(host, ~seed, len);
	} else {
		card_fill(t->c, at, len, ~seed);
	}
}

/*
 * Returns whether the target of the atomic holds one more than the value of @seed, and that
 * value was returned.
 */
static bool traffic_counted(struct traffic *t, u32 seed)
{
	u8 *host = traffic_host(t);
	u64 was, now;

	rig_fill((u8 *)&was, sizeof(was), seed);
	now = was + 1;
	if (t->use->local)
		return !memcmp(host, &now, sizeof(now)) &&
		       card_holds(t->c, USE_AT + USE_SKIP, (u8 *)&was, sizeof(was));
	return !memcmp(host, &was, sizeof(was)) &&
	       card_holds(t->c, USE_AT + USE_SKIP, (u8 *)&now, sizeof(now));
}

/* Returns whether the data of traffic_fill() is at the destination, too. */
bool traffic_arrived(struct traffic *t, u32 len, u32 seed)
{
	u8 *host = traffic_host(t);

	if (use_is_atomic(t->use))
		return traffic_counted(t, seed);
	return rig_filled(host, len, seed) &&
	       card_holds(t->c, USE_AT + USE_SKIP, host, len);
}

/* Pauses the MR before its memory moves. The memory must not be taken back meanwhile. */
void traffic_pause(struct traffic *t)
{
	t->mr->device->ops.pause_mr(t->mr);
}

/* Fills in physical addresses: the software HCA has no IOMMU. */
static void traffic_table(struct traffic *t, struct sg_table *sgt)
{
	size_t offset = USE_AT & PAGE_MASK;
	struct scatterlist *sg;
	int i;

	for_each_sgtable_sg(sgt, sg, i) {
		sg_dma_address(sg) = virt_to_phys(card_at(t->c, offset));
		sg_dma_len(sg) = card_rest(offset, USE_AT + USE_LEN - offset);
		sg->length = sg_dma_len(sg);
		offset += sg->length;
	}
}

/* Resumes the MR at the current place of its memory. Returns what resume_mr() returned. */
int traffic_resume(struct traffic *t)
{
	struct ib_umem umem = {
		.ibdev = t->mr->device,
		.address = CARD_BASE + USE_AT,
		.length = USE_LEN,
	};
	struct sg_table *sgt = &umem.sgt_append.sgt;
	int ret;

	ret = sg_alloc_table(sgt, DIV_ROUND_UP(USE_AT + USE_LEN, CARD_PAGE) -
			     USE_AT / CARD_PAGE, GFP_KERNEL);
	if (ret)
		return ret;
	traffic_table(t, sgt);
	ret = t->mr->device->ops.resume_mr(t->mr, &umem);
	sg_free_table(sgt);
	return ret;
}
