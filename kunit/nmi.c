// SPDX-License-Identifier: GPL-2.0-only
/*
 * NMIs on request.
 *
 * The local interrupt controller of one CPU sends an NMI to another, or to itself.
 * A handler takes it on the CPU that was meant and calls the function there; others
 * pass it by. There is one call at a time, whose state says whose it is:
 *
 *   NMI_IDLE		nobody's
 *   NMI_SETUP		of kvt_run_in_nmi(), which fills it in
 *   NMI_CALLED		the NMI is on its way: whoever moves it on owns it
 *   NMI_TAKEN		of the handler: the caller may not leave
 *   NMI_FINISHED	of kvt_run_in_nmi() again
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <kunit/test.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "lib.h"
#include "nmi.h"

enum nmi_state {
	NMI_IDLE,
	NMI_SETUP,
	NMI_CALLED,
	NMI_TAKEN,
	NMI_FINISHED,
};

static atomic_t nmi_state = ATOMIC_INIT(NMI_IDLE);

static struct {
	int cpu;
	void (*fn)(void *arg);
	void *arg;
	bool in_nmi;
} nmi_call;

static int kvt_nmi(unsigned int type, struct pt_regs *regs)
{
	/* Pairs with the release in kvt_run_in_nmi(). */
	if (atomic_read_acquire(&nmi_state) != NMI_CALLED ||
	    READ_ONCE(nmi_call.cpu) != smp_processor_id())
		return NMI_DONE;
	/* Against the caller, who may give up. */
	if (atomic_cmpxchg(&nmi_state, NMI_CALLED, NMI_TAKEN) != NMI_CALLED)
		return NMI_DONE;
	nmi_call.in_nmi = in_nmi();
	nmi_call.fn(nmi_call.arg);
	/* Pairs with the acquire in nmi_wait(). */
	atomic_set_release(&nmi_state, NMI_FINISHED);
	return NMI_HANDLED;
}

static void kvt_nmi_down(void *arg)
{
	unregister_nmi_handler(NMI_LOCAL, "kverbs_kunit");
}

/**
 * kvt_nmi_up() - take NMIs until the case ends
 * @test: the running case
 */
void kvt_nmi_up(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, register_nmi_handler(NMI_LOCAL, kvt_nmi, 0, "kverbs_kunit"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kvt_nmi_down, NULL));
}
EXPORT_SYMBOL_GPL(kvt_nmi_up);

/* False if no NMI came. One that came is waited for: it has the caller's argument. */
static bool nmi_wait(void)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);

	/* Pairs with the release in kvt_nmi(). */
	while (atomic_read_acquire(&nmi_state) != NMI_FINISHED) {
		if (ktime_get_ns() > end &&
		    atomic_cmpxchg(&nmi_state, NMI_CALLED, NMI_SETUP) == NMI_CALLED)
			return false;
		cpu_relax();
	}
	return true;
}

/**
 * kvt_run_in_nmi() - call a function in NMI
 * @cpu: where: an online CPU, this one or another
 * @fn: the function
 * @arg: its argument
 *
 * Between kvt_nmi_up() and the end of the case. Returns after @fn did.
 *
 * Context: Any but NMI; interrupts may be off. One caller at a time, or it fails.
 * Return: true if @fn has run, in NMI.
 */
bool kvt_run_in_nmi(int cpu, void (*fn)(void *arg), void *arg)
{
	bool done;

	if (atomic_cmpxchg(&nmi_state, NMI_IDLE, NMI_SETUP) != NMI_IDLE)
		return false;
	nmi_call.fn = fn;
	nmi_call.arg = arg;
	nmi_call.in_nmi = false;
	WRITE_ONCE(nmi_call.cpu, cpu);
	/* Pairs with the acquire in kvt_nmi(). */
	atomic_set_release(&nmi_state, NMI_CALLED);
	apic->send_IPI(cpu, NMI_VECTOR);
	done = nmi_wait() && nmi_call.in_nmi;
	atomic_set_release(&nmi_state, NMI_IDLE);
	return done;
}
EXPORT_SYMBOL_GPL(kvt_run_in_nmi);
