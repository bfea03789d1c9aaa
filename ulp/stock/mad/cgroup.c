// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rdma control group: it lists the devices, and the objects of processes are charged to it.
 *
 * It is a client of the core, added to each device before ib_uverbs and removed after it.
 */
#include <linux/cgroup_rdma.h>
#include <linux/export.h>
#include <linux/slab.h>

#include "core_priv.h"
#include "mad.h"

#ifdef CONFIG_CGROUP_RDMA
static int cgroup_add(struct ib_device *dev);
static void cgroup_remove(struct ib_device *dev, void *client_data);

static struct ib_client cgroup_client = {
	.name = "rdma_cgroup",
	.add = cgroup_add,
	.remove = cgroup_remove,
};

static int cgroup_add(struct ib_device *dev)
{
	struct rdmacg_device *cg = kzalloc(sizeof(*cg), GFP_KERNEL);

	if (!cg)
		return -ENOMEM;
	cg->name = dev->name;
	rdmacg_register_device(cg);
	ib_set_client_data(dev, &cgroup_client, cg);
	return 0;
}

static void cgroup_remove(struct ib_device *dev, void *client_data)
{
	rdmacg_unregister_device(client_data);
	kfree(client_data);
}

/**
 * ib_rdmacg_try_charge() - charge an object to the control group of the calling process
 * @object: records the group
 * @dev: the device
 * @what: kind of resource
 *
 * Context: Process.
 * Return: 0; -EAGAIN at the group's limit; or -ENOMEM.
 */
int ib_rdmacg_try_charge(struct ib_rdmacg_object *object, struct ib_device *dev,
			 enum rdmacg_resource_type what)
{
	struct rdmacg_device *cg = ib_get_client_data(dev, &cgroup_client);

	return cg ? rdmacg_try_charge(&object->cg, cg, what) : 0;
}
EXPORT_SYMBOL(ib_rdmacg_try_charge);

/**
 * ib_rdmacg_uncharge() - undo ib_rdmacg_try_charge()
 * @object: as charged
 * @dev: the device
 * @what: kind of resource
 *
 * Context: Process.
 */
void ib_rdmacg_uncharge(struct ib_rdmacg_object *object, struct ib_device *dev,
			enum rdmacg_resource_type what)
{
	if (object->cg)
		rdmacg_uncharge(object->cg, ib_get_client_data(dev, &cgroup_client), what);
}
EXPORT_SYMBOL(ib_rdmacg_uncharge);

int rdma_cgroup_init(void)
{
	return ib_register_client(&cgroup_client);
}

void rdma_cgroup_exit(void)
{
	ib_unregister_client(&cgroup_client);
}
#else
int rdma_cgroup_init(void)
{
	return 0;
}

void rdma_cgroup_exit(void)
{
}
#endif
