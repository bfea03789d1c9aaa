// SPDX-License-Identifier: GPL-2.0-only
/*
 * The names of devices: how they are chosen, found and changed.
 *
 * Lock protocol: ib_registry_lock (registry.c) guards the table. Whoever may read a name while it
 * changes reads ib_device.name, which lives as long as the device and always ends with a NUL, by
 * ib_copy_device_name(); the driver core frees what dev_name() returned before.
 *
 * The driver core itself reads that without a lock, for the path in an event of the device, or of
 * what is below it. So no device is renamed before it is announced, or while a method of a client
 * runs for it, which may make something there. What is left are events that root asks for, by a
 * write to a file uevent.
 */
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/stringhash.h>

#include "contract/contract.h"
#include "contract/device_priv.h"
#include "contract/invalid.h"
#include "contract/registry.h"
#include "device.h"
#include "view/view.h"

/* By name, because that of each new device is looked up. */
static DEFINE_HASHTABLE(device_names, 8);

static u32 name_hash(const char *name)
{
	return full_name_hash(NULL, name, strlen(name));
}

void ib_name_enter(struct ib_device *dev, const char *name)
{
	lockdep_assert_held(&ib_registry_lock);
	strscpy(dev->name, name, sizeof(dev->name));
	hash_add(device_names, &ib_priv(dev)->by_name, name_hash(name));
}

void ib_name_leave(struct ib_device *dev)
{
	lockdep_assert_held(&ib_registry_lock);
	hash_del(&ib_priv(dev)->by_name);
}

static void change_name(struct ib_device *dev, const char *name)
{
	ib_name_leave(dev);
	ib_name_enter(dev, name);
}

/* The device of that name, in whatever state it is, or NULL. */
struct ib_device *ib_name_find(const char *name)
{
	struct ib_device_priv *priv;

	lockdep_assert_held(&ib_registry_lock);
	hash_for_each_possible(device_names, priv, by_name, name_hash(name))
		if (!strcmp(ib_device_of(priv)->name, name))
			return ib_device_of(priv);
	return NULL;
}

/* Fill in the smallest number that makes a free name. */
static int number_name(char *name, const char *pattern)
{
	const char *percent = strchr(pattern, '%');
	unsigned int nr;

	if (percent[1] != 'd' || strchr(percent + 2, '%'))
		return -EINVAL;
	for (nr = 0; nr < INT_MAX; nr++) {
		if (snprintf(name, IB_DEVICE_NAME_MAX, "%.*s%u%s",
			     (int)(percent - pattern), pattern, nr,
			     percent + 2) >= IB_DEVICE_NAME_MAX)
			return -EINVAL;
		if (!ib_name_find(name))
			return 0;
	}
	return -ENFILE;
}

/* Whether it can be the name of a directory, and a word on a command line. */
static bool is_valid_name(const char *name)
{
	if (!name || !*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++)
		if (*name == '/' || isspace(*name) || iscntrl(*name))
			return false;
	return true;
}

/* Makes a free name by the pattern. 0, -EINVAL if it is none, or -ENFILE if there is no free one. */
int ib_name_choose(char *name, const char *pattern)
{
	lockdep_assert_held(&ib_registry_lock);
	if (!is_valid_name(pattern))
		return -EINVAL;
	if (strchr(pattern, '%'))
		return number_name(name, pattern);
	if (strscpy(name, pattern, IB_DEVICE_NAME_MAX) < 0)
		return -EINVAL;
	return ib_name_find(name) ? -ENFILE : 0;
}

/**
 * ib_device_rename() - give a registered device another name
 * @ibdev: device that the caller uses
 * @name: the new name, without "%"
 *
 * Waits for methods of clients that run for the device, then calls their rename methods.
 *
 * Context: Process, may sleep; with no lock held that a client's method for this device takes, and
 * not from a method for a device for which another thread may rename from a method for this one.
 * Return: 0; -EEXIST if there is a device of that name; -EINVAL if it is not a valid name, or if a
 *	   client's method for this device calls it; -ENODEV if the device is not registered;
 *	   -ENOMEM.
 */
int ib_device_rename(struct ib_device *ibdev, const char *name)
{
	const struct ib_verb_call call = {
		.dev = ibdev, .site = _RET_IP_, .what = "device_rename",
	};
	char new_name[IB_DEVICE_NAME_MAX], old_name[IB_DEVICE_NAME_MAX];
	int ret;

	ib_clients_might_be_called();
	mutex_lock(&ib_registry_lock);
	ret = -EINVAL;
	if (ib_in_client_callback(ibdev)) {
		ib_invalid(&call, "a client's method for the device must not call it");
		goto out;
	}
	ib_clients_wait(ibdev);
	ret = -ENODEV;
	if (ib_priv(ibdev)->state != IB_DEV_REGISTERED)
		goto out;
	ret = 0;
	if (!strcmp(name, ibdev->name))
		goto out;
	ret = strchr(name, '%') ? -EINVAL : ib_name_choose(new_name, name);
	if (ret == -EINVAL)
		ib_invalid(&call, "the name must be a word without %% and /, shorter than %u bytes",
			   IB_DEVICE_NAME_MAX);
	if (ret == -ENFILE)
		ret = -EEXIST;
	if (ret)
		goto out;
	/* First, for the event that tells user space of it has the new name. */
	strscpy(old_name, ibdev->name, sizeof(old_name));
	change_name(ibdev, new_name);
	ret = device_rename(&ibdev->dev, new_name);
	if (ret) {
		change_name(ibdev, old_name);
		goto out;
	}
	ib_debugfs_rename(ibdev);
	ib_clients_renamed(ibdev);
out:
	mutex_unlock(&ib_registry_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(ib_device_rename);
