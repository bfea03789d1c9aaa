/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs

#if !defined(KVERBS_CA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KVERBS_CA_TRACE_H

#include <linux/tracepoint.h>
#include <kverbs/ca.h>

#include "../contract/device_priv.h"

TRACE_EVENT(ib_ca_request,
	TP_PROTO(const struct ib_device *dev, u32 op, u64 handle, u64 object,
		 ssize_t ret),
	TP_ARGS(dev, op, handle, object, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, op)
		__field(u64, handle)
		__field(u64, object)
		__field(ssize_t, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		__entry->op = op;
		__entry->handle = handle;
		__entry->object = object;
		__entry->ret = ret;
	),
	TP_printk("%s %s handle=%#llx object=%#llx ret=%zd", __entry->device,
		  __print_symbolic(__entry->op,
				   { KVERBS_CA_OPEN, "OPEN" },
				   { KVERBS_CA_CLOSE, "CLOSE" },
				   { KVERBS_CA_QUERY_CA, "QUERY_CA" },
				   { KVERBS_CA_QUERY_PORT, "QUERY_PORT" },
				   { KVERBS_CA_ALLOC_PD, "ALLOC_PD" },
				   { KVERBS_CA_DEALLOC_PD, "DEALLOC_PD" },
				   { KVERBS_CA_REG_MR, "REG_MR" },
				   { KVERBS_CA_DEREG_MR, "DEREG_MR" },
				   { KVERBS_CA_QUERY_MR, "QUERY_MR" },
				   { KVERBS_CA_LIST, "LIST" },
				   { KVERBS_CA_SET_PEER, "SET_PEER" }),
		  __entry->handle, __entry->object, __entry->ret)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../core/ca
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
