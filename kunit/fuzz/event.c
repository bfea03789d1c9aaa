// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: asynchronous events of queue pairs and SRQs.
 *
 * Events come in hard interrupt context, some time after their cause. They are counted by
 * type, and compared with the model's counts when everything that the model expects has
 * happened. The next change of state waits for that, so that two events of the same type are
 * not merged into one. An event that comes after the call that destroys its object has
 * returned is stray.
 *
 * x_heard.open is written only when the handler cannot be called, or must not be.
 */
#include "fuzz/fuzz.h"

static enum x_event type_of(const struct ib_event *event)
{
	switch (event->event) {
	case IB_EVENT_COMM_EST:
		return X_COMM_EST;
	case IB_EVENT_SQ_DRAINED:
		return X_SQ_DRAINED;
	case IB_EVENT_QP_FATAL:
		return X_QP_FATAL;
	case IB_EVENT_QP_REQ_ERR:
		return X_REQ_ERR;
	case IB_EVENT_QP_ACCESS_ERR:
		return X_ACCESS_ERR;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		return X_LAST_WQE;
	default:
		return X_OTHER_EVENT;
	}
}

static void count(struct x_heard *heard, enum x_event type)
{
	if (READ_ONCE(heard->open))
		atomic_inc(&heard->count[type]);
	else
		atomic_inc(&heard->w->stray_events);
}

void x_qp_event(struct ib_event *event, void *context)
{
	struct x_heard *heard = context;

	/* The event is of a destroyed QP that was in the same slot. */
	if (event->element.qp->qp_num != READ_ONCE(heard->num))
		atomic_inc(&heard->w->stray_events);
	else
		count(heard, type_of(event));
}

void x_srq_event(struct ib_event *event, void *context)
{
	count(context, X_OTHER_EVENT);
}

/* Starts to count events; to be called before the object is created. */
void x_hear(struct x_world *w, struct x_heard *heard)
{
	int i;

	heard->w = w;
	for (i = 0; i < X_EVENTS; i++)
		atomic_set(&heard->count[i], 0);
	WRITE_ONCE(heard->open, true);
}

/* Events are stray from here on: the object was destroyed, or could not be created. */
void x_hear_no_more(struct x_heard *heard)
{
	WRITE_ONCE(heard->open, false);
}

static bool is_heard(const struct x_heard *heard, const u8 *want)
{
	int i;

	for (i = 0; i < X_EVENTS; i++) {
		if (atomic_read(&heard->count[i]) < want[i])
			return false;
	}
	return true;
}

/* Waits until @end for the events that the model expects; there must be no others. */
static enum x_verdict check_qp(struct x_world *w, int slot, u64 end)
{
	static const char *const names[X_EVENTS] = {
		"connection was used", "send queue is drained", "queue pair failed",
		"request was wrong", "access was wrong", "last receive was taken", "?",
	};
	struct x_heard *heard = &w->heard_qp[slot];
	const u8 *want = w->qp[slot].events;
	int i;

	while (!is_heard(heard, want) && ktime_get_ns() < end)
		cond_resched();
	for (i = 0; i < X_EVENTS; i++) {
		if (atomic_read(&heard->count[i]) != want[i])
			return x_fail(w, "events '%s': expected %u, saw %d", names[i], want[i],
				      atomic_read(&heard->count[i]));
	}
	return X_DONE;
}

/**
 * x_check_events() - wait for the events that the model expects, and compare
 * @w: the world, whose completions have all come
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_check_events(struct x_world *w)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(w->patience);
	int i;

	for (i = 0; i < X_SLOTS; i++) {
		if (xm_there(w, X_QP, i) && check_qp(w, i, end))
			return X_FAILED;
		if (x_want(w, "events of an SRQ", 0,
			   atomic_read(&w->heard_srq[i].count[X_OTHER_EVENT])))
			return X_FAILED;
	}
	return x_want(w, "events of what is gone", 0, atomic_read(&w->stray_events));
}
