// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: looking up GIDs and P_Keys, the senders of datagrams, and objects by their
 * number.
 */
#include <rdma/ib_cache.h>
#include <rdma/restrack.h>

#include "fuzz/fuzz.h"

/* A port and a table index that do not exist; a P_Key that exists, and one that does not. */
#define X_NO_PORT	99
#define X_NO_INDEX	999
#define X_PKEY		0xffff
#define X_NO_PKEY	0x1234

/* --- GIDs and P_Keys --- */

static enum x_verdict get_gid(struct x_world *w, int dev, bool bad)
{
	const struct ib_gid_attr *attr;
	u8 mac[ETH_ALEN];
	u16 vlan;
	int ret;

	attr = rdma_get_gid_attr(w->s->dev[dev], X_PORT, bad ? X_NO_INDEX : 0);
	if (IS_ERR(attr))
		return x_want(w, "holding a GID", bad ? -EINVAL : 0, PTR_ERR(attr));
	rdma_hold_gid_attr(attr);
	rdma_put_gid_attr(attr);
	ret = memcmp(&attr->gid, &w->s->gid[dev], sizeof(attr->gid));
	x_want(w, "a GID that is held", 0, ret);
	/* The GID has no network device. */
	ret = rdma_read_gid_l2_fields(attr, &vlan, mac);
	rdma_put_gid_attr(attr);
	return *w->why ? X_FAILED : x_want(w, "network device of a GID", -ENODEV, ret);
}

static bool first_only(const union ib_gid *gid, const struct ib_gid_attr *attr, void *wanted)
{
	return *(bool *)wanted && !attr->index;
}

static enum x_verdict find_gid(struct x_world *w, int dev, bool bad, bool by_filter)
{
	union ib_gid gid = w->s->gid[dev];
	const struct ib_gid_attr *attr;
	bool wanted = !bad, right;

	if (by_filter) {
		attr = rdma_find_gid_by_filter(w->s->dev[dev], &gid, X_PORT, first_only, &wanted);
	} else {
		gid.raw[9] ^= bad ? 0xff : 0;
		attr = rdma_find_gid(w->s->dev[dev], &gid, IB_GID_TYPE_IB, NULL);
	}
	if (IS_ERR(attr))
		return x_want(w, "finding a GID", bad ? -ENOENT : 0, PTR_ERR(attr));
	right = !attr->index && attr->port_num == X_PORT && !bad;
	rdma_put_gid_attr(attr);
	return x_want(w, "the GID that was found", true, right);
}

static enum x_verdict find_pkey(struct x_world *w, int dev, bool bad, bool no_port)
{
	int want = no_port ? -EINVAL : bad ? -ENOENT : 0, ret;
	u16 index = 9;

	ret = ib_find_cached_pkey(w->s->dev[dev], no_port ? X_NO_PORT : X_PORT,
				  bad ? X_NO_PKEY : X_PKEY, &index);
	if (ret || want)
		return x_want(w, "finding a P_Key", want, ret);
	return x_want(w, "index of a P_Key", 0, index);
}

enum x_verdict x_gid(struct x_world *w, const struct x_op *op)
{
	bool bad = !(op->r % 8);

	switch (op->b % 3) {
	case 0:
		return get_gid(w, op->a, bad);
	case 1:
		return find_gid(w, op->a, bad, op->c & 1);
	default:
		return find_pkey(w, op->a, bad, !(op->r >> 3 & 7));
	}
}

/* --- the sender of a datagram --- */

/* Makes up the completion of a datagram from device 0 or 1, with or without a GRH. */
static void sender(const struct x_world *w, const struct x_op *op, int dev, struct ib_wc *wc,
		   struct ib_grh *grh)
{
	*wc = (struct ib_wc){
		.slid = w->s->lid[op->r >> 8 & 1],
		.sl = op->r >> 9 & 7,
		.wc_flags = op->r >> 12 & 1 ? IB_WC_GRH : 0,
	};
	*grh = (struct ib_grh){
		.version_tclass_flow = cpu_to_be32(6U << 28),
		.sgid = w->s->gid[op->r >> 8 & 1],
		.dgid = w->s->gid[dev],
	};
	if (!(op->r >> 13 & 7))
		grh->dgid.raw[9] ^= 0xff;
}

static enum x_verdict check_reply(struct x_world *w, const struct rdma_ah_attr *attr,
				  const struct ib_wc *wc, const struct ib_grh *grh)
{
	bool route = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;

	if (attr->sl != wc->sl)
		return x_want(w, "service level of a reply", wc->sl, attr->sl);
	if (route != !!(wc->wc_flags & IB_WC_GRH))
		return x_want(w, "route of a reply", !route, route);
	if (route && memcmp(&rdma_ah_read_grh(attr)->dgid, &grh->sgid, sizeof(grh->sgid)))
		return x_fail(w, "a reply goes to another GID");
	return x_want(w, "LID of a reply", wc->slid, rdma_ah_get_dlid(attr));
}

static enum x_verdict reply_attr(struct x_world *w, int dev, u32 port, const struct ib_wc *wc,
				 const struct ib_grh *grh, int want)
{
	struct rdma_ah_attr attr;
	int ret = ib_init_ah_attr_from_wc(w->s->dev[dev], port, wc, grh, &attr);
	enum x_verdict verdict;

	if (ret || want)
		return x_want(w, "address of a reply", want, ret);
	verdict = check_reply(w, &attr, wc, grh);
	rdma_destroy_ah_attr(&attr);
	return verdict;
}

static enum x_verdict reply_ah(struct x_world *w, int pd, u32 port, const struct ib_wc *wc,
			       const struct ib_grh *grh, int want)
{
	struct ib_ah *ah = ib_create_ah_from_wc(w->ptr[X_PD][pd], wc, grh, port);
	struct rdma_ah_attr attr = {};
	int ret;

	if (IS_ERR(ah))
		return x_want(w, "an address to reply to", want, PTR_ERR(ah));
	ret = ib_query_ah(ah, &attr);
	if (!ret)
		check_reply(w, &attr, wc, grh);
	rdma_destroy_ah_attr(&attr);
	x_want(w, "querying an address to reply to", 0, ret);
	x_want(w, "freeing an address to reply to", 0, ib_destroy_ah(ah));
	return *w->why ? X_FAILED : x_want(w, "an address to reply to", want, 0);
}

/* Derives the address to reply to from a completion: its attributes, or an AH. */
enum x_verdict x_reply(struct x_world *w, const struct x_op *op)
{
	u32 port = op->r % 16 ? X_PORT : X_NO_PORT;
	int pd = x_pd_of(op), dev = xm_dev(w, X_PD, pd), want = 0;
	struct ib_grh grh;
	struct ib_wc wc;

	if (!xm_there(w, X_PD, pd))
		return X_SKIPPED;
	sender(w, op, dev, &wc, &grh);
	if (port == X_NO_PORT)
		want = -EINVAL;
	else if (wc.wc_flags & IB_WC_GRH && !(op->r >> 13 & 7))
		want = -ENOENT;
	if (op->c & 1)
		return reply_ah(w, pd, port, &wc, &grh, want);
	return reply_attr(w, dev, port, &wc, &grh, want);
}

/* --- objects by their number --- */

static struct rdma_restrack_entry *entry_of(const struct x_world *w, enum x_kind kind, int slot)
{
	void *ptr = w->ptr[kind][slot];

	switch (kind) {
	case X_PD:
		return &((struct ib_pd *)ptr)->res;
	case X_SRQ:
		return &((struct ib_srq *)ptr)->res;
	case X_QP:
		return &((struct ib_qp *)ptr)->res;
	case X_MR:
		return &((struct ib_mr *)ptr)->res;
	default:
		return &((struct ib_mw *)ptr)->res;
	}
}

static enum x_verdict look_up(struct x_world *w, int dev, enum rdma_restrack_type type, u32 id,
			      const struct rdma_restrack_entry *want)
{
	struct rdma_restrack_entry *res = rdma_restrack_get_byid(w->s->dev[dev], type, id);

	if (IS_ERR(res))
		return x_want(w, "an object by its number", want ? 0 : -ENOENT, PTR_ERR(res));
	rdma_restrack_put(res);
	return x_want(w, "the object of a number", true, res == want);
}

/*
 * Looks up the object in a slot, which must be found, and the object that was there before,
 * which must not be found: numbers are not reused soon.
 */
enum x_verdict x_restrack(struct x_world *w, const struct x_op *op)
{
	static const u8 kinds[5] = { X_PD, X_SRQ, X_QP, X_MR, X_MW };
	static const u8 types[5] = {
		RDMA_RESTRACK_PD, RDMA_RESTRACK_SRQ, RDMA_RESTRACK_QP, RDMA_RESTRACK_MR,
		RDMA_RESTRACK_MW,
	};
	enum rdma_restrack_type type = types[op->b % 5];
	enum x_kind kind = kinds[op->b % 5];
	struct x_number *was = &w->number[kind][op->a];
	struct rdma_restrack_entry *res = NULL;
	u32 id = 0;

	if (xm_there(w, kind, op->a)) {
		res = entry_of(w, kind, op->a);
		id = res->id;
		if (look_up(w, xm_dev(w, kind, op->a), type, id, res))
			return X_FAILED;
	}
	if (was->id && (!res || was->id != id || was->dev != xm_dev(w, kind, op->a)) &&
	    look_up(w, was->dev, type, was->id, NULL))
		return X_FAILED;
	if (!res && !was->id)
		return X_SKIPPED;
	*was = (struct x_number){ .id = id, .dev = res ? xm_dev(w, kind, op->a) : 0 };
	return X_DONE;
}
