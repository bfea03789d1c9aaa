// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/infiniband/ca/<device>: requests of user processes by ioctl(2) and
 * io_uring, events by read(2) and poll(2).
 *
 * There is one character device for all; the minor number tells which ca_device is opened.
 * ca_minors holds it from ca_node_add() to ca_node_remove(); the device's own reference
 * keeps it alive that long, and open(2) takes one for the file under the array's lock.
 *
 * Lock protocol: ca_node_lock (a mutex) guards the nodes of all devices; ib_registry_lock nests
 * inside it. Names change without it: see ca_sync_nodes(). A file is in the device's list until its
 * handles are closed, or the device's end closes them: after that, an open(2) that found the minor
 * in time fails. A handle that is being closed because its process has ended holds the file.
 * Requests hold a use of the device; none is left when the device is removed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include kv_io_uring_cmd_h

#include "../contract/device_priv.h"
#include "../contract/registry.h"
#include "../device.h"
#include "ca.h"

/* All minors of a major number. */
#define CA_MINORS	(MINORMASK + 1)

static DEFINE_XARRAY_ALLOC(ca_minors);
static u32 ca_next_minor;
static DEFINE_MUTEX(ca_node_lock);
static struct cdev ca_cdev;
static dev_t ca_base;

static char *ca_devnode(kv_class_const struct device *node, umode_t *mode)
{
	/* Every user may query. Making objects takes write permission. */
	if (mode)
		*mode = 0644;
	return kasprintf(GFP_KERNEL, "infiniband/ca/%s", dev_name(node));
}

static struct class ca_class = {
	.name = "kverbs_ca",
	.devnode = ca_devnode,
};

/* The node has the device's name; a rename makes a new node. */
static ssize_t ibdev_show(struct device *node, struct device_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%s\n", dev_name(node));
}
static DEVICE_ATTR_RO(ibdev);

static struct attribute *ca_attrs[] = {
	&dev_attr_ibdev.attr,
	NULL
};
ATTRIBUTE_GROUPS(ca);

static int ca_make_node(struct ca_device *ca)
{
	char name[IB_DEVICE_NAME_MAX];
	struct device *node;

	lockdep_assert_held(&ca_node_lock);
	ib_device_get_name(name, ca->device);
	node = device_create_with_groups(&ca_class, &ca->device->dev, ca_base + ca->minor, ca,
					 ca_groups, "%s", name);
	if (IS_ERR(node))
		return PTR_ERR(node);
	ca->node = node;
	return 0;
}

static void ca_remove_node(struct ca_device *ca)
{
	lockdep_assert_held(&ca_node_lock);
	if (ca->node)
		device_unregister(ca->node);
	ca->node = NULL;
	ca->node_due = false;
}

/*
 * Gives each node the name of its device. Clients are told of a rename only afterwards, so a
 * device may already have a name that another device's node still has. So all nodes with old
 * names are removed before any is made.
 */
static void ca_sync_nodes(void)
{
	char name[IB_DEVICE_NAME_MAX];
	struct ca_device *ca;
	unsigned long index;
	int ret;

	lockdep_assert_held(&ca_node_lock);
	xa_for_each(&ca_minors, index, ca) {
		if (!ca->node)
			continue;
		ib_device_get_name(name, ca->device);
		if (!strcmp(dev_name(ca->node), name))
			continue;
		ca_remove_node(ca);
		ca->node_due = true;
	}
	xa_for_each(&ca_minors, index, ca) {
		if (!ca->node_due)
			continue;
		ret = ca_make_node(ca);
		/* -EEXIST: a name has just changed again, so ca_nodes_renamed() will be called. */
		ca->node_due = ret == -EEXIST;
		if (ret && ret != -EEXIST)
			ibdev_warn(ca->device, "cannot create its node in /dev/infiniband/ca (%d)\n",
				   ret);
	}
}

/*
 * From here on processes open the device.
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or what the xarray returns. After an error, call ca_node_remove().
 */
int ca_node_add(struct ca_device *ca)
{
	int ret;

	/* Cyclic, so that a number that a process has noted is not reused soon. */
	ret = xa_alloc_cyclic(&ca_minors, &ca->minor, ca,
			      XA_LIMIT(0, CA_MINORS - 1), &ca_next_minor,
			      GFP_KERNEL);
	if (ret < 0)
		return ret;
	mutex_lock(&ca_node_lock);
	ca->node_due = true;
	ca_sync_nodes();
	/* node_due: another device's node still has the name; ca_nodes_renamed() makes both. */
	ret = ca->node || ca->node_due ? 0 : -ENOMEM;
	mutex_unlock(&ca_node_lock);
	return ret;
}

/* A device has a new name. */
void ca_nodes_renamed(void)
{
	mutex_lock(&ca_node_lock);
	ca_sync_nodes();
	mutex_unlock(&ca_node_lock);
}

/* May be called whether the node was added or not. */
void ca_node_remove(struct ca_device *ca)
{
	xa_cmpxchg(&ca_minors, ca->minor, ca, NULL, 0);
	mutex_lock(&ca_node_lock);
	ca_remove_node(ca);
	mutex_unlock(&ca_node_lock);
}

/* Returns the ca_device, held, or NULL. */
static struct ca_device *ca_get_by_minor(unsigned int minor)
{
	struct ca_device *ca;

	xa_lock(&ca_minors);
	ca = xa_load(&ca_minors, minor);
	if (ca)
		kref_get(&ca->ref);
	xa_unlock(&ca_minors);
	return ca;
}

static int ca_file_enlist(struct ca_file *f)
{
	struct ca_device *ca = f->ca;
	int ret = -ENODEV;

	mutex_lock(&ca->files_lock);
	if (!ca->removed) {
		list_add_tail(&f->node, &ca->files);
		ret = 0;
	}
	mutex_unlock(&ca->files_lock);
	return ret;
}

static int ca_file_open(struct inode *inode, struct file *file)
{
	struct ca_device *ca = ca_get_by_minor(iminor(inode));
	struct ca_file *f;
	int ret;

	if (!ca)
		return -ENODEV;
	ret = -ENOMEM;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		goto err_ca;
	kref_init(&f->ref);
	f->ca = ca;
	f->net = get_net(current->nsproxy->net_ns);
	ca_space_init(&f->space, true);
	ca_events_init(&f->events);
	ret = ca_file_enlist(f);
	if (ret)
		goto err_file;
	file->private_data = f;
	/* Readers of one file need not wait for each other. */
	stream_open(inode, file);
	file->f_mode |= FMODE_NOWAIT;
	return 0;

err_file:
	ca_file_put(f);
	return ret;
err_ca:
	ca_device_put(ca);
	return ret;
}

static void ca_file_free(struct kref *ref)
{
	struct ca_file *f = container_of(ref, struct ca_file, ref);

	put_net(f->net);
	ca_device_put(f->ca);
	kfree(f);
}

void ca_file_put(struct ca_file *f)
{
	kref_put(&f->ref, ca_file_free);
}

static void ca_file_delist(struct ca_file *f)
{
	mutex_lock(&f->ca->files_lock);
	list_del(&f->node);
	mutex_unlock(&f->ca->files_lock);
}

/* The last close: nothing uses the file any more. */
static int ca_file_release(struct inode *inode, struct file *file)
{
	struct ca_file *f = file->private_data;
	char name[IB_DEVICE_NAME_MAX];
	struct ca_device *ca = f->ca;

	if (ca_closing_begin(ca)) {
		ca_space_close(&f->space);
		ca_file_delist(f);
		ca_closing_end(ca);
	} else {
		/*
		 * The device's end closes the handles of all files that it finds. Not ibdev_warn():
		 * nothing keeps the device's parent, which that names.
		 */
		while (!wait_for_completion_timeout(&ca->closed, ib_wait_warn_timeout())) {
			ib_copy_device_name(name, ca->device);
			pr_warn("%s: closing a file: waiting for the removal of the channel adapter, which closes its handles\n",
				name);
		}
		ca_file_delist(f);
	}
	ca_file_put(f);
	return 0;
}

/*
 * Called for each close(2). Those of a process that exits wait here, so that when the process has
 * ended, all that it had registered has been freed: unless something else, such as a reader of
 * /proc/<pid>/mem, still holds its memory then, and another process the file.
 */
static int ca_file_flush(struct file *file, fl_owner_t id)
{
	if (current->flags & PF_EXITING)
		ca_handle_flush(file->private_data);
	return 0;
}

static bool op_of_cmd(unsigned int cmd, u32 *op)
{
	if (cmd < KVERBS_CA_IOCTL(KVERBS_CA_OPEN) ||
	    cmd > KVERBS_CA_IOCTL(KVERBS_CA_SET_PEER))
		return false;
	/* The operation indexes tables. */
	*op = array_index_nospec(cmd - KVERBS_CA_IOCTL(0),
				 KVERBS_CA_SET_PEER + 1);
	return true;
}

/* Reads each member once, except the size: the process may change them meanwhile. */
static int get_request(struct kverbs_ca_request *req,
		       const struct kverbs_ca_request __user *from)
{
	u32 size;

	if (get_user(size, &from->size))
		return -EFAULT;
	if (size < KVERBS_CA_REQUEST_SIZE_MIN)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(req, sizeof(*req), from, size);
}

static int prepare_call(struct ca_call *call, struct file *file, u32 op,
			const struct kverbs_ca_request __user *from)
{
	struct ca_file *f = file->private_data;
	struct kverbs_ca_request req;
	int ret;

	ret = get_request(&req, from);
	if (ret)
		return ret;
	if (req.reserved)
		return -EINVAL;
	*call = (struct ca_call) {
		.ca = f->ca,
		.space = &f->space,
		.net = f->net,
		.writable = file->f_mode & FMODE_WRITE,
		.op = op,
		.version = req.version,
		.flags = req.flags,
		.port = req.port,
		.handle = req.handle,
		.object = req.object,
		.in = USER_SOCKPTR(u64_to_user_ptr(req.in)),
		.out = USER_SOCKPTR(u64_to_user_ptr(req.out)),
		.in_len = req.in_len,
		.out_len = req.out_len,
	};
	return 0;
}

/*
 * Nothing is held while memory of the process is copied: that may wait for as long
 * as the process likes.
 */
static ssize_t run_call(struct ca_call *call)
{
	int ret;

	ret = ca_call_begin(call);
	if (ca_use_try(call->ca)) {
		ret = ret ? : ca_call_run(call);
		ca_use_end(call->ca);
	} else {
		ret = -ENODEV;
	}
	return ca_call_end(call, ret);
}

/*
 * The answer cannot be written, so the process does not learn what was made for it. Free it
 * again, unless the process has guessed its number and uses it already: then it is closed
 * with the file.
 */
static void undo_call(const struct ca_call *call)
{
	struct ca_call undo = {
		.ca = call->ca,
		.space = call->space,
		.net = call->net,
		.writable = call->writable,
		.may_sleep = true,
		.version = call->version,
		.handle = call->handle,
	};
	u64 made;

	switch (call->op) {
	case KVERBS_CA_OPEN:
		undo.op = KVERBS_CA_CLOSE;
		made = call->handle;
		break;
	case KVERBS_CA_ALLOC_PD:
		undo.op = KVERBS_CA_DEALLOC_PD;
		undo.object = call->object;
		made = call->object;
		break;
	case KVERBS_CA_REG_MR:
		undo.op = KVERBS_CA_DEREG_MR;
		undo.object = call->object;
		made = call->object;
		break;
	default:
		return;
	}
	/* If the device is gone, everything is closed already. */
	if (made)
		run_call(&undo);
}

/* Write the results of the operation other than its output. */
static int put_results(const struct ca_call *call,
		       struct kverbs_ca_request __user *to)
{
	switch (call->op) {
	case KVERBS_CA_OPEN:
		return put_user(call->handle, &to->handle);
	case KVERBS_CA_ALLOC_PD:
	case KVERBS_CA_REG_MR:
		return put_user(call->object, &to->object);
	default:
		return 0;
	}
}

static ssize_t answer_call(struct ca_call *call,
			   struct kverbs_ca_request __user *req)
{
	ssize_t ret = run_call(call);

	if (ret >= 0 && put_results(call, req))
		ret = -EFAULT;
	if (ret == -EFAULT)
		undo_call(call);
	return ret;
}

static long ca_file_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	struct kverbs_ca_request __user *req = (void __user *)arg;
	struct ca_call call;
	int ret;
	u32 op;

	if (!op_of_cmd(cmd, &op))
		return -ENOTTY;
	ret = prepare_call(&call, file, op, req);
	if (ret)
		return ret;
	call.may_sleep = true;
	return answer_call(&call, req);
}

/* If a signal interrupts a worker of the ring, no system call is restarted. */
static int uring_result(ssize_t ret)
{
	switch (ret) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -EINTR;
	default:
		return ret;
	}
}

/*
 * The submitter does not wait: a worker of the ring carries out what may take
 * time, in a second call without IO_URING_F_NONBLOCK.
 */
static int ca_file_uring_cmd(struct io_uring_cmd *ioucmd,
			     unsigned int issue_flags)
{
	const struct kverbs_ca_uring_cmd *cmd = kv_io_uring_data(ioucmd);
	struct kverbs_ca_request __user *req;
	struct ca_call call;
	int ret;
	u32 op;

	if (!op_of_cmd(ioucmd->cmd_op, &op))
		return -ENOTTY;
	/* The command may be in memory of the process. */
	if (READ_ONCE(cmd->reserved) ||
	    ioucmd->flags & IORING_URING_CMD_FIXED)
		return -EINVAL;
	req = u64_to_user_ptr(READ_ONCE(cmd->request));
	ret = prepare_call(&call, ioucmd->file, op, req);
	if (ret)
		return ret;
	call.may_sleep = !(issue_flags & IO_URING_F_NONBLOCK);
	if (!call.may_sleep && !ca_call_is_quick(&call))
		return -EAGAIN;
	ret = uring_result(answer_call(&call, req));
	/* In a worker, Linux 6.1 would lose a number of bytes that was returned here. */
	io_uring_cmd_done(ioucmd, ret, 0, issue_flags);
	return -EIOCBQUEUED;
}

static ssize_t ca_file_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct ca_file *f = iocb->ki_filp->private_data;

	return ca_events_read(&f->events, to,
			      (iocb->ki_flags & IOCB_NOWAIT) ||
			      (iocb->ki_filp->f_flags & O_NONBLOCK));
}

static __poll_t ca_file_poll(struct file *file, poll_table *wait)
{
	struct ca_file *f = file->private_data;

	return ca_events_poll(&f->events, file, wait);
}

static const struct file_operations ca_fops = {
	.owner = THIS_MODULE,
	.llseek = noop_llseek,
	.open = ca_file_open,
	.flush = ca_file_flush,
	.release = ca_file_release,
	.read_iter = ca_file_read,
	.poll = ca_file_poll,
	.unlocked_ioctl = ca_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = ca_file_uring_cmd,
};

static struct ib_ca_pd *borrow_pd(struct ca_file *f, u64 handle, u64 object,
				  unsigned long site)
{
	struct ca_device *ca = f->ca;
	struct ib_ca_pd *pd;
	struct ca_handle *h;

	if (!ca_use_try(ca))
		return ERR_PTR(-ENODEV);
	h = ca_handle_get(&f->space, handle);
	if (IS_ERR(h)) {
		pd = ERR_CAST(h);
	} else {
		/* The borrower's remove() may have run, so nothing would make it return the PD. */
		pd = ib_device_is_going(ca->device) ? ERR_PTR(-ENODEV) :
						      ca_borrow_pd(ca, h, object, site);
		ca_handle_put(h);
	}
	ca_use_end(ca);
	return pd;
}

/**
 * ib_ca_pd_get() - borrow the PD of a process, to act on its behalf
 * @fd: the process's file /dev/infiniband/ca/<device>, open for writing
 * @handle: a handle that the process has opened there
 * @object: a PD under that handle
 *
 * QPs and other objects that the caller makes in the PD can use the keys of the process's
 * regions there. The process cannot free the PD before ib_ca_pd_put(); if the process ends,
 * its regions are freed, but not the PD. The caller is a client of the device, and gives
 * the PD back at the latest in its remove(). That may run at the same time: so the caller
 * holds a lock that remove() takes, from before this call until it has checked that it
 * still has the device, and has noted the PD or given it back. The contract checker counts
 * PDs that were borrowed before remove() began.
 *
 * Context: Process: the one that owns @fd and @handle.
 * Return: the PD; -EBADF if there is no such file, or it is not open for writing;
 * -EINVAL if it is another kind of file; -ENODEV if the device is gone; -ENOENT for
 * an unknown handle or PD; -EACCES for another process's handle.
 */
struct ib_ca_pd *ib_ca_pd_get(int fd, u64 handle, u64 object)
{
	struct ib_ca_pd *pd = ERR_PTR(-EBADF);
	struct file *file = fget(fd);

	if (!file)
		return pd;
	if (file->f_op != &ca_fops)
		pd = ERR_PTR(-EINVAL);
	else if (file->f_mode & FMODE_WRITE)
		pd = borrow_pd(file->private_data, handle, object, _RET_IP_);
	fput(file);
	return pd;
}
EXPORT_SYMBOL_GPL(ib_ca_pd_get);

int ca_file_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&ca_base, 0, CA_MINORS, "kverbs_ca");
	if (ret)
		return ret;
	ret = class_register(&ca_class);
	if (ret)
		unregister_chrdev_region(ca_base, CA_MINORS);
	return ret;
}

/* From here on processes can open the nodes; before, open(2) fails with ENXIO. */
int ca_file_begin(void)
{
	cdev_init(&ca_cdev, &ca_fops);
	ca_cdev.owner = THIS_MODULE;
	return cdev_add(&ca_cdev, ca_base, CA_MINORS);
}

/* No file is open, and none can be opened any more. */
void ca_file_end(void)
{
	cdev_del(&ca_cdev);
}

/* There are no nodes any more. */
void ca_file_exit(void)
{
	class_unregister(&ca_class);
	unregister_chrdev_region(ca_base, CA_MINORS);
	WARN_ON(!xa_empty(&ca_minors));
}
