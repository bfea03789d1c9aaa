// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects that a client can leave on a device. They are made in this module, so that the
 * contract checker's reports name it and the functions below.
 */
#include <rdma/ib_cache.h>

#include "contract/objects.h"

#define UNMAKES(name, call)							\
static void name(struct objects *t)						\
{										\
	call;									\
}

noinline int thing_make_pd(struct objects *t)
{
	t->own_pd = CONTRACT_CALL(ib_alloc_pd(t->m->ibdev, 0));
	return PTR_ERR_OR_ZERO(t->own_pd);
}

void thing_unmake_pd(struct objects *t)
{
	ib_dealloc_pd(t->own_pd);
}

noinline int thing_make_cq(struct objects *t)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };

	t->own_cq = CONTRACT_CALL(ib_create_cq(t->m->ibdev, NULL, NULL, NULL, &attr));
	return PTR_ERR_OR_ZERO(t->own_cq);
}

UNMAKES(unmake_cq, ib_destroy_cq(t->own_cq))

static noinline int make_polled_cq(struct objects *t)
{
	t->own_cq = CONTRACT_CALL(ib_alloc_cq(t->m->ibdev, NULL, 16, 0, IB_POLL_SOFTIRQ));
	return PTR_ERR_OR_ZERO(t->own_cq);
}

UNMAKES(unmake_polled_cq, ib_free_cq(t->own_cq))

noinline int thing_make_qp(struct objects *t)
{
	struct ib_qp_init_attr init;

	kvt_qp_init(&init, t->cq, t->cq);
	t->qps[0] = CONTRACT_CALL(ib_create_qp(t->pd, &init));
	return PTR_ERR_OR_ZERO(t->qps[0]);
}

UNMAKES(unmake_qp, ib_destroy_qp(t->qps[0]))

static noinline int make_srq(struct objects *t)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	t->srq = CONTRACT_CALL(ib_create_srq(t->pd, &init));
	return PTR_ERR_OR_ZERO(t->srq);
}

UNMAKES(unmake_srq, ib_destroy_srq(t->srq))

noinline int thing_make_mr(struct objects *t)
{
	t->mr = CONTRACT_CALL(ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, 1));
	return PTR_ERR_OR_ZERO(t->mr);
}

void thing_unmake_mr(struct objects *t)
{
	ib_dereg_mr(t->mr);
}

static noinline int make_mw(struct objects *t)
{
	t->mw = CONTRACT_CALL(ib_alloc_mw(t->pd, IB_MW_TYPE_2));
	return PTR_ERR_OR_ZERO(t->mw);
}

UNMAKES(unmake_mw, ib_dealloc_mw(t->mw))

static noinline int make_fmr(struct objects *t)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };

	t->fmr = CONTRACT_CALL(ib_alloc_fmr(t->pd, 0, &attr));
	return PTR_ERR_OR_ZERO(t->fmr);
}

UNMAKES(unmake_fmr, ib_dealloc_fmr(t->fmr))

static noinline int make_ah(struct objects *t)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };

	rdma_ah_set_port_num(&attr, 1);
	t->ah = CONTRACT_CALL(rdma_create_ah(t->pd, &attr, 0));
	return PTR_ERR_OR_ZERO(t->ah);
}

UNMAKES(unmake_ah, rdma_destroy_ah(t->ah, 0))

noinline int thing_make_ca(struct objects *t)
{
	struct ib_ca_request req = { .op = KVERBS_CA_OPEN, .version = KVERBS_CA_VERSION };
	int ret = CONTRACT_CALL(ib_ca_call(t->m->ibdev, &req));

	t->ca = req.handle;
	return ret;
}

void thing_unmake_ca(struct objects *t)
{
	struct ib_ca_request req = {
		.op = KVERBS_CA_CLOSE, .version = KVERBS_CA_VERSION, .handle = t->ca,
	};

	ib_ca_call(t->m->ibdev, &req);
}

void thing_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
}

int thing_make_handler(struct objects *t)
{
	INIT_IB_EVENT_HANDLER(&t->handler, t->m->ibdev, thing_on_event);
	ib_register_event_handler(&t->handler);
	return 0;
}

noinline void thing_unmake_handler(struct objects *t)
{
	ib_unregister_event_handler(&t->handler);
	barrier();
}

static noinline int make_share(struct objects *t)
{
	t->shared = CONTRACT_CALL(ib_cq_pool_get(t->m->ibdev, 8, -1, IB_POLL_SOFTIRQ));
	return PTR_ERR_OR_ZERO(t->shared);
}

UNMAKES(unmake_share, ib_cq_pool_put(t->shared, 8))

/* References to GID attributes, taken by each call that takes one. */

noinline int thing_make_gid(struct objects *t)
{
	t->gid = CONTRACT_CALL(rdma_get_gid_attr(t->m->ibdev, 1, 1));
	return PTR_ERR_OR_ZERO(t->gid);
}

void thing_unmake_gid(struct objects *t)
{
	rdma_put_gid_attr(t->gid);
}

static noinline int find_gid(struct objects *t)
{
	t->gid = CONTRACT_CALL(rdma_find_gid(t->m->ibdev, &t->m->port[1].gids[1],
					     IB_GID_TYPE_IB, NULL));
	return PTR_ERR_OR_ZERO(t->gid);
}

static noinline int find_gid_by_port(struct objects *t)
{
	t->gid = CONTRACT_CALL(rdma_find_gid_by_port(t->m->ibdev, &t->m->port[1].gids[1],
						     IB_GID_TYPE_IB, 1, NULL));
	return PTR_ERR_OR_ZERO(t->gid);
}

static bool any_gid(const union ib_gid *gid, const struct ib_gid_attr *attr, void *context)
{
	return true;
}

static noinline int find_gid_by_filter(struct objects *t)
{
	t->gid = CONTRACT_CALL(rdma_find_gid_by_filter(t->m->ibdev, &t->m->port[1].gids[1], 1,
						       any_gid, NULL));
	return PTR_ERR_OR_ZERO(t->gid);
}

/* The reference left is that of rdma_hold_gid_attr(); the lookup's is put. */
static noinline int hold_gid(struct objects *t)
{
	const struct ib_gid_attr *gid = CONTRACT_CALL(rdma_get_gid_attr(t->m->ibdev, 1, 1));

	if (IS_ERR(gid))
		return PTR_ERR(gid);
	t->gid = gid;
	rdma_hold_gid_attr(gid);
	rdma_put_gid_attr(gid);
	barrier();
	return 0;
}

/* The reference of the lookup is moved into the path. */
static noinline int make_path(struct objects *t)
{
	const struct ib_gid_attr *gid = CONTRACT_CALL(rdma_get_gid_attr(t->m->ibdev, 1, 1));

	if (IS_ERR(gid))
		return PTR_ERR(gid);
	t->path = (struct rdma_ah_attr) { .type = RDMA_AH_ATTR_TYPE_IB };
	rdma_ah_set_port_num(&t->path, 1);
	rdma_move_grh_sgid_attr(&t->path, NULL, 0, 1, 0, gid);
	barrier();
	return 0;
}

UNMAKES(unmake_path, rdma_destroy_ah_attr(&t->path))

static noinline int copy_path(struct objects *t)
{
	struct rdma_ah_attr original;
	int ret = make_path(t);

	if (ret)
		return ret;
	original = t->path;
	rdma_copy_ah_attr(&t->path, &original);
	rdma_destroy_ah_attr(&original);
	barrier();
	return 0;
}

/* Replaces a path that has a reference by another one with a reference of its own. */
static noinline int replace_path(struct objects *t)
{
	struct rdma_ah_attr other;
	int ret = make_path(t);

	if (ret)
		return ret;
	other = t->path;
	rdma_hold_gid_attr(other.grh.sgid_attr);
	rdma_replace_ah_attr(&t->path, &other);
	rdma_destroy_ah_attr(&other);
	barrier();
	return 0;
}

static noinline int move_path(struct objects *t)
{
	struct rdma_ah_attr other;
	int ret = make_path(t);

	if (ret)
		return ret;
	rdma_copy_ah_attr(&other, &t->path);
	rdma_move_ah_attr(&t->path, &other);
	rdma_destroy_ah_attr(&other);
	barrier();
	return 0;
}

/* The path to the sender of a received datagram. */
static noinline int path_of_wc(struct objects *t)
{
	struct ib_wc wc = { .wc_flags = IB_WC_GRH };
	struct ib_grh grh = { .dgid = t->m->port[1].gids[1], .sgid = t->m->port[1].gids[1] };

	return CONTRACT_CALL(ib_init_ah_attr_from_wc(t->m->ibdev, 1, &wc, &grh, &t->path));
}

const struct kind contract_kinds[CONTRACT_KINDS] = {
	{ "pd", thing_make_pd, thing_unmake_pd },
	{ "cq", thing_make_cq, unmake_cq },
	{ "qp", thing_make_qp, unmake_qp },
	{ "srq", make_srq, unmake_srq },
	{ "mr", thing_make_mr, thing_unmake_mr },
	{ "mw", make_mw, unmake_mw },
	{ "fmr", make_fmr, unmake_fmr },
	{ "ah", make_ah, unmake_ah },
	{ "channel adapter", thing_make_ca, thing_unmake_ca },
	{ "cq", make_polled_cq, unmake_polled_cq },
	{ "event handler", thing_make_handler, thing_unmake_handler, thing_on_event },
	{ "share of the CQ pool", make_share, unmake_share },
	{ "gid reference", thing_make_gid, thing_unmake_gid },
	{ "gid reference", find_gid, thing_unmake_gid },
	{ "gid reference", find_gid_by_port, thing_unmake_gid },
	{ "gid reference", find_gid_by_filter, thing_unmake_gid },
	{ "gid reference", hold_gid, thing_unmake_gid },
	{ "gid reference", make_path, unmake_path },
	{ "gid reference", copy_path, unmake_path, make_path },
	{ "gid reference", replace_path, unmake_path, make_path },
	{ "gid reference", move_path, unmake_path, make_path },
	{ "gid reference", path_of_wc, unmake_path },
};
