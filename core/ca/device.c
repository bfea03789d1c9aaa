// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests: what belongs to a device.
 *
 * This is a client of the device like any other. It is registered before the ULPs that make
 * requests, which need its symbols: so its add() comes before theirs, and its remove() after.
 *
 * Life: add() makes the ca_device, its image and its node in /dev. A request, and whatever
 * else calls the device, holds a use of the ca_device. remove() lets no more of them begin,
 * waits for those in progress, and closes the handles that are open: a process's file may
 * stay open long after the device has gone, but then no requests succeed on it. The last
 * close of a file frees the rest.
 *
 * A handle is closed by CLOSE, which is a request, by the last close of its file, by the end of
 * the process, or by the end of the device. The second and the third are counted while they close
 * handles: the device's end lets no more of them begin, waits for those that have begun, and
 * closes the rest. No lock is held meanwhile: closing frees regions, and so calls the drivers
 * that own their memory.
 *
 * Lock protocol: files_lock, a mutex, guards the list of files, the count and the
 * device's end; events reach the files under it. It nests inside the SRCU of mmu
 * notifiers.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <kverbs/upper.h>

#include "../contract/contract.h"
#include "../contract/refs.h"
#include "../contract/registry.h"
#include "../view/view.h"
#include "ca.h"

static struct ib_client ca_client;

static void ca_device_free(struct kref *ref)
{
	struct ca_device *ca = container_of(ref, struct ca_device, ref);

	put_device(&ca->device->dev);
	xa_destroy(&ca->readers);
	mutex_destroy(&ca->files_lock);
	mutex_destroy(&ca->image_lock);
	kfree_rcu(ca, rcu);
}

/* Any context that may sleep. */
void ca_device_put(struct ca_device *ca)
{
	kref_put(&ca->ref, ca_device_free);
}

/* The caller is about to close handles. Returns false if the device's end closes them. */
bool ca_closing_begin(struct ca_device *ca)
{
	bool begun;

	mutex_lock(&ca->files_lock);
	begun = !ca->removed;
	if (begun) {
		ca->closers++;
		kref_get(&ca->ref);
	}
	mutex_unlock(&ca->files_lock);
	return begun;
}

void ca_closing_end(struct ca_device *ca)
{
	mutex_lock(&ca->files_lock);
	/* release: ca_remove() sees all that was closed */
	smp_store_release(&ca->closers, ca->closers - 1);
	/*
	 * Either it sees the new count, or it is woken: it checks after it has queued
	 * itself.
	 */
	smp_mb();
	if (!ca->closers)
		wake_up_var(&ca->closers);
	mutex_unlock(&ca->files_lock);
	ca_device_put(ca);
}

static struct ca_device *ca_device_alloc(struct ib_device *dev)
{
	struct ca_device *ca;

	ca = kzalloc(sizeof(*ca), GFP_KERNEL);
	if (!ca)
		return NULL;
	kref_init(&ca->ref);
	get_device(&dev->dev);
	ca->device = dev;
	refcount_set(&ca->uses, 1);
	init_completion(&ca->unused);
	ca_space_init(&ca->kernel, false);
	mutex_init(&ca->image_lock);
	INIT_LIST_HEAD(&ca->files);
	mutex_init(&ca->files_lock);
	xa_init(&ca->readers);
	init_completion(&ca->closed);
	ib_ref_log_init(&ca->borrowed);
	ca_events_start(ca);
	return ca;
}

/*
 * Takes a use of the ca_device of @dev: its remove() waits for ca_use_end(). NULL if there is
 * none, or it is being removed. Any context.
 */
struct ca_device *ca_use_begin(struct ib_device *dev)
{
	struct ca_device *ca;

	rcu_read_lock();
	ca = ca_of(dev);
	if (ca && !ca_use_try(ca))
		ca = NULL;
	rcu_read_unlock();
	return ca;
}

void ca_use_end(struct ca_device *ca)
{
	if (refcount_dec_and_test(&ca->uses))
		complete(&ca->unused);
}

/* Makes a new image, after something that queries report has changed. */
static void ca_refresh(struct ca_device *ca)
{
	int ret = ca_image_refresh(ca);

	if (ret)
		ibdev_warn(ca->device, "cannot refresh CA attributes, serving stale ones (%d)\n",
			   ret);
}

static int port_changed(struct notifier_block *nb, unsigned long unused, void *data)
{
	ca_refresh(container_of(nb, struct ca_device, port_notifier));
	return NOTIFY_OK;
}

/* After port_changed() if the event is one that changes the image. */
static void event_handler(struct ib_event_handler *handler, struct ib_event *event)
{
	struct ca_device *ca = container_of(handler, struct ca_device, event_handler);
	u32 port = event->event == IB_EVENT_DEVICE_FATAL ?
		   0 : event->element.port_num;

	ca_events_queue(ca, event->event, port);
}

/*
 * Closes the handles of all files. The caller has made sure that no other thread closes handles or
 * adds files, and no file is taken off the list before this is over: so files_lock is not needed,
 * and the files get the events that come meanwhile.
 */
static void close_files(struct ca_device *ca)
{
	struct ca_file *f;

	list_for_each_entry(f, &ca->files, node)
		ca_space_close(&f->space);
}

static void ca_remove(struct ib_device *dev, void *client_data)
{
	struct ca_device *ca = client_data;

	ca_node_remove(ca);
	/* From here on, requests fail; those under RCU are over when the memory is freed. */
	RCU_INIT_POINTER(ib_priv(dev)->ca, NULL);
	ca_use_end(ca);
	/* Drivers may take any time over a request: log what the removal waits for. */
	while (!wait_for_completion_timeout(&ca->unused, ib_wait_warn_timeout()))
		ibdev_warn(dev, "removing the channel adapter: waiting for %u requests in progress\n",
			   refcount_read(&ca->uses));

	mutex_lock(&ca->files_lock);
	ca->removed = true;
	mutex_unlock(&ca->files_lock);
	/*
	 * So may the providers of memory that a closed handle gives back. acquire: pairs with
	 * ca_closing_end(); no more closers are added.
	 */
	while (!wait_var_event_timeout(&ca->closers, !smp_load_acquire(&ca->closers),
				       ib_wait_warn_timeout()))
		ibdev_warn(dev, "removing the channel adapter: waiting for %u files or handles to be closed\n",
			   READ_ONCE(ca->closers));
	close_files(ca);
	ca_space_close(&ca->kernel);
	complete_all(&ca->closed);
	ib_unregister_event_handler(&ca->event_handler);
	ca_events_end(ca);
	ib_unregister_port_notifier(dev, &ca->port_notifier);
	debugfs_remove(ca->debugfs);
	ca_image_free(ca);
	ca_device_put(ca);
}

/* For debugfs: who has it open. PIDs are those of the reader's namespace. */
static int openings_show(struct seq_file *s, void *unused)
{
	struct ca_device *ca = s->private;
	struct ca_file *f;

	seq_printf(s, "generation: %llu%s\n", ca_image_generation(ca),
		   READ_ONCE(ca->image_stale) ? " (stale)" : "");
	ca_space_show(&ca->kernel, s);
	mutex_lock(&ca->files_lock);
	list_for_each_entry(f, &ca->files, node) {
		ca_events_show(&f->events, s);
		ca_space_show(&f->space, s);
	}
	mutex_unlock(&ca->files_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(openings);

static int ca_add(struct ib_device *dev)
{
	struct ca_device *ca = ca_device_alloc(dev);
	int ret = -ENOMEM;

	if (!ca)
		goto err;
	/* Before the image is made: a later change then refreshes it. */
	ib_set_client_data(dev, &ca_client, ca);
	rcu_assign_pointer(ib_priv(dev)->ca, ca);
	ca->port_notifier.notifier_call = port_changed;
	ib_register_port_notifier(dev, &ca->port_notifier);
	INIT_IB_EVENT_HANDLER(&ca->event_handler, dev, event_handler);
	ib_register_event_handler(&ca->event_handler);
	ret = ca_image_create(ca);
	if (!ret)
		ret = ca_node_add(ca);
	if (ret) {
		ca_remove(dev, ca);
		goto err;
	}
	ca->debugfs = debugfs_create_file("ca", 0400, ib_debugfs_dir(dev), ca,
					  &openings_fops);
	return 0;

err:
	ibdev_warn(dev, "cannot set up channel-adapter requests (%d); reload kverbs_ca to retry\n",
		   ret);
	return ret;
}

static void ca_rename(struct ib_device *dev, void *client_data)
{
	ca_nodes_renamed();
	ca_refresh(client_data);
}

static struct ib_client ca_client = {
	.name = "ca",
	.add = ca_add,
	.remove = ca_remove,
	.rename = ca_rename,
};

static int __init kverbs_ca_init(void)
{
	int ret;

	ib_contract_join(THIS_MODULE);
	ret = ca_request_init();
	if (ret)
		return ret;
	ret = ca_handle_init();
	if (ret)
		goto err_request;
	ret = ca_file_init();
	if (ret)
		goto err_handle;
	ret = ib_register_client(&ca_client);
	if (ret)
		goto err_file;
	ib_contract_add_source(&ca_open_source);
	ib_contract_add_source(&ca_pd_source);
	/* Last: files that are open do not keep the module if its init fails. */
	ret = ca_file_begin();
	if (ret)
		goto err_client;
	return 0;

err_client:
	ib_contract_del_source(&ca_pd_source);
	ib_contract_del_source(&ca_open_source);
	ib_unregister_client(&ca_client);
err_file:
	ca_file_exit();
err_handle:
	ca_handle_exit();
err_request:
	ca_request_exit();
	return ret;
}

static void __exit kverbs_ca_exit(void)
{
	ca_file_end();
	ib_contract_del_source(&ca_pd_source);
	ib_contract_del_source(&ca_open_source);
	ib_unregister_client(&ca_client);
	ca_file_exit();
	ca_handle_exit();
	ca_request_exit();
}

module_init(kverbs_ca_init);
module_exit(kverbs_ca_exit);

MODULE_DESCRIPTION("RDMA channel-adapter requests from the kernel and from user space");
MODULE_AUTHOR("The kverbs authors");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(KVERBS_INTERNAL);
