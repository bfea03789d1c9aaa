// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_p2pbench: what allocating peer-to-peer memory costs, and whether CPUs slow each
 * other down. It uses the first device that has published memory.
 *
 *  <debugfs>/kverbs_p2pbench/
 *	cost	read: lines for pages and for 1 MiB: bytes; used, the percentage of the
 *		provider's memory that is allocated in addition; and ns, the time to
 *		allocate and free one, in the best of several batches
 *	cpus	read: the time to allocate and free a page: one_ns by one thread, two_ns
 *		by two threads on two CPUs, and gain, the rate of the two in per cent of
 *		that of the one. apart_gain is the same for threads that share nothing,
 *		and shows what the machine can do: the processors of a guest may take
 *		turns on one of the host's. percent is gain relative to apart_gain. The
 *		best of several batches, until percent reaches "enough". -ENXIO with
 *		fewer than two CPUs
 *	enough	95
 *
 * Reads fail with -ENODEV without a provider.
 *
 * Lock: bench_mutex is held during a measurement, so that only one runs at a time. The
 * provider cannot go, because memory of it is allocated.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <kverbs/p2pdma.h>

#include "../two_cpus.h"

#define COST_BATCHES		5
#define COST_EACH		2000
/* The memory that is allocated in addition (used) consists of pieces of this size. */
#define COST_PIECE		SZ_64K
#define COST_MAX_PIECES		4096

#define CPUS_EACH		10000
/* Pages that a thread holds at a time. */
#define CPUS_PAGES		4
#define CPUS_MIN_BATCHES	10
#define CPUS_MAX_BATCHES	200

static DEFINE_MUTEX(bench_mutex);
static struct dentry *bench_dir;
static u32 cpus_enough = 95;

/* Returns the provider with a reference. */
static struct pci_dev *bench_provider(void)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev)
		if (pci_has_p2pmem(pdev))
			break;
	return pdev;
}

/* --- what it costs ----------------------------------------------------------------- */

/**
 * struct bench_fill - memory that is allocated in addition
 * @pdev: the provider
 * @nr: number of pieces
 * @piece: the pieces
 */
struct bench_fill {
	struct pci_dev *pdev;
	unsigned int nr;
	void *piece[COST_MAX_PIECES];
};

/* Allocates all the memory that there is, but at most COST_MAX_PIECES pieces. */
static void fill_all(struct bench_fill *fill)
{
	while (fill->nr < COST_MAX_PIECES &&
	       (fill->piece[fill->nr] = pci_alloc_p2pmem(fill->pdev, COST_PIECE)))
		fill->nr++;
}

static void fill_until(struct bench_fill *fill, unsigned int nr)
{
	while (fill->nr > nr)
		pci_free_p2pmem(fill->pdev, fill->piece[--fill->nr], COST_PIECE);
}

static int cost_batch(struct pci_dev *pdev, size_t bytes, u64 *ns)
{
	u64 start = ktime_get_ns();
	void *addr;
	int i;

	for (i = 0; i < COST_EACH; i++) {
		addr = pci_alloc_p2pmem(pdev, bytes);
		if (!addr)
			return -ENOMEM;
		pci_free_p2pmem(pdev, addr, bytes);
	}
	*ns = min(*ns, div_u64(ktime_get_ns() - start, COST_EACH));
	return 0;
}

static int cost_line(struct seq_file *s, struct pci_dev *pdev, size_t bytes, int used)
{
	u64 ns = U64_MAX;
	int i, ret = 0;

	for (i = 0; !ret && i < COST_BATCHES; i++)
		ret = cost_batch(pdev, bytes, &ns);
	if (!ret)
		seq_printf(s, "bytes=%zu used=%d ns=%llu\n", bytes, used, ns);
	return ret;
}

static int cost_lines(struct seq_file *s, struct bench_fill *fill)
{
	int all, ret;

	ret = cost_line(s, fill->pdev, PAGE_SIZE, 0) ?:
	      cost_line(s, fill->pdev, SZ_1M, 0);
	if (ret)
		return ret;
	fill_all(fill);
	all = fill->nr;
	fill_until(fill, all * 9 / 10);
	ret = cost_line(s, fill->pdev, PAGE_SIZE, 90) ?:
	      cost_line(s, fill->pdev, SZ_1M, 90);
	fill_until(fill, 0);
	return ret;
}

static int bench_cost(struct seq_file *s, struct pci_dev *pdev)
{
	struct bench_fill *fill = kvzalloc(sizeof(*fill), GFP_KERNEL);
	int ret;

	if (!fill)
		return -ENOMEM;
	fill->pdev = pdev;
	ret = cost_lines(s, fill);
	kvfree(fill);
	return ret;
}

/* --- two CPUs ---------------------------------------------------------------------- */

static int turn_pages(void *pdev)
{
	void *addr[CPUS_PAGES];
	int i, ret = 0;

	for (i = 0; i < CPUS_PAGES; i++)
		addr[i] = pci_alloc_p2pmem(pdev, PAGE_SIZE);
	for (i = 0; i < CPUS_PAGES; i++) {
		if (addr[i])
			pci_free_p2pmem(pdev, addr[i], PAGE_SIZE);
		else
			ret = -ENOMEM;
	}
	return ret;
}

/* The same number of atomic operations, taking about as long, on data of this thread alone. */
static int turn_apart(void *pdev)
{
	return two_cpus_apart(CPUS_PAGES);
}

/* The two kinds of batches alternate, so that the machine's other work affects both alike. */
static int bench_cpus(struct seq_file *s, struct pci_dev *pdev)
{
	struct two_cpus pages = {
		.turn = turn_pages, .arg = pdev, .turns = CPUS_EACH / CPUS_PAGES,
		.each = CPUS_PAGES, .ns = { U64_MAX, U64_MAX },
	};
	struct two_cpus apart = pages;
	u64 percent = 0;
	int i, ret = 0;

	if (num_online_cpus() < 2)
		return -ENXIO;
	apart.turn = turn_apart;
	for (i = 0; !ret && i < CPUS_MAX_BATCHES; i++) {
		ret = two_cpus_batches(&pages) ?: two_cpus_batches(&apart);
		percent = div64_u64(100 * two_cpus_gain(&pages),
				    max(two_cpus_gain(&apart), 1ULL));
		if (i >= CPUS_MIN_BATCHES && percent >= cpus_enough)
			break;
	}
	if (!ret)
		seq_printf(s, "batches=%d one_ns=%llu two_ns=%llu gain=%llu apart_gain=%llu percent=%llu\n",
			   i, pages.ns[0], pages.ns[1], two_cpus_gain(&pages),
			   two_cpus_gain(&apart), percent);
	return ret;
}

/* --- files ------------------------------------------------------------------------- */

static int bench_run(struct seq_file *s,
		     int (*run)(struct seq_file *s, struct pci_dev *pdev))
{
	struct pci_dev *pdev = bench_provider();
	void *hold;
	int ret;

	if (!pdev)
		return -ENODEV;
	hold = pci_alloc_p2pmem(pdev, PAGE_SIZE);
	if (!hold) {
		pci_dev_put(pdev);
		return -ENOMEM;
	}
	mutex_lock(&bench_mutex);
	ret = run(s, pdev);
	mutex_unlock(&bench_mutex);
	pci_free_p2pmem(pdev, hold, PAGE_SIZE);
	pci_dev_put(pdev);
	return ret;
}

static int cost_show(struct seq_file *s, void *unused)
{
	return bench_run(s, bench_cost);
}
DEFINE_SHOW_ATTRIBUTE(cost);

static int cpus_show(struct seq_file *s, void *unused)
{
	return bench_run(s, bench_cpus);
}
DEFINE_SHOW_ATTRIBUTE(cpus);

static int __init p2pbench_init(void)
{
	bench_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("cost", 0400, bench_dir, NULL, &cost_fops);
	debugfs_create_file("cpus", 0400, bench_dir, NULL, &cpus_fops);
	debugfs_create_u32("enough", 0600, bench_dir, &cpus_enough);
	return 0;
}

static void __exit p2pbench_exit(void)
{
	debugfs_remove(bench_dir);
}

module_init(p2pbench_init);
module_exit(p2pbench_exit);

MODULE_DESCRIPTION("Benchmark: cost of allocating peer-to-peer memory");
MODULE_AUTHOR("The kverbs authors");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
