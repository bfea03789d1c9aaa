// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the kernel's own ib_uverbs expects from the kernel's own core, implemented on
 * kverbs' core. Requests for what kverbs does not support are refused: XRC domains and receive
 * work queues (WQs).
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>

#include "core_priv.h"
#include "uverbs.h"

/* Drivers look the context up with kverbs' <rdma/uverbs_ioctl.h>. */
static_assert(offsetof(struct uverbs_attr_bundle, context) -
	      offsetof(struct uverbs_attr_bundle, driver_udata) == IB_UDATA_TO_CONTEXT);

/* The core keeps this count itself. */
void ib_qp_usecnt_inc(struct ib_qp *qp)
{
}

/**
 * rdma_umap_priv_init() - list a process's mapping, to be zapped when the device goes
 * @priv: its place in the list
 * @vma: the mapping, of an open device file
 * @entry: what it maps, on which a reference is taken; or %NULL
 *
 * Context: Process.
 */
void rdma_umap_priv_init(struct rdma_umap_priv *priv, struct vm_area_struct *vma,
			 struct rdma_user_mmap_entry *entry)
{
	struct ib_uverbs_file *ufile = vma->vm_file->private_data;

	if (entry)
		kref_get(&entry->ref);
	priv->entry = entry;
	priv->vma = vma;
	vma->vm_private_data = priv;
	mutex_lock(&ufile->umap_lock);
	list_add(&priv->list, &ufile->umaps);
	mutex_unlock(&ufile->umap_lock);
}

static void describe_gid(struct ib_uverbs_gid_entry *to, const struct ib_gid_attr *attr)
{
	struct net_device *ndev;

	memcpy(to->gid, attr->gid.raw, sizeof(to->gid));
	to->gid_index = attr->index;
	to->port_num = attr->port_num;
	to->gid_type = attr->gid_type;
	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	to->netdev_ifindex = ndev ? ndev->ifindex : 0;
	rcu_read_unlock();
}

/**
 * rdma_query_gid_table() - read the GIDs of all ports
 * @dev: the device
 * @entries: filled in
 * @max_entries: how many there is room for
 *
 * Context: Process.
 * Return: the number of GIDs; -EINVAL if there is not enough room.
 */
ssize_t rdma_query_gid_table(struct ib_device *dev, struct ib_uverbs_gid_entry *entries,
			     size_t max_entries)
{
	const struct ib_gid_attr *attr;
	size_t nr = 0;
	u32 port;
	int i;

	rdma_for_each_port(dev, port) {
		for (i = 0; i < dev->port_data[port].immutable.gid_tbl_len; i++) {
			attr = rdma_get_gid_attr(dev, port, i);
			if (IS_ERR(attr))
				continue;
			if (nr < max_entries)
				describe_gid(&entries[nr], attr);
			rdma_put_gid_attr(attr);
			if (nr++ == max_entries)
				return -EINVAL;
		}
	}
	return nr;
}

struct ib_xrcd *ib_alloc_xrcd_user(struct ib_device *dev, struct inode *inode,
				   struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* Never called: no XRC domain exists. */
int ib_dealloc_xrcd_user(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *attr)
{
	return ERR_PTR(-EOPNOTSUPP);
}

int ib_destroy_wq_user(struct ib_wq *wq, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

MODULE_IMPORT_NS(KVERBS_INTERNAL);
