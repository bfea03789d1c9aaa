// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: datagrams to multicast groups. Each thread has groups of its own, whose
 * members may be QPs of either device.
 */
#include "fuzz/fuzz.h"

/* Creates an AH for a group, to be used for one message. */
static struct ib_ah *group_ah(struct x_world *w, int qp, int group)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };
	union ib_gid gid;

	x_group_gid(w, group, &gid);
	rdma_ah_set_port_num(&attr, X_PORT);
	rdma_ah_set_dlid(&attr, x_group_lid(w, group));
	rdma_ah_set_grh(&attr, &gid, 0, 0, 1, 0);
	return rdma_create_ah(w->ptr[X_PD][w->qp[qp].pd], &attr, RDMA_CREATE_AH_SLEEPABLE);
}

static enum x_verdict post_to_group(struct x_world *w, const struct x_op *op, struct ib_ah *ah)
{
	bool right_key = op->r >> 28;
	struct x_qp *qp = &w->qp[op->a];
	struct ib_ud_wr ud = {};
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	if (x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, X_MCAST, &sge, op->r & 8 ? 64 : 32);
	wr->dest = right_key ? op->b % X_GROUPS : -1;
	ud.wr.opcode = IB_WR_SEND;
	ud.wr.sg_list = &sge;
	ud.wr.num_sge = 1;
	ud.ah = ah;
	ud.remote_qpn = IB_MULTICAST_QPN;
	ud.remote_qkey = right_key ? X_QKEY + w->id : X_NO_QKEY;
	return x_post_one(w, op->a, &ud.wr, wr, room ? 0 : -ENOMEM);
}

enum x_verdict x_mcast_send(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	enum x_verdict verdict;
	struct ib_ah *ah;

	/* Only a send that is executed at once: it must be over before the AH is destroyed. */
	if (!xm_there(w, X_QP, op->a) || qp->type != IB_QPT_UD || !x_may_send(qp) ||
	    !x_executes(qp))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ah = group_ah(w, op->a, op->b % X_GROUPS);
	if (IS_ERR(ah))
		return x_want(w, "address of a group", 0, PTR_ERR(ah));
	verdict = post_to_group(w, op, ah);
	if (!verdict)
		verdict = x_settle(w);
	if (ib_destroy_ah(ah))
		return x_fail(w, "the address of a group is not freed");
	return verdict;
}
