// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_hotplug: a client that has every kind of queue on every device, with
 * traffic, and queue pairs in every state. It accounts for each work request when the
 * device or the client is removed. Documentation/hotplug.rst explains the purpose.
 *
 * Parameters:
 *
 *  messages=50     messages that each kind of queue in a session sends back to back;
 *		    later ones follow at intervals
 *  first=0	    the number of the first session; sessions vary what they do by their
 *		    number
 *  links=0	    with 1, links go down during the test: sends may give up
 *  bound_ms=10000  time limit for remove()
 *  starved=0	    with 1, allocations are made to fail: a session that cannot begin for
 *		    lack of memory is not a failure
 *  fault=none      a deliberate bug of this module: lose, double, late, no_drain,
 *		    forget, slow, idle, wrong, error, open; see enum hp_fault
 *
 * <debugfs>/kverbs_hotplug/stats contains the counters of struct hp_stats as a line
 * of key=value. The module also logs those that should be 0 and are not, with "BUG:",
 * at the end of each session, and the longest remove() when it is unloaded.
 * <debugfs>/kverbs_hotplug/gate and device: see gate.c, provider.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "hotplug.h"

struct hp_stats hp_stats;
enum hp_fault hp_fault;
struct workqueue_struct *hp_wq;

unsigned int hp_messages = 50;
module_param_named(messages, hp_messages, uint, 0444);
MODULE_PARM_DESC(messages, "Messages that each kind of queue sends back to back before more follow (default: 50)");

unsigned int hp_first;
module_param_named(first, hp_first, uint, 0444);
MODULE_PARM_DESC(first, "Number of the first session; selects the variation (default: 0)");

bool hp_links;
module_param_named(links, hp_links, bool, 0444);
MODULE_PARM_DESC(links, "Links go down, so sends may exceed their retries (default: N)");

unsigned int hp_bound_ms = 10000;
module_param_named(bound_ms, hp_bound_ms, uint, 0444);
MODULE_PARM_DESC(bound_ms, "Max time in ms that remove() may take (default: 10000)");

static bool starved;
module_param(starved, bool, 0444);
MODULE_PARM_DESC(starved, "Allocations are made to fail: a session without memory does not count as failed (default: N)");

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault,
		 "Bug to seed: none, lose, double, late, no_drain, forget, slow, idle, wrong, error or open (default: none)");

static const char * const hp_fault_names[HP_FAULTS] = {
	[HP_NO_FAULT] = "none",
	[HP_LOSE] = "lose",
	[HP_DOUBLE] = "double",
	[HP_LATE] = "late",
	[HP_NO_DRAIN] = "no_drain",
	[HP_FORGET] = "forget",
	[HP_SLOW] = "slow",
	[HP_IDLE] = "idle",
	[HP_WRONG] = "wrong",
	[HP_ERROR] = "error",
	[HP_OPEN] = "open",
};

static const char * const hp_kind_names[HP_KINDS] = {
	[HP_DIRECT] = "direct",
	[HP_SOFTIRQ] = "softirq",
	[HP_THREAD] = "thread",
	[HP_WORKQUEUE] = "workqueue",
	[HP_UNBOUND] = "unbound",
	[HP_PLAIN] = "plain",
	[HP_STATES] = "states",
};

static const char * const hp_op_names[HP_OPS] = {
	[HP_SEND] = "sends",
	[HP_WRITE] = "writes",
	[HP_READ] = "reads",
	[HP_ADD] = "atomics",
};

static const char * const hp_state_names[HP_QP_STATES] = {
	[IB_QPS_RESET] = "reset",
	[IB_QPS_INIT] = "init",
	[IB_QPS_RTR] = "rtr",
	[IB_QPS_RTS] = "rts",
	[IB_QPS_SQD] = "sqd",
	[IB_QPS_SQE] = "sqe",
	[IB_QPS_ERR] = "err",
};

static int hp_add(struct ib_device *dev);
static void hp_remove(struct ib_device *dev, void *client_data);

static struct ib_client hp_client = {
	.name = "hotplug",
	.add = hp_add,
	.remove = hp_remove,
};

static struct dentry *hp_dir;

static int hp_add(struct ib_device *dev)
{
	struct hp_session *s;

	if (hp_is_own_device(dev))
		return -EOPNOTSUPP;
	s = hp_session_begin(dev);
	if (IS_ERR(s)) {
		if (!starved || PTR_ERR(s) != -ENOMEM)
			atomic_inc(&hp_stats.failed);
		pr_err("%s: cannot start a session (%ld)\n", dev_name(&dev->dev), PTR_ERR(s));
		return PTR_ERR(s);
	}
	ib_set_client_data(dev, &hp_client, s);
	atomic_inc(&hp_stats.adds);
	return 0;
}

static void hp_note_time(u64 start)
{
	int us = (int)min_t(u64, (ktime_get_ns() - start) / NSEC_PER_USEC, INT_MAX);
	int longest = atomic_read(&hp_stats.longest_us);

	while (us > longest && !atomic_try_cmpxchg(&hp_stats.longest_us, &longest, us))
		;
	if (us / USEC_PER_MSEC >= hp_bound_ms)
		atomic_inc(&hp_stats.over);
}

/* Logs, in one line, the counters that must be 0 and are not. */
static void hp_complain(const char *name)
{
	int failed = atomic_read(&hp_stats.failed), errors = atomic_read(&hp_stats.errors);
	int lost = atomic_read(&hp_stats.lost), doubled = atomic_read(&hp_stats.doubled);
	int late = atomic_read(&hp_stats.late), wrong = atomic_read(&hp_stats.wrong);
	int idle = atomic_read(&hp_stats.idle), over = atomic_read(&hp_stats.over);

	if (failed || errors || lost || doubled || late || wrong || idle || over)
		pr_err("BUG: %s: failed=%d errors=%d lost=%d doubled=%d late=%d wrong=%d idle=%d over=%d longest_us=%d\n",
		       name, failed, errors, lost, doubled, late, wrong, idle, over,
		       atomic_read(&hp_stats.longest_us));
}

static void hp_remove(struct ib_device *dev, void *client_data)
{
	u64 start = ktime_get_ns();

	hp_session_end(client_data);
	if (hp_fault == HP_SLOW)
		msleep(hp_bound_ms + 1);
	hp_note_time(start);
	atomic_inc(&hp_stats.removes);
	hp_complain(dev_name(&dev->dev));
}

static int hp_stats_show(struct seq_file *m, void *unused)
{
	const struct {
		const char *name;
		const atomic_t *value;
	} counts[] = {
		{ "adds", &hp_stats.adds },
		{ "removes", &hp_stats.removes },
		{ "failed", &hp_stats.failed },
		{ "posted", &hp_stats.posted },
		{ "completed", &hp_stats.completed },
		{ "flushed", &hp_stats.flushed },
		{ "bad", &hp_stats.bad },
		{ "retries", &hp_stats.retries },
		{ "errors", &hp_stats.errors },
		{ "lost", &hp_stats.lost },
		{ "doubled", &hp_stats.doubled },
		{ "late", &hp_stats.late },
		{ "wrong", &hp_stats.wrong },
		{ "idle", &hp_stats.idle },
		{ "over", &hp_stats.over },
		{ "longest_us", &hp_stats.longest_us },
		{ "shared", &hp_stats.shared },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		seq_printf(m, "%s=%d ", counts[i].name, atomic_read(counts[i].value));
	for (i = 0; i < HP_OPS; i++)
		seq_printf(m, "%s=%d ", hp_op_names[i], atomic_read(&hp_stats.done[i]));
	for (i = 0; i < HP_STATES; i++)
		seq_printf(m, "%s=%d ", hp_kind_names[i], atomic_read(&hp_stats.moved[i]));
	for (i = 0; i < HP_KINDS; i++)
		seq_printf(m, "%s_out=%d ", hp_kind_names[i], atomic_read(&hp_stats.out[i]));
	for (i = 0; i < HP_QP_STATES; i++)
		seq_printf(m, "%s=%d ", hp_state_names[i], atomic_read(&hp_stats.states[i]));
	seq_putc(m, '\n');
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hp_stats);

static int __init hp_init(void)
{
	int ret;

	ret = match_string(hp_fault_names, HP_FAULTS, fault);
	if (ret < 0) {
		pr_err("fault=%s: unknown fault\n", fault);
		return ret;
	}
	hp_fault = ret;
	hp_wq = alloc_workqueue("kverbs_hotplug", WQ_UNBOUND, 0);
	if (!hp_wq)
		return -ENOMEM;
	hp_dir = debugfs_create_dir("kverbs_hotplug", NULL);
	debugfs_create_file("stats", 0400, hp_dir, NULL, &hp_stats_fops);
	ret = ib_register_client(&hp_client);
	if (ret) {
		debugfs_remove(hp_dir);
		destroy_workqueue(hp_wq);
		return ret;
	}
	hp_gate_init(hp_dir);
	hp_provider_init(hp_dir);
	return 0;
}

static void __exit hp_exit(void)
{
	debugfs_remove(hp_dir);
	hp_provider_exit();
	hp_gate_exit();
	ib_unregister_client(&hp_client);
	destroy_workqueue(hp_wq);
	pr_info("longest remove() took %d us\n", atomic_read(&hp_stats.longest_us));
}

module_init(hp_init);
module_exit(hp_exit);

MODULE_DESCRIPTION("Checks that a client gets a completion for each work request when a device is removed");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
