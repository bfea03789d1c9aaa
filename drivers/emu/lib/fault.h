/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection: decides whether something is to go wrong, see fault.c. The caller then carries
 * that out.
 *
 * As long as no device has rules, and all rates are 0, emu_faulty is false, and a caller that tests
 * it first pays for a patched jump and nothing else. emu_detour is true while emu_faulty is, and
 * while messages are captured: then each entry of a send queue takes the long way through
 * engine/exec.c, which makes the other tests.
 */
#ifndef KVERBS_EMU_FAULT_H
#define KVERBS_EMU_FAULT_H

#include <linux/jump_label.h>

#include "emu.h"

struct dentry;

DECLARE_STATIC_KEY_FALSE(emu_faulty);
DECLARE_STATIC_KEY_FALSE(emu_detour);

/**
 * enum emu_fault_action - what happens to a request, and the unit of its amount
 * @EMU_FAULT_NONE: nothing
 * @EMU_FAULT_STATUS: it fails, with an enum ib_wc_status
 * @EMU_FAULT_DELAYED: it is executed some microseconds later
 * @EMU_FAULT_DROP: its message is lost
 * @EMU_FAULT_NO_RECEIVE: it fails as if the responder had no receive posted
 * @EMU_FAULT_FLAP: the port goes down for some milliseconds
 * @EMU_FAULT_OVERFLOW: the next completion finds its CQ full
 */
enum emu_fault_action {
	EMU_FAULT_NONE,
	EMU_FAULT_STATUS,
	EMU_FAULT_DELAYED,
	EMU_FAULT_DROP,
	EMU_FAULT_NO_RECEIVE,
	EMU_FAULT_FLAP,
	EMU_FAULT_OVERFLOW,
};

/**
 * struct emu_fault_site - a request that may go wrong
 * @qpn: number of its queue pair
 * @opcode: what it asks for
 * @retrying: this is not the first attempt to execute it
 */
struct emu_fault_site {
	u32 qpn;
	enum ib_wr_opcode opcode;
	bool retrying;
};

enum emu_fault_action emu_fault_in_exec(struct emu_device *edev,
					const struct emu_fault_site *site, u64 *value);
u32 emu_fault_in_link(struct emu_device *edev, u32 port_num);
bool emu_fault_in_cqe(struct emu_device *edev);
bool emu_fault_in_notify(struct emu_device *edev);
bool emu_fault_in_alloc(struct emu_device *edev);

/* Decides whether a method that allocates fails with -ENOMEM. Any context. */
static inline bool emu_fault_alloc(struct emu_device *edev)
{
	return static_branch_unlikely(&emu_faulty) && emu_fault_in_alloc(edev);
}

/* fault.c */
void emu_faulty_inc(void);
void emu_faulty_dec(void);
int emu_faults_create(struct emu_device *edev);
void emu_faults_stop(struct emu_device *edev);
void emu_faults_destroy(struct emu_device *edev);
void emu_faults_debugfs(struct emu_device *edev, struct dentry *dir);

#endif
