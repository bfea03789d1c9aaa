// SPDX-License-Identifier: GPL-2.0-only
/*
 * Logs what happens to devices: they come, they go, and they have events. An event
 * handler must not sleep; work that needs to sleep goes to a work item.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct watch {
	struct ib_device *dev;
	struct ib_event_handler handler;
	struct work_struct work;
};

static struct ib_client watch_client;

/* May sleep, and may use the device: watch_remove() waits for it. */
static void watch_work(struct work_struct *work)
{
	struct watch *watch = container_of(work, struct watch, work);
	struct ib_port_attr port;

	if (!ib_query_port(watch->dev, 1, &port))
		pr_info("%s: port 1 is in state %d\n", dev_name(&watch->dev->dev), port.state);
}

static void watch_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct watch *watch = container_of(handler, struct watch, handler);

	pr_info("%s: %s\n", dev_name(&event->device->dev), ib_event_msg(event->event));
	schedule_work(&watch->work);
}

static int watch_add(struct ib_device *dev)
{
	struct watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL);

	if (!watch)
		return -ENOMEM;
	watch->dev = dev;
	INIT_WORK(&watch->work, watch_work);
	INIT_IB_EVENT_HANDLER(&watch->handler, dev, watch_event);
	ib_set_client_data(dev, &watch_client, watch);
	/* Last: the handler may be called before this returns. */
	ib_register_event_handler(&watch->handler);
	return 0;
}

static void watch_remove(struct ib_device *dev, void *client_data)
{
	struct watch *watch = client_data;

	/*
	 * In this order: first the handler that queues, then the queued work, then
	 * the memory.
	 */
	ib_unregister_event_handler(&watch->handler);
	cancel_work_sync(&watch->work);
	kfree(watch);
}

static struct ib_client watch_client = {
	.name = "watch",
	.add = watch_add,
	.remove = watch_remove,
};

module_driver(watch_client, ib_register_client, ib_unregister_client);
MODULE_DESCRIPTION("Says what happens to devices");
MODULE_LICENSE("GPL");
