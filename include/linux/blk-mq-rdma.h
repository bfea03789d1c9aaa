/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands before the kernel's header of this name. Kernels that have it export
 * a function that reads the kernel's own struct ib_device; ours is laid out
 * differently, so the queues are mapped here, with the driver's vector
 * affinity where it gives one.
 */
#ifndef _LINUX_BLK_MQ_RDMA_H
#define _LINUX_BLK_MQ_RDMA_H

#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <rdma/ib_verbs.h>

/**
 * blk_mq_rdma_map_queues() - map block queues to completion vectors
 * @map: the map to fill
 * @dev: device that serves the queues
 * @first_vec: completion vector of the first queue
 *
 * Context: As blk_mq_map_queues().
 */
static inline void blk_mq_rdma_map_queues(struct blk_mq_queue_map *map,
					  struct ib_device *dev, int first_vec)
{
	const struct cpumask *mask;
	unsigned int queue, cpu;

	for (queue = 0; queue < map->nr_queues; queue++) {
		mask = ib_get_vector_affinity(dev, first_vec + queue);
		if (!mask) {
			blk_mq_map_queues(map);
			return;
		}
		for_each_cpu(cpu, mask)
			map->mq_map[cpu] = map->queue_offset + queue;
	}
}

#endif /* _LINUX_BLK_MQ_RDMA_H */
