// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a process and the kernel share.
 *
 * For each context, the core has a table of offsets and rings, so a process finds its own rings
 * only. It also checks that a mapping is shared, and as long as the ring. A mapping holds the
 * pages, so a ring may stay mapped after its object or device is gone; then it is merely memory.
 *
 * The memory is charged to the process's cgroup, as is the rest of a queue, but not to
 * RLIMIT_MEMLOCK: that limits the memory of its own that a process pins, and other rings that the
 * kernel allocates for a process do not count for it, either.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../lib/emu.h"
#include "methods.h"
#include "ring.h"

static void emu_uring_free(struct emu_uring *ring)
{
	vunmap(ring->buf);
	while (ring->nr_pages)
		__free_page(ring->pages[--ring->nr_pages]);
	kvfree(ring->pages);
	kfree(ring);
}

/* Allocates the memory of the ring, zeroed. Returns 0 or -ENOMEM. */
static int emu_uring_alloc(struct emu_uring *ring, size_t bytes)
{
	u32 nr = DIV_ROUND_UP(bytes, PAGE_SIZE);

	ring->pages = emu_process_zalloc(array_size(nr, sizeof(*ring->pages)));
	if (!ring->pages)
		return -ENOMEM;
	while (ring->nr_pages < nr) {
		struct page *page = alloc_page(EMU_GFP_PROCESS | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		ring->pages[ring->nr_pages++] = page;
	}
	ring->buf = vmap(ring->pages, nr, VM_MAP, PAGE_KERNEL);
	return ring->buf ? 0 : -ENOMEM;
}

/**
 * emu_uring_create() - make a ring that a process can map
 * @ibuc: context of the process
 * @entries: how many it must hold; at most 2^30
 * @entry_size: bytes of an entry
 *
 * Context: Process.
 * Return: the ring, or an ERR_PTR: -ENOMEM.
 */
struct emu_uring *emu_uring_create(struct ib_ucontext *ibuc, u32 entries, size_t entry_size)
{
	struct emu_uring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	size_t bytes;
	int err;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->mask = roundup_pow_of_two(entries + 1) - 1;
	ring->shift = max(order_base_2(entry_size), EMU_URING_MIN_SHIFT);
	bytes = sizeof(*ring->buf) + (((size_t)ring->mask + 1) << ring->shift);
	err = emu_uring_alloc(ring, bytes);
	if (err)
		goto free;
	ring->buf->log2_elem_size = ring->shift;
	ring->buf->index_mask = ring->mask;
	err = rdma_user_mmap_entry_insert(ibuc, &ring->entry, bytes);
	if (!err)
		return ring;
free:
	emu_uring_free(ring);
	return ERR_PTR(err);
}

/*
 * Frees a ring as soon as no process maps it; the kernel must not use it any more. NULL is a
 * no-op. Process context.
 */
void emu_uring_destroy(struct emu_uring *ring)
{
	if (ring)
		rdma_user_mmap_entry_remove(&ring->entry);
}

/* Returns what a process needs for mapping the ring: its offset and size. */
struct mminfo emu_uring_info(const struct emu_uring *ring)
{
	return (struct mminfo) {
		.offset = rdma_user_mmap_get_offset(&ring->entry),
		.size = ring->entry.npages * PAGE_SIZE,
	};
}

int emu_user_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ibuc, vma);
	struct emu_uring *ring;
	int err;

	if (!entry)
		return -EINVAL;
	ring = container_of(entry, struct emu_uring, entry);
	err = vm_map_pages_zero(vma, ring->pages, ring->nr_pages);
	rdma_user_mmap_entry_put(entry);
	return err;
}

/* Called by the core when the ring was destroyed, and is no longer mapped. */
void emu_user_mmap_free(struct rdma_user_mmap_entry *entry)
{
	emu_uring_free(container_of(entry, struct emu_uring, entry));
}
