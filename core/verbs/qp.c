// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: creation, state changes, queries, destruction.
 *
 * Lock protocol: none. The core does not serialise calls; the driver decides
 * whether a change of state is legal, under its own lock, with
 * ib_modify_qp_is_ok(). What the core keeps for a QP (port, source GIDs) is
 * exchanged atomically. The counts of PD, CQs and SRQ are atomic.
 *
 * While it is being destroyed, a QP can be reached by
 *  1. readers of the object lists: rdma_restrack_del() waits for them;
 *  2. the irq_work that calls the event handler: ib_notify_quiesce() ends it;
 *  3. the driver's data path, until its destroy_qp returns;
 *  4. completions in CQs that the core polls: ib_cq_forget_qp() waits for their done();
 *  5. whoever is about to queue that irq_work: ib_notify_fence() waits for it;
 *  6. a driver's lookup under RCU: the memory is freed a grace period later.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kverbs/delay.h>
#include <kverbs/upper.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "../../cq/cq.h"
#include "../../cq/notify.h"
#include "../contract/contract.h"
#include "../contract/export.h"
#include "../contract/invalid.h"
#include "verbs.h"

/* Widths of fields in packets, IBTA vol. 1, 9.2 and 9.7. */
#define QP_PSN_MASK		0xffffff
#define QP_TIMEOUT_MAX		31
#define QP_RNR_TIMER_MAX	31
#define QP_RETRY_MAX		7

/* Set before query_qp: still there afterwards if the driver has not set the state. */
#define QP_NO_STATE		((enum ib_qp_state)(IB_QPS_ERR + 1))

#define QP_ATTR_KNOWN		(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT)

/*
 * On IB_EVENT_QP_LAST_WQE_REACHED, the device has taken its last request from
 * the SRQ (IBTA vol. 1, 10.3.1), which ib_drain_qp() waits for.
 */
static void qp_srq_event(struct ib_event *event, void *context)
{
	struct ib_qp *qp = event->element.qp;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete_all(&qp->srq_completion);
	if (qp->registered_event_handler)
		ib_call_qp_event_handler(event, context);
}

static int qp_check_type(const struct ib_verb_call *call, struct ib_device *device,
			 const struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		if (rdma_is_port_valid(device, init->port_num))
			return 0;
		return ib_invalid(call, "port_num %u: no such port", init->port_num);
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_RAW_PACKET:
		return 0;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
	case IB_QPT_RAW_IPV6:
	case IB_QPT_RAW_ETHERTYPE:
	case IB_QPT_DRIVER:
		return -EOPNOTSUPP;
	default:
		return ib_invalid(call, "qp_type %d: no such type", init->qp_type);
	}
}

static int qp_check_caps(const struct ib_verb_call *call, struct ib_device *device,
			 const struct ib_qp_init_attr *init)
{
	const struct ib_device_attr *attrs = &device->attrs;
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	ret = ib_check_range(call, "max_send_wr", cap->max_send_wr, 0, attrs->max_qp_wr) ?:
	      ib_check_range(call, "max_send_sge", cap->max_send_sge, 0, attrs->max_send_sge);
	/* With an SRQ, the sizes of the receive queue are ignored. */
	if (ret || init->srq)
		return ret;
	return ib_check_range(call, "max_recv_wr", cap->max_recv_wr, 0, attrs->max_qp_wr) ?:
	       ib_check_range(call, "max_recv_sge", cap->max_recv_sge, 0, attrs->max_recv_sge);
}

static int qp_check_queues(const struct ib_verb_call *call, struct ib_device *device,
			   const struct ib_qp_init_attr *init)
{
	if (!init->send_cq || init->send_cq->device != device)
		return ib_invalid(call, "send_cq is %s", init->send_cq ? "of another device" :
								       "missing");
	if (!init->recv_cq || init->recv_cq->device != device)
		return ib_invalid(call, "recv_cq is %s", init->recv_cq ? "of another device" :
								       "missing");
	if (init->srq && init->srq->device != device)
		return ib_invalid(call, "srq is of another device");
	return 0;
}

static int qp_check_init_attr(const struct ib_verb_call *call, struct ib_device *device,
			      const struct ib_qp_init_attr *init)
{
	int ret;

	/* First: a QP of a type that kverbs does not have may lack what others have. */
	ret = qp_check_type(call, device, init) ?: qp_check_queues(call, device, init);
	if (ret)
		return ret;
	if (init->sq_sig_type != IB_SIGNAL_ALL_WR &&
	    init->sq_sig_type != IB_SIGNAL_REQ_WR)
		return ib_invalid(call, "sq_sig_type %d: no such type", init->sq_sig_type);
	if ((init->create_flags & IB_QP_CREATE_INTEGRITY_EN) &&
	    !(device->attrs.kernel_cap_flags & IBK_INTEGRITY_HANDOVER))
		return -EOPNOTSUPP;
	return qp_check_caps(call, device, init);
}

/* The caller that creates a QP. */
struct qp_maker {
	const char *caller;
	struct ib_udata *udata;
	struct ib_uqp_object *uobject;
	unsigned long site;
};

static void qp_init(struct ib_qp *qp, struct ib_pd *pd,
		    const struct ib_qp_init_attr *init, const struct qp_maker *maker)
{
	qp->device = pd->device;
	qp->pd = pd;
	qp->real_qp = qp;
	qp->uobject = maker->uobject;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->qp_type = init->qp_type;
	qp->port = init->port_num;
	qp->qp_context = init->qp_context;
	qp->registered_event_handler = init->event_handler;
	if (init->srq)
		qp->event_handler = qp_srq_event;
	else if (init->event_handler)
		qp->event_handler = ib_call_qp_event_handler;
	qp->integrity_en = init->create_flags & IB_QP_CREATE_INTEGRITY_EN;

	spin_lock_init(&qp->mr_lock);
	INIT_LIST_HEAD(&qp->rdma_mrs);
	INIT_LIST_HEAD(&qp->sig_mrs);
	init_completion(&qp->srq_completion);
	ib_notify_init_qp(qp);
	rdma_restrack_new(&qp->res, RDMA_RESTRACK_QP);
	rdma_restrack_set_maker(&qp->res, maker->caller, maker->site);
	if (maker->udata)
		ib_track_set_user(&qp->res, current, maker->site);
}

static void qp_usecnt_inc(struct ib_qp *qp)
{
	atomic_inc(&qp->pd->usecnt);
	atomic_inc(&qp->send_cq->usecnt);
	atomic_inc(&qp->recv_cq->usecnt);
	if (qp->srq)
		atomic_inc(&qp->srq->usecnt);
}

static void qp_usecnt_dec(struct ib_qp *qp)
{
	if (qp->srq)
		atomic_dec(&qp->srq->usecnt);
	atomic_dec(&qp->recv_cq->usecnt);
	atomic_dec(&qp->send_cq->usecnt);
	atomic_dec(&qp->pd->usecnt);
}

/* Set by the module that has rdma_rw contexts; NULL while none is loaded. */
static const struct ib_rw_ops __rcu *rw_ops;

/**
 * ib_set_rw_ops() - set the functions for QPs with rdma_rw contexts
 * @ops: the functions, or %NULL before their module is unloaded
 *
 * Context: Process, may sleep.
 */
void ib_set_rw_ops(const struct ib_rw_ops *ops)
{
	rcu_assign_pointer(rw_ops, ops);
	/* After this, rw_ops_get() has taken a reference on the old module, or been refused. */
	synchronize_rcu();
}
IB_EXPORT_INTERNAL(ib_set_rw_ops);

/*
 * Takes a reference on their module, which the caller drops with module_put(). NULL if none
 * is loaded, or it is being unloaded.
 */
static const struct ib_rw_ops *rw_ops_get(void)
{
	const struct ib_rw_ops *ops;

	rcu_read_lock();
	ops = rcu_dereference(rw_ops);
	if (ops && !try_module_get(ops->owner))
		ops = NULL;
	rcu_read_unlock();
	return ops;
}

static int qp_init_rw_contexts(const struct ib_verb_call *call, struct ib_device *device,
			       struct ib_qp_init_attr *init, const struct ib_rw_ops *ops)
{
	if (!init->cap.max_rdma_ctxs)
		return 0;
	if (!ops)
		return -EOPNOTSUPP;
	if (!rdma_is_port_valid(device, init->port_num))
		return ib_invalid(call, "port_num %u: no such port", init->port_num);
	ops->init_qp(device, init);
	return 0;
}

static struct ib_qp *qp_make(struct ib_pd *pd, struct ib_qp_init_attr *init,
			     const struct ib_verb_call *call, const struct qp_maker *maker)
{
	struct ib_device *device = pd->device;
	struct ib_qp *qp;
	int ret;

	ret = qp_check_init_attr(call, device, init);
	if (ret)
		return ERR_PTR(ret);
	qp = rdma_zalloc_drv_obj_numa(device, ib_qp);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp_init(qp, pd, init, maker);
	qp_usecnt_inc(qp);

	ret = IB_IN_FRAME(device, NULL, "create_qp", IB_FRAME_METHOD, maker->site,
			  device->ops.create_qp(qp, init, maker->udata));
	if (ret) {
		ib_refused(call, ret, "max_inline_data %u", init->cap.max_inline_data);
		ib_notify_quiesce(&qp->notify);
		qp_usecnt_dec(qp);
		ib_track_drop_user(&qp->res);
		ib_notify_free_qp(qp);
		return ERR_PTR(ret);
	}

	if (!qp->qp_num && qp->qp_type != IB_QPT_SMI)
		ib_output_missing(device, NULL, "create_qp", "returned no number", maker->site);
	qp->max_write_sge = init->cap.max_send_sge;
	qp->max_read_sge = min_t(u32, init->cap.max_send_sge, device->attrs.max_sge_rd);
	rdma_restrack_add(&qp->res);
	return qp;
}

/**
 * ib_create_qp_kernel() - make a queue pair; called through ib_create_qp()
 * @pd: PD of the QP
 * @qp_init_attr: what the caller wants; holds the real sizes on return
 * @caller: KBUILD_MODNAME of the caller
 *
 * Context: Process.
 * Return: the QP, in state RESET; -EINVAL for a missing CQ, objects of another
 * device, an unknown type or kind of signalling, a bad port or sizes beyond the device's limits;
 * -EOPNOTSUPP for types or flags that are not supported, or for rdma_rw contexts while no
 * module is loaded that has them;
 * -ENOMEM; or an error of the driver.
 */
struct ib_qp *ib_create_qp_kernel(struct ib_pd *pd,
				  struct ib_qp_init_attr *qp_init_attr,
				  const char *caller)
{
	const struct ib_rw_ops *ops = qp_init_attr->cap.max_rdma_ctxs ? rw_ops_get() : NULL;
	const struct qp_maker maker = { .caller = caller, .site = _RET_IP_ };
	const struct ib_verb_call call = {
		.dev = pd->device, .res = &pd->res, .client = caller, .what = "create_qp",
	};
	struct ib_qp *qp;
	int ret;

	ret = qp_init_rw_contexts(&call, pd->device, qp_init_attr, ops);
	qp = ret ? ERR_PTR(ret) : qp_make(pd, qp_init_attr, &call, &maker);
	if (!IS_ERR(qp) && ops) {
		ret = ops->init_mrs(qp, qp_init_attr);
		if (ret) {
			ib_destroy_qp(qp);
			qp = ERR_PTR(ret);
		}
	}
	if (ops)
		module_put(ops->owner);
	return qp;
}
EXPORT_SYMBOL(ib_create_qp_kernel);

/**
 * ib_create_qp_user() - make a queue pair for a process
 * @dev: the device
 * @pd: PD of the QP; %NULL: for XRC
 * @attr: what the process wants; holds the real sizes on return
 * @udata: the process's request
 * @uobj: what the process knows the QP by
 * @caller: not used: the calling process is recorded
 *
 * Context: Process, that of the request.
 * Return: as ib_create_qp_kernel(); -EOPNOTSUPP for XRC.
 */
struct ib_qp *ib_create_qp_user(struct ib_device *dev, struct ib_pd *pd,
				struct ib_qp_init_attr *attr, struct ib_udata *udata,
				struct ib_uqp_object *uobj, const char *caller)
{
	const struct qp_maker maker = { .udata = udata, .uobject = uobj, .site = _RET_IP_ };
	const struct ib_verb_call call = {
		.dev = dev, .client = current->comm, .process = true, .what = "create_qp",
	};

	if (!pd || attr->xrcd)
		return ERR_PTR(-EOPNOTSUPP);
	return qp_make(pd, attr, &call, &maker);
}
IB_EXPORT_INTERNAL(ib_create_qp_user);

/* The last index in the port's P_Key table; U16_MAX if the port has no such table. */
static s64 qp_max_pkey_index(const struct ib_qp *qp, u32 port)
{
	int len = 0;

	if (rdma_is_port_valid(qp->device, port) && rdma_ib_or_roce(qp->device, port))
		len = qp->device->port_data[port].immutable.pkey_tbl_len;
	return len ? len - 1 : U16_MAX;
}

/* Checks the attributes against the widths of packet fields and the device's limits. */
static int qp_check_ranges(const struct ib_verb_call *call, const struct ib_qp *qp,
			   const struct ib_qp_attr *attr, int mask)
{
	const struct ib_device_attr *dev = &qp->device->attrs;
	u32 port = mask & IB_QP_PORT ? attr->port_num : READ_ONCE(qp->port);
	const struct {
		int bit;
		const char *name;
		s64 value, min, max;
	} ranges[] = {
		{ IB_QP_STATE, "qp_state", attr->qp_state, IB_QPS_RESET, IB_QPS_ERR },
		{ IB_QP_CUR_STATE, "cur_qp_state", attr->cur_qp_state, IB_QPS_RESET, IB_QPS_ERR },
		{ IB_QP_PATH_MTU, "path_mtu", attr->path_mtu, IB_MTU_256, IB_MTU_4096 },
		{ IB_QP_DEST_QPN, "dest_qp_num", attr->dest_qp_num, 0, IB_QPN_MASK },
		{ IB_QP_TIMEOUT, "timeout", attr->timeout, 0, QP_TIMEOUT_MAX },
		{ IB_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, 0, QP_RETRY_MAX },
		{ IB_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, 0, QP_RETRY_MAX },
		{ IB_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, 0, QP_RNR_TIMER_MAX },
		{ IB_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic, 0,
		  dev->max_qp_init_rd_atom },
		{ IB_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic, 0,
		  dev->max_qp_rd_atom },
		{ IB_QP_PORT, "port_num", port, rdma_start_port(qp->device),
		  rdma_end_port(qp->device) },
		{ IB_QP_PKEY_INDEX, "pkey_index", attr->pkey_index, 0,
		  qp_max_pkey_index(qp, port) },
	};
	int i, ret = 0;

	for (i = 0; i < ARRAY_SIZE(ranges) && !ret; i++)
		if (mask & ranges[i].bit)
			ret = ib_check_range(call, ranges[i].name, ranges[i].value,
					     ranges[i].min, ranges[i].max);
	return ret;
}

/* Consumers often choose random PSNs: use the bits that fit, as other implementations do. */
static void qp_mask_psn(const struct ib_qp *qp, const char *name, u32 *psn)
{
	if (!(*psn & ~QP_PSN_MASK))
		return;
	ibdev_warn_ratelimited(qp->device, "%s: qp %u: %s %#x exceeds 24 bits, using the lower 24\n",
			       qp->res.kern_name, qp->res.id, name, *psn);
	*psn &= QP_PSN_MASK;
}

/* Path migration is not defined for RoCE. */
static int qp_check_alt_path(const struct ib_verb_call *call, struct ib_qp *qp,
			     const struct ib_qp_attr *attr, int mask)
{
	u32 port = mask & IB_QP_PORT ? attr->port_num : READ_ONCE(qp->port);
	u32 alt_port = attr->alt_ah_attr.port_num;

	if (!rdma_is_port_valid(qp->device, port) || !rdma_protocol_ib(qp->device, port))
		return ib_invalid(call, "alt_path: the QP's port %u is not an InfiniBand port",
				  port);
	if (!rdma_protocol_ib(qp->device, alt_port))
		return ib_invalid(call, "alt_ah_attr.port_num %u is not an InfiniBand port",
				  alt_port);
	return 0;
}

/*
 * If two changes of state run at a time, only the driver knows which came last. Then keep
 * the state in which more is legal, the later one in &enum ib_qp_state, so that the
 * contract checker makes no false report. @before was read before the driver was called.
 * Each change is counted, because others may lead back to the same state.
 */
static void qp_record_state(struct ib_qp *qp, unsigned long before, unsigned long state)
{
	unsigned long known = before, next;

	do {
		next = known == before ? state : max(state, known & IB_QP_KNOWN_STATE);
		next |= (known & ~IB_QP_KNOWN_STATE) + IB_QP_KNOWN_STATE + 1;
	} while (!try_cmpxchg(&qp->known_state, &known, next));
}

static void qp_modified(struct ib_qp *qp, const struct ib_qp_attr *attr,
			int mask, unsigned long state_before)
{
	kverbs_delay("qp_modified");
	if (mask & IB_QP_PORT)
		WRITE_ONCE(qp->port, attr->port_num);
	if (mask & IB_QP_AV)
		ib_ah_set_sgid(&qp->av_sgid_attr, &attr->ah_attr);
	if (mask & IB_QP_ALT_PATH)
		ib_ah_set_sgid(&qp->alt_path_sgid_attr, &attr->alt_ah_attr);
	if (mask & IB_QP_STATE)
		qp_record_state(qp, state_before, attr->qp_state);
	/* In RESET, forget the last-WQE event: a later ib_drain_qp() waits for a new one. */
	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET && qp->srq) {
		ib_notify_settle(&qp->notify, IB_EVENT_QP_LAST_WQE_REACHED);
		reinit_completion(&qp->srq_completion);
	}
}

/*
 * Looks up the source GIDs of the paths, and holds them for the duration of the call. For a path
 * that a process gives, it also looks up the destination's Ethernet address, but only for RC and
 * UC: other QPs do not use the path, since each datagram has an address handle.
 */
static int qp_modify(const struct ib_verb_call *call, struct ib_qp *qp,
		     struct ib_qp_attr *attr, int mask, struct ib_udata *udata,
		     unsigned long site)
{
	const struct ib_gid_attr *passed = NULL, *alt_passed = NULL;
	unsigned long state_before = READ_ONCE(qp->known_state);
	int ret = 0;

	/* Here, because ib_ah_attr_unfill() below needs it even if the primary path fails. */
	if (mask & IB_QP_ALT_PATH)
		alt_passed = attr->alt_ah_attr.grh.sgid_attr;
	if (mask & IB_QP_AV)
		ret = ib_ah_attr_fill(call, qp->device, "ah_attr", &attr->ah_attr, &passed);
	if (ret) {
		ib_contract_call(qp->device, &qp->res, "modify_qp", site);
		return ret;
	}
	if (udata && (mask & IB_QP_AV) &&
	    (qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_UC))
		ret = ib_ah_attr_resolve(&attr->ah_attr);
	if (!ret && (mask & IB_QP_ALT_PATH))
		ret = ib_ah_attr_fill(call, qp->device, "alt_ah_attr", &attr->alt_ah_attr,
				      &alt_passed) ?:
		      qp_check_alt_path(call, qp, attr, mask);
	if (ret) {
		ib_contract_call(qp->device, &qp->res, "modify_qp", site);
		goto unfill;
	}
	ret = IB_IN_FRAME(qp->device, &qp->res, "modify_qp", IB_FRAME_METHOD, site,
			  qp->device->ops.modify_qp(qp, attr, mask, udata));
	if (!ret)
		qp_modified(qp, attr, mask, state_before);
	else if (ret == -EINVAL)
		ib_modify_qp_refused(call, qp, state_before & IB_QP_KNOWN_STATE, attr, mask);

unfill:
	if (mask & IB_QP_ALT_PATH)
		ib_ah_attr_unfill(&attr->alt_ah_attr, alt_passed);
	if (mask & IB_QP_AV)
		ib_ah_attr_unfill(&attr->ah_attr, passed);
	return ret;
}

/* ib_modify_qp_with_udata() on behalf of the caller at @site. */
int ib_modify_qp_for(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
		     struct ib_udata *udata, unsigned long site)
{
	enum ib_qp_state from = ib_qp_known_state(qp->real_qp), to = from;
	struct ib_verb_call call = { .dev = qp->device, .res = &qp->res };
	int ret;

	if (qp_attr_mask & IB_QP_STATE)
		to = qp_attr->qp_state;
	call.what = ib_qp_state_name(from);
	call.to = ib_qp_state_name(to);
	if (qp_attr_mask & ~QP_ATTR_KNOWN)
		return ib_invalid(&call, "attr_mask %#x has unknown bits %#x", qp_attr_mask,
				  qp_attr_mask & ~QP_ATTR_KNOWN);
	qp = qp->real_qp;
	ret = qp_check_ranges(&call, qp, qp_attr, qp_attr_mask);
	if (ret)
		return ret;

	qp_attr->xmit_slave = NULL;
	if (qp_attr_mask & IB_QP_RQ_PSN)
		qp_mask_psn(qp, "rq_psn", &qp_attr->rq_psn);
	if (qp_attr_mask & IB_QP_SQ_PSN)
		qp_mask_psn(qp, "sq_psn", &qp_attr->sq_psn);
	return qp_modify(&call, qp, qp_attr, qp_attr_mask, udata, site);
}

/**
 * ib_modify_qp() - change the attributes and the state of a queue pair
 * @qp: the QP
 * @qp_attr: the new values; RoCE paths include the Ethernet address
 * @qp_attr_mask: &enum ib_qp_attr_mask, which of them to set
 *
 * If the device has reported %IB_EVENT_QP_LAST_WQE_REACHED for a QP with an SRQ, a change
 * to RESET returns only after the QP's event handler has been called for it.
 *
 * Context: Process.
 * Return: 0; -EINVAL for a mask or values that no device can take, beyond the
 * device's limits, or illegal in the QP's state; an error of
 * rdma_get_gid_attr(); or another error of the driver. After an error the QP
 * is as it was.
 */
int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask)
{
	return ib_modify_qp_for(qp, qp_attr, qp_attr_mask, NULL, _RET_IP_);
}
EXPORT_SYMBOL(ib_modify_qp);

/**
 * ib_modify_qp_with_udata() - change the attributes and the state of a process's queue pair
 * @qp: the QP
 * @qp_attr: the new values; the Ethernet address of a connection's RoCE path is looked up
 * @qp_attr_mask: &enum ib_qp_attr_mask, which of them to set
 * @udata: the process's request
 *
 * Context: Process, that of the request.
 * Return: as ib_modify_qp(); -EHOSTUNREACH or another error of the look-up.
 */
int ib_modify_qp_with_udata(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			    struct ib_udata *udata)
{
	return ib_modify_qp_for(qp, qp_attr, qp_attr_mask, udata, _RET_IP_);
}
IB_EXPORT_INTERNAL(ib_modify_qp_with_udata);

/**
 * ib_query_qp() - read the attributes of a queue pair
 * @qp: the QP
 * @qp_attr: filled in, without references on source GIDs; 0 is what the driver does not give
 * @qp_attr_mask: those that the caller wants; the driver may give more
 * @qp_init_attr: filled in, likewise
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
		struct ib_qp_init_attr *qp_init_attr)
{
	int ret;

	if (!qp->device->ops.query_qp)
		return -EOPNOTSUPP;

	/* Processes are given all of it, also what drivers such as siw leave out. */
	memset(qp_attr, 0, sizeof(*qp_attr));
	memset(qp_init_attr, 0, sizeof(*qp_init_attr));
	if (qp_attr_mask & IB_QP_STATE)
		qp_attr->qp_state = QP_NO_STATE;
	ret = IB_METHOD(qp->device, &qp->res, "query_qp",
			qp->device->ops.query_qp(qp->real_qp, qp_attr, qp_attr_mask,
						 qp_init_attr));
	if ((qp_attr_mask & IB_QP_STATE) && qp_attr->qp_state == QP_NO_STATE) {
		qp_attr->qp_state = IB_QPS_RESET;
		if (!ret)
			ib_output_missing(qp->device, &qp->res, "query_qp", "returned no state",
					  _RET_IP_);
	}
	/* Drivers copy what they were given, but the caller holds no references. */
	qp_attr->ah_attr.grh.sgid_attr = NULL;
	qp_attr->alt_ah_attr.grh.sgid_attr = NULL;
	return ret;
}
EXPORT_SYMBOL(ib_query_qp);

/**
 * ib_destroy_qp_user() - free a queue pair; called through ib_destroy_qp()
 * @qp: the QP
 * @udata: the process's request, or NULL
 *
 * Frees the regions of the QP's pools, &ib_qp.rdma_mrs and &ib_qp.sig_mrs, first.
 *
 * Outstanding requests may complete until the call returns, but not after it; call
 * ib_drain_qp() first to get all completions. If the core polls the QP's CQs, no done() of
 * the QP runs any more on return, except the done() that makes the call, or one of
 * another CQ that is itself destroying a QP of this one's. For that the call may wait until a
 * running done() returns, so the caller must hold no lock that a done() of these CQs takes.
 *
 * Context: Process.
 * Return: 0; -EBUSY, with a warning, while the QP is attached to a multicast
 * group or otherwise in use; or an error of the driver, with a warning. After
 * an error the QP still exists.
 */
int ib_destroy_qp_user(struct ib_qp *qp, struct ib_udata *udata)
{
	struct ib_tracked tracked;
	int ret;

	ret = ib_object_unused(qp->device, &qp->res, &qp->usecnt, _RET_IP_);
	if (ret)
		return ret;
	if (qp->mrs_used > 0) {
		ibdev_warn(qp->device,
			   "%s: destroying qp %u while %d MRs of its pool are in use; return them with ib_mr_pool_put() first\n",
			   qp->res.kern_name, qp->res.id, qp->mrs_used);
		ib_contract_report(IB_RULE_BUSY, qp->device, &qp->res,
				   ib_contract_culprit(_RET_IP_), _RET_IP_,
				   qp->mrs_used, "destroyed while %d MRs of its pool are in use",
				   qp->mrs_used);
	}

	ib_mr_pool_empty(qp, &qp->sig_mrs, _RET_IP_);
	ib_mr_pool_empty(qp, &qp->rdma_mrs, _RET_IP_);
	tracked = rdma_restrack_del(&qp->res);
	ib_notify_quiesce(&qp->notify);
	ret = IB_METHOD(qp->device, &qp->res, "destroy_qp",
			qp->device->ops.destroy_qp(qp, udata));
	if (ret) {
		ib_notify_revive(&qp->notify);
		rdma_restrack_readd(&qp->res);
		ibdev_warn(qp->device,
			   "driver failed to destroy qp %u of %s (%d)\n",
			   qp->res.id, qp->res.kern_name, ret);
		return ret;
	}

	rdma_restrack_forget(qp->device, RDMA_RESTRACK_QP, tracked);
	ib_cq_forget_qp(qp);
	ib_ah_put_sgid(&qp->av_sgid_attr);
	ib_ah_put_sgid(&qp->alt_path_sgid_attr);
	qp_usecnt_dec(qp);
	ib_notify_fence(&qp->notify);
	ib_notify_free_qp(qp);
	return 0;
}
EXPORT_SYMBOL(ib_destroy_qp_user);
