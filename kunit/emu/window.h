/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers to allocate, bind and invalidate memory windows of one end of a rig.
 */
#ifndef KVT_EMU_WINDOW_H
#define KVT_EMU_WINDOW_H

#include <rdma/ib_verbs.h>
#include <kunit/test.h>

struct rig_end;

struct ib_mw *win_new(struct kunit *test, struct ib_pd *pd, enum ib_mw_type type);
void win_free(struct kunit *test, struct ib_mw *mw);
int win_bind(struct rig_end *e, struct ib_mw *mw, struct ib_mr *mr, u64 at,
	     u64 len, int access, u64 id);

#endif
