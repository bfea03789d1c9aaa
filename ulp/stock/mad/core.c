// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the kernel's own connection manager and ib_uverbs expect from the kernel's own
 * core, implemented on kverbs' core. They are private to the kernel's core, which declares them
 * in core_priv.h and restrack.h.
 */
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <kverbs/upper.h>
#include <rdma/rdma_cm.h>

#include "cma_priv.h"
#include "core_priv.h"
#include "restrack.h"

IB_CHECK_RESTRACK_LAYOUT(next_id);

/**
 * roce_gid_type_mask_support() - the GID types that a port supports
 * @dev: the device
 * @port: port number
 *
 * Context: Any.
 * Return: bit mask of &enum ib_gid_type, never 0.
 */
unsigned long roce_gid_type_mask_support(struct ib_device *dev, u32 port)
{
	return rdma_protocol_roce(dev, port) ? ib_roce_gid_types(dev, port) : BIT(IB_GID_TYPE_IB);
}
EXPORT_SYMBOL(roce_gid_type_mask_support);

/**
 * ib_cache_gid_type_str() - the user-space name of a GID type
 * @type: the type, or any other number
 *
 * Context: Any.
 * Return: the name.
 */
const char *ib_cache_gid_type_str(enum ib_gid_type type)
{
	return type < IB_GID_TYPE_SIZE ? ib_gid_type_str(type) : "unknown";
}
EXPORT_SYMBOL(ib_cache_gid_type_str);

/**
 * ib_cache_gid_parse_type_str() - look up a GID type by name
 * @buf: the name, possibly followed by a newline, as configfs passes it
 *
 * Context: Any.
 * Return: the type; %IB_GID_TYPE_IB for the name that it shares with %IB_GID_TYPE_ROCE;
 * -EINVAL for other names.
 */
int ib_cache_gid_parse_type_str(const char *buf)
{
	static const enum ib_gid_type types[] = { IB_GID_TYPE_IB, IB_GID_TYPE_ROCE_UDP_ENCAP };
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (sysfs_streq(buf, ib_gid_type_str(types[i])))
			return types[i];
	return -EINVAL;
}
EXPORT_SYMBOL(ib_cache_gid_parse_type_str);

/**
 * ib_port_register_client_groups() - add a client's files to the directory of a port
 * @dev: the device, on which the client is present
 * @port: port number
 * @groups: as for ib_port_add_groups()
 *
 * Context: Process, may sleep.
 * Return: as ib_port_add_groups().
 */
int ib_port_register_client_groups(struct ib_device *dev, u32 port,
				   const struct attribute_group **groups)
{
	return ib_port_add_groups(dev, port, groups);
}
EXPORT_SYMBOL(ib_port_register_client_groups);

/**
 * ib_port_unregister_client_groups() - remove a client's files from the directory of a port
 * @dev: the device
 * @port: port number
 * @groups: as passed to ib_port_register_client_groups()
 *
 * Context: Process, may sleep.
 */
void ib_port_unregister_client_groups(struct ib_device *dev, u32 port,
				      const struct attribute_group **groups)
{
	ib_port_remove_groups(dev, port, groups);
}
EXPORT_SYMBOL(ib_port_unregister_client_groups);

/* --- tracking of objects that the core did not create --------------------------------- */

static struct ib_device *device_of(struct rdma_restrack_entry *res)
{
	switch (res->type) {
	case RDMA_RESTRACK_CM_ID:
		return container_of(res, struct rdma_id_private, res)->id.device;
	case RDMA_RESTRACK_CTX:
		return container_of(res, struct ib_ucontext, res)->device;
	case RDMA_RESTRACK_PD:
		return container_of(res, struct ib_pd, res)->device;
	case RDMA_RESTRACK_CQ:
		return container_of(res, struct ib_cq, res)->device;
	case RDMA_RESTRACK_MR:
		return container_of(res, struct ib_mr, res)->device;
	default:
		WARN_ON_ONCE(1);
		return NULL;
	}
}

/**
 * rdma_restrack_new() - initialize the tracking entry of an object under construction
 * @res: the entry, zeroed
 * @type: kind of the object: a CM ID; or a process's context, PD, CQ or MR, for which
 *	ib_uverbs calls the driver itself
 *
 * Context: Process.
 */
void rdma_restrack_new(struct rdma_restrack_entry *res, enum rdma_restrack_type type)
{
	if (type == RDMA_RESTRACK_CQ)
		ib_cq_adopt(container_of(res, struct ib_cq, res));
	else
		ib_track_new(res, type);
}
EXPORT_SYMBOL(rdma_restrack_new);

/**
 * rdma_restrack_set_name() - record the owner of an object
 * @res: its tracking entry
 * @caller: KBUILD_MODNAME of the owner; %NULL if the calling process owns it
 *
 * Context: Process.
 */
void rdma_restrack_set_name(struct rdma_restrack_entry *res, const char *caller)
{
	if (caller)
		ib_track_set_maker(res, caller, _RET_IP_);
	else
		ib_track_set_user(res, current, _RET_IP_);
}
EXPORT_SYMBOL(rdma_restrack_set_name);

/**
 * rdma_restrack_parent_name() - copy the owner of another object to a CM ID
 * @dst: tracking entry of the ID
 * @parent: tracking entry of the other object, for example a listener
 *
 * A parent that is being destroyed may have dropped its task already.
 *
 * Context: Any.
 */
void rdma_restrack_parent_name(struct rdma_restrack_entry *dst,
			       const struct rdma_restrack_entry *parent)
{
	if (!parent->user && parent->kern_name)
		ib_track_set_maker(dst, parent->kern_name, _RET_IP_);
	else if (parent->user && parent->task)
		ib_track_set_user(dst, parent->task, _RET_IP_);
}
EXPORT_SYMBOL(rdma_restrack_parent_name);

/**
 * rdma_restrack_add() - list an object; a CM ID is listed once it has a device
 * @res: its tracking entry
 *
 * Context: Process.
 */
void rdma_restrack_add(struct rdma_restrack_entry *res)
{
	struct ib_device *dev = device_of(res);

	if (dev)
		ib_track_add(dev, res);
}
EXPORT_SYMBOL(rdma_restrack_add);

/**
 * rdma_restrack_del() - take an object off the list, before it is freed
 * @res: its tracking entry; it may never have been listed, like a CM ID without a device
 *
 * Context: Process, may sleep.
 */
void rdma_restrack_del(struct rdma_restrack_entry *res)
{
	if (res->valid)
		ib_track_del(device_of(res), res);
	else
		ib_track_drop_user(res);
}
EXPORT_SYMBOL(rdma_restrack_del);

/**
 * rdma_restrack_sync() - wait until nobody uses the old PD of an MR that has moved to another
 * @res: its tracking entry
 *
 * Context: Process, may sleep.
 */
void rdma_restrack_sync(struct rdma_restrack_entry *res)
{
	ib_track_sync(device_of(res), res);
}
EXPORT_SYMBOL(rdma_restrack_sync);
