// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests: what belongs to a device.
 *
 * Life: ib_ca_setup() makes the ca_device before the device is visible, since
 * clients may make requests in their add(). ib_ca_announce() makes the node
 * appear in /dev. A request holds a use of the device, so ib_ca_remove(), which
 * comes after the fence of the device's unregistration, finds none in progress,
 * and no more can come. It closes the handles that are open: a process's file
 * may stay open long after the device has gone, but then no requests succeed on
 * it. The event work of the device still uses the image until ib_ca_free(). The
 * last close of a file frees the rest.
 *
 * A handle is closed by the last close of its file, by the end of the process, or by the
 * end of the device. The first two are counted while they close handles: the device's end
 * lets no more of them begin, waits for those that have begun, and closes the rest. No lock
 * is held meanwhile: closing frees regions, and so calls the drivers that own their memory.
 *
 * Lock protocol: files_lock, a mutex, guards the list of files, the count and the
 * device's end; events reach the files under it. It nests inside the SRCU of mmu
 * notifiers.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "ca.h"
#include "../core_priv.h"

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
	begun = !ca->gone;
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
	/* release: ib_ca_remove() sees all that was closed */
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

/* If it fails, ib_ca_free() must be called after events have stopped. */
int ib_ca_setup(struct ib_device *dev)
{
	struct ca_device *ca;

	ca = kzalloc(sizeof(*ca), GFP_KERNEL);
	if (!ca)
		return -ENOMEM;
	kref_init(&ca->ref);
	get_device(&dev->dev);
	ca->device = dev;
	ca_space_init(&ca->kernel, false);
	mutex_init(&ca->image_lock);
	INIT_LIST_HEAD(&ca->files);
	mutex_init(&ca->files_lock);
	xa_init(&ca->readers);
	init_completion(&ca->closed);
	ib_held_init(&ca->lent);
	/*
	 * Before the image is made: the event of a later change then refreshes
	 * it. Pairs with the acquire in ib_ca_of().
	 */
	smp_store_release(&ib_priv(dev)->ca, ca);
	return ca_image_create(ca);
}

int ib_ca_announce(struct ib_device *dev)
{
	return ca_node_add(ib_priv(dev)->ca);
}

/*
 * Under the lock of the names. The caller must call ib_ca_refresh() later, without that
 * lock.
 */
void ib_ca_renamed(struct ib_device *dev)
{
	ca_node_rename(ib_priv(dev)->ca);
}

/* Something that queries report has changed. */
void ib_ca_refresh(struct ib_device *dev)
{
	struct ca_device *ca = ib_ca_of(dev);
	int ret;

	if (!ca)
		return;
	ret = ca_image_refresh(ca);
	if (ret)
		ibdev_warn(dev, "channel-adapter queries give old values (%d)\n",
			   ret);
}

/*
 * Passes an event to the files; after ib_ca_refresh() if the event is one that changes the
 * image.
 */
void ib_ca_tell(struct ib_device *dev, const struct ib_event *event)
{
	struct ca_device *ca = ib_ca_of(dev);
	u32 port = event->event == IB_EVENT_DEVICE_FATAL ?
		   0 : event->element.port_num;

	if (ca)
		ca_events_tell(ca, event->event, port);
}

/*
 * No other thread closes handles or adds files; a file that is being closed may still be
 * listed.
 */
static void close_files(struct ca_device *ca)
{
	LIST_HEAD(closed);
	struct ca_file *f;

	mutex_lock(&ca->files_lock);
	while ((f = list_first_entry_or_null(&ca->files, struct ca_file, node))) {
		list_move_tail(&f->node, &closed);
		kref_get(&f->ref);
		mutex_unlock(&ca->files_lock);
		ca_space_close(&f->space);
		ca_file_put(f);
		mutex_lock(&ca->files_lock);
	}
	list_splice(&closed, &ca->files);
	mutex_unlock(&ca->files_lock);
}

/* No use of the device is left. */
void ib_ca_remove(struct ib_device *dev)
{
	struct ca_device *ca = ib_priv(dev)->ca;

	ca_node_remove(ca);
	mutex_lock(&ca->files_lock);
	ca->gone = true;
	mutex_unlock(&ca->files_lock);
	/* acquire: pairs with ca_closing_end(); no more closers are added */
	wait_var_event(&ca->closers, !smp_load_acquire(&ca->closers));
	close_files(ca);
	ca_space_close(&ca->kernel);
	complete_all(&ca->closed);
	ca_events_tell(ca, KVERBS_CA_EVENT_REMOVED, 0);
}

/* The event work has ended. */
void ib_ca_free(struct ib_device *dev)
{
	struct ca_device *ca = ib_priv(dev)->ca;

	if (!ca)
		return;
	WRITE_ONCE(ib_priv(dev)->ca, NULL);
	ca_image_free(ca);
	ca_device_put(ca);
}

/* For debugfs: who has it open. PIDs are those of the reader's namespace. */
void ib_ca_show(struct ib_device *dev, struct seq_file *s)
{
	struct ca_device *ca = ib_priv(dev)->ca;
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
}

int ib_ca_init(void)
{
	int ret;

	ret = ca_request_init();
	if (ret)
		return ret;
	ret = ca_handle_init();
	if (ret)
		goto err_request;
	ret = ca_file_init();
	if (ret)
		goto err_handle;
	return 0;

err_handle:
	ca_handle_exit();
err_request:
	ca_request_exit();
	return ret;
}

void ib_ca_exit(void)
{
	ca_file_exit();
	ca_handle_exit();
	ca_request_exit();
}
