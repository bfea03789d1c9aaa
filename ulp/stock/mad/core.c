// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the connection manager and the verbs of processes expect of the kernel's own
 * core, by means of kverbs'. They are private to that core, and declared in its core_priv.h and
 * restrack.h.
 */
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <kverbs/upper.h>
#include <rdma/rdma_cm.h>

#include "cma_priv.h"
#include "core_priv.h"

/**
 * roce_gid_type_mask_support() - the types of GIDs that a port has
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
 * ib_cache_gid_type_str() - the name that user space has for a type of GIDs
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
 * ib_cache_gid_parse_type_str() - the type of GIDs that a name stands for
 * @buf: the name, perhaps with a newline, as configfs has it
 *
 * Context: Any.
 * Return: the type; %IB_GID_TYPE_IB for the name that this and %IB_GID_TYPE_ROCE share;
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
 * ib_port_unregister_client_groups() - remove them
 * @dev: the device
 * @port: port number
 * @groups: as they were added
 *
 * Context: Process, may sleep.
 */
void ib_port_unregister_client_groups(struct ib_device *dev, u32 port,
				      const struct attribute_group **groups)
{
	ib_port_remove_groups(dev, port, groups);
}
EXPORT_SYMBOL(ib_port_unregister_client_groups);

/* --- tracking of what the core has not made ------------------------------------------ */

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
 * rdma_restrack_new() - initialize the tracking entry of an object that is being made
 * @res: the entry, zeroed
 * @type: kind of the object: a CM ID; or a context, PD, CQ or region of a process, for which
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
 * rdma_restrack_set_name() - record the maker of an object
 * @res: its tracking entry
 * @caller: KBUILD_MODNAME of the maker; %NULL: the calling process is
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
 * rdma_restrack_parent_name() - the maker of another is the maker of a CM ID
 * @dst: tracking entry of the ID
 * @parent: that of the other, which a listener is, for example
 *
 * A parent that is being destroyed may have dropped its task.
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
 * rdma_restrack_add() - list an object; a CM ID when it has got a device
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
 * @res: its tracking entry; it may never have been listed, as a CM ID without a device
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
 * rdma_restrack_sync() - a region has another PD now: nobody looks at the old one any more
 * @res: its tracking entry
 *
 * Context: Process, may sleep.
 */
void rdma_restrack_sync(struct rdma_restrack_entry *res)
{
	ib_track_sync(device_of(res), res);
}
EXPORT_SYMBOL(rdma_restrack_sync);
