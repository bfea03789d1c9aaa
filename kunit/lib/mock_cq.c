// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock's completion queue, whose completions are put there by the case.
 *
 * Locking: producers and consumers take cq->lock with interrupts off. It is the innermost
 * lock; the core is notified after it was dropped.
 */
#include <linux/hrtimer.h>
#include <kverbs/completion.h>

#include "lib/mock.h"

/* Delayed completions that may be pending. */
#define MOCK_LATE	16

struct mock_cq {
	struct ib_cq ibcq;
	raw_spinlock_t lock;
	struct ib_wc *ring;
	u32 size;
	u32 head;
	u32 tail;
	bool armed;
	bool solicited_only;
	void (*on_arm)(struct ib_cq *cq, void *arg);
	void *on_arm_arg;
	void (*on_destroy)(struct ib_cq *cq, void *arg);
	void *on_destroy_arg;
	struct mock_cq_counts counts;
	struct hrtimer late_timer;
	struct ib_wc late[MOCK_LATE];
	unsigned int late_head;
	unsigned int late_tail;
};

static struct mock_cq *to_mcq(struct ib_cq *cq)
{
	return container_of(cq, struct mock_cq, ibcq);
}

static bool mock_cq_take_late(struct mock_cq *cq, struct ib_wc *wc)
{
	unsigned long flags;
	bool any;

	raw_spin_lock_irqsave(&cq->lock, flags);
	any = cq->late_head != cq->late_tail;
	if (any)
		*wc = cq->late[cq->late_tail++ % MOCK_LATE];
	raw_spin_unlock_irqrestore(&cq->lock, flags);
	return any;
}

static enum hrtimer_restart mock_cq_late(struct hrtimer *timer)
{
	struct mock_cq *cq = container_of(timer, struct mock_cq, late_timer);
	struct ib_wc wc;

	while (mock_cq_take_late(cq, &wc))
		mock_cq_push(&cq->ibcq, &wc, true);
	return HRTIMER_NORESTART;
}

/* Pushes a completion from hard interrupt, after about @ns nanoseconds. */
void mock_cq_push_late(struct ib_cq *ibcq, const struct ib_wc *wc, u64 ns)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long flags;

	raw_spin_lock_irqsave(&cq->lock, flags);
	if (!WARN_ON_ONCE(cq->late_head - cq->late_tail == MOCK_LATE))
		cq->late[cq->late_head++ % MOCK_LATE] = *wc;
	raw_spin_unlock_irqrestore(&cq->lock, flags);
	hrtimer_start(&cq->late_timer, ns_to_ktime(ns), HRTIMER_MODE_REL_HARD);
}

static int mock_create_cq(struct ib_cq *ibcq,
			  const struct ib_cq_init_attr *attr,
			  struct uverbs_attr_bundle *attrs)
{
	struct mock *m = mock_of(ibcq->device);
	struct mock_cq *cq = to_mcq(ibcq);
	int ret = mock_enter(m, MOCK_create_cq, ibcq, attr->cqe, attr->comp_vector);

	if (ret)
		return ret;
	if (!attr->cqe || attr->cqe > MOCK_MAX_CQE)
		return -EINVAL;
	cq->ring = kcalloc(attr->cqe, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	raw_spin_lock_init(&cq->lock);
	hrtimer_init(&cq->late_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	cq->late_timer.function = mock_cq_late;
	cq->size = attr->cqe;
	ibcq->cqe = attr->cqe;
	atomic_inc(&m->live[MOCK_CQ]);
	return 0;
}

static int mock_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct mock *m = mock_of(ibcq->device);
	struct mock_cq *cq = to_mcq(ibcq);
	int ret = mock_enter(m, MOCK_destroy_cq, ibcq, 0, 0);

	if (ret)
		return ret;
	hrtimer_cancel(&cq->late_timer);
	if (cq->on_destroy)
		cq->on_destroy(ibcq, cq->on_destroy_arg);
	kfree(cq->ring);
	atomic_dec(&m->live[MOCK_CQ]);
	return 0;
}

static int mock_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	return mock_enter(mock_of(ibcq->device), MOCK_modify_cq, ibcq, count, period);
}

static int mock_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	int ret = mock_enter(mock_of(ibcq->device), MOCK_resize_cq, ibcq, cqe, 0);

	if (!ret)
		ibcq->cqe = cqe;
	return ret;
}

static int mock_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long flags;
	int n = 0;
	int ret = mock_enter(mock_of(ibcq->device), MOCK_poll_cq, ibcq, num, 0);

	if (ret)
		return ret;
	raw_spin_lock_irqsave(&cq->lock, flags);
	while (n < num && cq->tail != cq->head)
		wc[n++] = cq->ring[cq->tail++ % cq->size];
	cq->counts.polls++;
	cq->counts.empty += !n;
	raw_spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int mock_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long irqflags;
	int ret = mock_enter(mock_of(ibcq->device), MOCK_req_notify_cq, ibcq, flags, 0);

	if (ret)
		return ret;
	/* Lets the case act between the last poll and the arming. */
	if (cq->on_arm)
		cq->on_arm(ibcq, cq->on_arm_arg);
	raw_spin_lock_irqsave(&cq->lock, irqflags);
	cq->solicited_only = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	cq->counts.again += cq->armed;
	cq->counts.arms++;
	ret = (flags & IB_CQ_REPORT_MISSED_EVENTS) && cq->head != cq->tail;
	cq->counts.missed += ret;
	/* What the CQ layer is told of is not notified as well: see Documentation/cq.rst. */
	cq->armed = !ret || !ibcq->lane;
	raw_spin_unlock_irqrestore(&cq->lock, irqflags);
	return ret;
}

static bool mock_cq_add(struct mock_cq *cq, const struct ib_wc *wc, bool solicited, bool notify)
{
	bool fire = false;
	unsigned long flags;
	bool room;

	raw_spin_lock_irqsave(&cq->lock, flags);
	room = cq->head - cq->tail < cq->size;
	if (room) {
		cq->ring[cq->head++ % cq->size] = *wc;
		fire = notify && cq->armed &&
		       (solicited || !cq->solicited_only);
		if (fire)
			cq->armed = false;
		cq->counts.fired += fire;
	}
	raw_spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		ib_cq_notify(&cq->ibcq);
	return room;
}

/**
 * mock_cq_push() - add a completion and notify, as hardware would
 * @cq: a CQ of a mock device
 * @wc: the completion
 * @solicited: it is a solicited event
 *
 * Context: any.
 * Return: false if the CQ is full.
 */
bool mock_cq_push(struct ib_cq *cq, const struct ib_wc *wc, bool solicited)
{
	return mock_cq_add(to_mcq(cq), wc, solicited, true);
}
EXPORT_SYMBOL_GPL(mock_cq_push);

/**
 * mock_cq_push_quiet() - add a completion without a notification
 * @cq: a CQ of a mock device
 * @wc: the completion
 *
 * Return: false if the CQ is full.
 */
bool mock_cq_push_quiet(struct ib_cq *cq, const struct ib_wc *wc)
{
	return mock_cq_add(to_mcq(cq), wc, false, false);
}
EXPORT_SYMBOL_GPL(mock_cq_push_quiet);

/**
 * mock_cq_pending() - count the completions that were not polled yet
 * @ibcq: a CQ of a mock device
 *
 * Return: number of completions.
 */
unsigned int mock_cq_pending(struct ib_cq *ibcq)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long flags;
	unsigned int n;

	raw_spin_lock_irqsave(&cq->lock, flags);
	n = cq->head - cq->tail;
	raw_spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}
EXPORT_SYMBOL_GPL(mock_cq_pending);

/**
 * mock_cq_armed() - whether a CQ is armed
 * @cq: a CQ of a mock device
 *
 * Return: true if it is.
 */
bool mock_cq_armed(struct ib_cq *cq)
{
	return READ_ONCE(to_mcq(cq)->armed);
}
EXPORT_SYMBOL_GPL(mock_cq_armed);

/**
 * mock_cq_on_arm() - set a function that is called at the start of each arming
 * @cq: a CQ of a mock device, idle
 * @fn: the function, NULL for none
 * @arg: its argument
 */
void mock_cq_on_arm(struct ib_cq *cq, void (*fn)(struct ib_cq *cq, void *arg), void *arg)
{
	to_mcq(cq)->on_arm_arg = arg;
	WRITE_ONCE(to_mcq(cq)->on_arm, fn);
}
EXPORT_SYMBOL_GPL(mock_cq_on_arm);

/**
 * mock_cq_on_destroy() - set a function that is called when the driver destroys the CQ
 * @cq: a CQ of a mock device
 * @fn: the function; notifications may come until it returns
 * @arg: its argument
 */
void mock_cq_on_destroy(struct ib_cq *cq, void (*fn)(struct ib_cq *cq, void *arg), void *arg)
{
	to_mcq(cq)->on_destroy_arg = arg;
	to_mcq(cq)->on_destroy = fn;
}
EXPORT_SYMBOL_GPL(mock_cq_on_destroy);

/**
 * mock_cq_count() - get the counters of a CQ
 * @ibcq: a CQ of a mock device
 * @counts: filled in
 */
void mock_cq_count(struct ib_cq *ibcq, struct mock_cq_counts *counts)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long flags;

	raw_spin_lock_irqsave(&cq->lock, flags);
	*counts = cq->counts;
	raw_spin_unlock_irqrestore(&cq->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_cq_count);

/* Removes the completions of a QP that is being destroyed. */
void mock_cq_purge(struct ib_cq *ibcq, const struct ib_qp *qp)
{
	struct mock_cq *cq = to_mcq(ibcq);
	unsigned long flags;
	u32 from, to;

	raw_spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->tail; from != cq->head; from++)
		if (cq->ring[from % cq->size].qp != qp)
			cq->ring[to++ % cq->size] = cq->ring[from % cq->size];
	cq->head = to;
	raw_spin_unlock_irqrestore(&cq->lock, flags);
}

void mock_cq_methods(struct ib_device_ops *ops)
{
	static const struct ib_device_ops size = {
		INIT_RDMA_OBJ_SIZE(ib_cq, mock_cq, ibcq),
	};

	ops->create_cq = mock_create_cq;
	ops->destroy_cq = mock_destroy_cq;
	ops->modify_cq = mock_modify_cq;
	ops->resize_cq = mock_resize_cq;
	ops->poll_cq = mock_poll_cq;
	ops->req_notify_cq = mock_req_notify_cq;
	ops->size_ib_cq = size.size_ib_cq;
}
