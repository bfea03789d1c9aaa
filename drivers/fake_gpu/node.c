// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/fake_gpu<N>. Objects belong to the open file that allocated them: its array
 * holds them by handle, with a reference to each. Whoever removes an object from the
 * array frees it, so each is freed once. Those that mmap(2) makes belong to nobody but
 * their users, and are never freed before these are gone.
 *
 * Lock protocol: the array's lock guards the references in it. All operations but
 * FREE use an object by a reference of their own, and may find it freed. mmap(2) makes
 * objects with the process's mmap_lock held.
 */
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "fake_gpu.h"

/*
 * The handle is in the bits of an mmap offset from this one on, so an object can
 * have 64 GiB at most.
 */
#define NODE_HANDLE_SHIFT	36
#define NODE_HANDLES		XA_LIMIT(1, (1 << (63 - NODE_HANDLE_SHIFT)) - 1)

/**
 * struct node_file - an open file
 * @gpu: the device
 * @bufs: the dma-bufs of its objects, by handle
 */
struct node_file {
	struct fake_gpu *gpu;
	struct xarray bufs;
};

static int node_open(struct inode *inode, struct file *file)
{
	struct node_file *nf = kzalloc(sizeof(*nf), GFP_KERNEL);

	if (!nf)
		return -ENOMEM;
	nf->gpu = container_of(file->private_data, struct fake_gpu, misc);
	fake_gpu_get(nf->gpu);
	xa_init_flags(&nf->bufs, XA_FLAGS_ALLOC);
	file->private_data = nf;
	return 0;
}

static void node_free(struct dma_buf *dmabuf)
{
	fake_gpu_mem_free(dmabuf->priv);
	dma_buf_put(dmabuf);
}

static int node_release(struct inode *inode, struct file *file)
{
	struct node_file *nf = file->private_data;
	struct dma_buf *dmabuf;
	unsigned long handle;

	xa_for_each(&nf->bufs, handle, dmabuf)
		node_free(dmabuf);
	xa_destroy(&nf->bufs);
	fake_gpu_put(nf->gpu);
	kfree(nf);
	return 0;
}

static int node_info(struct fake_gpu *gpu, void __user *to)
{
	struct fake_gpu_info info = {
		.page_size = FAKE_GPU_PAGE,
		.flags = gpu->bar ? FAKE_GPU_BAR : 0,
		.size = (u64)gpu->nr_pages * FAKE_GPU_PAGE,
		.used = (u64)(gpu->nr_pages - kfifo_len(&gpu->free)) * FAKE_GPU_PAGE,
	};

	return copy_to_user(to, &info, sizeof(info)) ? -EFAULT : 0;
}

static int node_alloc(struct node_file *nf, void __user *user)
{
	struct fake_gpu_alloc req;
	struct dma_buf *dmabuf;
	int ret;

	if (copy_from_user(&req, user, sizeof(req)))
		return -EFAULT;
	if (!req.size || req.reserved)
		return -EINVAL;
	if (req.size > (u64)nf->gpu->nr_pages * FAKE_GPU_PAGE)
		return -ENOMEM;
	dmabuf = fake_gpu_mem_create(nf->gpu, DIV_ROUND_UP(req.size, FAKE_GPU_PAGE));
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	req.size = dmabuf->size;
	ret = xa_alloc(&nf->bufs, &req.handle, dmabuf, NODE_HANDLES, GFP_KERNEL);
	if (ret) {
		node_free(dmabuf);
		return ret;
	}
	/* The object is in the array now: a thread that guesses the handle may free it. */
	req.offset = (u64)req.handle << NODE_HANDLE_SHIFT;
	if (!copy_to_user(user, &req, sizeof(req)))
		return 0;
	dmabuf = xa_erase(&nf->bufs, req.handle);
	if (dmabuf)
		node_free(dmabuf);
	return -EFAULT;
}

static struct dma_buf *node_find(struct node_file *nf, unsigned long handle)
{
	struct dma_buf *dmabuf;

	xa_lock(&nf->bufs);
	dmabuf = xa_load(&nf->bufs, handle);
	if (dmabuf)
		get_dma_buf(dmabuf);
	xa_unlock(&nf->bufs);
	return dmabuf;
}

static int node_free_handle(struct node_file *nf, unsigned long handle)
{
	struct dma_buf *dmabuf = xa_erase(&nf->bufs, handle);

	if (!dmabuf)
		return -ENOENT;
	node_free(dmabuf);
	return 0;
}

static int node_export(struct node_file *nf, unsigned long handle)
{
	struct dma_buf *dmabuf = node_find(nf, handle);
	int fd;

	if (!dmabuf)
		return -ENOENT;
	/* On success, the descriptor owns the reference. */
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	return fd;
}

static int node_move_page(struct fake_gpu *gpu, phys_addr_t *page)
{
	phys_addr_t old = *page;

	if (!fake_gpu_pages_get(gpu, page, 1))
		return -ENOMEM;
	memcpy(fake_gpu_vram(gpu, *page), fake_gpu_vram(gpu, old), FAKE_GPU_PAGE);
	fake_gpu_pages_fill(gpu, &old, 1, FAKE_GPU_POISON);
	fake_gpu_pages_put(gpu, &old, 1);
	return 0;
}

/* Moves an object, like a driver that needs the space for something else. */
static int node_move_mem(struct fake_gpu_mem *mem)
{
	int ret = 0;
	u32 i;

	dma_resv_assert_held(mem->dmabuf->resv);
	if (mem->freed)
		return -ENODEV;
	if (mem->pins || !list_empty(&mem->regions))
		return -EBUSY;
	fake_gpu_mem_withdraw(mem);
	for (i = 0; !ret && i < mem->nr_pages; i++)
		ret = node_move_page(mem->gpu, &mem->page[i]);
	return ret;
}

static int node_move(struct node_file *nf, unsigned long handle)
{
	struct dma_buf *dmabuf = node_find(nf, handle);
	int ret;

	if (!dmabuf)
		return -ENOENT;
	dma_resv_lock(dmabuf->resv, NULL);
	ret = node_move_mem(dmabuf->priv);
	dma_resv_unlock(dmabuf->resv);
	dma_buf_put(dmabuf);
	return ret;
}

static long node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct node_file *nf = file->private_data;

	switch (cmd) {
	case FAKE_GPU_INFO:
		return node_info(nf->gpu, (void __user *)arg);
	case FAKE_GPU_ALLOC:
		return node_alloc(nf, (void __user *)arg);
	case FAKE_GPU_FREE:
		return node_free_handle(nf, arg);
	case FAKE_GPU_EXPORT:
		return node_export(nf, arg);
	case FAKE_GPU_MOVE:
		return node_move(nf, arg);
	default:
		return -ENOTTY;
	}
}

/* Returns an object that is in no array: nobody can free it before its users are gone. */
static struct dma_buf *node_create_for(struct fake_gpu *gpu, const struct vm_area_struct *vma)
{
	u64 nr = DIV_ROUND_UP((u64)(vma->vm_end - vma->vm_start), FAKE_GPU_PAGE);
	struct fake_gpu_mem *mem;
	struct dma_buf *dmabuf;

	if (nr > gpu->nr_pages)
		return ERR_PTR(-ENOMEM);
	dmabuf = fake_gpu_mem_create(gpu, nr);
	if (IS_ERR(dmabuf))
		return dmabuf;
	mem = dmabuf->priv;
	mem->kept = true;
	return dmabuf;
}

/* Makes the mapping one of the dma-buf, as if the dma-buf's own descriptor had been mapped. */
static int node_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned int shift = NODE_HANDLE_SHIFT - PAGE_SHIFT;
	struct node_file *nf = file->private_data;
	struct dma_buf *dmabuf;
	int ret;

	dmabuf = vma->vm_pgoff ? node_find(nf, vma->vm_pgoff >> shift) :
				 node_create_for(nf->gpu, vma);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (!dmabuf)
		return -ENOENT;
	ret = dma_buf_mmap(dmabuf, vma, vma->vm_pgoff & (BIT(shift) - 1));
	dma_buf_put(dmabuf);
	return ret;
}

/* Finds an address at which pages are at multiples of their size, which peer.c needs. */
static unsigned long node_get_unmapped_area(struct file *file, unsigned long addr,
					    unsigned long len, unsigned long pgoff,
					    unsigned long flags)
{
	if (flags & MAP_FIXED)
		return addr;
	addr = kv_mm_get_unmapped_area(current->mm, file, addr, len + FAKE_GPU_PAGE, pgoff, flags);
	if (IS_ERR_VALUE(addr))
		return addr;
	return addr + ((pgoff << PAGE_SHIFT) - addr) % FAKE_GPU_PAGE;
}

const struct file_operations fake_gpu_fops = {
	.owner = THIS_MODULE,
	.open = node_open,
	.release = node_release,
	.unlocked_ioctl = node_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = node_mmap,
	.get_unmapped_area = node_get_unmapped_area,
};
