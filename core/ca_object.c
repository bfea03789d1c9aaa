// SPDX-License-Identifier: GPL-2.0-only
/*
 * PDs and regions under the handle of an open channel adapter.
 *
 * An object's number has, as a handle has, a place in its low half and the
 * number of its making in the high half. An object that is being made or freed
 * has its place, and counts, but is not found; its maker or the one who frees it
 * has it alone meanwhile. A region counts as a user of its PD from before it is
 * made until after it is freed.
 *
 * Lock protocol: the handle's lock, a mutex, guards the objects and all counts.
 * It is not held while a driver's method runs or memory is pinned: requests that
 * take long do not hold up others of the same handle.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "ca.h"
#include "core_priv.h"
#include "verbs.h"

static unsigned int ca_max_objects = 16384;
module_param(ca_max_objects, uint, 0644);
MODULE_PARM_DESC(ca_max_objects,
		 "objects that a process may have under one handle, but for CAP_SYS_RESOURCE");

/* Others may get a meaning. */
#define CA_ACCESS							\
	(KVERBS_CA_ACCESS_LOCAL_WRITE | KVERBS_CA_ACCESS_REMOTE_WRITE |	\
	 KVERBS_CA_ACCESS_REMOTE_READ | KVERBS_CA_ACCESS_REMOTE_ATOMIC | \
	 KVERBS_CA_ACCESS_MW_BIND | KVERBS_CA_ACCESS_RELAXED_ORDERING)

/**
 * struct ca_object - a PD or region
 * @id: its number
 * @type: which of the two
 * @users: regions in this PD
 * @pd: PD, or that of the region
 * @mr: region
 * @parent: the region's PD
 * @start: what the caller registered
 * @length: bytes of it
 * @iova: where peers see it
 * @access: &enum ib_access_flags
 * @path: how it got to the HCA
 */
struct ca_object {
	u64 id;
	enum kverbs_ca_object_type type;
	u32 users;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ca_object *parent;
	u64 start;
	u64 length;
	u64 iova;
	u32 access;
	u32 path;
};

static struct ca_object *find_object(struct ca_handle *h, u64 id,
				     enum kverbs_ca_object_type type)
{
	struct ca_object *obj;

	lockdep_assert_held(&h->lock);
	obj = xa_load(&h->objects, lower_32_bits(id));
	return obj && obj->id == id && obj->type == type ? obj : NULL;
}

/* A place for an object, which is not found there yet. */
static int reserve_place(struct ca_handle *h, struct ca_object *obj)
{
	u32 index;
	int ret;

	lockdep_assert_held(&h->lock);
	/* Whoever closes it counts on what it saw. */
	if (h->closed)
		return -ENOENT;
	if (h->space->user && h->count >= READ_ONCE(ca_max_objects) &&
	    !capable(CAP_SYS_RESOURCE))
		return -EDQUOT;
	ret = xa_alloc_cyclic(&h->objects, &index, XA_ZERO_ENTRY, xa_limit_31b,
			      &h->next, GFP_KERNEL);
	if (ret < 0)
		return ret;
	h->count++;
	h->sequence++;
	obj->id = (u64)h->sequence << 32 | index;
	return 0;
}

static void give_up_place(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	xa_erase(&h->objects, lower_32_bits(obj->id));
	h->count--;
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
	WRITE_ONCE(h->bytes, h->bytes + sign * obj->length);
}

/* It is made: others find it. No memory is needed, the place is there. */
static void publish_object(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	xa_store(&h->objects, lower_32_bits(obj->id), obj, GFP_KERNEL);
	count_object(h, obj, 1);
}

/* It is to be freed: nobody finds it any more. */
static void withdraw_object(struct ca_handle *h, struct ca_object *obj)
{
	lockdep_assert_held(&h->lock);
	xa_store(&h->objects, lower_32_bits(obj->id), XA_ZERO_ENTRY,
		 GFP_KERNEL);
	count_object(h, obj, -1);
}

static struct ca_object *new_object(enum kverbs_ca_object_type type)
{
	struct ca_object *obj = kzalloc(sizeof(*obj), GFP_KERNEL_ACCOUNT);

	if (obj)
		obj->type = type;
	return obj;
}

/*
 * Gives up what the making of @obj has come to; @ret if it has come to nothing. Else
 * @obj is another's to free, who may have guessed its number.
 */
static int end_making(struct ca_call *call, struct ca_handle *h,
		      struct ca_object *obj, int ret)
{
	mutex_lock(&h->lock);
	if (ret) {
		give_up_place(h, obj);
	} else {
		call->object = obj->id;
		publish_object(h, obj);
	}
	mutex_unlock(&h->lock);
	return ret;
}

/* Likewise of its freeing: @ret if it is still there. */
static int end_freeing(struct ca_handle *h, struct ca_object *obj, int ret)
{
	mutex_lock(&h->lock);
	if (ret)
		publish_object(h, obj);
	else
		give_up_place(h, obj);
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
	ret = reserve_place(h, obj);
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

/* DEALLOC_PD. Errors: -ENOENT; -EBUSY while there are regions in it. */
int ca_dealloc_pd(struct ca_call *call, struct ca_handle *h)
{
	struct ca_object *obj;
	int ret = 0;

	mutex_lock(&h->lock);
	obj = find_object(h, call->object, KVERBS_CA_OBJECT_PD);
	if (!obj)
		ret = -ENOENT;
	else if (obj->users)
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
 * A structure of the caller's, of the size that it states and that its buffer
 * has. What a caller has not who knows less of it is zero; what one has whom we
 * do not know must be. @min: bytes of it that each caller knows.
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

static int check_reg(const struct kverbs_ca_reg_mr *reg)
{
	if (reg->access & ~CA_ACCESS)
		return -EINVAL;
	switch (reg->path) {
	case KVERBS_CA_PATH_ANY:
	case KVERBS_CA_PATH_HOST:
		return 0;
	default:
		return -EINVAL;
	}
}

static int begin_reg(struct ca_handle *h, struct ca_object *obj, u64 pd)
{
	struct ca_object *parent;
	int ret;

	mutex_lock(&h->lock);
	parent = find_object(h, pd, KVERBS_CA_OBJECT_PD);
	ret = parent ? reserve_place(h, obj) : -ENOENT;
	if (!ret) {
		obj->parent = parent;
		obj->pd = parent->pd;
		parent->users++;
	}
	mutex_unlock(&h->lock);
	return ret;
}

static int make_region(struct ca_object *obj, const struct kverbs_ca_reg_mr *reg)
{
	struct ib_mr *mr;

	mr = ib_reg_user_mr(obj->pd, reg->start, reg->length, reg->iova,
			    reg->access);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	obj->mr = mr;
	obj->start = reg->start;
	obj->length = reg->length;
	obj->iova = reg->iova;
	obj->access = reg->access;
	obj->path = KVERBS_CA_PATH_HOST;
	return 0;
}

static void describe_region(const struct ca_object *obj,
			    struct kverbs_ca_mr_attr *attr)
{
	*attr = (struct kverbs_ca_mr_attr) {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(*attr),
		.object = obj->id,
		.pd = obj->parent->id,
		.start = obj->start,
		.length = obj->length,
		.iova = obj->iova,
		.access = obj->access,
		.path = obj->path,
		.lkey = obj->mr->lkey,
		.rkey = obj->mr->rkey,
	};
}

/*
 * REG_MR. Errors: -ENOENT for the PD, -EDQUOT, -EINVAL, -E2BIG, those of
 * ib_reg_user_mr().
 */
int ca_reg_mr(struct ca_call *call, struct ca_handle *h)
{
	struct kverbs_ca_reg_mr reg;
	struct ca_object *obj;
	int ret;

	ret = read_struct(call, &reg, KVERBS_CA_REG_MR_SIZE_MIN, sizeof(reg)) ?
	      : check_reg(&reg);
	if (ret)
		return ret;
	obj = new_object(KVERBS_CA_OBJECT_MR);
	if (!obj)
		return -ENOMEM;
	ret = begin_reg(h, obj, reg.pd);
	if (ret)
		goto out;
	ret = make_region(obj, &reg);
	if (!ret && !sockptr_is_null(call->out))
		describe_region(obj, &call->mr);
	ret = end_making(call, h, obj, ret);
	if (!ret)
		return 0;
out:
	kfree(obj);
	return ret;
}

/* DEREG_MR. Errors: -ENOENT, or one of the driver: the region is still there. */
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
		describe_region(obj, &call->mr);
	mutex_unlock(&h->lock);
	return obj ? 0 : -ENOENT;
}

static void describe_object(const struct ca_object *obj,
			    struct kverbs_ca_object *entry)
{
	*entry = (struct kverbs_ca_object) {
		.object = obj->id,
		.parent = obj->parent ? obj->parent->id : 0,
		.length = obj->length,
		.type = obj->type,
		.users = obj->users,
	};
}

static struct kverbs_ca_list *make_list(struct ca_handle *h)
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
	xa_for_each(&h->objects, index, obj)
		describe_object(obj, entry++);
	return list;
}

/* LIST. Errors: -ENOMEM. */
int ca_list(struct ca_call *call, struct ca_handle *h)
{
	mutex_lock(&h->lock);
	call->list = make_list(h);
	mutex_unlock(&h->lock);
	return call->list ? 0 : -ENOMEM;
}

static void release_objects(struct ca_handle *h,
			    enum kverbs_ca_object_type type)
{
	struct ca_object *obj;
	unsigned long index;

	xa_for_each(&h->objects, index, obj) {
		if (obj->type != type)
			continue;
		if (type == KVERBS_CA_OBJECT_PD)
			ib_dealloc_pd(obj->pd);
		else
			WARN_ON(ib_dereg_mr(obj->mr));
		xa_erase(&h->objects, index);
		kfree(obj);
	}
}

/*
 * The handle is closed and nobody uses it. Regions first: when they are gone the
 * HCA no longer reaches the memory.
 */
void ca_objects_release(struct ca_handle *h)
{
	release_objects(h, KVERBS_CA_OBJECT_MR);
	release_objects(h, KVERBS_CA_OBJECT_PD);
}
