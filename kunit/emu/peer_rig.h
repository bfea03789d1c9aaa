/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A card with memory of its own, which is a peer memory client, and traffic between
 * that memory and host memory over a connection of the emulated HCA.
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

/**
 * struct card - a card with memory, registered as a peer memory client
 * @ex: the client
 * @handle: handle of the registration
 * @invalidate: the core's function to invalidate a range, from the registration
 * @phys: bus address of the memory if it belongs to a PCI device, else 0
 * @mem: kernel address of the memory
 * @flip: XORed to page numbers of user addresses to get those of @mem: see card_at()
 * @unmaps: the card, not the core, unmaps memory that the card takes back
 * @lock: protects @pins, and number and mapping of each pin
 * @pins: ranges that were acquired and not released, the newest first
 */
struct card {
	struct peer_memory_client_ex ex;
	void *handle;
	invalidate_peer_memory invalidate;
	phys_addr_t phys;
	u8 *mem;
	size_t flip;
	bool unmaps;
	struct mutex lock;
	struct list_head pins;
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

/**
 * struct use - a way to use memory of a card over a connection
 * @name: description, the name of the test parameter
 * @op: opcode of the work request that the first end posts
 * @local: the memory belongs to the first end
 * @into: the memory is written
 * @window: type of the memory window through which the memory is accessed, or 0
 * @list: the memory is in the middle of an SGE list
 * @want: status of the first end's work request if the memory was taken back
 * @want_recv: the same of the second end's receive; 0 if there is none, or it does not
 *	complete
 */
struct use {
	const char *name;
	enum ib_wr_opcode op;
	bool local;
	bool into;
	int window;
	bool list;
	enum ib_wc_status want;
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

/**
 * struct traffic - a connection, one end of which uses memory of a card
 * @r: the connection
 * @c: the card
 * @use: how the memory is used
 * @mr: MR of USE_LEN bytes of the card's memory from USE_AT on
 * @mw: window to all but the first USE_SKIP bytes of @mr, or NULL
 */
struct traffic {
	struct rig *r;
	struct card *c;
	const struct use *use;
	struct ib_mr *mr;
	struct ib_mw *mw;
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
void traffic_reconnect(struct kunit *test, struct traffic *t);
void traffic_pause(struct traffic *t);
int traffic_resume(struct traffic *t);

#endif
