// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: its switch, and the handling of its reports.
 *
 * A report is logged, traced, counted and saved. Reports come from any context, NMI
 * included.
 *
 * Lock protocol: mode_lock (a mutex) orders changes of the mode. event_callers_lock (a
 * spinlock) guards the list of tasks that call event handlers, and is innermost. recent_lock
 * (a raw spinlock, taken with interrupts off) guards the saved reports; nothing is taken
 * inside it. A report from an NMI that finds it taken is not saved, only logged, traced and
 * counted.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "contract.h"
#include "export.h"
#include "trace.h"

/* Enough to see what preceded a report. */
#define RECENT_REPORTS	32

/* If every message breaks a rule, the first few lines in the log suffice. */
#define LOG_INTERVAL	(5 * HZ)
#define LOG_BURST	20

DEFINE_STATIC_KEY_FALSE(ib_contract_key);
IB_EXPORT_INTERNAL(ib_contract_key);

static const char * const mode_names[IB_CONTRACT_MODES] = {
	[IB_CONTRACT_OFF]	= "off",
	[IB_CONTRACT_WARN]	= "warn",
	[IB_CONTRACT_PANIC]	= "panic",
};

static const char * const rule_names[IB_RULES] = {
	[IB_RULE_SLEEP]			= "sleep in a method",
	[IB_RULE_REENTRANT]		= "reentrant methods",
	[IB_RULE_CHAIN]			= "callback in a call chain",
	[IB_RULE_ONE_HANDLER]		= "one handler at a time",
	[IB_RULE_CALLBACK_SLEEP]	= "sleep in a callback",
	[IB_RULE_CALLBACK_CONTEXT]	= "context changed by a callback",
	[IB_RULE_LEFT]			= "left behind",
	[IB_RULE_GONE]			= "use after the end",
	[IB_RULE_OUTPUT]		= "output missing",
	[IB_RULE_REGISTER]		= "registration in atomic context",
	[IB_RULE_BUSY]			= "destroyed in use",
	[IB_RULE_STATE]			= "post in a wrong state",
};

static DEFINE_MUTEX(mode_lock);
static enum ib_contract_mode contract_mode;

static atomic64_t counts[IB_RULES];
static atomic64_t last_nr;

static DEFINE_RAW_SPINLOCK(recent_lock);
static struct ib_contract_report recent[RECENT_REPORTS];
static unsigned int nr_recent;

/* Tasks that call event handlers. */
static LIST_HEAD(event_callers);
static DEFINE_SPINLOCK(event_callers_lock);

static BLOCKING_NOTIFIER_HEAD(mode_notifiers);

static DEFINE_RATELIMIT_STATE(log_limit, LOG_INTERVAL, LOG_BURST);

/**
 * ib_contract_get_mode() - get the mode of the checker
 *
 * Context: Any.
 * Return: the mode.
 */
enum ib_contract_mode ib_contract_get_mode(void)
{
	return READ_ONCE(contract_mode);
}
EXPORT_SYMBOL_GPL(ib_contract_get_mode);

/**
 * ib_contract_set_mode() - switch the checker, as the module parameter "contract" does
 * @mode: the mode
 *
 * Calls in progress when the checker is switched on are not watched; those in progress when
 * it is switched off are not reported.
 *
 * Context: Process, may sleep.
 * Return: 0; -EINVAL if there is no such mode; -EOPNOTSUPP for any mode but off on a kernel
 * with PREEMPT_RT.
 */
int ib_contract_set_mode(enum ib_contract_mode mode)
{
	if ((unsigned int)mode >= IB_CONTRACT_MODES)
		return -EINVAL;
	/* There, a thread that waits for a spinlock sleeps, and softirqs run in tasks. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && mode != IB_CONTRACT_OFF)
		return -EOPNOTSUPP;
	mutex_lock(&mode_lock);
	/* Set before the first report, because that may have to panic. */
	WRITE_ONCE(contract_mode, mode);
	if (mode != IB_CONTRACT_OFF && !static_key_enabled(&ib_contract_key)) {
		static_branch_enable(&ib_contract_key);
		/* Posts and polls test one key for all that watches them. */
		ib_verbs_watch();
	} else if (mode == IB_CONTRACT_OFF && static_key_enabled(&ib_contract_key)) {
		ib_verbs_unwatch();
		static_branch_disable(&ib_contract_key);
	}
	mutex_unlock(&mode_lock);
	blocking_notifier_call_chain(&mode_notifiers, mode, NULL);
	return 0;
}
EXPORT_SYMBOL_GPL(ib_contract_set_mode);

/* @nb is called with the new mode after each time that it was set. */
int ib_contract_register_notifier(struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&mode_notifiers, nb);
}

void ib_contract_unregister_notifier(struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&mode_notifiers, nb);
}

static int contract_param_set(const char *val, const struct kernel_param *kp)
{
	int mode = sysfs_match_string(mode_names, val);

	if (mode < 0) {
		pr_warn("contract: must be off, warn or panic\n");
		return mode;
	}
	/* Not an error: it must not keep the module from being loaded. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && mode != IB_CONTRACT_OFF) {
		pr_warn("contract: stays off, not supported with PREEMPT_RT\n");
		return 0;
	}
	return ib_contract_set_mode(mode);
}

static int contract_param_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", mode_names[ib_contract_get_mode()]);
}

static const struct kernel_param_ops contract_param_ops = {
	.set = contract_param_set,
	.get = contract_param_get,
};
module_param_cb(contract, &contract_param_ops, NULL, 0644);
MODULE_PARM_DESC(contract,
		 "Check that drivers and clients keep the contract of the midlayer: off, warn, or panic at the first breach (default: off)");

/**
 * ib_contract_count() - get the number of reports about a rule
 * @rule: the rule
 *
 * Context: Any.
 * Return: the number of reports since the module was loaded; 0 if there is no such rule.
 */
u64 ib_contract_count(enum ib_contract_rule rule)
{
	return (unsigned int)rule < IB_RULES ? atomic64_read(&counts[rule]) : 0;
}
EXPORT_SYMBOL_GPL(ib_contract_count);

/**
 * ib_contract_read() - read one of the latest reports
 * @back: which one: 0 is the latest, 1 the one before it
 * @report: filled in
 *
 * Context: Any but NMI.
 * Return: true; false if there have not been that many reports, or this one is
 * not saved any more.
 */
bool ib_contract_read(unsigned int back, struct ib_contract_report *report)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&recent_lock, flags);
	found = back < min_t(unsigned int, nr_recent, RECENT_REPORTS);
	if (found)
		*report = recent[(nr_recent - 1 - back) % RECENT_REPORTS];
	raw_spin_unlock_irqrestore(&recent_lock, flags);
	return found;
}
EXPORT_SYMBOL_GPL(ib_contract_read);

static void save_report(const struct ib_contract_report *report)
{
	unsigned long flags;

	if (in_nmi()) {
		if (!raw_spin_trylock_irqsave(&recent_lock, flags))
			return;
	} else {
		raw_spin_lock_irqsave(&recent_lock, flags);
	}
	recent[nr_recent++ % RECENT_REPORTS] = *report;
	/* Keeps both the number of saved reports and the index of the next one right. */
	if (unlikely(nr_recent == UINT_MAX))
		nr_recent = nr_recent % RECENT_REPORTS + RECENT_REPORTS;
	raw_spin_unlock_irqrestore(&recent_lock, flags);
}

/* An address within the module of the device's driver. */
unsigned long ib_contract_driver(const struct ib_device *dev)
{
	return (unsigned long)dev->ops.query_device;
}

static void describe_report(struct ib_contract_report *report, const struct ib_device *dev,
			    const struct rdma_restrack_entry *res, unsigned long culprit)
{
	if (dev)
		ib_copy_device_name(report->device, dev);
	if (res)
		snprintf(report->object, sizeof(report->object), "%s %u",
			 rdma_restrack_kind(res->type), res->id);
	/* The module that made the object has been unloaded since. */
	if (!culprit && res && res->kern_name)
		strscpy(report->module, res->kern_name, sizeof(report->module));
	else
		ib_module_name(culprit, report->module, sizeof(report->module));
}

#define REPORT_FMT	"contract, rule %u: %s: %s: %s%s%s"

static void log_report(const struct ib_contract_report *r)
{
	const char *device = r->device[0] ? r->device : "no device";
	const char *colon = r->object[0] ? ": " : "";

	/* There is no site if there are several, or if its module has been unloaded. */
	if (r->site)
		pr_warn(REPORT_FMT ", %pS\n", r->rule, r->module, device, r->object, colon,
			r->what, (void *)r->site);
	else
		pr_warn(REPORT_FMT "\n", r->rule, r->module, device, r->object, colon, r->what);
}

/**
 * ib_contract_report() - report that a rule was broken
 * @rule: which rule
 * @dev: the device, or NULL
 * @res: tracking entry of the object, or NULL
 * @culprit: an address in the module to blame
 * @site: where it happened, see &struct ib_contract_report
 * @count: how often it happened, or to how many objects
 * @fmt: format of the text that says what happened
 *
 * Does nothing while the checker is off.
 *
 * Context: Any, NMI included.
 */
void ib_contract_report(enum ib_contract_rule rule, const struct ib_device *dev,
			const struct rdma_restrack_entry *res, unsigned long culprit,
			unsigned long site, unsigned int count, const char *fmt, ...)
{
	struct ib_contract_report report = {
		.rule = rule,
		.count = count,
		.site = site,
	};
	va_list args;

	if (!ib_contract_on())
		return;
	report.nr = atomic64_inc_return(&last_nr);
	describe_report(&report, dev, res, culprit);
	va_start(args, fmt);
	vscnprintf(report.what, sizeof(report.what), fmt, args);
	va_end(args);

	atomic64_inc(&counts[rule]);
	save_report(&report);
	trace_ib_contract(&report);
	if (__ratelimit(&log_limit))
		log_report(&report);
	if (ib_contract_get_mode() == IB_CONTRACT_PANIC)
		panic("kverbs: rule %u of the contract was broken by %s\n", rule, report.module);
}

/* Process context. */
void ib_event_call_begin(struct ib_event_caller *caller)
{
	caller->task = current;
	spin_lock(&event_callers_lock);
	list_add(&caller->list, &event_callers);
	spin_unlock(&event_callers_lock);
}

void ib_event_call_end(struct ib_event_caller *caller)
{
	spin_lock(&event_callers_lock);
	list_del(&caller->list);
	spin_unlock(&event_callers_lock);
}

/* Is the caller a handler of events of a device? Process context. */
static bool in_event_handler(void)
{
	const struct ib_event_caller *caller;
	bool found = false;

	spin_lock(&event_callers_lock);
	list_for_each_entry(caller, &event_callers, list)
		found |= caller->task == current;
	spin_unlock(&event_callers_lock);
	return found;
}

/*
 * Returns whether the caller is in a context where it may not sleep, or in an event handler,
 * for which registrations wait; if so, that is reported. @dev is NULL if no device is concerned.
 */
bool ib_called_atomic(const struct ib_device *dev, const char *what, const void *caller)
{
	unsigned long site = (unsigned long)caller;
	const char *where = "in atomic context";

	if (!ib_in_atomic()) {
		if (!in_event_handler())
			return false;
		where = "in an event handler";
	}
	pr_warn_ratelimited("%pS %s %s, which is not allowed: use a work item\n",
			    caller, what, where);
	ib_contract_report(IB_RULE_REGISTER, dev, NULL, ib_contract_culprit(site), site, 1,
			   "%s %s", what, where);
	return true;
}

/* Fills the file "contract" in debugfs. */
void ib_contract_show(struct seq_file *s)
{
	struct ib_contract_report report;
	unsigned int i;

	seq_printf(s, "mode: %s\n", mode_names[ib_contract_get_mode()]);
	for (i = IB_RULE_SLEEP; i < IB_RULES; i++)
		if (i != IB_RULE_REENTRANT)
			seq_printf(s, "rule %u, %s: %llu\n", i, rule_names[i],
				   ib_contract_count(i));
	seq_printf(s, "not watched for lack of room: %u\n", ib_chains_missed());
	for (i = 0; ib_contract_read(i, &report); i++)
		seq_printf(s, "report=%llu rule=%u module=%s device=%s object=\"%s\" count=%u site=%pS: %s\n",
			   report.nr, report.rule, report.module,
			   report.device[0] ? report.device : "-", report.object, report.count,
			   (void *)report.site, report.what);
}
