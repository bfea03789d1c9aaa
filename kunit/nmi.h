/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls a function in a real NMI, which the local APIC sends.
 */
#ifndef KVT_NMI_H
#define KVT_NMI_H

#include <kunit/test.h>

void kvt_nmi_up(struct kunit *test);
bool kvt_run_in_nmi(int cpu, void (*fn)(void *arg), void *arg);

#endif
