// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of memory of any kind: finding the memory, mapping it, giving it to
 * the device, and taking it away when its owner wants it back.
 *
 * Lock protocol: umem_lock() guards the region, see memory/revoke.c. The memory of the region
 * is acquired before, and released after.
 *
 * The notifier is active before the device is given the memory: memory that is taken back
 * before the region is opened never reaches the device.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/overflow.h>

#include "../contract/contract.h"
#include "../contract/invalid.h"
#include "../contract/trace.h"
#include "../memory/umem.h"
#include "verbs.h"

static void umem_peer_revoked(struct ib_umem *umem, void *unused)
{
	umem_lock_and_revoke(umem);
}

/* Lets the driver free the region; it must not be revoked after that. */
int umem_end_mr(struct ib_umem *umem, struct ib_udata *udata)
{
	int ret;

	umem_lock(umem);
	ret = umem->ibdev->ops.dereg_mr(umem->mr, udata);
	if (!ret)
		umem->mr = NULL;
	umem_unlock(umem);
	return ret;
}

static struct ib_umem *umem_get_host(struct ib_device *device,
				     const struct ib_mem *mem, int access)
{
	return ib_umem_get(device, mem->start, mem->length, access);
}

static struct ib_umem *umem_get_peer(struct ib_device *device,
				     const struct ib_mem *mem, int access)
{
	struct ib_umem *umem;

	umem = umem_peer_get(device, mem, access, umem_is_revocable(device));
	if (!IS_ERR(umem))
		ib_umem_activate_invalidation_notifier(umem, umem_peer_revoked, NULL);
	return umem;
}

static struct ib_umem *(*const umem_get_by_path[IB_MEM_PATHS])(struct ib_device *,
							       const struct ib_mem *,
							       int) = {
	[IB_MEM_HOST] = umem_get_host,
	[IB_MEM_PEER] = umem_get_peer,
	[IB_MEM_DMABUF] = umem_dmabuf_find,
	[IB_MEM_P2P] = umem_p2p_get,
};

/* Called before reg_mr_open(): from then on the memory may move or be revoked. */
static void reg_mr_fill(struct ib_mr *mr, struct ib_pd *pd, u64 length, u64 virt_addr,
			int access, struct ib_umem *umem)
{
	mr->iova = access & IB_ZERO_BASED ? 0 : virt_addr;
	mr->length = length;
	ib_mr_fill(mr, pd, IB_MR_TYPE_USER, umem);
}

/*
 * Gives the device access to the memory, unless the memory was revoked while the region was
 * made. Under umem_lock().
 */
static int reg_mr_open(struct ib_umem *umem, struct ib_mr *mr)
{
	if (umem->revoked)
		return -ECANCELED;
	umem->mr = mr;
	if (umem->ibdev->ops.open_mr)
		umem->ibdev->ops.open_mr(mr);
	return 0;
}

/*
 * The driver's method runs without umem_lock(): it allocates memory, and reclaim may wait for
 * the owner that wants this very memory back. That is safe, as no other thread can reach the
 * region until it is opened.
 */
static struct ib_mr *reg_mr_of_umem(struct ib_pd *pd, struct ib_umem *umem,
				    u64 virt_addr, int access, unsigned long site)
{
	struct ib_mr *mr;
	int ret;

	mr = IB_OUTPUT(pd->device, "reg_umem_mr", site,
		       pd->device->ops.reg_umem_mr(pd, umem, virt_addr, access));
	if (IS_ERR(mr))
		return mr;
	reg_mr_fill(mr, pd, umem->length, virt_addr, access, umem);
	umem_lock(umem);
	ret = reg_mr_open(umem, mr);
	umem_unlock(umem);
	if (!ret)
		return mr;
	WARN_ON(pd->device->ops.dereg_mr(mr, NULL));
	return ERR_PTR(ret);
}

/*
 * A dma-buf may move at any moment unless its reservation lock is held, so the driver's method
 * runs under umem_lock(), which is that lock. Allocating memory under it is allowed.
 */
static struct ib_mr *reg_mr_of_dmabuf(struct ib_pd *pd,
				      struct ib_umem *umem, u64 virt_addr,
				      int access, unsigned long site)
{
	struct ib_mr *mr;
	int ret;

	umem_lock(umem);
	ret = umem_dmabuf_ready(umem);
	mr = ret ? ERR_PTR(ret) :
		   IB_OUTPUT(pd->device, "reg_umem_mr", site,
			     pd->device->ops.reg_umem_mr(pd, umem, virt_addr, access));
	if (!IS_ERR(mr)) {
		reg_mr_fill(mr, pd, umem->length, virt_addr, access, umem);
		reg_mr_open(umem, mr);
	}
	umem_unlock(umem);
	return mr;
}

static struct ib_mr *reg_mr_by_core(struct ib_pd *pd, const struct ib_mem *mem,
				    enum ib_mem_path path, u64 virt_addr, int access,
				    unsigned long site)
{
	struct ib_umem *umem;
	struct ib_mr *mr;

	umem = umem_get_by_path[path](pd->device, mem, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = umem->is_dmabuf ?
	     reg_mr_of_dmabuf(pd, umem, virt_addr, access, site) :
	     reg_mr_of_umem(pd, umem, virt_addr, access, site);
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return mr;
	}
	ib_mr_need_key(pd->device, mr, "reg_umem_mr", site);
	return mr;
}

/* For a driver without the reg_umem_mr method, which gets the memory itself. */
static struct ib_mr *reg_mr_by_driver(struct ib_pd *pd, const struct ib_mem *mem,
				      enum ib_mem_path path, u64 virt_addr,
				      int access, unsigned long site)
{
	const struct ib_device_ops *ops = &pd->device->ops;
	const char *method;
	struct ib_mr *mr;

	if (path == IB_MEM_HOST && ops->reg_user_mr) {
		method = "reg_user_mr";
		mr = ops->reg_user_mr(pd, mem->start, mem->length, virt_addr,
				      access, NULL);
	} else if (path == IB_MEM_DMABUF && ops->reg_user_mr_dmabuf) {
		method = "reg_user_mr_dmabuf";
		mr = ops->reg_user_mr_dmabuf(pd, mem->fd_offset, mem->length,
					     virt_addr, mem->fd, access, NULL);
	} else {
		return ERR_PTR(-EOPNOTSUPP);
	}
	mr = IB_OUTPUT(pd->device, method, site, mr);
	if (!IS_ERR(mr)) {
		reg_mr_fill(mr, pd, mem->length, virt_addr, access, NULL);
		ib_mr_need_key(pd->device, mr, method, site);
	}
	return mr;
}

static bool mem_path_applies(const struct ib_mem *mem, enum ib_mem_path path)
{
	if (mem->path != IB_MEM_ANY)
		return mem->path == path;
	switch (path) {
	case IB_MEM_DMABUF:
		return mem->has_fd;
	case IB_MEM_P2P:
		return mem->error[IB_MEM_HOST] == -EREMOTEIO;
	default:
		return true;
	}
}

/* Why there is no region, if some or all of the memory is peer-to-peer memory. */
static int mem_p2p_error(const struct ib_mem *mem)
{
	int error = mem->error[IB_MEM_P2P];

	/*
	 * -ECANCELED: the provider was removed. -ENODEV: the first page is not peer-to-peer
	 * memory.
	 */
	if (error == -ECANCELED)
		return -EFAULT;
	if (error == -ENODEV)
		return mem->path == IB_MEM_P2P ? -EFAULT : -EINVAL;
	return error;
}

/* The error that best explains why there is no region. */
static int mem_error(const struct ib_mem *mem)
{
	int peer = mem->error[IB_MEM_PEER];

	/* No driver has the memory, or not any more: the same as any bad address. */
	if (peer == -ENODEV || peer == -ECANCELED)
		peer = -EFAULT;
	if (mem->path == IB_MEM_P2P || mem->error[IB_MEM_P2P])
		return mem_p2p_error(mem);
	if (mem->path != IB_MEM_ANY)
		return mem->path == IB_MEM_PEER ? peer : mem->error[mem->path];
	switch (mem->error[IB_MEM_PEER]) {
	case -ENODEV:
	case -ENOENT:
	case -EOPNOTSUPP:
		return mem->error[IB_MEM_HOST];
	default:
		return peer ? : mem->error[IB_MEM_HOST];
	}
}

/*
 * Exporters of dma-bufs may be interrupted by any signal, and ask for a restart: the caller gets
 * what they return, but a program that is told of errors knows only -EINTR.
 */
static int mem_errno(int err)
{
	switch (err) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -EINTR;
	default:
		return err;
	}
}

static struct ib_mr *reg_mr_try_paths(struct ib_pd *pd, struct ib_mem *mem,
				      u64 virt_addr, int access, unsigned long site)
{
	static const enum ib_mem_path order[] = {
		IB_MEM_DMABUF, IB_MEM_HOST, IB_MEM_P2P, IB_MEM_PEER,
	};
	bool by_core = pd->device->ops.reg_umem_mr;
	enum ib_mem_path path;
	struct ib_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		path = order[i];
		if (!mem_path_applies(mem, path))
			continue;
		mr = by_core ?
		     reg_mr_by_core(pd, mem, path, virt_addr, access, site) :
		     reg_mr_by_driver(pd, mem, path, virt_addr, access, site);
		if (!IS_ERR(mr)) {
			mem->found = path;
			return mr;
		}
		mem->error[path] = mem_errno(PTR_ERR(mr));
		if (mem->error[path] == -EINTR)
			return mr;
	}
	return ERR_PTR(mem_error(mem));
}

static int mem_check(const struct ib_verb_call *call, struct ib_device *device,
		     const struct ib_mem *mem, u64 virt_addr, int access)
{
	u64 last;
	int ret;

	if (!device->ops.reg_umem_mr && !device->ops.reg_user_mr)
		return -EOPNOTSUPP;
	if (mem->path >= IB_MEM_PATHS)
		return ib_invalid(call, "path %d: no such path", mem->path);
	if (!mem->length)
		return ib_invalid(call, "length 0: must be at least 1");
	if (check_add_overflow(virt_addr, mem->length - 1, &last))
		return ib_invalid(call, "virt_addr %#llx + length %llu overflows", virt_addr,
				  mem->length);
	if (mem->path == IB_MEM_DMABUF && !mem->has_fd)
		return ib_invalid(call, "path is dma-buf, but fd is missing");
	ret = mem->path == IB_MEM_DMABUF ? 0 :
	      umem_check_range(call, "start", mem->start, mem->length);
	if (!ret && mem->has_fd)
		ret = umem_check_range(call, "fd_offset", mem->fd_offset, mem->length);
	return ret ?: ib_mr_check_access(call, device, access);
}

/*
 * Logs why there is no region. A driver that gets the memory of a dma-buf itself calls
 * ib_umem_dmabuf_get(), which has logged what is wrong with it.
 */
static void reg_mr_log_einval(const struct ib_verb_call *call, const struct ib_mem *mem,
			      u64 virt_addr, long error)
{
	if (call->dev->ops.reg_umem_mr)
		umem_dmabuf_explain(call, mem);
	if (error != -EINVAL || mem->error[IB_MEM_DMABUF] == -EINVAL)
		return;
	if (mem->error[IB_MEM_P2P])
		ib_invalid(call, "start %#llx + length %llu: refused by the driver, or memory of more than one peer-to-peer provider",
			   mem->start, mem->length);
	else
		ib_invalid(call, "refused by a driver (start %#llx, length %llu, virt_addr %#llx)",
			   mem->start, mem->length, virt_addr);
}

/* Makes a region that is not listed yet. */
static struct ib_mr *reg_mem(struct ib_pd *pd, struct ib_mem *mem, u64 virt_addr,
			     int access_flags, unsigned long site)
{
	const struct ib_verb_call call = {
		.dev = pd->device, .res = &pd->res, .process = mem->for_process, .what = "reg_mr",
	};
	struct ib_mr *mr;
	int ret;

	mem->found = IB_MEM_ANY;
	memset(mem->error, 0, sizeof(mem->error));
	ret = mem_check(&call, pd->device, mem, virt_addr, access_flags);
	if (ret)
		return ERR_PTR(ret);
	mr = IB_IN_FRAME(pd->device, NULL, "reg_mr", IB_FRAME_METHOD, site,
			 reg_mr_try_paths(pd, mem, virt_addr, access_flags, site));
	if (IS_ERR(mr))
		reg_mr_log_einval(&call, mem, virt_addr, PTR_ERR(mr));
	trace_ib_reg_mem(pd->device, mem, PTR_ERR_OR_ZERO(mr));
	return mr;
}

static struct ib_mr *reg_mem_listed(struct ib_pd *pd, struct ib_mem *mem, u64 virt_addr,
				    int access_flags, unsigned long site)
{
	struct ib_mr *mr = reg_mem(pd, mem, virt_addr, access_flags, site);

	if (!IS_ERR(mr))
		ib_mr_list(mr, site);
	return mr;
}

/**
 * ib_reg_mem() - make a region of memory of any kind
 * @pd: PD of the region
 * @mem: which memory, and where to look for it; on return, where it was found, or why not
 * @virt_addr: address of the first byte as remote peers and SGEs give it; with %IB_ZERO_BASED
 *	that is 0, and this has the offset in a page
 * @access_flags: &enum ib_access_flags
 *
 * Memory of the system is pinned until ib_dereg_mr(), which any process may call, even
 * after the owner has ended. The driver of another device can take its memory back: then
 * the region is revoked, and using it fails like using an invalid key, until ib_dereg_mr()
 * frees it. The same happens to peer-to-peer memory when its provider goes. The memory of a
 * dma-buf may move, if both the device and the kernel support that; else it is pinned.
 *
 * Context: Process, with the memory and files of a process if @mem refers to them.
 * Return: the region; -EOPNOTSUPP if the device has no such regions, or lacks what is asked
 * for; -EINVAL for no bytes, a range that wraps around, an unknown path, a missing dma-buf,
 * or access flags that are unknown or illegal; or the error of the last path that applied,
 * see &ib_mem.error: for system memory, an error of ib_umem_get(); for peers, -ENOENT if none
 * has the name that @mem asks for, -EFAULT if no driver has the memory, or has it any more, -EIO
 * if it maps a copy of it, or an error of the driver that does; for a dma-buf, one of ib_umem_dmabuf_get(); for peer-to-peer memory, -EREMOTEIO if the device
 * has no safe way to it, -EINVAL if not all of it is such memory, and of one provider,
 * -EFAULT if none of it is and it had to be, or its provider goes, -EOPNOTSUPP if the
 * device cannot give it back; or an error of the device's driver, -EINVAL if it cannot
 * place the first byte at that offset in a page.
 */
struct ib_mr *ib_reg_mem(struct ib_pd *pd, struct ib_mem *mem, u64 virt_addr,
			 int access_flags)
{
	return reg_mem_listed(pd, mem, virt_addr, access_flags, _RET_IP_);
}
EXPORT_SYMBOL_GPL(ib_reg_mem);

/**
 * ib_reg_user_mr() - make a region of the calling process's memory
 * @pd: PD of the region
 * @start: address of the first byte in the process
 * @length: bytes
 * @virt_addr: address of the first byte as remote peers and SGEs give it; with %IB_ZERO_BASED
 *	that is 0, and this has the offset in a page
 * @access_flags: &enum ib_access_flags
 *
 * Registers memory of the system or, failing that, of another device: see ib_reg_mem().
 *
 * Context: Process, with the memory of a process: current->mm.
 * Return: the region, or an error of ib_reg_mem().
 */
struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
			     u64 virt_addr, int access_flags)
{
	struct ib_mem mem = { .start = start, .length = length };

	return reg_mem_listed(pd, &mem, virt_addr, access_flags, _RET_IP_);
}
EXPORT_SYMBOL(ib_reg_user_mr);

/**
 * ib_umem_reg_user_mr() - a reg_user_mr method for drivers that have reg_umem_mr
 * @pd: PD of the region
 * @start: address of the first byte in the process
 * @length: bytes
 * @virt_addr: address of the first byte as remote peers and SGEs give it; with %IB_ZERO_BASED
 *	that is 0, and this has the offset in a page
 * @access: &enum ib_access_flags
 * @udata: the process's request
 *
 * With it, a process can register all that ib_reg_user_mr() can, such as another device's
 * memory.
 *
 * Context: Process, that of the request.
 * Return: the region, which is not listed yet, as methods return it; or an error of
 * ib_reg_mem().
 */
struct ib_mr *ib_umem_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				  int access, struct ib_udata *udata)
{
	struct ib_mem mem = { .start = start, .length = length };

	return reg_mem(pd, &mem, virt_addr, access, _RET_IP_);
}
EXPORT_SYMBOL_GPL(ib_umem_reg_user_mr);

/**
 * ib_umem_reg_user_mr_dmabuf() - a reg_user_mr_dmabuf method for such drivers
 * @pd: PD of the region
 * @offset: where the region begins in the dma-buf
 * @length: bytes
 * @virt_addr: address of the first byte as remote peers and SGEs give it; with %IB_ZERO_BASED
 *	that is 0, and this has the offset in a page
 * @fd: file descriptor of the dma-buf
 * @access: &enum ib_access_flags
 * @attrs: the process's request
 *
 * Context: Process, that of the request.
 * Return: as ib_umem_reg_user_mr().
 */
struct ib_mr *ib_umem_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
					 u64 virt_addr, int fd, int access,
					 struct uverbs_attr_bundle *attrs)
{
	struct ib_mem mem = {
		.path = IB_MEM_DMABUF,
		.length = length,
		.has_fd = true,
		.fd = fd,
		.fd_offset = offset,
	};

	return reg_mem(pd, &mem, virt_addr, access, _RET_IP_);
}
EXPORT_SYMBOL_GPL(ib_umem_reg_user_mr_dmabuf);
