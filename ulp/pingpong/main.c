// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_pingpong: sends messages from one RDMA device to another, checks
 * every byte and measures. It uses mainline's verbs API only, so it builds
 * against mainline's headers as well and compares devices.
 *
 * Parameters of the module, which are the defaults of later runs, and keys of
 * a line written to <debugfs>/kverbs_pingpong/run ("size=4096 op=write ..."):
 *
 *  initiator=emu0  device that posts the messages
 *  target=emu1     device at the other end; may be the same one
 *  iport=1 tport=1 their ports
 *  ctx=workqueue   direct, softirq, thread (kverbs only), workqueue or unbound
 *  op=send         send, send_imm, write, write_imm, read or fetch_add;
 *                  memcpy: the CPU copies instead, for comparison
 *  size=64         bytes of a message; 8 with fetch_add
 *  window=64       messages outstanding per pair; 1 is ping-pong
 *  iters=10000     messages per pair
 *  sges=1          pieces of memory in a message
 *  pairs=1         queue pairs side by side
 *  verify=1        fill and check every byte (length, order and immediate
 *                  data are always checked)
 *  sig=1           every sig-th send is signaled
 *  batch=0         messages posted at once; 0: a quarter of the window, up
 *                  to 16
 *  lat=1           measure the time from post to completion
 *  timeout=10      seconds without a completion after which a run fails
 *  seed=1          of the test pattern
 *  cpus=0          number of CPUs to spread the pairs over, each with its
 *                  completion vector; 0: start all pairs on the current CPU,
 *                  and spread only their vectors
 *  plain=0         1: as most ULPs post: one request a call, built in done();
 *                  send, write or read, with verify=0 lat=0. Memory is checked
 *                  once, after the run: verified counts slots
 *  srq=0           1: the receives are in an SRQ; with plain=1
 *
 * The module makes one run when it is loaded, unless run=0. It loads if the
 * run could be set up; a failure of the run itself is in the result. A write
 * to 'run' performs a run and returns its error: -EIO after error completions
 * or wrong data, -ENODEV if a device went away, -ENXIO if a CPU did before its
 * pairs were started, -ETIMEDOUT, -EINTR, or the reason why it could not be set
 * up; -EBUSY while another run is in progress.
 *
 * <debugfs>/kverbs_pingpong/result has words key=value about the last run, on a
 * few lines: initiator target ctx op size window iters sges pairs cpus plain srq
 * verify sig batch as they were used, then msgs (completed at both ends), ns (first
 * post to last completion), msgs_per_s, mb_per_s (10^6 bytes), lat_p50_ns,
 * lat_p99_ns (0 if not measured), errors, verified (messages), err (0 or a
 * negative errno) and verdict (ok or fail). It is empty until a run has been
 * set up.
 *
 * Locks: pp_run_mutex is held for the duration of a run and guards
 * pp_result_text. pp_devs_mutex guards the device list and pp_current; it is
 * held only briefly, never during a run, so that a device can go while it is in
 * use: its removal stops the run and waits until the run has put its
 * references.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pingpong.h"

#define PP_MAX_LINE	512

static struct pp_params pp_defaults = {
	.initiator = "emu0",
	.target = "emu1",
	.ctx = "workqueue",
	.op = "send",
	.iport = 1,
	.tport = 1,
	.size = 64,
	.window = 64,
	.iters = 10000,
	.sges = 1,
	.pairs = 1,
	.verify = 1,
	.sig = 1,
	.batch = 0,
	.lat = 1,
	.timeout = 10,
	.seed = 1,
	.cpus = 0,
	.plain = 0,
	.srq = 0,
};

#define PP_STRING(name, what)						\
	module_param_string(name, pp_defaults.name,			\
			    sizeof(pp_defaults.name), 0444);		\
	MODULE_PARM_DESC(name, what)
#define PP_NUMBER(name, what)						\
	module_param_named(name, pp_defaults.name, uint, 0444);		\
	MODULE_PARM_DESC(name, what)

PP_STRING(initiator, "RDMA device that posts (default: emu0)");
PP_STRING(target, "RDMA device at the other end (default: emu1)");
PP_STRING(ctx, "Polling context: direct, softirq, thread, workqueue or unbound (default: workqueue)");
PP_STRING(op, "Operation: send, send_imm, write, write_imm, read, fetch_add or memcpy (default: send)");
PP_NUMBER(iport, "Port of the initiator (default: 1)");
PP_NUMBER(tport, "Port of the target (default: 1)");
PP_NUMBER(size, "Message size in bytes (default: 64)");
PP_NUMBER(window, "Max outstanding messages per queue pair (default: 64)");
PP_NUMBER(iters, "Messages per queue pair (default: 10000)");
PP_NUMBER(sges, "Scatter/gather entries per message (default: 1)");
PP_NUMBER(pairs, "Number of queue pairs (default: 1)");
PP_NUMBER(verify, "Fill and check every byte, 0 or 1 (default: 1)");
PP_NUMBER(sig, "Signal every n-th send (default: 1)");
PP_NUMBER(batch, "Messages per post call; 0: automatic (default: 0)");
PP_NUMBER(lat, "Measure latency, 0 or 1 (default: 1)");
PP_NUMBER(timeout, "Time in s without a completion after which a run fails (default: 10)");
PP_NUMBER(seed, "Seed of the test pattern (default: 1)");
PP_NUMBER(cpus, "Number of CPUs to spread the queue pairs over; 0: do not (default: 0)");
PP_NUMBER(plain, "Post one request per call, 0 or 1 (default: 0)");
PP_NUMBER(srq, "With plain=1: receive from an SRQ, 0 or 1 (default: 0)");

static bool pp_run_at_load = true;
module_param_named(run, pp_run_at_load, bool, 0444);
MODULE_PARM_DESC(run, "Run the test when the module is loaded (default: Y)");

#define PP_KEY(field, str)						\
	{ #field, offsetof(struct pp_params, field), str }

static const struct {
	const char *name;
	size_t at;
	size_t str;	/* size of a string, 0 for a number */
} pp_keys[] = {
	PP_KEY(initiator, sizeof(pp_defaults.initiator)),
	PP_KEY(target, sizeof(pp_defaults.target)),
	PP_KEY(ctx, sizeof(pp_defaults.ctx)),
	PP_KEY(op, sizeof(pp_defaults.op)),
	PP_KEY(iport, 0), PP_KEY(tport, 0), PP_KEY(size, 0),
	PP_KEY(window, 0), PP_KEY(iters, 0), PP_KEY(sges, 0),
	PP_KEY(pairs, 0), PP_KEY(verify, 0), PP_KEY(sig, 0),
	PP_KEY(batch, 0), PP_KEY(lat, 0), PP_KEY(timeout, 0),
	PP_KEY(seed, 0), PP_KEY(cpus, 0), PP_KEY(plain, 0), PP_KEY(srq, 0),
};

static LIST_HEAD(pp_devs);
static struct pp_run *pp_current;
static DEFINE_MUTEX(pp_devs_mutex);

static char pp_result_text[PP_MAX_LINE];
static DEFINE_MUTEX(pp_run_mutex);

static struct dentry *pp_dir;

static struct pp_dev *pp_dev_find(const char *name)
{
	struct pp_dev *pdev;

	lockdep_assert_held(&pp_devs_mutex);
	list_for_each_entry(pdev, &pp_devs, list)
		if (!strcmp(pdev->ibdev->name, name))
			return pdev;
	pr_err("no RDMA device %s\n", name);
	return NULL;
}

/**
 * pp_devs_get - take the devices of a run, which can be stopped from then on
 * @run: the run, with its parameters
 *
 * Context: may sleep.
 * Return: 0, or -ENODEV if one of the devices does not exist.
 */
int pp_devs_get(struct pp_run *run)
{
	struct pp_dev *from, *to;
	int ret = -ENODEV;

	mutex_lock(&pp_devs_mutex);
	from = pp_dev_find(run->p.initiator);
	to = pp_dev_find(run->p.target);
	if (from && to) {
		refcount_inc(&from->users);
		refcount_inc(&to->users);
		run->side[PP_INITIATOR].pdev = from;
		run->side[PP_TARGET].pdev = to;
		pp_current = run;
		ret = 0;
	}
	mutex_unlock(&pp_devs_mutex);
	return ret;
}

static void pp_dev_put(struct pp_dev *pdev)
{
	if (refcount_dec_and_test(&pdev->users))
		complete(&pdev->idle);
}

/**
 * pp_devs_put - undo pp_devs_get()
 * @run: the run, with nothing left on its devices
 */
void pp_devs_put(struct pp_run *run)
{
	unsigned int i;

	mutex_lock(&pp_devs_mutex);
	pp_current = NULL;
	mutex_unlock(&pp_devs_mutex);
	for (i = 0; i < PP_SIDES; i++)
		pp_dev_put(run->side[i].pdev);
}

static int pp_add(struct ib_device *ibdev);
static void pp_remove(struct ib_device *ibdev, void *client_data);

static struct ib_client pp_client = {
	.name = "pingpong",
	.add = pp_add,
	.remove = pp_remove,
};

static int pp_add(struct ib_device *ibdev)
{
	struct pp_dev *pdev = kzalloc(sizeof(*pdev), GFP_KERNEL);

	if (!pdev)
		return -ENOMEM;
	pdev->ibdev = ibdev;
	refcount_set(&pdev->users, 1);
	init_completion(&pdev->idle);
	ib_set_client_data(ibdev, &pp_client, pdev);
	mutex_lock(&pp_devs_mutex);
	list_add_tail(&pdev->list, &pp_devs);
	mutex_unlock(&pp_devs_mutex);
	return 0;
}

static void pp_remove(struct ib_device *ibdev, void *client_data)
{
	struct pp_dev *pdev = client_data;

	mutex_lock(&pp_devs_mutex);
	list_del(&pdev->list);
	if (pp_current && (pp_current->side[PP_INITIATOR].pdev == pdev ||
			   pp_current->side[PP_TARGET].pdev == pdev))
		pp_run_stop(pp_current, -ENODEV);
	mutex_unlock(&pp_devs_mutex);

	pp_dev_put(pdev);
	wait_for_completion(&pdev->idle);
	kfree(pdev);
}

/* Divides by a time that may be zero. */
static u64 pp_per_second(u64 units, u64 ns)
{
	return ns ? mul_u64_u64_div_u64(units, NSEC_PER_SEC, ns) : 0;
}

static void pp_result_print(const struct pp_params *p,
			    const struct pp_result *r)
{
	u64 bytes = r->msgs * p->size;

	lockdep_assert_held(&pp_run_mutex);
	scnprintf(pp_result_text, sizeof(pp_result_text),
		  "initiator=%s target=%s ctx=%s op=%s\n"
		  "size=%u window=%u iters=%u sges=%u pairs=%u cpus=%u\n"
		  "plain=%u srq=%u verify=%u sig=%u batch=%u\n"
		  "msgs=%llu ns=%llu msgs_per_s=%llu mb_per_s=%llu\n"
		  "lat_p50_ns=%llu lat_p99_ns=%llu\n"
		  "errors=%llu verified=%llu err=%d verdict=%s\n",
		  p->initiator, p->target, p->ctx, p->op, p->size, p->window,
		  p->iters, p->sges, p->pairs, p->cpus, p->plain, p->srq, p->verify, p->sig,
		  r->batch, r->msgs, r->ns, pp_per_second(r->msgs, r->ns),
		  div_u64(pp_per_second(bytes, r->ns), 1000000), r->p50,
		  r->p99, r->errors, r->verified, r->err,
		  r->err ? "fail" : "ok");
}

static void pp_result_log(void)
{
	const char *line = pp_result_text, *end;

	lockdep_assert_held(&pp_run_mutex);
	for (; (end = strchr(line, '\n')); line = end + 1)
		pr_info("%.*s\n", (int)(end - line), line);
}

/* Return: 0 if the run could be set up; its own error is in @err. */
static int pp_run_locked(struct pp_params *params, int *err)
{
	struct pp_result res;
	int ret;

	lockdep_assert_held(&pp_run_mutex);
	pp_result_text[0] = '\0';
	ret = pp_run(params, &res);
	if (ret)
		return ret;
	pp_result_print(params, &res);
	*err = res.err;
	return 0;
}

static void pp_report_key(const char *word)
{
	char names[256] = "";
	unsigned int i;
	size_t len = 0;

	for (i = 0; i < ARRAY_SIZE(pp_keys); i++)
		len += scnprintf(names + len, sizeof(names) - len, " %s", pp_keys[i].name);
	pr_err("unknown key in '%s'; the keys are:%s\n", word, names);
}

/* Return: -EINVAL for an unknown key, or for a value that the key does not take. */
static int pp_parse_one(struct pp_params *p, const char *word)
{
	const char *val = strchr(word, '=') ?: word + strlen(word);
	size_t len = val - word;
	unsigned int i;
	void *field;
	int ret;

	for (i = 0; i < ARRAY_SIZE(pp_keys); i++)
		if (strlen(pp_keys[i].name) == len && !strncmp(word, pp_keys[i].name, len))
			break;
	if (i == ARRAY_SIZE(pp_keys)) {
		pp_report_key(word);
		return -EINVAL;
	}
	field = (void *)p + pp_keys[i].at;
	if (*val == '=')
		val++;
	if (!pp_keys[i].str) {
		ret = kstrtouint(val, 0, field);
		if (ret)
			pr_err("'%s' is not a number from 0 to %u\n", word, UINT_MAX);
	} else {
		ret = *val ? strscpy(field, val, pp_keys[i].str) : -EINVAL;
		if (ret < 0)
			pr_err("'%s': needs a value of 1 to %zu characters\n", word,
			       pp_keys[i].str - 1);
	}
	return ret < 0 ? -EINVAL : 0;
}

static int pp_parse(struct pp_params *p, char *line)
{
	char *word;
	int ret;

	while ((word = strsep(&line, " \t\n"))) {
		ret = *word ? pp_parse_one(p, word) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

static ssize_t pp_run_write(struct file *file, const char __user *buf,
			    size_t len, loff_t *ppos)
{
	struct pp_params params = pp_defaults;
	char line[PP_MAX_LINE];
	int ret, err = 0;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	ret = pp_parse(&params, line);
	if (ret)
		return ret;
	if (!mutex_trylock(&pp_run_mutex))
		return -EBUSY;
	ret = pp_run_locked(&params, &err);
	mutex_unlock(&pp_run_mutex);
	return ret ?: err ?: len;
}

static const struct file_operations pp_run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = pp_run_write,
};

static int pp_result_show(struct seq_file *m, void *unused)
{
	int ret = mutex_lock_interruptible(&pp_run_mutex);

	if (ret)
		return ret;
	seq_puts(m, pp_result_text);
	mutex_unlock(&pp_run_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pp_result);

static int __init pp_first_run(void)
{
	int ret, err;

	mutex_lock(&pp_run_mutex);
	ret = pp_run_locked(&pp_defaults, &err);
	if (!ret)
		pp_result_log();
	mutex_unlock(&pp_run_mutex);
	if (ret)
		pr_err("cannot set up the run (%d)\n", ret);
	return ret;
}

static int __init pp_init(void)
{
	int ret;

	ret = ib_register_client(&pp_client);
	if (ret)
		return ret;
	if (pp_run_at_load) {
		ret = pp_first_run();
		if (ret) {
			ib_unregister_client(&pp_client);
			return ret;
		}
	}
	pp_dir = debugfs_create_dir("kverbs_pingpong", NULL);
	debugfs_create_file("run", 0200, pp_dir, NULL, &pp_run_fops);
	debugfs_create_file("result", 0400, pp_dir, NULL, &pp_result_fops);
	return 0;
}

static void __exit pp_exit(void)
{
	debugfs_remove(pp_dir);
	ib_unregister_client(&pp_client);
}

module_init(pp_init);
module_exit(pp_exit);

MODULE_DESCRIPTION("RDMA message test over any verbs device");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
