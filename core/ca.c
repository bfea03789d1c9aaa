// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests: what belongs to a device.
 *
 * Life: ib_ca_setup() makes it before anybody can see the device, since clients
 * may make requests in their add(). ib_ca_announce() shows the node in /dev.
 * A request holds a use of the device, so ib_ca_remove(), which comes after the
 * fence of the device's unregistration, finds none under way, and none comes
 * any more. It closes what is open: a process's file may be open for long after
 * the device, and can do nothing then but be closed. The event work of the
 * device still uses the image until ib_ca_free(). The last file frees the rest.
 *
 * Lock protocol: close_lock, a rwsem, is held to write while the device's end
 * closes everything, and to read while a file comes or goes, or a process ends:
 * what is open is closed by one of the three, and the device's end waits for it.
 * Driver methods run under it, those that close and free; it nests inside the
 * SRCU of mmu notifiers, and nothing of ours. files_lock, a mutex, guards the list of files; events reach
 * them under it.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "ca.h"
#include "core_priv.h"

static void ca_device_free(struct kref *ref)
{
	struct ca_device *ca = container_of(ref, struct ca_device, ref);

	put_device(&ca->device->dev);
	mutex_destroy(&ca->files_lock);
	mutex_destroy(&ca->image_lock);
	kfree_rcu(ca, rcu);
}

/* Any context that may sleep. */
void ca_device_put(struct ca_device *ca)
{
	kref_put(&ca->ref, ca_device_free);
}

/* Where it fails, ib_ca_free() is to be called when events have stopped. */
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
	init_rwsem(&ca->close_lock);
	/*
	 * Before the image is made: a change that comes later has an event
	 * which makes it again. Pairs with the acquire in ib_ca_of().
	 */
	smp_store_release(&ib_priv(dev)->ca, ca);
	return ca_image_create(ca);
}

int ib_ca_announce(struct ib_device *dev)
{
	return ca_node_add(ib_priv(dev)->ca);
}

/* Under the lock of the names. ib_ca_refresh() is to follow without it. */
void ib_ca_renamed(struct ib_device *dev)
{
	ca_node_rename(ib_priv(dev)->ca);
}

/* Something has changed that queries tell about. */
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

/* An event, after ib_ca_refresh() where there was something to refresh. */
void ib_ca_tell(struct ib_device *dev, const struct ib_event *event)
{
	struct ca_device *ca = ib_ca_of(dev);
	u32 port = event->event == IB_EVENT_DEVICE_FATAL ?
		   0 : event->element.port_num;

	if (ca)
		ca_events_tell(ca, event->event, port);
}

/* No use of the device is left. */
void ib_ca_remove(struct ib_device *dev)
{
	struct ca_device *ca = ib_priv(dev)->ca;
	struct ca_file *f;

	ca_node_remove(ca);
	down_write(&ca->close_lock);
	ca->gone = true;
	/* Nobody changes the list: who would holds close_lock to read. */
	list_for_each_entry(f, &ca->files, node)
		ca_space_close(&f->space);
	ca_space_close(&ca->kernel);
	up_write(&ca->close_lock);
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

/* For debugfs: who has it open. Processes as the reader's namespace has them. */
void ib_ca_show(struct ib_device *dev, struct seq_file *s)
{
	struct ca_device *ca = ib_priv(dev)->ca;
	struct ca_file *f;

	seq_printf(s, "generation: %llu%s\n", ca_image_generation(ca),
		   READ_ONCE(ca->image_stale) ? " (stale)" : "");
	ca_space_show(&ca->kernel, s);
	mutex_lock(&ca->files_lock);
	list_for_each_entry(f, &ca->files, node)
		ca_space_show(&f->space, s);
	mutex_unlock(&ca->files_lock);
}

int ib_ca_init(void)
{
	int ret;

	ret = ca_request_init();
	if (ret)
		return ret;
	ret = ca_file_init();
	if (ret)
		ca_request_exit();
	return ret;
}

void ib_ca_exit(void)
{
	ca_file_exit();
	ca_request_exit();
}
