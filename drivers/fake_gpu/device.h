/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FAKE_GPU_DEVICE_H
#define FAKE_GPU_DEVICE_H

#include <linux/completion.h>
#include <linux/kfifo.h>
#include <linux/miscdevice.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <rdma/peer_mem.h>
#include <uapi/kverbs/fake_gpu.h>

struct fake_gpu_inject;

#define FAKE_GPU_PAGE	SZ_64K
/* Maximum number of devices. */
#define FAKE_GPU_MAX	4

/**
 * struct fake_gpu - a device
 * @index: its number, from 0
 * @misc: its device node
 * @client: its name, and the functions that RDMA calls
 * @peer: the handle by which the registry knows it
 * @revocable: it ends RDMA to its memory when that is freed
 * @invalidate: the registry's function for that
 * @bar: physical address of its memory; 0 if the memory is pages of the system
 * @vram: mapping of the BAR for the CPU
 * @nr_pages: number of pages of memory
 * @free: physical addresses of the pages that no object has
 * @lock: guards @free
 * @users: number of open files and objects, plus one until it is unplugged
 * @unused: completed when @users is 0
 * @inject: belongs to inject.c
 */
struct fake_gpu {
	unsigned int index;
	struct miscdevice misc;
	struct peer_memory_client_ex client;
	void *peer;
	bool revocable;
	invalidate_peer_memory invalidate;
	phys_addr_t bar;
	void *vram;
	u32 nr_pages;
	DECLARE_KFIFO_PTR(free, phys_addr_t);
	spinlock_t lock;
	refcount_t users;
	struct completion unused;
	struct fake_gpu_inject *inject;
};

/* device.c */
extern struct fake_gpu *fake_gpus[FAKE_GPU_MAX];

void fake_gpu_get(struct fake_gpu *gpu);
void fake_gpu_put(struct fake_gpu *gpu);
u32 fake_gpu_pages_get(struct fake_gpu *gpu, phys_addr_t *page, u32 nr);
void fake_gpu_pages_put(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr);
void fake_gpu_pages_fill(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr, int value);
void fake_gpu_pages_check(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr);
void *fake_gpu_vram(const struct fake_gpu *gpu, phys_addr_t page);

/* node.c */
extern const struct file_operations fake_gpu_fops;

#endif /* FAKE_GPU_DEVICE_H */
