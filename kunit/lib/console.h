/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watches the kernel log for messages while a case runs.
 */
#ifndef KVT_CONSOLE_H
#define KVT_CONSOLE_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <kunit/test.h>

/* A watcher for messages that contain a text. */
struct kvt_console {
	const char *words;	/* the text */
	atomic_t times;		/* number of matching messages */
	struct completion told;	/* completed by each of them */
};

struct kvt_console *kvt_console_watch(struct kunit *test, const char *words);
bool kvt_console_wait(struct kvt_console *c);
unsigned int kvt_console_times(struct kvt_console *c);

#endif
