// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs of processes: their queues, and what a list of elements may name.
 */
#include "ring.h"
#include "user.h"

int emu_user_make_qp(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	int err;

	/* Bounds the memory, before this is checked with all else. */
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
 * The one place that keeps a process from using the local DMA key, which gives access to all of
 * memory whatever the domain: each element that a process posts comes through here, and that key
 * is replaced by one that names nothing.
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
