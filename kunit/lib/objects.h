/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs objects that are freed when the case ends.
 */
#ifndef KVT_OBJECTS_H
#define KVT_OBJECTS_H

#include <rdma/ib_verbs.h>

#include "lib/lib.h"

/* Actions for the end of a case; kunit_release_action() calls them earlier. */
void kvt_end_device(void *ibdev);
void kvt_end_handler(void *handler);
void kvt_end_pd(void *pd);
void kvt_end_ah(void *ah);
void kvt_end_alloc_cq(void *cq);
void kvt_end_cq(void *cq);
void kvt_end_srq(void *srq);
void kvt_end_qp(void *qp);
void kvt_end_mr(void *mr);
void kvt_end_mw(void *mw);
void kvt_end_fmr(void *fmr);

/* A reference on the device @name, which the end of the case puts. */
#define kvt_device(test, name)						\
({									\
	struct ib_device *__ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN); \
									\
	KUNIT_ASSERT_NOT_NULL_MSG(test, __ibdev, "no device %s: load kverbs_emu", name); \
	kvt_defer(test, kvt_end_device, __ibdev);			\
	__ibdev;							\
})

struct ib_pd *kvt_pd(struct kunit *test, struct ib_device *ibdev);
void kvt_pd_put(struct kunit *test, struct ib_pd *pd);
void kvt_complete_context(struct ib_cq *cq, void *context);
struct ib_cq *kvt_cq(struct kunit *test, struct ib_device *ibdev, int cqe,
		     enum ib_poll_context ctx);
void kvt_cq_put(struct kunit *test, struct ib_cq *cq);
struct ib_srq *kvt_srq(struct kunit *test, struct ib_pd *pd, u32 max_wr, u32 max_sge);
struct ib_mr *kvt_mr(struct kunit *test, struct ib_pd *pd, u32 max_num_sg);
struct ib_qp *kvt_qp(struct kunit *test, struct ib_pd *pd, struct ib_qp_init_attr *init);
void kvt_qp_put(struct kunit *test, struct ib_qp *qp);
void kvt_qp_init(struct ib_qp_init_attr *init, struct ib_cq *scq, struct ib_cq *rcq);
int kvt_qp_to_init(struct ib_qp *qp, u32 port);
int kvt_qp_to_err(struct ib_qp *qp);
void kvt_hold_gid(const struct ib_gid_attr *attr);
void kvt_expect_kept(struct kunit *test, struct ib_device *ibdev,
		     struct rdma_restrack_entry *res, u32 id);

/* For KUNIT_CASE_PARAM(): which polling contexts a case runs in. */
const void *kvt_any_context(const void *prev, char *desc);
const void *kvt_scheduled_context(const void *prev, char *desc);
const void *kvt_sleeping_context(const void *prev, char *desc);
const void *kvt_queued_context(const void *prev, char *desc);
enum ib_poll_context kvt_context(struct kunit *test);

#endif
