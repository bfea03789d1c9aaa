/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for regions: what the files that get it share.
 *
 *	umem.c		a process's
 *	peer.c		another device's
 *	dmabuf.c	a dma-buf's
 *	p2p.c		a PCI device's, for peer-to-peer DMA
 *	revoke.c	taking any of them away
 *
 * verbs/reg_mem.c makes regions of any of them.
 */
#ifndef KVERBS_UMEM_H
#define KVERBS_UMEM_H

#include <linux/mm.h>
#include <rdma/ib_umem.h>

#include "../contract/export.h"

struct ib_verb_call;

/* umem.c */
int umem_check_range(const struct ib_verb_call *call, const char *name, u64 start, u64 length);
int umem_check_access(int access);
void umem_init(struct ib_umem *umem, struct ib_device *device,
	       unsigned long addr, size_t size, int access);
int umem_pin(struct ib_umem *umem, unsigned int flags);
int umem_check_reach(const struct ib_umem *umem, struct sg_table *sgt);
void umem_unpin_pages(struct ib_umem *umem, bool dirty);
void umem_unpin(struct ib_umem *umem, bool dirty);

/* peer.c */
struct ib_umem *umem_peer_get(struct ib_device *device,
			      const struct ib_mem *mem, int access,
			      bool revocable);
void umem_peer_release(struct ib_umem *umem);

/* dmabuf.c */
struct ib_umem *umem_dmabuf_find(struct ib_device *device,
				 const struct ib_mem *mem, int access);
void umem_dmabuf_explain(const struct ib_verb_call *call, const struct ib_mem *mem);
int umem_dmabuf_ready(struct ib_umem *umem);
bool umem_moves(struct ib_umem *umem);

/* p2p.c */
struct ib_umem *umem_p2p_get(struct ib_device *device, const struct ib_mem *mem,
			     int access);
void umem_p2p_stop(struct ib_umem *umem);
void umem_p2p_release(struct ib_umem *umem);
const char *umem_p2p_provider(struct ib_umem *umem);

/* revoke.c */
void umem_lock(struct ib_umem *umem);
void umem_unlock(struct ib_umem *umem);
void umem_revoke(struct ib_umem *umem);
bool umem_lock_and_revoke(struct ib_umem *umem);
bool umem_is_revocable(const struct ib_device *device);

/* ../verbs/reg_mem.c */
int umem_end_mr(struct ib_umem *umem, struct ib_udata *udata);

/* Bytes of the pages that the memory is in. */
static inline size_t umem_span(const struct ib_umem *umem)
{
	return PAGE_ALIGN(umem->address + umem->length) -
	       (umem->address & PAGE_MASK);
}

#endif
