// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups of a QP. The only state here is their count, which is atomic.
 */
#include <linux/export.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "../contract/invalid.h"

/* Before INIT a QP may have no port, and any of the device's may become it. */
static bool mcast_port_is_ib(const struct ib_qp *qp)
{
	u32 port = READ_ONCE(qp->port);

	if (rdma_is_port_valid(qp->device, port))
		return rdma_protocol_ib(qp->device, port);
	rdma_for_each_port(qp->device, port)
		if (!rdma_protocol_ib(qp->device, port))
			return false;
	return true;
}

/* Multicast LIDs, IBTA vol. 1, 4.1.3; RoCE has none. */
static bool mcast_lid_is_ok(const struct ib_qp *qp, u16 lid)
{
	return !mcast_port_is_ib(qp) ||
	       (lid >= be16_to_cpu(IB_MULTICAST_LID_BASE) &&
		lid != be16_to_cpu(IB_LID_PERMISSIVE));
}

static int mcast_check(const struct ib_verb_call *call, const struct ib_qp *qp,
		       const union ib_gid *gid)
{
	const struct ib_device_ops *ops = &qp->device->ops;

	if (!ops->attach_mcast || !ops->detach_mcast)
		return -EOPNOTSUPP;
	if (qp->qp_type != IB_QPT_UD)
		return ib_invalid(call, "the QP has type %d, not IB_QPT_UD", qp->qp_type);
	if (!rdma_is_multicast_addr((struct in6_addr *)gid))
		return ib_invalid(call, "GID %pI6 is not a multicast GID", gid->raw);
	return 0;
}

/**
 * ib_attach_mcast() - let a QP receive from a multicast group
 * @qp: the QP, of type UD, in any state
 * @gid: the group
 * @lid: its LID; ignored on RoCE ports
 *
 * The QP cannot be destroyed before it is detached.
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the device has no multicast; -EINVAL for another
 * type of QP, or if the GID or LID is not of a group; or an error of the
 * driver.
 */
int ib_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	const struct ib_verb_call call = {
		.dev = qp->device, .res = &qp->res, .what = "attach_mcast",
	};
	int ret;

	ret = mcast_check(&call, qp, gid);
	if (ret)
		return ret;
	if (!mcast_lid_is_ok(qp, lid))
		return ib_invalid(&call, "LID %#x is not a multicast LID", lid);
	atomic_inc(&qp->usecnt);
	ret = IB_METHOD(qp->device, &qp->res, "attach_mcast",
			qp->device->ops.attach_mcast(qp, gid, lid));
	if (ret)
		atomic_dec(&qp->usecnt);
	return ib_refused(&call, ret, "gid %pI6: is it attached already?", gid->raw);
}
EXPORT_SYMBOL(ib_attach_mcast);

/**
 * ib_detach_mcast() - undo ib_attach_mcast()
 * @qp: the QP
 * @gid: the group
 * @lid: its LID, as it was attached
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the device has no multicast; -EINVAL for another type of QP, or if the GID
 * is not of a group; or an error of the driver, for instance if the QP is not attached.
 */
int ib_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	const struct ib_verb_call call = {
		.dev = qp->device, .res = &qp->res, .what = "detach_mcast",
	};
	int ret;

	/* The QP may have got a port since it was attached, where the LID would be refused. */
	ret = mcast_check(&call, qp, gid);
	if (ret)
		return ret;
	ret = IB_METHOD(qp->device, &qp->res, "detach_mcast",
			qp->device->ops.detach_mcast(qp, gid, lid));
	if (!ret)
		atomic_dec(&qp->usecnt);
	return ib_refused(&call, ret, "gid %pI6: is it attached?", gid->raw);
}
EXPORT_SYMBOL(ib_detach_mcast);
