// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_peer_move: moves data between memory regions of processes, whatever kind of memory
 * they cover, with queue pairs in the processes' PDs.
 *
 * <debugfs>/kverbs_peer_move/run: each open file is a session. Each write(2) is a
 * command:
 *
 *  join <side> <fd> <handle> <pd>
 *	side 0 or 1 becomes this PD of the calling process, held through a file of
 *	/dev/infiniband/ca/<device>; both may be the same. Port 1 of the device is used, on
 *	InfiniBand
 *  send|write|read|cas|fadd <side> <laddr> <lkey> <raddr> <rkey> <len> <count>
 *		[<compare or add> [<swap>]]
 *	the side performs this operation count times, with its own memory and that of the other
 *	side. For send, rkey is the local key of the other side. Returns when all are done:
 *	-EIO if a request failed; the next command gets new queue pairs
 *
 * Numbers are written as in C. read(2) from offset 0 returns the result of the latest command:
 *
 *  send=<status> recv=<status> done=<messages that succeeded>
 *
 * where a status is a value of enum ib_wc_status, 0 for success.
 *
 * Locks: move_mutex guards the list of sessions and the set of devices. A session's lock
 * guards its contents, is held during a command, and nests inside move_mutex. The removal of a
 * device takes away the sides of sessions that use it; commands then return -ENODEV.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "peermove.h"

#define MOVE_COMMAND_MAX	256

/**
 * struct move_session - an open file
 * @list: in move_sessions
 * @lock: guards the following
 * @pair: the two sides, once they have joined
 * @result: result of the latest command
 */
struct move_session {
	struct list_head list;
	struct mutex lock;
	struct move_pair pair;
	char result[64];
};

static LIST_HEAD(move_sessions);
static DEFINE_MUTEX(move_mutex);
static struct dentry *move_dir;
static struct ib_client move_client;

/* --- sides ------------------------------------------------------------------------ */

static void move_leave(struct move_session *session, unsigned int side)
{
	struct move_side *s = &session->pair.side[side];

	if (!s->ca)
		return;
	move_pair_disconnect(&session->pair);
	ib_ca_pd_put(s->ca);
	s->ca = NULL;
}

/* The device stays until move_remove(), which waits for move_mutex. */
static int move_check_device(struct ib_device *dev)
{
	lockdep_assert_held(&move_mutex);
	if (!ib_get_client_data(dev, &move_client))
		return -ENODEV;
	if (rdma_port_get_link_layer(dev, rdma_start_port(dev)) !=
	    IB_LINK_LAYER_INFINIBAND)
		return -EPROTONOSUPPORT;
	return 0;
}

static int move_join_locked(struct move_session *session, unsigned int side, int fd,
			    u64 handle, u64 pd)
{
	struct ib_ca_pd *ca = ib_ca_pd_get(fd, handle, pd);
	int ret;

	if (IS_ERR(ca))
		return PTR_ERR(ca);
	ret = move_check_device(ca->pd->device);
	if (ret) {
		ib_ca_pd_put(ca);
		return ret;
	}
	move_leave(session, side);
	session->pair.side[side].ca = ca;
	return 0;
}

static int move_join(struct move_session *session, const char *args)
{
	unsigned long long handle, pd;
	int ret, side, fd;

	if (sscanf(args, "%i %i %lli %lli", &side, &fd, &handle, &pd) != 4)
		return -EINVAL;
	if (side < 0 || side >= MOVE_SIDES)
		return -EINVAL;
	mutex_lock(&move_mutex);
	mutex_lock(&session->lock);
	ret = move_join_locked(session, side, fd, handle, pd);
	mutex_unlock(&session->lock);
	mutex_unlock(&move_mutex);
	return ret;
}

/* --- operations ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ib_wr_opcode opcode;
	int operands;
} move_names[] = {
	{ "send", IB_WR_SEND, 0 },
	{ "write", IB_WR_RDMA_WRITE, 0 },
	{ "read", IB_WR_RDMA_READ, 0 },
	{ "cas", IB_WR_ATOMIC_CMP_AND_SWP, 2 },
	{ "fadd", IB_WR_ATOMIC_FETCH_AND_ADD, 1 },
};

static int move_parse(struct move_op *op, const char *name, const char *args)
{
	unsigned long long laddr, raddr, compare = 0, swap = 0;
	unsigned int i, side, lkey, rkey, len, count;
	int n;

	for (i = 0; i < ARRAY_SIZE(move_names); i++) {
		if (!strcmp(name, move_names[i].name))
			break;
	}
	if (i == ARRAY_SIZE(move_names))
		return -EINVAL;
	n = sscanf(args, "%u %lli %i %lli %i %u %u %lli %lli", &side, &laddr, &lkey,
		   &raddr, &rkey, &len, &count, &compare, &swap);
	if (n != 7 + move_names[i].operands || side >= MOVE_SIDES)
		return -EINVAL;
	*op = (struct move_op) {
		.opcode = move_names[i].opcode,
		.side = side,
		.laddr = laddr,
		.lkey = lkey,
		.raddr = raddr,
		.rkey = rkey,
		.len = len,
		.count = count,
		.compare = compare,
		.swap = swap,
	};
	return 0;
}

static int move_operate(struct move_session *session, const char *name,
			const char *args)
{
	struct move_pair *pair = &session->pair;
	struct move_result res;
	struct move_op op;
	int ret;

	ret = move_parse(&op, name, args);
	if (ret)
		return ret;
	mutex_lock(&session->lock);
	if (!pair->side[0].ca || !pair->side[1].ca) {
		ret = -ENODEV;
		goto out;
	}
	ret = move_pair_run(pair, &op, &res);
	snprintf(session->result, sizeof(session->result), "send=%d recv=%d done=%u\n",
		 res.send, res.recv, res.done);
out:
	mutex_unlock(&session->lock);
	return ret;
}

/* --- the file -------------------------------------------------------------------------- */

static int move_open(struct inode *inode, struct file *file)
{
	struct move_session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	move_pair_init(&session->pair);
	mutex_lock(&move_mutex);
	list_add(&session->list, &move_sessions);
	mutex_unlock(&move_mutex);
	file->private_data = session;
	return 0;
}

static int move_release(struct inode *inode, struct file *file)
{
	struct move_session *session = file->private_data;
	unsigned int side;

	/* The removal of a device waits until nothing of it is in use here. */
	mutex_lock(&move_mutex);
	list_del(&session->list);
	for (side = 0; side < MOVE_SIDES; side++)
		move_leave(session, side);
	mutex_unlock(&move_mutex);
	mutex_destroy(&session->lock);
	kfree(session);
	return 0;
}

static ssize_t move_write(struct file *file, const char __user *from, size_t len,
			  loff_t *ppos)
{
	char text[MOVE_COMMAND_MAX], *args = text, *name;
	int ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = 0;
	name = strsep(&args, " ");
	if (!args)
		return -EINVAL;
	if (!strcmp(name, "join"))
		ret = move_join(file->private_data, args);
	else
		ret = move_operate(file->private_data, name, args);
	return ret ?: (ssize_t)len;
}

static ssize_t move_read(struct file *file, char __user *to, size_t len, loff_t *ppos)
{
	struct move_session *session = file->private_data;
	ssize_t ret;

	mutex_lock(&session->lock);
	ret = simple_read_from_buffer(to, len, ppos, session->result,
				      strlen(session->result));
	mutex_unlock(&session->lock);
	return ret;
}

static const struct file_operations move_fops = {
	.owner = THIS_MODULE,
	.open = move_open,
	.release = move_release,
	.write = move_write,
	.read = move_read,
	.llseek = default_llseek,
};

/* --- devices ----------------------------------------------------------------------------- */

static int move_add(struct ib_device *dev)
{
	ib_set_client_data(dev, &move_client, dev);
	return 0;
}

/* Sides come and go under move_mutex. */
static bool move_uses(const struct move_side *side, const struct ib_device *dev)
{
	lockdep_assert_held(&move_mutex);
	return side->ca && move_device(side) == dev;
}

/* Called when the device goes: ends a command in progress on it. */
static void move_leave_device(struct move_session *session, const struct ib_device *dev)
{
	struct move_pair *pair = &session->pair;
	unsigned int side;

	if (!move_uses(&pair->side[0], dev) && !move_uses(&pair->side[1], dev))
		return;
	WRITE_ONCE(pair->stopping, true);
	mutex_lock(&session->lock);
	WRITE_ONCE(pair->stopping, false);
	for (side = 0; side < MOVE_SIDES; side++) {
		if (move_uses(&pair->side[side], dev))
			move_leave(session, side);
	}
	mutex_unlock(&session->lock);
}

static void move_remove(struct ib_device *dev, void *client_data)
{
	struct move_session *session;

	mutex_lock(&move_mutex);
	ib_set_client_data(dev, &move_client, NULL);
	list_for_each_entry(session, &move_sessions, list)
		move_leave_device(session, dev);
	mutex_unlock(&move_mutex);
}

static struct ib_client move_client = {
	.name = "peer_move",
	.add = move_add,
	.remove = move_remove,
};

static int __init move_init(void)
{
	int ret = ib_register_client(&move_client);

	if (ret)
		return ret;
	move_dir = debugfs_create_dir("kverbs_peer_move", NULL);
	debugfs_create_file("run", 0600, move_dir, NULL, &move_fops);
	return 0;
}

static void __exit move_exit(void)
{
	debugfs_remove(move_dir);
	ib_unregister_client(&move_client);
}

module_init(move_init);
module_exit(move_exit);

MODULE_DESCRIPTION("Test: moves data between memory regions of processes");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
