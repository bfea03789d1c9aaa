// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moderation of completion queues: how many completions, or microseconds, may pass before a
 * device notifies.
 *
 * A consumer sets it with rdma_set_cq_moderation(); or, on devices with use_cq_dim, it
 * follows the load of each CQ that the core polls for its consumer. The kernel's library of
 * dynamic interrupt moderation (linux/dim.h) decides: the core tells it how many
 * completions followed each notification. It compares the rates of completions, and of
 * completions to notifications, over some 64 notifications, and steps up and down a table
 * of levels, from its work in the kernel's work queue.
 *
 * Lock protocol: ib_cq_dim.lock (a mutex) is held around the driver's modify_cq, so that a
 * level does not replace what the consumer sets at that moment. What the consumer has set
 * stays: the CQ does not follow its load any more.
 */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "../core/contract/contract.h"
#include "../core/contract/invalid.h"
#include "cq.h"

/* A limit of 0 means that the driver checks the value itself. */
static u16 ib_cq_limit(u16 value, u16 limit)
{
	return limit ? min(value, limit) : value;
}

#ifdef HAVE_RDMA_DIM
#include <linux/dim.h>

/**
 * struct ib_cq_level - a level of moderation
 * @count: completions to wait for
 * @period: microseconds to wait at most, from the first of them
 */
struct ib_cq_level {
	u16 count;
	u16 period;
};

/*
 * The first level is for light loads: no completion waits. At each further level a
 * notification covers twice as many completions as at the level before; under the load that
 * leads there, that many come soon. The period limits the wait if they do not, for instance
 * at the end of a burst: it grows more slowly, and never exceeds a few times what a small
 * request over a fabric takes.
 */
static const struct ib_cq_level ib_cq_levels[RDMA_DIM_PARAMS_NUM_PROFILES] = {
	{ 0, 0 },
	{ 2, 2 },
	{ 4, 4 },
	{ 8, 6 },
	{ 16, 8 },
	{ 32, 12 },
	{ 64, 16 },
	{ 128, 24 },
	{ 256, 32 },
};

/**
 * struct ib_cq_dim - a CQ that is moderated by its load
 * @dim: the library's state; ib_cq.dim points here
 * @cq: the CQ
 * @lock: serialises changes
 * @fixed: the consumer has set the moderation
 * @seen: completions that were reported to the library
 */
struct ib_cq_dim {
	struct dim dim;
	struct ib_cq *cq;
	struct mutex lock;
	bool fixed;
	u64 seen;
};

static struct ib_cq_dim *to_cq_dim(struct dim *dim)
{
	return container_of(dim, struct ib_cq_dim, dim);
}

static void ib_cq_dim_work(struct work_struct *work)
{
	struct ib_cq_dim *cdim = to_cq_dim(container_of(work, struct dim, work));
	const struct ib_cq_level *level = &ib_cq_levels[cdim->dim.profile_ix];
	struct ib_device *dev = cdim->cq->device;
	const struct ib_cq_caps *caps = &dev->attrs.cq_caps;

	mutex_lock(&cdim->lock);
	/* If the driver refuses, the CQ stays as it is; there is no caller to tell. */
	if (!cdim->fixed)
		IB_METHOD(dev, &cdim->cq->res, "modify_cq",
			  dev->ops.modify_cq(cdim->cq,
				ib_cq_limit(level->count, caps->max_cq_moderation_count),
				ib_cq_limit(level->period, caps->max_cq_moderation_period)));
	mutex_unlock(&cdim->lock);
	/* Let the library measure again; until now it did nothing. */
	WRITE_ONCE(cdim->dim.state, DIM_START_MEASURE);
}

/*
 * Makes the moderation of a CQ follow its load, if the device wants that, and
 * there is memory. Process context, before the CQ is polled.
 */
void ib_cq_dim_init(struct ib_cq *cq)
{
	struct ib_cq_dim *cdim;

	if (!cq->device->use_cq_dim || !cq->device->ops.modify_cq || ib_cq_is_direct(cq))
		return;
	cdim = kzalloc(sizeof(*cdim), GFP_KERNEL);
	if (!cdim)
		return;
	cdim->cq = cq;
	mutex_init(&cdim->lock);
	INIT_WORK(&cdim->dim.work, ib_cq_dim_work);
	cdim->dim.state = DIM_START_MEASURE;
	/* Without moderation, the level can only rise. */
	cdim->dim.tune_state = DIM_GOING_RIGHT;
	cdim->dim.profile_ix = RDMA_DIM_START_PROFILE;
	cq->dim = &cdim->dim;
}

/* The CQ is not polled any more, but not destroyed yet. Process context. */
void ib_cq_dim_exit(struct ib_cq *cq)
{
	struct dim *dim = cq->dim;

	if (!dim)
		return;
	cq->dim = NULL;
	cancel_work_sync(&dim->work);
	mutex_destroy(&to_cq_dim(dim)->lock);
	kfree(to_cq_dim(dim));
}

/* See ib_cq_dim_add(). */
void ib_cq_dim_round(struct ib_cq *cq)
{
	struct ib_cq_dim *cdim = to_cq_dim(cq->dim);
	u64 came = cq->stats.completions - cdim->seen;

	cdim->seen += came;
	if (!READ_ONCE(cdim->fixed))
		rdma_dim(cq->dim, came);
}

static int ib_cq_set_fixed(struct ib_cq *cq, u16 count, u16 period, unsigned long site)
{
	struct ib_cq_dim *cdim = to_cq_dim(cq->dim);
	int err;

	mutex_lock(&cdim->lock);
	err = IB_IN_FRAME(cq->device, &cq->res, "modify_cq", IB_FRAME_METHOD, site,
			  cq->device->ops.modify_cq(cq, count, period));
	if (!err)
		WRITE_ONCE(cdim->fixed, true);
	mutex_unlock(&cdim->lock);
	return err;
}

#else

static int ib_cq_set_fixed(struct ib_cq *cq, u16 count, u16 period, unsigned long site)
{
	return -EOPNOTSUPP;
}

#endif /* HAVE_RDMA_DIM */

/**
 * rdma_set_cq_moderation() - delay the notifications of a CQ
 * @cq: the CQ
 * @cq_count: completions to wait for, up to
 *	attrs.cq_caps.max_cq_moderation_count; 0 for any number
 * @cq_period: microseconds to wait at most, from the first of them, up to
 *	attrs.cq_caps.max_cq_moderation_period; 0 for any time
 *
 * An armed CQ notifies when either is reached. With a count of 1, or both 0, it
 * notifies at the first completion. With a count and no period, a consumer
 * that has fewer requests outstanding is not notified.
 *
 * A CQ whose moderation followed its load keeps what is set here.
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the driver has no such method, or the CQ is of the pool;
 * -EINVAL beyond the device's limits; or an error of the driver.
 */
int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
	const struct ib_device *dev = cq->device;
	const struct ib_cq_caps *caps = &dev->attrs.cq_caps;
	const struct ib_verb_call call = { .dev = dev, .res = &cq->res, .what = "modify_cq" };
	int err;

	if (cq->shared || !dev->ops.modify_cq)
		return -EOPNOTSUPP;
	/* A limit of 0 leaves it to the driver. */
	err = ib_check_range(&call, "cq_count", cq_count, 0,
			     caps->max_cq_moderation_count ?: U16_MAX) ?:
	      ib_check_range(&call, "cq_period", cq_period, 0,
			     caps->max_cq_moderation_period ?: U16_MAX);
	if (err)
		return err;
	if (cq->dim)
		return ib_cq_set_fixed(cq, cq_count, cq_period, _RET_IP_);
	return IB_METHOD(dev, &cq->res, "modify_cq",
			 dev->ops.modify_cq(cq, cq_count, cq_period));
}
EXPORT_SYMBOL(rdma_set_cq_moderation);
