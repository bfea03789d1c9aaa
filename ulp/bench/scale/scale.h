/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_scale: declarations that its files share.
 *
 * main.c  module, parameters, clients, debugfs
 * run.c   many queue pairs on one device
 * send.c  messages, on one CPU or on several
 */
#ifndef KVERBS_SCALE_H
#define KVERBS_SCALE_H

#include <linux/overflow.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/**
 * struct scale_params - parameters of a run
 * @port: port of the device, from 1
 * @qps: queue pairs, an even number
 * @cqs: CQs that they share, at most one for each two queue pairs
 * @cpus: CPUs that send at the same time; divides @cqs
 * @depth: length of each of their queues
 * @messages: messages of a measurement
 * @size: bytes of a message
 */
struct scale_params {
	unsigned int port;
	unsigned int qps;
	unsigned int cqs;
	unsigned int cpus;
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
 * @only_ns: time of a message when only @cqs pairs of queue pairs exist
 * @random_ns: time of a message between two of @qps, chosen at random; both for all CPUs
 *	together
 */
struct scale_result {
	u64 create_ns;
	u64 connect_ns;
	u64 destroy_ns;
	u64 bytes;
	u64 only_ns;
	u64 random_ns;
};

/**
 * struct scale_run - a run under way
 * @p: its parameters
 * @dev: the device
 * @port: attributes of its port
 * @pd: protection domain of all queue pairs
 * @cqs: array of @p.cqs
 * @qps: array of @p.qps
 * @nr: number of queue pairs that exist
 * @mem: scale_mem_size() bytes
 * @dma: the address of @mem for the device
 */
struct scale_run {
	struct scale_params p;
	struct ib_device *dev;
	struct ib_port_attr port;
	struct ib_pd *pd;
	struct ib_cq **cqs;
	struct ib_qp **qps;
	u32 nr;
	void *mem;
	u64 dma;
};

/* Two messages for each CPU: the source, and the destination. SIZE_MAX if that is too much. */
static inline size_t scale_mem_size(const struct scale_params *p)
{
	return array3_size(2, p->cpus, p->size);
}

/* The CQ of a pair of queue pairs. */
static inline struct ib_cq *scale_cq(const struct scale_run *run, u32 pair)
{
	return run->cqs[pair % run->p.cqs];
}

/* send.c */
int scale_send(struct scale_run *run, u64 *ns);

/* run.c */
int scale_run(struct ib_device *dev, const struct scale_params *params,
	      struct scale_result *res);

#endif
