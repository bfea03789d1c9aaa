/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both sides of the registry of peer memory: clients whose functions do what a
 * case says and look at how they are called, and users of their memory.
 */
#ifndef KVT_PEER_RIG_H
#define KVT_PEER_RIG_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <kunit/test.h>
#include <kverbs/peer_region.h>
#include <rdma/peer_mem.h>

#include "lib.h"

struct peer_pin;
struct peer_user;

/* So many clients can be registered at a time. */
#define PEER_MOCKS	5

/* Each has its own addresses: the first ones, and how many. */
#define PEER_BASE(nr)	(((nr) + 1UL) << 40)
#define PEER_SPAN	(1UL << 39)

/* Where the device sees a pin's first page. */
#define PEER_DMA	0x40000000ULL

/* A count of mapped entries that dma_map() does not set. */
#define PEER_SILENT	INT_MIN

/* The functions of a client. */
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
 * enum peer_kind - how a client invalidates
 * @PEER_UNMAPS: and unmaps the memory itself
 * @PEER_CORE: the core unmaps the memory
 * @PEER_NEVER: it does not
 */
enum peer_kind {
	PEER_UNMAPS,
	PEER_CORE,
	PEER_NEVER,
};

/**
 * struct peer_mock - a client
 * @ex: what the core sees
 * @nr: its place; acquire() takes the addresses from PEER_BASE(@nr) on
 * @kind: how it invalidates
 * @handle: of its registration, NULL if it is not registered
 * @invalidate: of its registration
 * @page_size: bytes
 * @trace: gets a word for each call but get_page_size(); may be NULL
 * @tag: stands before the words
 * @quiet: no words for invalidations
 * @ret: what a call returns instead of its result if it is not 0; such a call
 *	does nothing
 * @on: called in a call, before it does anything
 * @fill: makes the table instead of the mock, and sets the count
 * @fill_early: the table is made in get_pages()
 * @arg: for @on and @fill
 * @data: what acquire() was given: the private data,
 * @has_data: if there was any,
 * @name: the name, or "-" if there was none
 * @lock: of @pins, of the pins' state and of @data, @has_data, @name
 * @pins: acquired and not released
 * @live: how many these are
 * @calls: how often each function was called
 * @wrong: calls that must not be, or not so
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

/* Where a pin is; see the table of legal moves in peer_rig.c. */
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
 * struct peer_pin - what a client knows of a region
 * @entry: in &peer_mock.pins
 * @mock: the client
 * @ref: its table's, its user's and those who invalidate it
 * @addr: first byte
 * @size: bytes
 * @number: the core's
 * @state: where it is
 * @write: the device may write
 * @maker: who acquired it
 * @device: it is mapped for
 * @sgt: the core's table for it
 * @copy: of the table as it was left
 * @sgl: copy of the table's entries
 * @nmap: entries that are mapped
 * @inside: calls of the core's that it is in
 * @invalidating: threads in the core's invalidate function for it
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
 * struct peer_visit - a thread in one of the core's functions
 * @entry: in the list of all
 * @task: the thread
 * @depth: locks that it held before
 * @preempt: its preempt count before
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

/* Nothing of the client is held, and nothing was as it must not be. */
#define PEER_EXPECT_IDLE(test, m)					\
do {									\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(m)->live));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(m)->wrong));		\
} while (0)

/**
 * struct peer_user - one who wants peer memory
 * @req: what is wanted
 * @region: what was got
 * @pin: the client's side of it, if a mock's
 * @trace: gets a word for each call; may be NULL
 * @on_revoke: called in revoke()
 * @arg: for @on_revoke
 * @any_caller: revoke() may come from a thread of a client that is not a mock
 * @lock: of @active, @revoked and of what the device does
 * @active: the device may use it
 * @revoked: but not any more
 * @revokes: calls of revoke()
 * @wrong: such calls that must not be, accesses to what is not mapped
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
 * struct peer_hold - holds up a call, which sleeps
 * @entered: completed by the call
 * @leave: lets it go
 * @in_time: it was let go before it gave up
 */
struct peer_hold {
	struct completion entered;
	struct completion leave;
	bool in_time;
};

void peer_hold_init(struct peer_hold *h);
void peer_hold_here(struct peer_hold *h);

/* Into so many parts the long cases are cut. */
#define PEER_ROUNDS	20

const void *peer_next_round(const void *prev, char *desc);
void peer_set_wait(struct kunit *test, unsigned int ms);
int peer_read(const char *client, const char *file, char *buf, size_t len);
u64 peer_count(struct kunit *test, const char *client, const char *file);

#endif
