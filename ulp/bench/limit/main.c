// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_limit: the cost of messages without a device, see limit.h.
 *
 * A line written to <debugfs>/kverbs_limit/run ("op=write window=1") makes a run:
 *
 *  op=send    send, send_srq (the receives are in an SRQ), write or read
 *  size=64    bytes of a message
 *  window=64  messages outstanding
 *  iters=20000  messages
 *
 * <debugfs>/kverbs_limit/result is one line about the last run: these keys, then msgs
 * (completed at every end), ns (first post to last completion), verified (slots of memory
 * that hold what they should) and verdict. The bytes are checked after the run.
 *
 * One CPU, the one that writes to run, posts and polls, with two CQs that take turns as those
 * of the CQ layer do: a CQ is polled 16 completions at a time until fewer come, then it is
 * armed, and next polled when a completion has found it armed.
 *
 * lim_mutex is held for the duration of a run.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../pingpong/mark.h"
#include "../../pingpong/plain.h"
#include "limit.h"

#define LIM_KEY		0x4c494d00
#define LIM_BATCH	16
#define LIM_MAX_SIZE	(1U << 20)
#define LIM_MAX_WINDOW	4096U
#define LIM_MAX_ITERS	100000000U
#define LIM_MAX_LINE	256
#define LIM_MAX_MEM	(256ULL << 20)

static const struct lim_op {
	const char *name;
	enum ib_wr_opcode opcode;
	bool srq;
} lim_ops[] = {
	{ "send", IB_WR_SEND },
	{ "send_srq", IB_WR_SEND, true },
	{ "write", IB_WR_RDMA_WRITE },
	{ "read", IB_WR_RDMA_READ },
};

enum { LIM_FROM, LIM_TO, LIM_ENDS };

/* A run. The memory of the end @source is copied to that of the other. */
struct lim_run {
	const struct lim_op *op;
	u32 size;
	u32 window;
	u32 iters;
	u32 slots;
	struct plain plain;
	struct ib_device *dev;
	struct lim_qp qp[LIM_ENDS];
	struct lim_cq cq[LIM_ENDS];
	struct lim_srq srq;
	struct lim_region region;
	struct ib_wc wc[LIM_BATCH];
	u8 *mem[LIM_ENDS];
	int source;
	int busy;
	int err;
};

static DEFINE_MUTEX(lim_mutex);
static char lim_result_line[LIM_MAX_LINE];
static struct dentry *lim_dir;

static void lim_over(struct plain *p)
{
	container_of(p, struct lim_run, plain)->busy--;
}

static void lim_wrong(struct plain *p, const struct ib_wc *wc)
{
	struct lim_run *run = container_of(p, struct lim_run, plain);

	if (!run->err)
		pr_err("%s: %s after %u messages\n", run->op->name,
		       wc ? ib_wc_status_msg(wc->status) : "ib_post_send() refused", p->sent);
	run->err = -EIO;
}

/* --- memory --- */

static u8 lim_byte(const struct lim_run *run, u32 slot, u32 at)
{
	return slot % run->window * 7 + at * 13 + 1;
}

static void lim_fill(struct lim_run *run)
{
	u32 i, at;

	for (i = 0; i < run->slots; i++)
		for (at = 0; at < run->size; at++)
			run->mem[run->source][i * run->size + at] = lim_byte(run, i, at);
}

/* Returns how many slots of the other end hold what they should. */
static u32 lim_verify(const struct lim_run *run)
{
	const u8 *mem = run->mem[!run->source];
	u32 i, at, right = 0;

	for (i = 0; i < run->slots; i++, mem += run->size) {
		for (at = 0; at < run->size && mem[at] == lim_byte(run, i, at); at++)
			;
		right += at == run->size;
	}
	return right;
}

/* --- a run --- */

static void lim_qps_init(struct lim_run *run)
{
	struct lim_qp *qp;
	int i;

	for (i = 0; i < LIM_ENDS; i++) {
		qp = &run->qp[i];
		qp->ib.device = run->dev;
		qp->local_key = LIM_KEY;
		qp->send_cq = &run->cq[i];
		qp->recv_cq = &run->cq[i];
		qp->rq = run->op->srq ? &run->srq.rq : &qp->own_rq;
		qp->peer = &run->qp[!i];
		qp->region = &run->region;
		lim_gate_init(&qp->gate);
		run->cq[i].ib.device = run->dev;
		run->cq[i].ib.cq_context = &run->plain;
		/* As if armed and notified. */
		run->cq[i].due = true;
	}
	run->srq.ib.device = run->dev;
	run->region.key = LIM_KEY + 1;
	run->region.start = (u64)run->mem[LIM_TO];
	run->region.length = (u64)run->slots * run->size;
	lim_gate_init(&run->region.gate);
}

static int lim_plain_init(struct lim_run *run)
{
	struct plain *p = &run->plain;
	u32 i;

	p->tx = kvcalloc(run->slots, sizeof(*p->tx), GFP_KERNEL);
	p->rx = kvcalloc(run->slots, sizeof(*p->rx), GFP_KERNEL);
	if (!p->tx || !p->rx)
		return -ENOMEM;
	p->from = &run->qp[LIM_FROM].ib;
	p->to = &run->qp[LIM_TO].ib;
	p->srq = run->op->srq ? &run->srq.ib : NULL;
	p->opcode = run->op->opcode;
	p->size = run->size;
	p->window = run->window;
	p->iters = run->iters;
	p->tx_lkey = LIM_KEY;
	p->rx_lkey = LIM_KEY;
	p->receives = p->opcode == IB_WR_SEND ? run->slots : 0;
	p->over = lim_over;
	p->wrong = lim_wrong;
	for (i = 0; i < run->slots; i++) {
		p->tx[i].addr = (u64)&run->mem[LIM_FROM][i * run->size];
		p->tx[i].remote_addr = (u64)&run->mem[LIM_TO][i * run->size];
		p->tx[i].rkey = LIM_KEY + 1;
		p->rx[i].addr = p->tx[i].remote_addr;
	}
	return 0;
}

static int lim_setup(struct lim_run *run)
{
	u32 size = roundup_pow_of_two(run->slots + 1);
	int i, ret;

	/* It is never registered. */
	run->dev = _ib_alloc_device(sizeof(*run->dev));
	if (!run->dev)
		return -ENOMEM;
	run->dev->ops.post_send = lim_post_send;
	run->dev->ops.post_recv = lim_post_recv;
	run->dev->ops.post_srq_recv = lim_post_srq_recv;
	run->dev->ops.poll_cq = lim_poll_cq;
	run->dev->ops.req_notify_cq = lim_req_notify_cq;
	run->source = run->op->opcode == IB_WR_RDMA_READ ? LIM_TO : LIM_FROM;
	run->busy = run->op->opcode == IB_WR_SEND ? 2 : 1;
	ret = lim_rq_init(&run->srq.rq, size);
	for (i = 0; i < LIM_ENDS && !ret; i++) {
		run->mem[i] = kvzalloc((size_t)run->slots * run->size, GFP_KERNEL);
		ret = run->mem[i] ? 0 : -ENOMEM;
		ret = ret ?: lim_sq_init(&run->qp[i], size);
		ret = ret ?: lim_rq_init(&run->qp[i].own_rq, size);
		ret = ret ?: lim_cq_init(&run->cq[i], size);
	}
	if (ret)
		return ret;
	lim_qps_init(run);
	lim_fill(run);
	return lim_plain_init(run);
}

static void lim_teardown(struct lim_run *run)
{
	int i;

	for (i = 0; i < LIM_ENDS; i++) {
		kvfree(run->mem[i]);
		kvfree(run->qp[i].sq);
		kvfree(run->qp[i].own_rq.entry);
		kvfree(run->cq[i].entry);
	}
	kvfree(run->srq.rq.entry);
	kvfree(run->plain.tx);
	kvfree(run->plain.rx);
	if (run->dev)
		ib_dealloc_device(run->dev);
}

/* Has the next completion make it due, unless there is one already. */
static void lim_arm(struct lim_cq *cq)
{
	WRITE_ONCE(cq->due, false);
	if (ib_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) &&
	    xchg(&cq->armed, 0))
		WRITE_ONCE(cq->due, true);
}

static void lim_poll(struct lim_run *run, struct lim_cq *cq)
{
	struct ib_wc *wc = run->wc, *end;
	int n;

	n = ib_poll_cq(&cq->ib, LIM_BATCH, wc);
	for (end = wc + n; wc < end; wc++)
		wc->wr_cqe->done(&cq->ib, wc);
	if (n < LIM_BATCH)
		lim_arm(cq);
}

/* Returns false if no CQ is due: nothing will ever happen again. */
static bool lim_turn(struct lim_run *run)
{
	bool any = false;
	int i;

	for (i = 0; i < LIM_ENDS; i++) {
		if (!READ_ONCE(run->cq[i].due))
			continue;
		any = true;
		lim_poll(run, &run->cq[i]);
	}
	return any;
}

static u64 lim_go(struct lim_run *run)
{
	u64 start = ktime_get_ns();
	u32 turns = 0;

	pp_mark(PP_MARK_BEGIN);
	plain_start(&run->plain);
	while (run->busy && !run->err && lim_turn(run))
		if (!(++turns & 0xfff))
			cond_resched();
	pp_mark(PP_MARK_END);
	return ktime_get_ns() - start;
}

/* Nobody is inside a gate now; that closing one returns shows that the counts are right. */
static void lim_close(struct lim_run *run)
{
	lim_gate_close(&run->region.gate);
	lim_gate_close(&run->qp[LIM_FROM].gate);
	lim_gate_close(&run->qp[LIM_TO].gate);
}

static int lim_measure(struct lim_run *run)
{
	u32 due = min(run->slots, run->iters), right = 0;
	u64 ns;

	run->err = plain_listen(&run->plain);
	ns = lim_go(run);
	lim_close(run);
	if (!run->err && (run->busy || run->cq[LIM_FROM].lost || run->cq[LIM_TO].lost)) {
		pr_err("%s: completions were lost\n", run->op->name);
		run->err = -EIO;
	}
	if (!run->err) {
		right = lim_verify(run);
		run->err = right < due ? -EIO : 0;
	}
	scnprintf(lim_result_line, sizeof(lim_result_line),
		  "op=%s size=%u window=%u iters=%u msgs=%u ns=%llu verified=%u err=%d verdict=%s",
		  run->op->name, run->size, run->window, run->iters, run->plain.sent, ns, right,
		  run->err, run->err ? "fail" : "ok");
	return run->err;
}

/* --- debugfs --- */

static const struct lim_op *lim_find_op(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lim_ops); i++)
		if (!strcmp(lim_ops[i].name, name))
			return &lim_ops[i];
	return NULL;
}

static int lim_parse_one(struct lim_run *run, const char *key, const char *val)
{
	if (!strcmp(key, "op")) {
		run->op = lim_find_op(val);
		return run->op ? 0 : -EINVAL;
	}
	if (!strcmp(key, "size"))
		return kstrtouint(val, 0, &run->size);
	if (!strcmp(key, "window"))
		return kstrtouint(val, 0, &run->window);
	if (!strcmp(key, "iters"))
		return kstrtouint(val, 0, &run->iters);
	return -EINVAL;
}

static int lim_parse(struct lim_run *run, char *line)
{
	char *word, *val;

	while ((word = strsep(&line, " \t\n"))) {
		if (!*word)
			continue;
		val = strchr(word, '=');
		if (val)
			*val++ = '\0';
		if (!val || lim_parse_one(run, word, val)) {
			pr_err("'%s' is an unknown key or has a bad value\n", word);
			return -EINVAL;
		}
	}
	if (!run->size || run->size > LIM_MAX_SIZE || !run->window ||
	    run->window > LIM_MAX_WINDOW || run->iters < run->window ||
	    run->iters > LIM_MAX_ITERS)
		return -ERANGE;
	run->slots = run->op->opcode == IB_WR_SEND ? plain_receives(run->window) : run->window;
	return (u64)run->slots * run->size > LIM_MAX_MEM ? -ERANGE : 0;
}

static int lim_perform(struct lim_run *run)
{
	int ret;

	lockdep_assert_held(&lim_mutex);
	lim_result_line[0] = '\0';
	ret = lim_setup(run);
	if (!ret)
		ret = lim_measure(run);
	lim_teardown(run);
	return ret;
}

static ssize_t lim_run_write(struct file *file, const char __user *buf, size_t len,
			     loff_t *ppos)
{
	char line[LIM_MAX_LINE];
	struct lim_run *run;
	int ret;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	run = kvzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->op = &lim_ops[0];
	run->size = 64;
	run->window = 64;
	run->iters = 20000;
	ret = lim_parse(run, line);
	if (!ret)
		ret = mutex_lock_interruptible(&lim_mutex);
	if (!ret) {
		ret = lim_perform(run);
		mutex_unlock(&lim_mutex);
	}
	kvfree(run);
	return ret ?: len;
}

static const struct file_operations lim_run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = lim_run_write,
};

static int lim_result_show(struct seq_file *m, void *unused)
{
	int ret = mutex_lock_interruptible(&lim_mutex);

	if (ret)
		return ret;
	if (lim_result_line[0])
		seq_printf(m, "%s\n", lim_result_line);
	mutex_unlock(&lim_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(lim_result);

static int __init lim_init(void)
{
	lim_dir = debugfs_create_dir("kverbs_limit", NULL);
	debugfs_create_file("run", 0200, lim_dir, NULL, &lim_run_fops);
	debugfs_create_file("result", 0400, lim_dir, NULL, &lim_result_fops);
	return 0;
}

static void __exit lim_exit(void)
{
	debugfs_remove(lim_dir);
}

module_init(lim_init);
module_exit(lim_exit);

MODULE_DESCRIPTION("Benchmark: cost of messages without a device");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
