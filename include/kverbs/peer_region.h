/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peer memory as an RDMA midlayer sees it: the interface of kverbs_peer_mem for kverbs.
 * Drivers of GPUs include <rdma/peer_mem.h> instead; drivers of channel adapters need
 * neither header.
 */
#ifndef KVERBS_PEER_REGION_H
#define KVERBS_PEER_REGION_H

#include <linux/scatterlist.h>
#include <linux/types.h>

struct device;
struct peer_region;

/**
 * struct peer_request - memory that a device is to access
 * @addr: address of the first byte in the calling process
 * @size: bytes, not 0; the range must not wrap around
 * @writable: the device may write
 * @revocable: the caller will call peer_region_activate(). If not, only clients that
 *	never invalidate are asked.
 * @dma_device: the device
 * @user: name of the RDMA device, for messages
 * @name: name of the only client to ask; NULL: ask all, in the order of their
 *	registration
 * @data: IB_PEER_MEMORY_DATA_MAX bytes for that client's acquire(), or NULL
 */
struct peer_request {
	unsigned long addr;
	size_t size;
	bool writable;
	bool revocable;
	struct device *dma_device;
	const char *user;
	const char *name;
	const void *data;
};

struct peer_region *peer_region_get(const struct peer_request *req);
void peer_region_activate(struct peer_region *region, void (*revoke)(void *arg), void *arg);
void peer_region_stop(struct peer_region *region);
void peer_region_put(struct peer_region *region);

const struct sg_table *peer_region_table(const struct peer_region *region);
const char *peer_region_client(const struct peer_region *region);

int peer_table_trim(struct sg_table *to, struct scatterlist *from, unsigned int nents,
		    u64 skip, u64 length);

#endif /* KVERBS_PEER_REGION_H */
