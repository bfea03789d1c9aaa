/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface of the registry as an old driver declares it for itself, without the
 * present header.
 */
#ifndef KVT_PEER_SHAPES_SYMBOL_H
#define KVT_PEER_SHAPES_SYMBOL_H

#include <linux/scatterlist.h>
#include <linux/types.h>

struct device;

struct peer_memory_client {
	char name[64];
	char version[16];
	int (*acquire)(unsigned long addr, size_t size, void *data, char *name,
		       void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context,
			 void *core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context,
		       struct device *dma_device, int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context, struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
};

/* Type of the invalidate callback, which the core returns at registration. */
typedef int (*old_invalidate_fn)(void *handle, void *core_context);

void *ib_register_peer_memory_client(struct peer_memory_client *client,
				     old_invalidate_fn *invalidate);
void ib_unregister_peer_memory_client(void *handle);

#endif
