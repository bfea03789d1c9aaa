/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What callers of KVERBS_CA_OPEN may tell an emulated HCA (kverbs_emu).
 */
#ifndef _UAPI_KVERBS_EMU_H
#define _UAPI_KVERBS_EMU_H

#include <linux/types.h>

#define KVERBS_EMU_VERSION	1
#define KVERBS_EMU_TAG_SIZE	32

/**
 * struct kverbs_emu_open - in: of KVERBS_CA_OPEN
 * @version: KVERBS_EMU_VERSION
 * @size: bytes of this structure as the caller knows it, the same as in_len
 * @tag: text to recognise the doorbell by, terminated, perhaps empty
 *
 * EINVAL: another version, a size that is not in_len or less than this, or no end
 * of the text. E2BIG: there is more, which is not 0.
 */
struct kverbs_emu_open {
	__u32 version;
	__u32 size;
	char tag[KVERBS_EMU_TAG_SIZE];
};

#endif /* _UAPI_KVERBS_EMU_H */
