/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that belongs to another device, for RDMA: what the driver of a GPU, or of
 * anything else with memory of its own, implements and calls.
 *
 * The interface is the one that such drivers are written for already; what it
 * promises here, and where that is more than elsewhere, is in
 * Documentation/peer-memory.rst. All calls below are made in process context, may
 * sleep, and are made with no lock of the caller's held. Those for one region
 * come one after the other; those for different regions at the same time.
 */
#ifndef RDMA_PEER_MEM_H
#define RDMA_PEER_MEM_H

#include <linux/scatterlist.h>
#include <linux/types.h>

struct device;

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16

/*
 * The core's context is a number. Drivers that were written when it was a pointer
 * define PEER_MEM_VOID_CORE_CONTEXT before they include this.
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
 * @name: unique among clients, terminated, not empty, without '/' and not with '.'
 *	at the beginning
 * @version: any text, terminated before its last byte. If that last byte is not 0,
 *	this is the member &peer_memory_client_ex.client.
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];

	/**
	 * @acquire: is all of a range of the calling process's addresses yours?
	 *
	 * @addr, @size: the range as it was registered, in bytes, of any alignment.
	 * @peer_mem_private_data: NULL; or IB_PEER_MEMORY_DATA_MAX bytes that the
	 * owner of the context has set for you, for as long as the call lasts.
	 * @peer_mem_name: NULL; or your name, if you were asked for by it.
	 * @client_context: for you to set: what the other calls are given.
	 *
	 * 1: it is, and release() will follow; anything else: it is not.
	 */
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		       char *peer_mem_name, void **client_context);
	/**
	 * @get_pages: pin the memory of the range
	 *
	 * @write: the device may write. @force: 0.
	 * @sg_head: zeroed; to be filled now or by dma_map().
	 * @core_context: names the region when you call the function of type
	 * invalidate_peer_memory, which you may do from now on. Not 0.
	 *
	 * 0 or a negative errno, which is the registration's. After 0, put_pages()
	 * follows.
	 */
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context,
			 peer_core_context_t core_context);
	/**
	 * @dma_map: map the memory for a device
	 *
	 * @sg_head: as get_pages() left it; afterwards a table of mapped entries
	 * which begins with the page, of get_page_size() bytes, that has the first
	 * byte of the range, and reaches its end or further. The entries' pages
	 * are not looked at, and may be NULL.
	 * @dmasync: 0. @nmap: for you to set: how many entries are mapped.
	 *
	 * 0 or a negative errno, which is the registration's. After 0,
	 * dma_unmap() follows.
	 */
	int (*dma_map)(struct sg_table *sg_head, void *client_context,
		       struct device *dma_device, int dmasync, int *nmap);
	/**
	 * @dma_unmap: undo dma_map(). @sg_head is bit by bit what dma_map() left.
	 * What it returns is not looked at.
	 */
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device);
	/** @put_pages: undo get_pages(). Frees what @sg_head has. */
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	/**
	 * @get_page_size: bytes of a page of the range, a power of two of at least
	 * PAGE_SIZE; asked after dma_map(). NULL: PAGE_SIZE.
	 */
	unsigned long (*get_page_size)(void *client_context);
	/** @release: undo acquire(). NULL if there is nothing to undo. */
	void (*release)(void *client_context);
};

/* Bytes of acquire()'s private data, if there is any. */
#define IB_PEER_MEMORY_DATA_MAX	64

/* peer_memory_client_ex.flags */
enum {
	/*
	 * When invalidate_peer_memory returned 0, the client unmaps and unpins the
	 * memory itself: neither dma_unmap() nor put_pages() is called. It frees
	 * what the table has, too, by a copy that it keeps, in release() at the
	 * latest.
	 */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/**
 * struct peer_memory_client_ex - a client that says more
 * @client: the last byte of its version is not 0
 * @ex_size: bytes of this structure; flags that are not within are 0
 * @flags: PEER_MEM_*
 */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

/**
 * typedef invalidate_peer_memory - end RDMA to a region's memory
 * @reg_handle: of ib_register_peer_memory_client()
 * @core_context: of get_pages()
 *
 * When it returns, no device accesses the memory any more, nor ever will by this
 * region; its users get access errors. Unless the client unmaps the memory
 * itself, dma_unmap() and put_pages() have been called from within.
 *
 * It never waits for dma_unmap(), put_pages() or release() of another thread. It
 * waits for a get_pages() or dma_map() of this region that another thread is in,
 * because clients rely on that, but not for ever: the registry's module parameter
 * invalidate_wait_ms.
 *
 * Context: Process; may sleep; not from within reclaim. May be called any number of
 * times, by any threads, also from within any function of the client's. The client
 * may hold locks of its own, also such that its other functions take; but unless it
 * unmaps the memory itself, its dma_unmap() and put_pages() are called from within
 * and must not take what the caller holds: that the caller is the same task tells
 * them.
 * Return: 0: the client's functions have been called, or will not be: a client that
 * unmaps the memory itself does it now, and gets this answer once; -EINPROGRESS:
 * another thread, or the caller further up, is about to call them: the client must
 * leave it to them; -ENOENT: there is no such region, or not any more, or one of a
 * client that unmaps, whose memory is given back already. There is no access in any
 * case.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, peer_core_context_t core_context);

void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* RDMA_PEER_MEM_H */
