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

TRACE_EVENT(p2p_map,
	TP_PROTO(struct pci_dev *pdev, struct device *dev, enum kverbs_p2pdma_map map,
		 unsigned int nents, int ret),
	TP_ARGS(pdev, dev, map, nents, ret),
	TP_STRUCT__entry(
		__string(provider, pci_name(pdev))
		__string(client, dev_name(dev))
		__string(map, kverbs_p2pdma_map_msg(map))
		__field(unsigned int, nents)
		__field(int, ret)
	),
	TP_fast_assign(
		kv_assign_str(provider, pci_name(pdev));
		kv_assign_str(client, dev_name(dev));
		kv_assign_str(map, kverbs_p2pdma_map_msg(map));
		__entry->nents = nents;
		__entry->ret = ret;
	),
	TP_printk("provider=%s client=%s by=%s nents=%u ret=%d", __get_str(provider),
		  __get_str(client), __get_str(map), __entry->nents, __entry->ret)
);

#endif /* KVERBS_P2PDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../p2pdma
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
