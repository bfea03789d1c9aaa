/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: life of clients and regions, and invalidations.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs_peer_mem

#if !defined(KVERBS_PEER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KVERBS_PEER_TRACE_H

#include <linux/tracepoint.h>
#include <kverbs/peer_region.h>

#include "peer.h"

#define peer_show_phase(phase)				\
	__print_symbolic(phase,				\
		{ PEER_MAKING, "MAKING" },		\
		{ PEER_ACTIVE, "ACTIVE" },		\
		{ PEER_REVOKING, "REVOKING" },		\
		{ PEER_UNMAPPING, "UNMAPPING" },	\
		{ PEER_GONE, "GONE" })

TRACE_EVENT(peer_client,
	TP_PROTO(const struct peer_client *client, const char *what, int ret),
	TP_ARGS(client, what, ret),
	TP_STRUCT__entry(
		__string(client, peer_client_name(client))
		__string(what, what)
		__field(int, ret)
	),
	TP_fast_assign(
		kv_assign_str(client, peer_client_name(client));
		kv_assign_str(what, what);
		__entry->ret = ret;
	),
	TP_printk("%s %s ret=%d", __get_str(client), __get_str(what), __entry->ret)
);

/* One client's answer to one request. */
TRACE_EVENT(peer_region_get,
	TP_PROTO(const struct peer_client *client, const struct peer_request *req,
		 unsigned long number, int ret, u64 ns),
	TP_ARGS(client, req, number, ret, ns),
	TP_STRUCT__entry(
		__string(client, peer_client_name(client))
		__string(user, req->user)
		__field(unsigned long, addr)
		__field(size_t, size)
		__field(unsigned long, number)
		__field(int, ret)
		__field(u64, ns)
	),
	TP_fast_assign(
		kv_assign_str(client, peer_client_name(client));
		kv_assign_str(user, req->user);
		__entry->addr = req->addr;
		__entry->size = req->size;
		__entry->number = number;
		__entry->ret = ret;
		__entry->ns = ns;
	),
	TP_printk("%s region=%lu addr=%#lx bytes=%zu device=%s ret=%d ns=%llu",
		  __get_str(client), __entry->number, __entry->addr, __entry->size,
		  __get_str(user), __entry->ret, __entry->ns)
);

TRACE_EVENT(peer_invalidate,
	TP_PROTO(const struct peer_client *client, u64 number, enum peer_phase phase,
		 int ret, u64 ns),
	TP_ARGS(client, number, phase, ret, ns),
	TP_STRUCT__entry(
		__string(client, peer_client_name(client))
		__field(u64, number)
		__field(int, phase)
		__field(int, ret)
		__field(u64, ns)
	),
	TP_fast_assign(
		kv_assign_str(client, peer_client_name(client));
		__entry->number = number;
		__entry->phase = phase;
		__entry->ret = ret;
		__entry->ns = ns;
	),
	TP_printk("%s region=%llu found=%s ret=%d ns=%llu", __get_str(client),
		  __entry->number, peer_show_phase(__entry->phase), __entry->ret,
		  __entry->ns)
);

TRACE_EVENT(peer_region_put,
	TP_PROTO(const struct peer_region *region),
	TP_ARGS(region),
	TP_STRUCT__entry(
		__string(client, peer_client_name(region->client))
		__field(unsigned long, number)
		__field(int, phase)
	),
	TP_fast_assign(
		kv_assign_str(client, peer_client_name(region->client));
		__entry->number = region->number;
		__entry->phase = READ_ONCE(region->phase);
	),
	TP_printk("%s region=%lu found=%s", __get_str(client), __entry->number,
		  peer_show_phase(__entry->phase))
);

#endif /* KVERBS_PEER_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../peer_mem
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
