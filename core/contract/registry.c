// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of devices, the lock of devices and clients, and how to wait for a change of what it
 * guards.
 *
 * Lock protocol: ib_registry_lock (a mutex) guards the table of devices, their states
 * (device.c) and the clients (client.c). It may be taken with any lock of a consumer or driver
 * held, because it is not held while a method of either runs, nor while waiting:
 * ib_registry_wait() drops it, and takes it again when something has changed. Whoever changes
 * something calls ib_registry_changed().
 */
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <kverbs/upper.h>

#include "export.h"
#include "registry.h"

/* Longer than a use or a callback takes, but short for a user who waits at a terminal. */
static unsigned int wait_warn_ms = 10000;
module_param(wait_warn_ms, uint, 0644);
MODULE_PARM_DESC(wait_warn_ms,
		 "Time in ms after which the log says what the end of a device, client, event handler or other object, a drain or a flush waits for; 0: never (default: 10000)");

DEFINE_MUTEX(ib_registry_lock);

/* By ib_device.index. A device is in it from when it gets its name until ib_dealloc_device(). */
DEFINE_XARRAY_ALLOC(ib_devices);

/* Counts changes, to order events. 64 bits on every machine, so that it never wraps. */
static u64 registry_changes;
static DECLARE_WAIT_QUEUE_HEAD(registry_waiters);

/* Wakes those who wait. Must be called after a change that somebody may wait for. */
void ib_registry_changed(void)
{
	lockdep_assert_held(&ib_registry_lock);
	WRITE_ONCE(registry_changes, registry_changes + 1);
	wake_up_all(&registry_waiters);
}

/* Returns the number of changes so far, by which to tell which of two events came first. */
u64 ib_registry_now(void)
{
	lockdep_assert_held(&ib_registry_lock);
	return registry_changes;
}

/* Returns the time in jiffies after which a waiting thread logs what it waits for. */
unsigned long ib_wait_warn_timeout(void)
{
	unsigned int ms = READ_ONCE(wait_warn_ms);

	return ms ? msecs_to_jiffies(ms) : MAX_SCHEDULE_TIMEOUT;
}
IB_EXPORT_INTERNAL(ib_wait_warn_timeout);

/* Drops the lock until something has changed, or @timeout jiffies are over; then returns false. */
bool ib_registry_wait_for(unsigned long timeout)
{
	u64 seen;

	lockdep_assert_held(&ib_registry_lock);
	seen = registry_changes;
	mutex_unlock(&ib_registry_lock);
	wait_event_timeout(registry_waiters, READ_ONCE(registry_changes) != seen, timeout);
	mutex_lock(&ib_registry_lock);
	return registry_changes != seen;
}

void ib_registry_wait(void)
{
	ib_registry_wait_for(MAX_SCHEDULE_TIMEOUT);
}

/**
 * ib_device_get_next() - walk through the registered devices
 * @index: number to start from; updated to that of the device found
 *
 * Context: Process, may sleep.
 * Return: the device, which the caller must ib_device_put(); or %NULL after the last.
 */
struct ib_device *ib_device_get_next(u32 *index)
{
	unsigned long at = *index;
	struct ib_device *dev;

	mutex_lock(&ib_registry_lock);
	dev = xa_find(&ib_devices, &at, ULONG_MAX, IB_DEVICE_REGISTERED);
	while (dev && !ib_device_try_get(dev))
		dev = xa_find_after(&ib_devices, &at, ULONG_MAX, IB_DEVICE_REGISTERED);
	mutex_unlock(&ib_registry_lock);
	*index = at;
	return dev;
}
IB_EXPORT_INTERNAL(ib_device_get_next);
