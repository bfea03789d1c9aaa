// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices, and which of their pages are free.
 *
 * Lock protocol: fake_gpu.lock guards fake_gpu.free. Open files and objects hold their
 * device, and the module; unplugging the device waits until they are gone.
 *
 * Free pages hold FAKE_GPU_POISON. If that has changed when a page is allocated, a device
 * has written to free memory, and a warning names the page. The page that has been free
 * for the longest time is allocated first, so that late writes are noticed.
 */
#include <linux/bug.h>
#include <linux/io.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "device.h"

struct fake_gpu *fake_gpus[FAKE_GPU_MAX];

void *fake_gpu_vram(const struct fake_gpu *gpu, phys_addr_t page)
{
	return gpu->bar ? gpu->vram + (page - gpu->bar) : phys_to_virt(page);
}

void fake_gpu_pages_fill(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr, int value)
{
	for (; nr--; page++) {
		memset(fake_gpu_vram(gpu, *page), value, FAKE_GPU_PAGE);
		cond_resched();
	}
}

/* Checks that nobody has written to pages since they were freed. */
void fake_gpu_pages_check(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr)
{
	void *wrong;

	for (; nr--; page++) {
		wrong = memchr_inv(fake_gpu_vram(gpu, *page), FAKE_GPU_POISON, FAKE_GPU_PAGE);
		WARN(wrong, "%s: freed memory was written to: page %pa, offset %#zx\n",
		     gpu->misc.name, page, wrong - fake_gpu_vram(gpu, *page));
		cond_resched();
	}
}

/* Allocates up to @nr pages. Returns their number. */
u32 fake_gpu_pages_get(struct fake_gpu *gpu, phys_addr_t *page, u32 nr)
{
	nr = kfifo_out_spinlocked(&gpu->free, page, nr, &gpu->lock);
	fake_gpu_pages_check(gpu, page, nr);
	return nr;
}

void fake_gpu_pages_put(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr)
{
	kfifo_in_spinlocked(&gpu->free, page, nr, &gpu->lock);
}

void fake_gpu_get(struct fake_gpu *gpu)
{
	refcount_inc(&gpu->users);
}

void fake_gpu_put(struct fake_gpu *gpu)
{
	if (refcount_dec_and_test(&gpu->users))
		complete(&gpu->unused);
}
