// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric: finds the port that has an address.
 *
 * All emulated ports of the machine are connected to each other. An InfiniBand port is found by
 * its LID; with a global route, it must have the destination's GID too. An Ethernet port is found
 * by any of its GIDs together with the GID's type: RoCE v1 and v2 do not reach each other.
 * Ports in different network namespaces reach each other, too; if an address exists in several of
 * them, a sender reaches the one in its own. Lookups run under RCU and take no lock.
 * emu_fabric_lock serialises changes; a grace period after a port has been taken out, nobody uses
 * it any more.
 *
 * A connected queue pair keeps using the peer that it found until the fabric's generation
 * changes: see engine/in_memory.c. So emu_fabric_changed() must be called after each change that
 * may lead to another peer, or to another result of a peer's checks, and before that change is
 * reported: here for addresses, in ports.c for link states and P_Keys, in qp.c for queue pairs.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "net.h"

/* For a thousand ports or so, with few GIDs each. */
#define EMU_GID_HASH_BITS	10

/**
 * struct emu_gid - a GID in the fabric
 * @node: in emu_gids
 * @rcu: for freeing it
 * @gid: the address
 * @type: RoCE version, or IB_GID_TYPE_IB
 * @twin: when it was added, there was another one of the same address and type
 * @port: the port that has it
 * @net: the network namespace that has it; only compared
 * @ndev: the network device that has it, the port's or one on top of that; NULL for
 *	IB_GID_TYPE_IB; only compared, for it may be gone
 */
struct emu_gid {
	struct hlist_node node;
	struct rcu_head rcu;
	union ib_gid gid;
	enum ib_gid_type type;
	bool twin;
	struct emu_port *port;
	const struct net *net;
	const struct net_device *ndev;
};

static DEFINE_MUTEX(emu_fabric_lock);
static DEFINE_XARRAY_ALLOC1(emu_lids);
static DEFINE_HASHTABLE(emu_gids, EMU_GID_HASH_BITS);
/* Always odd, so never 0, which stands for a queue pair that remembers no peer. */
atomic_long_t emu_fabric_gen __read_mostly = ATOMIC_LONG_INIT(1);

static u32 emu_gid_hash(const union ib_gid *gid, enum ib_gid_type type)
{
	return jhash(gid->raw, sizeof(gid->raw), type);
}

/**
 * emu_fabric_changed() - make all queue pairs look up their peers again
 *
 * This is a full barrier. Whoever sees the new generation sees the change before the call; and
 * whoever sees what the caller does after it, such as opening a gate, or runs after a grace
 * period that the caller waited for, sees the new generation.
 *
 * Context: Any.
 */
void emu_fabric_changed(void)
{
	(void)atomic_long_add_return(2, &emu_fabric_gen);
}

static int emu_fabric_claim_lid(struct emu_port *port, u16 lid)
{
	struct xa_limit limit = XA_LIMIT(lid ?: 1, lid ?: EMU_MAX_LID);
	u32 claimed;
	int err;

	lockdep_assert_held(&emu_fabric_lock);
	err = xa_alloc(&emu_lids, &claimed, port, limit, GFP_KERNEL);
	if (!err)
		WRITE_ONCE(port->lid, claimed);
	return err;
}

/**
 * emu_fabric_add_lid() - give a port a LID, instead of the one it has
 * @port: InfiniBand port
 * @lid: 1 to EMU_MAX_LID; 0 for the smallest free one
 *
 * Context: Process context.
 * Return: 0; -EBUSY if another port has it, or none is free; -ENOMEM. After an
 * error, the port keeps the LID that it had.
 */
int emu_fabric_add_lid(struct emu_port *port, u16 lid)
{
	u16 old = port->lid;
	int err = 0;

	mutex_lock(&emu_fabric_lock);
	if (!old || lid != old)
		err = emu_fabric_claim_lid(port, lid);
	if (!err && old && lid != old)
		xa_erase(&emu_lids, old);
	if (!err)
		emu_fabric_changed();
	mutex_unlock(&emu_fabric_lock);
	return err;
}

void emu_fabric_del_lid(struct emu_port *port)
{
	mutex_lock(&emu_fabric_lock);
	xa_erase(&emu_lids, port->lid);
	emu_fabric_changed();
	mutex_unlock(&emu_fabric_lock);
}

static bool emu_gid_matches(const struct emu_gid *entry, const union ib_gid *gid,
			    enum ib_gid_type type)
{
	return entry->type == type && !memcmp(&entry->gid, gid, sizeof(*gid));
}

static bool emu_fabric_has_gid(const union ib_gid *gid, enum ib_gid_type type)
{
	struct emu_gid *entry;

	lockdep_assert_held(&emu_fabric_lock);
	hash_for_each_possible(emu_gids, entry, node, emu_gid_hash(gid, type)) {
		if (emu_gid_matches(entry, gid, type))
			return true;
	}
	return false;
}

/*
 * Adds an address to those of @port; @ndev, in @net, has it. If two ports have the same address in
 * one namespace, lookups find the port whose own network device has it, or else the one that was
 * added last. Returns the entry, or ERR_PTR(-ENOMEM).
 */
struct emu_gid *emu_fabric_add_gid(struct emu_port *port, const union ib_gid *gid,
				   enum ib_gid_type type, const struct net *net,
				   const struct net_device *ndev)
{
	struct emu_gid *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return ERR_PTR(-ENOMEM);
	entry->gid = *gid;
	entry->type = type;
	entry->port = port;
	entry->net = net;
	entry->ndev = ndev;
	mutex_lock(&emu_fabric_lock);
	entry->twin = emu_fabric_has_gid(gid, type);
	hash_add_rcu(emu_gids, &entry->node, emu_gid_hash(gid, type));
	emu_fabric_changed();
	mutex_unlock(&emu_fabric_lock);
	return entry;
}

void emu_fabric_del_gid(struct emu_gid *entry)
{
	mutex_lock(&emu_fabric_lock);
	hash_del_rcu(&entry->node);
	kfree_rcu(entry, rcu);
	emu_fabric_changed();
	mutex_unlock(&emu_fabric_lock);
}

/* Returns a port's own entry of an address, or NULL. Under rcu_read_lock(). */
static struct emu_gid *emu_port_find_gid(const struct emu_port *port, const union ib_gid *gid,
					 enum ib_gid_type type)
{
	struct emu_gid *entry;

	hash_for_each_possible_rcu(emu_gids, entry, node, emu_gid_hash(gid, type)) {
		if (entry->port == port && emu_gid_matches(entry, gid, type))
			return entry;
	}
	return NULL;
}

/*
 * Chooses among several ports that have the destination's address: the sender's own port, if the
 * source has the same address; else a port in the sender's namespace, preferably one that has the
 * address on its own network device rather than on one on top of that; else the port of @first,
 * the entry that was added last.
 */
static noinline struct emu_port *emu_fabric_choose_twin(const struct emu_av *av,
							struct emu_gid *first)
{
	const struct emu_gid *source = emu_port_find_gid(av->port, &av->sgid, av->gid_type);
	const struct net *net = source ? source->net : NULL;
	struct emu_gid *entry, *near = NULL;

	if (source && emu_gid_matches(source, &av->dgid, av->gid_type))
		return av->port;
	hash_for_each_possible_rcu(emu_gids, entry, node, emu_gid_hash(&av->dgid, av->gid_type)) {
		if (entry->net != net || !emu_gid_matches(entry, &av->dgid, av->gid_type))
			continue;
		if (entry->ndev == READ_ONCE(entry->port->netdev))
			return entry->port;
		if (!near)
			near = entry;
	}
	return near ? near->port : first->port;
}

static struct emu_port *emu_fabric_find_gid(const struct emu_av *av)
{
	struct emu_gid *entry;

	hash_for_each_possible_rcu(emu_gids, entry, node, emu_gid_hash(&av->dgid, av->gid_type)) {
		if (emu_gid_matches(entry, &av->dgid, av->gid_type))
			return unlikely(entry->twin) ? emu_fabric_choose_twin(av, entry) :
						       entry->port;
	}
	return NULL;
}

/* Returns the InfiniBand port that has a LID, or NULL. rcu_read_lock() keeps the port. */
struct emu_port *emu_fabric_find_lid(u16 lid)
{
	return xa_load(&emu_lids, lid);
}

/* Returns the InfiniBand port that has a GID, or NULL. rcu_read_lock() keeps the port. */
struct emu_port *emu_fabric_find_ib_gid(const union ib_gid *gid)
{
	struct emu_gid *entry;

	hash_for_each_possible_rcu(emu_gids, entry, node, emu_gid_hash(gid, IB_GID_TYPE_IB)) {
		if (emu_gid_matches(entry, gid, IB_GID_TYPE_IB))
			return entry->port;
	}
	return NULL;
}

/**
 * emu_fabric_each_ib_port() - call a function for each InfiniBand port of the fabric
 * @function: the function, which must not change any port's LID
 * @data: passed to it
 *
 * Context: Process.
 */
void emu_fabric_each_ib_port(void (*function)(struct emu_port *port, void *data), void *data)
{
	struct emu_port *port;
	unsigned long lid;

	mutex_lock(&emu_fabric_lock);
	xa_for_each(&emu_lids, lid, port)
		function(port, data);
	mutex_unlock(&emu_fabric_lock);
}

/**
 * emu_fabric_find() - find the port that an address vector leads to
 * @av: unicast address vector
 *
 * An InfiniBand port discards a message whose global route leads to a GID that the
 * port does not have (IBTA vol. 1, 9.6.1.5). So such a port is not found, even if it
 * has the LID.
 *
 * Context: Any, under rcu_read_lock(), which keeps the port.
 * Return: the port, or NULL if nobody has the address.
 */
struct emu_port *emu_fabric_find(const struct emu_av *av)
{
	struct emu_port *port;

	if (av->port->edev->ethernet)
		return emu_fabric_find_gid(av);
	port = xa_load(&emu_lids, av->dlid);
	if (port && av->grh && !emu_port_find_gid(port, &av->dgid, IB_GID_TYPE_IB))
		return NULL;
	return port;
}
