/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract checker: what the other files of the midlayer use of it.
 *
 * A frame represents a call in progress: there is one for each driver method and each
 * consumer callback, on the stack of its caller. The frames of one context - a task, or the
 * softirq, interrupt or NMI that interrupts it - form a chain. They show whether a callback
 * runs inside a method, and what a method or callback did to its context while it ran.
 */
#ifndef KVERBS_CORE_CONTRACT_H
#define KVERBS_CORE_CONTRACT_H

#include <linux/hash.h>
#include <linux/instruction_pointer.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <kverbs/contract.h>

#include "device_priv.h"

struct ib_chain;
struct module;
struct notifier_block;
struct rdma_restrack_entry;
struct seq_file;

/**
 * struct ib_ref_source - references of one kind that modules take and may leave behind
 * @list: link among all sources
 * @kind: their kind, for reports
 * @for_each: calls @visit with the call site that took each of them on a device; those taken
 *	after @until, a value of ib_ref_log_seq(), may be left out
 * @forget: the module is being unloaded. NULL if @for_each visits the call sites where they
 *	are kept: then they are cleared there
 *
 * The owner of such references registers them with ib_contract_add_source(). Both are called
 * under ib_registry_lock, for devices in any state.
 */
struct ib_ref_source {
	struct list_head list;
	const char *kind;
	void (*for_each)(struct ib_device *dev, u64 until,
			 void (*visit)(void *context, unsigned long *site), void *context);
	void (*forget)(struct ib_device *dev, const struct module *mod);
};

/**
 * struct ib_event_caller - a task that calls event handlers at this moment
 * @list: link among all of them
 * @task: the task
 */
struct ib_event_caller {
	struct list_head list;
	const struct task_struct *task;
};

enum ib_frame_kind {
	IB_FRAME_ATOMIC,	/* a method that must not sleep */
	IB_FRAME_METHOD,	/* a method that may */
	IB_FRAME_DRAIN,		/* likewise, and call done() */
	IB_FRAME_CALLBACK,	/* a callback that must not sleep */
	IB_FRAME_DONE,		/* a done() that must not sleep */
	IB_FRAME_DONE_TASK,	/* a done() that may */
	IB_FRAME_CALLBACK_TASK,	/* any other callback that may */
};

/**
 * struct ib_frame - a method or callback in progress
 * @chain: the chain that it is in; NULL if it is not watched
 * @prev: the frame around it, or NULL
 * @dev: the device
 * @res: the object, or NULL
 * @what: name of the method or callback
 * @site: for a method, the call site in the consumer; else the callback's
 *	address
 * @switches: how often the task had slept before it
 * @kind: what it is
 * @irqs_off: for callbacks: whether interrupts were off before it
 * @preempt: likewise, preempt_count()
 * @rcu: likewise, nesting depth of RCU sections, if the kernel counts them
 * @locks: likewise, locks held, if lockdep counts them
 */
struct ib_frame {
	struct ib_chain *chain;
	struct ib_frame *prev;
	const struct ib_device *dev;
	const struct rdma_restrack_entry *res;
	const char *what;
	unsigned long site;
	unsigned long switches;
	u8 kind;
	bool irqs_off;
	int preempt;
	int rcu;
	int locks;
};

/**
 * struct ib_chain - the frames of a context
 * @task: for chains of tasks: the owner; NULL if it is free
 * @top: the innermost frame
 * @first: frame for a method of the data path that is the task's outermost
 * @inner: frame for such a method inside a callback or in an interrupt; its @what is NULL
 *	while it is free
 *
 * Only the owner of a chain touches it. The chains of tasks are in a table, by hash of the
 * task; @top points to @first while they are free.
 */
struct ib_chain {
	struct task_struct *task;
	struct ib_frame *top;
	struct ib_frame first;
	struct ib_frame inner;
} ____cacheline_aligned;

/* Nothing sets the kind of the frames @first and @inner: it stays 0. */
static_assert(IB_FRAME_ATOMIC == 0);

/* Few tasks are inside methods at a time. */
#define IB_CHAIN_BITS	9

extern struct ib_chain ib_task_chains[1 << IB_CHAIN_BITS];

/* The chains of a CPU: softirq, interrupt, NMI. */
typedef struct ib_chain ib_chains_t[3];
DECLARE_PER_CPU_ALIGNED(ib_chains_t, ib_interrupt_chains);

DECLARE_STATIC_KEY_FALSE(ib_contract_key);

static __always_inline bool ib_contract_on(void)
{
	return static_branch_unlikely(&ib_contract_key);
}

/* contract.c */
__printf(7, 8) __cold
void ib_contract_report(enum ib_contract_rule rule, const struct ib_device *dev,
			const struct rdma_restrack_entry *res, unsigned long culprit,
			unsigned long site, unsigned int count, const char *fmt, ...);
unsigned long ib_contract_driver(const struct ib_device *dev);
void ib_event_call_begin(struct ib_event_caller *caller);
void ib_event_call_end(struct ib_event_caller *caller);
bool ib_called_atomic(const struct ib_device *dev, const char *what, const void *caller);
int ib_contract_register_notifier(struct notifier_block *nb);
void ib_contract_unregister_notifier(struct notifier_block *nb);
void ib_contract_show(struct seq_file *s);

/* frame.c */
void ib_chains_init(void);
unsigned int ib_chains_missed(void);
unsigned long ib_callback_here(void);
__cold void ib_contract_slept(const struct ib_frame *f);
void ib_method_enter(struct ib_frame *f, const struct ib_device *dev,
		     const struct rdma_restrack_entry *res, const char *what,
		     enum ib_frame_kind kind, unsigned long site);
void ib_method_leave(struct ib_frame *f);
void ib_callback_enter(struct ib_frame *f, const struct ib_device *dev,
		       const struct rdma_restrack_entry *res, const char *what,
		       enum ib_frame_kind kind, const void *function);
void ib_callback_leave(struct ib_frame *f);
void ib_call_comp_handler(struct ib_cq *cq, void *cq_context);
void ib_call_cq_event_handler(struct ib_event *event, void *cq_context);
void ib_call_qp_event_handler(struct ib_event *event, void *qp_context);
void ib_call_srq_event_handler(struct ib_event *event, void *srq_context);
void ib_output_missing(const struct ib_device *dev, const struct rdma_restrack_entry *res,
		       const char *method, const char *output, unsigned long site);

/* As a call site: the call has been reported already, further up. */
#define IB_SITE_REPORTED	0UL

/* owner.c */
unsigned long ib_contract_culprit(unsigned long site);
bool ib_contract_is_ours(unsigned long addr);
bool ib_contract_is_known(unsigned long addr);
bool ib_same_module(unsigned long a, unsigned long b);
void ib_module_name(unsigned long addr, char *name, size_t size);
__cold bool ib_contract_suspect(const struct ib_device *dev,
				const struct rdma_restrack_entry *res, const char *what,
				unsigned long site);
void ib_contract_ah_made(struct ib_ah *ah, unsigned long site);
void ib_contract_ah_destroyed(struct ib_ah *ah);
void ib_contract_device_found(struct ib_device *dev, unsigned long addr);
void ib_contract_client_back(struct ib_device *dev, unsigned long addr);
void ib_contract_client_left(struct ib_device *dev, unsigned long addr, const char *how,
			     bool declined, u64 until);
void ib_contract_join(struct module *mod);
void ib_contract_add_source(struct ib_ref_source *source);
void ib_contract_del_source(struct ib_ref_source *source);
void ib_contract_forget(struct ib_device *dev);
void ib_contract_watch_state(struct ib_device *dev);
int ib_contract_init(void);
void ib_contract_exit(void);

/* Whether each call on the device must be checked for a caller that may not make it. */
static __always_inline bool ib_contract_suspects(const struct ib_device *dev)
{
	return READ_ONCE(ib_priv(dev)->contract_suspect);
}

/* For a verbs call that makes others from within: these cannot see who called. */
static __always_inline void ib_contract_call(const struct ib_device *dev,
					     const struct rdma_restrack_entry *res,
					     const char *what, unsigned long site)
{
	if (ib_contract_on() && unlikely(ib_contract_suspects(dev)))
		ib_contract_suspect(dev, res, what, site);
}

/* Whether the caller may not sleep, if the kernel can tell. */
static inline bool ib_in_atomic(void)
{
	return in_interrupt() || irqs_disabled() || rcu_preempt_depth() ||
	       (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible());
}

static __always_inline struct ib_chain *ib_chain_here(void)
{
	return &ib_task_chains[hash_ptr(current, IB_CHAIN_BITS)];
}

/* 0 for a task, SOFTIRQ_OFFSET for a softirq, anything else in hard interrupts. */
static __always_inline int ib_chain_context(void)
{
	return preempt_count() & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/*
 * A task that is in no frame takes its chain, ib_chain_here(). Returns false if the task is
 * in a frame already, or if another task has taken this entry of the table: @owner tells
 * which task has it. Not in interrupts.
 */
static __always_inline bool ib_chain_claim(struct ib_chain *chain, struct task_struct **owner)
{
	/* Pairs with ib_chain_release(). */
	return likely(try_cmpxchg_acquire(&chain->task, owner, current));
}

static __always_inline void ib_chain_release(struct ib_chain *chain)
{
	/* Pairs with ib_chain_claim(): the next owner finds the chain in its initial state. */
	smp_store_release(&chain->task, NULL);
}

static __always_inline void ib_frame_fill(struct ib_frame *f, const struct ib_device *dev,
					  const struct rdma_restrack_entry *res,
					  const char *what, unsigned long site)
{
	f->dev = dev;
	f->res = res;
	f->what = what;
	f->site = site;
	f->switches = current->nvcsw;
}

/*
 * Finds the frame for a method of the data path in a callback or in an interrupt; @owner
 * has the task's chain. Returns false if there is none: in NMIs, and in callbacks inside
 * such a method.
 */
static __always_inline bool ib_inner_frame(int context, struct ib_chain *chain,
					   const struct task_struct *owner,
					   struct ib_frame **f)
{
	if (context == SOFTIRQ_OFFSET)
		chain = &(*this_cpu_ptr(&ib_interrupt_chains))[0];
	else if (context && !(context & NMI_MASK))
		chain = &(*this_cpu_ptr(&ib_interrupt_chains))[1];
	else if (unlikely(context || owner != current))
		return false;
	*f = &chain->inner;
	return likely(!chain->inner.what);
}

static __always_inline void ib_inner_begin(struct ib_frame *f)
{
	struct ib_chain *chain = container_of(f, struct ib_chain, inner);

	f->prev = chain->top;
	chain->top = f;
}

static __always_inline void ib_inner_end(struct ib_frame *f)
{
	struct ib_chain *chain = container_of(f, struct ib_chain, inner);

	chain->top = f->prev;
	f->what = NULL;
}

/**
 * IB_FAST_METHOD() - like IB_ATOMIC_METHOD(), for the data path, while the checker is on
 * @dev: the device
 * @res: tracking entry of the object
 * @what: name of the method
 * @site: who called into the midlayer
 * @call: the call
 * @slow: the same call by IB_IN_FRAME(), in a function of its own
 *
 * Uses a frame in the chain: one on the stack would have to be cleared, and would cost a
 * stack guard.
 */
#define IB_FAST_METHOD(dev, res, what, site, call, slow)		\
({									\
	struct ib_chain *__chain = ib_chain_here();			\
	struct task_struct *__owner = NULL;				\
	int __context = ib_chain_context();				\
	struct ib_frame *__f;						\
	typeof(call) __ret;						\
									\
	if (likely(!__context) && ib_chain_claim(__chain, &__owner)) {	\
		__f = &__chain->first;					\
		ib_frame_fill(__f, dev, res, what, site);		\
		__ret = (call);						\
		if (unlikely(current->nvcsw != __f->switches))		\
			ib_contract_slept(__f);				\
		ib_chain_release(__chain);				\
	} else if (ib_inner_frame(__context, __chain, __owner, &__f)) {	\
		ib_frame_fill(__f, dev, res, what, site);		\
		ib_inner_begin(__f);					\
		__ret = (call);						\
		if (unlikely(current->nvcsw != __f->switches))		\
			ib_contract_slept(__f);				\
		ib_inner_end(__f);					\
	} else {							\
		__ret = (slow);						\
	}								\
	__ret;								\
})

/**
 * IB_IN_FRAME() - call a driver's method, watched; has the value that the method returns
 * @dev: the device
 * @res: tracking entry of the object, or NULL
 * @what: name of the method
 * @kind: %IB_FRAME_METHOD, %IB_FRAME_ATOMIC or %IB_FRAME_DRAIN
 * @site: who called into the midlayer
 * @call: the call
 */
#define IB_IN_FRAME(dev, res, what, kind, site, call)			\
({									\
	typeof(call) __ret;						\
									\
	if (ib_contract_on()) {						\
		struct ib_frame __frame;				\
									\
		ib_method_enter(&__frame, dev, res, what, kind, site);	\
		__ret = (call);						\
		ib_method_leave(&__frame);				\
	} else {							\
		__ret = (call);						\
	}								\
	__ret;								\
})

/* Like IB_IN_FRAME(), on behalf of the caller of the function that uses the macro. */
#define IB_METHOD(dev, res, what, call)					\
	IB_IN_FRAME(dev, res, what, IB_FRAME_METHOD, _RET_IP_, call)
#define IB_ATOMIC_METHOD(dev, res, what, call)				\
	IB_IN_FRAME(dev, res, what, IB_FRAME_ATOMIC, _RET_IP_, call)

/**
 * IB_CALL_BACK() - call a consumer's function, watched
 * @dev: the device
 * @res: tracking entry of the object, or NULL
 * @what: what the function is
 * @kind: %IB_FRAME_CALLBACK or one of those after it
 * @function: the function
 * @call: the call
 */
#define IB_CALL_BACK(dev, res, what, kind, function, call)		\
do {									\
	if (ib_contract_on()) {						\
		struct ib_frame __frame;				\
									\
		ib_callback_enter(&__frame, dev, res, what, kind, function); \
		call;							\
		ib_callback_leave(&__frame);				\
	} else {							\
		call;							\
	}								\
} while (0)

/**
 * IB_OUTPUT() - check what a method made: NULL is reported, and becomes an ERR_PTR
 * @dev: the device
 * @method: name of the method
 * @site: who called into the midlayer
 * @made: what the method returned, or the ERR_PTR that the caller has replaced
 *	it by
 */
#define IB_OUTPUT(dev, method, site, made)				\
({									\
	typeof(made) __made = (made);					\
									\
	if (unlikely(!__made)) {					\
		ib_output_missing(dev, NULL, method, "returned NULL", site); \
		__made = ERR_PTR(-EINVAL);				\
	}								\
	__made;								\
})

#endif
