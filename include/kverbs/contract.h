/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reports of the contract checker. Documentation/locking.rst has the rules.
 *
 * The module parameter kverbs.contract switches the checker, at any time, even while
 * devices are in use. People read its reports in the log, with the tracepoint
 * kverbs:ib_contract, or in /sys/kernel/debug/kverbs/contract; tests read them by
 * these calls.
 */
#ifndef KVERBS_CONTRACT_H
#define KVERBS_CONTRACT_H

#include <linux/module.h>
#include <linux/types.h>
#include <rdma/ib_types.h>

/**
 * enum ib_contract_mode - what the checker does
 * @IB_CONTRACT_OFF: nothing, at no cost
 * @IB_CONTRACT_WARN: report each breach of a rule
 * @IB_CONTRACT_PANIC: report the first breach, and panic
 * @IB_CONTRACT_MODES: number of modes
 */
enum ib_contract_mode {
	IB_CONTRACT_OFF,
	IB_CONTRACT_WARN,
	IB_CONTRACT_PANIC,
	IB_CONTRACT_MODES
};

/**
 * enum ib_contract_rule - the rules, by number
 * @IB_RULE_SLEEP: a method that must not sleep has slept
 * @IB_RULE_REENTRANT: methods must cope with calls on many CPUs at once; not checked
 * @IB_RULE_CHAIN: a callback ran inside a verbs call of its device
 * @IB_RULE_ONE_HANDLER: two completion handlers of one CQ ran at a time
 * @IB_RULE_CALLBACK_SLEEP: a callback that must not sleep has slept
 * @IB_RULE_CALLBACK_CONTEXT: a callback returned with preemption, interrupts or
 *	locks other than it found them
 * @IB_RULE_LEFT: a client left something on a device
 * @IB_RULE_GONE: a device was used after its unregistration, or by a client after
 *	its remove()
 * @IB_RULE_OUTPUT: a method reported success without setting all of its output
 * @IB_RULE_REGISTER: something was registered or unregistered in atomic context
 * @IB_RULE_BUSY: an object was destroyed while others used it
 * @IB_RULE_STATE: a request was posted to a QP whose state forbids it
 * @IB_RULES: one more than the last
 */
enum ib_contract_rule {
	IB_RULE_SLEEP = 1,
	IB_RULE_REENTRANT,
	IB_RULE_CHAIN,
	IB_RULE_ONE_HANDLER,
	IB_RULE_CALLBACK_SLEEP,
	IB_RULE_CALLBACK_CONTEXT,
	IB_RULE_LEFT,
	IB_RULE_GONE,
	IB_RULE_OUTPUT,
	IB_RULE_REGISTER,
	IB_RULE_BUSY,
	IB_RULE_STATE,
	IB_RULES
};

/**
 * struct ib_contract_report - report that a rule was broken
 * @nr: number of the report, from 1
 * @rule: the rule
 * @count: how often it was broken, or the number of objects concerned
 * @site: address of the call into the midlayer, of the callback, or of the call that
 *	made the object
 * @device: name of the device; empty if the report is about none
 * @module: module that is to blame, the driver's or the client's; "?" if unknown
 * @object: kind and number of the object; empty if the report is about none
 * @what: what happened, in words
 */
struct ib_contract_report {
	u64 nr;
	enum ib_contract_rule rule;
	unsigned int count;
	unsigned long site;
	char device[IB_DEVICE_NAME_MAX];
	char module[MODULE_NAME_LEN];
	char object[24];
	char what[72];
};

enum ib_contract_mode ib_contract_get_mode(void);
int ib_contract_set_mode(enum ib_contract_mode mode);
u64 ib_contract_count(enum ib_contract_rule rule);
bool ib_contract_read(unsigned int back, struct ib_contract_report *report);

#endif
