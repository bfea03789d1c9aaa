/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fake GPU: a driver of a device with its own memory, which processes register
 * for RDMA: it is a peer-memory client, and exports dma-bufs. It does nothing else,
 * so that authors of such drivers can read it as a template. The template consists,
 * in less than 300 lines of code, of this file and
 *
 *  memory.c	objects of memory: how they are created, exported and freed
 *  map.c	how devices and processes map them
 *  peer.c	the peer-memory client
 *
 * The other files contain, in its simplest form, what each driver already has, in
 * some form of its own:
 *
 *  device.c	devices, and which of their pages are free
 *  node.c	/dev/fake_gpu<N>: processes allocate, map, move and free
 *  main.c	where devices come from
 *
 * and inject.c, which makes the client misbehave, for tests. Each calls only those that come
 * after it in this order: main, inject and node, memory, peer, map, device.
 *
 * An object is a dma-buf from the start. The dma-buf's file counts the references:
 * those of its handle, of processes' mappings, of RDMA regions, and of importers. Its
 * address_space has the mappings, and its reservation lock guards the rest of the
 * object. FREE takes the memory away from all of these users; the pages can be
 * allocated again when the last reference is gone.
 *
 * Lock protocol: an object's reservation lock is taken in page faults, and so
 * inside mmap_lock, as are the locks with which mmap(2) makes objects. fake_gpu.lock is innermost. No lock is held while the function
 * invalidate_peer_memory runs: it calls functions of peer.c, which take the
 * reservation lock, or waits for such functions that other threads are in.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "device.h"
#include "inject.h"

/**
 * struct fake_gpu_mem - an object
 * @gpu: the device
 * @dmabuf: counts references; its reservation lock guards the fields below
 * @regions: RDMA regions of the memory, but for those that are being invalidated
 * @pins: number of pins by importers
 * @freed: FREE was called, and nobody can get the memory any more
 * @kept: users need not give the memory up, and may write to it for as long as there are any
 * @nr_pages: number of its pages
 * @page: physical addresses of the pages, which change only while nobody has them
 */
struct fake_gpu_mem {
	struct fake_gpu *gpu;
	struct dma_buf *dmabuf;
	struct list_head regions;
	unsigned int pins;
	bool freed;
	bool kept;
	u32 nr_pages;
	phys_addr_t page[];
};

/* map.c */
extern const struct vm_operations_struct fake_gpu_vm_ops;
int fake_gpu_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma);
struct sg_table *fake_gpu_map(struct fake_gpu_mem *mem, u32 first, u32 nr, struct device *dev);
void fake_gpu_unmap(struct sg_table *sgt, struct device *dev);

/* memory.c */
struct dma_buf *fake_gpu_mem_create(struct fake_gpu *gpu, u32 nr);
void fake_gpu_mem_free(struct fake_gpu_mem *mem);
void fake_gpu_mem_withdraw(struct fake_gpu_mem *mem);

/* peer.c */
bool fake_gpu_peer_client(struct fake_gpu *gpu);
int fake_gpu_peer_register(struct fake_gpu *gpu);
void fake_gpu_peer_unregister(struct fake_gpu *gpu);
int fake_gpu_peer_acquire(struct fake_gpu *gpu, unsigned long addr, size_t size, void **context);
void fake_gpu_peer_invalidate(struct fake_gpu_mem *mem);

#endif /* FAKE_GPU_H */
