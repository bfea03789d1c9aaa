// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints, and the key that tells whether posts and polls are watched.
 */
#include <linux/export.h>
#include <linux/jump_label.h>

#include "contract.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * ib_verbs_watched - true while data path calls are watched, because a tracepoint is enabled or
 *	the contract checker is on
 */
DEFINE_STATIC_KEY_FALSE(ib_verbs_watched);
EXPORT_SYMBOL(ib_verbs_watched);

/* Called when the first user of a tracepoint enables it. */
int ib_verbs_watch(void)
{
	static_branch_inc(&ib_verbs_watched);
	return 0;
}

/* Called after the last user has disabled it. */
void ib_verbs_unwatch(void)
{
	static_branch_dec(&ib_verbs_watched);
}
