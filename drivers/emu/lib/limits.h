/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits on the number of objects of a device.
 */
#ifndef KVERBS_EMU_LIMITS_H
#define KVERBS_EMU_LIMITS_H

#include "emu.h"

#define EMU_MAX_PD		(1 << 15)
#define EMU_MAX_CQ		(1 << 14)
#define EMU_MAX_QP		(1 << 14)
#define EMU_MAX_SRQ		(1 << 14)
#define EMU_MAX_AH		(1 << 15)
#define EMU_MAX_MR		(1 << 17)
#define EMU_MAX_MW		(1 << 16)

int emu_object_get(struct emu_device *edev, enum emu_object object);
void emu_object_put(struct emu_device *edev, enum emu_object object);

#endif
