// SPDX-License-Identifier: GPL-2.0-only
/* Mainline's verbs know the speed XDR (6.7). */
#include <rdma/ib_verbs.h>

enum ib_port_speed probe_speed = IB_SPEED_XDR;
