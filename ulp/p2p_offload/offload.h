/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_p2p_offload: what its files share.
 *
 * main.c     module, sessions, their commands
 * session.c  who takes part, the provider, the memory; setting up and letting go
 * link.c     the queue pairs, and what is done with them
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
 * struct offload_params - what a session is to be made of
 * @hca: RDMA device that reads and writes peer-to-peer memory
 * @peer: RDMA device that asks it to; may be the same
 * @engine: PCI address of the engine that copies
 * @provider: PCI address of the provider, or empty: the nearest is taken
 * @bytes: of each piece of memory
 * @keep: do not let go of the memory when the provider goes
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
 * @cq: of @qp
 * @qp: connected to that of the other side
 * @port: what the port says of itself
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
 * @sgt: what there is of it; without entries if there is none
 * @for_engine: the same, once more: a list can be mapped for one device at a time
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
 * @ready: it is set up
 * @stopping: how many want @lock, to take away what a run uses
 * @params: what it is made of
 * @side: the two ends of the connection
 * @engine_dev: the engine's device, with a reference
 * @engine: the engine
 * @clients: devices of the target and the engine
 * @provider: whose memory it is, with a reference
 * @user: to be told that @provider goes
 * @user_added: @user is in use; never again false
 * @piece: the memory
 * @buf: the peer's own memory: what it sends, then what it got
 * @buf_dma: that, for the peer's device
 * @result: of the latest command, for people and programs
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
