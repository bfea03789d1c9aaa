/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_scale: declarations that its files share.
 *
 * main.c  module, parameters, clients, debugfs
 * run.c   many queue pairs on one device
 */
#ifndef KVERBS_SCALE_H
#define KVERBS_SCALE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/**
 * struct scale_params - parameters of a run
 * @port: port of the device, from 1
 * @qps: queue pairs, an even number
 * @depth: length of each of their queues
 * @messages: messages of a measurement
 * @size: bytes of a message
 */
struct scale_params {
	unsigned int port;
	unsigned int qps;
	unsigned int depth;
	unsigned int messages;
	unsigned int size;
};

/**
 * struct scale_result - result of a run
 * @create_ns: average time to create a queue pair, in nanoseconds
 * @connect_ns: average time to bring one from RESET to RTS
 * @destroy_ns: average time to destroy one
 * @bytes: memory that one takes, including all that comes with it
 * @only_ns: time of a message when only two queue pairs exist
 * @random_ns: time of a message between two of @qps, chosen at random
 */
struct scale_result {
	u64 create_ns;
	u64 connect_ns;
	u64 destroy_ns;
	u64 bytes;
	u64 only_ns;
	u64 random_ns;
};

/* run.c */
int scale_run(struct ib_device *dev, const struct scale_params *params,
	      struct scale_result *res);

#endif
