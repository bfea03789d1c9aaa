/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that belongs to another device, for RDMA: the interface that the driver of a
 * GPU, or of any other device with memory of its own, implements and calls.
 *
 * Existing drivers are written for this interface already. Documentation/peer-memory.rst
 * says what it guarantees here, and where that is more than other implementations do.
 * The functions of a client are called in process context and may sleep; no lock of the
 * registry or of the RDMA core is held. Calls for one region never overlap; those for
 * different regions may run at the same time.
 */
#ifndef RDMA_PEER_MEM_H
#define RDMA_PEER_MEM_H

#include <linux/scatterlist.h>
#include <linux/types.h>

struct device;

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16

/*
 * The core's context is a number. It used to be a pointer: drivers written for that
 * define PEER_MEM_VOID_CORE_CONTEXT before they include this header.
 */
#ifdef PEER_MEM_VOID_CORE_CONTEXT
#ifndef CONFIG_64BIT
#error "PEER_MEM_VOID_CORE_CONTEXT needs pointers of 64 bits"
#endif
typedef void *peer_core_context_t;
#else
#define PEER_MEM_U64_CORE_CONTEXT
typedef u64 peer_core_context_t;
#endif

/**
 * struct peer_memory_client - a driver whose memory can be registered for RDMA
 * @name: unique among clients; terminated, not empty, without '/', and not beginning
 *	with '.'
 * @version: any text. A last byte other than 0 says that this structure is the member
 *	&peer_memory_client_ex.client; the text must then be terminated before that byte.
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];

	/**
	 * @acquire: does a range of the calling process's addresses belong to the
	 * client, all of it?
	 *
	 * @addr, @size: the range as it was registered, in bytes, of any alignment.
	 * @peer_mem_private_data: NULL; or IB_PEER_MEMORY_DATA_MAX bytes that the
	 * registering process or ULP has set for this client. They are only valid
	 * during the call.
	 * @peer_mem_name: NULL; or the client's name, if it was asked for by name.
	 * @client_context: the client sets it; the other functions are passed it.
	 *
	 * current->mm is the process's memory, or NULL if a kernel thread registers memory
	 * for itself. Of the task, nothing else need be the process's: a request that a
	 * kernel caller has queued is carried out by a work item.
	 *
	 * Returns 1 if the range is the client's; release() will follow. Any other
	 * value means that it is not.
	 */
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		       char *peer_mem_name, void **client_context);
	/**
	 * @get_pages: pin the memory of the range
	 *
	 * @write: the device may write. @force: 0.
	 * @sg_head: zeroed; this function or dma_map() fills it.
	 * @core_context: identifies the region in calls of the function of type
	 * invalidate_peer_memory, which the client may make from now on. Not 0.
	 *
	 * Returns 0, or a negative errno with which the registration fails. After 0,
	 * put_pages() follows, except as PEER_MEM_INVALIDATE_UNMAPS says.
	 */
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context,
			 peer_core_context_t core_context);
	/**
	 * @dma_map: map the memory for a device
	 *
	 * @sg_head: as get_pages() left it; afterwards a table of mapped entries. It
	 * begins with the page, of get_page_size() bytes, that holds the first byte
	 * of the range, and reaches to the end of the range or further. The page
	 * pointers of the entries are not used, and may be NULL.
	 * @dmasync: 0. @nmap: the client sets it to the number of mapped entries.
	 *
	 * Returns 0, or a negative errno with which the registration fails. After 0,
	 * dma_unmap() follows, except as PEER_MEM_INVALIDATE_UNMAPS says.
	 */
	int (*dma_map)(struct sg_table *sg_head, void *client_context,
		       struct device *dma_device, int dmasync, int *nmap);
	/**
	 * @dma_unmap: undo dma_map(). @sg_head is exactly what dma_map() left. The
	 * returned value is ignored.
	 */
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device);
	/** @put_pages: undo get_pages(), and free what @sg_head holds */
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	/**
	 * @get_page_size: returns the bytes in a page of the range: a power of two, at
	 * least PAGE_SIZE. Called after dma_map(). NULL: PAGE_SIZE.
	 */
	unsigned long (*get_page_size)(void *client_context);
	/** @release: undo acquire(). NULL if there is nothing to undo. */
	void (*release)(void *client_context);
};

/* Bytes of private data for acquire(), if there is any. */
#define IB_PEER_MEMORY_DATA_MAX	64

/* peer_memory_client_ex.flags */
enum {
	/*
	 * When invalidate_peer_memory has returned 0, the client unmaps and unpins the
	 * memory itself: neither dma_unmap() nor put_pages() is called. It also frees
	 * what the table holds, in release() at the latest; for that it keeps a copy
	 * of the table.
	 */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/**
 * struct peer_memory_client_ex - a client with flags
 * @client: the client; the last byte of its version is not 0
 * @ex_size: bytes of this structure; if it ends before @flags, those count as 0
 * @flags: PEER_MEM_*
 */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

/**
 * typedef invalidate_peer_memory - end RDMA to a region's memory
 * @reg_handle: handle that ib_register_peer_memory_client() returned
 * @core_context: context that get_pages() was passed
 *
 * When it returns, no device accesses the memory any more, nor ever will through this
 * region; users of the region get access errors. Unless the client unmaps the memory
 * itself (PEER_MEM_INVALIDATE_UNMAPS), its dma_unmap() and put_pages() are called from
 * within this call, or, after -EINPROGRESS, by another thread or further up in the
 * call chain.
 *
 * The call never waits for a dma_unmap(), put_pages() or release() that another thread
 * is in. If another thread is in get_pages() or dma_map() of this region, it waits for
 * that, because clients rely on it, but only for as long as the registry's module
 * parameter invalidate_wait_ms allows.
 *
 * Context: Process, may sleep; not from within reclaim. May be called any number of
 * times, by any thread, and from within any function of the client. The client may
 * hold locks of its own, even locks that its other functions take. But unless it unmaps
 * the memory itself, its dma_unmap() and put_pages() are called from within, and must
 * not take a lock that the caller holds; they can tell by the task, which is the same.
 * Return: 0 if dma_unmap() and put_pages() have been called, or will not be called: a
 * client that unmaps the memory itself does so now, and gets this result only once.
 * -EINPROGRESS if another thread, or a function further up in the caller's call chain,
 * is about to call them: the client must leave the memory to them. -ENOENT if there
 * is no such region, or not any more, or if the client unmaps the memory itself and
 * the region's memory has been given back already. In each case the devices' access
 * has ended.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, peer_core_context_t core_context);

void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* RDMA_PEER_MEM_H */
