/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of devices, and the lock of devices and clients: see registry.c.
 */
#ifndef KVERBS_REGISTRY_H
#define KVERBS_REGISTRY_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

extern struct mutex ib_registry_lock;
extern struct xarray ib_devices;

#define IB_DEVICE_REGISTERED	XA_MARK_1

void ib_registry_changed(void);
void ib_registry_wait(void);
bool ib_registry_wait_for(unsigned long timeout);
unsigned long ib_wait_warn_timeout(void);
u64 ib_registry_now(void);

#endif
