// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address vectors and address handles.
 *
 * Lock protocol: none, and nothing here sleeps unless the caller allows it. The
 * source GID of an address vector is a reference on an entry of the GID cache.
 * An address vector owns the reference that it carries; a call that looks one
 * up for its own duration takes it out again. Handles and QPs keep references
 * of their own, exchanged atomically, so that callers that modify one object at
 * the same time do not drop one twice.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <kverbs/delay.h>
#include <kverbs/upper.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "../contract/export.h"
#include "../contract/invalid.h"
#include "../port/port.h"
#include "verbs.h"

/* Hop limit of replies to datagrams: the sender's distance is not known. */
#define AH_REPLY_HOP_LIMIT	0xff

/* IP version of RoCE v2 headers, IBTA annex A17.4.5.2. */
#define ROCE_IPV4_IHL		5

/* Address vectors */

/* Drops the reference on the source GID, which counts as the caller's at @site. */
static void put_sgid(struct rdma_ah_attr *ah_attr, unsigned long site)
{
	if (!ah_attr->grh.sgid_attr)
		return;
	ib_gid_put_by(ah_attr->grh.sgid_attr, site);
	ah_attr->grh.sgid_attr = NULL;
}

static void copy_ah_attr(struct rdma_ah_attr *dest, const struct rdma_ah_attr *src,
			 unsigned long site)
{
	*dest = *src;
	if (!dest->grh.sgid_attr)
		return;
	ib_gid_hold(dest->grh.sgid_attr);
	ib_gid_given(dest->grh.sgid_attr, site);
}

/**
 * rdma_destroy_ah_attr() - drop the source GID of an address vector
 * @ah_attr: the address vector; zeroed or used before
 *
 * Context: Any.
 */
void rdma_destroy_ah_attr(struct rdma_ah_attr *ah_attr)
{
	put_sgid(ah_attr, _RET_IP_);
}
EXPORT_SYMBOL(rdma_destroy_ah_attr);

/**
 * rdma_copy_ah_attr() - copy an address vector; the copy has its own reference
 * @dest: the copy; what it held is not dropped
 * @src: the original
 *
 * Context: Any.
 */
void rdma_copy_ah_attr(struct rdma_ah_attr *dest,
		       const struct rdma_ah_attr *src)
{
	copy_ah_attr(dest, src, _RET_IP_);
}
EXPORT_SYMBOL(rdma_copy_ah_attr);

/**
 * rdma_replace_ah_attr() - copy over an address vector in use
 * @old: the one to replace; what it held is dropped
 * @new: the original
 *
 * Context: Any.
 */
void rdma_replace_ah_attr(struct rdma_ah_attr *old,
			  const struct rdma_ah_attr *new)
{
	struct rdma_ah_attr copy;

	/* Both may hold the same GID: take the new reference first. */
	copy_ah_attr(&copy, new, _RET_IP_);
	put_sgid(old, _RET_IP_);
	*old = copy;
}
EXPORT_SYMBOL(rdma_replace_ah_attr);

/**
 * rdma_move_ah_attr() - move an address vector over one in use
 * @dest: the one to replace; what it held is dropped
 * @src: the original; holds no source GID any more
 *
 * Context: Any.
 */
void rdma_move_ah_attr(struct rdma_ah_attr *dest, struct rdma_ah_attr *src)
{
	put_sgid(dest, _RET_IP_);
	*dest = *src;
	src->grh.sgid_attr = NULL;
}
EXPORT_SYMBOL(rdma_move_ah_attr);

/**
 * rdma_move_grh_sgid_attr() - give an address vector a global route
 * @attr: the address vector; holds no source GID
 * @dgid: destination; NULL to leave it as it is
 * @flow_label: 20 bits
 * @hop_limit: routers the packet may pass
 * @traffic_class: 8 bits
 * @sgid_attr: source; the caller's reference becomes @attr's
 *
 * Context: Any.
 */
void rdma_move_grh_sgid_attr(struct rdma_ah_attr *attr, union ib_gid *dgid,
			     u32 flow_label, u8 hop_limit, u8 traffic_class,
			     const struct ib_gid_attr *sgid_attr)
{
	rdma_ah_set_grh(attr, dgid, flow_label, sgid_attr->index, hop_limit,
			traffic_class);
	attr->grh.sgid_attr = sgid_attr;
}
EXPORT_SYMBOL(rdma_move_grh_sgid_attr);

static int ah_attr_check(const struct ib_verb_call *call, struct ib_device *device,
			 const char *name, const struct rdma_ah_attr *ah_attr)
{
	const struct ib_gid_attr *sgid_attr = ah_attr->grh.sgid_attr;
	u32 port = ah_attr->port_num;
	bool roce;

	if (!rdma_is_port_valid(device, port))
		return ib_invalid(call, "%s.port_num %u: no such port", name, port);
	roce = rdma_protocol_roce(device, port);
	if (roce != (ah_attr->type == RDMA_AH_ATTR_TYPE_ROCE))
		return ib_invalid(call, "%s.type %d: port %u is %sa RoCE port", name,
				  ah_attr->type, port, roce ? "" : "not ");
	if (rdma_is_grh_required(device, port) && !(ah_attr->ah_flags & IB_AH_GRH))
		return ib_invalid(call, "%s.ah_flags %#x: port %u needs IB_AH_GRH", name,
				  ah_attr->ah_flags, port);
	if (!sgid_attr)
		return 0;
	if (sgid_attr->device != device || sgid_attr->port_num != port)
		return ib_invalid(call, "%s.grh.sgid_attr belongs to a port other than %u", name,
				  port);
	if (sgid_attr->index != ah_attr->grh.sgid_index)
		return ib_invalid(call, "%s.grh.sgid_index %u: sgid_attr has index %u", name,
				  ah_attr->grh.sgid_index, sgid_attr->index);
	return 0;
}

/**
 * ib_ah_attr_fill() - check an address vector and look up its source GID
 * @call: the consumer's call, for messages
 * @device: the device
 * @name: name of the address vector in that call
 * @ah_attr: the address vector
 * @passed: the source GID that the caller had given, for ib_ah_attr_unfill()
 *
 * Context: Any.
 * Return: 0; -EINVAL for a bad port, GID index or kind of address; -ENODATA
 * or another error of rdma_get_gid_attr() for an empty GID entry.
 */
int ib_ah_attr_fill(const struct ib_verb_call *call, struct ib_device *device,
		    const char *name, struct rdma_ah_attr *ah_attr,
		    const struct ib_gid_attr **passed)
{
	struct ib_global_route *grh = &ah_attr->grh;
	const struct ib_gid_attr *sgid_attr;
	int ret;

	*passed = grh->sgid_attr;
	ret = ah_attr_check(call, device, name, ah_attr);
	if (ret || !(ah_attr->ah_flags & IB_AH_GRH) || grh->sgid_attr)
		return ret;

	sgid_attr = ib_gid_get(device, ah_attr->port_num, grh->sgid_index);
	if (PTR_ERR_OR_ZERO(sgid_attr) == -EINVAL)
		return ib_invalid(call, "%s.grh.sgid_index %u: not in the GID table of port %u",
				  name, grh->sgid_index, ah_attr->port_num);
	if (IS_ERR(sgid_attr))
		return PTR_ERR(sgid_attr);
	grh->sgid_attr = sgid_attr;
	return 0;
}

/**
 * ib_ah_attr_unfill() - undo ib_ah_attr_fill()
 * @ah_attr: the address vector
 * @passed: as set by ib_ah_attr_fill()
 *
 * Context: Any.
 */
void ib_ah_attr_unfill(struct rdma_ah_attr *ah_attr,
		       const struct ib_gid_attr *passed)
{
	const struct ib_gid_attr *filled = ah_attr->grh.sgid_attr;

	if (!filled || filled == passed)
		return;
	ib_gid_put(filled);
	ah_attr->grh.sgid_attr = NULL;
}

/**
 * ib_ah_set_sgid() - let an object keep the source GID it now uses
 * @slot: the object's reference, replaced
 * @ah_attr: the address vector, filled
 *
 * Context: Any.
 */
void ib_ah_set_sgid(const struct ib_gid_attr **slot,
		    const struct rdma_ah_attr *ah_attr)
{
	const struct ib_gid_attr *new = NULL, *old;

	if (ah_attr->ah_flags & IB_AH_GRH) {
		new = ah_attr->grh.sgid_attr;
		ib_gid_hold(new);
	}
	old = xchg(slot, new);
	if (old)
		ib_gid_put(old);
}

/**
 * ib_ah_put_sgid() - drop the source GID that an object kept
 * @slot: the object's reference
 *
 * Context: Any.
 */
void ib_ah_put_sgid(const struct ib_gid_attr **slot)
{
	const struct ib_gid_attr *old = xchg(slot, NULL);

	if (old)
		ib_gid_put(old);
}

/* Set by the module that resolves addresses; NULL while none is loaded. */
static const struct ib_addr_ops __rcu *addr_ops;

/**
 * ib_set_addr_ops() - set the functions that look up Ethernet addresses of peers
 * @ops: the functions, or %NULL before their module is unloaded
 *
 * Context: Process, may sleep.
 */
void ib_set_addr_ops(const struct ib_addr_ops *ops)
{
	rcu_assign_pointer(addr_ops, ops);
	/* Whoever has read the old pointer has asked for its module, or been refused. */
	synchronize_rcu();
}
IB_EXPORT_INTERNAL(ib_set_addr_ops);

static int find_mac(struct rdma_ah_attr *ah_attr)
{
	struct ib_global_route *grh = &ah_attr->grh;
	int hop_limit = grh->hop_limit, ret = -EHOSTUNREACH;
	const struct ib_addr_ops *ops;

	rcu_read_lock();
	ops = rcu_dereference(addr_ops);
	if (ops && !try_module_get(ops->owner))
		ops = NULL;
	rcu_read_unlock();
	if (!ops)
		return ret;
	ret = ops->find_mac(&grh->sgid_attr->gid, &grh->dgid, ah_attr->roce.dmac, grh->sgid_attr,
			    &hop_limit);
	module_put(ops->owner);
	grh->hop_limit = hop_limit;
	return ret;
}

/**
 * ib_ah_attr_resolve() - look up the Ethernet address of a path that a process gave
 * @ah_attr: the address vector, filled
 *
 * Those of multicast groups, and of link-local RoCE v1 GIDs, follow from the GID.
 *
 * Context: Process, may sleep.
 * Return: 0; -EHOSTUNREACH if nothing is loaded that can look it up; or the error of the
 * look-up.
 */
int ib_ah_attr_resolve(struct rdma_ah_attr *ah_attr)
{
	struct in6_addr *to = (struct in6_addr *)&ah_attr->grh.dgid;

	if (ah_attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return 0;
	if (ipv6_addr_v4mapped(to) && ipv4_is_multicast(to->s6_addr32[3]))
		ip_eth_mc_map(to->s6_addr32[3], ah_attr->roce.dmac);
	else if (rdma_is_multicast_addr(to))
		rdma_get_mcast_mac(to, ah_attr->roce.dmac);
	else if (ah_attr->grh.sgid_attr->gid_type == IB_GID_TYPE_ROCE && rdma_link_local_addr(to))
		rdma_get_ll_mac(to, ah_attr->roce.dmac);
	else
		return find_mac(ah_attr);
	return 0;
}

/* Address handles */

static int ah_setup(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	const struct ib_device_ops *ops = &ah->device->ops;

	if (udata && ops->create_user_ah)
		return ops->create_user_ah(ah, attr, udata);
	return ops->create_ah(ah, attr, udata);
}

static struct ib_ah *ah_create(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
			       u32 flags, struct ib_udata *udata, unsigned long site)
{
	bool may_sleep = flags & RDMA_CREATE_AH_SLEEPABLE;
	gfp_t gfp = may_sleep ? GFP_KERNEL : GFP_ATOMIC;
	struct rdma_ah_init_attr init_attr = {
		.ah_attr = ah_attr,
		.flags = flags,
	};
	struct ib_device *device = pd->device;
	struct ib_ah *ah;
	int ret;

	ah = rdma_zalloc_drv_obj_gfp(device, ib_ah, gfp);
	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->device = device;
	ah->pd = pd;
	ah->type = ah_attr->type;
	ib_ah_set_sgid(&ah->sgid_attr, ah_attr);

	ret = IB_IN_FRAME(device, &pd->res, "create_ah",
			  may_sleep ? IB_FRAME_METHOD : IB_FRAME_ATOMIC, site,
			  ah_setup(ah, &init_attr, udata));
	if (ret) {
		ib_ah_put_sgid(&ah->sgid_attr);
		kfree(ah);
		return ERR_PTR(ret);
	}
	atomic_inc(&pd->usecnt);
	ib_contract_ah_made(ah, site);
	return ah;
}

static int ah_refused(const struct ib_verb_call *call, int err,
		      const struct rdma_ah_attr *ah_attr)
{
	return ib_refused(call, err, "dlid %u, sl %u, flow_label %#x", rdma_ah_get_dlid(ah_attr),
			  rdma_ah_get_sl(ah_attr), ah_attr->grh.flow_label);
}

/* @resolve: look up the Ethernet address of a RoCE destination. */
static struct ib_ah *ah_create_filled(struct ib_pd *pd, struct rdma_ah_attr *ah_attr, u32 flags,
				      struct ib_udata *udata, bool resolve, unsigned long site)
{
	const struct ib_verb_call call = {
		.dev = pd->device, .res = &pd->res, .what = "create_ah",
	};
	const struct ib_device_ops *ops = &pd->device->ops;
	const struct ib_gid_attr *passed;
	struct ib_ah *ah;
	int ret;

	might_sleep_if(flags & RDMA_CREATE_AH_SLEEPABLE);

	if (!ops->create_ah || !ops->destroy_ah)
		return ERR_PTR(-EOPNOTSUPP);
	ret = ib_ah_attr_fill(&call, pd->device, "ah_attr", ah_attr, &passed);
	if (ret) {
		ib_contract_call(pd->device, &pd->res, "create_ah", site);
		return ERR_PTR(ret);
	}
	kverbs_delay("ah_create");
	ret = resolve ? ib_ah_attr_resolve(ah_attr) : 0;
	ah = ret ? ERR_PTR(ret) : ah_create(pd, ah_attr, flags, udata, site);
	if (!ret && IS_ERR(ah))
		ah_refused(&call, PTR_ERR(ah), ah_attr);
	ib_ah_attr_unfill(ah_attr, passed);
	return ah;
}

/**
 * rdma_create_ah() - make an address handle
 * @pd: PD of the handle
 * @ah_attr: the address; for RoCE with the destination's Ethernet address
 * @flags: &enum rdma_create_ah_flags
 *
 * Context: Any; process with %RDMA_CREATE_AH_SLEEPABLE.
 * Return: the handle; -EOPNOTSUPP if the device has none; -EINVAL for a bad
 * port, GID index or kind of address; -ENOMEM; an error of
 * rdma_get_gid_attr() or of the driver.
 */
struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
			     u32 flags)
{
	return ah_create_filled(pd, ah_attr, flags, NULL, false, _RET_IP_);
}
EXPORT_SYMBOL(rdma_create_ah);

/**
 * rdma_create_user_ah() - make an address handle for a process
 * @pd: PD of the handle
 * @ah_attr: the address; the Ethernet address of a RoCE destination is looked up
 * @udata: the process's request, for the driver; or %NULL, if the process cannot use the handle
 *
 * Context: Process, that of the request; may sleep.
 * Return: as rdma_create_ah(); -EHOSTUNREACH or another error of the look-up.
 */
struct ib_ah *rdma_create_user_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
				  struct ib_udata *udata)
{
	return ah_create_filled(pd, ah_attr, RDMA_CREATE_AH_SLEEPABLE, udata, true, _RET_IP_);
}
EXPORT_SYMBOL(rdma_create_user_ah);

/**
 * rdma_modify_ah() - change the address of a handle
 * @ah: the handle
 * @ah_attr: the new address, of the same kind
 *
 * Requests that are already posted use either the old or the new address. Nobody may post
 * with the handle meanwhile: such a request could take parts of both.
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP if the driver has no such method; -EINVAL for a bad
 * port, GID index or kind of address; an error of rdma_get_gid_attr() or of the
 * driver.
 */
int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	const struct ib_verb_call call = {
		.dev = ah->device, .res = &ah->pd->res, .what = "modify_ah",
	};
	const struct ib_gid_attr *passed;
	int ret;

	if (!ah->device->ops.modify_ah)
		return -EOPNOTSUPP;
	if (ah->type != ah_attr->type)
		return ib_invalid(&call, "ah_attr.type %d: the handle has type %d",
				  ah_attr->type, ah->type);
	ret = ib_ah_attr_fill(&call, ah->device, "ah_attr", ah_attr, &passed);
	if (ret) {
		ib_contract_call(ah->device, &ah->pd->res, "modify_ah", _RET_IP_);
		return ret;
	}

	ret = IB_ATOMIC_METHOD(ah->device, &ah->pd->res, "modify_ah",
			       ah->device->ops.modify_ah(ah, ah_attr));
	if (!ret)
		ib_ah_set_sgid(&ah->sgid_attr, ah_attr);
	ib_ah_attr_unfill(ah_attr, passed);
	return ah_refused(&call, ret, ah_attr);
}
EXPORT_SYMBOL(rdma_modify_ah);

/**
 * rdma_query_ah() - read the address of a handle
 * @ah: the handle
 * @ah_attr: filled in, without a reference on the source GID
 *
 * Context: Any.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	int ret;

	if (!ah->device->ops.query_ah)
		return -EOPNOTSUPP;
	rdma_ah_set_port_num(ah_attr, 0);
	ret = IB_ATOMIC_METHOD(ah->device, &ah->pd->res, "query_ah",
			       ah->device->ops.query_ah(ah, ah_attr));
	if (!ret && !rdma_ah_get_port_num(ah_attr))
		ib_output_missing(ah->device, &ah->pd->res, "query_ah", "returned no port", _RET_IP_);
	/* Drivers copy what they were given, but the caller holds no reference. */
	ah_attr->grh.sgid_attr = NULL;
	return ret;
}
EXPORT_SYMBOL(rdma_query_ah);

/**
 * rdma_destroy_ah_user() - free an address handle
 * @ah: the handle; no request that uses it is outstanding
 * @flags: &enum rdma_destroy_ah_flags
 * @udata: the process's request, or NULL
 *
 * Context: Any; process with %RDMA_DESTROY_AH_SLEEPABLE.
 * Return: 0, or an error of the driver, with a warning; then the handle still
 * exists.
 */
int rdma_destroy_ah_user(struct ib_ah *ah, u32 flags, struct ib_udata *udata)
{
	struct ib_pd *pd = ah->pd;
	int ret;

	might_sleep_if(flags & RDMA_DESTROY_AH_SLEEPABLE);

	ret = IB_IN_FRAME(ah->device, &pd->res, "destroy_ah",
			  flags & RDMA_DESTROY_AH_SLEEPABLE ? IB_FRAME_METHOD : IB_FRAME_ATOMIC,
			  _RET_IP_, ah->device->ops.destroy_ah(ah, flags));
	if (ret) {
		ibdev_warn_ratelimited(ah->device,
				       "driver failed to destroy an AH of %s (%d)\n",
				       pd->res.kern_name, ret);
		return ret;
	}
	ib_contract_ah_destroyed(ah);
	ib_ah_put_sgid(&ah->sgid_attr);
	kfree(ah);
	atomic_dec(&pd->usecnt);
	return 0;
}
EXPORT_SYMBOL(rdma_destroy_ah_user);

/* The sender of a datagram */

/**
 * ib_get_rdma_header_version() - IP version of a received header
 * @hdr: the 40 bytes in front of the datagram
 *
 * An IPv4 header fills the last 20 bytes; what comes before it is undefined
 * and may look like IPv6. It is IPv4 if it has no options and its checksum is
 * right.
 *
 * Context: Any.
 * Return: 4 or 6, or 0 for neither.
 */
int ib_get_rdma_header_version(const union rdma_network_hdr *hdr)
{
	bool v6 = be32_to_cpu(hdr->ibgrh.version_tclass_flow) >> 28 == 6;
	struct iphdr ip4 = hdr->roce4grh;
	__sum16 check = ip4.check;

	if (!v6)
		return ip4.version == 4 ? 4 : 0;
	if (ip4.version != 4 || ip4.ihl != ROCE_IPV4_IHL)
		return 6;
	ip4.check = 0;
	return ip_fast_csum(&ip4, ip4.ihl) == check ? 4 : 6;
}
EXPORT_SYMBOL(ib_get_rdma_header_version);

/* @name: what the consumer calls @net_type. */
static int gids_from_hdr(const struct ib_verb_call *call, const char *name,
			 const union rdma_network_hdr *hdr, enum rdma_network_type net_type,
			 union ib_gid *sgid, union ib_gid *dgid)
{
	switch (net_type) {
	case RDMA_NETWORK_IPV4:
		ipv6_addr_set_v4mapped(hdr->roce4grh.saddr,
				       (struct in6_addr *)sgid);
		ipv6_addr_set_v4mapped(hdr->roce4grh.daddr,
				       (struct in6_addr *)dgid);
		return 0;
	case RDMA_NETWORK_IB:
	case RDMA_NETWORK_ROCE_V1:
	case RDMA_NETWORK_IPV6:
		*sgid = hdr->ibgrh.sgid;
		*dgid = hdr->ibgrh.dgid;
		return 0;
	default:
		return ib_invalid(call, "%s %d: no such type", name, net_type);
	}
}

/**
 * ib_get_gids_from_rdma_hdr() - the GIDs in a received header
 * @hdr: the 40 bytes in front of the datagram
 * @net_type: kind of header
 * @sgid: set to the sender's
 * @dgid: set to the receiver's
 *
 * Context: Any.
 * Return: 0, or -EINVAL for an unknown kind or a missing argument.
 */
int ib_get_gids_from_rdma_hdr(const union rdma_network_hdr *hdr,
			      enum rdma_network_type net_type,
			      union ib_gid *sgid, union ib_gid *dgid)
{
	const struct ib_verb_call call = { .site = _RET_IP_, .what = "get_gids_from_rdma_hdr" };

	if (!sgid || !dgid)
		return ib_invalid(&call, "%s is missing", sgid ? "dgid" : "sgid");
	return gids_from_hdr(&call, "net_type", hdr, net_type, sgid, dgid);
}
EXPORT_SYMBOL(ib_get_gids_from_rdma_hdr);

static enum rdma_network_type wc_network_type(const struct ib_wc *wc,
					      const struct ib_grh *grh)
{
	if (wc->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE)
		return wc->network_hdr_type;
	if (ib_get_rdma_header_version((const void *)grh) == 4)
		return RDMA_NETWORK_IPV4;
	return grh->next_hdr == IPPROTO_UDP ? RDMA_NETWORK_IPV6 :
					      RDMA_NETWORK_ROCE_V1;
}

struct wc_gid_filter {
	enum ib_gid_type type;
	u16 vlan_id;
};

static bool wc_gid_matches(const union ib_gid *gid,
			   const struct ib_gid_attr *attr, void *context)
{
	struct wc_gid_filter *filter = context;
	u16 vlan_id = 0xffff;

	return attr->gid_type == filter->type &&
	       !rdma_read_gid_l2_fields(attr, &vlan_id, NULL) &&
	       vlan_id == filter->vlan_id;
}

static void wc_set_route(struct rdma_ah_attr *ah_attr, const struct ib_grh *grh,
			 union ib_gid *sender,
			 const struct ib_gid_attr *sgid_attr)
{
	u32 word = be32_to_cpu(grh->version_tclass_flow);

	rdma_move_grh_sgid_attr(ah_attr, sender, word & IB_GRH_FLOWLABEL_MASK,
				AH_REPLY_HOP_LIMIT, word >> 20, sgid_attr);
}

/* The sender's Ethernet address: from the device, from its GID, or looked up. */
static int wc_get_dmac(const struct ib_wc *wc, struct rdma_ah_attr *ah_attr)
{
	struct in6_addr *sender = (struct in6_addr *)&ah_attr->grh.dgid;

	if (wc->wc_flags & IB_WC_WITH_SMAC) {
		ether_addr_copy(ah_attr->roce.dmac, wc->smac);
		return 0;
	}
	if (ah_attr->grh.sgid_attr->gid_type == IB_GID_TYPE_ROCE && rdma_link_local_addr(sender)) {
		rdma_get_ll_mac(sender, ah_attr->roce.dmac);
		return 0;
	}
	return find_mac(ah_attr);
}

static int wc_init_roce(const struct ib_verb_call *call, struct ib_device *device,
			const struct ib_wc *wc, const struct ib_grh *grh,
			struct rdma_ah_attr *ah_attr)
{
	enum rdma_network_type net_type;
	const struct ib_gid_attr *attr;
	union ib_gid sender, receiver;
	struct wc_gid_filter filter;
	int ret;

	if (!(wc->wc_flags & IB_WC_GRH))
		return -EPROTOTYPE;
	net_type = wc_network_type(wc, grh);
	ret = gids_from_hdr(call, "network_hdr_type", (const void *)grh, net_type, &sender,
			    &receiver);
	if (ret)
		return ret;

	filter.type = ib_network_to_gid_type(net_type);
	filter.vlan_id = wc->wc_flags & IB_WC_WITH_VLAN ? wc->vlan_id : 0xffff;
	attr = ib_gid_find(device, &receiver, ah_attr->port_num, wc_gid_matches, &filter);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	wc_set_route(ah_attr, grh, &sender, attr);
	ret = wc_get_dmac(wc, ah_attr);
	if (ret)
		ib_ah_attr_unfill(ah_attr, NULL);
	return ret;
}

static int wc_init_ib(struct ib_device *device, const struct ib_wc *wc,
		      const struct ib_grh *grh, struct rdma_ah_attr *ah_attr)
{
	const struct ib_gid_attr *attr;
	union ib_gid sender, receiver;
	u32 port = ah_attr->port_num;

	rdma_ah_set_dlid(ah_attr, wc->slid);
	rdma_ah_set_path_bits(ah_attr, wc->dlid_path_bits);
	if (!(wc->wc_flags & IB_WC_GRH))
		return 0;

	sender = grh->sgid;
	receiver = grh->dgid;
	if (receiver.global.interface_id == cpu_to_be64(IB_SA_WELL_KNOWN_GUID))
		attr = ib_gid_get(device, port, 0);
	else
		attr = ib_gid_find_type(device, &receiver, IB_GID_TYPE_IB, port, NULL);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	wc_set_route(ah_attr, grh, &sender, attr);
	return 0;
}

static int init_from_wc(struct ib_device *device, u32 port_num, const struct ib_wc *wc,
			const struct ib_grh *grh, struct rdma_ah_attr *ah_attr,
			unsigned long site)
{
	const struct ib_verb_call call = {
		.dev = device, .site = site, .what = "init_ah_attr_from_wc",
	};

	memset(ah_attr, 0, sizeof(*ah_attr));
	if (!rdma_is_port_valid(device, port_num))
		return ib_invalid(&call, "port_num %u: no such port", port_num);

	ah_attr->type = rdma_ah_find_type(device, port_num);
	rdma_ah_set_sl(ah_attr, wc->sl);
	rdma_ah_set_port_num(ah_attr, port_num);
	if (ah_attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		return wc_init_roce(&call, device, wc, grh, ah_attr);
	return wc_init_ib(device, wc, grh, ah_attr);
}

/**
 * ib_init_ah_attr_from_wc() - the address to reply to a datagram
 * @device: device that received it
 * @port_num: port that received it
 * @wc: its completion
 * @grh: the 40 bytes in front of it; only read if @wc says that they are valid
 * @ah_attr: filled in; after success the caller must call rdma_destroy_ah_attr()
 *
 * The Ethernet address of a RoCE sender comes from @wc, or from a link-local
 * RoCE v1 GID, or is looked up by the IP stack, which takes a second at most. Nothing
 * looks it up unless kverbs_mad is loaded.
 *
 * Context: Any but hard interrupt; process, may sleep, if the address must be looked up.
 * Return: 0; -EINVAL for a bad port or header; -EPROTOTYPE for a RoCE
 * datagram without a header; -EHOSTUNREACH if the sender's Ethernet address
 * is not known and nothing can look it up, or the error of the look-up; -ENOENT if
 * the receiver's GID is gone, -ENODATA if that is the port's first one and it is empty.
 */
int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num,
			    const struct ib_wc *wc, const struct ib_grh *grh,
			    struct rdma_ah_attr *ah_attr)
{
	int ret = init_from_wc(device, port_num, wc, grh, ah_attr, _RET_IP_);

	if (!ret && ah_attr->grh.sgid_attr)
		ib_gid_given(ah_attr->grh.sgid_attr, _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_init_ah_attr_from_wc);

/**
 * ib_create_ah_from_wc() - make an address handle to reply to a datagram
 * @pd: PD of the handle
 * @wc: completion of the datagram
 * @grh: the 40 bytes in front of it
 * @port_num: port that received it
 *
 * Context: Process.
 * Return: the handle, or an error of ib_init_ah_attr_from_wc() or
 * rdma_create_ah().
 */
struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
				   const struct ib_grh *grh, u32 port_num)
{
	struct rdma_ah_attr ah_attr;
	struct ib_ah *ah;
	int ret;

	ret = init_from_wc(pd->device, port_num, wc, grh, &ah_attr, _RET_IP_);
	if (ret)
		return ERR_PTR(ret);
	ah = ah_create_filled(pd, &ah_attr, RDMA_CREATE_AH_SLEEPABLE, NULL, false, _RET_IP_);
	ib_ah_attr_unfill(&ah_attr, NULL);
	return ah;
}
EXPORT_SYMBOL(ib_create_ah_from_wc);
