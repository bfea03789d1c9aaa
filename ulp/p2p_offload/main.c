// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_p2p_offload: moves data from an RDMA peer to another device's DMA engine and
 * back, through peer-to-peer memory. This is how an NVMe target lets an RDMA adapter
 * write into a drive's memory the data that the drive then stores.
 *
 * <debugfs>/kverbs_p2p_offload/run: each open file is a session. Each write(2) is a
 * command:
 *
 *  setup hca=<device> peer=<device> engine=<address> [provider=<address>]
 *	  [bytes=<n>] [keep=<0|1>]
 *	once in a session: <peer> will read and write memory of <provider>, which
 *	<hca> reaches, and <engine>, an edu device, will copy it. Addresses are of
 *	PCI functions: 0000:03:00.0. Without provider=, the session takes the nearest one.
 *	bytes is 65536 by default. With keep=1 the session does not release the memory
 *	when the provider goes: the removal of the provider waits for close(2)
 *  run [rounds=<n>] [seed=<n>]
 *	moves patterns, 1 round by default; -EBADMSG if a byte is wrong
 *
 * write(2) returns all errors. read(2) returns the result of the latest command:
 *
 *  status=<0 or -errno> step=<the last one>
 *
 * and, while the session is set up, provider=<address> distance=<n>
 * hca=<bus|host> engine=<bus|host> bytes=<n>: how each reaches the memory.
 *
 * Locks: offload_mutex guards the list of sessions and the assignment of devices to them;
 * it is held while the removal of an RDMA device takes away what they use of it. A
 * session's lock nests inside offload_mutex and is held for the duration of a command.
 * For the removal of a provider see session.c.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "offload.h"

#define OFFLOAD_COMMAND_MAX	256
#define OFFLOAD_BYTES		65536
#define OFFLOAD_SPACE		"\n "

static LIST_HEAD(offload_sessions);
static DEFINE_MUTEX(offload_mutex);
static struct dentry *offload_dir;

/* --- words of a command ------------------------------------------------------------ */

static int offload_set_text(char *to, size_t size, const char *value)
{
	return strscpy(to, value, size) < 0 ? -EINVAL : 0;
}

static int offload_set_param(void *to, const char *key, const char *value)
{
	struct offload_params *params = to;

	if (!strcmp(key, "hca"))
		return offload_set_text(params->hca, sizeof(params->hca), value);
	if (!strcmp(key, "peer"))
		return offload_set_text(params->peer, sizeof(params->peer), value);
	if (!strcmp(key, "engine"))
		return offload_set_text(params->engine, sizeof(params->engine), value);
	if (!strcmp(key, "provider"))
		return offload_set_text(params->provider, sizeof(params->provider), value);
	if (!strcmp(key, "bytes"))
		return kstrtou32(value, 0, &params->bytes);
	if (!strcmp(key, "keep"))
		return kstrtobool(value, &params->keep);
	return -EINVAL;
}

/**
 * struct offload_rounds - parameters of a run
 * @rounds: number of rounds
 * @seed: seed of the patterns
 */
struct offload_rounds {
	u32 rounds;
	u64 seed;
};

static int offload_set_round(void *to, const char *key, const char *value)
{
	struct offload_rounds *run = to;

	if (!strcmp(key, "rounds"))
		return kstrtou32(value, 0, &run->rounds);
	if (!strcmp(key, "seed"))
		return kstrtou64(value, 0, &run->seed);
	return -EINVAL;
}

/* Words of the form <key>=<value>. */
static int offload_parse(char *args, int (*set)(void *to, const char *key, const char *value),
			 void *to)
{
	char *key, *value;
	int ret = 0;

	while (!ret && (value = strsep(&args, OFFLOAD_SPACE))) {
		if (!*value)
			continue;
		key = strsep(&value, "=");
		ret = value ? set(to, key, value) : -EINVAL;
	}
	return ret;
}

static int offload_parse_setup(char *args, struct offload_params *params)
{
	int ret;

	*params = (struct offload_params) { .bytes = OFFLOAD_BYTES };
	ret = offload_parse(args, offload_set_param, params);
	if (!params->bytes || params->bytes > OFFLOAD_MAX_BYTES)
		return -EINVAL;
	return ret;
}

/* --- commands ---------------------------------------------------------------------- */

static const char *offload_way(struct offload_session *session, struct device *client)
{
	struct kverbs_p2pdma_route route;

	if (kverbs_p2pdma_route(session->provider, client, &route))
		return "none";
	return kverbs_p2pdma_map_msg(route.map);
}

static void offload_tell(struct offload_session *session, int status, const char *step)
{
	int len = scnprintf(session->result, sizeof(session->result), "status=%d step=%s",
			    status, step);

	if (session->ready)
		len += scnprintf(session->result + len, sizeof(session->result) - len,
				 " provider=%s distance=%d hca=%s engine=%s bytes=%u",
				 pci_name(session->provider),
				 pci_p2pdma_distance(session->provider, &session->clients,
						     false),
				 offload_way(session, &session->side[OFFLOAD_TARGET].dev->dev),
				 offload_way(session, &session->engine_dev->dev),
				 session->params.bytes);
	scnprintf(session->result + len, sizeof(session->result) - len, "\n");
}

/* Works once per session: one whose provider has gone cannot be set up again. */
static int offload_setup_locked(struct offload_session *session, char *args,
				const char **step)
{
	int ret;

	if (session->ready || session->user_added)
		return -EBUSY;
	ret = offload_parse_setup(args, &session->params);
	return ret ?: offload_setup(session, step);
}

static int offload_run_locked(struct offload_session *session, char *args,
			      const char **step)
{
	struct offload_rounds run = { .rounds = 1, .seed = 1 };
	int ret;

	ret = offload_parse(args, offload_set_round, &run);
	if (ret)
		return ret;
	return session->ready ? offload_run(session, run.rounds, run.seed, step) : -ENODEV;
}

/* Sessions get devices under offload_mutex, so that offload_remove() sees which have one. */
static int offload_command_setup(struct offload_session *session, char *args)
{
	const char *step = "none";
	int ret;

	mutex_lock(&offload_mutex);
	mutex_lock(&session->lock);
	ret = offload_setup_locked(session, args, &step);
	offload_tell(session, ret, step);
	mutex_unlock(&session->lock);
	mutex_unlock(&offload_mutex);
	return ret;
}

static int offload_command_run(struct offload_session *session, char *args)
{
	const char *step = "none";
	int ret;

	mutex_lock(&session->lock);
	ret = offload_run_locked(session, args, &step);
	offload_tell(session, ret, step);
	mutex_unlock(&session->lock);
	return ret;
}

/* --- the file ---------------------------------------------------------------------- */

static int offload_open(struct inode *inode, struct file *file)
{
	struct offload_session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	INIT_LIST_HEAD(&session->clients);
	mutex_lock(&offload_mutex);
	list_add(&session->list, &offload_sessions);
	mutex_unlock(&offload_mutex);
	file->private_data = session;
	return 0;
}

static int offload_release(struct inode *inode, struct file *file)
{
	struct offload_session *session = file->private_data;

	mutex_lock(&offload_mutex);
	list_del(&session->list);
	mutex_lock(&session->lock);
	offload_teardown(session);
	mutex_unlock(&session->lock);
	mutex_unlock(&offload_mutex);
	/* Waits for offload_revoke(), which may be waiting for the session's lock. */
	if (session->user_added)
		kverbs_p2pdma_user_del(&session->user);
	mutex_destroy(&session->lock);
	kfree(session);
	return 0;
}

/* A command rewinds the file, so that the next read returns its result, even after an error. */
static ssize_t offload_file_write(struct file *file, const char __user *from, size_t len,
				  loff_t *ppos)
{
	struct offload_session *session = file->private_data;
	char text[OFFLOAD_COMMAND_MAX], *args = text, *name;
	int ret = -EINVAL;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = 0;
	*ppos = 0;
	file->f_pos = 0;
	name = strsep(&args, OFFLOAD_SPACE);
	if (!strcmp(name, "setup"))
		ret = offload_command_setup(session, args);
	else if (!strcmp(name, "run"))
		ret = offload_command_run(session, args);
	return ret ?: (ssize_t)len;
}

static ssize_t offload_file_read(struct file *file, char __user *to, size_t len,
				 loff_t *ppos)
{
	struct offload_session *session = file->private_data;
	ssize_t ret;

	mutex_lock(&session->lock);
	ret = simple_read_from_buffer(to, len, ppos, session->result,
				      strlen(session->result));
	mutex_unlock(&session->lock);
	return ret;
}

static const struct file_operations offload_fops = {
	.owner = THIS_MODULE,
	.open = offload_open,
	.release = offload_release,
	.write = offload_file_write,
	.read = offload_file_read,
	.llseek = default_llseek,
};

/* --- RDMA devices ------------------------------------------------------------------- */

static int offload_add(struct ib_device *dev)
{
	return 0;
}

/* Meanwhile the session may lose the device, but cannot get it. */
static bool offload_uses(const struct offload_session *session,
			 const struct ib_device *dev)
{
	lockdep_assert_held(&offload_mutex);
	return READ_ONCE(session->side[OFFLOAD_TARGET].dev) == dev ||
	       READ_ONCE(session->side[OFFLOAD_PEER].dev) == dev;
}

/* A run in progress ends after its current step. */
static void offload_leave(struct offload_session *session, const struct ib_device *dev)
{
	if (!offload_uses(session, dev))
		return;
	atomic_inc(&session->stopping);
	mutex_lock(&session->lock);
	if (offload_uses(session, dev))
		offload_teardown(session);
	atomic_dec(&session->stopping);
	mutex_unlock(&session->lock);
}

static void offload_remove(struct ib_device *dev, void *client_data)
{
	struct offload_session *session;

	mutex_lock(&offload_mutex);
	list_for_each_entry(session, &offload_sessions, list)
		offload_leave(session, dev);
	mutex_unlock(&offload_mutex);
}

static struct ib_client offload_client = {
	.name = "p2p_offload",
	.add = offload_add,
	.remove = offload_remove,
};

static int __init offload_init(void)
{
	int ret = ib_register_client(&offload_client);

	if (ret)
		return ret;
	offload_dir = debugfs_create_dir("kverbs_p2p_offload", NULL);
	debugfs_create_file("run", 0600, offload_dir, NULL, &offload_fops);
	return 0;
}

static void __exit offload_exit(void)
{
	debugfs_remove(offload_dir);
	ib_unregister_client(&offload_client);
}

module_init(offload_init);
module_exit(offload_exit);

MODULE_DESCRIPTION("Moves data between RDMA peers and a DMA engine through peer-to-peer memory");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
