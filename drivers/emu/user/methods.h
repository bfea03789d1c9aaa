/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Methods of the device that only processes call; see main.c.
 */
#ifndef KVERBS_EMU_USER_METHODS_H
#define KVERBS_EMU_USER_METHODS_H

#include <rdma/ib_verbs.h>

/* mmap.c */
int emu_user_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void emu_user_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
