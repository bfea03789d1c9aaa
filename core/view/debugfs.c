// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kverbs/contract: what the contract checker has found.
 *
 * /sys/kernel/debug/kverbs/<device>/: info; the objects of each kind with their number, the
 * module that made them, and their main attributes; the lanes that poll the CQs, and which
 * CQs are shared (cq/debugfs.c). kverbs_ca adds who has the channel adapter open.
 *
 * Removing a file waits for its readers, so a device outlives them. A reader
 * holds the object that it prints by a restrack reference, which delays its
 * destruction: no lock is held while a driver method is called.
 */
#include <linux/debugfs.h>
#include <linux/export.h>
#include <linux/seq_file.h>
#include <kverbs/peer_region.h>

#include "../../cq/cq.h"
#include "../contract/contract.h"
#include "../contract/device_priv.h"
#include "../contract/export.h"
#include "../memory/umem.h"
#include "view.h"

static struct dentry *debugfs_root;

/* As passed to ib_debugfs_init(). */
static void (*show_clients)(struct ib_device *dev, struct seq_file *s);

static void show_ports(struct seq_file *s, struct ib_device *dev)
{
	struct net_device *ndev;
	u32 port;

	rdma_for_each_port(dev, port) {
		ndev = ib_device_get_netdev(dev, port);
		seq_printf(s, "port %u: gids %d pkeys %d caps %#x netdev %s\n",
			   port, dev->port_data[port].immutable.gid_tbl_len,
			   dev->port_data[port].immutable.pkey_tbl_len,
			   rdma_core_cap_flags(dev, port),
			   ndev ? netdev_name(ndev) : "-");
		dev_put(ndev);
	}
}

static int info_show(struct seq_file *s, void *unused)
{
	static const enum rdma_restrack_type kinds[] = {
		RDMA_RESTRACK_PD, RDMA_RESTRACK_CQ, RDMA_RESTRACK_QP,
		RDMA_RESTRACK_MR, RDMA_RESTRACK_SRQ, RDMA_RESTRACK_MW,
		RDMA_RESTRACK_FMR,
	};
	struct ib_device *dev = s->private;
	char name[IB_DEVICE_NAME_MAX];
	unsigned int i;

	/* dev_name() would be freed by a rename. */
	ib_copy_device_name(name, dev);
	seq_printf(s, "name: %s\n", name);
	seq_printf(s, "driver: %s\n",
		   dev->ops.owner ? module_name(dev->ops.owner) : "-");
	seq_printf(s, "node_guid: %016llx\n", be64_to_cpu(dev->node_guid));
	seq_printf(s, "dma: %s\n",
		   dev->dma_device ? dev_name(dev->dma_device) : "virtual");
	seq_printf(s, "comp_vectors: %d\n", dev->num_comp_vectors);
	seq_printf(s, "users: %u\n", refcount_read(&dev->refcount));
	seq_puts(s, "clients:");
	show_clients(dev, s);
	seq_putc(s, '\n');
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		seq_printf(s, "%s: %d\n", rdma_restrack_kind(kinds[i]),
			   rdma_restrack_count(dev, kinds[i]));
	show_ports(s, dev);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(info);

static void show_pd(struct seq_file *s, const struct ib_pd *pd)
{
	seq_printf(s, " lkey=%#x flags=%#x users=%d", pd->local_dma_lkey,
		   pd->flags, atomic_read(&pd->usecnt));
}

static void show_qp(struct seq_file *s, struct ib_qp *qp)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	const char *state = "?";

	if (qp->device->ops.query_qp &&
	    !IB_METHOD(qp->device, &qp->res, "query_qp",
		       qp->device->ops.query_qp(qp, &attr, IB_QP_STATE, &init)))
		state = ib_qp_state_name(attr.qp_state);
	seq_printf(s, " qpn=%u type=%d state=%s pd=%u scq=%u rcq=%u",
		   qp->qp_num, qp->qp_type, state,
		   qp->pd ? qp->pd->res.id : 0,
		   qp->send_cq ? qp->send_cq->res.id : 0,
		   qp->recv_cq ? qp->recv_cq->res.id : 0);
	if (qp->srq)
		seq_printf(s, " srq=%u", qp->srq->res.id);
}

static void show_umem(struct seq_file *s, struct ib_umem *umem)
{
	if (umem->is_peer)
		seq_printf(s, " memory=peer:%s",
			   peer_region_client(umem->peer));
	else if (umem->is_p2p)
		seq_printf(s, " memory=p2p:%s", umem_p2p_provider(umem));
	else if (umem->is_dmabuf)
		seq_printf(s, " memory=dma-buf:%s",
			   umem_moves(umem) ? "moving" : "pinned");
	else
		seq_puts(s, " memory=host");
	if (READ_ONCE(umem->revoked))
		seq_puts(s, " revoked");
}

static void show_mr(struct seq_file *s, const struct ib_mr *mr)
{
	seq_printf(s, " type=%d lkey=%#x rkey=%#x iova=%#llx length=%llu pd=%u",
		   mr->type, mr->lkey, mr->rkey, mr->iova, (u64)mr->length,
		   mr->pd->res.id);
	if (mr->umem)
		show_umem(s, mr->umem);
}

static void show_srq(struct seq_file *s, const struct ib_srq *srq)
{
	seq_printf(s, " type=%d pd=%u users=%d", srq->srq_type,
		   srq->pd->res.id, atomic_read(&srq->usecnt));
}

static void show_mw(struct seq_file *s, const struct ib_mw *mw)
{
	seq_printf(s, " type=%d rkey=%#x pd=%u", mw->type, mw->rkey,
		   mw->pd->res.id);
}

static void show_fmr(struct seq_file *s, const struct ib_fmr *fmr)
{
	seq_printf(s, " lkey=%#x rkey=%#x pd=%u", fmr->lkey, fmr->rkey,
		   fmr->pd->res.id);
}

static void show_object(struct seq_file *s, struct rdma_restrack_entry *res)
{
	seq_printf(s, "%s=%u maker=%s", rdma_restrack_kind(res->type), res->id,
		   res->kern_name ? : "?");
	switch (res->type) {
	case RDMA_RESTRACK_PD:
		show_pd(s, container_of(res, struct ib_pd, res));
		break;
	case RDMA_RESTRACK_CQ:
		ib_cq_show(container_of(res, struct ib_cq, res), s);
		break;
	case RDMA_RESTRACK_QP:
		show_qp(s, container_of(res, struct ib_qp, res));
		break;
	case RDMA_RESTRACK_MR:
		show_mr(s, container_of(res, struct ib_mr, res));
		break;
	case RDMA_RESTRACK_SRQ:
		show_srq(s, container_of(res, struct ib_srq, res));
		break;
	case RDMA_RESTRACK_MW:
		show_mw(s, container_of(res, struct ib_mw, res));
		break;
	case RDMA_RESTRACK_FMR:
		show_fmr(s, container_of(res, struct ib_fmr, res));
		break;
	default:
		break;
	}
	seq_putc(s, '\n');
}

static int show_objects(struct seq_file *s, enum rdma_restrack_type type)
{
	struct ib_device *dev = s->private;
	struct rdma_restrack_entry *res;
	unsigned long id = 0;

	while ((res = rdma_restrack_next(dev, type, &id))) {
		show_object(s, res);
		rdma_restrack_put(res);
		id++;
	}
	return 0;
}

#define OBJECTS(name, type)						\
static int name##_show(struct seq_file *s, void *unused)		\
{									\
	return show_objects(s, type);					\
}									\
DEFINE_SHOW_ATTRIBUTE(name)

OBJECTS(pd, RDMA_RESTRACK_PD);
OBJECTS(cq, RDMA_RESTRACK_CQ);
OBJECTS(qp, RDMA_RESTRACK_QP);
OBJECTS(mr, RDMA_RESTRACK_MR);
OBJECTS(srq, RDMA_RESTRACK_SRQ);
OBJECTS(mw, RDMA_RESTRACK_MW);
OBJECTS(fmr, RDMA_RESTRACK_FMR);
OBJECTS(cm_id, RDMA_RESTRACK_CM_ID);

static int vectors_show(struct seq_file *s, void *unused)
{
	ib_cq_vectors_show(s->private, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vectors);

static int cq_pool_show(struct seq_file *s, void *unused)
{
	ib_cq_pool_show(s->private, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cq_pool);

static int contract_show(struct seq_file *s, void *unused)
{
	ib_contract_show(s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(contract);

void ib_debugfs_add(struct ib_device *dev)
{
	static const struct {
		const char *name;
		const struct file_operations *fops;
	} files[] = {
		{ "info", &info_fops }, { "pd", &pd_fops }, { "cq", &cq_fops },
		{ "qp", &qp_fops }, { "mr", &mr_fops }, { "srq", &srq_fops },
		{ "mw", &mw_fops }, { "fmr", &fmr_fops }, { "cm_id", &cm_id_fops },
		{ "vectors", &vectors_fops }, { "cq_pool", &cq_pool_fops },
	};
	struct dentry *dir = debugfs_create_dir(dev_name(&dev->dev),
						debugfs_root);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		debugfs_create_file(files[i].name, 0400, dir, dev,
				    files[i].fops);
	ib_priv(dev)->debugfs = dir;
}

/* The debugfs directory of a registered device, for those who add files to it. */
struct dentry *ib_debugfs_dir(struct ib_device *dev)
{
	return ib_priv(dev)->debugfs;
}
IB_EXPORT_INTERNAL(ib_debugfs_dir);

void ib_debugfs_rename(struct ib_device *dev)
{
	struct dentry *dir = ib_priv(dev)->debugfs;

	if (!IS_ERR_OR_NULL(dir))
		debugfs_rename(debugfs_root, dir, debugfs_root,
			       dev_name(&dev->dev));
}

void ib_debugfs_remove(struct ib_device *dev)
{
	debugfs_remove_recursive(ib_priv(dev)->debugfs);
	ib_priv(dev)->debugfs = NULL;
}

/* @clients prints the names of a device's clients in a line. */
void ib_debugfs_init(void (*clients)(struct ib_device *dev, struct seq_file *s))
{
	show_clients = clients;
	debugfs_root = debugfs_create_dir("kverbs", NULL);
	debugfs_create_file("contract", 0400, debugfs_root, NULL, &contract_fops);
}

void ib_debugfs_exit(void)
{
	debugfs_remove_recursive(debugfs_root);
}
