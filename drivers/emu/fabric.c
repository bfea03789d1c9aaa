// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric: from an address to the port that has it.
 *
 * All emulated ports of the machine are joined. An InfiniBand port is found by
 * its LID, an Ethernet port by any of its GIDs together with the GID's type:
 * RoCE v1 and v2 do not hear each other. Lookups run under RCU and take no lock.
 * emu_fabric_lock serialises changes; a port that has been taken out is used no
 * more after a grace period.
 *
 * A queue pair keeps the port that it found for as long as the fabric's
 * generation stands, which each change moves on.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "emu.h"

#define EMU_GID_HASH_BITS	8
/* Unicast LIDs end where multicast ones begin. */
#define EMU_LID_LIMIT		XA_LIMIT(1, 0xbfff)

/**
 * struct emu_gid - a GID in the fabric
 * @node: in emu_gids
 * @rcu: for the freeing
 * @gid: the address
 * @type: RoCE version
 * @port: who has it
 */
struct emu_gid {
	struct hlist_node node;
	struct rcu_head rcu;
	union ib_gid gid;
	enum ib_gid_type type;
	struct emu_port *port;
};

static DEFINE_MUTEX(emu_fabric_lock);
static DEFINE_XARRAY_ALLOC1(emu_lids);
static DEFINE_HASHTABLE(emu_gids, EMU_GID_HASH_BITS);
/* Never 0, so that a zeroed queue pair holds no valid route. */
static unsigned long emu_fabric_gen = 1;

static u32 emu_gid_hash(const union ib_gid *gid, enum ib_gid_type type)
{
	return jhash(gid->raw, sizeof(gid->raw), type);
}

static void emu_fabric_changed(void)
{
	lockdep_assert_held(&emu_fabric_lock);
	/* release: who sees the new generation sees the change */
	smp_store_release(&emu_fabric_gen, emu_fabric_gen + 1 ?: 1);
}

/* Gives @port the smallest free LID. Returns 0, -EBUSY when all are taken, or -ENOMEM. */
int emu_fabric_add_lid(struct emu_port *port)
{
	u32 lid;
	int err;

	mutex_lock(&emu_fabric_lock);
	err = xa_alloc(&emu_lids, &lid, port, EMU_LID_LIMIT, GFP_KERNEL);
	if (!err) {
		port->lid = lid;
		emu_fabric_changed();
	}
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

/* Adds one more address of @port. If two ports have it, the last one added is found. */
int emu_fabric_add_gid(struct emu_port *port, const union ib_gid *gid, enum ib_gid_type type)
{
	struct emu_gid *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return -ENOMEM;
	entry->gid = *gid;
	entry->type = type;
	entry->port = port;
	mutex_lock(&emu_fabric_lock);
	hash_add_rcu(emu_gids, &entry->node, emu_gid_hash(gid, type));
	emu_fabric_changed();
	mutex_unlock(&emu_fabric_lock);
	return 0;
}

void emu_fabric_del_gid(struct emu_port *port, const union ib_gid *gid, enum ib_gid_type type)
{
	struct emu_gid *entry;

	mutex_lock(&emu_fabric_lock);
	hash_for_each_possible(emu_gids, entry, node, emu_gid_hash(gid, type)) {
		if (entry->port == port && entry->type == type &&
		    !memcmp(&entry->gid, gid, sizeof(*gid))) {
			hash_del_rcu(&entry->node);
			kfree_rcu(entry, rcu);
			emu_fabric_changed();
			break;
		}
	}
	mutex_unlock(&emu_fabric_lock);
}

static struct emu_port *emu_fabric_find_gid(const union ib_gid *gid, enum ib_gid_type type)
{
	struct emu_gid *entry;

	hash_for_each_possible_rcu(emu_gids, entry, node, emu_gid_hash(gid, type)) {
		if (entry->type == type && !memcmp(&entry->gid, gid, sizeof(*gid)))
			return entry->port;
	}
	return NULL;
}

/**
 * emu_fabric_route() - the port that a queue pair's path leads to
 * @qp: queue pair
 *
 * Context: The owner of @qp, under rcu_read_lock().
 * Return: the port, or NULL if nobody has the address.
 */
struct emu_port *emu_fabric_route(struct emu_qp *qp)
{
	/* acquire: pairs with emu_fabric_changed() */
	unsigned long gen = smp_load_acquire(&emu_fabric_gen);

	if (likely(qp->route && qp->route_gen == gen))
		return qp->route;
	if (qp->edev->ethernet)
		qp->route = emu_fabric_find_gid(&qp->dgid, qp->gid_type);
	else
		qp->route = xa_load(&emu_lids, qp->dlid);
	qp->route_gen = gen;
	return qp->route;
}
