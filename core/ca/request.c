// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests: checked, then carried out, at once or by a work item.
 *
 * Queries are answered at once, in any context, from what is kept ready (image.c). All
 * others may call driver methods that sleep: the caller of a file runs them itself, those
 * of a kernel caller run in a work queue. A use of the device is held while the request is
 * carried out: unregistration waits for it. Memory of a process, except pages to be pinned,
 * is only accessed before and after that: an access can make the kernel wait for as long as
 * the process likes.
 *
 * Lock protocol: none. A queued request belongs to its work item, except its state, which
 * changes by cmpxchg: the thread that takes it from QUEUED decides whether it is carried
 * out or cancelled. The work item calls done() in either case, and does not touch the
 * request afterwards. It is a reader of done_srcu while done() runs, so that a client that
 * unregisters can wait for running done(), and not for the requests of others.
 */
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>

#include "../contract/contract.h"
#include "../device.h"
#include "ca.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

enum request_state {
	REQUEST_IDLE,
	REQUEST_QUEUED,
	REQUEST_RUNNING,
	REQUEST_CANCELLED,
};

static struct workqueue_struct *ca_wq;
DEFINE_STATIC_SRCU(done_srcu);

/* Members of a request that an operation uses. */
enum {
	USES_PORT	= BIT(0),
	USES_HANDLE	= BIT(1),
	USES_OBJECT	= BIT(2),
	USES_IN		= BIT(3),
	USES_OUT	= BIT(4),
	NEEDS_OUT	= BIT(5) | USES_OUT,
};

/**
 * struct ca_op - an operation
 * @uses: members of the request that it uses, the others must be 0; and whether it needs a
 *	buffer
 * @flags: flags that it knows
 * @changes: makes or frees objects
 * @run: carries it out, with the handle held
 */
struct ca_op {
	u8 uses;
	u8 flags;
	bool changes;
	int (*run)(struct ca_call *call, struct ca_handle *h);
};

static const struct ca_op ops[] = {
	[KVERBS_CA_OPEN] = {
		.uses = USES_IN,
		.flags = KVERBS_CA_SHARED,
	},
	[KVERBS_CA_CLOSE] = {
		.uses = USES_HANDLE | USES_OUT,
	},
	[KVERBS_CA_QUERY_CA] = {
		.uses = USES_HANDLE | NEEDS_OUT,
		.flags = KVERBS_CA_FRESH,
	},
	[KVERBS_CA_QUERY_PORT] = {
		.uses = USES_HANDLE | USES_PORT | NEEDS_OUT,
		.flags = KVERBS_CA_FRESH,
	},
	[KVERBS_CA_ALLOC_PD] = {
		.uses = USES_HANDLE,
		.changes = true,
		.run = ca_alloc_pd,
	},
	[KVERBS_CA_DEALLOC_PD] = {
		.uses = USES_HANDLE | USES_OBJECT,
		.changes = true,
		.run = ca_dealloc_pd,
	},
	[KVERBS_CA_REG_MR] = {
		.uses = USES_HANDLE | USES_IN | USES_OUT,
		.changes = true,
		.run = ca_reg_mr,
	},
	[KVERBS_CA_DEREG_MR] = {
		.uses = USES_HANDLE | USES_OBJECT,
		.changes = true,
		.run = ca_dereg_mr,
	},
	[KVERBS_CA_QUERY_MR] = {
		.uses = USES_HANDLE | USES_OBJECT | NEEDS_OUT,
		.run = ca_query_mr,
	},
	[KVERBS_CA_LIST] = {
		.uses = USES_HANDLE | NEEDS_OUT,
		.run = ca_list,
	},
	[KVERBS_CA_SET_PEER] = {
		.uses = USES_HANDLE | USES_IN,
		.changes = true,
		.run = ca_set_peer,
	},
};

static u8 members_set(const struct ca_call *call)
{
	u8 set = 0;

	if (call->port)
		set |= USES_PORT;
	if (call->handle)
		set |= USES_HANDLE;
	if (call->object)
		set |= USES_OBJECT;
	if (call->in_len || !sockptr_is_null(call->in))
		set |= USES_IN;
	if (call->out_len || !sockptr_is_null(call->out))
		set |= USES_OUT;
	return set;
}

static int check_call(const struct ca_call *call)
{
	const struct ca_op *op;

	if (call->op < KVERBS_CA_OPEN || call->op >= ARRAY_SIZE(ops))
		return -EINVAL;
	op = &ops[call->op];
	if (call->version != KVERBS_CA_VERSION || call->flags & ~op->flags ||
	    members_set(call) & ~op->uses)
		return -EINVAL;
	if (op->changes && !call->writable)
		return -EBADF;
	if (!sockptr_is_null(call->out)) {
		/* Each answer begins with a version and a size, which must fit. */
		if (call->out_len < 2 * sizeof(u32))
			return -ENOSPC;
	} else if (call->out_len || (op->uses & NEEDS_OUT) == NEEDS_OUT) {
		return -EINVAL;
	}
	if (sockptr_is_null(call->in) != !call->in_len)
		return -EINVAL;
	return call->in_len > KVERBS_CA_VENDOR_MAX ? -E2BIG : 0;
}

/* For a call that check_call() has passed: whether any context can answer it at once. */
static bool call_is_quick(const struct ca_call *call)
{
	return (call->op == KVERBS_CA_QUERY_CA ||
		call->op == KVERBS_CA_QUERY_PORT) &&
	       !(call->flags & KVERBS_CA_FRESH);
}

/*
 * Whether a process's call can be answered without sleeping: a query that need not make a new
 * image, or any call that check_call() refuses.
 */
bool ca_call_is_quick(const struct ca_call *call)
{
	return check_call(call) ||
	       (call_is_quick(call) && !READ_ONCE(call->ca->image_stale));
}

static int fetch_input(struct ca_call *call)
{
	if (sockptr_is_kernel(call->in) || !call->in_len)
		return 0;
	call->fetched = kmalloc(call->in_len, GFP_KERNEL_ACCOUNT);
	if (!call->fetched)
		return -ENOMEM;
	if (copy_from_sockptr(call->fetched, call->in, call->in_len))
		return -EFAULT;
	call->in = KERNEL_SOCKPTR(call->fetched);
	return 0;
}

/*
 * Called before anything is held for the call: does what may wait for the
 * process's memory. The caller must call ca_call_end() in any case.
 */
int ca_call_begin(struct ca_call *call)
{
	int ret;

	ret = check_call(call) ? : fetch_input(call);
	if (!ret && call->op == KVERBS_CA_OPEN)
		ret = ca_mm_get(call);
	return ret;
}

static int run_query(struct ca_call *call)
{
	int ret;

	ret = ca_handle_check(call->space, call->handle);
	if (ret)
		return ret;
	if (call->may_sleep && (call->flags & KVERBS_CA_FRESH ||
				READ_ONCE(call->ca->image_stale))) {
		ret = ca_image_refresh(call->ca);
		if (ret && call->flags & KVERBS_CA_FRESH)
			return ret;
	}
	call->image = ca_image_get(call->ca);
	return call->image ? 0 : -ENODEV;
}

static int run_on_handle(struct ca_call *call)
{
	struct ca_handle *h;
	int ret;

	h = ca_handle_get(call->space, call->handle);
	if (IS_ERR(h))
		return PTR_ERR(h);
	ret = ops[call->op].run(call, h);
	ca_handle_put(h);
	return ret;
}

/*
 * Carries out a call that ca_call_begin() has accepted. The caller holds a use
 * of the device, and may sleep unless the request is quick.
 */
int ca_call_run(struct ca_call *call)
{
	switch (call->op) {
	case KVERBS_CA_OPEN:
		return ca_open(call);
	case KVERBS_CA_CLOSE:
		return ca_close(call);
	case KVERBS_CA_QUERY_CA:
	case KVERBS_CA_QUERY_PORT:
		return run_query(call);
	default:
		return run_on_handle(call);
	}
}

/* Writes as much of the answer as fits. */
static ssize_t copy_answer(const struct ca_call *call, const void *answer, u32 size)
{
	if (copy_to_sockptr(call->out, answer, min(call->out_len, size)))
		return -EFAULT;
	return call->out_len < size ? -EOVERFLOW : (ssize_t)size;
}

/* Whether the call succeeds even if not all of its answer fits. */
static bool partial_answer_is_ok(const struct ca_call *call)
{
	/* An error would say that there is no region. */
	if (call->op == KVERBS_CA_REG_MR)
		return true;
	return call->op == KVERBS_CA_QUERY_MR &&
	       call->out_len == KVERBS_CA_MR_ATTR_SIZE_MIN;
}

static ssize_t write_answer(struct ca_call *call)
{
	ssize_t ret = 0;

	if (call->image)
		ret = ca_image_copy(call->image, call->net,
				    call->op == KVERBS_CA_QUERY_PORT ? &call->port : NULL,
				    call->out, call->out_len);
	else if (call->list && !sockptr_is_null(call->out))
		ret = copy_answer(call, call->list, call->list->size);
	else if (call->mr.size)
		ret = copy_answer(call, &call->mr, call->mr.size);
	if (ret == -EOVERFLOW && partial_answer_is_ok(call))
		ret = call->out_len;
	return ret;
}

/*
 * Writes the answer, and frees all that the call holds. @ret: what ca_call_begin() or
 * ca_call_run() returned. The caller has given up its use of the device. Returns the bytes
 * written, or an error.
 */
ssize_t ca_call_end(struct ca_call *call, int ret)
{
	ssize_t written = 0, result = ret;

	/* A refused CLOSE and a failed REG_MR have answers, too. */
	if (!ret || call->list || call->mr.size)
		written = write_answer(call);
	ca_image_put(call->image);
	kvfree(call->list);
	kfree(call->fetched);
	ca_mm_put(call->of);
	if (!ret || (written < 0 && written != -EOVERFLOW))
		result = written;
	trace_ib_ca_request(call->ca->device, call->op, call->handle,
			    call->object, result);
	return result;
}

static void call_of_request(struct ca_call *call, struct ca_device *ca,
			    const struct ib_ca_request *req)
{
	*call = (struct ca_call) {
		.ca = ca,
		.space = &ca->kernel,
		.writable = true,
		.owner = req->owner,
		.site = req->site,
		.op = req->op,
		.version = req->version,
		.flags = req->flags,
		.port = req->port,
		.handle = req->handle,
		.object = req->object,
		.in = KERNEL_SOCKPTR((void *)req->in),
		.out = KERNEL_SOCKPTR(req->out),
		.in_len = req->in_len,
		.out_len = req->out_len,
	};
}

static ssize_t run_request(struct ca_device *ca, struct ib_ca_request *req)
{
	struct ca_call call;
	ssize_t ret;

	call_of_request(&call, ca, req);
	call.may_sleep = true;
	ret = ca_call_begin(&call) ? : ca_call_run(&call);
	req->handle = call.handle;
	req->object = call.object;
	return ca_call_end(&call, ret);
}

static ssize_t run_request_with_mm(struct ca_device *ca, struct ib_ca_request *req)
{
	ssize_t ret;

	if (!req->mm)
		return run_request(ca, req);
	/* The process may have ended; then there is no memory to register. */
	if (!mmget_not_zero(req->mm))
		return -EFAULT;
	kthread_use_mm(req->mm);
	ret = run_request(ca, req);
	kthread_unuse_mm(req->mm);
	mmput(req->mm);
	return ret;
}

static void request_work(struct work_struct *work)
{
	struct ib_ca_request *req =
		container_of(work, struct ib_ca_request, work);
	struct ca_device *ca = req->ca;
	ib_ca_done_fn done = req->done;
	int idx;

	if (atomic_cmpxchg(&req->state, REQUEST_QUEUED, REQUEST_RUNNING) ==
	    REQUEST_QUEUED)
		req->result = run_request_with_mm(ca, req);
	else
		req->result = -ECANCELED;
	if (req->mm)
		mmdrop(req->mm);
	idx = srcu_read_lock(&done_srcu);
	IB_CALL_BACK(ca->device, NULL, "done() of a request", IB_FRAME_CALLBACK, done,
		     done(req));
	srcu_read_unlock(&done_srcu, idx);
	/* Only now, so that done() has returned before the device can go. */
	ca_use_end(ca);
}

/* The request takes over the caller's use of the device. */
static ssize_t queue_request(struct ca_device *ca, struct ib_ca_request *req)
{
	req->ca = ca;
	req->mm = NULL;
	if (req->op == KVERBS_CA_REG_MR && in_task() && current->mm) {
		req->mm = current->mm;
		mmgrab(req->mm);
	}
	atomic_set(&req->state, REQUEST_QUEUED);
	INIT_WORK(&req->work, request_work);
	queue_work(ca_wq, &req->work);
	return -EINPROGRESS;
}

/* Not inline: its stack frame is cleared even if it is not used. */
static noinline ssize_t submit_call(struct ib_device *device,
				    struct ib_ca_request *req)
{
	struct ca_device *ca = ca_use_begin(device);
	struct ca_call call;
	ssize_t result;
	int ret;

	if (!ca)
		return -ENODEV;
	call_of_request(&call, ca, req);
	ret = ca_call_begin(&call);
	if (!ret && !call_is_quick(&call)) {
		if (req->done)
			return queue_request(ca, req);
		ret = -EINVAL;
	}
	result = ca_call_end(&call, ret ? : ca_call_run(&call));
	ca_use_end(ca);
	return result;
}

/* Whether the request is a query that needs no more checks than these before it is answered. */
static bool request_is_plain_query(const struct ib_ca_request *req)
{
	return (req->op == KVERBS_CA_QUERY_PORT ||
		(req->op == KVERBS_CA_QUERY_CA && !req->port)) &&
	       req->version == KVERBS_CA_VERSION && req->out &&
	       !(req->flags | req->object | req->in_len | (uintptr_t)req->in);
}

/*
 * Most requests are of this kind. It takes no use of the device: what it reads
 * is freed after an RCU grace period.
 */
static ssize_t run_plain_query(struct ib_device *device,
			       const struct ib_ca_request *req)
{
	ssize_t ret = -ENODEV;
	struct ca_device *ca;

	rcu_read_lock();
	ca = ca_of(device);
	if (ca)
		ret = ca_image_query(ca, req->handle,
				     req->op == KVERBS_CA_QUERY_PORT ?
				     &req->port : NULL,
				     req->out, req->out_len);
	rcu_read_unlock();
	trace_ib_ca_request(device, req->op, req->handle, req->object, ret);
	return ret;
}

/**
 * __ib_ca_submit() - make a request; called through ib_ca_submit()
 * @device: the device
 * @req: the request, not on the stack
 * @owner: KBUILD_MODNAME of the caller
 *
 * QUERY_CA and QUERY_PORT without %KVERBS_CA_FRESH are answered at once, and so is a
 * request that is wrong at first sight. A work item carries out all others, in no
 * particular order, and then calls ib_ca_request.done.
 *
 * REG_MR registers memory of the process that the caller runs for; there must be one. The
 * work item runs as the kernel: the process's RLIMIT_MEMLOCK, which applies to
 * ib_ca_call(), does not apply here.
 *
 * Context: Any but NMI. The device is one that the caller got in add() or holds
 *	    by ib_device_try_get(); its unregistration may have begun.
 * Return: -EINPROGRESS if done() will be called, once, with the result. Else the
 * result: bytes written to ib_ca_request.out, or an error:
 * -ENODEV if the device is gone;
 * -EOPNOTSUPP if OPEN has data for an HCA that takes none;
 * -EINVAL for an unknown operation, version or flag, a member set that the
 * operation does not use, no buffer for an answer, no such port, no done();
 * -ENOENT for a handle or object that does not exist;
 * -EOVERFLOW if the answer does not fit: as much of it as fits was written, and
 * its second member is the size of the whole answer;
 * -ENOSPC if not even its first two members fit;
 * -EBUSY from CLOSE or DEALLOC_PD while something is left in the handle or PD;
 * %KVERBS_CA_CLOSE with a buffer says what;
 * -ECANCELED after ib_ca_cancel();
 * -E2BIG for more data to the HCA than %KVERBS_CA_VENDOR_MAX, or a structure with
 * unknown members set;
 * -ENOMEM, or an error of the driver or, for REG_MR, of ib_reg_user_mr().
 */
ssize_t __ib_ca_submit(struct ib_device *device, struct ib_ca_request *req,
		       const char *owner)
{
	ib_contract_call(device, NULL, "ib_ca_submit", _RET_IP_);
	if (likely(request_is_plain_query(req)))
		return run_plain_query(device, req);
	req->owner = owner;
	req->site = _RET_IP_;
	return submit_call(device, req);
}
EXPORT_SYMBOL_GPL(__ib_ca_submit);

/**
 * __ib_ca_call() - make a request and wait; called through ib_ca_call()
 * @device: the device
 * @req: the request, perhaps on the stack; done() is not called
 * @owner: KBUILD_MODNAME of the caller
 *
 * REG_MR is subject to the limits of the process that the caller runs for, as
 * ib_reg_user_mr() is.
 *
 * Context: Process, may sleep. Otherwise as __ib_ca_submit().
 * Return: bytes written to ib_ca_request.out, or an error, see __ib_ca_submit().
 */
ssize_t __ib_ca_call(struct ib_device *device, struct ib_ca_request *req,
		     const char *owner)
{
	struct ca_device *ca;
	ssize_t ret;

	might_sleep();
	ib_contract_call(device, NULL, "ib_ca_call", _RET_IP_);
	ca = ca_use_begin(device);
	if (!ca)
		return -ENODEV;
	req->owner = owner;
	req->site = _RET_IP_;
	ret = run_request(ca, req);
	ca_use_end(ca);
	return ret;
}
EXPORT_SYMBOL_GPL(__ib_ca_call);

/**
 * ib_ca_cancel() - cancel a request that has not begun
 * @req: request that was submitted, and whose memory still exists
 *
 * Does not wait. The request belongs to the core until done() has been called.
 * Call this only after ib_ca_submit() has returned -EINPROGRESS for it; before
 * that, or for a request that was answered at once, the result means nothing.
 *
 * Context: Any.
 * Return: 0: it was not begun, and done() will be called with -ECANCELED;
 * -EALREADY: it has begun, or has been completed.
 */
int ib_ca_cancel(struct ib_ca_request *req)
{
	if (atomic_cmpxchg(&req->state, REQUEST_QUEUED, REQUEST_CANCELLED) ==
	    REQUEST_QUEUED)
		return 0;
	return -EALREADY;
}
EXPORT_SYMBOL_GPL(ib_ca_cancel);

/*
 * A client has unregistered. It has waited for its requests, but their done() may not have
 * returned yet.
 */
static int client_removed(struct notifier_block *nb, unsigned long unused, void *client)
{
	synchronize_srcu(&done_srcu);
	return NOTIFY_OK;
}

static struct notifier_block client_notifier = { .notifier_call = client_removed };

int ca_request_init(void)
{
	ca_wq = alloc_workqueue("kverbs_ca", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!ca_wq)
		return -ENOMEM;
	ib_register_client_notifier(&client_notifier);
	return 0;
}

void ca_request_exit(void)
{
	ib_unregister_client_notifier(&client_notifier);
	destroy_workqueue(ca_wq);
}
