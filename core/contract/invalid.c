// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports why a consumer's call fails with -EINVAL: in the log, rate-limited, and by a
 * tracepoint. No locks; any context.
 *
 * The limit is per device, with separate limits for processes and for kernel callers: a process
 * that is refused all the time suppresses only lines about processes on its device. Calls without
 * a device have a limit of their own.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/ratelimit.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "contract.h"
#include "invalid.h"
#include "restrack.h"
#include "trace.h"

/* A consumer that keeps retrying must not flood the log. */
#define INVALID_INTERVAL	(5 * HZ)
#define INVALID_BURST		10

/* Longer texts are cut. */
#define INVALID_TEXT		192

static DEFINE_RATELIMIT_STATE(no_device_limit, INVALID_INTERVAL, INVALID_BURST);

/**
 * ib_invalid_init() - set up a device's rate limits
 * @dev: the device
 *
 * Context: Process.
 */
void ib_invalid_init(struct ib_device *dev)
{
	struct ratelimit_state *limits = ib_priv(dev)->invalid_limits;

	ratelimit_state_init(&limits[IB_CALLER_KERNEL], INVALID_INTERVAL, INVALID_BURST);
	ratelimit_state_init(&limits[IB_CALLER_PROCESS], INVALID_INTERVAL, INVALID_BURST);
}

/*
 * A call without an object is a process's if it comes from a module that passes on requests
 * of processes.
 */
static enum ib_caller caller_of(const struct ib_verb_call *call, const char *client)
{
	static const char * const passing_on[] = { "ib_uverbs", "ib_umad", "rdma_ucm" };

	if (call->process || (call->res && call->res->user))
		return IB_CALLER_PROCESS;
	return match_string(passing_on, ARRAY_SIZE(passing_on), client) < 0 ? IB_CALLER_KERNEL :
									      IB_CALLER_PROCESS;
}

static struct ratelimit_state *limit_of(const struct ib_verb_call *call, const char *client)
{
	return call->dev ? &ib_priv(call->dev)->invalid_limits[caller_of(call, client)] :
			   &no_device_limit;
}

/**
 * ib_invalid() - log and trace what is wrong with a call
 * @call: the call
 * @fmt: format of the text that says which argument is wrong, its value, and the limit;
 *	without a newline
 *
 * The line in the log reads "<device>: <client>: <object>: <call>: <text>".
 *
 * Context: Any.
 * Return: -EINVAL.
 */
int ib_invalid(const struct ib_verb_call *call, const char *fmt, ...)
{
	const struct rdma_restrack_entry *res = call->res;
	const char *client = call->client;
	char object[24] = "", text[INVALID_TEXT], module[MODULE_NAME_LEN];
	va_list args;
	int len;

	if (!client && call->site) {
		ib_module_name(call->site, module, sizeof(module));
		client = module;
	}
	if (!client)
		client = res && res->kern_name ? res->kern_name : "?";
	if (res)
		snprintf(object, sizeof(object), "%s %u: ", rdma_restrack_kind(res->type),
			 res->id);
	len = scnprintf(text, sizeof(text), "%s%s%s: ", call->what, call->to ? " to " : "",
			call->to ?: "");
	va_start(args, fmt);
	vscnprintf(text + len, sizeof(text) - len, fmt, args);
	va_end(args);

	trace_ib_invalid(call->dev, client, object, text);
	if (__ratelimit(limit_of(call, client)))
		ibdev_warn(call->dev, "%s: %s%s\n", client, object, text);
	return -EINVAL;
}

/**
 * ib_refused() - log and trace that a driver's method answers a call with -EINVAL
 * @call: the call
 * @err: what the method returned
 * @fmt: format of the arguments that the driver may have disliked; without a newline
 *
 * Does nothing for any other error: those speak for themselves.
 *
 * Context: Any.
 * Return: @err.
 */
int ib_refused(const struct ib_verb_call *call, int err, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (err != -EINVAL)
		return err;
	va_start(args, fmt);
	vaf.va = &args;
	ib_invalid(call, "refused by the driver (%pV)", &vaf);
	va_end(args);
	return err;
}

/**
 * ib_check_range() - check that a number which a consumer gave is in its range
 * @call: the call
 * @name: name of the attribute
 * @value: its value
 * @min: least legal value
 * @max: largest legal value
 *
 * Context: Any.
 * Return: 0; or -EINVAL, after ib_invalid().
 */
int ib_check_range(const struct ib_verb_call *call, const char *name, s64 value, s64 min, s64 max)
{
	if (value > max)
		return ib_invalid(call, "%s %lld: must be at most %lld", name, value, max);
	if (value < min)
		return ib_invalid(call, "%s %lld: must be at least %lld", name, value, min);
	return 0;
}

/**
 * ib_invalid_port() - log and trace that a call names a port that does not exist
 * @dev: the device
 * @what: name of the call
 * @port: the port; if there is one of that number, it has no data yet
 * @site: return address of the call, in the consumer
 *
 * Context: Any.
 * Return: -EINVAL.
 */
int ib_invalid_port(const struct ib_device *dev, const char *what, u32 port, unsigned long site)
{
	const struct ib_verb_call call = { .dev = dev, .site = site, .what = what };

	if (rdma_is_port_valid(dev, port))
		return ib_invalid(&call, "port %u: not before the device is registered", port);
	return ib_invalid(&call, "port %u: must be %u to %u", port, rdma_start_port(dev),
			  rdma_end_port(dev));
}

/**
 * ib_invalid_index() - log and trace that a call names an index or a port that does not
 *	exist
 * @dev: the device
 * @what: name of the call
 * @port: the port
 * @index: the index
 * @size: entries of the table; negative if there is no such port
 * @site: return address of the call, in the consumer
 *
 * Context: Any.
 * Return: -EINVAL.
 */
int ib_invalid_index(const struct ib_device *dev, const char *what, u32 port, int index,
		     int size, unsigned long site)
{
	const struct ib_verb_call call = { .dev = dev, .site = site, .what = what };

	if (size < 0)
		return ib_invalid_port(dev, what, port, site);
	return ib_invalid(&call, "port %u: index %d: the table has %d entries", port, index, size);
}
