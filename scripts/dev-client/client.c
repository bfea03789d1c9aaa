// SPDX-License-Identifier: GPL-2.0-only
/*
 * An out-of-tree driver that offers peer memory but never has any: the smallest
 * possible one.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <peer_mem.h>

#ifndef PEER_MEM_U64_CORE_CONTEXT
#error "the context is a number unless a driver asks for a pointer"
#endif

static invalidate_peer_memory invalidate;
static void *handle;

static int client_acquire(unsigned long addr, size_t size, void *peer_mem_private_data,
			  char *peer_mem_name, void **client_context)
{
	return 0;
}

static int client_get_pages(unsigned long addr, size_t size, int write, int force,
			    struct sg_table *sg_head, void *client_context, u64 core_context)
{
	return -EINVAL;
}

static int client_dma_map(struct sg_table *sg_head, void *client_context,
			  struct device *dma_device, int dmasync, int *nmap)
{
	return -EINVAL;
}

static int client_dma_unmap(struct sg_table *sg_head, void *client_context,
			    struct device *dma_device)
{
	return 0;
}

static void client_put_pages(struct sg_table *sg_head, void *client_context)
{
}

static const struct peer_memory_client_ex client = {
	.client = {
		.name = "dev_client",
		.version = { '1', [IB_PEER_MEMORY_VER_MAX - 1] = 1 },
		.acquire = client_acquire,
		.get_pages = client_get_pages,
		.dma_map = client_dma_map,
		.dma_unmap = client_dma_unmap,
		.put_pages = client_put_pages,
	},
	.ex_size = sizeof(client),
	.flags = PEER_MEM_INVALIDATE_UNMAPS,
};

static int __init client_init(void)
{
	handle = ib_register_peer_memory_client(&client.client, &invalidate);
	return handle ? 0 : -EINVAL;
}

static void __exit client_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

module_init(client_init);
module_exit(client_exit);

MODULE_DESCRIPTION("A client of peer memory, built as drivers of GPUs are");
MODULE_AUTHOR("The kverbs authors");
MODULE_LICENSE("GPL");
