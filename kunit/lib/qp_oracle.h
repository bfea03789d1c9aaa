/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which QP state transitions are legal, by a table that is independent of the core's; see
 * core/qp_state.c.
 */
#ifndef KVT_QP_ORACLE_H
#define KVT_QP_ORACLE_H

#include <rdma/ib_verbs.h>

#define ORACLE_STATES	(IB_QPS_ERR + 1)

bool oracle_move(int from, int to, enum ib_qp_type type, int *req, int *opt);
const char *oracle_state(int state);

#endif
