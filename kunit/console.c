// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel's log is told while a case runs: its tracepoint has each message.
 */
#include <linux/export.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/printk.h>

#include "console.h"
#include "lib.h"

/* Any context. */
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
 * kvt_console_watch() - look for messages that have some words in them
 * @test: the running case
 * @words: the words
 *
 * Return: who looks, until the end of the case.
 */
struct kvt_console *kvt_console_watch(struct kunit *test, const char *words)
{
	struct kvt_console *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->words = words;
	init_completion(&c->told);
	KUNIT_ASSERT_EQ(test, 0, register_trace_console(probe_console, c));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, unwatch, c));
	return c;
}
EXPORT_SYMBOL_GPL(kvt_console_watch);

/**
 * kvt_console_wait() - wait for the next message
 * @c: who looks for it
 *
 * Return: true if it came in time.
 */
bool kvt_console_wait(struct kvt_console *c)
{
	return kvt_wait(&c->told);
}
EXPORT_SYMBOL_GPL(kvt_console_wait);

/**
 * kvt_console_times() - how often the message came
 * @c: who looks for it
 *
 * Return: the number.
 */
unsigned int kvt_console_times(struct kvt_console *c)
{
	return atomic_read(&c->times);
}
EXPORT_SYMBOL_GPL(kvt_console_times);
