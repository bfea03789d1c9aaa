/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Methods of the device for objects of processes, and of the kernel where a method is the same
 * for both.
 */
#ifndef KVERBS_EMU_UOBJECT_H
#define KVERBS_EMU_UOBJECT_H

#include <rdma/ib_verbs.h>

int emu_user_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct ib_udata *udata);
int emu_user_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int emu_user_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			struct ib_udata *udata);
int emu_user_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata);
int emu_user_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int emu_user_change_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
struct ib_mr *emu_user_reg_empty_mr(struct ib_pd *pd, u64 virt_addr, int access);
int emu_user_dereg_error(int err, const struct ib_udata *udata);

#endif
