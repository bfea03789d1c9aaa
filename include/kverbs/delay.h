/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places where a thread may stand still for any time, for tests: between its look at
 * something that others change, and the step that relies on it. Only builds with the KUnit
 * suites have any of this.
 */
#ifndef KVERBS_DELAY_H
#define KVERBS_DELAY_H

#include <linux/types.h>

#ifdef KVERBS_DELAYS

void kverbs_delay(const char *place);
void kverbs_delay_set(const char *place, void (*fn)(void *arg), void *arg);
bool kverbs_delay_clear(void);

#else

static inline void kverbs_delay(const char *place)
{
}

#endif

#endif
