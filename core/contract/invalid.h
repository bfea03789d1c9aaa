/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports why a consumer's call fails with -EINVAL: see invalid.c.
 */
#ifndef KVERBS_INVALID_H
#define KVERBS_INVALID_H

#include <linux/compiler.h>
#include <linux/types.h>

struct ib_device;
struct rdma_restrack_entry;

/**
 * struct ib_verb_call - a consumer's call, as reports name it
 * @dev: the device; NULL if the call names none
 * @res: tracking entry of the object concerned; the PD if the call makes one; or NULL
 * @client: KBUILD_MODNAME of the consumer; NULL for the one that made the object, or that of @site
 * @site: return address of the call, in a consumer that neither @client nor @res tells; or 0
 * @process: the call is about the calling process's memory, and is refused because of what the
 *	process wants
 * @what: name of the call; for a change of state, that of the state which is left
 * @to: for a change of state, name of the new one; else NULL
 */
struct ib_verb_call {
	const struct ib_device *dev;
	const struct rdma_restrack_entry *res;
	const char *client;
	unsigned long site;
	bool process;
	const char *what;
	const char *to;
};

void ib_invalid_init(struct ib_device *dev);

__printf(2, 3) __cold
int ib_invalid(const struct ib_verb_call *call, const char *fmt, ...);
__printf(3, 4) __cold
int ib_refused(const struct ib_verb_call *call, int err, const char *fmt, ...);
int ib_check_range(const struct ib_verb_call *call, const char *name, s64 value, s64 min,
		   s64 max);

int ib_invalid_port(const struct ib_device *dev, const char *what, u32 port, unsigned long site);
int ib_invalid_index(const struct ib_device *dev, const char *what, u32 port, int index,
		     int size, unsigned long site);

#endif
