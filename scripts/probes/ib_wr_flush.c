// SPDX-License-Identifier: GPL-2.0-only
/* Mainline's verbs know FLUSH and ATOMIC WRITE (6.2). */
#include <rdma/ib_verbs.h>

enum ib_wr_opcode probe_ops[] = { IB_WR_FLUSH, IB_WR_ATOMIC_WRITE };
