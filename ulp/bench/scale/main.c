// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_scale: the cost of many objects. It uses mainline's verbs API only.
 *
 * Parameters:
 *
 *  clients=1       number of clients to register, each notified of every device;
 *                  shows what devices that come and go in the meantime cost
 *  qps=0           number of queue pairs to create on loading, on an InfiniBand
 *                  port of the first device, for a measurement; an even number. 0:
 *                  do not measure
 *  cqs=1           CQs, which the pairs of queue pairs take by turns
 *  cpus=1          CPUs that send at the same time, each between pairs of its own; divides
 *                  cqs, and qps / 2
 *  port=1          its port
 *  depth=64        length of each of their queues
 *  messages=20000  messages of a measurement
 *  size=64         bytes of a message
 *
 * The module does not load if the measurement fails. <debugfs>/kverbs_scale/result
 * is one line of key=value: devices (that exist), and with qps the keys qps cqs cpus
 * depth bytes (memory of a queue pair), create_ns connect_ns destroy_ns (for a queue
 * pair), only_ns random_ns (a message when each CPU has only two queue pairs, and between
 * two chosen from all). With several CPUs, a message's time is that of all of them divided
 * by the messages of all: under -icount, the instructions that it costs.
 *
 * Locks: scale_mutex guards the list of devices, and is held during a run, so that
 * its device stays.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "scale.h"

#define SCALE_MAX_CLIENTS	256
#define SCALE_MAX_QPS		100000
#define SCALE_MAX_CQS		1024
#define SCALE_MAX_MEM		KMALLOC_MAX_SIZE	/* bytes of a run, in one piece */

static unsigned int clients = 1;
module_param(clients, uint, 0444);
MODULE_PARM_DESC(clients, "Clients to register, 1 to 256 (default: 1)");

static struct scale_params params = {
	.port = 1,
	.cqs = 1,
	.cpus = 1,
	.depth = 64,
	.messages = 20000,
	.size = 64,
};

module_param_named(qps, params.qps, uint, 0444);
MODULE_PARM_DESC(qps, "Queue pairs to create and measure; 0: none (default: 0)");
module_param_named(cqs, params.cqs, uint, 0444);
MODULE_PARM_DESC(cqs, "CQs that the queue pairs share, 1 to 1024 (default: 1)");
module_param_named(cpus, params.cpus, uint, 0444);
MODULE_PARM_DESC(cpus, "CPUs that send at the same time (default: 1)");
module_param_named(port, params.port, uint, 0444);
MODULE_PARM_DESC(port, "Port of the queue pairs (default: 1)");
module_param_named(depth, params.depth, uint, 0444);
MODULE_PARM_DESC(depth, "Depth of the queues, in work requests (default: 64)");
module_param_named(messages, params.messages, uint, 0444);
MODULE_PARM_DESC(messages, "Messages per measurement (default: 20000)");
module_param_named(size, params.size, uint, 0444);
MODULE_PARM_DESC(size, "Message size in bytes (default: 64)");

/* A registered device. */
struct scale_dev {
	struct list_head list;
	struct ib_device *ibdev;
};

static LIST_HEAD(scale_devs);
static DEFINE_MUTEX(scale_mutex);

static int scale_add(struct ib_device *ibdev);
static void scale_remove(struct ib_device *ibdev, void *client_data);

/* The first client keeps the list of devices; the others are only notified of them. */
static struct ib_client scale_client = {
	.name = "scale",
	.add = scale_add,
	.remove = scale_remove,
};

static struct ib_client scale_others[SCALE_MAX_CLIENTS - 1];
static char scale_names[SCALE_MAX_CLIENTS - 1][16];
static unsigned int scale_nr_others;

static struct scale_result scale_res;
static struct dentry *scale_dir;

static int scale_add(struct ib_device *ibdev)
{
	struct scale_dev *sdev = kzalloc(sizeof(*sdev), GFP_KERNEL);

	if (!sdev)
		return -ENOMEM;
	sdev->ibdev = ibdev;
	ib_set_client_data(ibdev, &scale_client, sdev);
	mutex_lock(&scale_mutex);
	list_add_tail(&sdev->list, &scale_devs);
	mutex_unlock(&scale_mutex);
	return 0;
}

static void scale_remove(struct ib_device *ibdev, void *client_data)
{
	struct scale_dev *sdev = client_data;

	mutex_lock(&scale_mutex);
	list_del(&sdev->list);
	mutex_unlock(&scale_mutex);
	kfree(sdev);
}

static int scale_other_add(struct ib_device *ibdev)
{
	return 0;
}

static void scale_other_remove(struct ib_device *ibdev, void *client_data)
{
}

static void scale_unregister(void)
{
	while (scale_nr_others)
		ib_unregister_client(&scale_others[--scale_nr_others]);
	ib_unregister_client(&scale_client);
}

static int scale_register(void)
{
	struct ib_client *other;
	unsigned int i;
	int ret;

	ret = ib_register_client(&scale_client);
	if (ret)
		return ret;
	for (i = 0; i < clients - 1; i++) {
		other = &scale_others[i];
		snprintf(scale_names[i], sizeof(scale_names[i]), "scale%u", i);
		other->name = scale_names[i];
		other->add = scale_other_add;
		other->remove = scale_other_remove;
		ret = ib_register_client(other);
		if (ret) {
			scale_unregister();
			return ret;
		}
		scale_nr_others++;
	}
	return 0;
}

static int scale_check_messages(void)
{
	if (!params.depth || !params.messages || !params.size) {
		pr_err("depth, messages and size must not be 0\n");
		return -ERANGE;
	}
	if (scale_mem_size(&params) > SCALE_MAX_MEM) {
		pr_err("2 * size * cpus exceeds %lu bytes\n", SCALE_MAX_MEM);
		return -ERANGE;
	}
	return 0;
}

static int scale_check(void)
{
	if (!clients || clients > SCALE_MAX_CLIENTS) {
		pr_err("clients=%u: must be 1 to %d\n", clients, SCALE_MAX_CLIENTS);
		return -ERANGE;
	}
	if (!params.qps)
		return 0;
	if (params.qps < 4 || params.qps > SCALE_MAX_QPS || params.qps % 2) {
		pr_err("qps=%u: must be even, 4 to %d\n", params.qps, SCALE_MAX_QPS);
		return -ERANGE;
	}
	if (!params.cpus || !params.cqs || params.cqs > SCALE_MAX_CQS ||
	    params.cqs % params.cpus || params.qps % (2 * params.cpus) ||
	    params.qps / 2 < params.cqs) {
		pr_err("qps=%u cqs=%u cpus=%u: cqs must be 1 to %d, and at most qps / 2; cpus must divide cqs, and qps / 2\n",
		       params.qps, params.cqs, params.cpus, SCALE_MAX_CQS);
		return -ERANGE;
	}
	return scale_check_messages();
}

/* Runs on the first device, which stays while the mutex is held. */
static int scale_run_first(void)
{
	struct scale_dev *sdev;
	int ret = -ENODEV;

	if (!params.qps)
		return 0;
	mutex_lock(&scale_mutex);
	sdev = list_first_entry_or_null(&scale_devs, struct scale_dev, list);
	if (sdev)
		ret = scale_run(sdev->ibdev, &params, &scale_res);
	mutex_unlock(&scale_mutex);
	if (ret)
		pr_err("run failed (%d)\n", ret);
	return ret;
}

static int scale_result_show(struct seq_file *m, void *unused)
{
	const struct scale_result *res = &scale_res;

	mutex_lock(&scale_mutex);
	seq_printf(m, "devices=%zu", list_count_nodes(&scale_devs));
	mutex_unlock(&scale_mutex);
	if (params.qps)
		seq_printf(m, " qps=%u cqs=%u cpus=%u depth=%u bytes=%llu create_ns=%llu connect_ns=%llu destroy_ns=%llu only_ns=%llu random_ns=%llu",
			   params.qps, params.cqs, params.cpus, params.depth, res->bytes, res->create_ns,
			   res->connect_ns, res->destroy_ns, res->only_ns,
			   res->random_ns);
	seq_putc(m, '\n');
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(scale_result);

static int __init scale_init(void)
{
	int ret;

	ret = scale_check();
	if (ret)
		return ret;
	ret = scale_register();
	if (ret)
		return ret;
	ret = scale_run_first();
	if (ret) {
		scale_unregister();
		return ret;
	}
	scale_dir = debugfs_create_dir("kverbs_scale", NULL);
	debugfs_create_file("result", 0400, scale_dir, NULL, &scale_result_fops);
	return 0;
}

static void __exit scale_exit(void)
{
	debugfs_remove(scale_dir);
	scale_unregister();
}

module_init(scale_init);
module_exit(scale_exit);

MODULE_DESCRIPTION("Benchmark: cost of many queue pairs, devices and clients");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
