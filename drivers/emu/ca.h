/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The opens of a channel adapter, which kverbs' own core has. See ca.c.
 */
#ifndef KVERBS_EMU_CA_H
#define KVERBS_EMU_CA_H

#include <kverbs/ca.h>
#include <uapi/kverbs/emu.h>

#include "lib/emu.h"

struct seq_file;

/**
 * struct emu_ca - one open of the device
 * @ibca: what the midlayer sees
 * @doorbell: number of its doorbell
 * @tag: the name that the opener gave it; may be empty
 */
struct emu_ca {
	struct ib_ca ibca;
	u32 doorbell;
	char tag[KVERBS_EMU_TAG_SIZE];
};

int emu_open_ca(struct ib_ca *ibca, const void *vendor, size_t len);
void emu_close_ca(struct ib_ca *ibca);
void emu_ca_show(struct emu_device *edev, struct seq_file *s);

#endif
