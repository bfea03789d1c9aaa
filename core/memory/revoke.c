// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking memory away from a device while a region uses it.
 *
 * Lock protocol: the lock of an ib_umem, umem_lock(), guards its region: the driver's
 * methods that open, end, revoke, pause and resume it run under the lock, so no two of them
 * at a time. The owner that takes the memory back holds it: the driver of a GPU, the
 * exporter of a dma-buf, or a provider of peer-to-peer memory. Owners may hold any lock of
 * their own meanwhile: so under this lock, none of them is called, and nothing waits for
 * memory.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/export.h>

#include "../contract/export.h"
#include "../contract/trace.h"
#include "umem.h"

void umem_lock(struct ib_umem *umem)
{
	if (umem->is_dmabuf)
		dma_resv_lock(to_ib_umem_dmabuf(umem)->attach->dmabuf->resv,
			      NULL);
	else
		mutex_lock(&umem->mr_lock);
}

void umem_unlock(struct ib_umem *umem)
{
	if (umem->is_dmabuf)
		dma_resv_unlock(to_ib_umem_dmabuf(umem)->attach->dmabuf->resv);
	else
		mutex_unlock(&umem->mr_lock);
}

/* Ends the device's access to the memory for good. Under its lock. */
void umem_revoke(struct ib_umem *umem)
{
	WRITE_ONCE(umem->revoked, true);
	if (!umem->mr)
		return;
	umem->ibdev->ops.revoke_mr(umem->mr);
	trace_ib_mr_revoked(umem->mr);
}

/* Without open_mr(), the driver could not tell from when on a region may be revoked. */
bool umem_is_revocable(const struct ib_device *device)
{
	return device->ops.open_mr && device->ops.revoke_mr;
}

/* Revokes @umem, which may be NULL. Returns false if it is, or if the device cannot do that. */
bool umem_lock_and_revoke(struct ib_umem *umem)
{
	if (!umem || !umem_is_revocable(umem->ibdev))
		return false;
	umem_lock(umem);
	umem_revoke(umem);
	umem_unlock(umem);
	return true;
}
IB_EXPORT_INTERNAL(umem_lock_and_revoke);
