// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: methods and callbacks in progress.
 *
 * A frame lies on the stack of the caller of a method or callback, and is linked into the
 * chain of its context from before the call until after it; for the data path, the frame is
 * part of the chain itself. The chain of a task is claimed from a table by its outermost
 * frame and released after it; the chain of an interrupt belongs to the CPU, and is empty
 * when the interrupt is over. Only the context itself reads or writes its chain, so nothing
 * is locked. An interrupt uses its own chain, not that of the context that it interrupts:
 * that is another call chain.
 *
 * To see whether a call slept, the checker compares the task's count of voluntary context
 * switches, which every kernel keeps, and which does not grow when the task is merely
 * preempted.
 */
#include <linux/bottom_half.h>
#include <linux/debug_locks.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/rcupdate.h>
#include <linux/sched/task_stack.h>

#include "contract.h"
#include "export.h"

struct ib_chain ib_task_chains[1 << IB_CHAIN_BITS];

DEFINE_PER_CPU_ALIGNED(ib_chains_t, ib_interrupt_chains);

static atomic_t chains_missed;

void ib_chains_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ib_task_chains); i++)
		ib_task_chains[i].top = &ib_task_chains[i].first;
}

/*
 * Whether the frame is of the current task. It is not if it was left by a task that died in the
 * call, and whose task_struct has been reused.
 */
static bool frame_is_alive(const struct ib_chain *chain, const struct ib_frame *f)
{
	return f == &chain->first || f == &chain->inner || object_is_on_stack(f);
}

/* Pushes a frame in the caller's context; its chain is NULL if the table had no room for it. */
static void frame_push(struct ib_frame *f)
{
	int level = interrupt_context_level();
	struct task_struct *owner = NULL;
	struct ib_chain *chain;

	f->prev = NULL;
	if (level) {
		/* An interrupt does not migrate, so the chain is that of this CPU to its end. */
		chain = &(*this_cpu_ptr(&ib_interrupt_chains))[level - 1];
		f->prev = chain->top;
	} else {
		chain = ib_chain_here();
		if (!ib_chain_claim(chain, &owner)) {
			if (owner != current)
				chain = NULL;
			else if (likely(frame_is_alive(chain, chain->top)))
				f->prev = chain->top;
		}
	}
	f->chain = chain;
	if (likely(chain))
		chain->top = f;
	else
		atomic_inc(&chains_missed);
}

static void frame_pop(struct ib_frame *f)
{
	struct ib_chain *chain = f->chain;

	if (unlikely(!chain))
		return;
	if (f->prev || !READ_ONCE(chain->task)) {
		chain->top = f->prev;
		return;
	}
	chain->top = &chain->first;
	ib_chain_release(chain);
}

/*
 * Returns the consumer's callback that the caller is in, or 0 if there is none. If the
 * callback ends in a tail call into the midlayer, the return address does not lie in it.
 */
unsigned long ib_callback_here(void)
{
	int level = interrupt_context_level();
	const struct ib_frame *f = NULL;
	struct ib_chain *chain;

	if (level) {
		f = (*this_cpu_ptr(&ib_interrupt_chains))[level - 1].top;
	} else {
		chain = ib_chain_here();
		if (READ_ONCE(chain->task) == current && chain->top != &chain->first &&
		    frame_is_alive(chain, chain->top))
			f = chain->top;
	}
	while (f && f->kind < IB_FRAME_CALLBACK)
		f = f->prev;
	return f ? f->site : 0;
}

unsigned int ib_chains_missed(void)
{
	return atomic_read(&chains_missed);
}

/*
 * Reports a method or callback that has slept although it must not. The frames around it are not
 * to be blamed for that, so their counts of switches start anew.
 */
void ib_contract_slept(const struct ib_frame *f)
{
	bool callback = f->kind >= IB_FRAME_CALLBACK;
	struct ib_frame *outer;

	for (outer = f->prev; outer; outer = outer->prev)
		outer->switches = current->nvcsw;
	ib_contract_report(callback ? IB_RULE_CALLBACK_SLEEP : IB_RULE_SLEEP, f->dev, f->res,
			   callback ? f->site : ib_contract_driver(f->dev), f->site, 1,
			   "%s slept", f->what);
}

/* Called before a driver's method: pushes the frame. */
void ib_method_enter(struct ib_frame *f, const struct ib_device *dev,
		     const struct rdma_restrack_entry *res, const char *what,
		     enum ib_frame_kind kind, unsigned long site)
{
	if (ib_contract_suspects(dev))
		ib_contract_suspect(dev, res, what, site);
	ib_frame_fill(f, dev, res, what, site);
	f->kind = kind;
	frame_push(f);
}
IB_EXPORT_INTERNAL(ib_method_enter);

/* Called after a driver's method: pops the frame, and checks whether the method slept. */
void ib_method_leave(struct ib_frame *f)
{
	frame_pop(f);
	/* Without a chain, it may have been a callback inside it that slept. */
	if (f->kind == IB_FRAME_ATOMIC && current->nvcsw != f->switches && f->chain)
		ib_contract_slept(f);
}
IB_EXPORT_INTERNAL(ib_method_leave);

static bool lockdep_counts(void)
{
#ifdef CONFIG_LOCKDEP
	return READ_ONCE(debug_locks);
#else
	return false;
#endif
}

static int locks_held(void)
{
#ifdef CONFIG_LOCKDEP
	return current->lockdep_depth;
#else
	return 0;
#endif
}

/*
 * Reports a driver that calls back from within a method of the same device. A callback that
 * belongs to the driver itself, as a user of its own device, is allowed.
 */
static void check_chain(const struct ib_frame *f)
{
	const struct ib_frame *outer;

	if (!f->prev || ib_same_module(f->site, ib_contract_driver(f->dev)))
		return;
	for (outer = f->prev; outer; outer = outer->prev) {
		if (outer->dev != f->dev || outer->kind >= IB_FRAME_CALLBACK)
			continue;
		/* Such a method may poll the CQ. */
		if (outer->kind == IB_FRAME_DRAIN &&
		    (f->kind == IB_FRAME_DONE || f->kind == IB_FRAME_DONE_TASK))
			continue;
		ib_contract_report(IB_RULE_CHAIN, f->dev, f->res, ib_contract_driver(f->dev),
				   outer->site, 1, "%s inside %s", f->what, outer->what);
		return;
	}
}

/**
 * ib_callback_enter() - note that a consumer's function is about to be called
 * @f: the frame, until ib_callback_leave()
 * @dev: the device
 * @res: tracking entry of the object, or NULL
 * @what: what the function is
 * @kind: %IB_FRAME_CALLBACK or one of those after it
 * @function: the function
 *
 * Context: Any; that of the callback.
 */
void ib_callback_enter(struct ib_frame *f, const struct ib_device *dev,
		       const struct rdma_restrack_entry *res, const char *what,
		       enum ib_frame_kind kind, const void *function)
{
	ib_frame_fill(f, dev, res, what, (unsigned long)function);
	f->kind = kind;
	frame_push(f);
	if (f->chain)
		check_chain(f);
	f->preempt = preempt_count();
	f->irqs_off = irqs_disabled();
	f->rcu = rcu_preempt_depth();
	f->locks = locks_held();
}
IB_EXPORT_INTERNAL(ib_callback_enter);

/*
 * Makes up for the missing local_bh_enable() calls of the callback one by one, because
 * these also run the softirqs that were raised meanwhile, and inform lockdep. A callback
 * that enabled bottom halves too often may have borrowed from the other fields of the
 * count.
 */
static void restore_bottom_halves(const struct ib_frame *f)
{
	int levels = NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET;
	int before = f->preempt & SOFTIRQ_MASK;

	if (f->preempt & (NMI_MASK | HARDIRQ_MASK) || (preempt_count() ^ f->preempt) & levels)
		return;
	while (softirq_count() > before) {
		/* With PREEMPT_RT, which has no such function, there is no checker. */
		if (irqs_disabled() && !IS_ENABLED(CONFIG_PREEMPT_RT))
			_local_bh_enable();
		else
			local_bh_enable();
	}
	while (softirq_count() < before)
		local_bh_disable();
}

static void restore_rcu(const struct ib_frame *f)
{
	/* The callback has begun or ended these sections, which sparse cannot know. */
	while (rcu_preempt_depth() > f->rcu) {
		__acquire(RCU);
		rcu_read_unlock();
	}
	while (rcu_preempt_depth() < f->rcu) {
		rcu_read_lock();
		__release(RCU);
	}
}

/*
 * Restores the context that a callback has left wrong, so that the machine can go on. Only its
 * locks stay held.
 */
static void restore_context(const struct ib_frame *f)
{
	/*
	 * First off again, if they were off: no softirq must run under the locks of the
	 * callers.
	 */
	if (f->irqs_off && !irqs_disabled())
		local_irq_disable();
	if (!f->irqs_off && irqs_disabled())
		local_irq_enable();
	restore_rcu(f);
	restore_bottom_halves(f);
	preempt_count_set(f->preempt);
}

/* Locks that the callback still holds are not counted against the frames around it. */
static void excuse_outer(const struct ib_frame *f)
{
	int more = locks_held() - f->locks;
	struct ib_frame *outer;

	if (!f->chain)
		return;
	for (outer = f->prev; outer; outer = outer->prev)
		outer->locks += more;
}

static void check_context(const struct ib_frame *f)
{
	int counts = preempt_count() ^ f->preempt;
	const char *changed = NULL;

	/*
	 * Check locks early, because a spinlock changes the other states as well, but RCU
	 * before them, because lockdep counts RCU as a lock. After a report of its own,
	 * lockdep stops counting. Without a chain, a callback around this one cannot be
	 * excused for the locks of this one.
	 */
	if (rcu_preempt_depth() != f->rcu)
		changed = "RCU sections";
	else if (f->chain && locks_held() != f->locks && lockdep_counts())
		changed = "locks";
	else if (counts & ~SOFTIRQ_MASK)
		changed = "preemption";
	else if (counts)
		changed = "bottom halves";
	else if (irqs_disabled() != f->irqs_off)
		changed = "interrupts";
	if (likely(!changed))
		return;
	restore_context(f);
	excuse_outer(f);
	ib_contract_report(IB_RULE_CALLBACK_CONTEXT, f->dev, f->res, f->site, f->site, 1,
			   "%s changed %s", f->what, changed);
}

/* Called after a consumer's function: checks the context, and pops the frame. */
void ib_callback_leave(struct ib_frame *f)
{
	check_context(f);
	frame_pop(f);
	if ((f->kind == IB_FRAME_CALLBACK || f->kind == IB_FRAME_DONE) &&
	    current->nvcsw != f->switches && f->chain)
		ib_contract_slept(f);
}
IB_EXPORT_INTERNAL(ib_callback_leave);

/*
 * The following are stored in the objects as their handlers, so that handlers are watched
 * even if a driver calls them directly.
 */

/* @caller is where it was called from: in the driver, if that calls the handler directly. */
static void call_comp_handler_watched(struct ib_cq *cq, void *cq_context, unsigned long caller)
{
	struct ib_frame f;

	ib_callback_enter(&f, cq->device, &cq->res, "completion handler", IB_FRAME_CALLBACK,
			  cq->registered_comp_handler);
	if (atomic_inc_return(&cq->handlers) > 1)
		ib_contract_report(IB_RULE_ONE_HANDLER, cq->device, &cq->res,
				   ib_contract_driver(cq->device),
				   ib_contract_is_ours(caller) ? f.site : caller, 1,
				   "two completion handlers at a time");
	cq->registered_comp_handler(cq, cq_context);
	atomic_dec(&cq->handlers);
	ib_callback_leave(&f);
}

void ib_call_comp_handler(struct ib_cq *cq, void *cq_context)
{
	if (ib_contract_on())
		call_comp_handler_watched(cq, cq_context, _RET_IP_);
	else
		cq->registered_comp_handler(cq, cq_context);
}

static void call_event_handler(void (*handler)(struct ib_event *event, void *context),
			       struct ib_event *event, const struct ib_device *dev,
			       const struct rdma_restrack_entry *res, void *context)
{
	struct ib_frame f;

	if (!ib_contract_on()) {
		handler(event, context);
		return;
	}
	ib_callback_enter(&f, dev, res, "event handler", IB_FRAME_CALLBACK, handler);
	handler(event, context);
	ib_callback_leave(&f);
}

void ib_call_cq_event_handler(struct ib_event *event, void *cq_context)
{
	struct ib_cq *cq = event->element.cq;

	call_event_handler(cq->registered_event_handler, event, cq->device, &cq->res,
			   cq_context);
}

void ib_call_qp_event_handler(struct ib_event *event, void *qp_context)
{
	struct ib_qp *qp = event->element.qp;

	call_event_handler(qp->registered_event_handler, event, qp->device, &qp->res,
			   qp_context);
}

void ib_call_srq_event_handler(struct ib_event *event, void *srq_context)
{
	struct ib_srq *srq = event->element.srq;

	call_event_handler(srq->registered_event_handler, event, srq->device, &srq->res,
			   srq_context);
}

/* Reports a method that returned success but not its output; @output says which. */
void ib_output_missing(const struct ib_device *dev, const struct rdma_restrack_entry *res,
		       const char *method, const char *output, unsigned long site)
{
	ib_contract_report(IB_RULE_OUTPUT, dev, res, ib_contract_driver(dev), site, 1, "%s %s",
			   method, output);
}
