/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Data that callers of KVERBS_CA_OPEN may pass to a software HCA (kverbs_emu).
 */
#ifndef _UAPI_KVERBS_EMU_H
#define _UAPI_KVERBS_EMU_H

#include <linux/types.h>

#define KVERBS_EMU_VERSION	1
#define KVERBS_EMU_TAG_SIZE	32

/**
 * struct kverbs_emu_open - input of KVERBS_CA_OPEN
 * @version: KVERBS_EMU_VERSION
 * @size: bytes of this structure as the caller knows it, the same as in_len
 * @tag: text that debugfs shows with the doorbell, terminated, perhaps empty
 *
 * EINVAL: another version, a size that differs from in_len or is smaller than this
 * structure, or a tag that is not terminated. E2BIG: the structure is longer, and
 * the rest of it is not 0.
 */
struct kverbs_emu_open {
	__u32 version;
	__u32 size;
	char tag[KVERBS_EMU_TAG_SIZE];
};

#endif /* _UAPI_KVERBS_EMU_H */
