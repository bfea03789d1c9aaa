// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups: which queue pairs of the fabric listen to an address.
 *
 * A group is identified by its GID, and on InfiniBand ports by its LID too. It
 * exists while a queue pair is attached. For Ethernet ports RoCE v1 and v2 make
 * no difference: the address is the group. emu_mcast_lock serialises changes;
 * senders find a group and walk its list under RCU. The midlayer does not destroy a
 * queue pair while it is attached, and frees it a grace period later.
 *
 * Senders may have interrupts off while they look for a group, so that must not take
 * long, whatever groups others have created: the table grows with them, and its hash has a
 * random seed, so nobody can fill a bucket on purpose.
 */
#include <linux/rculist.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "../lib/fault.h"
#include "../lib/limits.h"
#include "engine.h"
#include "in_memory.h"

/**
 * struct emu_mcast_key - what identifies a group; without padding, for it is compared as a whole
 * @gid: the address
 * @lid: its LID, 0 on Ethernet
 * @ethernet: link layer of its members
 */
struct emu_mcast_key {
	union ib_gid gid;
	u32 lid;
	u32 ethernet;
};

/**
 * struct emu_mcast_group - an address that somebody listens to
 * @node: in emu_mcast_groups
 * @rcu: for freeing it
 * @key: the address
 * @size: number of its members
 * @members: &struct emu_mcast_member
 * @shares: &struct emu_mcast_share, of each device that has members
 */
struct emu_mcast_group {
	struct rhash_head node;
	struct rcu_head rcu;
	struct emu_mcast_key key;
	u32 size;
	struct hlist_head members;
	struct hlist_head shares;
};

/**
 * struct emu_mcast_share - what a device has of a group
 * @node: in the list of the group
 * @edev: the device
 * @members: its members, &struct emu_mcast_member; guarded by emu_mcast_lock
 * @size: their number, 1 to EMU_MAX_MCAST_QPS, whatever others have
 */
struct emu_mcast_share {
	struct hlist_node node;
	struct emu_device *edev;
	struct hlist_head members;
	u32 size;
};

/**
 * struct emu_mcast_member - a queue pair that is attached
 * @node: in the list of its group
 * @rcu: for freeing it
 * @qp: the queue pair
 * @share: of its device
 * @of_share: in the list of @share
 */
struct emu_mcast_member {
	struct hlist_node node;
	struct rcu_head rcu;
	struct emu_qp *qp;
	struct emu_mcast_share *share;
	struct hlist_node of_share;
};

/* The limit of members of a group, of all devices, because a message is copied to each. */
#define EMU_MAX_MCAST_ALL	(16 * EMU_MAX_MCAST_QPS)

static DEFINE_MUTEX(emu_mcast_lock);
static struct rhashtable emu_mcast_groups;
static const struct rhashtable_params emu_mcast_params = {
	.key_len = sizeof(struct emu_mcast_key),
	.key_offset = offsetof(struct emu_mcast_group, key),
	.head_offset = offsetof(struct emu_mcast_group, node),
	.automatic_shrinking = true,
};

/* Before any queue pair exists. Returns 0 or -ENOMEM. */
int emu_mcast_init(void)
{
	return rhashtable_init(&emu_mcast_groups, &emu_mcast_params);
}

/* There are no queue pairs any more. */
void emu_mcast_exit(void)
{
	rhashtable_destroy(&emu_mcast_groups);
}

static struct emu_mcast_key emu_mcast_key(const union ib_gid *gid, u16 lid, bool ethernet)
{
	return (struct emu_mcast_key) {
		.gid = *gid, .lid = ethernet ? 0 : lid, .ethernet = ethernet,
	};
}

/* Under RCU or emu_mcast_lock. @lid is not used on Ethernet. */
static struct emu_mcast_group *emu_mcast_find(const union ib_gid *gid, u16 lid, bool ethernet)
{
	const struct emu_mcast_key key = emu_mcast_key(gid, lid, ethernet);

	BUILD_BUG_ON(sizeof(key) != sizeof(key.gid) + sizeof(key.lid) + sizeof(key.ethernet));
	return rhashtable_lookup_fast(&emu_mcast_groups, &key, emu_mcast_params);
}

/* The group that a multicast is for. On InfiniBand, it has a global route: IBTA vol. 1, C9-8. */
static struct emu_mcast_group *emu_mcast_find_by_av(const struct emu_av *av)
{
	return av->grh ? emu_mcast_find(&av->dgid, av->dlid, av->port->edev->ethernet) : NULL;
}

void emu_mcast_deliver(const struct emu_av *av, void (*deliver)(struct emu_qp *qp, void *data),
		       void *data)
{
	struct emu_mcast_group *group = emu_mcast_find_by_av(av);
	struct emu_mcast_member *member;

	if (!group)
		return;
	hlist_for_each_entry_rcu(member, &group->members, node)
		deliver(member->qp, data);
}

/* Does a multicast group have more than @limit members? Any context. */
bool emu_mcast_is_larger(const struct emu_av *av, u32 limit)
{
	struct emu_mcast_group *group;
	bool larger;

	rcu_read_lock();
	group = emu_mcast_find_by_av(av);
	larger = group && READ_ONCE(group->size) > limit;
	rcu_read_unlock();
	return larger;
}

static struct emu_mcast_share *emu_mcast_find_share(const struct emu_mcast_group *group,
						    const struct emu_device *edev)
{
	struct emu_mcast_share *share;

	lockdep_assert_held(&emu_mcast_lock);
	hlist_for_each_entry(share, &group->shares, node) {
		if (share->edev == edev)
			return share;
	}
	return NULL;
}

static struct emu_mcast_member *emu_mcast_find_member(const struct emu_mcast_group *group,
						      const struct emu_qp *qp)
{
	struct emu_mcast_share *share = emu_mcast_find_share(group, qp->edev);
	struct emu_mcast_member *member;

	if (!share)
		return NULL;
	hlist_for_each_entry(member, &share->members, of_share) {
		if (member->qp == qp)
			return member;
	}
	return NULL;
}

/* Returns a new group without members, or ERR_PTR(-ENOMEM). */
static struct emu_mcast_group *emu_mcast_create(const union ib_gid *gid, u16 lid, bool ethernet)
{
	struct emu_mcast_group *group;

	lockdep_assert_held(&emu_mcast_lock);
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->key = emu_mcast_key(gid, lid, ethernet);
	/* Whatever the error is, it means that the table could not grow. */
	if (!rhashtable_insert_fast(&emu_mcast_groups, &group->node, emu_mcast_params))
		return group;
	kfree(group);
	return ERR_PTR(-ENOMEM);
}

/* Returns 0, -ENOSPC or -ENOMEM. */
static int emu_mcast_join_share(struct emu_mcast_group *group, struct emu_mcast_member *member)
{
	struct emu_device *edev = member->qp->edev;
	struct emu_mcast_share *share = emu_mcast_find_share(group, edev);

	if (share && share->size == EMU_MAX_MCAST_QPS)
		return -ENOSPC;
	if (!share) {
		share = kzalloc(sizeof(*share), GFP_KERNEL_ACCOUNT);
		if (!share)
			return -ENOMEM;
		/* Each device has its share of groups, too. */
		if (emu_object_get(edev, EMU_OBJECT_MCAST_GROUP)) {
			kfree(share);
			return -ENOSPC;
		}
		share->edev = edev;
		hlist_add_head(&share->node, &group->shares);
	}
	share->size++;
	member->share = share;
	hlist_add_head(&member->of_share, &share->members);
	return 0;
}

static void emu_mcast_leave_share(struct emu_mcast_member *member)
{
	struct emu_mcast_share *share = member->share;

	lockdep_assert_held(&emu_mcast_lock);
	hlist_del(&member->of_share);
	if (--share->size)
		return;
	hlist_del(&share->node);
	emu_object_put(share->edev, EMU_OBJECT_MCAST_GROUP);
	kfree(share);
}

static void emu_mcast_free_if_empty(struct emu_mcast_group *group)
{
	lockdep_assert_held(&emu_mcast_lock);
	if (group->size)
		return;
	rhashtable_remove_fast(&emu_mcast_groups, &group->node, emu_mcast_params);
	kfree_rcu(group, rcu);
}

static int emu_mcast_add(struct emu_mcast_member *member, const union ib_gid *gid, u16 lid)
{
	struct emu_device *edev = member->qp->edev;
	struct emu_mcast_group *group = emu_mcast_find(gid, lid, edev->ethernet);
	int err;

	if (group && emu_mcast_find_member(group, member->qp))
		return -EINVAL;
	if (!group)
		group = emu_mcast_create(gid, lid, edev->ethernet);
	if (IS_ERR(group))
		return PTR_ERR(group);
	err = group->size < EMU_MAX_MCAST_ALL ? emu_mcast_join_share(group, member) : -ENOSPC;
	if (err) {
		emu_mcast_free_if_empty(group);
		return err;
	}
	WRITE_ONCE(group->size, group->size + 1);
	hlist_add_head_rcu(&member->node, &group->members);
	return 0;
}

/*
 * In any state: it receives when its state has it receive, at the port that it has then.
 * Returns 0; -EINVAL if the queue pair is attached already; -ENOSPC if its device has too many
 * groups, or too many members in this one; or -ENOMEM.
 */
int emu_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct emu_qp *qp = to_eqp(ibqp);
	struct emu_mcast_member *member;
	int err;

	if (emu_fault_alloc(qp->edev))
		return -ENOMEM;
	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member)
		return -ENOMEM;
	member->qp = qp;

	mutex_lock(&emu_mcast_lock);
	err = emu_mcast_add(member, gid, lid);
	mutex_unlock(&emu_mcast_lock);
	if (err)
		kfree(member);
	return err;
}

/* Removes @member from its group, and frees the group if that was the last. */
static void emu_mcast_del(struct emu_mcast_group *group, struct emu_mcast_member *member)
{
	lockdep_assert_held(&emu_mcast_lock);
	hlist_del_rcu(&member->node);
	WRITE_ONCE(group->size, group->size - 1);
	emu_mcast_leave_share(member);
	/* A sender that walks the list may still deliver to this queue pair. */
	kfree_rcu(member, rcu);
	emu_mcast_free_if_empty(group);
}

/* Returns 0, or -EINVAL if the queue pair is not attached. */
int emu_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct emu_qp *qp = to_eqp(ibqp);
	struct emu_mcast_member *member;
	struct emu_mcast_group *group;

	mutex_lock(&emu_mcast_lock);
	group = emu_mcast_find(gid, lid, qp->edev->ethernet);
	member = group ? emu_mcast_find_member(group, qp) : NULL;
	if (member)
		emu_mcast_del(group, member);
	mutex_unlock(&emu_mcast_lock);
	return member ? 0 : -EINVAL;
}
