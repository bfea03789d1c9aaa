/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of the software HCA that belong to a process, without one: they are made as ib_uverbs
 * makes them, and a case posts to their rings and polls them as librxe does.
 */
#ifndef KVT_EMU_PROCESS_H
#define KVT_EMU_PROCESS_H

#include <rdma/uverbs_ioctl.h>

#include "../drivers/emu/user/ring.h"
#include "emu/rig.h"

/* What a process has open. */
struct process {
	struct ib_ucontext context;		/* its context */
	struct uverbs_attr_bundle request;	/* the request that is being made */
	struct ib_device *ibdev;		/* the device */
	unsigned long page;			/* its memory: a page, the second half for answers */
};

/* The rings of a process's queue pair. */
struct process_rings {
	struct emu_uring *sq;			/* sends */
	struct emu_uring *rq;			/* receives; NULL with an SRQ */
};

struct process *process_new(struct kunit *test, struct ib_device *ibdev);
struct ib_cq *process_cq(struct kunit *test, struct process *p, int cqe, struct rig_end *e,
			 struct emu_uring **ring);
struct ib_srq *process_srq(struct kunit *test, struct process *p, struct ib_pd *pd, u32 max_wr,
			   u32 max_sge, struct emu_uring **ring);
int process_modify_srq(struct process *p, struct ib_srq *srq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct emu_uring **ring);
void process_make_qp(struct kunit *test, struct process *p, struct rig *r, struct rig_end *e,
		     struct process_rings *rings);

bool process_recv(struct emu_uring *ring, u64 id, const struct ib_sge *sge, int num);
bool process_post(struct emu_uring *ring, u64 id, u32 opcode, const struct ib_sge *sge, int num);
bool process_send(struct emu_uring *ring, u64 id, const struct ib_sge *sge, int num);
bool process_send_inline(struct emu_uring *ring, u64 id, const void *data, u32 length);
int process_doorbell(struct ib_qp *qp);
bool process_poll(struct emu_uring *ring, struct ib_uverbs_wc *wc);
u32 process_used(const struct emu_uring *ring);

#endif
