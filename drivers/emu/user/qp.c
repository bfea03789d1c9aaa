// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs of processes: their rings, and the keys that a process may use.
 */
#include "ring.h"
#include "user.h"

int emu_user_make_qp(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	int err;

	/* emu_create_qp() checks all limits, but only after the rings were allocated. */
	if (init->cap.max_inline_data > EMU_MAX_INLINE)
		return -EINVAL;
	err = emu_user_make_sq(qp, init, udata);
	if (!err && !init->srq)
		err = emu_user_make_rq(qp, init, udata);
	if (err)
		emu_user_free_qp(qp);
	return err;
}

int emu_user_publish_qp(struct emu_qp *qp, struct ib_udata *udata)
{
	struct rxe_create_qp_resp resp = {
		.rq_mi = emu_user_rq_info(qp->user_rq),
		.sq_mi = emu_user_sq_info(qp),
	};

	return emu_user_respond(udata, &resp, sizeof(resp));
}

void emu_user_free_qp(struct emu_qp *qp)
{
	emu_user_free_sq(qp);
	emu_user_free_rq(qp->user_rq);
}

/*
 * Copies elements that a process has posted, and replaces the local DMA key in them by one that
 * names nothing: it would give the process access to all memory, whatever the domain. All elements
 * of processes are copied here, so this is the only place that has to care.
 */
void emu_uring_copy_sges(struct ib_sge *to, const struct rxe_sge *from, u32 num_sge)
{
	u32 i;

	BUILD_BUG_ON(sizeof(*to) != sizeof(*from));
	emu_uring_copy(to, from, num_sge * sizeof(*to));
	for (i = 0; i < num_sge; i++) {
		if (unlikely(to[i].lkey == EMU_LOCAL_DMA_LKEY))
			to[i].lkey = 0;
	}
}
