// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: files in /sys/kernel/debug/kverbs_emu/<device>/faults/
 *
 *   seed		determines the choices; writing it restarts all sequences and
 *			counts
 *   comp_error		rate of work requests that fail with comp_status, which is a name
 *			such as REM_ACCESS_ERR, or a number of enum ib_wc_status
 *   delay		rate of work requests that are executed delay_us microseconds late
 *   port_flap		rate of work requests before which the port that the queue pair
 *			sends through goes down, for port_flap_ms milliseconds, if
 *			port_flap_port is 0 or the number of that port
 *   drop_notify	rate of completion notifications that nobody gets
 *   cq_overflow	rate of completions that find their queue full, whatever its size
 *   alloc_fail		rate of calls that make an object and fail with -ENOMEM
 *   injected		reading shows, for each kind, its name, how often it could have gone
 *			wrong, and how often it did
 *   rules		which request goes wrong, and how: see fault_rule.c
 *
 * Rates are per million; 1000000 means always. A value out of range fails with -EINVAL.
 *
 * For each kind, the occasions on which its rate was not 0 are counted. The choice is a
 * hash of the seed, the kind and that count, so the same occasions in the same order go
 * wrong again after the seed has been written again.
 *
 * emu_faults_lock serialises writers. It also guards the numbers of rules and of rates that are
 * not 0, by which the static keys are switched. Asking whether something goes wrong takes no lock.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fault_rule.h"

#define EMU_FAULT_MAX_DELAY	(10 * USEC_PER_SEC)
#define EMU_FAULT_MAX_FLAP	(60 * MSEC_PER_SEC)
#define EMU_FAULT_MAX_COMMAND	256

/* Numbers that can be set: a rate for each kind, and these. */
enum emu_fault_setting {
	EMU_FAULT_DELAY_US = EMU_NR_FAULT_KINDS,
	EMU_FAULT_PORT_FLAP_MS,
	EMU_FAULT_PORT_FLAP_PORT,
	EMU_NR_FAULT_SETTINGS
};

static const struct emu_fault_range {
	const char *name;
	u32 min;
	u32 max;
	u32 initial;
} emu_fault_ranges[EMU_NR_FAULT_SETTINGS] = {
	[EMU_FAULT_COMP_ERROR] = { "comp_error", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_DELAY] = { "delay", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_PORT_FLAP] = { "port_flap", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_DROP_NOTIFY] = { "drop_notify", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_CQ_OVERFLOW] = { "cq_overflow", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_ALLOC_FAIL] = { "alloc_fail", 0, EMU_FAULT_MILLION, 0 },
	[EMU_FAULT_DELAY_US] = { "delay_us", 1, EMU_FAULT_MAX_DELAY, 100 },
	[EMU_FAULT_PORT_FLAP_MS] = { "port_flap_ms", 1, EMU_FAULT_MAX_FLAP, 10 },
	[EMU_FAULT_PORT_FLAP_PORT] = { "port_flap_port", 0, EMU_MAX_PORTS, 0 },
};

static const char * const emu_fault_statuses[] = {
	[IB_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
	[IB_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
	[IB_WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
	[IB_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
	[IB_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
	[IB_WC_MW_BIND_ERR] = "MW_BIND_ERR",
	[IB_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
	[IB_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
	[IB_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	[IB_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
	[IB_WC_REM_OP_ERR] = "REM_OP_ERR",
	[IB_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
	[IB_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	[IB_WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
	[IB_WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
	[IB_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
	[IB_WC_INV_EECN_ERR] = "INV_EECN_ERR",
	[IB_WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
	[IB_WC_FATAL_ERR] = "FATAL_ERR",
	[IB_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
	[IB_WC_GENERAL_ERR] = "GENERAL_ERR",
};

/**
 * struct emu_fault_knob - a setting that has a file of its own
 * @faults: the faults that it belongs to
 * @setting: enum emu_fault_kind or enum emu_fault_setting
 */
struct emu_fault_knob {
	struct emu_faults *faults;
	unsigned int setting;
};

/**
 * struct emu_faults - the faults of a device
 * @seed: determines the choices
 * @value: rates, and other settings
 * @status: status that requests fail with, enum ib_wc_status
 * @asked: number of occasions of each kind
 * @injected: number of those that went wrong
 * @active: number of rates that are not 0
 * @rules: rules for single requests
 * @knobs: for the files
 */
struct emu_faults {
	u64 seed;
	u32 value[EMU_NR_FAULT_SETTINGS];
	u32 status;
	atomic64_t asked[EMU_NR_FAULT_KINDS];
	atomic64_t injected[EMU_NR_FAULT_KINDS];
	unsigned int active;
	struct emu_fault_rules rules;
	struct emu_fault_knob knobs[EMU_NR_FAULT_SETTINGS];
};

DEFINE_STATIC_KEY_FALSE(emu_faulty);
DEFINE_STATIC_KEY_FALSE(emu_detour);
DEFINE_MUTEX(emu_faults_lock);

/* The mixing steps of splitmix64: each bit of the result depends on all of @x. */
static u64 emu_fault_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Returns a pseudo-random number below a million, which depends on the arguments only. */
u32 emu_fault_roll(u64 seed, u64 kind, u64 n)
{
	u64 hash = emu_fault_mix(emu_fault_mix(seed) ^ emu_fault_mix(kind + 1) ^ n);

	return ((hash >> 32) * EMU_FAULT_MILLION) >> 32;
}

static bool emu_fault_hits(struct emu_faults *faults, enum emu_fault_kind kind)
{
	u32 rate = READ_ONCE(faults->value[kind]);
	u64 n;

	if (!rate)
		return false;
	n = atomic64_fetch_inc(&faults->asked[kind]);
	if (emu_fault_roll(READ_ONCE(faults->seed), kind, n) >= rate)
		return false;
	atomic64_inc(&faults->injected[kind]);
	return true;
}

/**
 * emu_fault_in_link() - decide whether a link goes down before an entry of a send queue
 * @edev: the device
 * @port_num: number of the port that the queue pair sends through
 *
 * Called once for each entry that finds the port up.
 *
 * Context: Any.
 * Return: for how many milliseconds it goes down; 0 if it stays up.
 */
u32 emu_fault_in_link(struct emu_device *edev, u32 port_num)
{
	struct emu_faults *faults = edev->faults;
	u32 only = READ_ONCE(faults->value[EMU_FAULT_PORT_FLAP_PORT]);

	if (only && only != port_num)
		return 0;
	return emu_fault_hits(faults, EMU_FAULT_PORT_FLAP) ?
	       READ_ONCE(faults->value[EMU_FAULT_PORT_FLAP_MS]) : 0;
}

/**
 * emu_fault_in_exec() - decide whether an entry of a send queue goes wrong
 * @edev: the device
 * @site: the request in the entry
 * @value: set to the amount, in the unit of the action
 *
 * Called before each attempt to execute the entry. Only faults that can befall any attempt are
 * decided each time; all others are decided at the first attempt.
 *
 * Context: Any.
 * Return: what happens to the entry, or EMU_FAULT_NONE.
 */
enum emu_fault_action emu_fault_in_exec(struct emu_device *edev,
					const struct emu_fault_site *site, u64 *value)
{
	struct emu_faults *faults = edev->faults;

	if (!site->retrying && emu_fault_hits(faults, EMU_FAULT_COMP_ERROR)) {
		*value = READ_ONCE(faults->status);
		return EMU_FAULT_STATUS;
	}
	if (!site->retrying && emu_fault_hits(faults, EMU_FAULT_DELAY)) {
		*value = READ_ONCE(faults->value[EMU_FAULT_DELAY_US]);
		return EMU_FAULT_DELAYED;
	}
	return emu_fault_rules_ask(&faults->rules, READ_ONCE(faults->seed), site, value);
}

/* Decides whether a completion finds its CQ full. Any context. */
bool emu_fault_in_cqe(struct emu_device *edev)
{
	return emu_fault_hits(edev->faults, EMU_FAULT_CQ_OVERFLOW);
}

/* Decides whether a notification of a CQ, which is due, is lost. Any context. */
bool emu_fault_in_notify(struct emu_device *edev)
{
	return emu_fault_hits(edev->faults, EMU_FAULT_DROP_NOTIFY);
}

bool emu_fault_in_alloc(struct emu_device *edev)
{
	return emu_fault_hits(edev->faults, EMU_FAULT_ALLOC_FAIL);
}

static void emu_fault_reset_counts(struct emu_faults *faults)
{
	unsigned int i;

	for (i = 0; i < EMU_NR_FAULT_KINDS; i++) {
		atomic64_set(&faults->asked[i], 0);
		atomic64_set(&faults->injected[i], 0);
	}
	emu_fault_rules_reset(&faults->rules);
}

/* Must be called when faults become possible, and emu_faulty_dec() at the end. Process context. */
void emu_faulty_inc(void)
{
	static_branch_inc(&emu_faulty);
	static_branch_inc(&emu_detour);
}

void emu_faulty_dec(void)
{
	static_branch_dec(&emu_detour);
	static_branch_dec(&emu_faulty);
}

static void emu_fault_set(struct emu_faults *faults, unsigned int setting, u32 value)
{
	bool was = faults->value[setting];

	lockdep_assert_held(&emu_faults_lock);
	WRITE_ONCE(faults->value[setting], value);
	if (setting >= EMU_NR_FAULT_KINDS || was == !!value)
		return;
	if (value && !faults->active++)
		emu_faulty_inc();
	if (!value && !--faults->active)
		emu_faulty_dec();
}

static int emu_fault_knob_get(void *data, u64 *value)
{
	struct emu_fault_knob *knob = data;

	*value = READ_ONCE(knob->faults->value[knob->setting]);
	return 0;
}

static int emu_fault_knob_set(void *data, u64 value)
{
	struct emu_fault_knob *knob = data;
	const struct emu_fault_range *range = &emu_fault_ranges[knob->setting];

	if (value < range->min || value > range->max)
		return -EINVAL;
	mutex_lock(&emu_faults_lock);
	emu_fault_set(knob->faults, knob->setting, value);
	mutex_unlock(&emu_faults_lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(emu_fault_knob_fops, emu_fault_knob_get, emu_fault_knob_set, "%llu\n");

static int emu_fault_seed_get(void *data, u64 *value)
{
	struct emu_faults *faults = data;

	*value = READ_ONCE(faults->seed);
	return 0;
}

static int emu_fault_seed_set(void *data, u64 value)
{
	struct emu_faults *faults = data;

	mutex_lock(&emu_faults_lock);
	WRITE_ONCE(faults->seed, value);
	emu_fault_reset_counts(faults);
	mutex_unlock(&emu_faults_lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(emu_fault_seed_fops, emu_fault_seed_get, emu_fault_seed_set, "%llu\n");

static int emu_fault_status_show(struct seq_file *s, void *unused)
{
	struct emu_faults *faults = s->private;

	seq_printf(s, "%s\n", emu_fault_statuses[READ_ONCE(faults->status)]);
	return 0;
}

const char *emu_fault_status_name(u32 status)
{
	return emu_fault_statuses[status];
}

int emu_fault_parse_status(const char *text)
{
	unsigned int i, status;

	for (i = 0; i < ARRAY_SIZE(emu_fault_statuses); i++) {
		if (emu_fault_statuses[i] && !strcasecmp(text, emu_fault_statuses[i]))
			return i;
	}
	if (kstrtouint(text, 0, &status) || status >= ARRAY_SIZE(emu_fault_statuses) ||
	    !emu_fault_statuses[status])
		return -EINVAL;
	return status;
}

static ssize_t emu_fault_status_write(struct file *file, const char __user *from, size_t len,
				      loff_t *pos)
{
	struct emu_faults *faults = file_inode(file)->i_private;
	char text[32];
	ssize_t ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	ret = emu_fault_parse_status(strim(text));
	if (ret < 0)
		return ret;
	WRITE_ONCE(faults->status, ret);
	return len;
}

static int emu_fault_status_open(struct inode *inode, struct file *file)
{
	return single_open(file, emu_fault_status_show, inode->i_private);
}

static const struct file_operations emu_fault_status_fops = {
	.owner = THIS_MODULE,
	.open = emu_fault_status_open,
	.read = seq_read,
	.write = emu_fault_status_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int emu_fault_injected_show(struct seq_file *s, void *unused)
{
	struct emu_faults *faults = s->private;
	unsigned int i;

	for (i = 0; i < EMU_NR_FAULT_KINDS; i++)
		seq_printf(s, "%s %lld %lld\n", emu_fault_ranges[i].name,
			   (s64)atomic64_read(&faults->asked[i]),
			   (s64)atomic64_read(&faults->injected[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(emu_fault_injected);

static int emu_fault_rules_file_show(struct seq_file *s, void *unused)
{
	struct emu_device *edev = s->private;

	mutex_lock(&emu_faults_lock);
	emu_fault_rules_show(&edev->faults->rules, s);
	mutex_unlock(&emu_faults_lock);
	return 0;
}

static ssize_t emu_fault_rules_write(struct file *file, const char __user *from, size_t len,
				     loff_t *pos)
{
	struct emu_device *edev = file_inode(file)->i_private;
	char *text;
	int err;

	if (len >= EMU_FAULT_MAX_COMMAND)
		return -EINVAL;
	text = memdup_user_nul(from, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&emu_faults_lock);
	err = emu_fault_rules_command(edev, &edev->faults->rules, strim(text));
	mutex_unlock(&emu_faults_lock);
	kfree(text);
	return err ?: len;
}

static int emu_fault_rules_open(struct inode *inode, struct file *file)
{
	return single_open(file, emu_fault_rules_file_show, inode->i_private);
}

static const struct file_operations emu_fault_rules_fops = {
	.owner = THIS_MODULE,
	.open = emu_fault_rules_open,
	.read = seq_read,
	.write = emu_fault_rules_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* Creates the files. Errors of debugfs are ignored, as is usual. */
void emu_faults_debugfs(struct emu_device *edev, struct dentry *dir)
{
	struct emu_faults *faults = edev->faults;
	unsigned int i;

	debugfs_create_file_unsafe("seed", 0600, dir, faults, &emu_fault_seed_fops);
	debugfs_create_file("comp_status", 0600, dir, faults, &emu_fault_status_fops);
	debugfs_create_file("injected", 0400, dir, faults, &emu_fault_injected_fops);
	debugfs_create_file("rules", 0600, dir, edev, &emu_fault_rules_fops);
	for (i = 0; i < EMU_NR_FAULT_SETTINGS; i++)
		debugfs_create_file_unsafe(emu_fault_ranges[i].name, 0600, dir,
					   &faults->knobs[i], &emu_fault_knob_fops);
}

/* Returns 0 or -ENOMEM. Either way, emu_faults_stop() and emu_faults_destroy() may be called. */
int emu_faults_create(struct emu_device *edev)
{
	struct emu_faults *faults = kzalloc(sizeof(*faults), GFP_KERNEL);
	unsigned int i;

	if (!faults)
		return -ENOMEM;
	faults->status = IB_WC_GENERAL_ERR;
	emu_fault_rules_init(&faults->rules);
	for (i = 0; i < EMU_NR_FAULT_SETTINGS; i++) {
		faults->value[i] = emu_fault_ranges[i].initial;
		faults->knobs[i].faults = faults;
		faults->knobs[i].setting = i;
	}
	edev->faults = faults;
	return 0;
}

/* Ends all faults. The device has no queue pairs any more, and its files are gone. */
void emu_faults_stop(struct emu_device *edev)
{
	struct emu_faults *faults = edev->faults;
	unsigned int i;

	if (!faults)
		return;
	mutex_lock(&emu_faults_lock);
	for (i = 0; i < EMU_NR_FAULT_KINDS; i++)
		emu_fault_set(faults, i, 0);
	emu_fault_rules_clear(&faults->rules);
	mutex_unlock(&emu_faults_lock);
}

void emu_faults_destroy(struct emu_device *edev)
{
	kfree(edev->faults);
	edev->faults = NULL;
}
