// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of the software HCA that belong to a process, without one.
 */
#include <linux/mman.h>
#include <kverbs/upper.h>
#include <rdma/rdma_user_rxe.h>

#include "emu/process.h"
#include "lib/objects.h"

/* Where in its page a process puts requests, and has answers written. */
#define REQUESTS	0
#define ANSWERS		(PAGE_SIZE / 2)
/* Where it learns the address of an SRQ's new ring. */
#define RESIZED		(PAGE_SIZE / 4)

/**
 * process_new() - let the case's thread open a device as a process does
 * @test: the running case
 * @ibdev: an emulated device, on which the case has a reference until it ends
 *
 * The thread gets an mm if it has none.
 *
 * Return: what is open.
 */
struct process *process_new(struct kunit *test, struct ib_device *ibdev)
{
	struct process *p = kvt_zalloc(test, sizeof(*p));

	p->ibdev = ibdev;
	p->context.device = ibdev;
	xa_init_flags(&p->context.mmap_xa, XA_FLAGS_ALLOC);
	p->page = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, p->page);
	p->request.context = &p->context;
	p->request.driver_udata = (struct ib_udata) {
		.inbuf = (void __user *)(p->page + REQUESTS),
		.outbuf = (void __user *)(p->page + ANSWERS),
		.inlen = RESIZED - REQUESTS,
		.outlen = PAGE_SIZE - ANSWERS,
	};
	return p;
}
EXPORT_SYMBOL_GPL(process_new);

/* Reads @bytes bytes of the process's page. */
static int process_read(const struct process *p, unsigned long at, void *to, size_t bytes)
{
	return copy_from_user(to, (void __user *)(p->page + at), bytes) ? -EFAULT : 0;
}

/* The ring that the process has been told to map; NULL if there is none. */
static struct emu_uring *process_find_ring(struct process *p, const struct mminfo *info)
{
	struct rdma_user_mmap_entry *entry;

	entry = rdma_user_mmap_entry_get_pgoff(&p->context, info->offset >> PAGE_SHIFT);
	if (!entry)
		return NULL;
	/* Its object keeps it. */
	rdma_user_mmap_entry_put(entry);
	return container_of(entry, struct emu_uring, entry);
}

static void process_called(struct ib_cq *cq, void *context)
{
	struct rig_end *e = context;

	atomic_inc(&e->called);
	complete(&e->got_call);
}

/**
 * process_cq() - make a CQ of a process
 * @test: the running case
 * @p: the process
 * @cqe: its size
 * @e: whose @called and @got_call the completion handler changes
 * @ring: set to what the process polls
 *
 * Return: the CQ, which the end of the case destroys.
 */
struct ib_cq *process_cq(struct kunit *test, struct process *p, int cqe, struct rig_end *e,
			 struct emu_uring **ring)
{
	const struct ib_cq_init_attr attr = { .cqe = cqe };
	struct ib_cq *cq = rdma_zalloc_drv_obj(p->ibdev, ib_cq);
	struct rxe_create_cq_resp resp;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->device = p->ibdev;
	cq->comp_handler = process_called;
	cq->cq_context = e;
	ib_cq_adopt(cq);
	ib_track_set_user(&cq->res, current, _THIS_IP_);
	err = p->ibdev->ops.create_cq(cq, &attr, &p->request);
	if (err) {
		rdma_restrack_put(&cq->res);
		kfree(cq);
		KUNIT_FAIL_AND_ABORT(test, "no CQ: %d", err);
	}
	ib_track_add(p->ibdev, &cq->res);
	kvt_defer(test, kvt_end_cq, cq);
	KUNIT_ASSERT_EQ(test, 0, process_read(p, ANSWERS, &resp, sizeof(resp)));
	*ring = KVT_PTR(test, process_find_ring(p, &resp.mi));
	return cq;
}
EXPORT_SYMBOL_GPL(process_cq);

/**
 * process_srq() - make an SRQ of a process
 * @test: the running case
 * @p: the process
 * @pd: its domain
 * @max_wr: its size
 * @max_sge: how many elements a receive may have
 * @ring: set to where the process posts
 *
 * Return: the SRQ, which the end of the case destroys.
 */
struct ib_srq *process_srq(struct kunit *test, struct process *p, struct ib_pd *pd, u32 max_wr,
			   u32 max_sge, struct emu_uring **ring)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct rxe_create_srq_resp resp;
	struct ib_srq *srq;

	srq = KVT_OWN(test, ib_create_srq_user(pd, &init, NULL, &p->request.driver_udata),
		      kvt_end_srq);
	KUNIT_ASSERT_EQ(test, 0, process_read(p, ANSWERS, &resp, sizeof(resp)));
	*ring = KVT_PTR(test, process_find_ring(p, &resp.mi));
	return srq;
}
EXPORT_SYMBOL_GPL(process_srq);

/**
 * process_modify_srq() - change the size or the limit of a process's SRQ
 * @p: the process
 * @srq: the SRQ
 * @attr: the new values
 * @mask: which of them
 * @ring: set to the new ring, if there is one
 *
 * Return: 0, or what the driver returned; -EFAULT if the process was told of no ring.
 */
int process_modify_srq(struct process *p, struct ib_srq *srq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct emu_uring **ring)
{
	struct rxe_modify_srq_cmd cmd = { .mmap_info_addr = p->page + RESIZED };
	struct mminfo info;
	int err;

	if (copy_to_user((void __user *)(p->page + REQUESTS), &cmd, sizeof(cmd)))
		return -EFAULT;
	err = p->ibdev->ops.modify_srq(srq, attr, mask, &p->request.driver_udata);
	if (err || !(mask & IB_SRQ_MAX_WR))
		return err;
	err = process_read(p, RESIZED, &info, sizeof(info));
	if (err)
		return err;
	*ring = process_find_ring(p, &info);
	return *ring ? 0 : -EFAULT;
}
EXPORT_SYMBOL_GPL(process_modify_srq);

/**
 * process_make_qp() - make the queue pair of an end of a rig as a process's, in RESET
 * @test: the running case
 * @p: the process
 * @r: the rig, which has the attributes
 * @e: the end, on the process's device
 * @rings: set to where the process posts
 */
void process_make_qp(struct kunit *test, struct process *p, struct rig *r, struct rig_end *e,
		     struct process_rings *rings)
{
	struct ib_qp_init_attr init = r->init;
	struct rxe_create_qp_resp resp;

	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	init.srq = e->srq;
	init.qp_context = e;
	e->qp = KVT_OWN(test, ib_create_qp_user(p->ibdev, e->pd, &init, &p->request.driver_udata,
						NULL, NULL), kvt_end_qp);
	KUNIT_ASSERT_EQ(test, 0, process_read(p, ANSWERS, &resp, sizeof(resp)));
	rings->sq = KVT_PTR(test, process_find_ring(p, &resp.sq_mi));
	rings->rq = e->srq ? NULL : KVT_PTR(test, process_find_ring(p, &resp.rq_mi));
}
EXPORT_SYMBOL_GPL(process_make_qp);

/* Returns the entry to be written next; NULL if the ring is full. */
static void *process_reserve(struct emu_uring *ring)
{
	u32 pos = emu_uring_producer(ring);

	if (((pos + 1) & ring->mask) == emu_uring_consumer(ring))
		return NULL;
	return emu_uring_entry(ring, pos);
}

static void process_publish(struct emu_uring *ring)
{
	emu_uring_produce(ring, emu_uring_producer(ring) + 1);
}

/**
 * process_recv() - post a receive to the ring of a queue pair or of an SRQ
 * @ring: the ring
 * @id: wr_id
 * @sge: its elements
 * @num: their number
 *
 * Return: false if the ring is full.
 */
bool process_recv(struct emu_uring *ring, u64 id, const struct ib_sge *sge, int num)
{
	struct rxe_recv_wqe *wqe = process_reserve(ring);

	if (!wqe)
		return false;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = id;
	wqe->dma.num_sge = num;
	memcpy(wqe->dma.sge, sge, num * sizeof(*sge));
	process_publish(ring);
	return true;
}
EXPORT_SYMBOL_GPL(process_recv);

/**
 * process_post() - post a signaled request to the ring of a queue pair
 * @ring: the ring
 * @id: wr_id
 * @opcode: opcode, as librxe writes it
 * @sge: its elements
 * @num: their number
 *
 * The doorbell has to be rung for it.
 *
 * Return: false if the ring is full.
 */
bool process_post(struct emu_uring *ring, u64 id, u32 opcode, const struct ib_sge *sge, int num)
{
	struct rxe_send_wqe *wqe = process_reserve(ring);

	if (!wqe)
		return false;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = id;
	wqe->wr.opcode = opcode;
	wqe->wr.send_flags = IB_SEND_SIGNALED;
	wqe->dma.num_sge = num;
	memcpy(wqe->dma.sge, sge, num * sizeof(*sge));
	process_publish(ring);
	return true;
}
EXPORT_SYMBOL_GPL(process_post);

/**
 * process_send() - post a signaled SEND to the ring of a queue pair
 * @ring: the ring
 * @id: wr_id
 * @sge: its elements
 * @num: their number
 *
 * Return: as process_post().
 */
bool process_send(struct emu_uring *ring, u64 id, const struct ib_sge *sge, int num)
{
	return process_post(ring, id, IB_WR_SEND, sge, num);
}
EXPORT_SYMBOL_GPL(process_send);

/**
 * process_send_inline() - post a signaled SEND of data, as librxe does for ibv_wr_set_inline_data()
 * @ring: the ring
 * @id: wr_id
 * @data: the data, for which the queue pair has room
 * @length: bytes
 *
 * Return: as process_post().
 */
bool process_send_inline(struct emu_uring *ring, u64 id, const void *data, u32 length)
{
	struct rxe_send_wqe *wqe = process_reserve(ring);

	if (!wqe)
		return false;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = id;
	wqe->wr.opcode = IB_WR_SEND;
	wqe->wr.send_flags = IB_SEND_SIGNALED;
	wqe->dma.length = length;
	memcpy(wqe->dma.inline_data, data, length);
	process_publish(ring);
	return true;
}
EXPORT_SYMBOL_GPL(process_send_inline);

/**
 * process_doorbell() - tell of sends that are posted
 * @qp: the queue pair
 *
 * Return: what the driver returned.
 */
int process_doorbell(struct ib_qp *qp)
{
	const struct ib_send_wr *bad;

	return qp->device->ops.post_send(qp, NULL, &bad);
}
EXPORT_SYMBOL_GPL(process_doorbell);

/**
 * process_poll() - take a completion
 * @ring: of the CQ
 * @wc: filled in
 *
 * Return: false if there is none.
 */
bool process_poll(struct emu_uring *ring, struct ib_uverbs_wc *wc)
{
	u32 pos = emu_uring_consumer(ring);

	if (pos == emu_uring_producer(ring))
		return false;
	memcpy(wc, emu_uring_entry(ring, pos), sizeof(*wc));
	emu_uring_consumed(ring, pos + 1);
	return true;
}
EXPORT_SYMBOL_GPL(process_poll);

/**
 * process_used() - count the entries of a ring
 * @ring: the ring
 *
 * Return: how many are posted, or to be polled.
 */
u32 process_used(const struct emu_uring *ring)
{
	return (emu_uring_producer(ring) - emu_uring_consumer(ring)) & ring->mask;
}
EXPORT_SYMBOL_GPL(process_used);

MODULE_IMPORT_NS(KVERBS_INTERNAL);
