/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KVERBS_EMU_FLUSH_H
#define KVERBS_EMU_FLUSH_H

#include "doorbell.h"

s64 emu_qp_flush(struct emu_qp *qp, s64 budget);
void emu_qp_flush_sends(struct emu_qp *qp);

#endif
