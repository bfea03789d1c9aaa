/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules of fault injection: which request goes wrong, and how; see fault_rule.c.
 */
#ifndef KVERBS_EMU_FAULT_RULE_H
#define KVERBS_EMU_FAULT_RULE_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "fault.h"

struct seq_file;

#define EMU_FAULT_MILLION	1000000

/* What a rate decides. */
enum emu_fault_kind {
	EMU_FAULT_COMP_ERROR,
	EMU_FAULT_DELAY,
	EMU_FAULT_PORT_FLAP,
	EMU_FAULT_DROP_NOTIFY,
	EMU_FAULT_CQ_OVERFLOW,
	EMU_FAULT_ALLOC_FAIL,
	EMU_NR_FAULT_KINDS
};

/* The limit on the rules of one device. */
#define EMU_FAULT_MAX_RULES	64

/**
 * struct emu_fault_rules - the rules of a device
 * @list: of struct emu_fault_rule, in the order in which they are asked; writers hold
 *	emu_faults_lock, readers are under RCU
 * @nr: number of rules
 * @last_id: the number that was given last
 */
struct emu_fault_rules {
	struct list_head list;
	unsigned int nr;
	u32 last_id;
};

extern struct mutex emu_faults_lock;

/* fault.c */
u32 emu_fault_roll(u64 seed, u64 kind, u64 n);
const char *emu_fault_status_name(u32 status);
int emu_fault_parse_status(const char *text);

/* fault_rule.c */
void emu_fault_rules_init(struct emu_fault_rules *rules);
void emu_fault_rules_reset(struct emu_fault_rules *rules);
void emu_fault_rules_clear(struct emu_fault_rules *rules);
void emu_fault_rules_show(struct emu_fault_rules *rules, struct seq_file *s);
int emu_fault_rules_command(struct emu_device *edev, struct emu_fault_rules *rules, char *text);
enum emu_fault_action emu_fault_rules_ask(struct emu_fault_rules *rules, u64 seed,
					  const struct emu_fault_site *site, u64 *value);

#endif
