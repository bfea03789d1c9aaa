// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_peerbench: what regions of peer memory cost in the core, and whether they slow
 * each other down. It makes regions with ib_reg_mem() on the first device that appeared,
 * and has two peer-memory clients of its own, whose functions do next to nothing.
 *
 *  <debugfs>/kverbs_peerbench/
 *	live	number of additional regions of 64 KiB that exist; a write sets it
 *	cost	read: a line for each size, in pages of 64 KiB that are not contiguous:
 *		live, bytes, pages, and in nanoseconds of the best of several batches
 *		reg_ns and dereg_ns, of which client_reg_ns and client_dereg_ns are
 *		the client's share
 *	cpus	read: the time to make and free a region of 64 KiB, all in one PD and of
 *		one client's memory: one_ns by one thread, two_ns by two threads on two
 *		CPUs, percent, the rate of the two relative to that of the one, and
 *		apart_gain, the same for threads that share nothing and take apart_ns.
 *		The best of several batches, until the rate is "enough" percent, or,
 *		after a thousand, nearly that of threads that share nothing. -ENXIO with
 *		fewer than two CPUs
 *	enough	175
 *	slow	read: a line for each function of the slow client. One call to it is
 *		held up until other regions have been made and freed. The line has the
 *		errors of quick, a region of the other client's memory, of same, one of
 *		the same client's, and of held, the one held up; waited is 1 if the
 *		other regions were not done until the held call gave up
 *
 * Each fails with -ENODEV without a device.
 *
 * Lock: bench_mutex guards everything, and is held during a measurement, so that the
 * device stays.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "peerbench.h"

#define BENCH_MAX_LIVE	1000000U

static DEFINE_MUTEX(bench_mutex);
static struct ib_device *bench_device;
static struct ib_pd *bench_pd;
/* The page that backs all memory of the clients, and its DMA address. */
static struct page *bench_page;
static u64 bench_dma;

static struct ib_mr **bench_mrs;
static unsigned int bench_live;
static struct dentry *bench_dir;

struct ib_mr *bench_reg(struct ib_pd *pd, u64 addr, u64 size)
{
	struct ib_mem mem = { .path = IB_MEM_PEER, .start = addr, .length = size };

	return ib_reg_mem(pd, &mem, addr,
			  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_WRITE);
}

/* --- additional regions ---------------------------------------------------------- */

static void bench_live_free(unsigned int nr)
{
	while (bench_live > nr) {
		WARN_ON(ib_dereg_mr(bench_mrs[--bench_live]));
		cond_resched();
	}
}

static int bench_live_make(unsigned int nr)
{
	struct ib_mr *mr;

	while (bench_live < nr) {
		mr = bench_reg(bench_pd, BENCH_QUICK_ADDR, BENCH_SMALL);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		bench_mrs[bench_live++] = mr;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int bench_live_resize(unsigned int nr)
{
	struct ib_mr **mrs;

	bench_live_free(nr);
	if (nr == bench_live)
		return 0;
	mrs = kvcalloc(nr, sizeof(*mrs), GFP_KERNEL);
	if (!mrs)
		return -ENOMEM;
	if (bench_live)
		memcpy(mrs, bench_mrs, bench_live * sizeof(*mrs));
	kvfree(bench_mrs);
	bench_mrs = mrs;
	return bench_live_make(nr);
}

static int bench_live_set(void *unused, u64 nr)
{
	int ret = -ENODEV;

	if (nr > BENCH_MAX_LIVE)
		return -ERANGE;
	mutex_lock(&bench_mutex);
	if (bench_device)
		ret = bench_live_resize(nr);
	mutex_unlock(&bench_mutex);
	return ret;
}

static int bench_live_get(void *unused, u64 *nr)
{
	mutex_lock(&bench_mutex);
	*nr = bench_live;
	mutex_unlock(&bench_mutex);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(bench_live_fops, bench_live_get, bench_live_set, "%llu\n");

/* --- measurements ------------------------------------------------------------------ */

static u32 bench_enough = 175;

static int bench_cost_show(struct seq_file *s, void *unused)
{
	int ret = -ENODEV;

	mutex_lock(&bench_mutex);
	if (bench_device)
		ret = bench_cost(s, bench_pd, bench_live);
	mutex_unlock(&bench_mutex);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(bench_cost);

static int bench_cpus_show(struct seq_file *s, void *unused)
{
	int ret = -ENODEV;

	mutex_lock(&bench_mutex);
	if (bench_device)
		ret = bench_cpus(s, bench_pd, bench_enough);
	mutex_unlock(&bench_mutex);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(bench_cpus);

static int bench_slow_show(struct seq_file *s, void *unused)
{
	int ret = -ENODEV;

	mutex_lock(&bench_mutex);
	if (bench_device)
		ret = bench_slow(s, bench_pd);
	mutex_unlock(&bench_mutex);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(bench_slow);

/* --- the device -------------------------------------------------------------------- */

static int bench_setup(struct ib_device *device)
{
	struct ib_pd *pd;
	int ret = -ENOMEM;

	pd = ib_alloc_pd(device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	bench_page = alloc_pages(GFP_KERNEL, get_order(BENCH_SMALL));
	if (!bench_page)
		goto err_pd;
	bench_dma = ib_dma_map_page(device, bench_page, 0, BENCH_SMALL, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, bench_dma))
		goto err_page;
	ret = bench_clients_register(bench_dma);
	if (ret)
		goto err_dma;
	bench_pd = pd;
	bench_device = device;
	return 0;

err_dma:
	ib_dma_unmap_page(device, bench_dma, BENCH_SMALL, DMA_BIDIRECTIONAL);
err_page:
	__free_pages(bench_page, get_order(BENCH_SMALL));
err_pd:
	ib_dealloc_pd(pd);
	return ret;
}

static void bench_teardown(void)
{
	bench_live_free(0);
	kvfree(bench_mrs);
	bench_mrs = NULL;
	bench_clients_unregister();
	ib_dma_unmap_page(bench_device, bench_dma, BENCH_SMALL, DMA_BIDIRECTIONAL);
	__free_pages(bench_page, get_order(BENCH_SMALL));
	ib_dealloc_pd(bench_pd);
	bench_device = NULL;
}

static int bench_add(struct ib_device *device)
{
	int ret = 0;

	mutex_lock(&bench_mutex);
	if (!bench_device)
		ret = bench_setup(device);
	mutex_unlock(&bench_mutex);
	return ret;
}

static void bench_remove(struct ib_device *device, void *client_data)
{
	mutex_lock(&bench_mutex);
	if (bench_device == device)
		bench_teardown();
	mutex_unlock(&bench_mutex);
}

static struct ib_client bench_client = {
	.name = "peerbench",
	.add = bench_add,
	.remove = bench_remove,
};

static int __init bench_init(void)
{
	int ret = ib_register_client(&bench_client);

	if (ret)
		return ret;
	bench_dir = debugfs_create_dir("kverbs_peerbench", NULL);
	debugfs_create_file("live", 0600, bench_dir, NULL, &bench_live_fops);
	debugfs_create_u32("enough", 0600, bench_dir, &bench_enough);
	debugfs_create_file("cost", 0400, bench_dir, NULL, &bench_cost_fops);
	debugfs_create_file("cpus", 0400, bench_dir, NULL, &bench_cpus_fops);
	debugfs_create_file("slow", 0400, bench_dir, NULL, &bench_slow_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(bench_dir);
	ib_unregister_client(&bench_client);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark: cost of peer memory regions");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
