/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports, their GIDs, and the caches of their tables.
 */
#ifndef KVERBS_PORT_H
#define KVERBS_PORT_H

#include <rdma/ib_verbs.h>

struct ib_ref_source;
struct net_device;
struct notifier_block;
struct workqueue_struct;

/* port.c */
int ib_port_data_setup(struct ib_device *dev, unsigned long site);
void ib_port_data_free(struct ib_device *dev);
void ib_port_default_method(struct ib_device *dev);
void ib_port_put_netdevs(struct ib_device *dev);
bool ib_netdev_has_port(const struct net_device *ndev);
void ib_ports_forget_begin(void);
void ib_ports_forget_netdev(struct net_device *ndev);
void ib_ports_changed(struct ib_device *dev);

/* cache.c */
int ib_cache_setup(struct ib_device *dev);
int ib_cache_fill(struct ib_device *dev, unsigned long site);
void ib_cache_cleanup(struct ib_device *dev);
void ib_cache_release(struct ib_device *dev);
int ib_cache_refresh(struct ib_device *dev, u32 port, bool *gids_changed, unsigned long site);
u64 ib_cache_subnet_prefix(struct ib_device *dev, u32 port);

/* gid.c */

/**
 * struct ib_gid_want - a GID that a RoCE port should have
 * @gid: the GID
 * @type: its type
 * @ndev: its network device, held by the caller that fills this
 * @is_default: it belongs in the slots reserved for default GIDs
 * @is_address: if it is a default GID: it is an address of @ndev as well
 * @present: it was found in the table
 * @order: place in the list, in which they get the free slots
 */
struct ib_gid_want {
	union ib_gid gid;
	enum ib_gid_type type;
	struct net_device *ndev;
	bool is_default;
	bool is_address;
	bool present;
	unsigned int order;
};

int ib_gid_table_create(struct ib_device *dev, u32 port);
void ib_gid_table_clear(struct ib_device *dev, u32 port);
void ib_gid_table_release(struct ib_device *dev, u32 port);
int ib_gid_table_set(struct ib_device *dev, u32 port, int index,
		     const union ib_gid *gid, struct net_device *ndev, bool *changed);
int ib_gid_table_sync(struct ib_device *dev, u32 port,
		      struct ib_gid_want *want, unsigned int nr, bool *changed);
const struct ib_gid_attr *ib_gid_get(struct ib_device *device, u32 port, int index);
void ib_gid_hold(const struct ib_gid_attr *attr);
void ib_gid_put(const struct ib_gid_attr *attr);
void ib_gid_given(const struct ib_gid_attr *attr, unsigned long site);
void ib_gid_put_by(const struct ib_gid_attr *attr, unsigned long site);
const struct ib_gid_attr *
ib_gid_find(struct ib_device *device, const union ib_gid *gid, u32 port,
	    bool (*filter)(const union ib_gid *gid, const struct ib_gid_attr *attr,
			   void *context), void *context);
const struct ib_gid_attr *ib_gid_find_type(struct ib_device *device, const union ib_gid *gid,
					   enum ib_gid_type type, u32 port,
					   struct net_device *ndev);
extern struct ib_ref_source ib_gid_source;

/* roce_gid.c */
int ib_roce_start(struct ib_device *dev);
void ib_roce_stop(struct ib_device *dev);
void ib_roce_resync(void);
void ib_roce_netdev_changed(void);
int ib_roce_init(struct workqueue_struct *wq,
		 void (*gids)(struct ib_device *dev, u32 port),
		 void (*attr)(struct ib_device *dev, u32 port));
void ib_roce_exit(void);

#endif
