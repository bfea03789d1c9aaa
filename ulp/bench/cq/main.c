// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_cqbench: what the CQ layer costs, and how it behaves under load. It
 * uses mainline's verbs API only, so it builds against mainline's headers as
 * well and compares the two. Its messages are RDMA WRITEs of no bytes, which
 * every queue pair sends to itself.
 *
 * Locks: cqb_mutex is held for the duration of a run, and guards the result.
 * cqb_devs_lock guards the list of devices and cqb_current: a run either does not
 * find a device that is being removed, or is stopped; then the removal takes
 * cqb_mutex to wait for its end. cqb_devs_lock nests inside cqb_mutex.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "cqbench.h"

#define CQB_MAX_LINE	512

static const char cqb_help[] =
"echo \"key=value ...\" > run, then read result.\n"
"\n"
"mode=burst     what a completion costs. All messages of a burst are complete\n"
"               before the first one is polled. Needs one processor.\n"
"mode=load      rate and delay; messages come at a rate, or one for another\n"
"mode=post      what a post costs; with ctx=bare the driver's method alone, with\n"
"               ctx=direct a task's, with ctx=hardirq that of a hard interrupt, else\n"
"               that of a done(). Needs one processor.\n"
"mode=recv      the same of receives\n"
"mode=srq       the same of receives of an SRQ\n"
"ctx=workqueue  softirq, workqueue, unbound, thread (kverbs only), direct;\n"
"               with mode=burst also bare: a plain loop of ib_poll_cq(); with\n"
"               mode=post, recv and srq also bare and hardirq\n"
"device=        name of the device; the first one\n"
"port=1         its port\n"
"cqs=1          completion queues, each with a queue pair\n"
"count=4096     messages: of the run; of a burst, for each CQ\n"
"rounds=8       bursts, after one that warms up; the fastest one counts\n"
"rate=0         messages a second, arriving at random; 0: closed loop\n"
"window=1024    messages outstanding in all, with rate=0\n"
"delay=1        take the delay of each message, with mode=load\n"
"tick=16        microseconds between the interrupts that post, at least\n"
"seed=1         of the arrivals\n"
"timeout=60     seconds\n"
"\n"
"The result is one line of key=value: device mode ctx cqs count rate window,\n"
"done (completions), ns (of the fastest burst; or of the run), each_ps (ns for\n"
"each completion, in thousandths), per_s (completions a second), wake_ns (from\n"
"the notification to the first done(), the shortest), bursts, schedules\n"
"(notifications that woke the polling context), p50 p99 p999 max (delay from\n"
"post to done() in ns), cqe_p50 cqe_p99 cqe_p999 cqe_max (from the completion\n"
"to done(), with kverbs.cq_timing=1), stalls (interrupts that found a send\n"
"queue full), err and verdict (ok or fail).\n"
"\n"
"A write to run returns the run's error: -EINVAL, -ERANGE for parameters,\n"
"-ENODEV, -EBUSY, -EIO after a completion in error, -EAGAIN if a burst was not\n"
"complete in time, -ETIMEDOUT, -EINTR, or what the verbs layer returned.\n";

#define CQB_KEY(field, str)						\
	{ #field, offsetof(struct cqb_params, field), str }

static const struct {
	const char *name;
	size_t at;
	size_t str;	/* size of a string, 0 for a number */
} cqb_keys[] = {
	CQB_KEY(device, CQB_STR),
	CQB_KEY(mode, sizeof_field(struct cqb_params, mode)),
	CQB_KEY(ctx, sizeof_field(struct cqb_params, ctx)),
	CQB_KEY(port, 0), CQB_KEY(cqs, 0), CQB_KEY(count, 0),
	CQB_KEY(rounds, 0), CQB_KEY(window, 0), CQB_KEY(rate, 0),
	CQB_KEY(delay, 0), CQB_KEY(tick, 0), CQB_KEY(seed, 0),
	CQB_KEY(timeout, 0),
};

static const struct cqb_params cqb_defaults = {
	.mode = "burst",
	.ctx = "workqueue",
	.port = 1,
	.cqs = 1,
	.count = 4096,
	.rounds = 8,
	.window = 1024,
	.delay = 1,
	.tick = 16,
	.seed = 1,
	.timeout = 60,
};

/* A device that can be used. */
struct cqb_dev {
	struct list_head list;
	struct ib_device *ibdev;
};

static char cqb_result_line[CQB_MAX_LINE];
static DEFINE_MUTEX(cqb_mutex);

static LIST_HEAD(cqb_devs);
static struct cqb_run *cqb_current;
static DEFINE_SPINLOCK(cqb_devs_lock);

static struct dentry *cqb_dir;

static int cqb_add(struct ib_device *ibdev);
static void cqb_remove(struct ib_device *ibdev, void *client_data);

static struct ib_client cqb_client = {
	.name = "cqbench",
	.add = cqb_add,
	.remove = cqb_remove,
};

static int cqb_add(struct ib_device *ibdev)
{
	struct cqb_dev *cdev = kzalloc(sizeof(*cdev), GFP_KERNEL);

	if (!cdev)
		return -ENOMEM;
	cdev->ibdev = ibdev;
	ib_set_client_data(ibdev, &cqb_client, cdev);
	spin_lock(&cqb_devs_lock);
	list_add_tail(&cdev->list, &cqb_devs);
	spin_unlock(&cqb_devs_lock);
	return 0;
}

static void cqb_remove(struct ib_device *ibdev, void *client_data)
{
	struct cqb_dev *cdev = client_data;
	bool used;

	spin_lock(&cqb_devs_lock);
	list_del(&cdev->list);
	used = cqb_current && cqb_current->dev == ibdev;
	if (used)
		cqb_stop(cqb_current, -ENODEV);
	spin_unlock(&cqb_devs_lock);
	kfree(cdev);
	if (!used)
		return;
	mutex_lock(&cqb_mutex);
	mutex_unlock(&cqb_mutex);
}

static struct ib_device *cqb_find(const char *name)
{
	struct cqb_dev *cdev;

	lockdep_assert_held(&cqb_devs_lock);
	list_for_each_entry(cdev, &cqb_devs, list)
		if (!*name || !strcmp(cdev->ibdev->name, name))
			return cdev->ibdev;
	pr_err("no RDMA device %s\n", name);
	return NULL;
}

/*
 * Finds the device, whose removal stops the run, and waits for it, until cqb_end(). Returns 0, or
 * -ENODEV without a device.
 */
static int cqb_begin(struct cqb_run *run)
{
	spin_lock(&cqb_devs_lock);
	run->dev = cqb_find(run->p.device);
	if (run->dev)
		cqb_current = run;
	spin_unlock(&cqb_devs_lock);
	return run->dev ? 0 : -ENODEV;
}

static void cqb_end(void)
{
	spin_lock(&cqb_devs_lock);
	cqb_current = NULL;
	spin_unlock(&cqb_devs_lock);
}

static void cqb_print(const struct cqb_run *run, const struct cqb_result *r)
{
	const struct cqb_params *p = &run->p;
	u64 per_s = r->each_ps ?
		    div64_u64(NSEC_PER_SEC * 1000ULL, r->each_ps) : 0;

	lockdep_assert_held(&cqb_mutex);
	scnprintf(cqb_result_line, sizeof(cqb_result_line),
		  "device=%s mode=%s ctx=%s cqs=%u count=%u rate=%u window=%u done=%llu ns=%llu each_ps=%llu per_s=%llu wake_ns=%llu bursts=%u schedules=%llu p50=%u p99=%u p999=%u max=%u cqe_p50=%u cqe_p99=%u cqe_p999=%u cqe_max=%u stalls=%llu err=%d verdict=%s",
		  run->dev->name, p->mode, p->ctx, p->cqs, p->count,
		  p->rate, p->window, r->done, r->ns, r->each_ps, per_s,
		  r->wake_ns, p->rounds, r->schedules, r->delay_ns[CQB_P50],
		  r->delay_ns[CQB_P99], r->delay_ns[CQB_P999],
		  r->delay_ns[CQB_MAX], r->cqe_ns[CQB_P50], r->cqe_ns[CQB_P99],
		  r->cqe_ns[CQB_P999], r->cqe_ns[CQB_MAX], r->stalls, r->err,
		  r->err ? "fail" : "ok");
}

static int cqb_perform(struct cqb_run *run)
{
	struct cqb_result res = {};
	int ret;

	lockdep_assert_held(&cqb_mutex);
	cqb_result_line[0] = '\0';
	ret = cqb_run_prepare(run) ?: cqb_begin(run);
	if (ret)
		return ret;
	ret = cqb_run(run, &res);
	if (!ret)
		cqb_print(run, &res);
	cqb_end();
	return ret ?: res.err;
}

static int cqb_parse_one(struct cqb_params *p, char *word)
{
	char *val = strchr(word, '=');
	unsigned int i;
	void *field;

	if (!val)
		return -EINVAL;
	*val++ = '\0';
	for (i = 0; i < ARRAY_SIZE(cqb_keys); i++) {
		if (strcmp(word, cqb_keys[i].name))
			continue;
		field = (void *)p + cqb_keys[i].at;
		if (!cqb_keys[i].str)
			return kstrtouint(val, 0, field);
		return strscpy(field, val, cqb_keys[i].str) < 0 ? -EINVAL : 0;
	}
	return -EINVAL;
}

static void cqb_report_bad(const char *word)
{
	char keys[256] = "";
	int i, len = 0;

	for (i = 0; i < ARRAY_SIZE(cqb_keys); i++)
		len += scnprintf(keys + len, sizeof(keys) - len, " %s", cqb_keys[i].name);
	pr_err("'%s': unknown key or bad value; the keys are%s\n", word, keys);
}

static int cqb_parse(struct cqb_params *p, char *line)
{
	char *word;

	while ((word = strsep(&line, " \t\n"))) {
		if (*word && cqb_parse_one(p, word)) {
			cqb_report_bad(word);
			return -EINVAL;
		}
	}
	return 0;
}

static ssize_t cqb_run_write(struct file *file, const char __user *buf,
			     size_t len, loff_t *ppos)
{
	char line[CQB_MAX_LINE];
	struct cqb_run *run;
	int ret;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->p = cqb_defaults;
	ret = cqb_parse(&run->p, line);
	if (ret)
		goto out_free;
	ret = -EBUSY;
	if (!mutex_trylock(&cqb_mutex))
		goto out_free;
	ret = cqb_perform(run);
	mutex_unlock(&cqb_mutex);
out_free:
	kfree(run);
	return ret ?: len;
}

static const struct file_operations cqb_run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = cqb_run_write,
};

static int cqb_result_show(struct seq_file *m, void *unused)
{
	int ret = mutex_lock_interruptible(&cqb_mutex);

	if (ret)
		return ret;
	if (cqb_result_line[0])
		seq_printf(m, "%s\n", cqb_result_line);
	mutex_unlock(&cqb_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cqb_result);

static int cqb_help_show(struct seq_file *m, void *unused)
{
	seq_puts(m, cqb_help);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cqb_help);

static int __init cqb_init(void)
{
	int ret = ib_register_client(&cqb_client);

	if (ret)
		return ret;
	cqb_dir = debugfs_create_dir("kverbs_cqbench", NULL);
	debugfs_create_file("run", 0200, cqb_dir, NULL, &cqb_run_fops);
	debugfs_create_file("result", 0400, cqb_dir, NULL, &cqb_result_fops);
	debugfs_create_file("help", 0400, cqb_dir, NULL, &cqb_help_fops);
	return 0;
}

static void __exit cqb_exit(void)
{
	debugfs_remove(cqb_dir);
	ib_unregister_client(&cqb_client);
}

module_init(cqb_init);
module_exit(cqb_exit);

MODULE_DESCRIPTION("Benchmark: cost of completion queues, and their behavior under load");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
