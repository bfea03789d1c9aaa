// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of another device, for devices: the registry of peer memory,
 * kverbs_peer_mem, finds the driver that owns it, and has that driver map it.
 *
 * Lock protocol: none of our own. The memory can be taken away at any time; the
 * registry defines which functions may be called when.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kverbs/peer_region.h>

#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "umem.h"

void umem_peer_release(struct ib_umem *umem)
{
	peer_region_put(umem->peer);
	kfree(umem);
}

/*
 * Like ib_umem_get_peer(), but without trying system memory first. @revocable: the caller
 * activates the notifier. Errors: those of peer_region_get(); -EOPNOTSUPP also if the
 * device has no DMA addresses; -EIO if the peer's addresses are those of bounce buffers.
 */
struct ib_umem *umem_peer_get(struct ib_device *device,
			      const struct ib_mem *mem, int access,
			      bool revocable)
{
	char user[IB_DEVICE_NAME_MAX];
	struct peer_request req = {
		.addr = mem->start,
		.size = mem->length,
		.writable = ib_access_writable(access),
		.revocable = revocable,
		.dma_device = device->dma_device,
		.user = user,
		.name = mem->peer_name,
		.data = mem->peer_data,
	};
	struct peer_region *region;
	struct ib_umem *umem;
	int ret;

	ret = umem_check_access(access);
	if (!ret && ib_uses_virt_dma(device))
		ret = -EOPNOTSUPP;
	if (ret)
		return ERR_PTR(ret);
	/* The device may be renamed while the client works. */
	ib_copy_device_name(user, device);
	umem = kzalloc(sizeof(*umem), GFP_KERNEL_ACCOUNT);
	if (!umem)
		return ERR_PTR(-ENOMEM);
	region = peer_region_get(&req);
	if (IS_ERR(region)) {
		kfree(umem);
		return ERR_CAST(region);
	}
	umem_init(umem, device, mem->start, mem->length, access);
	umem->is_peer = true;
	umem->peer = region;
	umem->sgt_append.sgt = *peer_region_table(region);
	ret = umem_check_reach(umem, &umem->sgt_append.sgt);
	if (!ret)
		return umem;
	umem_peer_release(umem);
	return ERR_PTR(ret);
}

/**
 * ib_umem_get_peer() - get memory of the calling process, of the system or another device, and
 *	map it for a device
 * @device: the device
 * @addr: address of the first byte in the process
 * @size: bytes
 * @access: as of ib_umem_get()
 * @peer_mem_flags: %IB_PEER_MEM_ALLOW, without which this is ib_umem_get();
 *	%IB_PEER_MEM_INVAL_SUPP: the caller will call
 *	ib_umem_activate_invalidation_notifier()
 *
 * Memory of the system is pinned. If there is none, the drivers of other devices are asked,
 * see <rdma/peer_mem.h>; drivers that may take their memory back are asked only if the
 * caller supports that.
 *
 * For drivers that make regions by reg_user_mr(); drivers with the reg_umem_mr() method
 * need not call this.
 *
 * Context: Process, with the memory of a process: current->mm.
 * Return: the memory; an error of ib_umem_get() if no driver has the memory, or -EINTR if the
 * process is being killed; an error of the driver that has it; -EIO if that maps a copy of it
 * (bounce buffers); or -ECANCELED if it has taken the memory back meanwhile.
 */
struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access,
				 unsigned long peer_mem_flags)
{
	const struct ib_verb_call call = {
		.dev = device, .site = _RET_IP_, .process = true, .what = "umem_get_peer",
	};
	struct ib_mem mem = { .start = addr, .length = size };
	struct ib_umem *host, *peer;

	if (umem_check_range(&call, "addr", addr, size))
		return ERR_PTR(-EINVAL);
	host = ib_umem_get(device, addr, size, access);
	if (!IS_ERR(host) || PTR_ERR(host) == -EINTR || !(peer_mem_flags & IB_PEER_MEM_ALLOW))
		return host;
	peer = umem_peer_get(device, &mem, access,
			     peer_mem_flags & IB_PEER_MEM_INVAL_SUPP);
	if (PTR_ERR(peer) == -ENODEV || PTR_ERR(peer) == -EOPNOTSUPP)
		return host;
	return peer;
}
EXPORT_SYMBOL_GPL(ib_umem_get_peer);

static void umem_peer_invalidate(void *arg)
{
	struct ib_umem *umem = arg;

	umem->invalidate(umem, umem->invalidate_priv);
}

/**
 * ib_umem_activate_invalidation_notifier() - from now on, the memory may go
 * @umem: from ib_umem_get_peer(); does nothing for other memory
 * @func: called when the memory goes, at most once, perhaps before this returns, in process
 *	context. When @func returns, the device must not access the memory any more. It may
 *	wait for the device, but not for locks that are held while the functions of this
 *	file are called.
 * @priv: for @func
 *
 * A driver that takes the memory back waits for this call, but only for a limited time:
 * call it soon, and before any consumer can make the device use the addresses.
 *
 * Context: Process.
 */
void ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					    umem_invalidate_func_t func,
					    void *priv)
{
	if (!umem->is_peer)
		return;
	umem->invalidate = func;
	umem->invalidate_priv = priv;
	peer_region_activate(umem->peer, umem_peer_invalidate, umem);
}
EXPORT_SYMBOL_GPL(ib_umem_activate_invalidation_notifier);

/**
 * ib_umem_stop_invalidation_notifier() - give the memory back
 * @umem: from ib_umem_get_peer(), no longer used by the device; or peer-to-peer memory that
 *	the midlayer has got; does nothing for other memory
 *
 * On return the notifier is not running, and will not be called any more. ib_umem_release()
 * does this, too.
 *
 * Context: Process; not from within the notifier.
 */
void ib_umem_stop_invalidation_notifier(struct ib_umem *umem)
{
	if (umem->is_peer)
		peer_region_stop(umem->peer);
	else if (umem->is_p2p)
		umem_p2p_stop(umem);
}
EXPORT_SYMBOL_GPL(ib_umem_stop_invalidation_notifier);
