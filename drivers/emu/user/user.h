/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space verbs: the user ABI of rdma_rxe, by which librxe, the provider that every
 * distribution has, drives the software HCA. Documentation/userspace.rst is about it.
 *
 * The functions below are for the methods of the device. An object is made in two steps: "make"
 * before the queue of this driver exists, "publish" after it does; the latter tells the process
 * where to map its memory. "free" undoes both; the queue is gone then, and a grace period over.
 * Each does nothing to an object of the kernel.
 */
#ifndef KVERBS_EMU_USER_H
#define KVERBS_EMU_USER_H

#include "../lib/emu.h"
#include "../queue/cq.h"
#include "../queue/qp.h"

/**
 * struct emu_user_ah - an address handle that a process can name
 * @ah: the address handle
 * @num: its number, or 0
 */
struct emu_user_ah {
	struct emu_ah ah;
	u32 num;
};

/* main.c */
int emu_user_init(void);
void emu_user_exit(void);
void emu_user_setup(struct ib_device *ibdev);
int emu_user_respond(struct ib_udata *udata, const void *resp, size_t bytes);
struct ib_ucontext *emu_user_context(struct ib_udata *udata);

/* cq.c */
int emu_user_make_cq(struct emu_cq *cq, u32 cqe, struct ib_udata *udata);
int emu_user_publish_cq(struct emu_cq *cq, struct ib_udata *udata);
void emu_user_quiesce_cq(struct emu_cq *cq);
void emu_user_free_cq(struct emu_cq *cq);
int emu_user_resize_cq(struct emu_cq *cq, int cqe, struct ib_udata *udata);
void emu_user_completed(struct emu_cq *cq, bool solicited);
void emu_user_settle_cq(struct emu_cq *cq);
u32 emu_user_cqe(u32 cqe);

/* send.c */
int emu_user_make_sq(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
void emu_user_free_sq(struct emu_qp *qp);
u32 emu_user_sends_end(const struct emu_qp *qp);
void emu_user_drop_sends(struct emu_qp *qp, u32 end);
void emu_user_retired_sends(const struct emu_qp *qp);
bool emu_user_fetch(struct emu_qp *qp, struct emu_refusal *refusal);
struct mminfo emu_user_sq_info(const struct emu_qp *qp);

/* recv.c */
int emu_user_make_rq(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
void emu_user_free_rq(struct emu_user_rq *rq);
void emu_user_reset_rq(struct emu_qp *qp);
void emu_user_watch_recvs(struct emu_qp *qp);
void emu_user_retired_recvs(const struct emu_qp *qp);
enum emu_outcome emu_user_claim(struct emu_user_rq *rq, u64 room, struct emu_rwqe *copy);
u32 emu_user_used(struct emu_user_rq *rq);
u32 emu_user_depth(const struct emu_user_rq *rq);
struct mminfo emu_user_rq_info(const struct emu_user_rq *rq);
int emu_user_make_srq(struct emu_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int emu_user_publish_srq(struct emu_srq *srq, struct ib_udata *udata);
int emu_user_resize_srq(struct emu_srq *srq, u32 max_wr, struct ib_udata *udata);

/* ah.c */
int emu_user_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int emu_user_destroy_ah(struct ib_ah *ibah, u32 flags);
bool emu_user_find_av(u32 num, const struct ib_pd *pd, struct emu_av *av);

/* dmabuf.c */
struct ib_mr *emu_user_reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd,
				  int access);
int emu_user_dereg_dmabuf(struct ib_mr *ibmr);

/* qp.c */
int emu_user_make_qp(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int emu_user_publish_qp(struct emu_qp *qp, struct ib_udata *udata);
void emu_user_free_qp(struct emu_qp *qp);

#endif
