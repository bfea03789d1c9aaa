// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a process, for devices: pinned, counted against the process's limit on locked
 * memory, and DMA-mapped. Also the functions that memory of other kinds needs as well, which
 * peer.c, dmabuf.c and p2p.c obtain.
 *
 * Lock protocol: none. The caller that got an ib_umem owns it and releases it
 * once; the mm's count of pinned pages is atomic. The process may end before that:
 * the pages stay pinned, and a reference keeps the bare mm_struct for the count.
 *
 * There are three steps: the pages are charged, pinned and mapped. Each step has a
 * function that undoes it.
 */
#include <linux/capability.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/hugetlb_inline.h>
#include <linux/iommu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kverbs/p2pdma.h>

#include "../contract/invalid.h"
#include "umem.h"

/* Pages pinned at a time: their pointers fill one page. */
#define UMEM_BATCH	(PAGE_SIZE / sizeof(struct page *))

static unsigned long umem_nr_pages(const struct ib_umem *umem)
{
	return umem_span(umem) >> PAGE_SHIFT;
}

/* Sets the members that all kinds of memory have, before the memory is obtained. */
void umem_init(struct ib_umem *umem, struct ib_device *device,
	       unsigned long addr, size_t size, int access)
{
	umem->ibdev = device;
	umem->address = addr;
	umem->iova = addr;
	umem->length = size;
	umem->writable = ib_access_writable(access);
	mutex_init(&umem->mr_lock);
}

/*
 * Checks a range of memory of any kind, once for each call of a consumer, so umem_peer_get() and
 * the like need not. @name is the consumer's name for @start. Returns 0, or -EINVAL after
 * ib_invalid().
 */
int umem_check_range(const struct ib_verb_call *call, const char *name, u64 start, u64 length)
{
	u64 end;

	if (!length)
		return ib_invalid(call, "length 0: must be at least 1");
	/* On 32-bit machines, neither is beyond what an address can be. */
	if (check_add_overflow(start, length, &end) || PAGE_ALIGN(end) < end ||
	    PAGE_ALIGN(end) > ULONG_MAX)
		return ib_invalid(call, "%s %#llx + length %llu overflows", name, start, length);
	/* A scatter list counts its entries in an unsigned int. */
	if ((PAGE_ALIGN(end) - round_down(start, PAGE_SIZE)) >> PAGE_SHIFT > UINT_MAX)
		return ib_invalid(call, "length %llu: more than %u pages", length, UINT_MAX);
	return 0;
}

/* Checks that an access is possible at all: no kind of memory can be accessed on demand. */
int umem_check_access(int access)
{
	return access & IB_ACCESS_ON_DEMAND ? -EOPNOTSUPP : 0;
}

static int umem_charge_pinned(struct ib_umem *umem)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = umem_nr_pages(umem);
	u64 pinned;

	pinned = atomic64_add_return(pages, &umem->owning_mm->pinned_vm);
	if (pinned <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &umem->owning_mm->pinned_vm);
	return -ENOMEM;
}

static void umem_uncharge_pinned(struct ib_umem *umem)
{
	atomic64_sub(umem_nr_pages(umem), &umem->owning_mm->pinned_vm);
}

void umem_unpin_pages(struct ib_umem *umem, bool dirty)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i)
		unpin_user_page_range_dirty_lock(sg_page(sg),
						 sg->length >> PAGE_SHIFT,
						 dirty);
}

void umem_unpin(struct ib_umem *umem, bool dirty)
{
	umem_unpin_pages(umem, dirty);
	sg_free_append_table(&umem->sgt_append);
}

/*
 * Checks that pages which were just pinned are of the kind that is asked for. That cannot be left
 * to the pinning: kernels without peer-to-peer memory of their own pin ours like any other.
 */
static int umem_check_pages(const struct ib_umem *umem, struct page **pages, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (likely(is_pci_p2pdma_page(pages[i]) == umem->is_p2p))
			continue;
		if (!umem->is_p2p)
			return -EREMOTEIO;
		return i || umem->sgt_append.sgt.sgl ? -EINVAL : -ENODEV;
	}
	return 0;
}

/*
 * Faults in the page at @addr, with the access that the FOLL_* in @flags ask for. Returns 1 if it
 * is peer-to-peer memory, 0 if it is other memory, or an error. It is needed because pinning does
 * not tell: processes map peer-to-peer memory by files in sysfs, and from Linux 6.5 on, long-term
 * pinning is refused for pages of these, of whatever kind.
 */
static int umem_is_p2p_page(unsigned long addr, unsigned int flags)
{
	struct page *page;
	int ret;

	flags &= FOLL_WRITE | FOLL_FORCE;
	ret = get_user_pages_fast(addr, 1, kv_foll_p2p | flags, &page);
	if (ret != 1)
		return ret < 0 ? ret : -EFAULT;
	ret = is_pci_p2pdma_page(page);
	put_page(page);
	return ret;
}

/*
 * Older kernels need flags to pin a private mapping for reading, see kv_foll_read. But these would
 * also pin memory that the process must not read, so that is checked here; and they must be left
 * out for mappings that are shared anyway, and for huge pages that the process cannot write.
 * Returns the flags, or -EFAULT; limits @nr to the pages for which they are right.
 */
static int umem_read_flags(unsigned long addr, unsigned long *nr)
{
	struct vm_area_struct *vma;
	int flags = -EFAULT;

	if (!kv_foll_read)
		return 0;
	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, addr);
	if (vma && (vma->vm_flags & VM_READ)) {
		*nr = min(*nr, (vma->vm_end - addr) >> PAGE_SHIFT);
		flags = (vma->vm_flags & VM_MAYSHARE) ||
			(is_vm_hugetlb_page(vma) && !(vma->vm_flags & VM_WRITE)) ?
			0 : kv_foll_read;
	}
	mmap_read_unlock(current->mm);
	return flags;
}

/* Pins some of the @left pages from @addr on. Returns how many, or an error. */
static long umem_pin_batch(struct ib_umem *umem, unsigned long addr,
			   unsigned long left, unsigned int flags,
			   struct page **pages)
{
	unsigned long wanted = min(left, UMEM_BATCH);
	int nr, ret = 0;

	if (!umem->writable)
		ret = umem_read_flags(addr, &wanted);
	if (ret < 0)
		return ret;
	flags |= ret;
	nr = pin_user_pages_fast(addr, wanted, flags, pages);
	if (nr == -EFAULT && !umem->is_p2p) {
		ret = umem_is_p2p_page(addr, flags);
		if (ret > 0)
			return -EREMOTEIO;
		if (ret == -EINTR)
			return ret;
		/*
		 * On older kernels, long-term pinning does not wait for pages that another thread
		 * provides by userfaultfd. umem_is_p2p_page() has just waited for the first one.
		 */
		if (!ret)
			nr = pin_user_pages_fast(addr, wanted, flags, pages);
	}
	if (nr < 0)
		return nr;
	ret = umem_check_pages(umem, pages, nr);
	if (ret)
		goto err_unpin;
	ret = sg_alloc_append_table_from_pages(&umem->sgt_append, pages, nr, 0,
					       (unsigned long)nr << PAGE_SHIFT,
					       ib_dma_max_seg_size(umem->ibdev),
					       left - nr, GFP_KERNEL);
	if (!ret)
		return nr;
err_unpin:
	unpin_user_pages(pages, nr);
	return ret;
}

/*
 * Pins all pages. @flags: FOLL_*, besides those that write access implies. Returns 0; -EREMOTEIO
 * if some of it is peer-to-peer memory, but other memory is asked for; -ENODEV if peer-to-peer
 * memory is asked for, but the first page is none, -EINVAL if the first is, but a later one is
 * not; or an error of pin_user_pages_fast().
 */
int umem_pin(struct ib_umem *umem, unsigned int flags)
{
	unsigned long left = umem_nr_pages(umem);
	unsigned long addr = umem->address & PAGE_MASK;
	struct page **pages;
	long nr = 0;

	if (umem->writable)
		flags |= FOLL_WRITE;
	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	while (left) {
		cond_resched();
		/* Pages that are there are pinned without a look at signals. */
		if (fatal_signal_pending(current)) {
			nr = -EINTR;
			break;
		}
		nr = umem_pin_batch(umem, addr, left, flags, pages);
		if (nr < 0)
			break;
		addr += nr << PAGE_SHIFT;
		left -= nr;
	}
	free_page((unsigned long)pages);
	if (!left)
		return 0;
	umem_unpin(umem, false);
	return nr;
}

/*
 * Memory may be registered, and so mapped, several times at once. To the DMA API that is an error
 * if each mapping transfers ownership to the device. Ours do not, because the device and the
 * process use the memory at the same time, see umem_check_reach(). (CONFIG_DMA_API_DEBUG warns
 * nevertheless, once, when some memory is mapped for the ninth time.)
 */
#define UMEM_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

/*
 * Whether the CPU has to synchronise memory that was mapped for a device, since the device uses a
 * copy, or caches are not coherent. With an IOMMU, there are no copies: it maps whole pages as they
 * are, and only parts of pages are copied, for devices that are not trusted.
 */
static bool umem_needs_sync(struct device *dev, dma_addr_t addr)
{
	const struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (domain && (domain->type & __IOMMU_DOMAIN_PAGING))
		return !dev_is_dma_coherent(dev);
	return dma_need_sync(dev, addr);
}

/*
 * For memory that a device cannot reach, the DMA layer gives it a bounce buffer, which is
 * synchronised when the CPU asks for that. If the device and the process use the memory at the
 * same time, nobody knows when to ask: neither would see what the other writes, and the data that
 * the process has written would be overwritten in the end. So @sgt, which is mapped for a device,
 * must not have any bounce buffers. The same holds for caches that have to be flushed. Returns 0
 * or -EIO.
 */
int umem_check_reach(const struct ib_umem *umem, struct sg_table *sgt)
{
	struct ib_device *device = umem->ibdev;
	struct scatterlist *sg;
	unsigned int i;

	if (ib_uses_virt_dma(device))
		return 0;
	/*
	 * On a device that is not coherent, all addresses would be refused. But a peer need not
	 * map its memory by the DMA API, and is itself responsible for coherent caches.
	 */
	if (umem->is_peer && !dev_is_dma_coherent(device->dma_device))
		return 0;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (likely(!umem_needs_sync(device->dma_device, sg_dma_address(sg))))
			continue;
		ibdev_err_ratelimited(device,
				      "cannot register memory: DMA would use bounce buffers, or is not coherent; boot without swiotlb=force, or use a device that reaches all memory\n");
		return -EIO;
	}
	return 0;
}

static void umem_unmap(struct ib_umem *umem)
{
	ib_dma_unmap_sgtable_attrs(umem->ibdev, &umem->sgt_append.sgt,
				   DMA_BIDIRECTIONAL, UMEM_DMA_ATTRS);
}

static int umem_map(struct ib_umem *umem, int access)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	unsigned long attrs = UMEM_DMA_ATTRS;
	int ret;

	if (access & IB_ACCESS_RELAXED_ORDERING)
		attrs |= DMA_ATTR_WEAK_ORDERING;
	ret = ib_dma_map_sgtable_attrs(umem->ibdev, sgt, DMA_BIDIRECTIONAL, attrs);
	if (ret)
		return ret;
	ret = umem_check_reach(umem, sgt);
	if (ret)
		umem_unmap(umem);
	return ret;
}

/**
 * ib_umem_get() - pin memory of the calling process and map it for a device
 * @device: the device
 * @addr: address of the first byte in the process
 * @size: bytes
 * @access: &enum ib_access_flags. The device may write if ib_access_writable()
 *	says so of them; then the process must be able to.
 *
 * Whole pages are pinned until ib_umem_release(), and counted in mm->pinned_vm.
 *
 * Context: Process, with the memory of a process: current->mm.
 * Return: the memory;
 * -EINVAL for no bytes, a range that wraps around, or 2^32 pages or more;
 * -EOPNOTSUPP for %IB_ACCESS_ON_DEMAND;
 * -EPERM if the process may lock no memory at all: RLIMIT_MEMLOCK is 0 and it
 * lacks CAP_IPC_LOCK;
 * -ENOMEM if it would exceed RLIMIT_MEMLOCK and lacks CAP_IPC_LOCK, or for lack of
 * memory;
 * -EFAULT if there is no memory at some of the addresses, or it cannot be pinned
 * for long, or the process lacks the access to it that the device needs; or if
 * the caller is a kernel thread;
 * -EREMOTEIO if some of it is PCI peer-to-peer memory, see %IB_MEM_P2P;
 * -EIO if the device does not reach all of it, and would get a copy from the DMA layer;
 * -EINTR if the process is being killed;
 * another error of pin_user_pages_fast() or dma_map_sgtable().
 */
struct ib_umem *ib_umem_get(struct ib_device *device, unsigned long addr,
			    size_t size, int access)
{
	const struct ib_verb_call call = {
		.dev = device, .site = _RET_IP_, .process = true, .what = "umem_get",
	};
	struct ib_umem *umem;
	int ret;

	ret = umem_check_range(&call, "addr", addr, size) ?: umem_check_access(access);
	if (ret)
		return ERR_PTR(ret);
	if (!current->mm)
		return ERR_PTR(-EFAULT);
	if (!can_do_mlock())
		return ERR_PTR(-EPERM);

	umem = kzalloc(sizeof(*umem), GFP_KERNEL);
	if (!umem)
		return ERR_PTR(-ENOMEM);
	umem_init(umem, device, addr, size, access);
	umem->owning_mm = current->mm;
	mmgrab(umem->owning_mm);

	ret = umem_charge_pinned(umem);
	if (ret)
		goto err_free;
	ret = umem_pin(umem, FOLL_LONGTERM);
	if (ret)
		goto err_uncount;
	ret = umem_map(umem, access);
	if (ret)
		goto err_unpin;
	return umem;

err_unpin:
	umem_unpin(umem, false);
err_uncount:
	umem_uncharge_pinned(umem);
err_free:
	mmdrop(umem->owning_mm);
	kfree(umem);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL(ib_umem_get);

/* Undoes ib_umem_get(). */
static void umem_release(struct ib_umem *umem)
{
	umem_unmap(umem);
	umem_unpin(umem, umem->writable);
	umem_uncharge_pinned(umem);
	mmdrop(umem->owning_mm);
	kfree(umem);
}

/**
 * ib_umem_release() - undo ib_umem_get() or ib_umem_get_peer()
 * @umem: the memory, which the device no longer uses; or NULL. It may also be part of
 *	the &struct ib_umem_dmabuf that ib_umem_dmabuf_get() returned.
 *
 * Pages of a process that the device may have written are marked dirty. If the
 * memory is another device's, this calls functions of its driver.
 *
 * Context: Any process; the owner of the memory may have ended.
 */
void ib_umem_release(struct ib_umem *umem)
{
	if (!umem)
		return;
	if (umem->is_peer)
		umem_peer_release(umem);
	else if (umem->is_dmabuf)
		ib_umem_dmabuf_release(to_ib_umem_dmabuf(umem));
	else if (umem->is_p2p)
		umem_p2p_release(umem);
	else
		umem_release(umem);
}
EXPORT_SYMBOL(ib_umem_release);

/**
 * ib_umem_copy_from() - read pinned memory
 * @dst: buffer
 * @umem: the memory
 * @offset: bytes to skip at its start
 * @length: bytes to copy
 *
 * Context: Any.
 * Return: 0; -EINVAL, with nothing copied, for bytes beyond the end, or if it is not system
 * memory.
 */
int ib_umem_copy_from(void *dst, struct ib_umem *umem, size_t offset,
		      size_t length)
{
	const struct ib_verb_call call = {
		.dev = umem->ibdev, .site = _RET_IP_, .process = true, .what = "umem_copy_from",
	};
	struct sg_table *sgt = &umem->sgt_append.sgt;
	size_t copied;

	if (umem->is_peer || umem->is_dmabuf || umem->is_p2p)
		return ib_invalid(&call, "not system memory, so it cannot be copied from");
	if (offset > umem->length || length > umem->length - offset)
		return ib_invalid(&call, "offset %zu + length %zu > %zu, the memory's length",
				  offset, length, umem->length);
	copied = sg_pcopy_to_buffer(sgt->sgl, sgt->orig_nents, dst, length,
				    offset + ib_umem_offset(umem));
	return copied == length ? 0 : -EINVAL;
}
EXPORT_SYMBOL(ib_umem_copy_from);

/**
 * ib_umem_check_rereg() - check that a region's memory allows the new access
 * @umem: the memory; %NULL for a region that has none
 * @flags: what changes, &enum ib_mr_rereg_flags
 * @new_access_flags: the new access, if %IB_MR_REREG_ACCESS is set
 *
 * For a driver's rereg_user_mr method, if the region keeps its memory. With %IB_MR_REREG_TRANS it
 * gets other memory, so any access is possible.
 *
 * Context: Any.
 * Return: 0; -EACCES if the device would write to memory that is mapped for reading only.
 */
int ib_umem_check_rereg(struct ib_umem *umem, int flags, int new_access_flags)
{
	if (!umem || umem->writable || (flags & IB_MR_REREG_TRANS) ||
	    !(flags & IB_MR_REREG_ACCESS))
		return 0;
	return ib_access_writable(new_access_flags) ? -EACCES : 0;
}
EXPORT_SYMBOL(ib_umem_check_rereg);

/*
 * Returns bits of which the lowest one is the largest possible size of blocks. Within a block,
 * device addresses and DMA addresses must have the same low bits; and where DMA addresses are not
 * contiguous, a block must begin.
 */
static u64 umem_block_limit(struct ib_umem *umem)
{
	unsigned int skip = ib_umem_offset(umem), i;
	u64 va = umem->iova, dma, end = 0, limit = 0;
	struct scatterlist *sg;

	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		dma = sg_dma_address(sg) + skip;
		limit |= dma ^ va;
		if (i && dma != end)
			limit |= va;
		end = sg_dma_address(sg) + sg_dma_len(sg);
		va += sg_dma_len(sg) - skip;
		skip = 0;
	}
	return limit;
}

/**
 * ib_umem_find_best_pgsz() - find the largest blocks by which the memory can be mapped
 * @umem: the memory
 * @pgsz_bitmap: sizes of blocks that the device supports: bit n stands for 2^n bytes
 * @virt: address of the first byte as the device uses it; becomes ib_umem.iova
 *
 * If a block of several sizes could hold all of the memory, the smallest of them is returned.
 *
 * Context: Any.
 * Return: bytes in a block; 0 if none of the sizes is possible, or @virt is so large that
 * addresses wrap around. A size of %PAGE_SIZE or less is always possible if @virt has the same
 * offset in a block of that size as the memory.
 */
unsigned long ib_umem_find_best_pgsz(struct ib_umem *umem,
				     unsigned long pgsz_bitmap, u64 virt)
{
	u64 last, limit;
	int span;

	umem->iova = virt;
	if (check_add_overflow(virt, (u64)umem->length - 1, &last))
		return 0;

	limit = umem_block_limit(umem);
	/* A block of 2^span bytes holds all of the memory. */
	span = fls64(virt ^ last);
	if (span < BITS_PER_LONG)
		limit |= pgsz_bitmap & (~0UL << span);
	if (limit)
		pgsz_bitmap &= GENMASK_ULL(__ffs64(limit), 0);
	return pgsz_bitmap ? rounddown_pow_of_two(pgsz_bitmap) : 0;
}
EXPORT_SYMBOL(ib_umem_find_best_pgsz);

/**
 * __rdma_block_iter_start() - begin a walk; see rdma_for_each_block()
 * @biter: set up
 * @sglist: DMA-mapped list
 * @nents: its entries
 * @pgsz: bytes in a block, a power of two
 *
 * Context: Any.
 */
void __rdma_block_iter_start(struct ib_block_iter *biter,
			     struct scatterlist *sglist, unsigned int nents,
			     unsigned long pgsz)
{
	*biter = (struct ib_block_iter) {
		.__sg = sglist,
		.__sg_nents = nents,
		.__pg_bit = __fls(pgsz),
	};
}
EXPORT_SYMBOL(__rdma_block_iter_start);

/**
 * __rdma_block_iter_next() - go to the next block
 * @biter: the walk
 *
 * Context: Any.
 * Return: true if there is one.
 */
bool __rdma_block_iter_next(struct ib_block_iter *biter)
{
	u64 block = BIT_ULL(biter->__pg_bit), rest;
	unsigned int left;

	if (!biter->__sg_nents)
		return false;
	biter->__dma_addr = sg_dma_address(biter->__sg) + biter->__sg_advance;

	/* Go to the beginning of the next block, perhaps some entries ahead. */
	rest = block - (biter->__dma_addr & (block - 1));
	while (biter->__sg_nents) {
		left = sg_dma_len(biter->__sg) - biter->__sg_advance;
		if (rest < left) {
			biter->__sg_advance += rest;
			break;
		}
		rest -= left;
		biter->__sg_advance = 0;
		biter->__sg = sg_next(biter->__sg);
		biter->__sg_nents--;
	}
	return true;
}
EXPORT_SYMBOL(__rdma_block_iter_next);

/**
 * ib_dma_virt_map_sg() - map a scatter list for a device without DMA
 * @dev: a device with ib_uses_virt_dma()
 * @sg: the list
 * @nents: its entries
 *
 * Context: Any.
 * Return: @nents; 0 if part of it is PCI peer-to-peer memory, because the device is not on
 * the bus.
 */
int ib_dma_virt_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents)
{
	struct scatterlist *s;
	int i;

	for_each_sg(sg, s, nents, i) {
		if (is_pci_p2pdma_page(sg_page(s)))
			return 0;
		sg_dma_address(s) = (uintptr_t)sg_virt(s);
		sg_dma_len(s) = s->length;
	}
	return nents;
}
EXPORT_SYMBOL(ib_dma_virt_map_sg);
