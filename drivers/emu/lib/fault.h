/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection; see fault.c.
 *
 * As long as all rates of all devices are 0, each of these checks is a patched
 * jump and nothing else.
 */
#ifndef KVERBS_EMU_FAULT_H
#define KVERBS_EMU_FAULT_H

#include <linux/jump_label.h>

#include "emu.h"

struct dentry;
struct emu_cq;
struct emu_qp;

DECLARE_STATIC_KEY_FALSE(emu_faulty);

bool emu_fault_in_exec(struct emu_qp *qp, enum ib_wc_status *status, u64 *delay_ns);
bool emu_fault_in_cqe(struct emu_cq *cq);
bool emu_fault_in_notify(struct emu_cq *cq);
bool emu_fault_in_alloc(struct emu_device *edev);

/**
 * emu_fault_exec() - does the next entry of a send queue go wrong?
 * @qp: queue pair
 * @status: what the entry completes with, if the fault is to fail it; else
 *	IB_WC_SUCCESS
 * @delay_ns: how long the entry waits before it is executed, if it does not fail
 *
 * Asked once for each entry, before it is executed; not again after the delay,
 * nor when the entry is retried.
 *
 * Context: The owner of @qp; any but NMI.
 * Return: true if it goes wrong.
 */
static inline bool emu_fault_exec(struct emu_qp *qp, enum ib_wc_status *status, u64 *delay_ns)
{
	return static_branch_unlikely(&emu_faulty) && emu_fault_in_exec(qp, status, delay_ns);
}

/* Is the next completion to find @cq full? Any context but NMI. */
static inline bool emu_fault_overflow(struct emu_cq *cq)
{
	return static_branch_unlikely(&emu_faulty) && emu_fault_in_cqe(cq);
}

/* Is a notification of @cq, which is due, to be lost? Any context but NMI. */
static inline bool emu_fault_notify(struct emu_cq *cq)
{
	return static_branch_unlikely(&emu_faulty) && emu_fault_in_notify(cq);
}

/* Is a method that allocates to fail with -ENOMEM? Any context. */
static inline bool emu_fault_alloc(struct emu_device *edev)
{
	return static_branch_unlikely(&emu_faulty) && emu_fault_in_alloc(edev);
}

/* fault.c */
int emu_faults_create(struct emu_device *edev);
void emu_faults_stop(struct emu_device *edev);
void emu_faults_destroy(struct emu_device *edev);
void emu_faults_debugfs(struct emu_device *edev, struct dentry *dir);

#endif
