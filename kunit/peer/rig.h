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

/* How a client invalidates memory. */
enum peer_kind {
	PEER_UNMAPS,		/* the client invalidates memory and unmaps it itself */
	PEER_CORE,		/* the client invalidates memory and the core unmaps it */
	PEER_NEVER,		/* the client cannot invalidate */
};

/* A mock client. */
struct peer_mock {
	struct peer_memory_client_ex ex;	/* the client as registered with the core */
	int nr;	/* number of the client; acquire() accepts addresses from PEER_BASE(@nr) on */
	enum peer_kind kind;	/* how it invalidates memory */
	void *handle;		/* handle of its registration, NULL if it is not registered */
	/* The core's invalidate function, got at registration. */
	invalidate_peer_memory invalidate;
	unsigned long page_size;	/* page size in bytes */
	/* Gets a word for each call but get_page_size(), and for invalidations; may be NULL. */
	struct kvt_trace *trace;
	const char *tag;	/* prefix of these words */
	bool quiet;		/* no words for invalidations */
	int ret[PEER_CALLS];	/* for each function, a result to return instead, after @on, or 0 */

	/* For each function, a hook called before it does anything; may be NULL. */
	void (*on[PEER_CALLS])(struct peer_pin *pin);
	/* Makes the table and sets the count, instead of the mock; may be NULL. */
	int (*fill)(struct peer_pin *pin, struct sg_table *sgt, int *nmap);
	bool fill_early;	/* the table is made in get_pages(), not in dma_map() */
	void *arg;		/* for @on and @fill */
	u8 data[IB_PEER_MEMORY_DATA_MAX];	/* private data that the last acquire() got */
	bool has_data;		/* whether it got any */
	/* Name that the last acquire() got, or "-" if it got none. */
	char name[IB_PEER_MEMORY_NAME_MAX];
	/* Guards @pins, the state of the pins, @data, @has_data and @name. */
	spinlock_t lock;
	struct list_head pins;	/* pins that were acquired and not released */
	atomic_t live;		/* number of @pins */
	atomic_t calls[PEER_CALLS];	/* how often each function was called */
	atomic_t wrong;		/* calls that the core must not make, or not in that way */
};

/* State of a pin; see the table of legal moves in rig.c. */
enum peer_state {
	PEER_ACQUIRED,
	PEER_PINNED,
	PEER_MAPPED,
	PEER_UNMAPPED,
	PEER_FREED,
	PEER_RELEASED,
};

/* A range of a client's memory that the core has acquired. */
struct peer_pin {
	struct list_head entry;		/* in &peer_mock.pins */
	struct peer_mock *mock;		/* the client */
	/* Held from acquire() to release(), by the user, and by callers of peer_mock_pin(). */
	refcount_t ref;
	unsigned long addr;		/* first address */
	size_t size;			/* length in bytes */
	u64 number;			/* core context that get_pages() got */
	enum peer_state state;		/* state of the pin */
	bool write;			/* the device may write to the memory */
	struct task_struct *maker;	/* thread in which it was acquired */
	struct device *device;		/* device that the memory is mapped for */
	struct sg_table *sgt;		/* the core's table of the memory */
	struct sg_table copy;		/* copy of @sgt as the mock filled it */
	struct scatterlist *sgl;	/* copy of the entries of @sgt */
	int nmap;			/* number of mapped entries, or PEER_SILENT */
	atomic_t inside;	/* calls of the client's functions that are running for this pin */
	int invalidating;		/* threads in the core's invalidate function for this pin */
	wait_queue_head_t idle;		/* woken when @invalidating drops to 0 */
};

/* A thread that has called one of the core's functions. */
struct peer_visit {
	struct list_head entry;		/* in the list of all visits */
	struct task_struct *task;	/* the thread */
	int depth;			/* number of locks that the thread held before the call */
	int preempt;			/* preempt count of the thread before the call */
};

void peer_visit_begin(struct peer_visit *v);
void peer_visit_end(struct peer_visit *v);
bool peer_visit_right(void);

struct peer_mock *peer_mock_new(struct kunit *test, int nr, const char *name, enum peer_kind kind);
int peer_mock_register(struct peer_mock *m);
void peer_mock_unregister(struct peer_mock *m);
struct peer_mock *peer_mock_up(struct kunit *test, int nr, const char *name, enum peer_kind kind);
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

/* A user of peer memory. */
struct peer_user {
	struct peer_request req;	/* the request for the memory */
	struct peer_region *region;	/* the region that the user has got, or NULL */
	struct peer_pin *pin;		/* pin of the region, if it is one of a mock client */
	struct kvt_trace *trace;	/* gets a word for each call; may be NULL */
	void (*on_revoke)(struct peer_user *u);	/* called in revoke(); may be NULL */
	void *arg;			/* for @on_revoke */
	/* Revoke() may be called by a thread of a client that is not a mock. */
	bool any_caller;
	/* Guards @active and @revoked, and is held while the device accesses the memory. */
	spinlock_t lock;
	bool active;			/* the region was activated and not yet stopped or put */
	bool revoked;			/* the device must not access the memory any more */
	atomic_t revokes;		/* calls of revoke() */
	/* Calls of revoke() that the core must not make, and accesses to unmapped memory. */
	atomic_t wrong;
};

void peer_user_init(struct peer_user *u, unsigned long addr, size_t size);
struct peer_user *peer_user_new(struct kunit *test, unsigned long addr, size_t size);
int peer_user_get(struct peer_user *u);
void peer_user_activate(struct peer_user *u);
void peer_user_stop(struct peer_user *u);
void peer_user_put(struct peer_user *u);
void peer_user_access(struct peer_user *u);

/* Number of rounds that a long case is split into. */
#define PEER_ROUNDS	20

const void *peer_next_round(const void *prev, char *desc);
void peer_set_wait(struct kunit *test, unsigned int ms);
int peer_read(const char *client, const char *file, char *buf, size_t len);
u64 peer_count(struct kunit *test, const char *client, const char *file);

#endif
