/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_scale: what its files share.
 *
 * main.c  module, parameters, clients, debugfs
 * run.c   many queue pairs on one device
 */
#ifndef KVERBS_SCALE_H
#define KVERBS_SCALE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/**
 * struct scale_params - what a run is to do
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
 * struct scale_result - what came of it
 * @create_ns: to create a queue pair, nanoseconds on average
 * @connect_ns: to bring one from RESET to RTS
 * @destroy_ns: to destroy one
 * @bytes: of memory that one takes, with all that comes with it
 * @only_ns: a message between the only two queue pairs
 * @random_ns: a message between two of @qps, chosen at random
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
