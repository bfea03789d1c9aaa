/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each allocation of a call fails in turn; see sweep.c.
 */
#ifndef KVT_FAIL_NTH_H
#define KVT_FAIL_NTH_H

#include <kunit/test.h>

#include "mock.h"

/**
 * struct victim - a call whose allocations fail in turn
 * @name: for messages
 * @make: the call; returns 0 or a negative errno
 * @unmake: undoes a @make that worked
 */
struct victim {
	const char *name;
	int (*make)(void *arg);
	void (*unmake)(void *arg);
};

void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg);

#endif
