/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: life of devices, clients and objects; events; and, behind one
 * static key, posting and polling; what the scheduler of completion queues
 * does; requests to channel adapters; which memory is registered and revoked.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs

#if !defined(KVERBS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KVERBS_TRACE_H

#include <linux/tracepoint.h>
#include <kverbs/ca.h>
#include <kverbs/contract.h>
#include <rdma/ib_verbs.h>

#include "restrack.h"

struct ib_contract_report;

int ib_verbs_watch(void);
void ib_verbs_unwatch(void);

#define kv_show_wr_opcode(opcode)				\
	__print_symbolic(opcode,				\
		{ IB_WR_SEND, "SEND" },				\
		{ IB_WR_SEND_WITH_IMM, "SEND_WITH_IMM" },	\
		{ IB_WR_SEND_WITH_INV, "SEND_WITH_INV" },	\
		{ IB_WR_RDMA_WRITE, "RDMA_WRITE" },		\
		{ IB_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM" }, \
		{ IB_WR_RDMA_READ, "RDMA_READ" },		\
		{ IB_WR_RDMA_READ_WITH_INV, "RDMA_READ_WITH_INV" }, \
		{ IB_WR_ATOMIC_CMP_AND_SWP, "CMP_AND_SWP" },	\
		{ IB_WR_ATOMIC_FETCH_AND_ADD, "FETCH_AND_ADD" }, \
		{ IB_WR_LOCAL_INV, "LOCAL_INV" },		\
		{ IB_WR_BIND_MW, "BIND_MW" },			\
		{ IB_WR_REG_MR, "REG_MR" })

#define kv_show_wc_opcode(opcode)				\
	__print_symbolic(opcode,				\
		{ -1, "-" },					\
		{ IB_WC_SEND, "SEND" },				\
		{ IB_WC_RDMA_WRITE, "RDMA_WRITE" },		\
		{ IB_WC_RDMA_READ, "RDMA_READ" },		\
		{ IB_WC_COMP_SWAP, "COMP_SWAP" },		\
		{ IB_WC_FETCH_ADD, "FETCH_ADD" },		\
		{ IB_WC_LOCAL_INV, "LOCAL_INV" },		\
		{ IB_WC_BIND_MW, "BIND_MW" },			\
		{ IB_WC_REG_MR, "REG_MR" },			\
		{ IB_WC_RECV, "RECV" },				\
		{ IB_WC_RECV_RDMA_WITH_IMM, "RECV_RDMA_WITH_IMM" })

DECLARE_EVENT_CLASS(kv_device,
	TP_PROTO(const struct ib_device *dev),
	TP_ARGS(dev),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
	),
	TP_printk("%s", __entry->device)
);

DEFINE_EVENT(kv_device, ib_device_add,
	TP_PROTO(const struct ib_device *dev),
	TP_ARGS(dev)
);

DEFINE_EVENT(kv_device, ib_device_remove,
	TP_PROTO(const struct ib_device *dev),
	TP_ARGS(dev)
);

TRACE_EVENT(ib_client_add,
	TP_PROTO(const struct ib_device *dev, const struct ib_client *client,
		 int ret),
	TP_ARGS(dev, client, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(client, client->name)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		kv_assign_str(client, client->name);
		__entry->ret = ret;
	),
	TP_printk("%s client=%s ret=%d", __entry->device,
		  __get_str(client), __entry->ret)
);

TRACE_EVENT(ib_client_remove,
	TP_PROTO(const struct ib_device *dev, const struct ib_client *client),
	TP_ARGS(dev, client),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(client, client->name)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		kv_assign_str(client, client->name);
	),
	TP_printk("%s client=%s", __entry->device, __get_str(client))
);

TRACE_EVENT(ib_event,
	TP_PROTO(const struct ib_event *event),
	TP_ARGS(event),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(what, ib_event_msg(event->event))
		__field(u32, port)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, event->device);
		kv_assign_str(what, ib_event_msg(event->event));
		__entry->port = event->element.port_num;
	),
	TP_printk("%s port=%u %s", __entry->device, __entry->port,
		  __get_str(what))
);

DECLARE_EVENT_CLASS(kv_object,
	TP_PROTO(const struct ib_device *dev,
		 const struct rdma_restrack_entry *res),
	TP_ARGS(dev, res),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(kind, rdma_restrack_kind(res->type))
		__string(maker, res->kern_name ? : "?")
		__field(u32, id)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		kv_assign_str(kind, rdma_restrack_kind(res->type));
		kv_assign_str(maker, res->kern_name ? : "?");
		__entry->id = res->id;
	),
	TP_printk("%s %s=%u maker=%s", __entry->device, __get_str(kind),
		  __entry->id, __get_str(maker))
);

DEFINE_EVENT(kv_object, ib_object_create,
	TP_PROTO(const struct ib_device *dev,
		 const struct rdma_restrack_entry *res),
	TP_ARGS(dev, res)
);

DEFINE_EVENT(kv_object, ib_object_destroy,
	TP_PROTO(const struct ib_device *dev,
		 const struct rdma_restrack_entry *res),
	TP_ARGS(dev, res)
);

TRACE_EVENT_FN(ib_post_send,
	TP_PROTO(const struct ib_qp *qp, const struct ib_send_wr *wr,
		 unsigned int nr, int ret),
	TP_ARGS(qp, wr, nr, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u64, wr_id)
		__field(int, opcode)
		__field(int, flags)
		__field(int, num_sge)
		__field(unsigned int, nr)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, qp->device);
		__entry->qpn = qp->qp_num;
		__entry->wr_id = wr ? wr->wr_id : 0;
		__entry->opcode = wr ? wr->opcode : -1;
		__entry->flags = wr ? wr->send_flags : 0;
		__entry->num_sge = wr ? wr->num_sge : 0;
		__entry->nr = nr;
		__entry->ret = ret;
	),
	TP_printk("%s qp=%u wrs=%u wr_id=%#llx %s flags=%#x sges=%d ret=%d",
		  __entry->device, __entry->qpn, __entry->nr, __entry->wr_id,
		  kv_show_wr_opcode(__entry->opcode), __entry->flags,
		  __entry->num_sge, __entry->ret),
	ib_verbs_watch, ib_verbs_unwatch
);

TRACE_EVENT_FN(ib_post_recv,
	TP_PROTO(const struct ib_device *dev, const char *queue, u32 num,
		 const struct ib_recv_wr *wr, unsigned int nr, int ret),
	TP_ARGS(dev, queue, num, wr, nr, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(queue, queue)
		__field(u32, num)
		__field(u64, wr_id)
		__field(int, num_sge)
		__field(unsigned int, nr)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		kv_assign_str(queue, queue);
		__entry->num = num;
		__entry->wr_id = wr ? wr->wr_id : 0;
		__entry->num_sge = wr ? wr->num_sge : 0;
		__entry->nr = nr;
		__entry->ret = ret;
	),
	TP_printk("%s %s=%u wrs=%u wr_id=%#llx sges=%d ret=%d",
		  __entry->device, __get_str(queue), __entry->num,
		  __entry->nr, __entry->wr_id, __entry->num_sge, __entry->ret),
	ib_verbs_watch, ib_verbs_unwatch
);

DECLARE_EVENT_CLASS(kv_poll,
	TP_PROTO(const struct ib_cq *cq, int asked, int ret),
	TP_ARGS(cq, asked, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
		__field(int, asked)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
		__entry->asked = asked;
		__entry->ret = ret;
	),
	TP_printk("%s cq=%u asked=%d ret=%d", __entry->device, __entry->id,
		  __entry->asked, __entry->ret)
);

DEFINE_EVENT_FN(kv_poll, ib_poll_cq,
	TP_PROTO(const struct ib_cq *cq, int asked, int ret),
	TP_ARGS(cq, asked, ret),
	ib_verbs_watch, ib_verbs_unwatch
);

TRACE_EVENT_FN(ib_completion,
	TP_PROTO(const struct ib_cq *cq, const struct ib_wc *wc),
	TP_ARGS(cq, wc),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
		__field(u32, qpn)
		__field(u64, wr_id)
		__field(int, opcode)
		__field(u32, byte_len)
		__string(status, ib_wc_status_msg(wc->status))
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
		/* Readable: the caller polled it under RCU. */
		__entry->qpn = wc->qp ? wc->qp->qp_num : 0;
		__entry->wr_id = wc->wr_id;
		__entry->opcode = wc->status ? -1 : (int)wc->opcode;
		__entry->byte_len = wc->status ? 0 : wc->byte_len;
		kv_assign_str(status, ib_wc_status_msg(wc->status));
	),
	TP_printk("%s cq=%u qp=%u wr_id=%#llx %s len=%u %s",
		  __entry->device, __entry->id, __entry->qpn, __entry->wr_id,
		  kv_show_wc_opcode(__entry->opcode), __entry->byte_len,
		  __get_str(status)),
	ib_verbs_watch, ib_verbs_unwatch
);

TRACE_EVENT_FN(ib_req_notify_cq,
	TP_PROTO(const struct ib_cq *cq, int flags, int ret),
	TP_ARGS(cq, flags, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
		__field(int, flags)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
		__entry->flags = flags;
		__entry->ret = ret;
	),
	TP_printk("%s cq=%u flags=%#x ret=%d", __entry->device, __entry->id,
		  __entry->flags, __entry->ret),
	ib_verbs_watch, ib_verbs_unwatch
);

DECLARE_EVENT_CLASS(kv_cq,
	TP_PROTO(const struct ib_cq *cq),
	TP_ARGS(cq),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
	),
	TP_printk("%s cq=%u", __entry->device, __entry->id)
);

DEFINE_EVENT(kv_cq, ib_cq_schedule,
	TP_PROTO(const struct ib_cq *cq),
	TP_ARGS(cq)
);

DEFINE_EVENT(kv_poll, ib_cq_poll,
	TP_PROTO(const struct ib_cq *cq, int asked, int ret),
	TP_ARGS(cq, asked, ret)
);

TRACE_EVENT_FN(ib_cq_done,
	TP_PROTO(const struct ib_cq *cq, const struct ib_wc *wc),
	TP_ARGS(cq, wc),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
		__field(u32, qpn)
		__field(u64, wr_id)
		__field(void *, done)
		__string(status, ib_wc_status_msg(wc->status))
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
		__entry->qpn = wc->qp ? wc->qp->qp_num : 0;
		__entry->wr_id = wc->wr_id;
		__entry->done = wc->wr_cqe ? wc->wr_cqe->done : NULL;
		kv_assign_str(status, ib_wc_status_msg(wc->status));
	),
	TP_printk("%s cq=%u qp=%u wr_id=%#llx %ps %s", __entry->device,
		  __entry->id, __entry->qpn, __entry->wr_id, __entry->done,
		  __get_str(status)),
	ib_verbs_watch, ib_verbs_unwatch
);

TRACE_EVENT(ib_cq_rearm,
	TP_PROTO(const struct ib_cq *cq, bool missed),
	TP_ARGS(cq, missed),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, id)
		__field(bool, missed)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, cq->device);
		__entry->id = cq->res.id;
		__entry->missed = missed;
	),
	TP_printk("%s cq=%u%s", __entry->device, __entry->id,
		  __entry->missed ? " missed" : "")
);

#define kv_show_mem_path(path)					\
	__print_symbolic(path,					\
		{ IB_MEM_ANY, "any" },				\
		{ IB_MEM_HOST, "host" },			\
		{ IB_MEM_PEER, "peer" },			\
		{ IB_MEM_DMABUF, "dma-buf" },			\
		{ IB_MEM_P2P, "p2p" })

/*
 * Which memory was registered, or why none: error 0 means that a path was not tried, or
 * taken.
 */
TRACE_EVENT(ib_reg_mem,
	TP_PROTO(const struct ib_device *dev, const struct ib_mem *mem, int ret),
	TP_ARGS(dev, mem, ret),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u64, start)
		__field(u64, length)
		__field(u32, path)
		__field(u32, found)
		__field(int, host)
		__field(int, peer)
		__field(int, dmabuf)
		__field(int, p2p)
		__field(int, ret)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, dev);
		__entry->start = mem->start;
		__entry->length = mem->length;
		__entry->path = mem->path;
		__entry->found = mem->found;
		__entry->host = mem->error[IB_MEM_HOST];
		__entry->peer = mem->error[IB_MEM_PEER];
		__entry->dmabuf = mem->error[IB_MEM_DMABUF];
		__entry->p2p = mem->error[IB_MEM_P2P];
		__entry->ret = ret;
	),
	TP_printk("%s start=%#llx length=%llu asked=%s found=%s host=%d peer=%d dmabuf=%d p2p=%d ret=%d",
		  __entry->device, __entry->start, __entry->length,
		  kv_show_mem_path(__entry->path),
		  kv_show_mem_path(__entry->found),
		  __entry->host, __entry->peer, __entry->dmabuf, __entry->p2p,
		  __entry->ret)
);

/* A rule of the contract was broken. */
TRACE_EVENT(ib_contract,
	TP_PROTO(const struct ib_contract_report *report),
	TP_ARGS(report),
	TP_STRUCT__entry(
		__field(unsigned int, rule)
		__field(unsigned int, count)
		__field(unsigned long, site)
		__string(device, report->device)
		__string(module, report->module)
		__string(object, report->object)
		__string(what, report->what)
	),
	TP_fast_assign(
		__entry->rule = report->rule;
		__entry->count = report->count;
		__entry->site = report->site;
		kv_assign_str(device, report->device);
		kv_assign_str(module, report->module);
		kv_assign_str(object, report->object);
		kv_assign_str(what, report->what);
	),
	TP_printk("rule=%u module=%s device=%s object=\"%s\" count=%u site=%pS: %s",
		  __entry->rule, __get_str(module), __get_str(device),
		  __get_str(object), __entry->count, (void *)__entry->site,
		  __get_str(what))
);

/* A call was refused with -EINVAL. */
TRACE_EVENT(ib_invalid,
	TP_PROTO(const struct ib_device *dev, const char *client, const char *object,
		 const char *text),
	TP_ARGS(dev, client, object, text),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__string(client, client)
		__string(object, object)
		__string(text, text)
	),
	TP_fast_assign(
		if (dev)
			ib_copy_device_name(__entry->device, dev);
		else
			strscpy_pad(__entry->device, "?", IB_DEVICE_NAME_MAX);
		kv_assign_str(client, client);
		kv_assign_str(object, object);
		kv_assign_str(text, text);
	),
	TP_printk("%s %s: %s%s", __entry->device, __get_str(client), __get_str(object),
		  __get_str(text))
);

/* A region has lost its memory. */
TRACE_EVENT(ib_mr_revoked,
	TP_PROTO(const struct ib_mr *mr),
	TP_ARGS(mr),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, lkey)
		__field(u32, rkey)
	),
	TP_fast_assign(
		ib_copy_device_name(__entry->device, mr->device);
		__entry->lkey = mr->lkey;
		__entry->rkey = mr->rkey;
	),
	TP_printk("%s lkey=%#x rkey=%#x", __entry->device, __entry->lkey,
		  __entry->rkey)
);

#endif

/* Relative to our include/, the first directory that the compiler searches. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../core/contract
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
