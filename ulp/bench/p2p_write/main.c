// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_p2pwrite: compares the cost of an RDMA WRITE into peer-to-peer memory with that of
 * one into system memory. It uses the first device on the PCI bus, with a queue pair that is
 * connected to itself, and the provider nearest to that device.
 *
 *  <debugfs>/kverbs_p2pwrite/
 *	cost	read: a line for each size, and each way to make the region that is
 *		written to: bytes; region, which is fast for one that is registered by a
 *		work request, user for one of memory that a process has mapped; host_ns
 *		and p2p_ns, nanoseconds of a WRITE in the best of several batches.
 *		-ENODEV without a device or a provider; -EBADMSG if the bytes did not
 *		get there
 *
 * Lock: write_mutex guards the device, and is held during a measurement.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kverbs/p2pdma.h>
#include <rdma/ib_verbs.h>

#define WRITE_PORT	1
/* Few enough that the device executes all of them as they are posted. */
#define WRITE_BURST	8
#define WRITE_BURSTS	64
#define WRITE_BATCHES	5
#define WRITE_MAX	SZ_64K
/* A burst that takes longer is taken for hung. */
#define WRITE_TIMEOUT	(10 * HZ)

#define WRITE_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

/**
 * struct write_bench - a queue pair, and the source of its writes
 * @dev: the device
 * @pd: protection domain of all objects
 * @cq: completion queue of @qp
 * @qp: queue pair, connected to itself
 * @from: source buffer, WRITE_MAX bytes
 * @dma: DMA address of @from
 */
struct write_bench {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	void *from;
	u64 dma;
};

/**
 * struct write_target - a region to write to
 * @provider: provider of its memory, or NULL
 * @mr: the region
 * @sg: its memory, if this module mapped it
 * @va: kernel address of the memory
 * @user: address in the process, if mapped there
 */
struct write_target {
	struct pci_dev *provider;
	struct ib_mr *mr;
	struct scatterlist sg;
	void *va;
	unsigned long user;
};

static DEFINE_MUTEX(write_mutex);
static struct ib_device *write_device;
static struct dentry *write_dir;

/* --- the connection ------------------------------------------------------------------ */

static int write_connect(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = WRITE_PORT,
		.qp_access_flags = WRITE_ACCESS,
	};
	struct ib_port_attr port;
	int ret;

	ret = ib_query_port(qp->device, WRITE_PORT, &port) ?:
	      ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = qp->qp_num,
	};
	attr.ah_attr.type = rdma_ah_find_type(qp->device, WRITE_PORT);
	rdma_ah_set_port_num(&attr.ah_attr, WRITE_PORT);
	rdma_ah_set_dlid(&attr.ah_attr, port.lid);
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	attr = (struct ib_qp_attr) { .qp_state = IB_QPS_RTS };
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static void write_destroy(struct write_bench *b)
{
	if (b->qp)
		ib_destroy_qp(b->qp);
	if (b->dma)
		ib_dma_unmap_single(b->dev, b->dma, WRITE_MAX, DMA_TO_DEVICE);
	kfree(b->from);
	if (b->cq)
		ib_free_cq(b->cq);
	if (b->pd)
		ib_dealloc_pd(b->pd);
}

static int write_make_memory(struct write_bench *b)
{
	u64 dma;

	b->from = kmalloc(WRITE_MAX, GFP_KERNEL);
	if (!b->from)
		return -ENOMEM;
	dma = ib_dma_map_single(b->dev, b->from, WRITE_MAX, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(b->dev, dma))
		return -ENOMEM;
	b->dma = dma;
	return 0;
}

/* What there is, write_destroy() undoes. */
static int write_create(struct write_bench *b)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = WRITE_BURST, .max_send_sge = 1 },
	};
	struct ib_pd *pd = ib_alloc_pd(b->dev, 0);
	struct ib_cq *cq;
	struct ib_qp *qp;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	b->pd = pd;
	cq = ib_alloc_cq(b->dev, NULL, 2 * WRITE_BURST, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	b->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	b->qp = qp;
	return write_connect(qp) ?: write_make_memory(b);
}

/* --- work requests -------------------------------------------------------------------- */

/* Returns 0 when @nr requests have succeeded. */
static int write_poll(struct write_bench *b, int nr)
{
	unsigned long end = jiffies + WRITE_TIMEOUT;
	struct ib_wc wc[WRITE_BURST];
	int n, i;

	while (nr) {
		n = ib_poll_cq(b->cq, min(nr, WRITE_BURST), wc);
		for (i = 0; i < n; i++) {
			if (wc[i].status != IB_WC_SUCCESS)
				return -EIO;
		}
		nr -= n;
		if (n)
			continue;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

static int write_burst(struct write_bench *b, const struct write_target *t, u32 bytes)
{
	struct ib_sge sge = { b->dma, bytes, b->pd->local_dma_lkey };
	struct ib_rdma_wr wr = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE },
		.remote_addr = t->mr->iova,
		.rkey = t->mr->rkey,
	};
	int i, ret = 0;

	for (i = 0; !ret && i < WRITE_BURST; i++)
		ret = ib_post_send(b->qp, &wr.wr, NULL);
	return ret ?: write_poll(b, WRITE_BURST);
}

static int write_batch(struct write_bench *b, const struct write_target *t, u32 bytes,
		       u64 *ns)
{
	u64 start = ktime_get_ns();
	int i, ret = 0;

	for (i = 0; !ret && i < WRITE_BURSTS; i++)
		ret = write_burst(b, t, bytes);
	*ns = min(*ns, div_u64(ktime_get_ns() - start, WRITE_BURSTS * WRITE_BURST));
	return ret;
}

/* --- regions ----------------------------------------------------------------------------- */

static void write_fast_free(struct write_bench *b, struct write_target *t)
{
	if (t->mr)
		ib_dereg_mr(t->mr);
	if (sg_dma_len(&t->sg))
		ib_dma_unmap_sg(b->dev, &t->sg, 1, DMA_FROM_DEVICE);
	if (!t->va)
		return;
	if (t->provider)
		pci_free_p2pmem(t->provider, t->va, WRITE_MAX);
	else
		free_pages_exact(t->va, WRITE_MAX);
}

static int write_fast_register(struct write_bench *b, struct write_target *t)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .access = WRITE_ACCESS };
	struct ib_mr *mr;
	int ret;

	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, WRITE_MAX / PAGE_SIZE);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	t->mr = mr;
	if (ib_map_mr_sg(mr, &t->sg, 1, NULL, PAGE_SIZE) != 1)
		return -EINVAL;
	wr.mr = mr;
	wr.key = mr->rkey;
	ret = ib_post_send(b->qp, &wr.wr, NULL);
	return ret ?: write_poll(b, 1);
}

/* What there is, write_fast_free() undoes. */
static int write_fast_make(struct write_bench *b, struct write_target *t)
{
	t->va = t->provider ? pci_alloc_p2pmem(t->provider, WRITE_MAX) :
			      alloc_pages_exact(WRITE_MAX, GFP_KERNEL);
	if (!t->va)
		return -ENOMEM;
	sg_init_one(&t->sg, t->va, WRITE_MAX);
	if (ib_dma_map_sg(b->dev, &t->sg, 1, DMA_FROM_DEVICE) != 1) {
		sg_dma_len(&t->sg) = 0;
		return -EREMOTEIO;
	}
	return write_fast_register(b, t);
}

static void write_user_free(struct write_bench *b, struct write_target *t)
{
	if (t->mr)
		ib_dereg_mr(t->mr);
	if (t->user)
		vm_munmap(t->user, WRITE_MAX);
}

static struct file *write_open(const struct pci_dev *provider)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/p2pmem/allocate",
		 pci_name(provider));
	return filp_open(path, O_RDWR, 0);
}

/* Maps memory into the process that reads the file. */
static int write_user_map(struct write_target *t)
{
	struct file *file = t->provider ? write_open(t->provider) : NULL;
	unsigned long user;

	if (IS_ERR(file))
		return PTR_ERR(file);
	user = vm_mmap(file, 0, WRITE_MAX, PROT_READ | PROT_WRITE,
		       file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (file)
		filp_close(file, NULL);
	if (IS_ERR_VALUE(user))
		return user;
	t->user = user;
	return 0;
}

/* What there is, write_user_free() undoes. */
static int write_user_make(struct write_bench *b, struct write_target *t)
{
	struct ib_mem mem = { .length = WRITE_MAX };
	struct ib_mr *mr;
	int ret = write_user_map(t);

	if (ret)
		return ret;
	mem.start = t->user;
	mr = ib_reg_mem(b->pd, &mem, t->user, WRITE_ACCESS);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	t->mr = mr;
	return mem.found == (t->provider ? IB_MEM_P2P : IB_MEM_HOST) ? 0 : -EXDEV;
}

/* --- measurements ----------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*make)(struct write_bench *b, struct write_target *t);
	void (*free)(struct write_bench *b, struct write_target *t);
} write_regions[] = {
	{ "fast", write_fast_make, write_fast_free },
	{ "user", write_user_make, write_user_free },
};

static const u32 write_bytes[] = { 64, 4096, WRITE_MAX };

/* Checks that the target holds the bytes that were written. */
static int write_check(struct write_bench *b, const struct write_target *t, u32 bytes)
{
	void *copy = kmalloc(bytes, GFP_KERNEL);
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	if (t->va)
		memcpy(copy, t->va, bytes);
	else if (copy_from_user(copy, (void __user *)t->user, bytes))
		ret = -EFAULT;
	if (!ret && memcmp(copy, b->from, bytes))
		ret = -EBADMSG;
	kfree(copy);
	return ret;
}

static int write_measure(struct write_bench *b, const struct write_target *t, u32 bytes,
			 u64 *ns)
{
	int i, ret = 0;

	get_random_bytes(b->from, bytes);
	*ns = U64_MAX;
	for (i = 0; !ret && i < WRITE_BATCHES; i++)
		ret = write_batch(b, t, bytes, ns);
	return ret ?: write_check(b, t, bytes);
}

/* @ns is indexed like write_bytes. */
static int write_into(struct write_bench *b, int region, struct pci_dev *provider, u64 *ns)
{
	struct write_target t = { .provider = provider };
	int i, ret;

	ret = write_regions[region].make(b, &t);
	for (i = 0; !ret && i < ARRAY_SIZE(write_bytes); i++)
		ret = write_measure(b, &t, write_bytes[i], &ns[i]);
	write_regions[region].free(b, &t);
	return ret;
}

static int write_compare(struct seq_file *s, struct write_bench *b, struct pci_dev *provider)
{
	u64 host[ARRAY_SIZE(write_bytes)], p2p[ARRAY_SIZE(write_bytes)];
	int region, i, ret = 0;

	for (region = 0; region < ARRAY_SIZE(write_regions); region++) {
		ret = write_into(b, region, NULL, host) ?:
		      write_into(b, region, provider, p2p);
		if (ret)
			break;
		for (i = 0; i < ARRAY_SIZE(write_bytes); i++)
			seq_printf(s, "bytes=%u region=%s host_ns=%llu p2p_ns=%llu\n",
				   write_bytes[i], write_regions[region].name, host[i],
				   p2p[i]);
	}
	return ret;
}

static int write_run(struct seq_file *s)
{
	struct write_bench b = { .dev = write_device };
	struct pci_dev *provider;
	int ret = -ENODEV;

	if (!write_device)
		return ret;
	provider = pci_p2pmem_find(write_device->dma_device);
	if (!provider)
		return ret;
	ret = write_create(&b) ?: write_compare(s, &b, provider);
	write_destroy(&b);
	pci_dev_put(provider);
	return ret;
}

static int cost_show(struct seq_file *s, void *unused)
{
	int ret;

	mutex_lock(&write_mutex);
	ret = write_run(s);
	mutex_unlock(&write_mutex);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(cost);

/* --- the device ------------------------------------------------------------------- */

static int write_add(struct ib_device *device)
{
	mutex_lock(&write_mutex);
	if (!write_device && ib_dma_pci_p2p_dma_supported(device))
		write_device = device;
	mutex_unlock(&write_mutex);
	return 0;
}

static void write_remove(struct ib_device *device, void *client_data)
{
	mutex_lock(&write_mutex);
	if (write_device == device)
		write_device = NULL;
	mutex_unlock(&write_mutex);
}

static struct ib_client write_client = {
	.name = "p2pwrite",
	.add = write_add,
	.remove = write_remove,
};

static int __init p2pwrite_init(void)
{
	int ret = ib_register_client(&write_client);

	if (ret)
		return ret;
	write_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("cost", 0400, write_dir, NULL, &cost_fops);
	return 0;
}

static void __exit p2pwrite_exit(void)
{
	debugfs_remove(write_dir);
	ib_unregister_client(&write_client);
}

module_init(p2pwrite_init);
module_exit(p2pwrite_exit);

MODULE_DESCRIPTION("Benchmark: cost of RDMA WRITE to peer-to-peer memory");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
