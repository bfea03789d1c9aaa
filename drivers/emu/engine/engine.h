/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the engine offers to those above it.
 */
#ifndef KVERBS_EMU_ENGINE_H
#define KVERBS_EMU_ENGINE_H

#include <rdma/ib_verbs.h>

#include "../net/transport.h"

/* Reaches peers in this machine's memory. */
extern const struct emu_transport emu_in_memory;

int emu_engine_init(void);
void emu_engine_exit(void);

/* direct.c */
int emu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);

/* mcast.c */
int emu_mcast_init(void);
void emu_mcast_exit(void);
int emu_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int emu_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif
