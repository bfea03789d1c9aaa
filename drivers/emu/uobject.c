// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of processes, each made in three steps: what the process shares, the queue of this
 * driver, and the answer that tells the process where to map the former. How the core ends an
 * object differs between the files core_*.c.
 */
#include "core.h"
#include "device.h"
#include "memory/region.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "uobject.h"
#include "user/user.h"

/* Context: Process, that of the request, as of the following. */
int emu_user_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct ib_udata *udata)
{
	struct ib_cq_init_attr behind = *attr;
	struct emu_cq *cq = to_ecq(ibcq);
	int err;

	err = emu_user_make_cq(cq, attr->cqe, udata);
	if (err)
		return err;
	behind.cqe = emu_user_cqe(attr->cqe);
	err = emu_device_create_cq(ibcq, &behind, NULL);
	if (err) {
		emu_user_free_cq(cq);
		return err;
	}
	err = emu_user_publish_cq(cq, udata);
	if (err)
		emu_core_destroy_cq(ibcq, NULL);
	return err;
}

int emu_user_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);
	int err;

	err = emu_user_make_qp(qp, init, udata);
	if (err)
		return err;
	err = emu_device_create_qp(ibqp, init, udata);
	if (err) {
		emu_user_free_qp(qp);
		return err;
	}
	err = emu_user_publish_qp(qp, udata);
	if (err)
		emu_core_destroy_qp(ibqp, NULL);
	return err;
}

int emu_user_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			struct ib_udata *udata)
{
	struct emu_srq *srq = to_esrq(ibsrq);
	int err;

	err = emu_user_make_srq(srq, init, udata);
	if (err)
		return err;
	err = emu_create_srq(ibsrq, init, udata);
	if (err) {
		emu_user_free_rq(srq->user_rq);
		return err;
	}
	err = emu_user_publish_srq(srq, udata);
	if (err)
		emu_core_destroy_srq(ibsrq, NULL);
	return err;
}

/* The core passes a process's request on as it is. */
int emu_user_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	if ((mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT)) ||
	    ((mask & IB_SRQ_MAX_WR) && attr->max_wr > ibsrq->device->attrs.max_srq_wr))
		return -EINVAL;
	/*
	 * What cannot be changed in full is not changed in part: after an error a process goes on
	 * with the ring that it has. A limit from before is at most the receives that are there.
	 */
	if ((mask & IB_SRQ_MAX_WR) && (mask & IB_SRQ_LIMIT) && attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (udata && (mask & IB_SRQ_MAX_WR)) {
		int err = emu_user_resize_srq(to_esrq(ibsrq), attr->max_wr, udata);

		if (err)
			return err;
		mask &= ~IB_SRQ_MAX_WR;
	}
	return emu_modify_srq(ibsrq, attr, mask, udata);
}

/* A process's notifications are not deferred. */
int emu_user_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	return to_ecq(ibcq)->user ? -EOPNOTSUPP : emu_modify_cq(ibcq, count, period);
}

int emu_user_change_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	if (udata)
		return emu_user_resize_cq(to_ecq(ibcq), cqe, udata);
	return emu_resize_cq(ibcq, cqe, NULL);
}

/* There is no memory to pin for a region of length 0, which processes can have. */
struct ib_mr *emu_user_reg_empty_mr(struct ib_pd *pd, u64 virt_addr, int access)
{
	struct ib_mr *ibmr = emu_reg_empty_mr(pd, virt_addr, access);

	if (!IS_ERR(ibmr))
		emu_open_mr(ibmr);
	return ibmr;
}

/* To a process, a region with windows is in use. */
int emu_user_dereg_error(int err, const struct ib_udata *udata)
{
	return err == -EINVAL && udata ? -EBUSY : err;
}
