// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/mm/memory_peers/<client>/: the version that a client gave, and its
 * counters, under the names that user space knows.
 *
 * The files read the counters of all CPUs without a lock. While a region is being
 * registered, a reader may find it counted in one file and not yet in another.
 *
 * Removing a directory waits for its readers. The kobject is part of the client, so
 * removal also waits for the last reference to the kobject.
 */
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "peer.h"

static struct kobject *peers_kobj;

struct stat_attr {
	struct kobj_attribute attr;
	enum peer_stat stat;
};

static struct peer_client *kobj_client(struct kobject *kobj)
{
	return container_of(kobj, struct peer_client, kobj);
}

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%.*s\n", IB_PEER_MEMORY_VER_MAX - 1,
			  kobj_client(kobj)->ops->version);
}

static ssize_t max_revoke_us_show(struct kobject *kobj, struct kobj_attribute *attr,
				  char *buf)
{
	return sysfs_emit(buf, "%lu\n", atomic_long_read(&kobj_client(kobj)->max_revoke_us));
}

static ssize_t stat_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	enum peer_stat stat = container_of(attr, struct stat_attr, attr)->stat;

	return sysfs_emit(buf, "%llu\n", peer_stat_sum(kobj_client(kobj), stat));
}

#define STAT_ATTR(_name, _stat)						\
static struct stat_attr _name##_attr = {				\
	.attr = __ATTR(_name, 0444, stat_show, NULL),			\
	.stat = _stat,							\
}

static struct kobj_attribute version_attr = __ATTR_RO(version);
static struct kobj_attribute max_revoke_us_attr = __ATTR_RO(max_revoke_us);
STAT_ATTR(num_alloc_mrs, PEER_STAT_ALLOC_MRS);
STAT_ATTR(num_dealloc_mrs, PEER_STAT_DEALLOC_MRS);
STAT_ATTR(num_reg_pages, PEER_STAT_REG_PAGES);
STAT_ATTR(num_dereg_pages, PEER_STAT_DEREG_PAGES);
STAT_ATTR(num_reg_bytes, PEER_STAT_REG_BYTES);
STAT_ATTR(num_dereg_bytes, PEER_STAT_DEREG_BYTES);
STAT_ATTR(num_free_callbacks, PEER_STAT_FREE_CALLBACKS);
STAT_ATTR(live_mrs, PEER_STAT_LIVE_MRS);
STAT_ATTR(num_revokes, PEER_STAT_REVOKES);
STAT_ATTR(num_invalidate_waits, PEER_STAT_INVALIDATE_WAITS);
STAT_ATTR(num_invalidate_timeouts, PEER_STAT_INVALIDATE_TIMEOUTS);

static struct attribute *client_attrs[] = {
	&version_attr.attr,
	&num_alloc_mrs_attr.attr.attr,
	&num_dealloc_mrs_attr.attr.attr,
	&num_reg_pages_attr.attr.attr,
	&num_dereg_pages_attr.attr.attr,
	&num_reg_bytes_attr.attr.attr,
	&num_dereg_bytes_attr.attr.attr,
	&num_free_callbacks_attr.attr.attr,
	&live_mrs_attr.attr.attr,
	&num_revokes_attr.attr.attr,
	&num_invalidate_waits_attr.attr.attr,
	&num_invalidate_timeouts_attr.attr.attr,
	&max_revoke_us_attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(client);

static void client_release(struct kobject *kobj)
{
	complete(&kobj_client(kobj)->kobj_released);
}

static const struct kobj_type client_type = {
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = client_groups,
	.release = client_release,
};

static void client_kobj_put(struct peer_client *client)
{
	kobject_put(&client->kobj);
	wait_for_completion(&client->kobj_released);
}

int peer_sysfs_add(struct peer_client *client)
{
	int err;

	init_completion(&client->kobj_released);
	err = kobject_init_and_add(&client->kobj, &client_type, peers_kobj, "%s",
				   peer_client_name(client));
	if (err)
		client_kobj_put(client);
	return err;
}

void peer_sysfs_remove(struct peer_client *client)
{
	kobject_del(&client->kobj);
	client_kobj_put(client);
}

/* Finds the kobject of /sys/kernel/mm/ by its path, because not every kernel exports mm_kobj. */
static struct kobject *mm_kobj_get(void)
{
	struct kernfs_node *dir = kernfs_find_and_get(kernel_kobj->sd, "mm");
	struct kobject *kobj;

	if (!dir)
		return NULL;
	kobj = kobject_get(dir->priv);
	kernfs_put(dir);
	return kobj;
}

/* Returns 0 or -ENOMEM. */
int peer_sysfs_init(void)
{
	struct kobject *mm = mm_kobj_get();

	peers_kobj = kobject_create_and_add("memory_peers", mm);
	kobject_put(mm);
	return peers_kobj ? 0 : -ENOMEM;
}

void peer_sysfs_exit(void)
{
	kobject_put(peers_kobj);
}
