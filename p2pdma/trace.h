/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: life of providers, their memory, and mappings of it.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs_p2pdma

#if !defined(KVERBS_P2PDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KVERBS_P2PDMA_TRACE_H

#include <linux/tracepoint.h>

#include "p2pdma.h"

TRACE_EVENT(p2p_provider,
	TP_PROTO(struct pci_dev *pdev, const char *what, int ret),
	TP_ARGS(pdev, what, ret),
	TP_STRUCT__entry(
		__string(provider, pci_name(pdev))
		__string(what, what)
		__field(int, ret)
	),
	TP_fast_assign(
		kv_assign_str(provider, pci_name(pdev));
		kv_assign_str(what, what);
		__entry->ret = ret;
	),
	TP_printk("%s %s ret=%d", __get_str(provider), __get_str(what), __entry->ret)
);

DECLARE_EVENT_CLASS(p2p_memory,
	TP_PROTO(struct pci_dev *pdev, const void *addr, size_t size),
	TP_ARGS(pdev, addr, size),
	TP_STRUCT__entry(
		__string(provider, pci_name(pdev))
		__field(const void *, addr)
		__field(size_t, size)
	),
	TP_fast_assign(
		kv_assign_str(provider, pci_name(pdev));
		__entry->addr = addr;
		__entry->size = size;
	),
	TP_printk("%s addr=%p bytes=%zu", __get_str(provider), __entry->addr,
		  __entry->size)
);

DEFINE_EVENT(p2p_memory, p2p_alloc,
	TP_PROTO(struct pci_dev *pdev, const void *addr, size_t size),
	TP_ARGS(pdev, addr, size)
);

DEFINE_EVENT(p2p_memory, p2p_free,
	TP_PROTO(struct pci_dev *pdev, const void *addr, size_t size),
	TP_ARGS(pdev, addr, size)
);

#ifndef TRACE_HEADER_MULTI_READ
/* The bytes of a list, as it was before it was mapped. */
static inline u64 p2p_bytes(struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 bytes = 0;

	for_each_sgtable_sg(sgt, sg, i)
		bytes += sg->length;
	return bytes;
}
#endif

TRACE_EVENT(p2p_map,
	TP_PROTO(struct pci_dev *pdev, struct device *dev, enum kverbs_p2pdma_map map,
		 struct sg_table *sgt, int ret),
	TP_ARGS(pdev, dev, map, sgt, ret),
	TP_STRUCT__entry(
		__string(provider, pci_name(pdev))
		__string(client, dev_name(dev))
		__string(map, kverbs_p2pdma_map_msg(map))
		__field(unsigned int, nents)
		__field(u64, bytes)
		__field(int, ret)
	),
	TP_fast_assign(
		kv_assign_str(provider, pci_name(pdev));
		kv_assign_str(client, dev_name(dev));
		kv_assign_str(map, kverbs_p2pdma_map_msg(map));
		__entry->nents = sgt->orig_nents;
		__entry->bytes = p2p_bytes(sgt);
		__entry->ret = ret;
	),
	TP_printk("provider=%s client=%s by=%s nents=%u bytes=%llu ret=%d",
		  __get_str(provider), __get_str(client), __get_str(map), __entry->nents,
		  __entry->bytes, __entry->ret)
);

#endif /* KVERBS_P2PDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../p2pdma
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
