/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The fake GPU, /dev/fake_gpu<N>: memory of a device, to be mapped by processes and
 * registered for RDMA.
 *
 * Memory is allocated by ioctl, belongs to the open file, and goes with FREE or
 * with the file: whatever has it registered loses it. mmap(2) with the offset
 * that ALLOC gave maps it, MAP_SHARED, with its pages at multiples of their size;
 * at other addresses, which are to be had with MAP_FIXED or through the dma-buf, it
 * cannot be registered. What is mapped of memory that was freed raises SIGBUS.
 *
 * What was freed has its place in the device until the last mapping, registration
 * or dma-buf of it has gone.
 */
#ifndef _UAPI_KVERBS_FAKE_GPU_H
#define _UAPI_KVERBS_FAKE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct fake_gpu_info - INFO
 * @page_size: bytes: sizes and addresses of memory are multiples of it
 * @flags: FAKE_GPU_*
 * @size: bytes of memory in all
 * @used: of them, allocated, or freed but still held
 */
struct fake_gpu_info {
	__u32 page_size;
	__u32 flags;
	__aligned_u64 size;
	__aligned_u64 used;
};

/* fake_gpu_info.flags */
#define FAKE_GPU_BAR		(1U << 0) /* the memory is a PCI device's, not the system's */

/**
 * struct fake_gpu_alloc - ALLOC
 * @size: bytes, rounded up to pages; not 0
 * @offset: for mmap(2), set by the driver
 * @handle: for the other requests, set by the driver; not 0
 * @reserved: 0
 *
 * The memory is zeroed, and need not be contiguous.
 */
struct fake_gpu_alloc {
	__aligned_u64 size;
	__aligned_u64 offset;
	__u32 handle;
	__u32 reserved;
};

#define FAKE_GPU_INFO	_IOR('g', 0, struct fake_gpu_info)
#define FAKE_GPU_ALLOC	_IOWR('g', 1, struct fake_gpu_alloc)
/*
 * The argument is the handle. RDMA has ended, and the memory is poisoned, when it returns;
 * but RDMA that cannot be ended goes on: to a dma-buf that an importer has pinned, or
 * of a device that never invalidates.
 */
#define FAKE_GPU_FREE	_IO('g', 2)
/* The argument is the handle. Returns a dma-buf's file descriptor (O_CLOEXEC). */
#define FAKE_GPU_EXPORT	_IO('g', 3)
/*
 * The argument is the handle. The memory moves to other pages of the device, unless it
 * is pinned: -EBUSY. The old pages are poisoned.
 */
#define FAKE_GPU_MOVE	_IO('g', 4)

/* What freed pages are filled with. */
#define FAKE_GPU_POISON	0xdb

#endif /* _UAPI_KVERBS_FAKE_GPU_H */
