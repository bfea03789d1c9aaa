// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: requests to channel adapters, asynchronous or not, also while the device is
 * being unregistered; and PDs that a thread opens through a CA's file, as a process does, and
 * borrows as a kernel consumer.
 *
 * Requests are carried out in no particular order. So a request is submitted only if its
 * outcome does not depend on one that is pending.
 *
 * Locking: the core owns a request from its submission until done() is called; the thread
 * owns everything else.
 */
#include <linux/fcntl.h>

#include "ca/rig.h"
#include "fuzz/mock_device.h"

static const char *const names[] = {
	[KVERBS_CA_OPEN] = "OPEN", [KVERBS_CA_CLOSE] = "CLOSE",
	[KVERBS_CA_QUERY_CA] = "QUERY_CA", [KVERBS_CA_QUERY_PORT] = "QUERY_PORT",
	[KVERBS_CA_ALLOC_PD] = "ALLOC_PD", [KVERBS_CA_DEALLOC_PD] = "DEALLOC_PD",
	[KVERBS_CA_REG_MR] = "REG_MR", [KVERBS_CA_DEREG_MR] = "DEREG_MR",
};

static struct ib_device *device_of(const struct x_world *w, int dev)
{
	return dev == X_CA_OWN ? w->own->dev : w->s->dev[dev];
}

/* --- the model: which requests are allowed, and how they end --- */

static bool is_there(const struct x_ca_obj *obj)
{
	return obj->state == X_CA_THERE;
}

/* A region counts as a user of its PD also while it is being made or freed. */
static bool uses_pd(const struct x_ca_handle *h, int pd)
{
	return h->mr.state != X_CA_NONE && h->mr_pd == pd;
}

static int pds_of(const struct x_ca_handle *h)
{
	int i, n = 0;

	for (i = 0; i < X_CA_PDS; i++)
		n += is_there(&h->pd[i]);
	return n;
}

static bool may_ask(const struct x_ca_handle *h, enum kverbs_ca_op what, int pd)
{
	if (what == KVERBS_CA_OPEN)
		return h->self.state == X_CA_NONE;
	if (!is_there(&h->self))
		return false;
	switch (what) {
	case KVERBS_CA_ALLOC_PD:
		return h->pd[pd].state == X_CA_NONE;
	case KVERBS_CA_DEALLOC_PD:
		return is_there(&h->pd[pd]) && h->mr.state != X_CA_BUSY;
	case KVERBS_CA_REG_MR:
		return is_there(&h->pd[pd]) && h->mr.state == X_CA_NONE;
	case KVERBS_CA_DEREG_MR:
		/* A pending request to free the PD is refused only while the region is there. */
		return is_there(&h->mr) && h->pd[h->mr_pd].state != X_CA_BUSY;
	case KVERBS_CA_CLOSE:
		return !h->pending;
	default:
		return true;
	}
}

static long outcome(const struct x_ca_handle *h, enum kverbs_ca_op what, int pd)
{
	switch (what) {
	case KVERBS_CA_DEALLOC_PD:
		return uses_pd(h, pd) ? -EBUSY : 0;
	case KVERBS_CA_CLOSE:
		return pds_of(h) ? -EBUSY : 0;
	case KVERBS_CA_QUERY_CA:
	case KVERBS_CA_QUERY_PORT:
		/* The buffer is too small for what follows the attributes. */
		return -EOVERFLOW;
	default:
		return 0;
	}
}

/* The object that a request makes or frees, or NULL. */
static struct x_ca_obj *subject(struct x_ca_handle *h, enum kverbs_ca_op what, int pd)
{
	switch (what) {
	case KVERBS_CA_OPEN:
	case KVERBS_CA_CLOSE:
		return &h->self;
	case KVERBS_CA_ALLOC_PD:
	case KVERBS_CA_DEALLOC_PD:
		return &h->pd[pd];
	case KVERBS_CA_REG_MR:
	case KVERBS_CA_DEREG_MR:
		return &h->mr;
	default:
		return NULL;
	}
}

static void begun(struct x_ca_handle *h, struct x_ca_req *q)
{
	struct x_ca_obj *obj = subject(h, q->what, q->pd);

	h->pending++;
	if (obj)
		obj->state = X_CA_BUSY;
	if (q->what == KVERBS_CA_REG_MR)
		h->mr_pd = q->pd;
}

static void ended(struct x_ca_handle *h, struct x_ca_req *q)
{
	struct x_ca_obj *obj = subject(h, q->what, q->pd);
	bool makes = q->what == KVERBS_CA_OPEN || q->what == KVERBS_CA_ALLOC_PD ||
		     q->what == KVERBS_CA_REG_MR;

	h->pending--;
	if (!obj)
		return;
	obj->state = makes == !q->a.req.result ? X_CA_THERE : X_CA_NONE;
	if (makes)
		obj->id = q->what == KVERBS_CA_OPEN ? q->a.req.handle : q->a.req.object;
}

/**
 * x_ca_objects() - count the objects of open CAs on the thread's own device
 * @own: the thread's own device and CAs
 * @known: set to false if requests are pending, which makes the count uncertain
 *
 * Return: number of objects.
 */
int x_ca_objects(const struct x_own *own, bool *known)
{
	const struct x_ca_file *f = &own->file;
	const struct x_ca_handle *h;
	int i, n = 0;

	for (i = 0; i < X_CA_HANDLES; i++) {
		h = &own->handle[i];
		if (h->dev != X_CA_OWN)
			continue;
		if (h->pending)
			*known = false;
		n += is_there(&h->self) + pds_of(h) + is_there(&h->mr);
	}
	if (f->dev == X_CA_OWN && !f->gone)
		n += f->there + (f->pd || f->lent[0] || f->lent[1]);
	return n;
}

/* --- requests --- */

static void build(struct x_world *w, struct x_ca_req *q, const struct x_ca_handle *h)
{
	struct ib_ca_request req = {
		.op = q->what,
		.version = KVERBS_CA_VERSION,
		.handle = q->what == KVERBS_CA_OPEN ? 0 : h->self.id,
	};

	switch (q->what) {
	case KVERBS_CA_DEALLOC_PD:
		req.object = h->pd[q->pd].id;
		break;
	case KVERBS_CA_DEREG_MR:
		req.object = h->mr.id;
		break;
	case KVERBS_CA_QUERY_CA:
	case KVERBS_CA_QUERY_PORT:
		memset(&q->out, 0, sizeof(q->out));
		req.flags = KVERBS_CA_FRESH;
		req.port = q->what == KVERBS_CA_QUERY_PORT ? X_PORT : 0;
		req.out = &q->out;
		req.out_len = sizeof(q->out);
		break;
	case KVERBS_CA_REG_MR:
		q->reg = ca_rig_reg_of(h->pd[q->pd].id, w->user_mem, PAGE_SIZE);
		req.in = &q->reg;
		req.in_len = sizeof(q->reg);
		break;
	default:
		break;
	}
	ca_async_again(&q->a, &req);
}

/* Compares the result of a request, and the LID in the answer of an emulated device. */
static enum x_verdict check_result(struct x_world *w, const struct x_ca_req *q, int dev, long want)
{
	if (q->a.req.result != want)
		return x_want(w, names[q->what], want, q->a.req.result);
	if (q->what != KVERBS_CA_QUERY_PORT || want == -ECANCELED || dev == X_CA_OWN)
		return X_DONE;
	return x_want(w, "LID of the CA's port", w->s->lid[dev], q->out.lid);
}

static enum x_verdict call(struct x_world *w, struct x_ca_req *q, struct x_ca_handle *h)
{
	q->want = outcome(h, q->what, q->pd);
	build(w, q, h);
	begun(h, q);
	q->a.req.result = ib_ca_call(device_of(w, h->dev), &q->a.req);
	ended(h, q);
	return check_result(w, q, h->dev, q->want);
}

/* The number of the PD, if there ever was one, is of no other PD. */
static enum x_verdict free_nothing(struct x_world *w, struct x_ca_req *q,
				   const struct x_ca_handle *h)
{
	build(w, q, h);
	return x_want(w, "freeing a PD that is not there", -ENOENT,
		      ib_ca_call(device_of(w, h->dev), &q->a.req));
}

struct submission {
	struct ib_device *ibdev;
	struct x_ca_req *q;
};

static void submit(void *arg)
{
	struct submission *s = arg;

	s->q->result = ib_ca_submit(s->ibdev, &s->q->a.req);
}

static enum x_verdict cancel(struct x_world *w, struct x_ca_req *q)
{
	bool over = completion_done(&q->a.got);
	int ret = ib_ca_cancel(&q->a.req);

	/* This fails if the request has begun. It must fail if it is over or already cancelled. */
	if (ret && ret != -EALREADY)
		return x_want(w, "cancelling a request", -EALREADY, ret);
	if (!ret && (over || q->cancelled))
		return x_fail(w, "a request was cancelled that was over");
	q->cancelled |= !ret;
	return X_DONE;
}

/* Waits until the request ends, and compares its result with the model's. */
static enum x_verdict end_req(struct x_world *w, struct x_ca_req *q)
{
	struct x_ca_handle *h = &w->own->handle[q->handle];
	long want = q->cancelled ? -ECANCELED : q->want;

	if (!wait_for_completion_timeout(&q->a.got, w->patience))
		return x_fail(w, "%s: done() is not called", names[q->what]);
	q->busy = false;
	ended(h, q);
	if (atomic_read(&q->a.calls) != 1)
		return x_want(w, "calls of done()", 1, atomic_read(&q->a.calls));
	return check_result(w, q, h->dev, want);
}

static enum x_verdict submit_right(struct x_world *w, struct x_ca_req *q,
				   struct x_ca_handle *h, u32 r)
{
	struct submission s = { .ibdev = device_of(w, h->dev), .q = q };
	/* REG_MR needs the memory of the calling process. */
	bool in_irq = !(r & 7) && r && q->what != KVERBS_CA_REG_MR;

	q->want = outcome(h, q->what, q->pd);
	build(w, q, h);
	q->cancelled = false;
	if (in_irq)
		kvt_run_in_hardirq(submit, &s);
	else
		submit(&s);
	if (q->result != -EINPROGRESS)
		return x_want(w, "submitting a request", -EINPROGRESS, q->result);
	q->busy = true;
	begun(h, q);
	return r >> 3 & 3 ? X_DONE : cancel(w, q);
}

/* Submits a request that is refused or answered at once, for which done() is not called. */
static enum x_verdict submit_quick(struct x_world *w, struct x_ca_req *q,
				   const struct x_ca_handle *h, u32 r)
{
	long want = -EINVAL;

	q->what = KVERBS_CA_QUERY_CA;
	build(w, q, h);
	q->a.req.flags = 0;
	switch (r % 6) {
	case 0:
		want = -EOVERFLOW;
		break;
	case 1:
		/* The upper half of the handle is wrong. */
		q->a.req.handle += 1ULL << 32;
		want = -ENOENT;
		break;
	case 2:
		q->a.req.out_len = 4;
		want = -ENOSPC;
		break;
	case 3:
		q->a.req.op = 99;
		break;
	case 4:
		q->a.req.flags = KVERBS_CA_FRESH;
		q->a.req.done = NULL;
		break;
	default:
		q->a.req.object = 1;
	}
	x_want(w, "a request that is answered at once", want,
	       ib_ca_submit(device_of(w, h->dev), &q->a.req));
	return x_want(w, "calls of done() for it", 0, atomic_read(&q->a.calls));
}

enum x_verdict x_ca_submit(struct x_world *w, const struct x_op *op)
{
	static const u8 mix[8] = { KVERBS_CA_QUERY_PORT, KVERBS_CA_ALLOC_PD, KVERBS_CA_ALLOC_PD,
				   KVERBS_CA_REG_MR, KVERBS_CA_DEALLOC_PD, KVERBS_CA_DEREG_MR,
				   KVERBS_CA_QUERY_CA, KVERBS_CA_CLOSE };
	struct x_ca_req *q = &w->own->req[op->a];
	struct x_ca_handle *h = &w->own->handle[(op->c & 3) % X_CA_HANDLES];
	bool waits = op->r & 32;

	if (q->busy)
		return X_SKIPPED;
	if (h->self.state == X_CA_NONE)
		h->dev = (op->r >> 8 & 3) % (X_CA_OWN + 1);
	q->what = h->self.state == X_CA_NONE ? KVERBS_CA_OPEN : mix[op->b];
	q->handle = h - w->own->handle;
	q->pd = op->c >> 2 & 1;
	if (!device_of(w, h->dev))
		return X_SKIPPED;
	if (q->what == KVERBS_CA_QUERY_CA && op->r & 64)
		return is_there(&h->self) ? submit_quick(w, q, h, op->r) : X_SKIPPED;
	if (waits && q->what == KVERBS_CA_DEALLOC_PD && is_there(&h->self) &&
	    h->pd[q->pd].state == X_CA_NONE)
		return free_nothing(w, q, h);
	if (!may_ask(h, q->what, q->pd))
		return X_SKIPPED;
	return waits ? call(w, q, h) : submit_right(w, q, h, op->r);
}

enum x_verdict x_ca_cancel(struct x_world *w, const struct x_op *op)
{
	struct x_ca_req *q = &w->own->req[op->a];

	return q->busy ? cancel(w, q) : X_SKIPPED;
}

/* Waits for one request and, if @op->c is 0, for all others. */
enum x_verdict x_ca_wait(struct x_world *w, const struct x_op *op)
{
	struct x_ca_req *q = &w->own->req[op->a];
	int i;

	if (!q->busy)
		return X_SKIPPED;
	if (end_req(w, q))
		return X_FAILED;
	for (i = 0; i < X_CA_REQS && !op->c; i++) {
		if (w->own->req[i].busy && end_req(w, &w->own->req[i]))
			return X_FAILED;
	}
	return x_own_idle(w);
}

/* --- unregistration of a device --- */

static void end_all(struct x_world *w, int dev)
{
	struct x_ca_req *q;
	int i;

	for (i = 0; i < X_CA_REQS; i++) {
		q = &w->own->req[i];
		if (q->busy && w->own->handle[q->handle].dev == dev)
			end_req(w, q);
	}
}

static void close_handle(struct x_world *w, struct x_ca_handle *h)
{
	struct x_ca_req *q = &w->own->closing;
	int i;

	if (!is_there(&h->self))
		return;
	for (q->what = KVERBS_CA_DEREG_MR, i = 0; i < 2 + X_CA_PDS; i++) {
		if (i)
			q->what = i > X_CA_PDS ? KVERBS_CA_CLOSE : KVERBS_CA_DEALLOC_PD;
		q->pd = i == 2;
		if (q->what != KVERBS_CA_CLOSE && !is_there(subject(h, q->what, q->pd)))
			continue;
		call(w, q, h);
		subject(h, q->what, q->pd)->state = X_CA_NONE;
	}
}

static void close_all(struct x_world *w, int dev)
{
	int i;

	end_all(w, dev);
	for (i = 0; i < X_CA_HANDLES; i++) {
		if (w->own->handle[i].dev == dev)
			close_handle(w, &w->own->handle[i]);
	}
}

static void put_lent(struct x_ca_file *f, int i)
{
	struct ib_ca_pd *lent = f->lent[i];

	f->lent[i] = NULL;
	if (lent)
		ib_ca_pd_put(lent);
}

/* Submits requests that may still be pending while the device is unregistered. */
static void begin_some(struct x_world *w)
{
	struct x_ca_handle *h;
	struct x_ca_req *q;
	int i;

	for (i = 0; i < X_CA_REQS; i++) {
		q = &w->own->req[i];
		h = &w->own->handle[i % X_CA_HANDLES];
		if (q->busy)
			continue;
		if (h->self.state == X_CA_NONE)
			h->dev = X_CA_OWN;
		q->what = h->self.state == X_CA_NONE ? KVERBS_CA_OPEN : KVERBS_CA_QUERY_CA;
		q->handle = h - w->own->handle;
		if (h->dev == X_CA_OWN && may_ask(h, q->what, 0))
			submit_right(w, q, h, ~0U);
	}
}

/**
 * x_ca_leave() - prepare for the unregistration of the thread's device
 * @w: the world
 * @some: leave open objects to the core and submit requests, instead of closing everything
 */
void x_ca_leave(struct x_world *w, bool some)
{
	struct x_ca_file *f = &w->own->file;
	int i;

	for (i = 0; i < X_LENT && f->dev == X_CA_OWN; i++)
		put_lent(f, i);
	if (some)
		begin_some(w);
	else
		close_all(w, X_CA_OWN);
}

/**
 * x_ca_gone() - check, after unregistration, that all requests have ended as they should
 * @w: the world
 *
 * Forgets the handles that were open on the device, and marks its open file as gone.
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_ca_gone(struct x_world *w)
{
	struct x_own *own = w->own;
	struct x_ca_req *q;
	int i;

	for (i = 0; i < X_CA_REQS; i++) {
		q = &own->req[i];
		if (!q->busy || own->handle[q->handle].dev != X_CA_OWN)
			continue;
		if (!completion_done(&q->a.got))
			x_fail(w, "%s: not over when the device has gone", names[q->what]);
		end_req(w, q);
	}
	for (i = 0; i < X_CA_HANDLES; i++) {
		if (own->handle[i].dev == X_CA_OWN)
			own->handle[i] = (struct x_ca_handle){};
	}
	if (own->file.dev == X_CA_OWN)
		own->file.gone = own->file.there;
	return *w->why ? X_FAILED : X_DONE;
}

/* --- a CA's file, and PDs that are borrowed from it --- */

static long file_request(struct x_world *w, u32 op, struct kverbs_ca_request *r)
{
	return ca_rig_ioctl(w->own->file.fd, w->user_mem + X_USER_ROOM, op, r);
}

static enum x_verdict make_pd(struct x_world *w)
{
	struct x_ca_file *f = &w->own->file;
	struct kverbs_ca_request r = { .handle = f->handle };
	long want = f->gone ? -ENODEV : 0, ret = file_request(w, KVERBS_CA_ALLOC_PD, &r);

	if (!ret)
		f->pd = r.object;
	return x_want(w, "a PD of a process", want, ret);
}

static enum x_verdict open_file(struct x_world *w, int dev)
{
	struct x_ca_file *f = &w->own->file;
	struct kverbs_ca_request r = {};
	int fd;

	if (!device_of(w, dev))
		return X_SKIPPED;
	fd = ca_rig_open_file(device_of(w, dev)->name, O_RDWR);
	if (fd < 0)
		return x_want(w, "opening a CA's file", 0, fd);
	*f = (struct x_ca_file){ .fd = fd, .dev = dev, .there = true };
	if (x_want(w, "opening a CA for a process", 0, file_request(w, KVERBS_CA_OPEN, &r)))
		return X_FAILED;
	f->handle = r.handle;
	return make_pd(w) ?: x_own_idle(w);
}

/* Closes the file, and with it all of its objects but the PDs that are lent. */
static enum x_verdict close_file(struct x_world *w)
{
	struct x_ca_file *f = &w->own->file;

	x_want(w, "closing a CA's file", 0, ca_rig_close_file(f->fd));
	f->there = false;
	f->handle = 0;
	f->pd = 0;
	return *w->why ? X_FAILED : x_own_idle(w);
}

static enum x_verdict free_pd(struct x_world *w)
{
	struct x_ca_file *f = &w->own->file;
	struct kverbs_ca_request r = { .handle = f->handle, .object = f->pd };
	long want = f->lent[0] || f->lent[1] ? -EBUSY : 0, ret;

	if (f->gone)
		want = -ENODEV;
	ret = file_request(w, KVERBS_CA_DEALLOC_PD, &r);
	if (!ret)
		f->pd = 0;
	return x_want(w, "freeing a PD of a process", want, ret) ?: x_own_idle(w);
}

static enum x_verdict borrow(struct x_world *w, int i, u32 r)
{
	struct x_ca_file *f = &w->own->file;
	int bad = r & 15, fd = bad == 1 ? -1 : f->fd, want = 0;
	u64 handle = f->handle, pd = f->pd;
	struct ib_ca_pd *lent;

	if (bad == 1)
		want = -EBADF;
	else if (f->gone)
		want = -ENODEV;
	else if (bad == 2 || bad == 3 || !f->pd)
		want = -ENOENT;
	handle += bad == 2;
	pd += bad == 3 ? 1ULL << 32 : 0;
	lent = ib_ca_pd_get(fd, handle, pd);
	if (IS_ERR(lent))
		return x_want(w, "borrowing a PD", want, PTR_ERR(lent));
	if (f->lent[!i] && f->lent[!i] != lent)
		x_fail(w, "another PD was lent");
	f->lent[i] = lent;
	x_want(w, "device of a PD that is lent", true, lent->pd->device == device_of(w, f->dev));
	return x_want(w, "borrowing a PD", want, 0);
}

/* A PD that is lent can be used like any other, also after its file was closed. */
static enum x_verdict use_lent(struct x_world *w, const struct ib_ca_pd *lent)
{
	struct ib_mr *mr = ib_alloc_mr(lent->pd, IB_MR_TYPE_MEM_REG, 1);

	if (IS_ERR(mr))
		return x_want(w, "a region in a PD that is lent", 0, PTR_ERR(mr));
	x_want(w, "users of a PD that is lent", 1, atomic_read(&lent->pd->usecnt));
	x_want(w, "freeing a region in it", 0, ib_dereg_mr(mr));
	x_want(w, "users of it, after that", 0, atomic_read(&lent->pd->usecnt));
	return *w->why ? X_FAILED : X_DONE;
}

enum x_verdict x_ca_file(struct x_world *w, const struct x_op *op)
{
	struct x_ca_file *f = &w->own->file;
	bool lent = f->lent[0] || f->lent[1];

	if (f->lent[op->a] && op->b < 3)
		return use_lent(w, f->lent[op->a]);
	if (f->lent[op->a] && op->b < 6) {
		put_lent(f, op->a);
		return x_own_idle(w);
	}
	if (!f->there)
		return lent ? X_SKIPPED : open_file(w, op->c & 1 ? X_CA_OWN : 0);
	if (op->b == 7)
		return op->c & 3 ? X_SKIPPED : close_file(w);
	if (op->b == 6)
		return f->pd ? free_pd(w) : make_pd(w);
	return f->lent[op->a] ? X_SKIPPED : borrow(w, op->a, op->r);
}

/* --- cleanup --- */

/**
 * x_end_ca() - close all CAs and files, and give back the PDs that are lent
 * @w: the world
 */
void x_end_ca(struct x_world *w)
{
	int i;

	for (i = 0; i < X_DEVS; i++)
		close_all(w, i);
	if (w->own->dev)
		close_all(w, X_CA_OWN);
	for (i = 0; i < X_LENT; i++)
		put_lent(&w->own->file, i);
	if (w->own->file.there)
		close_file(w);
}
