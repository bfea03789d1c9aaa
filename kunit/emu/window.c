// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows of one end of a rig.
 */
#include "emu/rig.h"
#include "emu/window.h"
#include "lib/objects.h"

/**
 * win_new() - make a window, freed with the case
 * @test: the running case, which fails if the window cannot be allocated
 * @pd: PD of the window
 * @type: type of the window
 *
 * Return: the window.
 */
struct ib_mw *win_new(struct kunit *test, struct ib_pd *pd, enum ib_mw_type type)
{
	return KVT_OWN(test, ib_alloc_mw(pd, type), kvt_end_mw);
}
EXPORT_SYMBOL_GPL(win_new);

/**
 * win_free() - free a window now
 * @test: the case
 * @mw: a window made by win_new()
 */
void win_free(struct kunit *test, struct ib_mw *mw)
{
	kunit_release_action(test, kvt_end_mw, mw);
}
EXPORT_SYMBOL_GPL(win_free);

/**
 * win_bind() - post the binding of a window of either type
 * @e: end whose QP is used
 * @mw: the window
 * @mr: region to bind it to, or NULL
 * @at: first byte of the window, counted from the start of @mr
 * @len: bytes
 * @access: rights of peers, IB_ACCESS_*
 * @id: work request ID
 *
 * Return: as ib_post_send(); on success, @mw->rkey is the new key.
 */
int win_bind(struct rig_end *e, struct ib_mw *mw, struct ib_mr *mr, u64 at,
	     u64 len, int access, u64 id)
{
	struct ib_mw_bind bind = {
		.wr_id = id,
		.send_flags = IB_SEND_SIGNALED,
		.bind_info = {
			.mr = mr,
			.addr = (mr ? mr->iova : 0) + at,
			.length = len,
			.mw_access_flags = access,
		},
	};
	struct ib_bind_mw_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_BIND_MW,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mw = mw,
		.rkey = ib_inc_rkey(mw->rkey),
		.bind_info = bind.bind_info,
	};
	int ret;

	if (mw->type == IB_MW_TYPE_1)
		return ib_bind_mw(e->qp, mw, &bind);
	ret = ib_post_send(e->qp, &wr.wr, NULL);
	if (!ret)
		mw->rkey = wr.rkey;
	return ret;
}
EXPORT_SYMBOL_GPL(win_bind);
