/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files about verbs objects share.
 */
#ifndef KVERBS_VERBS_H
#define KVERBS_VERBS_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

struct ib_verb_call;

/* verbs.c */
struct ib_pd *ib_alloc_pd_without_keys(struct ib_device *device,
				       const char *caller);

/* user.c */
extern const u64 ib_user_requests;

/* The part of ib_qp.known_state that is the state. */
#define IB_QP_KNOWN_STATE	0xffUL

/* The state that the consumer set last. Any context. */
static inline enum ib_qp_state ib_qp_known_state(const struct ib_qp *qp)
{
	return READ_ONCE(qp->known_state) & IB_QP_KNOWN_STATE;
}

/* qp.c */
int ib_modify_qp_for(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata, unsigned long site);

/* qp_state.c */
void ib_modify_qp_refused(const struct ib_verb_call *call, const struct ib_qp *qp,
			  enum ib_qp_state from, const struct ib_qp_attr *attr, u32 mask);

/* notify.c */
void ib_notify_init_qp(struct ib_qp *qp);
void ib_notify_init_srq(struct ib_srq *srq);
void ib_notify_free_qp(struct ib_qp *qp);
void ib_notify_free_srq(struct ib_srq *srq);

/* datapath.c */
int ib_post_send_for(struct ib_qp *qp, const struct ib_send_wr *wr, unsigned long site);
int ib_post_recv_for(struct ib_qp *qp, const struct ib_recv_wr *wr, unsigned long site);

/* mr.c */
int ib_mr_check_access(const struct ib_verb_call *call, struct ib_device *device, int access);
void ib_mr_need_key(const struct ib_device *device, const struct ib_mr *mr, const char *method,
		    unsigned long site);
void ib_mr_fill(struct ib_mr *mr, struct ib_pd *pd, enum ib_mr_type type, struct ib_umem *umem);
void ib_mr_list(struct ib_mr *mr, unsigned long site);
int ib_mr_free(struct ib_mr *mr, struct ib_udata *udata, unsigned long site);
void ib_mr_pool_empty(struct ib_qp *qp, struct list_head *list, unsigned long site);

/* ah.c */
int ib_ah_attr_fill(const struct ib_verb_call *call, struct ib_device *device,
		    const char *name, struct rdma_ah_attr *ah_attr,
		    const struct ib_gid_attr **passed);
int ib_ah_attr_resolve(struct rdma_ah_attr *ah_attr);
void ib_ah_attr_unfill(struct rdma_ah_attr *ah_attr,
		       const struct ib_gid_attr *passed);
void ib_ah_set_sgid(const struct ib_gid_attr **slot,
		    const struct rdma_ah_attr *ah_attr);
void ib_ah_put_sgid(const struct ib_gid_attr **slot);

#endif
