// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches the kernel log for messages while a case runs: a probe on the "console"
 * tracepoint sees every message that is logged.
 */
#include <linux/tracepoint.h>
#include <trace/events/printk.h>

#include "lib/console.h"
#include "lib/lib.h"

/* Called in any context. */
static void probe_console(void *data, const char *text, size_t len)
{
	struct kvt_console *c = data;

	if (!strnstr(text, c->words, len))
		return;
	atomic_inc(&c->times);
	complete(&c->told);
}

static void unwatch(void *arg)
{
	unregister_trace_console(probe_console, arg);
	tracepoint_synchronize_unregister();
}

/**
 * kvt_console_watch() - watch the log for messages that contain a text
 * @test: the running case
 * @words: the text
 *
 * Return: the watcher, valid until the end of the case.
 */
struct kvt_console *kvt_console_watch(struct kunit *test, const char *words)
{
	struct kvt_console *c = kvt_zalloc(test, sizeof(*c));

	c->words = words;
	init_completion(&c->told);
	KUNIT_ASSERT_EQ(test, 0, register_trace_console(probe_console, c));
	kvt_defer(test, unwatch, c);
	return c;
}
EXPORT_SYMBOL_GPL(kvt_console_watch);

/**
 * kvt_console_wait() - wait for the next matching message
 * @c: the watcher
 *
 * Return: true if the message came within KVT_TIMEOUT.
 */
bool kvt_console_wait(struct kvt_console *c)
{
	return kvt_wait(&c->told);
}
EXPORT_SYMBOL_GPL(kvt_console_wait);

/**
 * kvt_console_times() - count the matching messages seen so far
 * @c: the watcher
 *
 * Return: the number of messages.
 */
unsigned int kvt_console_times(struct kvt_console *c)
{
	return atomic_read(&c->times);
}
EXPORT_SYMBOL_GPL(kvt_console_times);
