// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection by rule: the file rules in /sys/kernel/debug/kverbs_emu/<device>/faults/
 *
 * Each line written to it is a command:
 *
 *   add [<condition>...] <action>
 *   del <number>
 *   clear
 *
 * Conditions say which requests a rule matches, and which of those fail:
 *
 *   qp=<number>	of this queue pair (default: of any)
 *   op=<name>[,...]	of these operations (default: of any that the action applies to)
 *   nth=<n>		the n-th of them, and then, with every=, every every-th
 *   every=<n>		every n-th
 *   rate=<ppm>		this many in a million of them, drawn with the seed of the device
 *   count=<n>		at most n times (default: once with nth= but not every=, else always)
 *
 * and the action, what happens to the request:
 *
 *   status=<name>	it completes with this status, and its queue pair moves to error
 *   delay=<us>		it is executed this much later
 *   drop		its message is lost: a reliable queue pair sends it again after the
 *			timeout, which counts as another request
 *   rnr		it gets an RNR NAK, as if no receive were posted; each retry counts
 *   flap=<ms>		the port goes down before it is executed, for this long
 *   overflow		the next completion finds its CQ full
 *
 * Reading the file shows the rules with their numbers, the number of requests that each matched,
 * and of those that it made fail. The first rule that hits decides; those after it do not count
 * the request.
 */
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fault_rule.h"

#define EMU_FAULT_MAX_DELAY_US	(10 * USEC_PER_SEC)
#define EMU_FAULT_MAX_FLAP_MS	(60 * MSEC_PER_SEC)

/**
 * struct emu_fault_rule - a rule
 * @entry: in the list of its device
 * @rcu: frees it
 * @id: its number
 * @qpn: the queue pair; 0 for any
 * @ops: bit mask of enum ib_wr_opcode
 * @nth: the first request that fails, from 1
 * @every: the distance to the next; 0 for none
 * @rate: per million; 0 for all
 * @count: how many may fail; 0 for any number
 * @action: what happens to a request that fails
 * @value: the amount, in the unit of the action
 * @seen: number of requests that it matched
 * @hits: number of those that it made fail
 */
struct emu_fault_rule {
	struct list_head entry;
	struct rcu_head rcu;
	u32 id;
	u32 qpn;
	u64 ops;
	u64 nth;
	u64 every;
	u32 rate;
	u64 count;
	enum emu_fault_action action;
	u64 value;
	atomic64_t seen;
	atomic64_t hits;
};

static const struct {
	const char *name;
	u64 ops;
} emu_fault_ops[] = {
	{ "send", BIT_ULL(IB_WR_SEND) },
	{ "send_imm", BIT_ULL(IB_WR_SEND_WITH_IMM) },
	{ "send_inv", BIT_ULL(IB_WR_SEND_WITH_INV) },
	{ "write", BIT_ULL(IB_WR_RDMA_WRITE) },
	{ "write_imm", BIT_ULL(IB_WR_RDMA_WRITE_WITH_IMM) },
	{ "read", BIT_ULL(IB_WR_RDMA_READ) },
	{ "read_inv", BIT_ULL(IB_WR_RDMA_READ_WITH_INV) },
	{ "cmp_swap", BIT_ULL(IB_WR_ATOMIC_CMP_AND_SWP) },
	{ "fetch_add", BIT_ULL(IB_WR_ATOMIC_FETCH_AND_ADD) },
	{ "atomic_write", BIT_ULL(IB_WR_ATOMIC_WRITE) },
	{ "local_inv", BIT_ULL(IB_WR_LOCAL_INV) },
	{ "reg_mr", BIT_ULL(IB_WR_REG_MR) },
	{ "bind_mw", BIT_ULL(IB_WR_BIND_MW) },
};

#define EMU_FAULT_OPS_RECV						\
	(BIT_ULL(IB_WR_SEND) | BIT_ULL(IB_WR_SEND_WITH_IMM) |		\
	 BIT_ULL(IB_WR_SEND_WITH_INV) | BIT_ULL(IB_WR_RDMA_WRITE_WITH_IMM))
#define EMU_FAULT_OPS_SENT						\
	(EMU_FAULT_OPS_RECV | BIT_ULL(IB_WR_RDMA_WRITE) |		\
	 BIT_ULL(IB_WR_RDMA_READ) | BIT_ULL(IB_WR_RDMA_READ_WITH_INV) |	\
	 BIT_ULL(IB_WR_ATOMIC_CMP_AND_SWP) | BIT_ULL(IB_WR_ATOMIC_FETCH_AND_ADD) |	\
	 BIT_ULL(IB_WR_ATOMIC_WRITE))

/* The name of each action, the operations it applies to, and the range of its value. */
static const struct {
	const char *name;
	u64 ops;
	u32 min;
	u32 max;
} emu_fault_actions[] = {
	[EMU_FAULT_STATUS] = { "status", U64_MAX },
	[EMU_FAULT_DELAYED] = { "delay", U64_MAX, 1, EMU_FAULT_MAX_DELAY_US },
	[EMU_FAULT_DROP] = { "drop", EMU_FAULT_OPS_SENT },
	[EMU_FAULT_NO_RECEIVE] = { "rnr", EMU_FAULT_OPS_RECV },
	[EMU_FAULT_FLAP] = { "flap", EMU_FAULT_OPS_SENT, 1, EMU_FAULT_MAX_FLAP_MS },
	[EMU_FAULT_OVERFLOW] = { "overflow", U64_MAX },
};

/* --- asking -------------------------------------------------------------------- */

static bool emu_fault_rule_matches(const struct emu_fault_rule *rule,
				   const struct emu_fault_site *site)
{
	if (rule->qpn && rule->qpn != site->qpn)
		return false;
	if (!(rule->ops & BIT_ULL(site->opcode)))
		return false;
	/* These two can befall each attempt to send a message, all others only the first. */
	return !site->retrying || rule->action == EMU_FAULT_DROP ||
	       rule->action == EMU_FAULT_NO_RECEIVE;
}

/* Whether request number @n, counted from 1, is one that @rule selects by position. */
static bool emu_fault_rule_selects(const struct emu_fault_rule *rule, u64 n)
{
	if (n < rule->nth)
		return false;
	return n == rule->nth || (rule->every && !((n - rule->nth) % rule->every));
}

static bool emu_fault_rule_hits(struct emu_fault_rule *rule, u64 seed)
{
	u64 n = atomic64_inc_return(&rule->seen);

	if (!emu_fault_rule_selects(rule, n))
		return false;
	if (rule->rate && emu_fault_roll(seed, EMU_NR_FAULT_KINDS + rule->id, n) >= rule->rate)
		return false;
	/* Atomic, so that concurrent calls do not exceed the count. */
	return atomic64_add_unless(&rule->hits, 1, rule->count ?: S64_MAX);
}

/**
 * emu_fault_rules_ask() - decide by the rules of a device whether a request goes wrong
 * @rules: rules of the device
 * @seed: seed of the device
 * @site: the request
 * @value: set to the amount, in the unit of the action
 *
 * Context: Any.
 * Return: what happens to the request, or EMU_FAULT_NONE.
 */
enum emu_fault_action emu_fault_rules_ask(struct emu_fault_rules *rules, u64 seed,
					  const struct emu_fault_site *site, u64 *value)
{
	enum emu_fault_action action = EMU_FAULT_NONE;
	struct emu_fault_rule *rule;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &rules->list, entry) {
		if (!emu_fault_rule_matches(rule, site) || !emu_fault_rule_hits(rule, seed))
			continue;
		action = rule->action;
		*value = rule->value;
		break;
	}
	rcu_read_unlock();
	return action;
}

/* --- commands ------------------------------------------------------------------ */

static int emu_fault_parse_ops(char *list, u64 *ops)
{
	const char *name;
	unsigned int i;

	*ops = 0;
	while ((name = strsep(&list, ","))) {
		for (i = 0; i < ARRAY_SIZE(emu_fault_ops); i++) {
			if (!strcmp(name, emu_fault_ops[i].name))
				break;
		}
		if (i == ARRAY_SIZE(emu_fault_ops))
			return -EINVAL;
		*ops |= emu_fault_ops[i].ops;
	}
	return 0;
}

/* Sets @to to a number from 1 to @max. Returns 0, or -EINVAL. */
static int emu_fault_parse_number(const char *text, u64 max, u64 *to)
{
	u64 value;

	if (kstrtou64(text, 0, &value) || !value || value > max)
		return -EINVAL;
	*to = value;
	return 0;
}

static int emu_fault_parse_action(struct emu_fault_rule *rule, const char *name, const char *text)
{
	enum emu_fault_action action;
	int status;

	for (action = EMU_FAULT_STATUS; action < ARRAY_SIZE(emu_fault_actions); action++) {
		if (!strcmp(name, emu_fault_actions[action].name))
			break;
	}
	/* A rule has one action. */
	if (action == ARRAY_SIZE(emu_fault_actions) || rule->action)
		return -EINVAL;
	rule->action = action;
	if (action == EMU_FAULT_STATUS) {
		status = text ? emu_fault_parse_status(text) : -EINVAL;
		rule->value = status;
		return min(status, 0);
	}
	if (!emu_fault_actions[action].max)
		return text ? -EINVAL : 0;
	return text ? emu_fault_parse_number(text, emu_fault_actions[action].max, &rule->value) :
		      -EINVAL;
}

static int emu_fault_parse_word(struct emu_fault_rule *rule, char *word)
{
	char *text = word;
	const char *name = strsep(&text, "=");
	u64 value = 0;
	int err;

	if (!text)
		return emu_fault_parse_action(rule, name, NULL);
	if (!strcmp(name, "op"))
		return emu_fault_parse_ops(text, &rule->ops);
	if (!strcmp(name, "nth"))
		return emu_fault_parse_number(text, S64_MAX, &rule->nth);
	if (!strcmp(name, "every"))
		return emu_fault_parse_number(text, S64_MAX, &rule->every);
	if (!strcmp(name, "count"))
		return emu_fault_parse_number(text, S64_MAX, &rule->count);
	if (!strcmp(name, "qp")) {
		err = emu_fault_parse_number(text, IB_QPN_MASK, &value);
		rule->qpn = value;
		return err;
	}
	if (!strcmp(name, "rate")) {
		err = emu_fault_parse_number(text, EMU_FAULT_MILLION, &value);
		rule->rate = value;
		return err;
	}
	return emu_fault_parse_action(rule, name, text);
}

/* Fills in the defaults. Returns -EINVAL if the rule has no action, or operations it cannot hit. */
static int emu_fault_rule_finish(struct emu_fault_rule *rule)
{
	if (!rule->action)
		return -EINVAL;
	if (!rule->ops)
		rule->ops = emu_fault_actions[rule->action].ops;
	else if (rule->ops & ~emu_fault_actions[rule->action].ops)
		return -EINVAL;
	if (!rule->nth && !rule->every)
		rule->every = 1;
	else if (!rule->every && !rule->count)
		rule->count = 1;
	if (!rule->nth)
		rule->nth = rule->every;
	return 0;
}

static int emu_fault_rule_parse(struct emu_device *edev, struct emu_fault_rule *rule, char *text)
{
	char *word;

	while ((word = strsep(&text, " "))) {
		if (*word && emu_fault_parse_word(rule, word)) {
			ibdev_warn(&edev->ibdev, "fault rule: '%s' is an unknown word or has a bad value; see Documentation/emu.rst\n", word);
			return -EINVAL;
		}
	}
	if (emu_fault_rule_finish(rule)) {
		ibdev_warn(&edev->ibdev,
			   "fault rule: needs exactly one action, and operations that it applies to\n");
		return -EINVAL;
	}
	return 0;
}

static int emu_fault_rule_add(struct emu_device *edev, struct emu_fault_rules *rules, char *text)
{
	struct emu_fault_rule *rule;
	int err;

	lockdep_assert_held(&emu_faults_lock);
	if (rules->nr == EMU_FAULT_MAX_RULES)
		return -ENOSPC;
	rule = kzalloc(sizeof(*rule), GFP_KERNEL);
	if (!rule)
		return -ENOMEM;
	err = emu_fault_rule_parse(edev, rule, text);
	if (err) {
		kfree(rule);
		return err;
	}
	rule->id = ++rules->last_id;
	if (!rules->nr++)
		emu_faulty_inc();
	list_add_tail_rcu(&rule->entry, &rules->list);
	return 0;
}

static void emu_fault_rule_del(struct emu_fault_rules *rules, struct emu_fault_rule *rule)
{
	lockdep_assert_held(&emu_faults_lock);
	list_del_rcu(&rule->entry);
	kfree_rcu(rule, rcu);
	if (!--rules->nr)
		emu_faulty_dec();
}

static int emu_fault_rule_del_id(struct emu_fault_rules *rules, const char *text)
{
	struct emu_fault_rule *rule;
	u32 id;

	if (!text || kstrtou32(text, 0, &id))
		return -EINVAL;
	list_for_each_entry(rule, &rules->list, entry) {
		if (rule->id == id) {
			emu_fault_rule_del(rules, rule);
			return 0;
		}
	}
	return -ENOENT;
}

void emu_fault_rules_clear(struct emu_fault_rules *rules)
{
	struct emu_fault_rule *rule, *next;

	lockdep_assert_held(&emu_faults_lock);
	list_for_each_entry_safe(rule, next, &rules->list, entry)
		emu_fault_rule_del(rules, rule);
}

/**
 * emu_fault_rules_command() - execute a line that was written to the file of rules
 * @edev: the device
 * @rules: its rules
 * @text: the line, which is changed
 *
 * Context: Process, with emu_faults_lock held.
 * Return: 0; -EINVAL if it is no valid command, which the log explains; -ENOENT if there is no rule
 * with that number; -ENOSPC if there are EMU_FAULT_MAX_RULES already; -ENOMEM.
 */
int emu_fault_rules_command(struct emu_device *edev, struct emu_fault_rules *rules, char *text)
{
	const char *verb = strsep(&text, " ");

	if (!strcmp(verb, "add"))
		return emu_fault_rule_add(edev, rules, text);
	if (!strcmp(verb, "del"))
		return emu_fault_rule_del_id(rules, text);
	if (!strcmp(verb, "clear") && !text) {
		emu_fault_rules_clear(rules);
		return 0;
	}
	ibdev_warn(&edev->ibdev, "fault rule: '%s' is not add, del or clear\n", verb);
	return -EINVAL;
}

/* --- showing ------------------------------------------------------------------- */

static void emu_fault_show_ops(const struct emu_fault_rule *rule, struct seq_file *s)
{
	const char *mark = " op=";
	unsigned int i;

	if (rule->ops == emu_fault_actions[rule->action].ops)
		return;
	for (i = 0; i < ARRAY_SIZE(emu_fault_ops); i++) {
		if (rule->ops & emu_fault_ops[i].ops) {
			seq_printf(s, "%s%s", mark, emu_fault_ops[i].name);
			mark = ",";
		}
	}
}

static void emu_fault_rule_show(const struct emu_fault_rule *rule, struct seq_file *s)
{
	seq_printf(s, "%u", rule->id);
	if (rule->qpn)
		seq_printf(s, " qp=%u", rule->qpn);
	emu_fault_show_ops(rule, s);
	seq_printf(s, " nth=%llu", rule->nth);
	if (rule->every)
		seq_printf(s, " every=%llu", rule->every);
	if (rule->rate)
		seq_printf(s, " rate=%u", rule->rate);
	if (rule->count)
		seq_printf(s, " count=%llu", rule->count);
	seq_printf(s, " %s", emu_fault_actions[rule->action].name);
	if (rule->action == EMU_FAULT_STATUS)
		seq_printf(s, "=%s", emu_fault_status_name(rule->value));
	else if (rule->value)
		seq_printf(s, "=%llu", rule->value);
	seq_printf(s, " seen=%lld hits=%lld\n", (s64)atomic64_read(&rule->seen),
		   (s64)atomic64_read(&rule->hits));
}

/* Process context, with emu_faults_lock held. */
void emu_fault_rules_show(struct emu_fault_rules *rules, struct seq_file *s)
{
	const struct emu_fault_rule *rule;

	lockdep_assert_held(&emu_faults_lock);
	list_for_each_entry(rule, &rules->list, entry)
		emu_fault_rule_show(rule, s);
}

/* Resets the counts of all rules. */
void emu_fault_rules_reset(struct emu_fault_rules *rules)
{
	struct emu_fault_rule *rule;

	lockdep_assert_held(&emu_faults_lock);
	list_for_each_entry(rule, &rules->list, entry) {
		atomic64_set(&rule->seen, 0);
		atomic64_set(&rule->hits, 0);
	}
}

void emu_fault_rules_init(struct emu_fault_rules *rules)
{
	INIT_LIST_HEAD(&rules->list);
}
