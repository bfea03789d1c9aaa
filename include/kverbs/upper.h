/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's own MAD layer and connection manager need of the core, besides the verbs,
 * when "make ulps" builds them to run on it: see Documentation/ulps.rst.
 *
 * Only the modules in ulp/stock/ call these functions, which are exported in the symbol namespace
 * KVERBS_INTERNAL. ULPs and drivers use <rdma/ib_verbs.h>.
 */
#ifndef KVERBS_UPPER_H
#define KVERBS_UPPER_H

#include <rdma/ib_verbs.h>

struct attribute_group;

void ib_track_add(struct ib_device *dev, struct rdma_restrack_entry *res);
void ib_track_del(struct ib_device *dev, struct rdma_restrack_entry *res);

int ib_port_add_groups(struct ib_device *dev, u32 port, const struct attribute_group **groups);
void ib_port_remove_groups(struct ib_device *dev, u32 port,
			   const struct attribute_group **groups);

/**
 * struct ib_rw_ops - what rdma_rw contexts need when a QP is made
 * @owner: the module that has these functions, which stays loaded while they run
 * @init_qp: adds the requests of &ib_qp_cap.max_rdma_ctxs contexts to &ib_qp_cap.max_send_wr;
 *	the port is valid
 * @init_mrs: makes the regions of the contexts, in &ib_qp.rdma_mrs and &ib_qp.sig_mrs, which
 *	the core frees with the QP; returns 0 or an errno
 */
struct ib_rw_ops {
	struct module *owner;
	void (*init_qp)(struct ib_device *dev, struct ib_qp_init_attr *attr);
	int (*init_mrs)(struct ib_qp *qp, struct ib_qp_init_attr *attr);
};

void ib_set_rw_ops(const struct ib_rw_ops *ops);

const char *ib_gid_type_str(enum ib_gid_type type);
unsigned long ib_roce_gid_types(const struct ib_device *dev, u32 port);

#endif
