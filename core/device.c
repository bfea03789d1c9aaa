// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: from allocation through registration to release.
 *
 * Lock protocol: ib_registry_lock (registry.c) guards the table of devices, their
 * names (name.c), marks and states, and the clients (client.c).
 *
 * The state decides which thread may act. In SETUP, ENABLING and DISABLING one
 * thread owns the device; others wait for its next state.
 *
 * A registered device has a count of users, which starts at 1 with ENABLING. Lookups
 * take a use of the device that they return. Unregistration is a fence:
 *  1. the state becomes DISABLING, the mark is cleared: lookups and new clients miss the
 *     device;
 *  2. the clients are removed, last in first out; kverbs_ca, one of the first, waits for
 *     channel-adapter requests, and frees what these made and left;
 *  3. the first use is given up, then the thread waits for the others;
 *  4. the debugfs and sysfs files are removed, which waits for their readers;
 *  5. GID updates and events are stopped, and the thread waits for those in progress.
 * The driver's methods must work until it returns. After that, only the driver
 * itself can reach the device, and lookups under RCU, which find its use count
 * zero; therefore the memory is freed a grace period after the last reference
 * on ib_device.dev is put.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../cq/cq.h"
#include "contract/contract.h"
#include "contract/device_priv.h"
#include "contract/export.h"
#include "contract/invalid.h"
#include "contract/registry.h"
#include "contract/trace.h"
#include "device.h"
#include "port/port.h"
#include "verbs/verbs.h"
#include "view/view.h"

/* Where the search for a free place in ib_devices starts. */
static u32 next_index;

static void device_table_del(struct ib_device *dev)
{
	lockdep_assert_held(&ib_registry_lock);
	ib_name_leave(dev);
	xa_erase(&ib_devices, dev->index);
}

static void ib_dev_move(struct ib_device *dev, enum ib_dev_state to)
{
	static const u8 legal[IB_DEV_STATES] = {
		[IB_DEV_ALLOCATED]	= BIT(IB_DEV_SETUP) |
					  BIT(IB_DEV_RELEASED),
		[IB_DEV_SETUP]		= BIT(IB_DEV_ALLOCATED) |
					  BIT(IB_DEV_UNREGISTERED) |
					  BIT(IB_DEV_ENABLING),
		[IB_DEV_ENABLING]	= BIT(IB_DEV_REGISTERED) |
					  BIT(IB_DEV_DISABLING),
		[IB_DEV_REGISTERED]	= BIT(IB_DEV_DISABLING),
		[IB_DEV_DISABLING]	= BIT(IB_DEV_UNREGISTERED) |
					  BIT(IB_DEV_RELEASED),
		[IB_DEV_UNREGISTERED]	= BIT(IB_DEV_RELEASED),
	};
	struct ib_device_priv *priv = ib_priv(dev);

	lockdep_assert_held(&ib_registry_lock);
	WARN_ONCE(!(legal[priv->state] & BIT(to)),
		  "%s: illegal change of state, %d to %d\n", dev_name(&dev->dev),
		  priv->state, to);
	/* The contract checker reads it without the lock. */
	WRITE_ONCE(priv->state, to);
	ib_contract_watch_state(dev);
	ib_registry_changed();
}

static void unregister_work(struct work_struct *work);

static void free_device(struct rcu_head *rcu)
{
	struct ib_device_priv *priv =
		container_of(rcu, struct ib_device_priv, rcu);

	ib_port_data_free(ib_device_of(priv));
	kfree(priv);
}

static void ib_device_release(struct device *d)
{
	struct ib_device *dev = container_of(d, struct ib_device, dev);

	ib_cache_release(dev);
	call_rcu(&ib_priv(dev)->rcu, free_device);
}

/**
 * _ib_alloc_device() - allocate a device; see ib_alloc_device()
 * @size: bytes of the driver's structure, which starts with the ib_device
 *
 * Context: Process, may sleep.
 * Return: the zeroed structure, or %NULL.
 */
struct ib_device *_ib_alloc_device(size_t size)
{
	struct ib_device_priv *priv;
	struct ib_device *dev;

	if (WARN_ON(size < sizeof(struct ib_device)))
		return NULL;
	priv = kzalloc(size_add(sizeof(*priv), size), GFP_KERNEL);
	if (!priv)
		return NULL;
	dev = ib_device_of(priv);

	INIT_HLIST_NODE(&priv->by_name);
	INIT_LIST_HEAD(&priv->presences);
	INIT_LIST_HEAD(&priv->departed_modules);
	INIT_LIST_HEAD(&priv->ahs);
	spin_lock_init(&priv->ahs_lock);
	INIT_LIST_HEAD(&priv->netdev_link);
	mutex_init(&priv->cache_lock);
	BLOCKING_INIT_NOTIFIER_HEAD(&priv->port_notifiers);
	mutex_init(&priv->roce_lock);
	ib_events_init(dev);
	rdma_restrack_init(dev);
	ib_invalid_init(dev);
	xa_init_flags(&dev->client_data, XA_FLAGS_ALLOC);
	init_completion(&dev->unreg_completion);
	INIT_WORK(&dev->unregistration_work, unregister_work);
	dev->uverbs_cmd_mask = ib_user_requests;
	dev->coredev.owner = dev;
	write_pnet(&dev->coredev.rdma_net, &init_net);
	ib_sysfs_prepare(dev, ib_device_release);
	return dev;
}
EXPORT_SYMBOL(_ib_alloc_device);

/**
 * ib_dealloc_device() - free a device
 * @device: from ib_alloc_device(), not registered
 *
 * Calls the driver's dealloc_driver method if there is one. A driver that has one calls
 * this only if ib_register_device() has failed. If objects were left on the device, the log
 * says whose they are; they cannot be used any more, and the memory of the device is not
 * freed.
 *
 * Context: Process, may sleep.
 */
void ib_dealloc_device(struct ib_device *device)
{
	if (device->ops.dealloc_driver)
		device->ops.dealloc_driver(device);

	/*
	 * Only now, so that ib_unregister_driver() finds the device as long as
	 * one of its methods can run.
	 */
	mutex_lock(&ib_registry_lock);
	ib_contract_forget(device);
	ib_dev_move(device, IB_DEV_RELEASED);
	if (xa_load(&ib_devices, device->index) == device)
		device_table_del(device);
	mutex_unlock(&ib_registry_lock);

	/* No reference is held on the parent: messages must not name it any more. */
	device->dev.parent = NULL;
	ib_port_put_netdevs(device);
	WARN_ON(!xa_empty(&device->client_data));
	if (!rdma_restrack_clean(device))
		ib_device_make_defunct(device);
	else if (ib_contract_on())
		ib_device_keep_defunct(device);
	put_device(&device->dev);
}
EXPORT_SYMBOL(ib_dealloc_device);

/**
 * ib_set_device_ops() - set methods of a device
 * @dev: device that is not registered yet
 * @ops: methods and object sizes; zero members change nothing
 *
 * May be called several times. A call does not change what an earlier one has set.
 *
 * Context: Any.
 */
void ib_set_device_ops(struct ib_device *dev, const struct ib_device_ops *ops)
{
	const size_t start = offsetof(struct ib_device_ops, device_group);
	unsigned long *to = (void *)&dev->ops + start;
	const unsigned long *from = (const void *)ops + start;
	size_t i;

	/* From device_group on, each member is a pointer or a size. */
	BUILD_BUG_ON(offsetof(struct ib_device_ops, device_group) %
		     sizeof(unsigned long));
	BUILD_BUG_ON(sizeof(size_t) != sizeof(unsigned long));
	for (i = 0; i < (sizeof(*ops) - start) / sizeof(*to); i++)
		if (!to[i])
			to[i] = from[i];

	if (ops->driver_id != RDMA_DRIVER_UNKNOWN) {
		WARN_ON(dev->ops.driver_id != RDMA_DRIVER_UNKNOWN &&
			dev->ops.driver_id != ops->driver_id);
		dev->ops.driver_id = ops->driver_id;
	}
	if (ops->owner) {
		WARN_ON(dev->ops.owner && dev->ops.owner != ops->owner);
		dev->ops.owner = ops->owner;
	}
	if (ops->uverbs_abi_ver)
		dev->ops.uverbs_abi_ver = ops->uverbs_abi_ver;
	dev->ops.uverbs_no_driver_id_binding |=
		ops->uverbs_no_driver_id_binding;
}
EXPORT_SYMBOL(ib_set_device_ops);

static int check_mandatory(const struct ib_device *dev, const void *caller)
{
#define METHOD(name) { offsetof(struct ib_device_ops, name), #name }
	static const struct {
		size_t offset;
		const char *name;
	} methods[] = {
		METHOD(query_device), METHOD(query_port),
		METHOD(get_port_immutable),
		METHOD(alloc_pd), METHOD(dealloc_pd),
		METHOD(create_qp), METHOD(modify_qp), METHOD(destroy_qp),
		METHOD(post_send), METHOD(post_recv),
		METHOD(create_cq), METHOD(destroy_cq),
		METHOD(poll_cq), METHOD(req_notify_cq),
		METHOD(get_dma_mr), METHOD(dereg_mr),
	};
#undef METHOD
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		if (*(void **)((void *)&dev->ops + methods[i].offset))
			continue;
		pr_warn("cannot register the device of %pS: driver lacks method %s\n",
			caller, methods[i].name);
		return -EINVAL;
	}
	return 0;
}

static int device_table_add(struct ib_device *dev, const char *pattern,
			    const void *caller)
{
	char name[IB_DEVICE_NAME_MAX];
	int ret;

	lockdep_assert_held(&ib_registry_lock);
	ret = ib_name_choose(name, pattern);
	if (ret) {
		pr_warn("cannot register device \"%s\" of %pS: %s\n",
			pattern ? : "", caller,
			ret == -ENFILE ? "name in use" :
			"not a word without '/', shorter than 64 bytes, with at most one %d");
		return ret;
	}
	ret = dev_set_name(&dev->dev, "%s", name);
	if (ret)
		return ret;
	ret = xa_alloc_cyclic(&ib_devices, &dev->index, dev, xa_limit_31b,
			      &next_index, GFP_KERNEL);
	if (ret < 0)
		return ret;
	ib_name_enter(dev, name);
	return 0;
}

static int begin_setup(struct ib_device *dev, const char *pattern,
		       const void *caller)
{
	int ret = -EINVAL;

	mutex_lock(&ib_registry_lock);
	if (ib_priv(dev)->state == IB_DEV_ALLOCATED)
		ret = device_table_add(dev, pattern, caller);
	else
		pr_warn("cannot register %s of %pS: already registered\n",
			dev_name(&dev->dev), caller);
	if (!ret)
		ib_dev_move(dev, IB_DEV_SETUP);
	mutex_unlock(&ib_registry_lock);
	return ret;
}

static int query_attrs(struct ib_device *dev, unsigned long site)
{
	struct ib_udata udata = {};
	int ret;

	memset(&dev->attrs, 0, sizeof(dev->attrs));
	ret = dev->ops.query_device(dev, &dev->attrs, &udata);
	if (ret)
		ibdev_warn(dev, "cannot register: query_device failed (%d)\n", ret);
	else if (!dev->attrs.max_cqe || !dev->attrs.max_qp_wr)
		ib_output_missing(dev, NULL, "query_device", "returned no limits", site);
	return ret;
}

/* GID updates and events change the tables: stop both before the tables are emptied. */
static void stop_ports(struct ib_device *dev)
{
	ib_roce_stop(dev);
	ib_events_stop(dev);
	ib_cache_cleanup(dev);
}

static int start_ports(struct ib_device *dev, unsigned long site)
{
	int ret;

	ret = ib_cache_setup(dev);
	if (ret)
		return ret;
	/* From here on the driver's events refresh what is read below. */
	ib_events_start(dev);
	ret = ib_cache_fill(dev, site);
	if (!ret)
		ret = ib_roce_start(dev);
	if (ret)
		stop_ports(dev);
	return ret;
}

/* Set up all that the first consumer needs. */
static int prepare_device(struct ib_device *dev, unsigned long site)
{
	int ret;

	ret = ib_port_data_setup(dev, site);
	if (ret)
		return ret;
	ret = query_attrs(dev, site);
	if (ret)
		return ret;
	ret = start_ports(dev, site);
	if (ret)
		return ret;
	ret = ib_cq_device_init(dev);
	if (ret)
		stop_ports(dev);
	return ret;
}

static void unprepare_device(struct ib_device *dev)
{
	ib_cq_device_cleanup(dev);
	stop_ports(dev);
}

/* The device is DISABLING and this thread owns it. */
static void disable_device(struct ib_device *dev)
{
	mutex_lock(&ib_registry_lock);
	ib_clients_remove(dev);
	mutex_unlock(&ib_registry_lock);
	/* The use that begin_enable() took for the table. */
	ib_device_put(dev);
	/* Without the warnings, a leaked use would make the unregistration hang silently. */
	while (!wait_for_completion_timeout(&dev->unreg_completion, ib_wait_warn_timeout()))
		ibdev_warn(dev, "unregister waiting for %u references\n",
			   refcount_read(&dev->refcount));

	trace_ib_device_remove(dev);
	ib_debugfs_remove(dev);
	ib_sysfs_remove(dev);
	unprepare_device(dev);
	ib_port_put_netdevs(dev);
}

static void begin_disable(struct ib_device *dev)
{
	lockdep_assert_held(&ib_registry_lock);
	ib_dev_move(dev, IB_DEV_DISABLING);
	xa_clear_mark(&ib_devices, dev->index, IB_DEVICE_REGISTERED);
}

static void end_disable(struct ib_device *dev)
{
	mutex_lock(&ib_registry_lock);
	ib_dev_move(dev, IB_DEV_UNREGISTERED);
	mutex_unlock(&ib_registry_lock);
}

/*
 * The table has one use, and this thread has one, because other threads may
 * unregister the device once it is visible.
 */
static void begin_enable(struct ib_device *dev)
{
	mutex_lock(&ib_registry_lock);
	refcount_set(&dev->refcount, 2);
	ib_dev_move(dev, IB_DEV_ENABLING);
	xa_set_mark(&ib_devices, dev->index, IB_DEVICE_REGISTERED);
	mutex_unlock(&ib_registry_lock);
	trace_ib_device_add(dev);
}

/* The device is visible: offer it to the clients. */
static int enable_device(struct ib_device *dev)
{
	int ret = 0;

	if (dev->ops.enable_driver)
		ret = dev->ops.enable_driver(dev);

	mutex_lock(&ib_registry_lock);
	if (!ret)
		ret = ib_clients_add(dev);
	if (ret) {
		begin_disable(dev);
	} else {
		/* Nobody may rename the device while the event is made: see name.c. */
		ib_sysfs_announce(dev);
		ib_dev_move(dev, IB_DEV_REGISTERED);
		ib_priv(dev)->registered_at = ib_registry_now();
	}
	mutex_unlock(&ib_registry_lock);
	return ret;
}

/**
 * ib_register_device() - make a device available to consumers
 * @device: from ib_alloc_device(), with its methods, node_type and
 *	    phys_port_cnt set
 * @name: its name; "%d" in it becomes the smallest number that makes it unique
 * @dma_device: device that does its DMA, with DMA parameters set; %NULL for a
 *		device that accesses memory with the CPU: then DMA addresses are
 *		kernel addresses.
 *
 * Consumers may use the device, and the driver's methods are called, before
 * this returns. After a failure the driver calls ib_dealloc_device().
 *
 * Context: Process, may sleep.
 * Return: 0;
 *	   -EINVAL if a required method is missing, if the name, the number of
 *	   ports or a port's table length is not valid, if the number of ports is
 *	   not what it was at an earlier ib_device_set_netdev() or registration,
 *	   if it is or was registered, or if called in atomic context or by an event
 *	   handler;
 *	   -ENFILE if there is a device of that name;
 *	   -ENOMEM; or the error of a method.
 */
int ib_register_device(struct ib_device *device, const char *name,
		       struct device *dma_device)
{
	const void *caller = __builtin_return_address(0);
	bool was_added = false;
	int ret;

	if (ib_called_atomic(device, "registers a device", caller))
		return -EINVAL;
	ret = check_mandatory(device, caller);
	if (ret)
		return ret;
	ib_clients_might_be_called();
	ret = begin_setup(device, name, caller);
	if (ret)
		return ret;
	ib_port_default_method(device);

	WARN_ON(dma_device && !dma_device->dma_parms);
	device->dma_device = dma_device;
	device->kverbs_provider = true;
	ret = prepare_device(device, (unsigned long)caller);
	if (ret)
		goto err_abandon;
	ret = ib_sysfs_add(device, &was_added);
	if (ret)
		goto err_unprepare;
	ib_debugfs_add(device);
	begin_enable(device);
	ret = enable_device(device);
	if (ret) {
		ib_device_put(device);
		disable_device(device);
		end_disable(device);
		return ret;
	}
	ib_device_put(device);
	return 0;

err_unprepare:
	unprepare_device(device);
err_abandon:
	mutex_lock(&ib_registry_lock);
	device_table_del(device);
	device->name[0] = '\0';
	/* A device that was added to sysfs cannot be added again. */
	ib_dev_move(device, was_added ? IB_DEV_UNREGISTERED : IB_DEV_ALLOCATED);
	mutex_unlock(&ib_registry_lock);
	return ret;
}
EXPORT_SYMBOL(ib_register_device);

/*
 * Returns true if the caller must take the device down, false if it has been
 * taken down already, by this or another thread, or was never up.
 */
static bool claim_unregistration(struct ib_device *dev)
{
	lockdep_assert_held(&ib_registry_lock);
	for (;;) {
		switch (ib_priv(dev)->state) {
		case IB_DEV_REGISTERED:
			begin_disable(dev);
			return true;
		case IB_DEV_SETUP:
		case IB_DEV_ENABLING:
		case IB_DEV_DISABLING:
			ib_registry_wait();
			break;
		default:
			return false;
		}
	}
}

/* The caller holds a reference on the struct device. */
static void unregister_device(struct ib_device *dev)
{
	bool mine;

	ib_clients_might_be_called();
	mutex_lock(&ib_registry_lock);
	if (WARN_ONCE(ib_in_client_callback(dev),
		      "%s: unregistered from a client's callback for it\n",
		      dev_name(&dev->dev))) {
		mutex_unlock(&ib_registry_lock);
		return;
	}
	mine = claim_unregistration(dev);
	mutex_unlock(&ib_registry_lock);
	if (!mine)
		return;
	disable_device(dev);
	if (dev->ops.dealloc_driver)
		ib_dealloc_device(dev);
	else
		end_disable(dev);
}

/**
 * ib_unregister_device() - take a device away from the consumers
 * @device: a registered device
 *
 * Clients are removed in the reverse order of their registration. When this returns, no
 * consumer uses the device any more; until then its methods must work. If the driver has a
 * dealloc_driver method, the device is freed. While this waits for uses that were not given
 * back, it logs their number each wait_warn_ms (a module parameter). If it waits longer
 * than that for a client's callback in another thread, it logs that once.
 *
 * Context: Process, may sleep; not from a client's method for this device.
 */
void ib_unregister_device(struct ib_device *device)
{
	if (ib_called_atomic(device, "unregisters a device",
			     __builtin_return_address(0)))
		return;
	get_device(&device->dev);
	unregister_device(device);
	put_device(&device->dev);
}
EXPORT_SYMBOL(ib_unregister_device);

/**
 * ib_unregister_device_and_put() - unregister a device that the caller uses
 * @device: device found by ib_device_get_by_name() or its like
 *
 * Like ib_unregister_device(), and gives up the caller's use, even if the context is wrong
 * and the device stays registered. Several threads may call it at once; in each of them it
 * returns when the device is unregistered. The driver must have a dealloc_driver method.
 *
 * Context: Process, may sleep; not from a client's method for this device.
 */
void ib_unregister_device_and_put(struct ib_device *device)
{
	if (ib_called_atomic(device, "unregisters a device",
			     __builtin_return_address(0))) {
		ib_device_put(device);
		return;
	}
	WARN_ON(!device->ops.dealloc_driver);
	get_device(&device->dev);
	ib_device_put(device);
	unregister_device(device);
	put_device(&device->dev);
}
EXPORT_SYMBOL(ib_unregister_device_and_put);

static void unregister_work(struct work_struct *work)
{
	struct ib_device *dev =
		container_of(work, struct ib_device, unregistration_work);

	unregister_device(dev);
	put_device(&dev->dev);
}

/**
 * ib_unregister_device_queued() - unregister a device from a work item
 * @ib_dev: a registered device
 *
 * For drivers that hold a lock which the clients' remove methods may take. The
 * driver must have a dealloc_driver method, and call ib_unregister_driver()
 * before its module is unloaded.
 *
 * Context: Any.
 */
void ib_unregister_device_queued(struct ib_device *ib_dev)
{
	WARN_ON(!ib_dev->ops.dealloc_driver);
	get_device(&ib_dev->dev);
	if (!queue_work(ib_unregister_wq, &ib_dev->unregistration_work))
		put_device(&ib_dev->dev);
}
EXPORT_SYMBOL(ib_unregister_device_queued);

/**
 * ib_unregister_driver() - unregister all devices of a driver
 * @driver_id: the driver
 *
 * On return, every device that the driver had registered is freed, and none of
 * the driver's methods is running. The driver must have a dealloc_driver
 * method, and must not register more devices meanwhile.
 *
 * Context: Process, may sleep.
 */
void ib_unregister_driver(enum rdma_driver_id driver_id)
{
	struct ib_device *dev;
	unsigned long index;

	if (ib_called_atomic(NULL, "unregisters its devices",
			     __builtin_return_address(0)))
		return;
	ib_clients_might_be_called();
	mutex_lock(&ib_registry_lock);
	xa_for_each(&ib_devices, index, dev) {
		if (dev->ops.driver_id != driver_id)
			continue;
		get_device(&dev->dev);
		mutex_unlock(&ib_registry_lock);

		WARN_ON(!dev->ops.dealloc_driver);
		unregister_device(dev);
		put_device(&dev->dev);

		mutex_lock(&ib_registry_lock);
	}
	mutex_unlock(&ib_registry_lock);
}
EXPORT_SYMBOL(ib_unregister_driver);

/**
 * ib_device_put() - stop using a device
 * @device: device that ib_device_try_get() or a lookup returned
 *
 * Context: Any.
 */
void ib_device_put(struct ib_device *device)
{
	if (refcount_dec_and_test(&device->refcount))
		complete(&device->unreg_completion);
}
EXPORT_SYMBOL(ib_device_put);

static bool is_visible(const struct ib_device *dev)
{
	return xa_get_mark(&ib_devices, dev->index, IB_DEVICE_REGISTERED);
}

/* Copies the name to @to, which has IB_DEVICE_NAME_MAX bytes: all of it, old or new. */
void ib_device_get_name(char *to, const struct ib_device *dev)
{
	mutex_lock(&ib_registry_lock);
	ib_copy_device_name(to, dev);
	mutex_unlock(&ib_registry_lock);
}
IB_EXPORT_INTERNAL(ib_device_get_name);

/* Whether its clients have been told, or are about to be told, that it is unregistered. */
bool ib_device_is_going(const struct ib_device *dev)
{
	return !is_visible(dev);
}
IB_EXPORT_INTERNAL(ib_device_is_going);

static bool is_of_driver(const struct ib_device *dev,
			 enum rdma_driver_id driver_id)
{
	return driver_id == RDMA_DRIVER_UNKNOWN ||
	       driver_id == dev->ops.driver_id;
}

/**
 * ib_device_get_by_name() - find a registered device
 * @name: its name
 * @driver_id: its driver, or %RDMA_DRIVER_UNKNOWN for any
 *
 * Context: Process, may sleep.
 * Return: the device, to be given back with ib_device_put(), or %NULL.
 */
struct ib_device *ib_device_get_by_name(const char *name,
					enum rdma_driver_id driver_id)
{
	struct ib_device *dev;

	mutex_lock(&ib_registry_lock);
	dev = ib_name_find(name);
	if (dev && (!is_visible(dev) || !is_of_driver(dev, driver_id) ||
		    !ib_device_try_get(dev)))
		dev = NULL;
	mutex_unlock(&ib_registry_lock);
	if (dev)
		ib_contract_device_found(dev, _RET_IP_);
	return dev;
}
EXPORT_SYMBOL(ib_device_get_by_name);

static bool device_has_netdev(const struct ib_device *dev,
			      const struct net_device *ndev)
{
	u32 port;

	rdma_for_each_port(dev, port)
		if (rcu_access_pointer(ib_port(dev, port)->netdev) == ndev)
			return true;
	return false;
}

/**
 * ib_device_get_by_netdev() - find the device of a network device
 * @ndev: network device that ib_device_set_netdev() gave to a port
 * @driver_id: its driver, or %RDMA_DRIVER_UNKNOWN for any
 *
 * Context: Any but hard interrupt.
 * Return: the device, to be given back with ib_device_put(), or %NULL.
 */
struct ib_device *ib_device_get_by_netdev(struct net_device *ndev,
					  enum rdma_driver_id driver_id)
{
	struct ib_device *dev, *found = NULL;
	unsigned long index;

	rcu_read_lock();
	xa_for_each_marked(&ib_devices, index, dev, IB_DEVICE_REGISTERED) {
		if (!is_of_driver(dev, driver_id) || !device_has_netdev(dev, ndev) ||
		    !ib_device_try_get(dev))
			continue;
		found = dev;
		break;
	}
	rcu_read_unlock();
	if (found)
		ib_contract_device_found(found, _RET_IP_);
	return found;
}
EXPORT_SYMBOL(ib_device_get_by_netdev);

void ib_device_exit(void)
{
	WARN_ON(!xa_empty(&ib_devices));
}
