/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_p2p_offload: declarations that its files share.
 *
 * main.c     module, sessions, their commands
 * session.c  the participants, the provider, the memory; setup and teardown
 * link.c     the queue pairs, and the operations on them
 * run.c      rounds of moving a pattern, and checking it
 */
#ifndef KVERBS_P2P_OFFLOAD_H
#define KVERBS_P2P_OFFLOAD_H

#include <kverbs/edu.h>
#include <kverbs/p2pdma.h>
#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define OFFLOAD_MAX_BYTES	(256 * 4096)

/**
 * struct offload_params - parameters of a session's setup
 * @hca: RDMA device that reads and writes peer-to-peer memory
 * @peer: RDMA device at the other end of the connection; may be the same
 * @engine: PCI address of the engine that copies
 * @provider: PCI address of the provider, or empty for the nearest one
 * @bytes: size of each piece of memory
 * @keep: do not release the memory when the provider goes
 */
struct offload_params {
	char hca[IB_DEVICE_NAME_MAX];
	char peer[IB_DEVICE_NAME_MAX];
	char engine[16];
	char provider[16];
	u32 bytes;
	bool keep;
};

/**
 * struct offload_side - an end of the connection
 * @dev: device, with a reference
 * @pd: protection domain
 * @cq: completion queue of @qp
 * @qp: queue pair, connected to that of the other side
 * @port: attributes of the port
 */
struct offload_side {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_port_attr port;
};

/* The side with the peer-to-peer memory, and the one that reads and writes it. */
enum { OFFLOAD_TARGET, OFFLOAD_PEER, OFFLOAD_SIDES };

/**
 * struct offload_piece - peer-to-peer memory
 * @sgt: the memory; without entries if there is none
 * @for_engine: a second list of the same memory, as a list can be mapped for only
 *   one device at a time
 * @mapped: @sgt is mapped for the target's device
 * @mr: registration for the peer
 */
struct offload_piece {
	struct sg_table sgt;
	struct sg_table for_engine;
	bool mapped;
	struct ib_mr *mr;
};

/* Where the peer writes, and where it reads what the engine has copied. */
enum { OFFLOAD_IN, OFFLOAD_OUT, OFFLOAD_PIECES };

/**
 * struct offload_session - an open file
 * @list: in the list of sessions
 * @lock: guards the following
 * @ready: the session is set up
 * @stopping: number of threads that want @lock to take away what a run uses
 * @params: parameters of its setup
 * @side: the two ends of the connection
 * @engine_dev: the engine's device, with a reference
 * @engine: the engine
 * @clients: devices of the target and of the engine
 * @provider: the provider of the memory, with a reference
 * @user: registration for the notification that @provider goes
 * @user_added: @user has been registered; once true, it stays true
 * @piece: the memory
 * @buf: the peer's own memory: the data it sends, then the data it receives
 * @buf_dma: DMA address of @buf for the peer's device
 * @result: result of the latest command, for people and programs
 */
struct offload_session {
	struct list_head list;
	struct mutex lock;
	bool ready;
	atomic_t stopping;
	struct offload_params params;
	struct offload_side side[OFFLOAD_SIDES];
	struct pci_dev *engine_dev;
	struct edu_engine *engine;
	struct list_head clients;
	struct pci_dev *provider;
	struct kverbs_p2pdma_user user;
	bool user_added;
	struct offload_piece piece[OFFLOAD_PIECES];
	u8 *buf;
	u64 buf_dma;
	char result[256];
};

/* session.c */
int offload_setup(struct offload_session *session, const char **step);
void offload_teardown(struct offload_session *session);

/* link.c */
int offload_connect(struct offload_session *session);
void offload_disconnect(struct offload_session *session);
int offload_register(struct offload_session *session, struct offload_piece *piece);
int offload_rdma(struct offload_session *session, enum ib_wr_opcode opcode, u32 offset,
		 const struct offload_piece *piece);

/* run.c */
int offload_run(struct offload_session *session, u32 rounds, u64 seed, const char **step);

static inline u8 *offload_sent(struct offload_session *session)
{
	return session->buf;
}

static inline u8 *offload_got(struct offload_session *session)
{
	return session->buf + session->params.bytes;
}

#endif
