// SPDX-License-Identifier: GPL-2.0-only
/*
 * PDs and regions under the handle of an open channel adapter.
 *
 * An object's number is built like a handle: its low half is a place, its high half counts
 * the objects made. An object that is being made or freed has its place, and counts, but
 * lookups do not find it; the thread that makes or frees it has it alone meanwhile. A
 * region counts as a user of its PD from before it is made until after it is freed. A PD
 * that a kernel ULP has borrowed outlives its handle, and is freed when the ULP gives it
 * back.
 *
 * Lock protocol: the handle's lock, a mutex, guards the objects and all counts.
 * It is not held while a driver's method runs or memory is pinned: requests that
 * take long do not hold up others of the same handle.
 */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kverbs/peer_region.h>
#include <rdma/peer_mem.h>

#include "../contract/contract.h"
#include "../contract/refs.h"
#include "../memory/umem.h"
#include "../verbs/verbs.h"
#include "ca.h"

static unsigned int ca_max_objects = 16384;
module_param(ca_max_objects, uint, 0644);
MODULE_PARM_DESC(ca_max_objects,
		 "Max objects under one handle of a process; no limit with CAP_SYS_RESOURCE (default: 16384)");

/* The access flags that have a meaning; others may get one later. */
#define CA_ACCESS							\
	(KVERBS_CA_ACCESS_LOCAL_WRITE | KVERBS_CA_ACCESS_REMOTE_WRITE |	\
	 KVERBS_CA_ACCESS_REMOTE_READ | KVERBS_CA_ACCESS_REMOTE_ATOMIC | \
	 KVERBS_CA_ACCESS_MW_BIND | KVERBS_CA_ACCESS_RELAXED_ORDERING)

/* The paths of a registration have the same numbers as in the verbs. */
static_assert((int)KVERBS_CA_PATH_ANY == (int)IB_MEM_ANY &&
	      (int)KVERBS_CA_PATH_HOST == (int)IB_MEM_HOST &&
	      (int)KVERBS_CA_PATH_PEER == (int)IB_MEM_PEER &&
	      (int)KVERBS_CA_PATH_DMABUF == (int)IB_MEM_DMABUF &&
	      (int)KVERBS_CA_PATH_P2P == (int)IB_MEM_P2P);
static_assert(sizeof_field(struct kverbs_ca_peer, name) ==
	      IB_PEER_MEMORY_NAME_MAX &&
	      sizeof_field(struct kverbs_ca_peer, data) ==
	      IB_PEER_MEMORY_DATA_MAX);

/**
 * struct ca_object - a PD or region
 * @id: its number
 * @type: which of the two
 * @users: regions in this PD
 * @refs: of a PD: one until it is freed here, and one of each borrower
 * @borrowed: what the borrowers hold
 * @in_use: of a PD: regions in it that the driver did not free, because a borrower uses them;
 *	of such a region: link in that list
 * @pd: the PD, or that of the region
 * @mr: the region
 * @parent: the region's PD
 * @mem: what the caller registered, and where it was found; without the name and data that
 *	pointed to the caller's memory
 * @iova: where remote peers see it
 * @access: &enum ib_access_flags
 */
struct ca_object {
	u64 id;
	enum kverbs_ca_object_type type;
	u32 users;
	refcount_t refs;
	struct ib_ca_pd borrowed;
	struct list_head in_use;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ca_object *parent;
	struct ib_mem mem;
	u64 iova;
	u32 access;
};

static struct ca_object *find_object(struct ca_handle *h, u64 id,
				     enum kverbs_ca_object_type type)
{
	struct ca_object *obj;

	lockdep_assert_held(&h->lock);
	obj = ca_number_lookup(&h->objects, id);
	return obj && obj->id == id && obj->type == type ? obj : NULL;
}

/* Reserves a place for an object; lookups do not find it yet. */
static int reserve_slot(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	/* The thread that closes the handle expects no new objects. */
	if (h->closed)
		return -ENOENT;
	if (h->space->user && h->objects.count >= READ_ONCE(ca_max_objects) &&
	    !capable(CAP_SYS_RESOURCE))
		return -EDQUOT;
	return ca_number_reserve(&h->objects, &obj->id);
}

static void release_slot(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	ca_number_release(&h->objects, obj->id);
	if (obj->parent)
		obj->parent->users--;
}

static void count_object(struct ca_handle *h, const struct ca_object *obj,
			 int sign)
{
	lockdep_assert_held(&h->lock);
	if (obj->type == KVERBS_CA_OBJECT_PD) {
		WRITE_ONCE(h->pds, h->pds + sign);
		return;
	}
	WRITE_ONCE(h->mrs, h->mrs + sign);
	WRITE_ONCE(h->bytes, h->bytes + sign * obj->mem.length);
}

/* The object is made: let lookups find it. */
static void publish_object(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	ca_number_publish(&h->objects, obj->id, obj);
	count_object(h, obj, 1);
}

/* The object is to be freed: lookups must not find it any more. */
static void withdraw_object(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	ca_number_withdraw(&h->objects, obj->id);
	count_object(h, obj, -1);
}

static struct ca_object *new_object(enum kverbs_ca_object_type type)
{
	struct ca_object *obj = kzalloc(sizeof(*obj), GFP_KERNEL_ACCOUNT);

	if (!obj)
		return NULL;
	obj->type = type;
	refcount_set(&obj->refs, 1);
	INIT_LIST_HEAD(&obj->in_use);
	return obj;
}

/* Borrowers of a PD count as its users, as its regions do. */
static u32 object_users(const struct ca_object *obj)
{
	return obj->users + refcount_read(&obj->refs) - 1;
}

static void put_pd(struct ca_object *obj)
{
	struct ca_object *mr, *next;

	if (!refcount_dec_and_test(&obj->refs))
		return;
	list_for_each_entry_safe(mr, next, &obj->in_use, in_use) {
		WARN_ON(ib_dereg_mr(mr->mr));
		kfree(mr);
	}
	ib_dealloc_pd(obj->pd);
	kfree(obj);
}

/*
 * Frees a region whose handle is closed. If a borrower of the PD has bound windows to it,
 * it cannot be freed before these; but if the device can revoke it, its access to the memory
 * ends now, and memory of another device is given back. Otherwise both last as long as the region.
 */
static void release_mr(struct ca_object *obj)
{
	if (!ib_dereg_mr(obj->mr)) {
		kfree(obj);
		return;
	}
	if (umem_lock_and_revoke(obj->mr->umem))
		ib_umem_stop_invalidation_notifier(obj->mr->umem);
	list_add(&obj->in_use, &obj->parent->in_use);
}

/*
 * Ends the making of @obj, with the error @ret if it has failed. Else another thread may
 * free @obj at once: the process may have guessed its number.
 */
static int end_making(struct ca_call *call, struct ca_handle *h,
		      struct ca_object *obj, int ret)
{
	mutex_lock(&h->lock);
	if (ret) {
		release_slot(h, obj);
	} else {
		call->object = obj->id;
		publish_object(h, obj);
	}
	mutex_unlock(&h->lock);
	return ret;
}

/* Ends the freeing of @obj, with the error @ret if it still exists. */
static int end_freeing(struct ca_handle *h, struct ca_object *obj, int ret)
{
	mutex_lock(&h->lock);
	if (ret)
		publish_object(h, obj);
	else
		release_slot(h, obj);
	mutex_unlock(&h->lock);
	return ret;
}

/* ALLOC_PD. Errors: -EDQUOT, -ENOMEM, or one of the driver. */
int ca_alloc_pd(struct ca_call *call, struct ca_handle *h)
{
	struct ca_object *obj = new_object(KVERBS_CA_OBJECT_PD);
	int ret;

	if (!obj)
		return -ENOMEM;
	mutex_lock(&h->lock);
	ret = reserve_slot(h, obj);
	mutex_unlock(&h->lock);
	if (ret)
		goto out;
	obj->pd = ib_alloc_pd_without_keys(call->ca->device, h->owner);
	ret = end_making(call, h, obj, PTR_ERR_OR_ZERO(obj->pd));
	if (!ret)
		return 0;
out:
	kfree(obj);
	return ret;
}

/*
 * DEALLOC_PD. Errors: -ENOENT; -EBUSY while there are regions in it, or a ULP has borrowed
 * it.
 */
int ca_dealloc_pd(struct ca_call *call, struct ca_handle *h)
{
	struct ca_object *obj;
	int ret = 0;

	mutex_lock(&h->lock);
	obj = find_object(h, call->object, KVERBS_CA_OBJECT_PD);
	if (!obj)
		ret = -ENOENT;
	else if (object_users(obj))
		ret = -EBUSY;
	else
		withdraw_object(h, obj);
	mutex_unlock(&h->lock);
	if (ret)
		return ret;
	ib_dealloc_pd(obj->pd);
	end_freeing(h, obj, 0);
	kfree(obj);
	return 0;
}

/*
 * Reads a structure of the caller, of the size that it states and that its
 * buffer has. Members that an older caller does not have become zero; those of
 * a newer caller that we do not know must be zero. @min: bytes that each caller
 * has.
 */
static int read_struct(const struct ca_call *call, void *to, u32 min, u32 size)
{
	const struct { u32 version, size; } *head = to;
	const void *from = call->in.kernel;
	u32 known = min(call->in_len, size);

	if (call->in_len < min)
		return -EINVAL;
	memcpy(to, from, known);
	memset(to + known, 0, size - known);
	if (head->version != KVERBS_CA_VERSION || head->size != call->in_len)
		return -EINVAL;
	return memchr_inv(from + known, 0, call->in_len - known) ? -E2BIG : 0;
}

static int check_reg_mr(const struct kverbs_ca_reg_mr *reg)
{
	if (reg->access & ~CA_ACCESS || reg->flags & ~KVERBS_CA_REG_FD ||
	    reg->path > KVERBS_CA_PATH_P2P)
		return -EINVAL;
	if (!(reg->flags & KVERBS_CA_REG_FD) && (reg->fd || reg->offset))
		return -EINVAL;
	return 0;
}

/* @peer: copy of the current setting of whom to ask for memory of peers. */
static int reserve_mr(struct ca_handle *h, struct ca_object *obj, u64 pd,
		      struct kverbs_ca_peer *peer)
{
	struct ca_object *parent;
	int ret;

	mutex_lock(&h->lock);
	parent = find_object(h, pd, KVERBS_CA_OBJECT_PD);
	ret = parent ? reserve_slot(h, obj) : -ENOENT;
	if (!ret) {
		obj->parent = parent;
		obj->pd = parent->pd;
		parent->users++;
		*peer = h->peer;
	}
	mutex_unlock(&h->lock);
	return ret;
}

static int register_mr(struct ca_object *obj, const struct kverbs_ca_reg_mr *reg,
		       const struct kverbs_ca_peer *peer, bool for_process)
{
	struct ib_mem *mem = &obj->mem;
	struct ib_mr *mr;

	*mem = (struct ib_mem) {
		.path = reg->path,
		.start = reg->start,
		.length = reg->length,
		.has_fd = reg->flags & KVERBS_CA_REG_FD,
		.fd = reg->fd,
		.fd_offset = reg->offset,
		.peer_name = *peer->name ? peer->name : NULL,
		.peer_data = *peer->name ? peer->data : NULL,
		.for_process = for_process,
	};
	obj->iova = reg->iova;
	obj->access = reg->access;
	mr = ib_reg_mem(obj->pd, mem, reg->iova, reg->access);
	mem->peer_name = NULL;
	mem->peer_data = NULL;
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	obj->mr = mr;
	return 0;
}

static u32 mr_attr_flags(struct ib_umem *umem)
{
	/* A driver that gets the memory itself pins it. */
	if (!umem)
		return KVERBS_CA_MR_PINNED;
	if (READ_ONCE(umem->revoked))
		return KVERBS_CA_MR_REVOKED;
	return umem->is_peer || umem_moves(umem) ? 0 : KVERBS_CA_MR_PINNED;
}

/* Names the peer client or the provider that the memory belongs to; "" for system memory. */
static void set_provider_name(struct ib_umem *umem, struct kverbs_ca_mr_attr *attr)
{
	const char *name = "";

	if (attr->path == KVERBS_CA_PATH_PEER)
		name = peer_region_client(umem->peer);
	else if (attr->path == KVERBS_CA_PATH_P2P)
		name = umem_p2p_provider(umem);
	strscpy(attr->peer, name, sizeof(attr->peer));
}

/* Describes a region, or why there is none. */
static void describe_mr(const struct ca_object *obj,
			struct kverbs_ca_mr_attr *attr)
{
	const struct ib_mem *mem = &obj->mem;

	*attr = (struct kverbs_ca_mr_attr) {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(*attr),
		.pd = obj->parent->id,
		.start = mem->path == IB_MEM_DMABUF ? 0 : mem->start,
		.length = mem->length,
		.iova = obj->iova,
		.access = obj->access,
		.path = mem->found,
		.host_error = mem->error[IB_MEM_HOST],
		.peer_error = mem->error[IB_MEM_PEER],
		.dmabuf_error = mem->error[IB_MEM_DMABUF],
		.p2p_error = mem->error[IB_MEM_P2P],
	};
	if (!obj->mr)
		return;
	attr->object = obj->id;
	attr->lkey = obj->mr->lkey;
	attr->rkey = obj->mr->rkey;
	attr->flags = mr_attr_flags(obj->mr->umem);
	set_provider_name(obj->mr->umem, attr);
}

/*
 * REG_MR. Errors: -ENOENT for the PD, -EDQUOT, -EINVAL, -E2BIG, those of
 * ib_reg_mem().
 */
int ca_reg_mr(struct ca_call *call, struct ca_handle *h)
{
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_peer peer;
	struct ca_object *obj;
	int ret;

	ret = read_struct(call, &reg, KVERBS_CA_REG_MR_SIZE_MIN, sizeof(reg)) ?
	      : check_reg_mr(&reg);
	if (ret)
		return ret;
	obj = new_object(KVERBS_CA_OBJECT_MR);
	if (!obj)
		return -ENOMEM;
	ret = reserve_mr(h, obj, reg.pd, &peer);
	if (ret)
		goto out;
	ret = register_mr(obj, &reg, &peer, h->space->user);
	if (!sockptr_is_null(call->out))
		describe_mr(obj, &call->mr);
	ret = end_making(call, h, obj, ret);
	if (!ret)
		return 0;
out:
	kfree(obj);
	return ret;
}

static int check_peer(const struct kverbs_ca_peer *peer)
{
	if (strnlen(peer->name, sizeof(peer->name)) == sizeof(peer->name))
		return -EINVAL;
	if (!*peer->name && memchr_inv(peer->data, 0, sizeof(peer->data)))
		return -EINVAL;
	return 0;
}

/* SET_PEER. Errors: -EINVAL, -E2BIG. */
int ca_set_peer(struct ca_call *call, struct ca_handle *h)
{
	struct kverbs_ca_peer peer;
	int ret;

	ret = read_struct(call, &peer, sizeof(peer), sizeof(peer)) ?
	      : check_peer(&peer);
	if (ret)
		return ret;
	mutex_lock(&h->lock);
	h->peer = peer;
	mutex_unlock(&h->lock);
	return 0;
}

/* DEREG_MR. Errors: -ENOENT, or one of the driver: then the region still exists. */
int ca_dereg_mr(struct ca_call *call, struct ca_handle *h)
{
	struct ca_object *obj;
	int ret;

	mutex_lock(&h->lock);
	obj = find_object(h, call->object, KVERBS_CA_OBJECT_MR);
	if (obj)
		withdraw_object(h, obj);
	mutex_unlock(&h->lock);
	if (!obj)
		return -ENOENT;
	ret = end_freeing(h, obj, ib_dereg_mr(obj->mr));
	if (!ret)
		kfree(obj);
	return ret;
}

/* QUERY_MR. Errors: -ENOENT. */
int ca_query_mr(struct ca_call *call, struct ca_handle *h)
{
	struct ca_object *obj;

	mutex_lock(&h->lock);
	obj = find_object(h, call->object, KVERBS_CA_OBJECT_MR);
	if (obj)
		describe_mr(obj, &call->mr);
	mutex_unlock(&h->lock);
	return obj ? 0 : -ENOENT;
}

static void describe_object(const struct ca_object *obj,
			    struct kverbs_ca_object *entry)
{
	*entry = (struct kverbs_ca_object) {
		.object = obj->id,
		.parent = obj->parent ? obj->parent->id : 0,
		.length = obj->mem.length,
		.type = obj->type,
		.users = object_users(obj),
	};
}

static struct kverbs_ca_list *make_object_list(struct ca_handle *h)
{
	struct kverbs_ca_object *entry;
	struct kverbs_ca_list *list;
	struct ca_object *obj;
	unsigned long index;
	size_t size;

	lockdep_assert_held(&h->lock);
	size = size_add(sizeof(*list),
			array_size(h->pds + h->mrs, sizeof(*entry)));
	if (size > U32_MAX)
		return NULL;
	list = kvzalloc(size, GFP_KERNEL_ACCOUNT);
	if (!list)
		return NULL;
	*list = (struct kverbs_ca_list) {
		.version = KVERBS_CA_VERSION,
		.size = size,
		.attr_size = sizeof(*list),
		.entry_offset = sizeof(*list),
		.entry_size = sizeof(*entry),
		.count = h->pds + h->mrs,
	};
	entry = (void *)(list + 1);
	xa_for_each(&h->objects.entries, index, obj)
		describe_object(obj, entry++);
	return list;
}

/* LIST. Errors: -ENOMEM. */
int ca_list(struct ca_call *call, struct ca_handle *h)
{
	mutex_lock(&h->lock);
	call->list = make_object_list(h);
	mutex_unlock(&h->lock);
	return call->list ? 0 : -ENOMEM;
}

static void release_objects(struct ca_handle *h,
			    enum kverbs_ca_object_type type)
{
	struct ca_object *obj;
	unsigned long index;

	xa_for_each(&h->objects.entries, index, obj) {
		if (obj->type != type)
			continue;
		xa_erase(&h->objects.entries, index);
		if (type == KVERBS_CA_OBJECT_PD)
			put_pd(obj);
		else
			release_mr(obj);
	}
}

/*
 * The handle is closed and has no users. Regions first: when they are gone the HCA cannot
 * reach the memory any more.
 */
void ca_objects_release(struct ca_handle *h)
{
	release_objects(h, KVERBS_CA_OBJECT_MR);
	release_objects(h, KVERBS_CA_OBJECT_PD);
}

/* Returns the PD, held, for a ULP that calls at @site. Errors: -ENOENT. */
struct ib_ca_pd *ca_borrow_pd(struct ca_device *ca, struct ca_handle *h, u64 id,
			      unsigned long site)
{
	struct ca_object *obj;

	mutex_lock(&h->lock);
	obj = find_object(h, id, KVERBS_CA_OBJECT_PD);
	if (obj) {
		refcount_inc(&obj->refs);
		obj->borrowed.pd = obj->pd;
		ib_ref_log_get(&ca->borrowed, &obj->borrowed, site);
	}
	mutex_unlock(&h->lock);
	return obj ? &obj->borrowed : ERR_PTR(-ENOENT);
}

/* The PDs that ULPs have borrowed. */
static void borrowed_for_each(struct ib_device *device, u64 until,
			      void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ca_device *ca;

	rcu_read_lock();
	ca = ca_of(device);
	if (ca)
		ib_ref_log_visit(&ca->borrowed, until, visit, context);
	rcu_read_unlock();
}

static void borrowed_forget(struct ib_device *device, const struct module *mod)
{
	struct ca_device *ca;

	rcu_read_lock();
	ca = ca_of(device);
	if (ca)
		ib_ref_log_forget(&ca->borrowed, mod);
	rcu_read_unlock();
}

struct ib_ref_source ca_pd_source = {
	.kind = "borrowed pd",
	.for_each = borrowed_for_each,
	.forget = borrowed_forget,
};

/* Called perhaps long after the device's removal: then there is no log any more. */
static void log_pd_return(struct ib_ca_pd *pd, unsigned long site)
{
	struct ca_device *ca;

	rcu_read_lock();
	ca = ca_of(pd->pd->device);
	if (ca)
		ib_ref_log_put(&ca->borrowed, pd, site);
	rcu_read_unlock();
}

/**
 * ib_ca_pd_put() - give back the PD of a process
 * @pd: from ib_ca_pd_get(); no object of the caller is left in it
 *
 * Context: Process.
 */
void ib_ca_pd_put(struct ib_ca_pd *pd)
{
	log_pd_return(pd, _RET_IP_);
	put_pd(container_of(pd, struct ca_object, borrowed));
}
EXPORT_SYMBOL_GPL(ib_ca_pd_put);
