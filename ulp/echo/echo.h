/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KVERBS_ECHO_H
#define KVERBS_ECHO_H

#include <rdma/rdma_cm.h>

#define ECHO_PORT	7	/* by its RFC */
#define ECHO_BYTES	PAGE_SIZE

/**
 * struct echo - one end of a connection
 * @id: its CM ID, which has the queue pair
 * @pd: protection domain
 * @cq: completion queue of both directions
 * @in: what is received, ECHO_BYTES
 * @out: what is sent, likewise
 * @in_addr: @in for the device
 * @out_addr: @out for the device
 * @recv: calls the owner when a message has come
 * @send: likewise when one has gone
 */
struct echo {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	void *in, *out;
	u64 in_addr, out_addr;
	struct ib_cqe recv;
	struct ib_cqe send;
};

int echo_open(struct echo *echo, struct rdma_cm_id *id);
void echo_close(struct echo *echo);
void *echo_in(struct echo *echo);
void *echo_out(struct echo *echo);
int echo_post_recv(struct echo *echo);
int echo_post_send(struct echo *echo, u32 bytes);

#endif
