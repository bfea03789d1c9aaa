// SPDX-License-Identifier: GPL-2.0-only
/*
 * What debugfs shows of completion queues and of the lanes that poll them:
 * lines of key=value. An indented line belongs to the one before it.
 *
 * The polling context writes the counters, without atomics. A reader may see
 * values from different moments.
 *
 * Lock protocol: the caller holds a CQ by a restrack reference, so its lane stays, too.
 * Lanes are created, and their threads moved, under vectors->lock, which is taken within
 * cpus_read_lock(). Lanes are freed after the device's debugfs files are removed.
 */
#include <linux/cpu.h>
#include <linux/seq_file.h>
#include <kverbs/completion.h>

#include "cq.h"

struct ib_cq_counter {
	const char *name;
	size_t offset;
};

#define IB_CQ_COUNTER(name)	{ #name, offsetof(struct ib_cq_stats, name) }
#define IB_CQ_LANE_COUNTER(name) { #name, offsetof(struct ib_cq_lane_stats, name) }

static const struct ib_cq_counter ib_cq_counters[] = {
	IB_CQ_COUNTER(schedules),
	IB_CQ_COUNTER(rounds),
	IB_CQ_COUNTER(polls),
	IB_CQ_COUNTER(empty_polls),
	IB_CQ_COUNTER(completions),
	IB_CQ_COUNTER(rearms),
	IB_CQ_COUNTER(missed),
	IB_CQ_COUNTER(exhausted),
};

static const struct ib_cq_counter ib_cq_lane_counters[] = {
	IB_CQ_LANE_COUNTER(schedules),
	IB_CQ_LANE_COUNTER(runs),
	IB_CQ_LANE_COUNTER(rounds),
	IB_CQ_LANE_COUNTER(completions),
	IB_CQ_LANE_COUNTER(budget_spent),
	IB_CQ_LANE_COUNTER(time_spent),
	IB_CQ_LANE_COUNTER(gave_way),
	IB_CQ_LANE_COUNTER(handovers),
	IB_CQ_LANE_COUNTER(moves),
};

static const struct ib_cq_counter ib_cq_thread_counters[] = {
	IB_CQ_LANE_COUNTER(spins),
	IB_CQ_LANE_COUNTER(spin_hits),
	IB_CQ_LANE_COUNTER(sleeps),
};

static u64 ib_cq_value(const u64 *counter)
{
	/* The polling context may be adding to it: either value will do. */
	return data_race(*counter);
}

static void ib_cq_show_counters(struct seq_file *s, const void *stats,
				const struct ib_cq_counter *counter, unsigned int nr)
{
	for (; nr--; counter++)
		seq_printf(s, " %s=%llu", counter->name,
			   ib_cq_value(stats + counter->offset));
}

static void ib_cq_show_state(struct seq_file *s, unsigned long state)
{
	static const char * const names[] = { "queued", "busy", "stop", "wait", "notified" };
	const char *before = "";
	unsigned int bit;

	seq_puts(s, " state=");
	if (!state)
		seq_puts(s, "idle");
	for_each_set_bit(bit, &state, ARRAY_SIZE(names)) {
		seq_printf(s, "%s%s", before, names[bit]);
		before = "|";
	}
}

/* 2^@n ns, rounded to a number and unit that people can read. */
static void ib_cq_show_limit(struct seq_file *s, unsigned int n)
{
	static const char * const units[] = { "ns", "us", "ms", "s" };
	unsigned int value = 1U << n, unit = 0;

	for (; value >= 1000; unit++)
		value = DIV_ROUND_CLOSEST(value, 1000);
	seq_printf(s, "%u%s", value, units[unit]);
}

static void ib_cq_show_latency(struct seq_file *s, const struct ib_cq *cq)
{
	const char *before = "\n  latency";
	unsigned int n;
	u32 count;

	for (n = 0; n < IB_CQ_LATENCIES; n++) {
		/* As ib_cq_value(). */
		count = data_race(cq->stats.latency[n]);
		if (!count)
			continue;
		/* The last one has no upper limit. */
		seq_printf(s, "%s %c", before, n < IB_CQ_LATENCIES - 1 ? '<' : '>');
		ib_cq_show_limit(s, min(n, IB_CQ_LATENCIES - 2U));
		seq_printf(s, "=%u", count);
		before = "";
	}
}

/* Continues the line of a CQ. */
void ib_cq_show(struct ib_cq *cq, struct seq_file *s)
{
	/* A driver that can resize the CQ changes it. */
	int depth = data_race(cq->cqe);

	seq_printf(s, " context=%s vector=%u depth=%d users=%d",
		   cq->lane ? cq->lane->ctx->name : "handler", cq->comp_vector, depth,
		   atomic_read(&cq->usecnt));
	if (cq->device->ops.peek_cq)
		seq_printf(s, " pending=%d", ib_cq_peek(cq, depth));
	seq_printf(s, " errors=%u", atomic_read(&cq->stats.errors));
	if (!cq->lane)
		return;
	seq_printf(s, " weight=%u", READ_ONCE(cq->weight));
	ib_cq_show_state(s, atomic_read(&cq->state));
	ib_cq_show_counters(s, &cq->stats, ib_cq_counters, ARRAY_SIZE(ib_cq_counters));
	ib_cq_show_latency(s, cq);
}

static void ib_cq_show_lane(struct seq_file *s, const struct ib_cq_lane *lane)
{
	bool thread = lane->ctx == &ib_cq_contexts[IB_POLL_THREAD];

	seq_printf(s, "vector=%u context=%s", lane->vector, lane->ctx->name);
	if (thread)
		seq_printf(s, " cpu=%d", lane->thread.cpu);
	else
		seq_puts(s, " cpu=-");
	seq_printf(s, " active=%d", atomic_read(&lane->active));
	ib_cq_show_counters(s, &lane->stats, ib_cq_lane_counters,
			    ARRAY_SIZE(ib_cq_lane_counters));
	if (thread) {
		ib_cq_show_counters(s, &lane->stats, ib_cq_thread_counters,
				    ARRAY_SIZE(ib_cq_thread_counters));
		seq_printf(s, " gap_ns=%llu", ib_cq_value(&lane->thread.gap));
	}
	seq_putc(s, '\n');
}

/* Shows a line for each lane, except those of IB_POLL_DIRECT, which belong to their CQs. */
void ib_cq_vectors_show(struct ib_device *dev, struct seq_file *s)
{
	struct ib_cq_vectors *vectors = dev->cq_vectors;
	unsigned int vector, ctx;

	cpus_read_lock();
	mutex_lock(&vectors->lock);
	for (vector = 0; vector < vectors->nr; vector++) {
		for (ctx = 0; ctx < IB_CQ_CONTEXTS; ctx++) {
			if (vectors->lane[vector][ctx])
				ib_cq_show_lane(s, vectors->lane[vector][ctx]);
		}
	}
	mutex_unlock(&vectors->lock);
	cpus_read_unlock();
}
