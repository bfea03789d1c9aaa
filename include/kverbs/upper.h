/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's own MAD layer, connection manager, RDMA netlink and user-space verbs need
 * from the core, besides the kernel verbs, when "make ulps" builds them to run on it: see
 * Documentation/ulps.rst.
 *
 * Only the modules in ulp/stock/, and those of the midlayer, call these functions, which are
 * exported in the symbol namespace KVERBS_INTERNAL. ULPs and drivers use <rdma/ib_verbs.h>.
 */
#ifndef KVERBS_UPPER_H
#define KVERBS_UPPER_H

#include <rdma/ib_verbs.h>

struct attribute_group;
struct module;
struct notifier_block;
struct task_struct;

/*
 * The kernel's RDMA netlink walks the core's lists of objects. Both have a definition of struct
 * rdma_restrack_root, which they compare with this one.
 */
struct ib_restrack_layout {
	struct xarray xa;
	u32 next;
};

#define IB_SAME_AS_IN_LAYOUT(member, in_root)						\
	(offsetof(struct ib_restrack_layout, member) ==				\
	 offsetof(struct rdma_restrack_root, in_root) &&				\
	 __same_type(((struct ib_restrack_layout *)NULL)->member,			\
		     ((struct rdma_restrack_root *)NULL)->in_root))
#define IB_CHECK_RESTRACK_LAYOUT(next_id)						\
	static_assert(sizeof(struct ib_restrack_layout) ==				\
		      sizeof(struct rdma_restrack_root) &&				\
		      IB_SAME_AS_IN_LAYOUT(xa, xa) && IB_SAME_AS_IN_LAYOUT(next, next_id))

void ib_track_new(struct rdma_restrack_entry *res, enum rdma_restrack_type type);
void ib_track_set_maker(struct rdma_restrack_entry *res, const char *caller, unsigned long site);
void ib_track_set_user(struct rdma_restrack_entry *res, struct task_struct *task,
		       unsigned long site);
void ib_track_drop_user(struct rdma_restrack_entry *res);
void ib_track_add(struct ib_device *dev, struct rdma_restrack_entry *res);
void ib_track_del(struct ib_device *dev, struct rdma_restrack_entry *res);
void ib_track_sync(struct ib_device *dev, struct rdma_restrack_entry *res);

void ib_cq_adopt(struct ib_cq *cq);

struct ib_qp *ib_create_qp_user(struct ib_device *dev, struct ib_pd *pd,
				struct ib_qp_init_attr *attr, struct ib_udata *udata,
				struct ib_uqp_object *uobj, const char *caller);
int ib_modify_qp_with_udata(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			    struct ib_udata *udata);

struct ib_device *ib_device_get_next(u32 *index);
void ib_contract_looks_up(const struct module *mod, bool looks_up);
int ib_call_client(struct ib_device *dev, const char *name,
		   int (*call)(struct ib_client *client, struct ib_device *dev,
			       void *client_data, void *arg),
		   void *arg);

void ib_register_port_notifier(struct ib_device *dev, struct notifier_block *nb);
void ib_unregister_port_notifier(struct ib_device *dev, struct notifier_block *nb);

struct rdma_hw_stats *ib_port_stats(struct ib_device *dev, u32 port);
int ib_port_add_groups(struct ib_device *dev, u32 port, const struct attribute_group **groups);
void ib_port_remove_groups(struct ib_device *dev, u32 port,
			   const struct attribute_group **groups);

/**
 * struct ib_rw_ops - what must be done for rdma_rw contexts when a QP is made
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

/**
 * struct ib_addr_ops - how to find the Ethernet address of a peer
 * @owner: the module that has this function, which stays loaded while it runs
 * @find_mac: looks up the address of @dgid as seen from @sgid, and how many routers are on the
 *	way; may sleep; returns 0 or an errno
 */
struct ib_addr_ops {
	struct module *owner;
	int (*find_mac)(const union ib_gid *sgid, const union ib_gid *dgid, u8 *mac,
			const struct ib_gid_attr *sgid_attr, int *hop_limit);
};

void ib_set_addr_ops(const struct ib_addr_ops *ops);

const char *ib_gid_type_str(enum ib_gid_type type);
unsigned long ib_roce_gid_types(const struct ib_device *dev, u32 port);

#endif
