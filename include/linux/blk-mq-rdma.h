/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes the place of the kernel's header of this name. Kernels that have it export
 * a function that reads the kernel's own struct ib_device. Ours has another layout,
 * so this maps the queues: by the driver's vector affinity if it gives one, else as
 * blk_mq_map_queues() does.
 */
#ifndef _LINUX_BLK_MQ_RDMA_H
#define _LINUX_BLK_MQ_RDMA_H

#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <rdma/ib_verbs.h>

/**
 * blk_mq_rdma_map_queues() - map CPUs to block queues by completion vectors
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
