/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What depends on the core that the module is built for: kverbs' own (core_kverbs.c), or
 * mainline's ib_core (core_mainline.c). One of these files is part of the module; all
 * others are the same for both.
 */
#ifndef KVERBS_EMU_CORE_H
#define KVERBS_EMU_CORE_H

#include "lib/emu.h"

struct dentry;

/**
 * emu_core_init() - prepare for this core, before there is a device
 *
 * Context: Process.
 * Return: 0; -EBUSY if a module is loaded that it cannot coexist with; or another errno.
 */
int emu_core_init(void);

/**
 * emu_core_exit() - undo emu_core_init(), when there is no device any more
 *
 * Context: Process.
 */
void emu_core_exit(void);

/**
 * emu_core_release() - release what is kept for a device that is no longer registered
 * @edev: the device
 *
 * Context: Process.
 */
void emu_core_release(struct emu_device *edev);

/**
 * emu_core_setup() - add the methods that only this core has, or that need more for it
 * @ibdev: the device, which is not registered, and has no methods yet: those that are set
 *	first stay
 *
 * Context: Process.
 */
void emu_core_setup(struct ib_device *ibdev);

/**
 * emu_core_start() - enable the ways to create devices that only this core has
 *
 * Context: Process, at the end of the module's init.
 * Return: 0, or a negative errno.
 */
int emu_core_start(void);

/**
 * emu_core_stop() - undo emu_core_start(), and destroy the devices that were
 *	created in these ways
 *
 * Context: Process.
 */
void emu_core_stop(void);

/**
 * emu_core_query_device() - add the limits that only this core asks for
 * @edev: the device
 * @attr: limits of the device, complete otherwise
 *
 * Context: Process.
 */
void emu_core_query_device(const struct emu_device *edev, struct ib_device_attr *attr);

/**
 * emu_core_register() - register a device that is complete
 * @edev: the device
 * @name: its name, which may hold a %d
 *
 * Context: Process.
 * Return: 0, or what ib_register_device() returned.
 */
int emu_core_register(struct emu_device *edev, const char *name);

/**
 * emu_core_unregister() - unregister a device, which ends all use of it
 * @edev: the device
 *
 * Context: Process.
 */
void emu_core_unregister(struct emu_device *edev);

/**
 * emu_core_destroy_cq() - the destroy_cq method of this core
 * @ibcq: the CQ
 * @udata: not used
 *
 * Context: Process.
 * Return: 0.
 */
int emu_core_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);

/**
 * emu_core_destroy_qp() - the destroy_qp method of this core
 * @ibqp: the queue pair
 * @udata: not used
 *
 * Context: Process.
 * Return: 0.
 */
int emu_core_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/**
 * emu_core_destroy_srq() - the destroy_srq method of this core
 * @ibsrq: the SRQ
 * @udata: not used
 *
 * Context: Process.
 * Return: 0.
 */
int emu_core_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

/**
 * emu_core_can_rebind() - may the network device of a port change while the device is registered?
 *
 * Context: Any.
 * Return: false if the core would not notice: its GID tables would stay as they are.
 */
bool emu_core_can_rebind(void);

/**
 * emu_core_debugfs() - add the files for features that only this core has
 * @edev: the device
 * @dir: its directory in debugfs
 *
 * Context: Process.
 */
void emu_core_debugfs(struct emu_device *edev, struct dentry *dir);

#endif
