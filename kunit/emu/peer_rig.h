/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A card with memory of its own, which is a peer memory client, and traffic between
 * that memory and host memory over a connection of the software HCA.
 */
#ifndef KVT_EMU_PEER_RIG_H
#define KVT_EMU_PEER_RIG_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <rdma/ib_umem.h>
#include <rdma/peer_mem.h>

#include "emu/rig.h"

/* User address at which the card's memory begins. */
#define CARD_BASE	(1UL << 45)
#define CARD_PAGE	SZ_64K
#define CARD_SIZE	SZ_4M
#define CARD_PAGES	(CARD_SIZE / CARD_PAGE)

/* Fills memory that the card has taken back; fills buffers before a transfer. */
#define CARD_POISON	0x5a
#define CARD_FRESH	0xa5

#define PEER_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)
#define PEER_ACCESS	(IB_ACCESS_LOCAL_WRITE | PEER_REMOTE | IB_ACCESS_MW_BIND)

/* A card with memory, registered as a peer memory client. */
struct card {
	struct peer_memory_client_ex ex;	/* the client */
	void *handle;		/* handle of the registration */
	/* The core's function to invalidate a range, from the registration. */
	invalidate_peer_memory invalidate;
	/* Bus address of the memory if it belongs to a PCI device, else 0. */
	phys_addr_t phys;
	u8 *mem;		/* kernel address of the memory */
	/* XORed to page numbers of user addresses to get those of @mem: see card_at(). */
	size_t flip;
	bool unmaps;		/* the card, not the core, unmaps memory that the card takes back */
	struct mutex lock;	/* protects @pins, and number and mapping of each pin */
	struct list_head pins;	/* ranges that were acquired and not released, the newest first */
};

struct card *card_up(struct kunit *test, bool unmaps);
void card_end(struct kunit *test, struct card *c);
struct card *card_up_at(struct kunit *test, phys_addr_t phys, void *mem);
u8 *card_at(struct card *c, size_t offset);
void card_fill(struct card *c, size_t offset, size_t len, u8 value);
bool card_all(struct card *c, size_t offset, size_t len, u8 value);
void card_write(struct card *c, size_t offset, const u8 *from, size_t len);
bool card_holds(struct card *c, size_t offset, const u8 *want, size_t len);
struct ib_mr *card_mr(struct kunit *test, struct card *c, struct ib_pd *pd,
		      size_t offset, size_t len);
void card_mr_end(struct kunit *test, struct ib_mr *mr);
struct ib_mr *card_reg(struct ib_pd *pd, size_t offset, size_t len);
int card_take_back(struct card *c, u32 which);
bool card_has_taken_back(struct card *c, size_t offset);
void card_move(struct card *c);

/* A way to use memory of a card over a connection. */
struct use {
	const char *name;	/* description, the name of the test parameter */
	enum ib_wr_opcode op;	/* opcode of the work request that the first end posts */
	bool local;		/* the memory belongs to the first end */
	bool into;		/* the memory is written */
	int window;	/* type of the memory window through which the memory is accessed, or 0 */
	bool list;		/* the memory is in the middle of an SGE list */
	/* Status of the first end's work request if the memory was taken back. */
	enum ib_wc_status want;
	/* The same of the second end's receive; 0 if there is none, or it does not complete. */
	enum ib_wc_status want_recv;
};

#define USES	12
extern const struct use uses[USES];

/*
 * Offset of the MR in the card's memory, bytes at its start that no use accesses, and length
 * of the MR.
 */
#define USE_AT		(3 * CARD_PAGE - 4096)
#define USE_SKIP	512
#define USE_LEN		(2 * CARD_PAGE)

/* A connection, one end of which uses memory of a card. */
struct traffic {
	struct rig *r;		/* the connection */
	struct card *c;
	const struct use *use;	/* how the memory is used */
	struct ib_mr *mr;	/* MR of USE_LEN bytes of the card's memory from USE_AT on */
	struct ib_mw *mw;	/* window to all but the first USE_SKIP bytes of @mr, or NULL */
};

struct traffic *traffic_up_on(struct kunit *test, struct card *c,
			      const struct use *use, struct rig *r);
struct traffic *traffic_up(struct kunit *test, struct card *c,
			   const struct use *use, const struct rig_pair *pair);
void traffic_end(struct kunit *test, struct traffic *t);
void traffic_renew(struct kunit *test, struct traffic *t);
int traffic_post_recv(struct traffic *t, u64 id, u32 len);
int traffic_post(struct traffic *t, u64 id, u32 len);
void traffic_expect(struct kunit *test, struct traffic *t, u64 id,
		    enum ib_wc_status want, enum ib_wc_status want_recv);
u32 traffic_len(const struct traffic *t, u32 len);
u8 *traffic_host(struct traffic *t);
void traffic_fill(struct traffic *t, u32 len, u32 seed);
bool traffic_arrived(struct traffic *t, u32 len, u32 seed);
void traffic_pause(struct traffic *t);
int traffic_resume(struct traffic *t);

#endif
