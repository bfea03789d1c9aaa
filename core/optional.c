// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that need an optional method of the driver: multicast groups, size of
 * CQs, virtual functions. The only state here is the count of a QP's multicast
 * groups, which is atomic.
 */
#include <linux/export.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

#include "contract.h"

/* Multicast LIDs, IBTA vol. 1, 4.1.3; RoCE has none. */
static bool mcast_lid_is_ok(const struct ib_qp *qp, u16 lid)
{
	u32 port = READ_ONCE(qp->port);

	if (rdma_is_port_valid(qp->device, port) &&
	    !rdma_protocol_ib(qp->device, port))
		return true;
	return lid >= be16_to_cpu(IB_MULTICAST_LID_BASE) &&
	       lid != be16_to_cpu(IB_LID_PERMISSIVE);
}

static int mcast_check(const struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	const struct ib_device_ops *ops = &qp->device->ops;

	if (!ops->attach_mcast || !ops->detach_mcast)
		return -EOPNOTSUPP;
	if (qp->qp_type != IB_QPT_UD ||
	    !rdma_is_multicast_addr((struct in6_addr *)gid) ||
	    !mcast_lid_is_ok(qp, lid))
		return -EINVAL;
	return 0;
}

/**
 * ib_attach_mcast() - let a QP receive from a multicast group
 * @qp: the QP, of type UD, in a state from INIT on
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
	int ret;

	ret = mcast_check(qp, gid, lid);
	if (ret)
		return ret;
	atomic_inc(&qp->usecnt);
	ret = IB_METHOD(qp->device, &qp->res, "attach_mcast",
			qp->device->ops.attach_mcast(qp, gid, lid));
	if (ret)
		atomic_dec(&qp->usecnt);
	return ret;
}
EXPORT_SYMBOL(ib_attach_mcast);

/**
 * ib_detach_mcast() - undo ib_attach_mcast()
 * @qp: the QP
 * @gid: the group
 * @lid: its LID
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP or -EINVAL as ib_attach_mcast(); or an error of the
 * driver, for instance if the QP is not attached.
 */
int ib_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	int ret;

	ret = mcast_check(qp, gid, lid);
	if (ret)
		return ret;
	ret = IB_METHOD(qp->device, &qp->res, "detach_mcast",
			qp->device->ops.detach_mcast(qp, gid, lid));
	if (!ret)
		atomic_dec(&qp->usecnt);
	return ret;
}
EXPORT_SYMBOL(ib_detach_mcast);

/**
 * ib_resize_cq() - change the number of entries of a CQ
 * @cq: the CQ
 * @cqe: number of entries that the caller wants, 1 to attrs.max_cqe
 *
 * Completions that are in the CQ stay, in their order, and others may be added
 * and polled meanwhile. ib_cq.cqe is the real number on return. Calls for the
 * same CQ must not run at the same time.
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the driver has no such method, or the CQ is of the pool;
 * -EINVAL for a number out of range; or an error of the driver, for instance -EINVAL if the
 * CQ holds more completions than that. After an error the CQ is as it was.
 */
int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	int ret;

	if (cq->shared || !cq->device->ops.resize_cq)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > cq->device->attrs.max_cqe)
		return -EINVAL;
	ret = IB_METHOD(cq->device, &cq->res, "resize_cq",
			cq->device->ops.resize_cq(cq, cqe, NULL));
	if (!ret && cq->cqe < cqe)
		ib_output_missing(cq->device, &cq->res, "resize_cq",
				  "gave fewer entries than were asked for", _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_resize_cq);

/**
 * ib_set_vf_link_state() - set the link policy of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @state: IFLA_VF_LINK_STATE_*
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_set_vf_link_state(struct ib_device *device, int vf, u32 port, int state)
{
	if (!device->ops.set_vf_link_state)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "set_vf_link_state",
			 device->ops.set_vf_link_state(device, vf, port, state));
}
EXPORT_SYMBOL(ib_set_vf_link_state);

/**
 * ib_get_vf_config() - read the configuration of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @info: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_config(struct ib_device *device, int vf, u32 port,
		     struct ifla_vf_info *info)
{
	if (!device->ops.get_vf_config)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_config",
			 device->ops.get_vf_config(device, vf, port, info));
}
EXPORT_SYMBOL(ib_get_vf_config);

/**
 * ib_get_vf_stats() - read the counters of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @stats: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_stats(struct ib_device *device, int vf, u32 port,
		    struct ifla_vf_stats *stats)
{
	if (!device->ops.get_vf_stats)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_stats",
			 device->ops.get_vf_stats(device, vf, port, stats));
}
EXPORT_SYMBOL(ib_get_vf_stats);

/**
 * ib_get_vf_guid() - read the GUIDs of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @node_guid: filled in
 * @port_guid: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_guid(struct ib_device *device, int vf, u32 port,
		   struct ifla_vf_guid *node_guid,
		   struct ifla_vf_guid *port_guid)
{
	if (!device->ops.get_vf_guid)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_guid",
			 device->ops.get_vf_guid(device, vf, port, node_guid, port_guid));
}
EXPORT_SYMBOL(ib_get_vf_guid);

/**
 * ib_set_vf_guid() - set a GUID of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @guid: the GUID
 * @type: IFLA_VF_IB_NODE_GUID or IFLA_VF_IB_PORT_GUID
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_set_vf_guid(struct ib_device *device, int vf, u32 port, u64 guid,
		   int type)
{
	if (!device->ops.set_vf_guid)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "set_vf_guid",
			 device->ops.set_vf_guid(device, vf, port, guid, type));
}
EXPORT_SYMBOL(ib_set_vf_guid);
