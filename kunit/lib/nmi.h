/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls a function in a real NMI, which the local APIC sends. Where there is none, cases that
 * need an NMI are skipped.
 */
#ifndef KVT_NMI_H
#define KVT_NMI_H

#include <kunit/test.h>

#ifdef CONFIG_X86_LOCAL_APIC
void kvt_nmi_up(struct kunit *test);
bool kvt_run_in_nmi(int cpu, void (*fn)(void *arg), void *arg);
#else
static inline void kvt_nmi_up(struct kunit *test)
{
	kunit_skip(test, "there is no local APIC to send NMIs");
}

static inline bool kvt_run_in_nmi(int cpu, void (*fn)(void *arg), void *arg)
{
	return false;
}
#endif

#endif
