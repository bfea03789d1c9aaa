// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which objects a device has, and who created them.
 *
 * Lock protocol: each kind has an xarray, whose own lock orders additions and removals. A
 * reader that found an entry under that lock takes a reference unless the count has dropped to
 * zero; rdma_restrack_del() removes the entry, then waits for the readers, and only then
 * may the object be destroyed. No lock is held while waiting. The object's number stays
 * reserved until the object is destroyed: if the driver refuses that, the entry is put back
 * under the same number, which needs no memory.
 *
 * A QP is listed under the number that its driver gave it, by which RDMA netlink looks it up. The
 * driver may reuse that number as soon as its destroy_qp has returned, before the core has
 * released the number: then the new QP gets it.
 *
 * An object that cannot be listed for lack of memory works all the same; it
 * merely does not appear in debugfs.
 *
 * An object of a process has the process's name, and holds a reference on its task until it has
 * been destroyed: if the destruction fails, it is listed with the task again.
 */
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <kverbs/upper.h>

#include "contract.h"
#include "device_priv.h"
#include "export.h"
#include "registry.h"
#include "trace.h"

IB_CHECK_RESTRACK_LAYOUT(next);

/* Keeps numbers readable; they are not reused until they have reached the limit. */
#define RESTRACK_LIMIT	XA_LIMIT(1, INT_MAX)

/* The number of a QP for management has the port in these bits: each port has QPs 0 and 1. */
#define QP_PORT_SHIFT	24
/* Numbers that no QP has: those of port 1, but for its QPs 0 and 1. */
#define NO_QP_LIMIT	XA_LIMIT(BIT(QP_PORT_SHIFT) + 2, BIT(QP_PORT_SHIFT) + IB_QPN_MASK)

static const char * const restrack_kinds[RDMA_RESTRACK_MAX] = {
	[RDMA_RESTRACK_PD]	= "pd",
	[RDMA_RESTRACK_CQ]	= "cq",
	[RDMA_RESTRACK_QP]	= "qp",
	[RDMA_RESTRACK_CM_ID]	= "cm_id",
	[RDMA_RESTRACK_MR]	= "mr",
	[RDMA_RESTRACK_CTX]	= "ctx",
	[RDMA_RESTRACK_COUNTER]	= "counter",
	[RDMA_RESTRACK_SRQ]	= "srq",
	[RDMA_RESTRACK_MW]	= "mw",
	[RDMA_RESTRACK_FMR]	= "fmr",
};

const char *rdma_restrack_kind(enum rdma_restrack_type type)
{
	return type < RDMA_RESTRACK_MAX ? restrack_kinds[type] : "?";
}

void rdma_restrack_init(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	unsigned int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		xa_init_flags(&priv->res[i].xa, XA_FLAGS_ALLOC);
	dev->res = priv->res;
}

static void restrack_report_leaked(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	unsigned long site = READ_ONCE(res->site);

	ibdev_err(dev, "%s leaked %s %u\n", res->kern_name, rdma_restrack_kind(res->type),
		  res->id);
	/* A CQ of the pool belongs to the owners of its QPs, which are reported. */
	if (!ib_contract_is_ours(site))
		ib_contract_report(IB_RULE_LEFT, dev, res, site, site, 1,
				   "left when the device was freed");
}

/*
 * Reports the objects that are left on a device which is being freed, and their makers. Returns
 * false if there are any; then the lists stay as they are, for callers that still use or destroy
 * the objects.
 */
bool rdma_restrack_clean(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	struct rdma_restrack_entry *res;
	bool clean = true;
	unsigned long id;
	unsigned int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++) {
		clean &= xa_empty(&priv->res[i].xa);
		/* With references, because the owners may be destroying the objects right now. */
		for (id = 0; (res = rdma_restrack_next(dev, i, &id)); id++) {
			restrack_report_leaked(dev, res);
			rdma_restrack_put(res);
		}
	}
	/* While the contract checker is on, its report takes the place of this warning. */
	WARN_ONCE(!clean && !ib_contract_on(), "%s: device freed before its objects\n",
		  dev_name(&dev->dev));
	return clean;
}

struct ib_device *rdma_restrack_dev(const struct rdma_restrack_entry *res)
{
	switch (res->type) {
	case RDMA_RESTRACK_PD:
		return container_of(res, struct ib_pd, res)->device;
	case RDMA_RESTRACK_CQ:
		return container_of(res, struct ib_cq, res)->device;
	case RDMA_RESTRACK_QP:
		return container_of(res, struct ib_qp, res)->device;
	case RDMA_RESTRACK_MR:
		return container_of(res, struct ib_mr, res)->device;
	case RDMA_RESTRACK_CTX:
		return container_of(res, struct ib_ucontext, res)->device;
	case RDMA_RESTRACK_SRQ:
		return container_of(res, struct ib_srq, res)->device;
	case RDMA_RESTRACK_MW:
		return container_of(res, struct ib_mw, res)->device;
	case RDMA_RESTRACK_FMR:
		return container_of(res, struct ib_fmr, res)->device;
	default:
		WARN_ONCE(1, "cannot track objects of type %u\n", res->type);
		return NULL;
	}
}

/**
 * rdma_restrack_new() - start tracking an object that is being made
 * @res: the object's tracking entry
 * @type: kind of the object
 *
 * Context: Any.
 */
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type)
{
	kref_init(&res->kref);
	init_completion(&res->comp);
	res->type = type;
	res->id = 0;
	res->valid = false;
	res->user = false;
	res->task = NULL;
	res->abandon = NULL;
}

/**
 * rdma_restrack_set_maker() - record the maker of an object
 * @res: the object's tracking entry
 * @caller: KBUILD_MODNAME of the maker, which is copied; or %NULL
 * @site: where the maker called from
 *
 * The name of a process may be anything, but people and programs read this one in lines of fields,
 * and on terminals: what could be taken for something else becomes an underscore.
 *
 * Context: Any.
 */
void rdma_restrack_set_maker(struct rdma_restrack_entry *res,
			     const char *caller, unsigned long site)
{
	char *c;

	res->site = site;
	res->kern_name = NULL;
	if (!caller)
		return;
	strscpy(res->maker, caller, sizeof(res->maker));
	for (c = res->maker; *c; c++)
		if (!isascii(*c) || !isgraph(*c) || *c == '=')
			*c = '_';
	res->kern_name = res->maker;
}

/**
 * ib_track_set_maker() - record the module that makes an object
 * @res: the object's tracking entry
 * @caller: its KBUILD_MODNAME, which is copied
 * @site: where it called from
 *
 * Context: Any.
 */
void ib_track_set_maker(struct rdma_restrack_entry *res, const char *caller, unsigned long site)
{
	rdma_restrack_set_maker(res, caller, site);
}
IB_EXPORT_INTERNAL(ib_track_set_maker);

static void put_task(struct task_struct *task)
{
	if (task)
		put_task_struct(task);
}

/**
 * ib_track_set_user() - record the process that an object is made for
 * @res: the object's tracking entry
 * @task: a thread of the process
 * @site: where the maker called from
 *
 * The object is named after the process.
 *
 * Context: Any.
 */
void ib_track_set_user(struct rdma_restrack_entry *res, struct task_struct *task,
		       unsigned long site)
{
	rdma_restrack_set_maker(res, task->comm, site);
	get_task_struct(task);
	put_task(res->task);
	res->task = task;
	res->user = true;
}
IB_EXPORT_INTERNAL(ib_track_set_user);

/**
 * ib_track_drop_user() - drop the task of an object that is not listed
 * @res: the object's tracking entry
 *
 * Context: Any.
 */
void ib_track_drop_user(struct rdma_restrack_entry *res)
{
	put_task(res->task);
	res->task = NULL;
}
IB_EXPORT_INTERNAL(ib_track_drop_user);

/**
 * ib_track_new() - start tracking an object that is made for a process, but not by the core
 * @res: the object's tracking entry
 * @type: kind of the object; for a CQ see ib_cq_adopt()
 *
 * The caller lists it by ib_track_add(), or gives it up by rdma_restrack_put().
 *
 * Context: Any.
 */
void ib_track_new(struct rdma_restrack_entry *res, enum rdma_restrack_type type)
{
	rdma_restrack_new(res, type);
	res->abandon = ib_track_drop_user;
}
IB_EXPORT_INTERNAL(ib_track_new);

static u32 restrack_qp_id(const struct ib_qp *qp)
{
	bool management = qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI;

	return management ? qp->qp_num | qp->port << QP_PORT_SHIFT : qp->qp_num;
}

/*
 * Lists a QP under its number. If the driver gave it none, or that of another QP, which is a bug,
 * the QP is listed under a number that no QP has: it cannot be looked up, but is reported if it is
 * left on the device. Returns 0 or an errno.
 */
static int restrack_list_qp(struct rdma_restrack_root *root, struct rdma_restrack_entry *res)
{
	const struct ib_qp *qp = container_of(res, struct ib_qp, res);
	int ret = -EBUSY;

	res->id = restrack_qp_id(qp);
	while (res->id && ret == -EBUSY && !xa_load(&root->xa, res->id)) {
		/* Frees the number if it is still that of a QP which the driver has destroyed. */
		xa_release(&root->xa, res->id);
		ret = xa_insert(&root->xa, res->id, res, GFP_KERNEL);
	}
	if (ret == -EBUSY)
		ret = xa_alloc_cyclic(&root->xa, &res->id, res, NO_QP_LIMIT, &root->next,
				      GFP_KERNEL);
	return min(ret, 0);
}

static void restrack_list_object(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	struct rdma_restrack_root *root = &ib_priv(dev)->res[res->type];
	int ret;

	res->abandon = NULL;
	if (res->type == RDMA_RESTRACK_QP)
		ret = restrack_list_qp(root, res);
	else
		ret = xa_alloc_cyclic(&root->xa, &res->id, res, RESTRACK_LIMIT, &root->next,
				      GFP_KERNEL);
	res->valid = ret >= 0;
	if (!res->valid)
		res->id = 0;
	trace_ib_object_create(dev, res);
}

/**
 * rdma_restrack_add() - list an object, as the last step of making it
 * @res: the object's tracking entry
 *
 * Context: Process.
 */
void rdma_restrack_add(struct rdma_restrack_entry *res)
{
	struct ib_device *dev = rdma_restrack_dev(res);

	if (dev && !res->no_track)
		restrack_list_object(dev, res);
}

/* Removes an object from its list, and waits for readers. The object's number stays reserved. */
static struct ib_tracked restrack_unlist_object(struct ib_device *dev,
						struct rdma_restrack_entry *res)
{
	struct ib_tracked tracked = { .task = res->task };

	trace_ib_object_destroy(dev, res);
	if (!res->valid)
		return tracked;
	/* NULL in an allocating xarray: the index stays taken, and needs no memory. */
	xa_store(&ib_priv(dev)->res[res->type].xa, res->id, NULL, GFP_NOWAIT);
	res->valid = false;
	rdma_restrack_put(res);
	while (!wait_for_completion_timeout(&res->comp, ib_wait_warn_timeout()))
		ibdev_warn(dev, "destroying %s %u of %s: waiting for a lookup of it to end with rdma_restrack_put()\n",
			   rdma_restrack_kind(res->type), res->id, res->kern_name);
	tracked.id = res->id;
	return tracked;
}

/**
 * rdma_restrack_del() - take an object off the list, as the first step of destroying it
 * @res: the object's tracking entry
 *
 * Returns when all readers that found the object in the lists are done with it. The caller must
 * call rdma_restrack_readd() or rdma_restrack_forget() next.
 *
 * Context: Process, may sleep.
 * Return: the argument for rdma_restrack_forget().
 */
struct ib_tracked rdma_restrack_del(struct rdma_restrack_entry *res)
{
	struct ib_device *dev = rdma_restrack_dev(res);

	return dev && !res->no_track ? restrack_unlist_object(dev, res) :
				       (struct ib_tracked){ .task = res->task };
}

/**
 * rdma_restrack_readd() - list again an object that could not be destroyed
 * @res: the object's tracking entry, after rdma_restrack_del()
 *
 * It has the number that it had before.
 *
 * Context: Process.
 */
void rdma_restrack_readd(struct rdma_restrack_entry *res)
{
	struct ib_device *dev = rdma_restrack_dev(res);

	if (!dev || res->no_track)
		return;
	if (res->id) {
		kref_init(&res->kref);
		init_completion(&res->comp);
		res->valid = !WARN_ON(xa_is_err(xa_store(&ib_priv(dev)->res[res->type].xa, res->id,
							 res, GFP_NOWAIT)));
	}
	trace_ib_object_create(dev, res);
}

/**
 * rdma_restrack_forget() - free the number and the task of an object that was destroyed
 * @dev: the device
 * @type: kind of the object
 * @tracked: as returned by rdma_restrack_del(): its number, and its process
 *
 * Context: Any.
 */
void rdma_restrack_forget(struct ib_device *dev, enum rdma_restrack_type type,
			  struct ib_tracked tracked)
{
	/* Does nothing if it is another object's by now. */
	if (tracked.id)
		xa_release(&ib_priv(dev)->res[type].xa, tracked.id);
	put_task(tracked.task);
}

/**
 * ib_track_add() - list an object that the core has not made, such as a CM ID
 * @dev: the device that it belongs to, registered
 * @res: its tracking entry, with its kind and its maker's name, if any, and with one reference
 *
 * As with the core's own objects, it is reported with its maker if it is still there when
 * the device is freed. Without memory it is not listed, and works all the same.
 *
 * Context: Process.
 */
void ib_track_add(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	if (!res->no_track)
		restrack_list_object(dev, res);
}
IB_EXPORT_INTERNAL(ib_track_add);

/**
 * ib_track_del() - take an object off the list before it is freed
 * @dev: as for ib_track_add()
 * @res: its tracking entry
 *
 * Returns when all readers that found the object in the list are done with it. Puts the reference
 * of the list, if the object is listed, and the object's reference on its process.
 *
 * Context: Process, may sleep.
 */
void ib_track_del(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	rdma_restrack_forget(dev, res->type, restrack_unlist_object(dev, res));
	res->task = NULL;
}
IB_EXPORT_INTERNAL(ib_track_del);

/**
 * ib_track_sync() - wait for readers of an object
 * @dev: as for ib_track_add()
 * @res: its tracking entry
 *
 * Later readers see the object as it is when this is called, or newer.
 *
 * Context: Process, may sleep.
 */
void ib_track_sync(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	if (!res->valid)
		return;
	restrack_unlist_object(dev, res);
	rdma_restrack_readd(res);
}
IB_EXPORT_INTERNAL(ib_track_sync);

/**
 * rdma_restrack_get() - take a reference on an object, to read it
 * @res: the object's tracking entry, found under the lock of its list, which is held
 *
 * Context: Any.
 * Return: 1 if the object is held, 0 if it is being destroyed.
 */
int rdma_restrack_get(struct rdma_restrack_entry *res)
{
	return kref_get_unless_zero(&res->kref);
}
EXPORT_SYMBOL(rdma_restrack_get);

static void restrack_release(struct kref *kref)
{
	struct rdma_restrack_entry *res =
		container_of(kref, struct rdma_restrack_entry, kref);

	if (res->abandon)
		res->abandon(res);
	complete(&res->comp);
}

/**
 * rdma_restrack_put() - drop a reference on an object
 * @res: the object's tracking entry
 *
 * Context: Any; process, may sleep, for an object that was being made, and failed.
 * Return: 1 if this was the last reference, else 0.
 */
int rdma_restrack_put(struct rdma_restrack_entry *res)
{
	return kref_put(&res->kref, restrack_release);
}
EXPORT_SYMBOL(rdma_restrack_put);

/**
 * rdma_restrack_next() - walk through the objects of a kind
 * @dev: the device
 * @type: kind of objects
 * @id: number to start from; updated to that of the entry found
 *
 * Context: Process.
 * Return: an entry with a reference for the caller, or %NULL after the last.
 */
struct rdma_restrack_entry *
rdma_restrack_next(struct ib_device *dev, enum rdma_restrack_type type,
		   unsigned long *id)
{
	struct xarray *xa = &ib_priv(dev)->res[type].xa;
	struct rdma_restrack_entry *res;

	/*
	 * The xarray's lock keeps the object alive until the reference is taken, because
	 * rdma_restrack_del() needs the lock to remove the object.
	 */
	xa_lock(xa);
	res = xa_find(xa, id, ULONG_MAX, XA_PRESENT);
	while (res && !rdma_restrack_get(res))
		res = xa_find_after(xa, id, ULONG_MAX, XA_PRESENT);
	xa_unlock(xa);
	return res;
}

/**
 * rdma_restrack_get_byid() - find an object by its number
 * @dev: the device, registered
 * @type: kind of the object
 * @id: its number
 *
 * Context: Process. The object is not destroyed until rdma_restrack_put().
 * Return: the entry, or an ERR_PTR: -ENOENT if no such object is listed, or is
 * being destroyed.
 */
struct rdma_restrack_entry *
rdma_restrack_get_byid(struct ib_device *dev, enum rdma_restrack_type type, u32 id)
{
	struct xarray *xa = &ib_priv(dev)->res[type].xa;
	struct rdma_restrack_entry *res;

	/* As in rdma_restrack_next(). */
	xa_lock(xa);
	res = xa_load(xa, id);
	if (!res || !rdma_restrack_get(res))
		res = ERR_PTR(-ENOENT);
	xa_unlock(xa);
	return res;
}
EXPORT_SYMBOL(rdma_restrack_get_byid);

/**
 * rdma_restrack_count() - number of listed objects of a kind
 * @dev: the device
 * @type: kind of objects
 *
 * Context: Any.
 * Return: the number, which may be out of date when the caller sees it.
 */
int rdma_restrack_count(struct ib_device *dev, enum rdma_restrack_type type)
{
	struct xarray *xa = &ib_priv(dev)->res[type].xa;
	struct rdma_restrack_entry *res;
	unsigned long id;
	int nr = 0;

	rcu_read_lock();
	xa_for_each(xa, id, res)
		nr++;
	rcu_read_unlock();
	return nr;
}

/**
 * rdma_restrack_lists() - whether an object still exists
 * @dev: its device
 * @type: its kind
 * @res: its tracking entry, of which only the address is used
 *
 * Context: Any, under rcu_read_lock(), which keeps the memory of what is listed.
 * Return: whether it is listed.
 */
bool rdma_restrack_lists(struct ib_device *dev, enum rdma_restrack_type type,
			 const struct rdma_restrack_entry *res)
{
	struct rdma_restrack_entry *listed;
	unsigned long id;

	xa_for_each(&ib_priv(dev)->res[type].xa, id, listed) {
		if (listed == res)
			return true;
	}
	return false;
}

/**
 * ib_object_unused() - check that an object may be destroyed
 * @dev: its device
 * @res: its tracking entry
 * @usecnt: number of its users
 * @site: call site that wants to destroy it; 0 for the midlayer itself
 *
 * Context: Any.
 * Return: 0, or -EBUSY, with a warning that names the maker of the object unless that is a
 * process.
 */
int ib_object_unused(struct ib_device *dev,
		     const struct rdma_restrack_entry *res,
		     const atomic_t *usecnt, unsigned long site)
{
	int users = atomic_read(usecnt);

	if (!users)
		return 0;
	/* A process may try that, which is no bug of the kernel: no warning. */
	if (res->user)
		return -EBUSY;
	ibdev_warn(dev, "cannot destroy %s %u of %s: in use (users: %d)\n",
		   rdma_restrack_kind(res->type), res->id, res->kern_name, users);
	if (site)
		ib_contract_report(IB_RULE_BUSY, dev, res, ib_contract_culprit(site), site,
				   users, "destroyed while in use (users: %d)", users);
	return -EBUSY;
}
