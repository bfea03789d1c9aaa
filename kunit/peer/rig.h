/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both sides of the peer-memory registry: mock clients, whose functions do what a case says
 * and check how the core calls them, and users of their memory.
 */
#ifndef KVT_PEER_RIG_H
#define KVT_PEER_RIG_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <kverbs/peer_region.h>
#include <rdma/peer_mem.h>

#include "lib/lib.h"

struct peer_pin;
struct peer_user;

/* Number of mock clients that can exist at a time. */
#define PEER_MOCKS	5

/* First address of the memory of client @nr, and its length. */
#define PEER_BASE(nr)	(((nr) + 1UL) << 40)
#define PEER_SPAN	(1UL << 39)

/* DMA address of the first page of each pin. */
#define PEER_DMA	0x40000000ULL

/* Value of &peer_pin.nmap with which dma_map() does not set the count of mapped entries. */
#define PEER_SILENT	INT_MIN

/* The functions of a client that the core calls. */
enum peer_call {
	PEER_ACQUIRE,
	PEER_GET_PAGES,
	PEER_DMA_MAP,
	PEER_DMA_UNMAP,
	PEER_PUT_PAGES,
	PEER_PAGE_SIZE,
	PEER_RELEASE,
	PEER_CALLS,
};

/**
 * enum peer_kind - how a client invalidates memory
 * @PEER_UNMAPS: the client invalidates memory and unmaps it itself
 * @PEER_CORE: the client invalidates memory and the core unmaps it
 * @PEER_NEVER: the client cannot invalidate
 */
enum peer_kind {
	PEER_UNMAPS,
	PEER_CORE,
	PEER_NEVER,
};

/**
 * struct peer_mock - a mock client
 * @ex: the client as registered with the core
 * @nr: number of the client; acquire() accepts addresses from PEER_BASE(@nr) on
 * @kind: how it invalidates memory
 * @handle: handle of its registration, NULL if it is not registered
 * @invalidate: the core's invalidate function, got at registration
 * @page_size: page size in bytes
 * @trace: gets a word for each call but get_page_size(), and for invalidations; may be NULL
 * @tag: prefix of these words
 * @quiet: no words for invalidations
 * @ret: for each function, a result to return instead, after @on, or 0
 * @on: for each function, a hook called before it does anything; may be NULL
 * @fill: makes the table and sets the count, instead of the mock; may be NULL
 * @fill_early: the table is made in get_pages(), not in dma_map()
 * @arg: for @on and @fill
 * @data: private data that the last acquire() got
 * @has_data: whether it got any
 * @name: name that the last acquire() got, or "-" if it got none
 * @lock: guards @pins, the state of the pins, @data, @has_data and @name
 * @pins: pins that were acquired and not released
 * @live: number of @pins
 * @calls: how often each function was called
 * @wrong: calls that the core must not make, or not in that way
 */
struct peer_mock {
	struct peer_memory_client_ex ex;
	int nr;
	enum peer_kind kind;
	void *handle;
	invalidate_peer_memory invalidate;
	unsigned long page_size;
	struct kvt_trace *trace;
	const char *tag;
	bool quiet;
	int ret[PEER_CALLS];

	void (*on[PEER_CALLS])(struct peer_pin *pin);
	int (*fill)(struct peer_pin *pin, struct sg_table *sgt, int *nmap);
	bool fill_early;
	void *arg;
	u8 data[IB_PEER_MEMORY_DATA_MAX];
	bool has_data;
	char name[IB_PEER_MEMORY_NAME_MAX];
	spinlock_t lock;
	struct list_head pins;
	atomic_t live;
	atomic_t calls[PEER_CALLS];
	atomic_t wrong;
};

/* State of a pin; see the table of legal moves in rig.c. */
enum peer_state {
	PEER_ACQUIRED,
	PEER_PINNED,
	PEER_MAPPED,
	PEER_UNMAPPED,
	PEER_FREED,
	PEER_RELEASED,
	PEER_STATES,
};

/**
 * struct peer_pin - a range of a client's memory that the core has acquired
 * @entry: in &peer_mock.pins
 * @mock: the client
 * @ref: held from acquire() to release(), by the user, and by callers of peer_mock_pin()
 * @addr: first address
 * @size: length in bytes
 * @number: core context that get_pages() got
 * @state: state of the pin
 * @write: the device may write to the memory
 * @maker: thread in which it was acquired
 * @device: device that the memory is mapped for
 * @sgt: the core's table of the memory
 * @copy: copy of @sgt as the mock filled it
 * @sgl: copy of the entries of @sgt
 * @nmap: number of mapped entries, or PEER_SILENT
 * @inside: calls of the client's functions that are running for this pin
 * @invalidating: threads in the core's invalidate function for this pin
 * @idle: woken when @invalidating drops to 0
 */
struct peer_pin {
	struct list_head entry;
	struct peer_mock *mock;
	refcount_t ref;
	unsigned long addr;
	size_t size;
	u64 number;
	enum peer_state state;
	bool write;
	struct task_struct *maker;
	struct device *device;
	struct sg_table *sgt;
	struct sg_table copy;
	struct scatterlist *sgl;
	int nmap;
	atomic_t inside;
	int invalidating;
	wait_queue_head_t idle;
};

/**
 * struct peer_visit - a thread that has called one of the core's functions
 * @entry: in the list of all visits
 * @task: the thread
 * @depth: number of locks that the thread held before the call
 * @preempt: preempt count of the thread before the call
 */
struct peer_visit {
	struct list_head entry;
	struct task_struct *task;
	int depth;
	int preempt;
};

void peer_visit_begin(struct peer_visit *v);
void peer_visit_end(struct peer_visit *v);
bool peer_visit_right(void);

struct peer_mock *peer_mock_new(struct kunit *test, int nr, const char *name,
				enum peer_kind kind);
int peer_mock_register(struct peer_mock *m);
void peer_mock_unregister(struct peer_mock *m);
struct peer_mock *peer_mock_up(struct kunit *test, int nr, const char *name,
			       enum peer_kind kind);
int peer_mock_calls(const struct peer_mock *m, enum peer_call call);
struct peer_pin *peer_mock_pin(struct peer_mock *m, u32 which);
struct peer_pin *peer_mock_made(unsigned long addr);

void peer_pin_put(struct peer_pin *pin);
int peer_pin_invalidate(struct peer_pin *pin);
void peer_pin_invalidate_here(struct peer_pin *pin);

/* Expects that no pin of the client is left, and that the core called it correctly. */
#define PEER_EXPECT_IDLE(test, m)					\
do {									\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(m)->live));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(m)->wrong));		\
} while (0)

/**
 * struct peer_user - a user of peer memory
 * @req: the request for the memory
 * @region: the region that the user has got, or NULL
 * @pin: pin of the region, if it is one of a mock client
 * @trace: gets a word for each call; may be NULL
 * @on_revoke: called in revoke(); may be NULL
 * @arg: for @on_revoke
 * @any_caller: revoke() may be called by a thread of a client that is not a mock
 * @lock: guards @active and @revoked, and is held while the device accesses the memory
 * @active: the region was activated and not yet stopped or put
 * @revoked: the device must not access the memory any more
 * @revokes: calls of revoke()
 * @wrong: calls of revoke() that the core must not make, and accesses to unmapped memory
 */
struct peer_user {
	struct peer_request req;
	struct peer_region *region;
	struct peer_pin *pin;
	struct kvt_trace *trace;
	void (*on_revoke)(struct peer_user *u);
	void *arg;
	bool any_caller;
	spinlock_t lock;
	bool active;
	bool revoked;
	atomic_t revokes;
	atomic_t wrong;
};

void peer_user_init(struct peer_user *u, unsigned long addr, size_t size);
struct peer_user *peer_user_new(struct kunit *test, unsigned long addr,
				size_t size);
int peer_user_get(struct peer_user *u);
void peer_user_activate(struct peer_user *u);
void peer_user_stop(struct peer_user *u);
void peer_user_put(struct peer_user *u);
void peer_user_access(struct peer_user *u);

/**
 * struct peer_hold - makes a call sleep until the case lets it go on
 * @entered: completed by the call
 * @leave: completed by the case to let the call go on
 * @in_time: the call was let go before it timed out
 */
struct peer_hold {
	struct completion entered;
	struct completion leave;
	bool in_time;
};

void peer_hold_init(struct peer_hold *h);
void peer_hold_here(struct peer_hold *h);

/* Number of rounds that a long case is split into. */
#define PEER_ROUNDS	20

const void *peer_next_round(const void *prev, char *desc);
void peer_set_wait(struct kunit *test, unsigned int ms);
int peer_read(const char *client, const char *file, char *buf, size_t len);
u64 peer_count(struct kunit *test, const char *client, const char *file);

#endif
