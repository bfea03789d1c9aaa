/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The fake GPU, /dev/fake_gpu<N>: device memory that processes can map and register
 * for RDMA.
 *
 * Memory is allocated by ioctl and belongs to the open file. FREE, or closing the
 * file, frees it: registrations lose the memory then. mmap(2) with the offset that
 * ALLOC returned and MAP_SHARED maps the memory, such that its pages are at multiples
 * of their size. At other addresses, which MAP_FIXED or a mapping of the dma-buf may
 * result in, it cannot be registered. Access to a mapping of freed memory raises
 * SIGBUS.
 *
 * Freed memory keeps its place in the device until its last mapping, registration or
 * dma-buf is gone.
 *
 * Programs that know nothing of these ioctls just map the node: mmap(2) with offset 0
 * allocates zeroed memory for the mapping. It is no file's, and stays until nobody maps it
 * and it is not registered.
 */
#ifndef _UAPI_KVERBS_FAKE_GPU_H
#define _UAPI_KVERBS_FAKE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct fake_gpu_info - INFO
 * @page_size: bytes in a page: sizes and addresses of memory are multiples of it
 * @flags: FAKE_GPU_*
 * @size: total bytes of memory
 * @used: bytes that are allocated, or freed but still held
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
 * @size: bytes, not 0; the driver rounds it up to whole pages
 * @offset: offset for mmap(2), set by the driver
 * @handle: handle for the other requests, set by the driver; not 0
 * @reserved: 0
 *
 * The memory is zeroed, and may not be contiguous in the device.
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
 * The argument is the handle. When FREE returns, RDMA to the memory has ended, and the
 * memory is poisoned. But RDMA that cannot be ended goes on: to a dma-buf that an
 * importer has pinned, or to the memory of a fake GPU that never invalidates.
 */
#define FAKE_GPU_FREE	_IO('g', 2)
/* The argument is the handle. Returns the file descriptor of a dma-buf (O_CLOEXEC). */
#define FAKE_GPU_EXPORT	_IO('g', 3)
/*
 * The argument is the handle. Moves the memory to other pages of the device, and poisons
 * the old ones. -EBUSY if the memory is pinned, or registered as peer memory.
 */
#define FAKE_GPU_MOVE	_IO('g', 4)

/* Each byte of a freed page has this value. */
#define FAKE_GPU_POISON	0xdb

#endif /* _UAPI_KVERBS_FAKE_GPU_H */
