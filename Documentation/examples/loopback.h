/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KVERBS_EXAMPLES_LOOPBACK_H
#define KVERBS_EXAMPLES_LOOPBACK_H

#include <linux/types.h>

struct ib_qp;

int loopback_connect(struct ib_qp *qp, u32 port_num);

#endif
