// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open channel adapters.
 *
 * A handle is valid in one space: a file, or the device's kernel callers. Its low half is a
 * place in the space's xarray, its high half counts the openings: so a closed handle is not
 * taken for the one which has its place now. Only the process that opened a handle may use
 * it, unless it was opened for all that have the file. The handle belongs to the process's
 * memory, which a forked child does not share, nor the process itself after exec. When the
 * memory goes, its handles are closed, even if other processes still have the file.
 *
 * Lock protocol: lookups are under RCU. A thread that uses a handle holds one of its
 * @users; the thread that sets @closed, under the handle's lock, closes the handle, and no
 * other does. It takes the handle out of the xarray and waits for the other users; after
 * that no other thread can reach it. The space's lock, a mutex, guards the numbers; the
 * handle's lock its objects (object.c); the lock of a ca_mm, a spinlock, its list. None
 * is held while a driver's method runs, nor while waiting. Threads that close handles
 * without a request, at the end of the file or of the memory, are counted (device.c), and the
 * device's end waits for them. A handle holds its file.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/ctype.h>
#include <linux/mmu_notifier.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "../contract/contract.h"
#include "../contract/registry.h"
#include "ca.h"

static unsigned int ca_max_handles = 64;
module_param(ca_max_handles, uint, 0644);
MODULE_PARM_DESC(ca_max_handles,
		 "Max channel adapters open at once through one file; no limit with CAP_SYS_RESOURCE (default: 64)");

/* The limit for all users together is this many times that for one user. */
#define CA_READERS_SHARE	8

static unsigned int ca_max_readers = 64;
module_param(ca_max_readers, uint, 0644);
MODULE_PARM_DESC(ca_max_readers,
		 "Max open handles per HCA and user through files opened without write permission; all users together may have eight times as many; no limit with CAP_SYS_RESOURCE (default: 64)");

/**
 * struct ca_mm - a process's memory, which owns handles
 * @notifier: one for all its handles; each handle holds a reference
 * @lock: guards @handles
 * @handles: its handles in all files
 */
struct ca_mm {
	struct mmu_notifier notifier;
	spinlock_t lock;
	struct list_head handles;
};

void ca_space_init(struct ca_space *space, bool user)
{
	ca_numbers_init(&space->handles);
	mutex_init(&space->lock);
	space->user = user;
}

static struct ca_file *space_to_file(struct ca_space *space)
{
	return container_of(space, struct ca_file, space);
}

/* Under RCU. */
struct ca_handle *ca_handle_find(struct ca_space *space, u64 id)
{
	struct ca_handle *h = ca_number_lookup(&space->handles, id);

	return h && h->id == id ? h : NULL;
}

/* Under RCU. -ENOENT, also of one that is being closed; -EACCES if it is another process's. */
static struct ca_handle *find_handle(struct ca_space *space, u64 id)
{
	struct ca_handle *h = ca_handle_find(space, id);

	if (!h)
		return ERR_PTR(-ENOENT);
	if (!h->mm || h->mm == current->mm)
		return h;
	return ERR_PTR(READ_ONCE(h->closed) ? -ENOENT : -EACCES);
}

/*
 * Checks that the handle is valid for the caller, for requests that do not use the handle
 * otherwise. Any context.
 */
int ca_handle_check(struct ca_space *space, u64 id)
{
	int ret;

	rcu_read_lock();
	ret = PTR_ERR_OR_ZERO(find_handle(space, id));
	rcu_read_unlock();
	return ret;
}

/* Returns the handle, with one of its users taken, or an error of find_handle(). */
struct ca_handle *ca_handle_get(struct ca_space *space, u64 id)
{
	struct ca_handle *h;

	rcu_read_lock();
	h = find_handle(space, id);
	if (!IS_ERR(h) && !refcount_inc_not_zero(&h->users))
		h = ERR_PTR(-ENOENT);
	rcu_read_unlock();
	return h;
}

void ca_handle_put(struct ca_handle *h)
{
	if (refcount_dec_and_test(&h->users))
		complete(&h->unused);
}

static atomic_t nr_mms;

/* For closing the handles of processes that have ended. */
static struct workqueue_struct *ca_close_wq;

static void ca_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm);

static struct mmu_notifier *ca_mm_alloc(struct mm_struct *mm)
{
	struct ca_mm *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&nr_mms);
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->handles);
	return &m->notifier;
}

static void ca_mm_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct ca_mm, notifier));
	if (atomic_dec_and_test(&nr_mms))
		wake_up_var(&nr_mms);
}

static const struct mmu_notifier_ops mm_ops = {
	.release = ca_mm_release,
	.alloc_notifier = ca_mm_alloc,
	.free_notifier = ca_mm_free,
};

/*
 * Called before anything is held for the call: it waits for mmap_lock, which the process
 * may hold for as long as it likes. If the result is not given to a handle, the caller must
 * call ca_mm_put(). Errors: -ENOMEM; -ERESTARTNOINTR for a signal; -EINTR.
 */
int ca_mm_get(struct ca_call *call)
{
	struct mmu_notifier *notifier;

	if (!call->space->user || call->flags & KVERBS_CA_SHARED)
		return 0;
	notifier = mmu_notifier_get(&mm_ops, current->mm);
	if (!IS_ERR(notifier)) {
		call->of = container_of(notifier, struct ca_mm, notifier);
		return 0;
	}
	/*
	 * The registration gives up for any signal, and nothing was done yet: restart the
	 * call.
	 */
	if (PTR_ERR(notifier) == -EINTR && !fatal_signal_pending(current))
		return -ERESTARTNOINTR;
	return PTR_ERR(notifier);
}

void ca_mm_put(struct ca_mm *m)
{
	if (m)
		mmu_notifier_put(&m->notifier);
}

static void bind_to_mm(struct ca_handle *h, struct ca_call *call)
{
	h->mm = current->mm;
	h->of = call->of;
	call->of = NULL;
	spin_lock(&h->of->lock);
	list_add_tail(&h->of_mm, &h->of->handles);
	spin_unlock(&h->of->lock);
}

/* A process's name may be any bytes: the owner is shown as one word of printable ASCII. */
static void set_owner_name(struct ca_handle *h)
{
	char comm[TASK_COMM_LEN], *c;

	get_task_comm(comm, current->group_leader);
	for (c = comm; *c; c++)
		if (!isascii(*c) || !isgraph(*c))
			*c = '_';
	strscpy(h->owner, comm, sizeof(h->owner));
}

/* Records the owner of the handle. Runs in the process itself, or in its io_uring worker. */
static void set_owner(struct ca_handle *h, struct ca_call *call)
{
	if (!call->space->user) {
		strscpy(h->owner, call->owner, sizeof(h->owner));
		return;
	}
	set_owner_name(h);
	h->pid = get_pid(task_tgid(current));
	kref_get(&space_to_file(call->space)->ref);
	if (call->of)
		bind_to_mm(h, call);
}

/*
 * The user on whose account the caller opens a channel adapter. Who makes a user namespace has
 * other numbers in it, too, perhaps thousands: there it is the user who has made it, unless that
 * was root, who makes namespaces for others.
 */
static kuid_t reader_uid(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_euid();

	for (; ns->parent; ns = ns->parent) {
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	}
	return uid;
}

/*
 * A handle uses resources of the device even if its file was opened for reading only. Such
 * handles are counted by user, so that users without write permission cannot exhaust the
 * device. Returns 0, -EMFILE or -ENOMEM.
 */
static int count_reader(struct ca_handle *h, const struct ca_call *call)
{
	unsigned long uid = from_kuid(&init_user_ns, reader_uid());
	struct ca_device *ca = call->ca;
	unsigned long count, limit;
	int ret;

	if (call->writable)
		return 0;
	mutex_lock(&ca->files_lock);
	count = xa_to_value(xa_load(&ca->readers, uid) ?: xa_mk_value(0));
	limit = READ_ONCE(ca_max_readers);
	if ((count >= limit || ca->nr_readers >= CA_READERS_SHARE * limit) &&
	    !capable(CAP_SYS_RESOURCE))
		ret = -EMFILE;
	else
		ret = xa_err(xa_store(&ca->readers, uid, xa_mk_value(count + 1), GFP_KERNEL));
	if (!ret) {
		ca->nr_readers++;
		h->reader = uid + 1;
	}
	mutex_unlock(&ca->files_lock);
	return ret;
}

static void uncount_reader(struct ca_handle *h, struct ca_device *ca)
{
	unsigned long uid = h->reader - 1, count;

	if (!h->reader)
		return;
	mutex_lock(&ca->files_lock);
	ca->nr_readers--;
	count = xa_to_value(xa_load(&ca->readers, uid));
	/* Replaces an existing entry, which needs no memory. */
	xa_store(&ca->readers, uid, count > 1 ? xa_mk_value(count - 1) : NULL, GFP_KERNEL);
	mutex_unlock(&ca->files_lock);
}

static void free_handle(struct ca_handle *h)
{
	struct ca_space *space = h->space;

	if (space->user)
		uncount_reader(h, space_to_file(space)->ca);
	if (h->of) {
		spin_lock(&h->of->lock);
		list_del(&h->of_mm);
		spin_unlock(&h->of->lock);
		ca_mm_put(h->of);
	}
	put_pid(h->pid);
	xa_destroy(&h->objects.entries);
	mutex_destroy(&h->lock);
	kfree(h->ca);
	kfree_rcu(h, rcu);
	if (space->user)
		ca_file_put(space_to_file(space));
}

static struct ca_handle *alloc_handle(struct ca_call *call)
{
	struct ib_device *device = call->ca->device;
	struct ca_handle *h;

	h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	if (!h)
		return NULL;
	h->ca = kzalloc(max(device->ops.size_ib_ca, sizeof(struct ib_ca)),
			GFP_KERNEL_ACCOUNT);
	if (!h->ca) {
		kfree(h);
		return NULL;
	}
	h->ca->device = device;
	h->ca->user = call->space->user;
	h->space = call->space;
	h->site = call->site;
	refcount_set(&h->users, 1);
	init_completion(&h->unused);
	mutex_init(&h->lock);
	ca_numbers_init(&h->objects);
	set_owner(h, call);
	return h;
}

/* Reserves a number in the space, which lookups do not find yet. */
static int reserve_number(struct ca_space *space, struct ca_handle *h)
{
	int ret;

	mutex_lock(&space->lock);
	if (space->user &&
	    space->handles.count >= READ_ONCE(ca_max_handles) &&
	    !capable(CAP_SYS_RESOURCE))
		ret = -EMFILE;
	else
		ret = ca_number_reserve(&space->handles, &h->id);
	mutex_unlock(&space->lock);
	h->ca->handle = h->id;
	return ret;
}

static void release_number(struct ca_space *space, u64 id)
{
	mutex_lock(&space->lock);
	ca_number_release(&space->handles, id);
	mutex_unlock(&space->lock);
}

/*
 * The call site for a frame; 0 if the device is suspect: the caller was checked at
 * submission.
 */
static unsigned long call_site(const struct ca_call *call)
{
	return ib_contract_suspects(call->ca->device) ? 0 : call->site;
}

/* After success @h must not be touched: a thread that has guessed its id may have closed it. */
static int open_handle(struct ca_call *call, struct ca_handle *h)
{
	const void *vendor = call->in_len ? call->in.kernel : NULL;
	struct ib_device *device = call->ca->device;
	int ret;

	ret = count_reader(h, call) ?: reserve_number(call->space, h);
	if (ret)
		return ret;
	if (device->ops.open_ca)
		ret = IB_IN_FRAME(device, NULL, "open_ca", IB_FRAME_METHOD, call_site(call),
				  device->ops.open_ca(h->ca, vendor, call->in_len));
	else if (vendor)
		ret = -EOPNOTSUPP;
	if (ret) {
		release_number(call->space, h->id);
		return ret;
	}
	call->handle = h->id;
	rcu_assign_pointer(*ca_recent(call->space, h->id), h);
	ca_number_publish(&call->space->handles, call->handle, h);
	return 0;
}

/*
 * OPEN. Errors: -EMFILE; an error of the HCA; -EOPNOTSUPP if it takes no vendor
 * data; -ENOMEM.
 */
int ca_open(struct ca_call *call)
{
	struct ca_handle *h;
	int ret;

	h = alloc_handle(call);
	if (!h)
		return -ENOMEM;
	ret = open_handle(call, h);
	if (ret)
		free_handle(h);
	return ret;
}

static int mark_closed(struct ca_handle *h, bool force)
{
	int ret = 0;

	mutex_lock(&h->lock);
	if (h->closed)
		ret = -ENOENT;
	else if (h->objects.count && !force)
		ret = -EBUSY;
	else
		WRITE_ONCE(h->closed, true);
	mutex_unlock(&h->lock);
	return ret;
}

/* Called by the thread that has set @closed, without a user. @site: a kernel caller's, or 0. */
static void finish_close(struct ca_handle *h, unsigned long site)
{
	struct ca_space *space = h->space;
	struct ib_device *device = h->ca->device;

	/* Its number stays reserved until all is freed, because ca_max_handles counts it. */
	ca_number_withdraw(&space->handles, h->id);
	/* Does nothing if a newer handle has replaced it there. */
	unrcu_pointer(cmpxchg(ca_recent(space, h->id), RCU_INITIALIZER(h),
			      NULL));
	ca_handle_put(h);
	while (!wait_for_completion_timeout(&h->unused, ib_wait_warn_timeout()))
		ibdev_warn(device, "closing handle %#llx of %s: waiting for %u requests in progress\n",
			   h->id, h->owner, refcount_read(&h->users));
	ca_objects_release(h);
	if (device->ops.close_ca)
		IB_IN_FRAME(device, NULL, "close_ca", IB_FRAME_METHOD, site,
			    (device->ops.close_ca(h->ca), 0));
	release_number(space, h->id);
	free_handle(h);
}

/*
 * CLOSE. Errors: -ENOENT, -EACCES; -EBUSY, with a list of what is left in the
 * handle in the buffer, if there is a buffer.
 */
int ca_close(struct ca_call *call)
{
	struct ca_handle *h = ca_handle_get(call->space, call->handle);
	int ret;

	if (IS_ERR(h))
		return PTR_ERR(h);
	ret = mark_closed(h, false);
	if (ret == -EBUSY && !sockptr_is_null(call->out))
		ca_list(call, h);
	ca_handle_put(h);
	if (!ret)
		finish_close(h, call_site(call));
	return ret;
}

/* Closes it even if objects are left under it. The caller holds one of its users. */
static void force_close(struct ca_handle *h)
{
	int ret = mark_closed(h, true);

	ca_handle_put(h);
	if (!ret)
		finish_close(h, 0);
}

/*
 * Closes all open handles. The caller is between ca_closing_begin() and ca_closing_end(),
 * or is the device's end; other threads may close and use handles meanwhile.
 */
void ca_space_close(struct ca_space *space)
{
	struct ca_handle *h;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&space->handles.entries, index, h) {
		if (!refcount_inc_not_zero(&h->users))
			continue;
		rcu_read_unlock();
		if (!space->user)
			ibdev_warn(h->ca->device,
				   "module %s left its channel adapter open: handle %#llx, %u objects\n",
				   h->owner, h->id, h->objects.count);
		force_close(h);
		rcu_read_lock();
	}
	rcu_read_unlock();
}

/* The handles that kernel callers have open. */
static void open_for_each(struct ib_device *device, u64 until,
			  void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ca_device *ca;
	struct ca_handle *h;
	unsigned long index;

	rcu_read_lock();
	ca = ca_of(device);
	if (ca)
		xa_for_each(&ca->kernel.handles.entries, index, h)
			visit(context, &h->site);
	rcu_read_unlock();
}

struct ib_ref_source ca_open_source = {
	.kind = "channel adapter",
	.for_each = open_for_each,
};

/* Takes the next open handle off the list, with one of its users taken. Returns NULL at the end. */
static struct ca_handle *ca_mm_next_handle(struct ca_mm *m)
{
	struct ca_handle *h, *next, *found = NULL;

	spin_lock(&m->lock);
	list_for_each_entry_safe(h, next, &m->handles, of_mm) {
		/* One without users is being freed. */
		list_del_init(&h->of_mm);
		if (!refcount_inc_not_zero(&h->users))
			continue;
		found = h;
		break;
	}
	spin_unlock(&m->lock);
	return found;
}

static void close_handle_work(struct work_struct *work)
{
	struct ca_handle *h = container_of(work, struct ca_handle, close);
	struct ca_file *f = space_to_file(h->space);
	struct ca_device *ca = f->ca;

	kref_get(&f->ref);
	finish_close(h, 0);
	if (atomic_dec_and_test(&f->closing))
		wake_up_var(&f->closing);
	ca_file_put(f);
	ca_closing_end(ca);
}

/* Closes it from a work item, unless another thread closes it already. */
static void queue_close(struct ca_handle *h)
{
	struct ca_file *f = space_to_file(h->space);

	if (!ca_closing_begin(f->ca)) {
		ca_handle_put(h);
		return;
	}
	if (mark_closed(h, true)) {
		ca_closing_end(f->ca);
		ca_handle_put(h);
		return;
	}
	atomic_inc(&f->closing);
	INIT_WORK(&h->close, close_handle_work);
	ca_handle_put(h);
	queue_work(ca_close_wq, &h->close);
}

/*
 * The process has ended, or called exec. No thread is left that may use its handles or open
 * more. They are closed outside of the notifiers' SRCU, which all processes share, because
 * closing may take as long as the drivers of the memory like.
 */
static void ca_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct ca_mm *m = container_of(notifier, struct ca_mm, notifier);
	struct ca_handle *h;

	while ((h = ca_mm_next_handle(m))) {
		queue_close(h);
		cond_resched();
	}
}

/* Waits until the handles that ended processes had open through the file are closed. */
void ca_handle_flush(struct ca_file *f)
{
	char name[IB_DEVICE_NAME_MAX];

	/* Not ibdev_warn(): as in ca_file_release(). */
	while (!wait_var_event_timeout(&f->closing, !atomic_read(&f->closing),
				       ib_wait_warn_timeout())) {
		ib_copy_device_name(name, f->ca->device);
		pr_warn("%s: waiting for %d handles of processes that have ended to be closed\n",
			name, atomic_read(&f->closing));
	}
}

int ca_handle_init(void)
{
	/* A close that takes long does not hold up the others. */
	ca_close_wq = alloc_workqueue("kverbs_ca_close", WQ_UNBOUND,
				      WQ_MAX_ACTIVE);
	return ca_close_wq ? 0 : -ENOMEM;
}

/*
 * No file is left. The ca_mm of processes are freed when the notifiers' grace period has
 * ended, for which there is no barrier.
 */
void ca_handle_exit(void)
{
	destroy_workqueue(ca_close_wq);
	while (!wait_var_event_timeout(&nr_mms, !atomic_read(&nr_mms), ib_wait_warn_timeout()))
		pr_warn("unloading: waiting for the MMU notifiers of %d processes to be freed\n",
			atomic_read(&nr_mms));
	mmu_notifier_synchronize();
}

/* Prints a line for each handle, with the PID that the reader's PID namespace has for it. */
void ca_space_show(struct ca_space *space, struct seq_file *s)
{
	struct ca_handle *h;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&space->handles.entries, index, h) {
		/* Its pid is valid as long as it has users. */
		if (!refcount_inc_not_zero(&h->users))
			continue;
		seq_printf(s, "handle=%#llx %s owner=%s pid=%d pds=%u mrs=%u bytes=%llu%s\n",
			   h->id, space->user ? "user" : "kernel", h->owner,
			   h->pid ? pid_vnr(h->pid) : 0, READ_ONCE(h->pds),
			   READ_ONCE(h->mrs), READ_ONCE(h->bytes),
			   space->user && !h->mm ? " shared" : "");
		ca_handle_put(h);
	}
	rcu_read_unlock();
}
