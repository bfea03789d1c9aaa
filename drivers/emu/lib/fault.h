/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection: whether something is to go wrong; see fault.c. Whoever asks makes it go
 * wrong.
 *
 * As long as all rates of all devices are 0, emu_faulty is false, and who asks behind it pays
 * for a patched jump and nothing else.
 */
#ifndef KVERBS_EMU_FAULT_H
#define KVERBS_EMU_FAULT_H

#include <linux/jump_label.h>

#include "emu.h"

struct dentry;

DECLARE_STATIC_KEY_FALSE(emu_faulty);

bool emu_fault_in_exec(struct emu_device *edev, enum ib_wc_status *status, u64 *delay_ns);
u32 emu_fault_in_link(struct emu_device *edev, u32 port_num);
bool emu_fault_in_cqe(struct emu_device *edev);
bool emu_fault_in_notify(struct emu_device *edev);
bool emu_fault_in_alloc(struct emu_device *edev);

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
