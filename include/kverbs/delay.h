/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places where tests can hold up a thread for any length of time: after it has read
 * something that others may change, and before it relies on that. They only exist in builds
 * with the KUnit suites.
 */
#ifndef KVERBS_DELAY_H
#define KVERBS_DELAY_H

#include <linux/types.h>

#ifdef KVERBS_DELAYS

void kverbs_delay(const char *place);
void kverbs_delay_set(const char *place, void (*fn)(void *arg), void *arg);
void kverbs_delay_set_any(const char *place, void (*fn)(void *arg), void *arg);
bool kverbs_delay_clear(void);

#else

static inline void kverbs_delay(const char *place)
{
}

#endif

#endif
