// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock's methods open_ca and close_ca: they record what open_ca was given, and check
 * that close_ca is given a channel adapter that open_ca has opened.
 */
#include <linux/minmax.h>
#include <kverbs/ca.h>

#include "lib/mock.h"

#define MOCK_CA_MARK	0x4d6f636b4f70656eULL

/* Much larger than the core's part of it, struct ib_ca. */
struct mock_ca {
	struct ib_ca ibca;
	u64 mark;
	u8 room[4000];
	u64 handle;
};

static struct mock_ca *to_mca(struct ib_ca *ca)
{
	return container_of(ca, struct mock_ca, ibca);
}

static void remember_opening(struct mock *m, const struct ib_ca *ca, const void *vendor, size_t len)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	m->opened = (struct mock_opening) {
		.handle = ca->handle,
		.user = ca->user,
		.vendor = vendor,
		.len = len,
	};
	if (vendor)
		memcpy(m->opened.head, vendor, min_t(size_t, len, MOCK_VENDOR));
	raw_spin_unlock_irqrestore(&m->lock, flags);
}

static int mock_open_ca(struct ib_ca *ca, const void *vendor, size_t len)
{
	struct mock *m = mock_of(ca->device);
	int ret = mock_enter(m, MOCK_open_ca, ca, len, ca->handle);

	if (to_mca(ca)->mark || to_mca(ca)->handle)
		atomic_inc(&m->wrong_ca);
	if (ret)
		return ret;
	to_mca(ca)->mark = MOCK_CA_MARK;
	to_mca(ca)->handle = ca->handle;
	remember_opening(m, ca, vendor, len);
	atomic_inc(&m->live[MOCK_CA]);
	return 0;
}

static void mock_close_ca(struct ib_ca *ca)
{
	struct mock *m = mock_of(ca->device);

	mock_enter(m, MOCK_close_ca, ca, 0, ca->handle);
	if (to_mca(ca)->mark != MOCK_CA_MARK || to_mca(ca)->handle != ca->handle)
		atomic_inc(&m->wrong_ca);
	atomic_dec(&m->live[MOCK_CA]);
}

void mock_ca_methods(struct ib_device_ops *ops)
{
	static const struct ib_device_ops mock_ca_ops = {
		INIT_RDMA_OBJ_SIZE(ib_ca, mock_ca, ibca),
	};

	ops->open_ca = mock_open_ca;
	ops->close_ca = mock_close_ca;
	ops->size_ib_ca = mock_ca_ops.size_ib_ca;
}
