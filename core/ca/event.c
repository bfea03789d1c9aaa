// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events for readers of /dev/infiniband/ca/<device>: port state, GIDs, P_Keys,
 * removal.
 *
 * The handler of the device's events must not sleep, and any number of files may be open. So
 * it puts an event into a ring of the device, ca_device.queue, and a work item tells the files.
 *
 * Each open file has a ring of its own. It is filled by that work item and by the removal, and
 * emptied by any number of readers, each event by one of them. A reader that is too slow is told:
 * when the ring is full, new events are dropped and counted, and the reader finds the count in
 * their place. The count stays outside of the ring until there is room for it and an event behind
 * it. Removal needs no room in the ring either, and is the last event.
 *
 * Lock protocol: ca_events.lock guards all of it; it nests inside ca_device.files_lock, and
 * the lock of the wait queue inside it. An event leaves the ring under the lock, after it
 * was copied to the reader: a fault loses none, and readers get them in order. Page faults
 * are disabled meanwhile. If one is needed, it is taken without the lock, and the copy is
 * tried again with the event that is the first by then.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "ca.h"

/*
 * A read gives up with -EFAULT after this many tries: another thread of the process, or fault
 * injection, may take the reader's page away each time that it was faulted in.
 */
#define CA_FAULTS_MAX	8

void ca_events_init(struct ca_events *events)
{
	spin_lock_init(&events->lock);
	init_waitqueue_head(&events->wait);
	events->head = 0;
	events->tail = 0;
	events->overflow.lost = 0;
	events->removed.size = 0;
	events->removed_read = false;
}

static void ring_put(struct ca_events *events, const struct kverbs_ca_event *event)
{
	events->ring[events->head++ % CA_EVENTS_MAX] = *event;
}

static void count_lost_event(struct ca_events *events, const struct kverbs_ca_event *event)
{
	u32 lost = events->overflow.lost, more = max(event->lost, 1u);

	events->overflow = *event;
	events->overflow.type = KVERBS_CA_EVENT_OVERFLOW;
	events->overflow.port = 0;
	/* @event may itself be an overflow of the device's queue, which stands for several. */
	events->overflow.lost = lost > U32_MAX - more ? U32_MAX : lost + more;
}

static void enqueue_event(struct ca_events *events,
			  const struct kverbs_ca_event *event)
{
	u32 room = CA_EVENTS_MAX - (events->head - events->tail);

	lockdep_assert_held(&events->lock);
	if (room < (events->overflow.lost ? 2 : 1)) {
		count_lost_event(events, event);
		return;
	}
	if (events->overflow.lost) {
		ring_put(events, &events->overflow);
		events->overflow.lost = 0;
	}
	ring_put(events, event);
}

/* After KVERBS_CA_EVENT_REMOVED, nothing is added. */
static void deliver_event(struct ca_events *events,
			  const struct kverbs_ca_event *event)
{
	__poll_t what = EPOLLIN | EPOLLRDNORM;

	spin_lock(&events->lock);
	if (events->removed.size) {
		what = 0;
	} else if (event->type == KVERBS_CA_EVENT_REMOVED) {
		events->removed = *event;
		what |= EPOLLHUP | EPOLLERR;
	} else {
		enqueue_event(events, event);
	}
	spin_unlock(&events->lock);
	if (what)
		wake_up_poll(&events->wait, what);
}

static const struct kverbs_ca_event *first_event(const struct ca_events *events)
{
	lockdep_assert_held(&events->lock);
	if (events->tail != events->head)
		return &events->ring[events->tail % CA_EVENTS_MAX];
	if (events->overflow.lost)
		return &events->overflow;
	if (events->removed.size && !events->removed_read)
		return &events->removed;
	return NULL;
}

static void drop_first_event(struct ca_events *events)
{
	lockdep_assert_held(&events->lock);
	if (events->tail != events->head)
		events->tail++;
	else if (events->overflow.lost)
		events->overflow.lost = 0;
	else
		events->removed_read = true;
}

static void fill_event(struct kverbs_ca_event *event, struct ca_device *ca, u32 type, u32 port)
{
	*event = (struct kverbs_ca_event) {
		.size = sizeof(*event),
		.type = type,
		.port = port,
		.generation = ca_image_generation(ca),
		.time_ns = ktime_get_ns(),
	};
}

static void notify_files(struct ca_device *ca, const struct kverbs_ca_event *event)
{
	struct ca_file *f;

	mutex_lock(&ca->files_lock);
	list_for_each_entry(f, &ca->files, node)
		deliver_event(&f->events, event);
	mutex_unlock(&ca->files_lock);
}

static bool dequeue_event(struct ca_device *ca, struct kverbs_ca_event *event)
{
	const struct kverbs_ca_event *next;

	spin_lock(&ca->queue.lock);
	next = first_event(&ca->queue);
	if (next) {
		*event = *next;
		drop_first_event(&ca->queue);
	}
	spin_unlock(&ca->queue.lock);
	return next;
}

static void events_work(struct work_struct *work)
{
	struct ca_device *ca = container_of(work, struct ca_device, events_work);
	struct kverbs_ca_event event;

	while (dequeue_event(ca, &event))
		notify_files(ca, &event);
}

void ca_events_start(struct ca_device *ca)
{
	ca_events_init(&ca->queue);
	INIT_WORK(&ca->events_work, events_work);
}

/* Notifies all that have the device's file open. Context: process; does not sleep. */
void ca_events_queue(struct ca_device *ca, u32 type, u32 port)
{
	struct kverbs_ca_event event;

	fill_event(&event, ca, type, port);
	spin_lock(&ca->queue.lock);
	enqueue_event(&ca->queue, &event);
	spin_unlock(&ca->queue.lock);
	queue_work(system_unbound_wq, &ca->events_work);
}

/* The last event, behind those that wait. No more are queued. Context: process. */
void ca_events_end(struct ca_device *ca)
{
	struct kverbs_ca_event event;

	flush_work(&ca->events_work);
	fill_event(&event, ca, KVERBS_CA_EVENT_REMOVED, 0);
	notify_files(ca, &event);
}

/* Prints a line about the events that are queued for the reader of a file. */
void ca_events_show(struct ca_events *events, struct seq_file *s)
{
	u32 waiting, lost;

	spin_lock(&events->lock);
	waiting = events->head - events->tail;
	lost = events->overflow.lost;
	spin_unlock(&events->lock);
	seq_printf(s, "file events=%u lost=%u\n", waiting, lost);
}

/* Copies all of the event or, if that would take a page fault, nothing. */
static int copy_event(const struct kverbs_ca_event *event, struct iov_iter *to)
{
	size_t n;

	pagefault_disable();
	n = copy_to_iter(event, sizeof(*event), to);
	pagefault_enable();
	if (n == sizeof(*event))
		return 0;
	iov_iter_revert(to, n);
	return -EFAULT;
}

static int try_read_event(struct ca_events *events, struct iov_iter *to)
{
	const struct kverbs_ca_event *event;
	int ret;

	spin_lock(&events->lock);
	event = first_event(events);
	if (event)
		ret = copy_event(event, to);
	else
		ret = events->removed_read ? -ENODEV : -EAGAIN;
	if (!ret)
		drop_first_event(events);
	spin_unlock(&events->lock);
	return ret;
}

/* Returns -EAGAIN if there is no event, -ENODEV if there will be none any more. */
static int read_event(struct ca_events *events, struct iov_iter *to)
{
	int faults;
	int ret;

	for (faults = 0; faults < CA_FAULTS_MAX; faults++) {
		ret = try_read_event(events, to);
		if (ret != -EFAULT)
			return ret;
		if (fault_in_iov_iter_writeable(to,
						sizeof(struct kverbs_ca_event)))
			return -EFAULT;
	}
	return -EFAULT;
}

/* Whether read_event() would return anything but -EAGAIN. */
static bool is_readable(struct ca_events *events)
{
	bool ready;

	spin_lock(&events->lock);
	ready = first_event(events) || events->removed_read;
	spin_unlock(&events->lock);
	return ready;
}

/*
 * Context: process, may sleep.
 * Return: bytes of the events read, at least one; -EAGAIN: there is none and the
 *	   caller does not wait; -EFAULT: the first one could not be copied and is
 *	   still there; -EINVAL: the buffer is too small for one; -ENODEV: the
 *	   removal of the device has been read; -ERESTARTSYS: a signal.
 */
ssize_t ca_events_read(struct ca_events *events, struct iov_iter *to,
		       bool nonblock)
{
	const size_t size = sizeof(struct kverbs_ca_event);
	ssize_t done = 0;
	int ret;

	if (iov_iter_count(to) < size)
		return -EINVAL;
	do {
		ret = read_event(events, to);
		if (!ret) {
			done += size;
			continue;
		}
		if (done)
			break;
		if (ret != -EAGAIN || nonblock)
			return ret;
		ret = wait_event_interruptible(events->wait, is_readable(events));
		if (ret)
			return ret;
	} while (iov_iter_count(to) >= size);
	return done;
}

__poll_t ca_events_poll(struct ca_events *events, struct file *file,
			struct poll_table_struct *wait)
{
	__poll_t mask = 0;

	poll_wait(file, &events->wait, wait);
	spin_lock(&events->lock);
	if (first_event(events))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (events->removed.size)
		mask |= EPOLLHUP | EPOLLERR;
	spin_unlock(&events->lock);
	return mask;
}
