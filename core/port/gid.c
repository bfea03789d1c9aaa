// SPDX-License-Identifier: GPL-2.0-only
/*
 * GID tables.
 *
 * Lock protocol: readers walk a table's slots under RCU. A reader that keeps an
 * entry takes a reference, unless the count has dropped to zero; an entry that
 * dies at that moment is a valid object until it is put. Writers hold the
 * table's mutex, also around the driver's add_gid and del_gid methods; inside
 * it, no locks are taken but those that these methods take.
 *
 * An entry is in the table (live), then dead but referenced, then freed. When it dies, the
 * core calls del_gid, and puts its network device after a grace period, since readers of
 * attr.ndev rely on RCU. On a RoCE port its slot stays occupied until the last reference is
 * put, because address handles and QPs refer to the hardware's table by index. The last put
 * may come in any context: it empties the slot by cmpxchg and frees by RCU. An entry holds
 * its table, so that a late put of a reference, even after the device has gone, is safe.
 *
 * The midlayer's own files take and put references by ib_gid_get() and the like. References
 * taken by the rdma_ calls belong to consumers, and the table counts them for the contract
 * checker; any consumer may give one back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <kverbs/delay.h>
#include <kverbs/upper.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "../contract/contract.h"
#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "../contract/export.h"
#include "../contract/refs.h"
#include "port.h"

/* "No VLAN", as the callers of rdma_read_gid_l2_fields() expect it. */
#define NO_VLAN		0xffff

/*
 * zgid - the GID that is all zero: an empty entry
 */
union ib_gid zgid;
EXPORT_SYMBOL(zgid);

/* Puts a network device after a grace period. */
struct ndev_ref {
	struct rcu_head rcu;
	struct net_device *ndev;
};

struct gid_entry {
	struct ib_gid_attr attr;
	refcount_t refs;
	bool live;
	void *context;
	struct ib_gid_table *table;
	struct ndev_ref *ndev_ref;
	u64 netns;	/* cookie of the network device's namespace, or 0 */
	struct rcu_head rcu;
};

struct ib_gid_table {
	refcount_t refs;
	struct mutex lock;
	unsigned int size;
	unsigned int nr_default;
	bool keeps_slots;
	struct ib_ref_log ref_log;
	struct rcu_head rcu;
	struct gid_entry __rcu *slots[];
};

static struct gid_entry *to_gid_entry(const struct ib_gid_attr *attr)
{
	return container_of((struct ib_gid_attr *)attr, struct gid_entry, attr);
}

static void put_table(struct ib_gid_table *table)
{
	if (refcount_dec_and_test(&table->refs))
		kvfree_rcu(table, rcu);
}

/* Returns true if this was the last reference, and the slot is free now. */
static bool put_entry(struct gid_entry *entry)
{
	struct ib_gid_table *table = entry->table;
	struct gid_entry *found;

	if (!refcount_dec_and_test(&entry->refs))
		return false;
	/* Does nothing if the slot was emptied when the entry died. */
	found = unrcu_pointer(cmpxchg(&table->slots[entry->attr.index],
				      RCU_INITIALIZER(entry), NULL));
	kfree_rcu(entry, rcu);
	put_table(table);
	return found == entry;
}

/* Returns the live entry of a slot, or NULL; for readers, under RCU. */
static struct gid_entry *reader_entry(struct ib_gid_table *table,
				      unsigned int index)
{
	struct gid_entry *entry = rcu_dereference(table->slots[index]);

	return entry && READ_ONCE(entry->live) ? entry : NULL;
}

static bool get_entry(struct gid_entry *entry)
{
	kverbs_delay("gid_get_entry");
	return refcount_inc_not_zero(&entry->refs);
}

static void put_ndev_rcu(struct rcu_head *rcu)
{
	struct ndev_ref *ref = container_of(rcu, struct ndev_ref, rcu);

	dev_put(ref->ndev);
	kfree(ref);
}

/*
 * Drivers record the network namespace of a GID, so an entry whose network device has moved to
 * another namespace must be deleted and added again. Entries keep the cookie to notice that.
 */
static u64 netns_cookie(const struct net_device *ndev)
{
	u64 cookie = 0;

	rcu_read_lock();
	if (ndev)
		cookie = dev_net(ndev)->net_cookie;
	rcu_read_unlock();
	return cookie;
}

static struct gid_entry *new_entry(struct ib_device *dev, u32 port, int index,
				   const struct ib_gid_want *want)
{
	struct gid_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return NULL;
	if (want->ndev) {
		entry->ndev_ref = kmalloc(sizeof(*entry->ndev_ref), GFP_KERNEL);
		if (!entry->ndev_ref) {
			kfree(entry);
			return NULL;
		}
		dev_hold(want->ndev);
		entry->ndev_ref->ndev = want->ndev;
		RCU_INIT_POINTER(entry->attr.ndev, want->ndev);
		entry->netns = netns_cookie(want->ndev);
	}
	entry->attr.device = dev;
	entry->attr.port_num = port;
	entry->attr.index = index;
	entry->attr.gid = want->gid;
	entry->attr.gid_type = want->type;
	refcount_set(&entry->refs, 1);
	entry->live = true;
	return entry;
}

static void discard_entry(struct gid_entry *entry)
{
	if (entry->ndev_ref) {
		dev_put(entry->ndev_ref->ndev);
		kfree(entry->ndev_ref);
	}
	kfree(entry);
}

static void install_entry(struct ib_gid_table *table, int index, struct gid_entry *entry)
{
	lockdep_assert_held(&table->lock);
	refcount_inc(&table->refs);
	entry->table = table;
	rcu_assign_pointer(table->slots[index], entry);
}

static int add_entry(struct ib_device *dev, u32 port,
		     struct ib_gid_table *table, int index,
		     const struct ib_gid_want *want)
{
	struct gid_entry *entry;
	int ret = 0;

	entry = new_entry(dev, port, index, want);
	if (!entry)
		return -ENOMEM;
	if (rdma_cap_roce_gid_table(dev, port))
		ret = dev->ops.add_gid(&entry->attr, &entry->context);
	if (ret) {
		discard_entry(entry);
		return ret;
	}
	install_entry(table, index, entry);
	return 0;
}

static void del_entry(struct ib_device *dev, u32 port,
		      struct ib_gid_table *table, struct gid_entry *entry)
{
	struct ndev_ref *ref = entry->ndev_ref;

	lockdep_assert_held(&table->lock);
	WRITE_ONCE(entry->live, false);
	if (!table->keeps_slots)
		RCU_INIT_POINTER(table->slots[entry->attr.index], NULL);
	if (rdma_cap_roce_gid_table(dev, port))
		dev->ops.del_gid(&entry->attr, &entry->context);
	if (ref) {
		/*
		 * rdma_cm looks at the network device of an iWARP GID without asking whether there
		 * is one, also if the entry has died since it got its reference.
		 */
		RCU_INIT_POINTER(entry->attr.ndev,
				 table->keeps_slots ? NULL : blackhole_netdev);
		call_rcu(&ref->rcu, put_ndev_rcu);
	}
	put_entry(entry);
}

/* Returns the live entry of a slot, or NULL; for writers, which hold the table's lock. */
static struct gid_entry *writer_entry(struct ib_gid_table *table,
				      unsigned int index)
{
	struct gid_entry *entry;

	entry = rcu_dereference_protected(table->slots[index],
					  lockdep_is_held(&table->lock));
	return entry && entry->live ? entry : NULL;
}

int ib_gid_table_create(struct ib_device *dev, u32 port)
{
	unsigned int size = dev->port_data[port].immutable.gid_tbl_len;
	struct ib_gid_table *table;

	table = kvzalloc(struct_size(table, slots, size), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	refcount_set(&table->refs, 1);
	mutex_init(&table->lock);
	ib_ref_log_init(&table->ref_log);
	table->size = size;
	table->keeps_slots = rdma_protocol_roce(dev, port);
	if (table->keeps_slots)
		table->nr_default = min_t(unsigned int, size,
				hweight_long(ib_roce_gid_types(dev, port)));
	/* Pairs with port_gid_table(): the contract checker may look for references at any time. */
	smp_store_release(&ib_port(dev, port)->gids, table);
	return 0;
}

/* The device is being unregistered: nothing reads the table any more. */
void ib_gid_table_clear(struct ib_device *dev, u32 port)
{
	struct ib_gid_table *table = ib_port(dev, port)->gids;
	struct gid_entry *entry;
	unsigned int i;

	if (!table)
		return;
	mutex_lock(&table->lock);
	for (i = 0; i < table->size; i++) {
		entry = writer_entry(table, i);
		if (entry)
			del_entry(dev, port, table, entry);
	}
	mutex_unlock(&table->lock);
}

void ib_gid_table_release(struct ib_device *dev, u32 port)
{
	struct ib_gid_table *table = ib_port(dev, port)->gids;

	if (!table)
		return;
	if (refcount_read(&table->refs) > 1)
		pr_err("%s: port %u: device freed while its GIDs are referenced; the last reference frees its table\n",
		       dev_name(&dev->dev), port);
	WRITE_ONCE(ib_port(dev, port)->gids, NULL);
	put_table(table);
}

static bool entry_matches(const struct gid_entry *entry, const struct ib_gid_want *want)
{
	return !memcmp(&entry->attr.gid, &want->gid, sizeof(want->gid)) &&
	       rcu_access_pointer(entry->attr.ndev) == want->ndev &&
	       entry->netns == netns_cookie(want->ndev);
}

/*
 * Write one slot of a table that the driver keeps; a zero GID empties it. If there is no
 * memory, the slot stays as it is. @ndev: its network device, of an iWARP port, or NULL.
 */
int ib_gid_table_set(struct ib_device *dev, u32 port, int index,
		     const union ib_gid *gid, struct net_device *ndev, bool *changed)
{
	struct ib_gid_want want = { .gid = *gid, .type = IB_GID_TYPE_IB, .ndev = ndev };
	struct ib_gid_table *table = ib_port(dev, port)->gids;
	struct gid_entry *old, *entry = NULL;
	int ret = 0;

	mutex_lock(&table->lock);
	old = writer_entry(table, index);
	if (old ? entry_matches(old, &want) : rdma_is_zero_gid(gid))
		goto out;
	if (!rdma_is_zero_gid(gid)) {
		entry = new_entry(dev, port, index, &want);
		if (!entry) {
			ret = -ENOMEM;
			goto out;
		}
	}
	if (old)
		del_entry(dev, port, table, old);
	if (entry)
		install_entry(table, index, entry);
	*changed = true;
out:
	mutex_unlock(&table->lock);
	return ret;
}

static int find_free_slot(struct ib_gid_table *table, bool is_default)
{
	unsigned int i = is_default ? 0 : table->nr_default;
	unsigned int end = is_default ? table->nr_default : table->size;

	for (; i < end; i++)
		if (!rcu_access_pointer(table->slots[i]))
			return i;
	return -ENOSPC;
}

/*
 * Whether a new GID is for the slots of default GIDs. If entries that are still referenced occupy
 * these, one that is an address as well gets another slot, as other addresses do.
 */
static bool is_for_default(struct ib_gid_table *table, const struct ib_gid_want *want)
{
	return want->is_default && !(want->is_address && find_free_slot(table, true) < 0);
}

/* A default GID stays in another slot while it is wanted: consumers know it by its index. */
static bool entry_is_wanted(struct ib_gid_table *table, struct gid_entry *entry,
			    struct ib_gid_want *want, unsigned int nr)
{
	bool is_default = entry->attr.index < table->nr_default;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (want[i].present || (is_default && !want[i].is_default) ||
		    want[i].type != entry->attr.gid_type ||
		    want[i].ndev != rcu_access_pointer(entry->attr.ndev) ||
		    memcmp(&want[i].gid, &entry->attr.gid, sizeof(want[i].gid)) ||
		    netns_cookie(want[i].ndev) != entry->netns)
			continue;
		want[i].present = true;
		return true;
	}
	return false;
}

/*
 * Make the table of a RoCE port hold the wanted GIDs and no others. Goes on
 * after a failure. Returns -ENOMEM if there was not enough memory: then the
 * caller tries again. Putting the last reference that kept a slot occupied also
 * leads to another try. Sets @changed if the table has changed.
 */
int ib_gid_table_sync(struct ib_device *dev, u32 port,
		      struct ib_gid_want *want, unsigned int nr, bool *changed)
{
	struct ib_gid_table *table = ib_port(dev, port)->gids;
	struct gid_entry *entry;
	bool full[2] = {}, is_default;
	int ret, failed = 0;
	unsigned int i;

	mutex_lock(&table->lock);
	for (i = 0; i < table->size; i++) {
		cond_resched();
		entry = writer_entry(table, i);
		if (!entry || entry_is_wanted(table, entry, want, nr))
			continue;
		del_entry(dev, port, table, entry);
		*changed = true;
	}
	for (i = 0; i < nr; i++) {
		is_default = is_for_default(table, &want[i]);
		if (want[i].present || full[is_default])
			continue;
		cond_resched();
		ret = find_free_slot(table, is_default);
		full[is_default] = ret < 0;
		if (ret >= 0)
			ret = add_entry(dev, port, table, ret, &want[i]);
		if (!ret)
			*changed = true;
		else if (ret == -ENOMEM)
			failed = ret;
		else
			ibdev_warn_ratelimited(dev, "port %u: cannot add GID %pI6%s (%d)\n",
					       port, want[i].gid.raw,
					       full[is_default] ?
					       ", and maybe others: no slot is free" : "",
					       ret);
	}
	mutex_unlock(&table->lock);
	return failed;
}

/**
 * ib_gid_type_str() - the name that user space expects for a type of GIDs
 * @type: the type; others than %IB_GID_TYPE_ROCE_UDP_ENCAP share a name
 *
 * Context: Any.
 * Return: the name, as in sysfs.
 */
const char *ib_gid_type_str(enum ib_gid_type type)
{
	return type == IB_GID_TYPE_ROCE_UDP_ENCAP ? "RoCE v2" : "IB/RoCE v1";
}
IB_EXPORT_INTERNAL(ib_gid_type_str);

/* Returns the table of a port, or NULL if there is no such port or no table yet. */
static struct ib_gid_table *port_gid_table(struct ib_device *device, u32 port)
{
	struct ib_port_priv *p = ib_port_or_null(device, port);

	/* Pairs with ib_gid_table_create(). */
	return p ? smp_load_acquire(&p->gids) : NULL;
}

/**
 * rdma_is_zero_gid() - check whether a GID is all zero
 * @gid: the GID
 *
 * Context: Any.
 * Return: true if it is, which in a table means an empty entry.
 */
bool rdma_is_zero_gid(const union ib_gid *gid)
{
	return !memcmp(gid, &zgid, sizeof(*gid));
}
EXPORT_SYMBOL(rdma_is_zero_gid);

/**
 * rdma_query_gid() - copy a GID out of the table
 * @device: the device
 * @port_num: the port
 * @index: in the table
 * @gid: result
 *
 * Context: Any.
 * Return: 0; -EINVAL if there is no such port or index; -ENOENT if the entry is
 *	   empty.
 */
int rdma_query_gid(struct ib_device *device, u32 port_num, int index,
		   union ib_gid *gid)
{
	struct ib_gid_table *table = port_gid_table(device, port_num);
	struct gid_entry *entry;
	int ret = -ENOENT;

	if (!table || index < 0 || index >= table->size)
		return ib_invalid_index(device, "query_gid", port_num, index,
					table ? table->size : -1, _RET_IP_);
	rcu_read_lock();
	entry = reader_entry(table, index);
	if (entry) {
		*gid = entry->attr.gid;
		ret = 0;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(rdma_query_gid);

/* rdma_get_gid_attr() for the midlayer itself. */
const struct ib_gid_attr *ib_gid_get(struct ib_device *device, u32 port, int index)
{
	struct ib_gid_table *table = port_gid_table(device, port);
	const struct ib_gid_attr *attr = ERR_PTR(-ENODATA);
	struct gid_entry *entry;

	if (!table || index < 0 || index >= table->size)
		return ERR_PTR(-EINVAL);
	rcu_read_lock();
	entry = reader_entry(table, index);
	if (entry && get_entry(entry))
		attr = &entry->attr;
	rcu_read_unlock();
	return attr;
}
IB_EXPORT_INTERNAL(ib_gid_get);

void ib_gid_hold(const struct ib_gid_attr *attr)
{
	refcount_inc(&to_gid_entry(attr)->refs);
}

void ib_gid_put(const struct ib_gid_attr *attr)
{
	/* A GID for which there was no slot may fit now. */
	if (put_entry(to_gid_entry(attr)))
		ib_roce_resync();
}
IB_EXPORT_INTERNAL(ib_gid_put);

/* Records that the caller at @site gets the reference that @attr, if no error, stands for. */
void ib_gid_given(const struct ib_gid_attr *attr, unsigned long site)
{
	if (!IS_ERR(attr))
		ib_ref_log_get(&to_gid_entry(attr)->table->ref_log, attr, site);
}

/* Puts a reference, and records that the caller at @site has given it back. */
void ib_gid_put_by(const struct ib_gid_attr *attr, unsigned long site)
{
	ib_ref_log_put(&to_gid_entry(attr)->table->ref_log, attr, site);
	ib_gid_put(attr);
}

/* The references that consumers took. For a registered device. */
static void gids_for_each(struct ib_device *device, u64 until,
			  void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ib_gid_table *table;
	u32 port;

	rdma_for_each_port(device, port) {
		table = port_gid_table(device, port);
		if (table)
			ib_ref_log_visit(&table->ref_log, ib_ref_log_seq(), visit, context);
	}
}

static void gids_forget(struct ib_device *device, const struct module *mod)
{
	struct ib_gid_table *table;
	u32 port;

	rcu_read_lock();
	rdma_for_each_port(device, port) {
		table = port_gid_table(device, port);
		if (table)
			ib_ref_log_forget(&table->ref_log, mod);
	}
	rcu_read_unlock();
}

struct ib_ref_source ib_gid_source = {
	.kind = "gid reference",
	.for_each = gids_for_each,
	.forget = gids_forget,
};

/**
 * rdma_get_gid_attr() - take a reference on an entry of the GID table
 * @device: the device
 * @port_num: the port
 * @index: in the table
 *
 * The entry stays unchanged until rdma_put_gid_attr(), even if it is dropped
 * from the table; only its ndev becomes %NULL then, or on iWARP ports one that is nowhere.
 *
 * Context: Any.
 * Return: the entry; ERR_PTR(-EINVAL) if there is no such port or index;
 *	   ERR_PTR(-ENODATA) if it is empty.
 */
const struct ib_gid_attr *rdma_get_gid_attr(struct ib_device *device,
					    u32 port_num, int index)
{
	const struct ib_gid_attr *attr = ib_gid_get(device, port_num, index);
	const struct ib_gid_table *table;

	if (PTR_ERR_OR_ZERO(attr) == -EINVAL) {
		table = port_gid_table(device, port_num);
		ib_invalid_index(device, "get_gid_attr", port_num, index,
				 table ? table->size : -1, _RET_IP_);
	}
	ib_gid_given(attr, _RET_IP_);
	return attr;
}
EXPORT_SYMBOL(rdma_get_gid_attr);

/**
 * rdma_hold_gid_attr() - take another reference on an entry
 * @attr: entry that is held already
 *
 * Context: Any.
 */
void rdma_hold_gid_attr(const struct ib_gid_attr *attr)
{
	ib_gid_hold(attr);
	ib_gid_given(attr, _RET_IP_);
}
EXPORT_SYMBOL(rdma_hold_gid_attr);

/**
 * rdma_put_gid_attr() - drop a reference on an entry
 * @attr: the entry
 *
 * Context: Any.
 */
void rdma_put_gid_attr(const struct ib_gid_attr *attr)
{
	ib_gid_put_by(attr, _RET_IP_);
}
EXPORT_SYMBOL(rdma_put_gid_attr);

/**
 * rdma_read_gid_hw_context() - read the pointer that the driver's add_gid method stored
 * @attr: entry that is held
 *
 * Context: Any.
 * Return: the driver's pointer.
 */
void *rdma_read_gid_hw_context(const struct ib_gid_attr *attr)
{
	return to_gid_entry(attr)->context;
}
EXPORT_SYMBOL(rdma_read_gid_hw_context);

typedef bool (*gid_filter)(const union ib_gid *gid,
			   const struct ib_gid_attr *attr, void *context);

static const struct ib_gid_attr *
find_in_table(struct ib_gid_table *table, const union ib_gid *gid,
	      gid_filter filter, void *context)
{
	const struct ib_gid_attr *found = NULL;
	struct gid_entry *entry;
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < table->size; i++) {
		entry = reader_entry(table, i);
		if (!entry || memcmp(gid, &entry->attr.gid, sizeof(*gid)) ||
		    !filter(gid, &entry->attr, context) || !get_entry(entry))
			continue;
		found = &entry->attr;
		break;
	}
	rcu_read_unlock();
	return found;
}

struct type_and_ndev {
	enum ib_gid_type type;
	struct net_device *ndev;
};

static bool match_type_and_ndev(const union ib_gid *gid,
				const struct ib_gid_attr *attr, void *context)
{
	const struct type_and_ndev *match = context;

	return attr->gid_type == match->type &&
	       (!match->ndev || rcu_access_pointer(attr->ndev) == match->ndev);
}

/* rdma_find_gid_by_port() for the midlayer itself. */
const struct ib_gid_attr *ib_gid_find_type(struct ib_device *device, const union ib_gid *gid,
					   enum ib_gid_type type, u32 port,
					   struct net_device *ndev)
{
	struct type_and_ndev match = { .type = type, .ndev = ndev };
	struct ib_gid_table *table = port_gid_table(device, port);
	const struct ib_gid_attr *attr = NULL;

	if (table)
		attr = find_in_table(table, gid, match_type_and_ndev, &match);
	return attr ? : ERR_PTR(-ENOENT);
}

/* rdma_find_gid_by_filter() for the midlayer itself. */
const struct ib_gid_attr *
ib_gid_find(struct ib_device *device, const union ib_gid *gid, u32 port,
	    gid_filter filter, void *context)
{
	struct ib_gid_table *table = port_gid_table(device, port);

	if (!table)
		return ERR_PTR(-EINVAL);
	return find_in_table(table, gid, filter, context) ? : ERR_PTR(-ENOENT);
}

/**
 * rdma_find_gid_by_port() - find a GID in the table of a port
 * @ib_dev: the device
 * @gid: the GID
 * @gid_type: its type
 * @port: the port
 * @ndev: its network device, or %NULL for any
 *
 * Context: Any.
 * Return: the entry, to be given back with rdma_put_gid_attr(), or
 *	   ERR_PTR(-ENOENT), also if there is no such port, which is logged.
 */
const struct ib_gid_attr *rdma_find_gid_by_port(struct ib_device *ib_dev,
						const union ib_gid *gid,
						enum ib_gid_type gid_type,
						u32 port,
						struct net_device *ndev)
{
	const struct ib_gid_attr *attr = ib_gid_find_type(ib_dev, gid, gid_type, port, ndev);

	if (IS_ERR(attr) && !port_gid_table(ib_dev, port))
		ib_invalid_port(ib_dev, "find_gid_by_port", port, _RET_IP_);
	ib_gid_given(attr, _RET_IP_);
	return attr;
}
EXPORT_SYMBOL(rdma_find_gid_by_port);

/**
 * rdma_find_gid() - find a GID in the tables of all ports
 * @device: the device
 * @gid: the GID
 * @gid_type: its type
 * @ndev: its network device, or %NULL for any
 *
 * Context: Any.
 * Return: the entry, to be given back with rdma_put_gid_attr(), or
 *	   ERR_PTR(-ENOENT).
 */
const struct ib_gid_attr *rdma_find_gid(struct ib_device *device,
					const union ib_gid *gid,
					enum ib_gid_type gid_type,
					struct net_device *ndev)
{
	const struct ib_gid_attr *attr;
	u32 port;

	rdma_for_each_port(device, port) {
		attr = ib_gid_find_type(device, gid, gid_type, port, ndev);
		if (!IS_ERR(attr)) {
			ib_gid_given(attr, _RET_IP_);
			return attr;
		}
	}
	return ERR_PTR(-ENOENT);
}
EXPORT_SYMBOL(rdma_find_gid);

/**
 * rdma_find_gid_by_filter() - find a GID that meets a condition of the caller
 * @device: the device
 * @gid: the GID
 * @port_num: the port
 * @filter: called under RCU for each entry that has this GID; must not sleep
 * @context: passed to @filter
 *
 * Context: Any.
 * Return: the first entry for which @filter returned true, to be given back
 *	   with rdma_put_gid_attr(); ERR_PTR(-ENOENT) if there is none;
 *	   ERR_PTR(-EINVAL) if there is no such port.
 */
const struct ib_gid_attr *
rdma_find_gid_by_filter(struct ib_device *device, const union ib_gid *gid,
			u32 port_num,
			bool (*filter)(const union ib_gid *gid,
				       const struct ib_gid_attr *attr,
				       void *context),
			void *context)
{
	const struct ib_gid_attr *attr = ib_gid_find(device, gid, port_num, filter, context);

	if (PTR_ERR_OR_ZERO(attr) == -EINVAL)
		ib_invalid_port(device, "find_gid_by_filter", port_num, _RET_IP_);
	ib_gid_given(attr, _RET_IP_);
	return attr;
}
EXPORT_SYMBOL(rdma_find_gid_by_filter);

/**
 * ib_find_gid() - find the index of a GID
 * @device: the device
 * @gid: the GID; of any type
 * @port_num: its port
 * @index: set to its index in the table; may be %NULL
 *
 * Context: Any.
 * Return: 0 or -ENOENT.
 */
int ib_find_gid(struct ib_device *device, union ib_gid *gid, u32 *port_num,
		u16 *index)
{
	union ib_gid entry;
	u32 port;
	int i;

	rdma_for_each_port(device, port) {
		for (i = 0; i < device->port_data[port].immutable.gid_tbl_len;
		     i++) {
			if (rdma_query_gid(device, port, i, &entry) ||
			    memcmp(&entry, gid, sizeof(entry)))
				continue;
			*port_num = port;
			if (index)
				*index = i;
			return 0;
		}
	}
	return -ENOENT;
}
EXPORT_SYMBOL(ib_find_gid);

/* Under RCU. NULL if the entry has no network device, or none any more. */
static struct net_device *gid_ndev(const struct ib_gid_attr *attr)
{
	struct net_device *ndev = rcu_dereference(attr->ndev);

	return ndev == blackhole_netdev ? NULL : ndev;
}

/**
 * rdma_read_gid_attr_ndev_rcu() - network device of a GID
 * @attr: entry that is held
 *
 * Context: Under rcu_read_lock(), which also protects the result.
 * Return: the network device, or ERR_PTR(-ENODEV) if the entry has none or has
 *	   been dropped from the table.
 */
struct net_device *rdma_read_gid_attr_ndev_rcu(const struct ib_gid_attr *attr)
{
	return gid_ndev(attr) ? : ERR_PTR(-ENODEV);
}
EXPORT_SYMBOL(rdma_read_gid_attr_ndev_rcu);

static int first_lower_vlan(struct net_device *lower,
			    struct netdev_nested_priv *priv)
{
	u16 *vlan_id = priv->data;

	if (is_vlan_dev(lower))
		*vlan_id = vlan_dev_vlan_id(lower);
	/* One level is enough: end the walk. */
	return 1;
}

/**
 * rdma_read_gid_l2_fields() - VLAN and Ethernet address of a GID
 * @attr: entry that is held
 * @vlan_id: VLAN, 0xffff if there is none; may be %NULL
 * @smac: room for the Ethernet address; may be %NULL
 *
 * Context: Any but NMI.
 * Return: 0, or -ENODEV if the GID has no network device any more.
 */
int rdma_read_gid_l2_fields(const struct ib_gid_attr *attr, u16 *vlan_id,
			    u8 *smac)
{
	struct netdev_nested_priv priv = { .data = vlan_id };
	struct net_device *ndev;
	int ret = -ENODEV;

	rcu_read_lock();
	ndev = gid_ndev(attr);
	if (!ndev)
		goto out;
	ret = 0;
	if (smac)
		ether_addr_copy(smac, ndev->dev_addr);
	if (!vlan_id)
		goto out;
	*vlan_id = is_vlan_dev(ndev) ? vlan_dev_vlan_id(ndev) : NO_VLAN;
	/* A device below a bridge need not belong to the port. */
	if (*vlan_id == NO_VLAN && !netif_is_bridge_master(ndev))
		netdev_walk_all_lower_dev_rcu(ndev, first_lower_vlan, &priv);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(rdma_read_gid_l2_fields);
