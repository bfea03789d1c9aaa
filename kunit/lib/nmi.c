// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a function in NMI context.
 *
 * The local APIC of this CPU sends an NMI to another CPU, or to itself. The NMI handler
 * calls the function if it runs on the target CPU, and ignores the NMI on other CPUs. There
 * is one call at a time; its state tells who owns nmi_call:
 *
 *   NMI_IDLE		nobody
 *   NMI_SETUP		kvt_run_in_nmi(), which fills it in or gives up
 *   NMI_CALLED		the NMI was sent: whoever changes this state next
 *   NMI_TAKEN		the handler: the caller must wait for it
 *   NMI_FINISHED	kvt_run_in_nmi() again
 */
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "lib/lib.h"
#include "lib/nmi.h"

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
	/* Races with nmi_wait(), which may give up. */
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
 * kvt_nmi_up() - register the NMI handler until the case ends
 * @test: the running case
 */
void kvt_nmi_up(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, register_nmi_handler(NMI_LOCAL, kvt_nmi, 0, "kverbs_kunit"));
	kvt_defer(test, kvt_nmi_down, NULL);
}
EXPORT_SYMBOL_GPL(kvt_nmi_up);

/*
 * Returns false if no NMI came in time. A handler that has begun is always waited for, since
 * it uses the caller's argument.
 */
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
 * kvt_run_in_nmi() - call a function in NMI context
 * @cpu: an online CPU, this one or another, to call it on
 * @fn: the function
 * @arg: its argument
 *
 * The case must have called kvt_nmi_up(). Returns when @fn has returned, or if no NMI came.
 *
 * Context: Any but NMI; interrupts may be off. Fails while another call is under way.
 * Return: true if @fn has run in NMI context.
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
