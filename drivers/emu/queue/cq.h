/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completion queues, and the producers' side of them; see cq.c.
 *
 *	preempt_disable();
 *	cqe = emu_cq_begin(cq, &pos);
 *	if (cqe) {
 *		... every field of *cqe ...
 *		emu_cq_end(cq, cqe, pos, solicited);
 *	}
 *	preempt_enable();
 *
 * Any number of producers may do this at a time, in any context but NMI.
 * Preemption is off from emu_cq_begin() to emu_cq_end(), because pollers stop at
 * an entry that is not published.
 */
#ifndef KVERBS_EMU_CQ_H
#define KVERBS_EMU_CQ_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/stddef.h>
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "../lib/apart.h"
#include "../lib/emu.h"
#include "../lib/fault.h"
#include "user.h"

/* How a queue is armed: for solicited completions, or for any. */
#define EMU_ARM_SOLICITED	BIT(0)
#define EMU_ARM_NEXT		BIT(1)
/* A notification is deferred; see moderation.c. */
#define EMU_ARM_DEFERRED	BIT(2)
/* The notification is deferred until emu_cq.due. */
#define EMU_ARM_DUE		BIT(3)
/* The timer is queued, or whoever set this is about to queue it. */
#define EMU_ARM_TIMER		BIT(4)
/* A process reads the completions, and is notified in another way; see user.h. */
#define EMU_ARM_USER		BIT(5)

/* The first bytes of an entry, which are laid out as in struct ib_wc and copied as they are. */
#define EMU_WC_PREFIX		offsetof(struct ib_wc, port_num)

/**
 * struct emu_cqe - an entry of a completion queue, one cache line
 * @wr_id: as in &struct ib_wc, like all up to @dlid_path_bits
 * @status: enum ib_wc_status
 * @opcode: enum ib_wc_opcode; a receive has %IB_WC_RECV set after an error too
 * @vendor_err: where an error was found, enum emu_syndrome; with %IB_WC_WITH_SMAC, see
 *	emu_cqe_set_sender(), as @slid
 * @byte_len: bytes received or read
 * @qp: the queue pair; an odd number if it was destroyed or reset meanwhile, see cq.c
 * @origin: where the message came from, and what else is the same for all messages of a
 *	connection: the next ten
 * @ex: immediate data or invalidated key
 * @src_qp: number of the sender's queue pair
 * @slid: sender's LID
 * @wc_flags: IB_WC_*
 * @pkey_index: index of the P_Key
 * @sl: service level
 * @dlid_path_bits: 0
 * @retires: entries of the work queue that have ended since its last completion
 * @port_num: port through which the message came in
 * @network_hdr_type: valid with %IB_WC_WITH_NETWORK_HDR_TYPE
 * @stamp: low half of the time at which it was written, or 0; see ib_cq_stamp()
 * @seq: position + 1 once the entry is valid; see cq.c
 */
struct emu_cqe {
	u64 wr_id;
	u32 status;
	u32 opcode;
	u32 vendor_err;
	u32 byte_len;
	struct ib_qp *qp;

	struct_group_tagged(emu_cqe_origin, origin,
		union {
			__be32 imm_data;
			u32 invalidate_rkey;
		} ex;
		u32 src_qp;
		u32 slid;
		u32 wc_flags;
		u16 pkey_index;
		u8 sl;
		u8 dlid_path_bits;
		u16 retires;
		u8 port_num;
		u8 network_hdr_type;
	);
	u32 stamp;
	u32 seq;
} __aligned(64);
static_assert(sizeof(struct emu_cqe) == 64);
static_assert(offsetof(struct emu_cqe, retires) == EMU_WC_PREFIX);
static_assert(offsetof(struct ib_wc, status) == offsetof(struct emu_cqe, status));
static_assert(offsetof(struct ib_wc, byte_len) == offsetof(struct emu_cqe, byte_len));
static_assert(offsetof(struct ib_wc, qp) == offsetof(struct emu_cqe, qp));
static_assert(offsetof(struct ib_wc, ex) == offsetof(struct emu_cqe, ex));
static_assert(offsetof(struct ib_wc, wc_flags) == offsetof(struct emu_cqe, wc_flags));
static_assert(offsetof(struct ib_wc, pkey_index) == offsetof(struct emu_cqe, pkey_index));
static_assert(EMU_MAX_QP_WR <= U16_MAX);

/**
 * struct emu_cq_ring - the entries of a queue between two changes of its size
 * @entries: their number is a power of two
 * @mask: number of entries, less one
 * @room: number of entries that it may hold; 0 when the queue is in error
 * @sealed: nobody writes into it any more
 * @next: the ring that took its place, or NULL
 * @head: position of the next entry to reserve
 * @tail: position of the next entry to poll
 */
struct emu_cq_ring {
	struct emu_cqe *entries;
	u32 mask;
	s32 room;
	bool sealed;
	struct emu_cq_ring *next;
	atomic_t head ____cacheline_aligned_in_smp;
	atomic_t tail ____cacheline_aligned_in_smp;
};
emu_apart(struct emu_cq_ring, next, head);
emu_apart(struct emu_cq_ring, head, tail);

/**
 * struct emu_cq - a completion queue
 * @ibcq: what the midlayer sees
 * @in: where completions are written: the newest ring
 * @out: where they are polled: the oldest ring with something in it
 * @overrun: the queue is in error, most often because a completion was lost; it
 *	takes in nothing any more
 * @moderation: when to send a notification that is deferred: after this many
 *	completions (bits 0 to 15) or microseconds (from bit 16 on); 0 for no
 *	moderation
 * @arm: EMU_ARM_* bits
 * @armed_at: position behind the newest entry at the time when the queue was
 *	armed; only kept with @moderation
 * @due: when to send a notification that is deferred, in nanoseconds of
 *	CLOCK_MONOTONIC
 * @timer: sends it at that time
 * @lost: completions that found no room
 * @overflow: 1 if the next completion is to find no room, by an injected fault
 * @resize_lock: serialises changes of size, and the striking out of entries
 * @rings: the oldest ring that has not been freed
 * @index: in &emu_device.cqs
 * @user: the process's side of it, or NULL
 */
struct emu_cq {
	struct ib_cq ibcq;
	struct emu_cq_ring *in;
	struct emu_cq_ring *out;
	bool overrun;
	u32 moderation;
	atomic_t arm ____cacheline_aligned_in_smp;
	u32 armed_at;
	atomic64_t due;
	struct hrtimer timer;
	atomic_t lost;
	atomic_t overflow;
	struct mutex resize_lock;
	struct emu_cq_ring *rings;
	u32 index;
	struct emu_user_cq *user;
};
emu_apart(struct emu_cq, moderation, arm);

/**
 * struct emu_cq_place - a completion, found in a queue that has one poller
 * @ring: the ring that it is in
 * @cqe: the entry
 * @qp: its queue pair, which stays in memory while preemption is off
 */
struct emu_cq_place {
	struct emu_cq_ring *ring;
	const struct emu_cqe *cqe;
	struct emu_qp *qp;
};

static inline struct emu_cq *to_ecq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct emu_cq, ibcq);
}

/* Makes the next completion find @cq full. Any context but NMI. */
static inline void emu_cq_overflow_next(struct emu_cq *cq)
{
	atomic_set(&cq->overflow, 1);
}

/* Whether a fault makes this completion find @cq full. Any context but NMI. */
static inline bool emu_cq_fault_overflow(struct emu_cq *cq)
{
	return static_branch_unlikely(&emu_faulty) &&
	       ((atomic_read(&cq->overflow) && atomic_xchg(&cq->overflow, 0)) ||
		emu_fault_in_cqe(to_edev(cq->ibcq.device)));
}

/* Whether a fault makes @cq lose a notification that is due. Any context but NMI. */
static inline bool emu_cq_fault_notify(struct emu_cq *cq)
{
	return static_branch_unlikely(&emu_faulty) &&
	       emu_fault_in_notify(to_edev(cq->ibcq.device));
}

/* cq.c */
int emu_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs);
int emu_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int emu_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int emu_peek_cq(struct ib_cq *ibcq, int wc_cnt);
int emu_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int emu_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags, bool by_core);
bool emu_cq_front(struct emu_cq *cq, struct emu_cq_place *at);
void emu_cq_pop(const struct emu_cq_place *at);
void emu_cq_forget_qp(struct emu_cq *cq, struct emu_qp *qp);
void emu_cq_fail(struct emu_cq *cq);
void emu_cq_overrun(struct emu_cq *cq);
void emu_cq_wake(struct emu_cq *cq, u32 pos, bool solicited);

/* moderation.c */
int emu_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
bool emu_cq_defer(struct emu_cq *cq, u32 pos, int *arm);
void emu_cq_send_deferred(struct emu_cq *cq);
void emu_cq_moderation_init(struct emu_cq *cq);
void emu_cq_moderation_exit(struct emu_cq *cq);

/*
 * On Ethernet, the completion of a datagram has the sender's MAC address and VLAN. An entry has no
 * fields for them, so they replace vendor_err and slid, which are 0 then.
 */
static inline void emu_cqe_set_sender(struct emu_cqe *cqe, const u8 *smac, u16 vlan_id)
{
	memcpy(&cqe->vendor_err, smac, sizeof(cqe->vendor_err));
	cqe->slid = (u32)(smac[4] << 8 | smac[5]) << 16 | vlan_id;
}

static inline void emu_wc_get_sender(struct ib_wc *wc)
{
	memcpy(wc->smac, &wc->vendor_err, sizeof(wc->vendor_err));
	wc->smac[4] = wc->slid >> 24;
	wc->smac[5] = wc->slid >> 16;
	wc->vlan_id = wc->slid & 0xffff;
	wc->vendor_err = 0;
	wc->slid = 0;
}

static inline struct emu_cqe *emu_cq_entry(const struct emu_cq_ring *ring, u32 pos)
{
	return &ring->entries[pos & ring->mask];
}

/*
 * Reserves an entry. Returns NULL if the queue is full: the completion is lost,
 * the queue is in error from then on, and the caller puts the queue pair in
 * error too.
 */
static inline struct emu_cqe *emu_cq_begin(struct emu_cq *cq, u32 *ppos)
{
	/* acquire: pair E */
	struct emu_cq_ring *ring = smp_load_acquire(&cq->in);
	u32 pos = atomic_read(&ring->head);
	u32 used;

	for (;;) {
		u32 stale = pos;

		kverbs_delay("emu_cq_begin");
		/* acquire: pair B */
		used = pos - (u32)atomic_read_acquire(&ring->tail);
		/* Unsigned, so one comparison also finds a negative difference. */
		if (unlikely(used >= (u32)READ_ONCE(ring->room) || emu_cq_fault_overflow(cq))) {
			/*
			 * Negative: pos is so stale that its entry has been polled already. Then the
			 * head has moved on; if it has not, the ring is corrupt.
			 */
			if ((s32)used < 0) {
				pos = atomic_read(&ring->head);
				if (pos != stale)
					continue;
			}
			emu_cq_overrun(cq);
			return NULL;
		}
		if (likely(atomic_try_cmpxchg_relaxed(&ring->head, (int *)&pos, pos + 1)))
			break;
	}
	*ppos = pos;
	return emu_cq_entry(ring, pos);
}

static inline void emu_cq_end(struct emu_cq *cq, struct emu_cqe *cqe, u32 pos, bool solicited)
{
	cqe->stamp = 0;
	if (ib_cq_timing())
		cqe->stamp = ib_cq_stamp();
	/* release: pair A */
	smp_store_release(&cqe->seq, pos + 1);

	/* full barrier: pair C */
	smp_mb();
	if (unlikely(atomic_read(&cq->arm)))
		emu_cq_wake(cq, pos, solicited);
}

#endif
