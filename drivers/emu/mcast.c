// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups: which queue pairs of the fabric listen to an address.
 *
 * A group is identified by its GID, and on InfiniBand ports by its LID too. It
 * exists while a queue pair is attached. For Ethernet ports RoCE v1 and v2 make
 * no difference: the address is the group. emu_mcast_lock serialises changes;
 * senders walk a group's list under RCU. The midlayer does not destroy a queue
 * pair while it is attached, and frees it a grace period later.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "exec.h"

#define EMU_MCAST_HASH_BITS	8

/**
 * struct emu_mcast_member - a queue pair that is attached
 * @node: in emu_mcast_members
 * @rcu: for freeing it
 * @qp: the queue pair
 * @gid: the group
 * @lid: its LID, 0 on Ethernet
 */
struct emu_mcast_member {
	struct hlist_node node;
	struct rcu_head rcu;
	struct emu_qp *qp;
	union ib_gid gid;
	u16 lid;
};

static DEFINE_MUTEX(emu_mcast_lock);
static DEFINE_HASHTABLE(emu_mcast_members, EMU_MCAST_HASH_BITS);
/* Number of groups that have a member. Under emu_mcast_lock. */
static u32 emu_mcast_groups;

static u32 emu_mcast_hash(const union ib_gid *gid)
{
	return jhash(gid->raw, sizeof(gid->raw), 0);
}

static bool emu_mcast_is(const struct emu_mcast_member *member, const union ib_gid *gid, u16 lid)
{
	return member->lid == lid && !memcmp(&member->gid, gid, sizeof(*gid));
}

static u16 emu_mcast_lid(const struct emu_qp *qp, u16 lid)
{
	return qp->edev->ethernet ? 0 : lid;
}

static bool emu_mcast_reaches(const struct emu_mcast_member *member, const struct emu_av *av)
{
	bool ethernet = av->port->edev->ethernet;

	return member->qp->edev->ethernet == ethernet &&
	       emu_mcast_is(member, &av->dgid, ethernet ? 0 : av->dlid);
}

/* A multicast on InfiniBand has a global route: IBTA vol. 1, C9-8. */
void emu_mcast_deliver(const struct emu_av *av, void (*deliver)(struct emu_qp *qp, void *data),
		       void *data)
{
	struct emu_mcast_member *member;

	if (!av->grh)
		return;
	hash_for_each_possible_rcu(emu_mcast_members, member, node, emu_mcast_hash(&av->dgid)) {
		if (emu_mcast_reaches(member, av))
			deliver(member->qp, data);
	}
}

/* Does a multicast group have more than @limit members? Any context. */
bool emu_mcast_is_larger(const struct emu_av *av, u32 limit)
{
	struct emu_mcast_member *member;
	u32 size = 0;

	if (!av->grh)
		return false;
	rcu_read_lock();
	hash_for_each_possible_rcu(emu_mcast_members, member, node, emu_mcast_hash(&av->dgid)) {
		if (emu_mcast_reaches(member, av) && ++size > limit)
			break;
	}
	rcu_read_unlock();
	return size > limit;
}

/* Under emu_mcast_lock. */
static struct emu_mcast_member *emu_mcast_find(struct emu_qp *qp, const union ib_gid *gid, u16 lid)
{
	struct emu_mcast_member *member;

	lockdep_assert_held(&emu_mcast_lock);
	hash_for_each_possible(emu_mcast_members, member, node, emu_mcast_hash(gid)) {
		if (member->qp == qp && emu_mcast_is(member, gid, lid))
			return member;
	}
	return NULL;
}

/* How many queue pairs are attached to a group. Under emu_mcast_lock. */
static u32 emu_mcast_size(const union ib_gid *gid, u16 lid)
{
	struct emu_mcast_member *member;
	u32 size = 0;

	lockdep_assert_held(&emu_mcast_lock);
	hash_for_each_possible(emu_mcast_members, member, node, emu_mcast_hash(gid))
		size += emu_mcast_is(member, gid, lid);
	return size;
}

static int emu_mcast_add(struct emu_mcast_member *member)
{
	u32 size = emu_mcast_size(&member->gid, member->lid);

	if (emu_mcast_find(member->qp, &member->gid, member->lid))
		return -EINVAL;
	if (size >= EMU_MAX_MCAST_QPS || (!size && emu_mcast_groups >= EMU_MAX_MCAST_GROUPS))
		return -ENOSPC;
	emu_mcast_groups += !size;
	hash_add_rcu(emu_mcast_members, &member->node, emu_mcast_hash(&member->gid));
	return 0;
}

/*
 * Returns 0; -EINVAL if the queue pair is attached already, or has no port yet;
 * -ENOSPC if there are too many groups, or members; or -ENOMEM.
 */
int emu_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct emu_qp *qp = to_eqp(ibqp);
	struct emu_mcast_member *member;
	int err;

	if (atomic_read(&qp->state) == IB_QPS_RESET)
		return -EINVAL;
	if (emu_fault_alloc(qp->edev))
		return -ENOMEM;
	member = kzalloc(sizeof(*member), GFP_KERNEL);
	if (!member)
		return -ENOMEM;
	member->qp = qp;
	member->gid = *gid;
	member->lid = emu_mcast_lid(qp, lid);

	mutex_lock(&emu_mcast_lock);
	err = emu_mcast_add(member);
	mutex_unlock(&emu_mcast_lock);
	if (err)
		kfree(member);
	return err;
}

/* Returns 0, or -EINVAL if the queue pair is not attached. */
int emu_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct emu_qp *qp = to_eqp(ibqp);
	struct emu_mcast_member *member;

	mutex_lock(&emu_mcast_lock);
	member = emu_mcast_find(qp, gid, emu_mcast_lid(qp, lid));
	if (member) {
		hash_del_rcu(&member->node);
		emu_mcast_groups -= !emu_mcast_size(gid, member->lid);
	}
	mutex_unlock(&emu_mcast_lock);
	if (!member)
		return -EINVAL;
	/* A sender that walks the list may still deliver to this queue pair. */
	kfree_rcu(member, rcu);
	return 0;
}
