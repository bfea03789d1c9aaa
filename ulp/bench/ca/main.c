// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_cabench: what channel-adapter requests cost.
 *
 *  /dev/kverbs_cabench		an ioctl that only copies bytes, for comparison with
 *				those that do more, see cabench.h
 *  <debugfs>/kverbs_cabench/kernel
 *				read: makes requests to the device that came
 *				first, as kernel code does, and tells the
 *				nanoseconds of each, in the best of several
 *				batches: leading_ns for the two leading fields of
 *				QUERY_CA, port_ns for those of QUERY_PORT,
 *				full_ns for all bytes of QUERY_CA; loop_ns for
 *				none, which the others contain. -ENODEV without
 *				a device
 *
 * Lock: bench_mutex guards the device, and is held for the time of the
 * measurement, so that it stays.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kverbs/ca.h>
#include <rdma/ib_verbs.h>

#include "cabench.h"

#define BENCH_BATCHES	16U
#define BENCH_REQUESTS	256U
/* Room for everything that a device with four ports reports. */
#define BENCH_BUFFER	65536U

static DEFINE_MUTEX(bench_mutex);
static struct ib_device *bench_device;
static struct dentry *bench_dir;
static void *bench_bytes;

/* --- the bare ioctl ---------------------------------------------------------- */

static long bench_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u32 bytes = _IOC_SIZE(cmd);

	if (cmd != CABENCH_COPY(bytes))
		return -ENOTTY;
	if (copy_to_user((void __user *)arg, bench_bytes, bytes))
		return -EFAULT;
	return bytes;
}

static const struct file_operations bench_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = bench_ioctl,
};

static struct miscdevice bench_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = CABENCH_NODE,
	.fops = &bench_fops,
};

/* --- kernel requests ---------------------------------------------------------- */

/* Returns the nanoseconds of one request; with @req NULL, those of the empty loop. */
static u32 bench_batch(struct ib_ca_request *req, ssize_t want)
{
	u64 start = ktime_get_ns();
	u32 i;

	for (i = 0; i < BENCH_REQUESTS; i++) {
		if (req && ib_ca_submit(bench_device, req) != want)
			return U32_MAX;
		barrier();
	}
	return (ktime_get_ns() - start) / BENCH_REQUESTS;
}

static u32 bench_best(struct ib_ca_request *req, ssize_t want)
{
	u32 best = U32_MAX, i;

	for (i = 0; i < BENCH_BATCHES; i++)
		best = min(best, bench_batch(req, want));
	return best;
}

static int bench_requests(struct seq_file *s, u64 handle, void *buffer)
{
	struct ib_ca_request req = {
		.op = KVERBS_CA_QUERY_CA,
		.version = KVERBS_CA_VERSION,
		.handle = handle,
		.out = buffer,
		.out_len = BENCH_BUFFER,
	};
	ssize_t bytes = ib_ca_submit(bench_device, &req);
	u32 leading, port, full;

	if (bytes < 0)
		return bytes;
	full = bench_best(&req, bytes);
	req.out_len = 2 * sizeof(u32);
	leading = bench_best(&req, -EOVERFLOW);
	req.op = KVERBS_CA_QUERY_PORT;
	req.port = rdma_start_port(bench_device);
	port = bench_best(&req, -EOVERFLOW);
	if (max3(leading, port, full) == U32_MAX)
		return -EIO;
	seq_printf(s, "leading_ns=%u port_ns=%u full_ns=%u bytes=%zd loop_ns=%u\n",
		   leading, port, full, bytes, bench_best(NULL, 0));
	return 0;
}

static int bench_open(struct seq_file *s, void *buffer)
{
	struct ib_ca_request req = {
		.op = KVERBS_CA_OPEN,
		.version = KVERBS_CA_VERSION,
	};
	int ret, closed;

	if (!bench_device)
		return -ENODEV;
	ret = ib_ca_call(bench_device, &req);
	if (ret)
		return ret;
	ret = bench_requests(s, req.handle, buffer);
	req.op = KVERBS_CA_CLOSE;
	closed = ib_ca_call(bench_device, &req);
	return ret ?: closed;
}

static int bench_kernel_show(struct seq_file *s, void *unused)
{
	void *buffer = kmalloc(BENCH_BUFFER, GFP_KERNEL);
	int ret;

	if (!buffer)
		return -ENOMEM;
	mutex_lock(&bench_mutex);
	ret = bench_open(s, buffer);
	mutex_unlock(&bench_mutex);
	kfree(buffer);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(bench_kernel);

/* --- the device ----------------------------------------------------------------- */

static int bench_add(struct ib_device *device)
{
	mutex_lock(&bench_mutex);
	if (!bench_device)
		bench_device = device;
	mutex_unlock(&bench_mutex);
	return 0;
}

static void bench_remove(struct ib_device *device, void *client_data)
{
	mutex_lock(&bench_mutex);
	if (bench_device == device)
		bench_device = NULL;
	mutex_unlock(&bench_mutex);
}

static struct ib_client bench_client = {
	.name = "cabench",
	.add = bench_add,
	.remove = bench_remove,
};

static int __init bench_init(void)
{
	int ret = -ENOMEM;

	bench_bytes = kmalloc(CABENCH_MAX_COPY, GFP_KERNEL);
	if (!bench_bytes)
		return ret;
	get_random_bytes(bench_bytes, CABENCH_MAX_COPY);
	ret = ib_register_client(&bench_client);
	if (ret)
		goto err_bytes;
	ret = misc_register(&bench_misc);
	if (ret)
		goto err_client;
	bench_dir = debugfs_create_dir("kverbs_cabench", NULL);
	debugfs_create_file("kernel", 0400, bench_dir, NULL, &bench_kernel_fops);
	return 0;

err_client:
	ib_unregister_client(&bench_client);
err_bytes:
	kfree(bench_bytes);
	return ret;
}

static void __exit bench_exit(void)
{
	debugfs_remove(bench_dir);
	misc_deregister(&bench_misc);
	ib_unregister_client(&bench_client);
	kfree(bench_bytes);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark: cost of channel-adapter requests");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
