// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software HCA under mainline's ib_core.
 *
 * The rest of the driver is written for kverbs' own core, which does for drivers some things that
 * mainline's leaves to them. This file does these:
 *
 * - Handlers run later, never inside a verb, and never twice at a time for one object. The
 *   reports that the driver makes in any context are collected in a word of the object, and
 *   an irq_work calls the handlers.
 * - Arguments are checked against the limits of the device, as far as the driver relies on it.
 * - The memory of objects that the driver looks up under RCU stays for a grace period:
 *   mainline's core frees it as soon as the destroy method returns, so that waits.
 * - Memory of a process is pinned by the driver, which keeps it with the region.
 *
 * Consumers are in the kernel, or processes; what is specific to processes is in user/.
 *
 * The word of an object holds the reports that are due, and
 *
 *   EMU_NOTIFY_RUNNING	the irq_work is calling handlers
 *   EMU_NOTIFY_DEAD	the object is being destroyed: nothing is called any more
 *
 * Whoever changes the word from 0 queues the irq_work; what comes while it runs makes it
 * queue itself again, so that a busy object does not keep it in hard interrupt. irq_work_sync()
 * alone does not tell whether it has ended: a CPU that has called our function marks the
 * irq_work as idle, even if another CPU has begun to call it again. So RUNNING tells it; and
 * for the CPU that has yet to write the mark, the memory stays for a grace period, which
 * interrupts hold up. With PREEMPT_RT, threads run irq_works: there it is a grace period of
 * tasks, which these hold up until they have nothing to do.
 *
 * Events of ports
 *
 * The core reads the state of a port early in ib_register_device(), and takes no events before its
 * end, nor while it moves a device to another network namespace. A change meanwhile must not be
 * lost, whenever it comes:
 *
 *   before the core's look		the core reads the new state: it was written first
 *   after it, while the device is
 *   not enabled			the event stays in emu_port.due. The core adds clients when it
 *					enables a device: for ours, emu_client_add(), that is the
 *					time to queue @events, which reports what is due
 *   after that				emu_dispatch_event() finds the device enabled, and queues
 *					@events itself
 *
 * Which of the last two it is cannot be told from outside, but pair A leaves no gap. To the event
 * the core answers by reading the state again, which was written before the event was due. That
 * @events is queued twice when both see it does no harm.
 *
 *   A  emu_dispatch_event(): full barrier between @due and the look whether it is enabled -
 *	emu_report_port(), queued once the device is enabled: full barrier before the look at @due
 *	one of them sees the other's
 */
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <kverbs/completion.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#include "core.h"
#include "device.h"
#include "engine/engine.h"
#include "lib/fault.h"
#include "memory/memory.h"
#include "memory/region.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "uobject.h"
#include "user/user.h"

#define EMU_NOTIFY_RUNNING		BIT(0)
#define EMU_NOTIFY_DEAD			BIT(1)
#define EMU_NOTIFY_COMP			BIT(2)
#define EMU_NOTIFY_EVENT(event)		BIT(3 + (event))
#define EMU_NOTIFY_EVENTS(due)		((u32)(due) >> 3)

/* Widths of fields in packets, IBTA vol. 1, 9.2 and 9.7. */
#define EMU_TIMER_MAX			31
#define EMU_RETRY_MAX			7

/**
 * struct emu_notify - what is to be reported about an object
 * @work: calls the handlers
 * @state: EMU_NOTIFY_* bits
 */
struct emu_notify {
	struct irq_work work;
	atomic_t state;
};

/* The core's part must come first, and comes first in each of these. */
struct emu_mainline_cq {
	struct emu_cq cq;
	struct emu_notify notify;
};

struct emu_mainline_qp {
	struct emu_qp qp;
	struct emu_notify notify;
};

struct emu_mainline_srq {
	struct emu_srq srq;
	struct emu_notify notify;
};

static struct emu_notify *emu_cq_notify_of(struct ib_cq *ibcq)
{
	return &container_of(ibcq, struct emu_mainline_cq, cq.ibcq)->notify;
}

static struct emu_notify *emu_qp_notify_of(struct ib_qp *ibqp)
{
	return &container_of(ibqp, struct emu_mainline_qp, qp.ibqp)->notify;
}

static struct emu_notify *emu_srq_notify_of(struct ib_srq *ibsrq)
{
	return &container_of(ibsrq, struct emu_mainline_srq, srq.ibsrq)->notify;
}

/* --- reports ------------------------------------------------------------------- */

/* Any context but NMI. */
static void emu_notify_raise(struct emu_notify *notify, int bit)
{
	if (!atomic_fetch_or(bit, &notify->state))
		irq_work_queue(&notify->work);
}

/* Returns the bits that are due, or 0 if no handler may be called. */
static int emu_notify_begin(struct emu_notify *notify)
{
	int due = atomic_read(&notify->state);

	do {
		if (!due || (due & (EMU_NOTIFY_DEAD | EMU_NOTIFY_RUNNING)))
			return 0;
	} while (!atomic_try_cmpxchg(&notify->state, &due, EMU_NOTIFY_RUNNING));
	return due;
}

static void emu_notify_end(struct emu_notify *notify)
{
	if (atomic_cmpxchg(&notify->state, EMU_NOTIFY_RUNNING, 0) == EMU_NOTIFY_RUNNING)
		return;
	/* More is due, or the object is dead. */
	if (!(atomic_fetch_andnot(EMU_NOTIFY_RUNNING, &notify->state) & EMU_NOTIFY_DEAD))
		irq_work_queue(&notify->work);
}

static void emu_notify_call(const struct ib_event *event, int due,
			    void (*handler)(struct ib_event *event, void *context), void *context)
{
	unsigned long events = EMU_NOTIFY_EVENTS(due);
	struct ib_event one;
	int bit;

	if (!handler)
		return;
	for_each_set_bit(bit, &events, 32) {
		one = *event;
		one.event = bit;
		handler(&one, context);
	}
}

static void emu_notify_cq_work(struct irq_work *work)
{
	struct emu_mainline_cq *cq = container_of(work, struct emu_mainline_cq, notify.work);
	struct ib_cq *ibcq = &cq->cq.ibcq;
	struct ib_event event = { .device = ibcq->device, .element.cq = ibcq };
	int due = emu_notify_begin(&cq->notify);

	if (!due)
		return;
	if ((due & EMU_NOTIFY_COMP) && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
	emu_notify_call(&event, due, ibcq->event_handler, ibcq->cq_context);
	emu_notify_end(&cq->notify);
}

static void emu_notify_qp_work(struct irq_work *work)
{
	struct emu_mainline_qp *qp = container_of(work, struct emu_mainline_qp, notify.work);
	struct ib_qp *ibqp = &qp->qp.ibqp;
	struct ib_event event = { .device = ibqp->device, .element.qp = ibqp };
	int due = emu_notify_begin(&qp->notify);

	if (!due)
		return;
	emu_notify_call(&event, due, ibqp->event_handler, ibqp->qp_context);
	emu_notify_end(&qp->notify);
}

static void emu_notify_srq_work(struct irq_work *work)
{
	struct emu_mainline_srq *srq = container_of(work, struct emu_mainline_srq, notify.work);
	struct ib_srq *ibsrq = &srq->srq.ibsrq;
	struct ib_event event = { .device = ibsrq->device, .element.srq = ibsrq };
	int due = emu_notify_begin(&srq->notify);

	if (!due)
		return;
	emu_notify_call(&event, due, ibsrq->event_handler, ibsrq->srq_context);
	emu_notify_end(&srq->notify);
}

static void emu_notify_init(struct emu_notify *notify, void (*fn)(struct irq_work *work))
{
	init_irq_work(&notify->work, fn);
	atomic_set(&notify->state, 0);
}

/* Waits until the handlers have been called for the reports @due that were made before. */
static void emu_notify_settle(struct emu_notify *notify, int due)
{
	int state;

	/* acquire: all that the handlers did is done */
	while ((state = atomic_read_acquire(&notify->state)) & (due | EMU_NOTIFY_RUNNING)) {
		/*
		 * A reporter may have set a bit, and been preempted before it queued the
		 * irq_work.
		 */
		if (!(state & EMU_NOTIFY_RUNNING))
			irq_work_queue(&notify->work);
		/*
		 * Where irq_work_sync() sleeps, only one thread at a time may: those who destroy
		 * QPs of one CQ are several. And the thread that runs the irq_work with
		 * PREEMPT_RT may be on this CPU, and have a lower priority.
		 */
		if (IS_ENABLED(CONFIG_PREEMPT_RT) || IS_ENABLED(CONFIG_UML)) {
			schedule_timeout_uninterruptible(1);
		} else {
			irq_work_sync(&notify->work);
			cond_resched();
		}
	}
}

/* On return no handler of the object runs, and none will. Process context. */
static void emu_notify_quiesce(struct emu_notify *notify)
{
	atomic_or(EMU_NOTIFY_DEAD, &notify->state);
	irq_work_sync(&notify->work);
	emu_notify_settle(notify, 0);
}

/*
 * The driver reports nothing of the object any more, and a grace period has passed since: the core
 * may free its memory. Expedited, because consumers destroy many in a row.
 */
static void emu_notify_release(struct emu_notify *notify)
{
	/* Whoever found the object alive in emu_notify_end() has queued the irq_work: it has run, */
	irq_work_sync(&notify->work);
	/* and is through: with PREEMPT_RT it is not an interrupt, but a task. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		synchronize_rcu_tasks();
	else
		synchronize_rcu_expedited();
}

/* The same for an object whose destruction has not waited for a grace period itself. */
static void emu_notify_fence(struct emu_notify *notify)
{
	synchronize_rcu_expedited();
	emu_notify_release(notify);
}

void ib_cq_notify(struct ib_cq *cq)
{
	emu_notify_raise(emu_cq_notify_of(cq), EMU_NOTIFY_COMP);
}

void ib_cq_notify_event(struct ib_cq *cq, enum ib_event_type event)
{
	emu_notify_raise(emu_cq_notify_of(cq), EMU_NOTIFY_EVENT(event));
}

void ib_qp_notify_event(struct ib_qp *qp, enum ib_event_type event)
{
	emu_notify_raise(emu_qp_notify_of(qp), EMU_NOTIFY_EVENT(event));
}

void ib_srq_notify_event(struct ib_srq *srq, enum ib_event_type event)
{
	emu_notify_raise(emu_srq_notify_of(srq), EMU_NOTIFY_EVENT(event));
}

/*
 * Mainline's core takes events of registered devices only, and allocates memory for them, which
 * with PREEMPT_RT not every context may: hence the work item. Any context but NMI for an event
 * of a port; process context for one of the device.
 */
void emu_dispatch_event(const struct ib_event *event)
{
	struct emu_device *edev = to_edev(event->device);

	/* full barrier: pair A */
	if (event->event != IB_EVENT_DEVICE_FATAL)
		atomic_fetch_or(BIT(event->event), &edev->ports[event->element.port_num - 1].due);
	if (!ib_device_try_get(event->device))
		return;
	if (event->event != IB_EVENT_DEVICE_FATAL)
		queue_work(system_unbound_wq, &edev->events);
	else
		(ib_dispatch_event)(event);
	ib_device_put(event->device);
}

/* Of several events about the link state, consumers get the one that matches the final state. */
static void emu_report_port(struct emu_port *port)
{
	struct ib_event event = { .device = &port->edev->ibdev, .element.port_num = port->num };
	/* full barrier: pair A */
	unsigned long due = atomic_xchg(&port->due, 0);
	int bit, last = IB_EVENT_PORT_ERR;

	if (READ_ONCE(port->state) == IB_PORT_ACTIVE)
		last = IB_EVENT_PORT_ACTIVE;
	for_each_set_bit(bit, &due, 32) {
		event.event = bit;
		if (bit != last)
			(ib_dispatch_event)(&event);
	}
	event.event = last;
	if (due & BIT(last))
		(ib_dispatch_event)(&event);
}

static void emu_events_work(struct work_struct *work)
{
	struct emu_device *edev = container_of(work, struct emu_device, events);
	u32 i;

	if (!ib_device_try_get(&edev->ibdev))
		return;
	for (i = 0; i < edev->nr_ports; i++)
		emu_report_port(&edev->ports[i]);
	ib_device_put(&edev->ibdev);
}

/* The core has enabled a device: it has been registered, or moved to another namespace. */
static int emu_client_add(struct ib_device *ibdev)
{
	if (ibdev->ops.owner != THIS_MODULE)
		return -ENODEV;
	/* Until clients are removed again, the device stays. */
	queue_work(system_unbound_wq, &to_edev(ibdev)->events);
	return 0;
}

static struct ib_client emu_client = {
	.name = KBUILD_MODNAME,
	.add = emu_client_add,
};

int emu_core_register(struct emu_device *edev, const char *name)
{
	u32 i;
	int err;

	INIT_WORK(&edev->events, emu_events_work);
	/* The core asks for the state of the ports itself. */
	for (i = 0; i < edev->nr_ports; i++)
		atomic_set(&edev->ports[i].due, 0);
	err = ib_register_device(&edev->ibdev, name, &edev->pdev->dev);
	if (err)
		cancel_work_sync(&edev->events);
	return err;
}

void emu_core_unregister(struct emu_device *edev)
{
	ib_unregister_device(&edev->ibdev);
	/* Nothing can find the device any more, to queue it again. */
	cancel_work_sync(&edev->events);
}

/* Mainline's core takes GIDs from a network device as it registers a device, not later. */
bool emu_core_can_rebind(void)
{
	return false;
}

/*
 * The core could keep the network devices of ports. But rdma_rxe asks the core for "the device of
 * this driver" of a network device when a packet arrives there, or its link changes. For the
 * driver's number we are the same driver, so it would take a device of ours for one of its own.
 * What the core does not keep, it does not find. The lock guards @core_netdev of all ports.
 */
static DEFINE_SPINLOCK(emu_netdev_lock);

int emu_set_netdev(struct ib_device *ibdev, struct net_device *netdev, u32 port_num)
{
	struct emu_port *port = emu_port(ibdev, port_num);
	struct net_device *old;

	dev_hold(netdev);
	spin_lock(&emu_netdev_lock);
	old = port->core_netdev;
	port->core_netdev = netdev;
	spin_unlock(&emu_netdev_lock);
	dev_put(old);
	return 0;
}

static struct net_device *emu_get_netdev(struct ib_device *ibdev, u32 port_num)
{
	struct net_device *netdev;

	spin_lock(&emu_netdev_lock);
	netdev = emu_port(ibdev, port_num)->core_netdev;
	dev_hold(netdev);
	spin_unlock(&emu_netdev_lock);
	return netdev;
}

void emu_core_release(struct emu_device *edev)
{
	u32 i;

	for (i = 1; i <= edev->nr_ports; i++)
		emu_set_netdev(&edev->ibdev, NULL, i);
}

/*
 * Consumers see the change when they ask. A network device that is being unregistered must
 * not be held.
 */
void ib_port_attr_changed(struct ib_device *device, u32 port_num)
{
	const struct emu_port *port = emu_port(device, port_num);

	if (port->edev->ethernet && !port->netdev)
		ib_device_set_netdev(device, NULL, port_num);
}

/* --- arguments ----------------------------------------------------------------- */

static int emu_check_qp_init(const struct ib_device *ibdev, const struct ib_qp_init_attr *init)
{
	const struct ib_device_attr *limit = &ibdev->attrs;
	const struct ib_qp_cap *cap = &init->cap;

	/* First, as some types have no receive CQ. */
	if (!emu_has_qp_type(init->qp_type))
		return -EOPNOTSUPP;
	if (!init->send_cq || init->send_cq->device != ibdev ||
	    !init->recv_cq || init->recv_cq->device != ibdev ||
	    (init->srq && init->srq->device != ibdev))
		return -EINVAL;
	if (init->sq_sig_type != IB_SIGNAL_ALL_WR && init->sq_sig_type != IB_SIGNAL_REQ_WR)
		return -EINVAL;
	if (init->qp_type == IB_QPT_GSI &&
	    (init->port_num < 1 || init->port_num > ibdev->phys_port_cnt))
		return -EINVAL;
	if (cap->max_send_wr > limit->max_qp_wr || cap->max_send_sge > limit->max_send_sge)
		return -EINVAL;
	/* With an SRQ, the sizes of the receive queue are ignored. */
	if (!init->srq && (cap->max_recv_wr > limit->max_qp_wr ||
			   cap->max_recv_sge > limit->max_recv_sge))
		return -EINVAL;
	return 0;
}

static int emu_check_qp_attr(const struct ib_qp *ibqp, const struct ib_qp_attr *attr, int mask)
{
	const struct ib_device_attr *limit = &ibqp->device->attrs;
	const struct {
		int bit;
		u32 value, min, max;
	} ranges[] = {
		{ IB_QP_STATE, attr->qp_state, IB_QPS_RESET, IB_QPS_ERR },
		{ IB_QP_CUR_STATE, attr->cur_qp_state, IB_QPS_RESET, IB_QPS_ERR },
		{ IB_QP_PATH_MTU, attr->path_mtu, IB_MTU_256, IB_MTU_4096 },
		{ IB_QP_DEST_QPN, attr->dest_qp_num, 0, IB_QPN_MASK },
		{ IB_QP_TIMEOUT, attr->timeout, 0, EMU_TIMER_MAX },
		{ IB_QP_RETRY_CNT, attr->retry_cnt, 0, EMU_RETRY_MAX },
		{ IB_QP_RNR_RETRY, attr->rnr_retry, 0, EMU_RETRY_MAX },
		{ IB_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, EMU_TIMER_MAX },
		{ IB_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0, limit->max_qp_init_rd_atom },
		{ IB_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0, limit->max_qp_rd_atom },
		{ IB_QP_PORT, attr->port_num, 1, ibqp->device->phys_port_cnt },
		{ IB_QP_PKEY_INDEX, attr->pkey_index, 0,
		  emu_pkey_tbl_len(to_edev(ibqp->device)) - 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		if ((mask & ranges[i].bit) &&
		    (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max))
			return -EINVAL;
	return 0;
}

/* --- methods ------------------------------------------------------------------- */

int emu_core_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct emu_notify *notify = emu_cq_notify_of(ibcq);

	emu_user_quiesce_cq(to_ecq(ibcq));
	emu_notify_quiesce(notify);
	/* Waits for a grace period. */
	emu_device_destroy_cq(ibcq, udata);
	emu_notify_release(notify);
	emu_user_free_cq(to_ecq(ibcq));
	return 0;
}

static int emu_mainline_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				  struct kv_create_cq_user *user)
{
	if (attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	emu_notify_init(emu_cq_notify_of(ibcq), emu_notify_cq_work);
	if (user)
		return emu_user_create_cq(ibcq, attr, kv_create_cq_udata(user));
	return emu_device_create_cq(ibcq, attr, NULL);
}

static int emu_mainline_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
				  struct ib_udata *udata)
{
	return emu_check_qp_attr(ibqp, attr, mask) ?: emu_modify_qp(ibqp, attr, mask, udata);
}

int emu_core_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct ib_cq *send_cq = ibqp->send_cq, *recv_cq = ibqp->recv_cq;
	struct emu_notify *notify = emu_qp_notify_of(ibqp);

	emu_notify_quiesce(notify);
	emu_device_destroy_qp(ibqp, udata);
	/*
	 * Once the last queue pair of a CQ is gone, the core stops polling the CQ, and relies
	 * on no handler starting that again.
	 */
	emu_notify_settle(emu_cq_notify_of(send_cq), EMU_NOTIFY_COMP);
	emu_notify_settle(emu_cq_notify_of(recv_cq), EMU_NOTIFY_COMP);
	emu_notify_fence(notify);
	emu_user_free_qp(to_eqp(ibqp));
	return 0;
}

static int emu_mainline_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
				  struct ib_udata *udata)
{
	int err;

	err = emu_check_qp_init(ibqp->device, init);
	if (err)
		return err;
	emu_notify_init(emu_qp_notify_of(ibqp), emu_notify_qp_work);
	if (udata)
		return emu_user_create_qp(ibqp, init, udata);
	err = emu_device_create_qp(ibqp, init, NULL);
	/* Nobody posts before the core has returned the queue pair. */
	if (!err)
		to_eqp(ibqp)->send_ops &= ~BIT_ULL(IB_WR_BIND_MW);
	return err;
}

int emu_core_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct emu_notify *notify = emu_srq_notify_of(ibsrq);

	emu_notify_quiesce(notify);
	emu_destroy_srq(ibsrq, udata);
	emu_notify_fence(notify);
	emu_user_free_rq(to_esrq(ibsrq)->user_rq);
	return 0;
}

static int emu_mainline_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
				   struct ib_udata *udata)
{
	const struct ib_device_attr *limit = &ibsrq->device->attrs;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > limit->max_srq_wr ||
	    init->attr.max_sge > limit->max_srq_sge)
		return -EINVAL;
	emu_notify_init(emu_srq_notify_of(ibsrq), emu_notify_srq_work);
	if (udata)
		return emu_user_create_srq(ibsrq, init, udata);
	return emu_create_srq(ibsrq, init, NULL);
}

/* The caller's memory: that of a process, or of one on whose behalf a kernel consumer acts. */
static struct ib_mr *emu_mainline_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
					      u64 virt_addr, int access, struct ib_udata *udata)
{
	struct ib_umem *umem;
	struct ib_mr *ibmr;
	int err;

	if (!length)
		return emu_user_reg_empty_mr(pd, virt_addr, access);
	umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	err = emu_umem_check_copy(pd->device, umem);
	ibmr = err ? ERR_PTR(err) : emu_reg_umem_mr(pd, umem, virt_addr, access);
	if (IS_ERR(ibmr)) {
		ib_umem_release(umem);
		return ibmr;
	}
	/* It goes with the region. */
	to_emr(ibmr)->umem = umem;
	emu_open_mr(ibmr);
	return ibmr;
}

static struct ib_mr *emu_mainline_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
						     u64 virt_addr, int fd, int access,
						     struct kv_reg_dmabuf_user *user)
{
	return emu_user_reg_dmabuf(pd, offset, length, virt_addr, fd, access);
}

static int emu_mainline_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ib_umem *umem = to_emr(ibmr)->umem;
	int err;

	if (umem && umem->is_dmabuf) {
		err = emu_user_dereg_dmabuf(ibmr);
	} else {
		err = emu_dereg_mr(ibmr, udata);
		if (!err)
			ib_umem_release(umem);
	}
	return emu_user_dereg_error(err, udata);
}

/* Only a CQ that the core polls, and arms, has an array to poll into. */
static int emu_mainline_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	return emu_req_notify_cq(ibcq, flags, ibcq->wc);
}

/* For the methods without a check here, the driver or mainline's core checks all arguments. */
static const struct ib_device_ops emu_core_ops = {
	.req_notify_cq = emu_mainline_req_notify_cq,
	.create_cq = emu_mainline_create_cq,
	.create_qp = emu_mainline_create_qp,
	.create_srq = emu_mainline_create_srq,
	.dereg_mr = emu_mainline_dereg_mr,
	.destroy_cq = emu_core_destroy_cq,
	.destroy_qp = emu_core_destroy_qp,
	.destroy_srq = emu_core_destroy_srq,
	.get_netdev = emu_get_netdev,
	.modify_cq = emu_user_modify_cq,
	.modify_qp = emu_mainline_modify_qp,
	.modify_srq = emu_user_modify_srq,
	.reg_user_mr = emu_mainline_reg_user_mr,
	.reg_user_mr_dmabuf = emu_mainline_reg_user_mr_dmabuf,
	.resize_cq = emu_user_change_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, emu_mainline_cq, cq.ibcq),
	INIT_RDMA_OBJ_SIZE(ib_qp, emu_mainline_qp, qp.ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, emu_mainline_srq, srq.ibsrq),
};

/*
 * All that the device can do; consumers in the kernel, which have no windows, do not ask for
 * them.
 */
void emu_core_query_device(const struct emu_device *edev, struct ib_device_attr *attr)
{
	/* For processes only: the kernel has no consumers of it, and would be refused. */
	attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	if (edev->by_link)
		attr->kernel_cap_flags |= IBK_ALLOW_USER_UNREG;
}

int emu_core_init(void)
{
	int err = emu_user_init();

	if (err)
		return err;
	err = ib_register_client(&emu_client);
	if (err)
		emu_user_exit();
	return err;
}

void emu_core_exit(void)
{
	ib_unregister_client(&emu_client);
	emu_user_exit();
}

void emu_core_setup(struct ib_device *ibdev)
{
	emu_user_setup(ibdev);
	ib_set_device_ops(ibdev, &emu_core_ops);
}

void emu_core_debugfs(struct emu_device *edev, struct dentry *dir)
{
}

/* --- peer-to-peer memory -------------------------------------------------------- */

/*
 * kverbs_p2pdma, the registry that could tell whether there is a route to such memory, is not
 * there: memory other than RAM is not reached by its DMA address.
 */
void emu_p2p_init(struct emu_device *edev)
{
	INIT_LIST_HEAD(&edev->p2p.ranges);
}

void emu_p2p_exit(struct emu_device *edev)
{
}

void *emu_p2p_run(struct emu_device *edev, phys_addr_t phys, u64 len)
{
	return NULL;
}

void *emu_p2p_span(struct emu_device *edev, u64 addr, u64 len)
{
	return NULL;
}

enum emu_syndrome emu_p2p_syndrome(struct emu_device *edev, u64 addr, u64 len)
{
	return EMU_SYN_ADDRESS;
}

/* For the modprobe configuration that "kverbs switch" writes. */
MODULE_ALIAS("kverbs_hca_mainline");
