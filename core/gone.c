// SPDX-License-Identifier: GPL-2.0-only
/*
 * The methods of a device that was freed with objects left on it.
 *
 * Its driver has given it up, and its code and hardware may be gone. Who has left the
 * objects may use them all the same: then the memory must be there, for the contract
 * checker to tell of it, and no method of the driver's may be called. So the memory stays
 * for good, and each call fails. Those for which there is no method here are refused as
 * by a device that never had them; the others are called without a look.
 */
#include <linux/build_bug.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/stddef.h>

#include "core_priv.h"

#define GONE(method, ...)						\
static int gone_##method(__VA_ARGS__)					\
{									\
	return -ENODEV;							\
}

static int gone_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int gone_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int gone_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

GONE(poll_cq, struct ib_cq *cq, int nr, struct ib_wc *wc)
GONE(req_notify_cq, struct ib_cq *cq, enum ib_cq_notify_flags flags)
GONE(query_device, struct ib_device *device, struct ib_device_attr *attr, struct ib_udata *udata)
GONE(query_port, struct ib_device *device, u32 port, struct ib_port_attr *attr)
GONE(get_port_immutable, struct ib_device *device, u32 port, struct ib_port_immutable *immutable)
GONE(alloc_pd, struct ib_pd *pd, struct ib_udata *udata)
GONE(dealloc_pd, struct ib_pd *pd, struct ib_udata *udata)
GONE(destroy_ah, struct ib_ah *ah, u32 flags)
GONE(destroy_srq, struct ib_srq *srq, struct ib_udata *udata)
GONE(create_qp, struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
GONE(modify_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
GONE(destroy_qp, struct ib_qp *qp, struct ib_udata *udata)
GONE(create_cq, struct ib_cq *cq, const struct ib_cq_init_attr *a, struct uverbs_attr_bundle *b)
GONE(modify_cq, struct ib_cq *cq, u16 count, u16 period)
GONE(destroy_cq, struct ib_cq *cq, struct ib_udata *udata)
GONE(dereg_mr, struct ib_mr *mr, struct ib_udata *udata)
GONE(resume_mr, struct ib_mr *mr, struct ib_umem *umem)
GONE(dealloc_mw, struct ib_mw *mw)
GONE(unmap_fmr, struct list_head *fmrs)
GONE(map_phys_fmr, struct ib_fmr *fmr, u64 *pages, int nr, u64 iova)
GONE(dealloc_fmr, struct ib_fmr *fmr)

static struct ib_mr *gone_get_dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-ENODEV);
}

/* The device reaches nothing any more. */
static void gone_without_mr(struct ib_mr *mr)
{
}

static const struct ib_device_ops gone_ops = {
	.post_send = gone_post_send,
	.post_recv = gone_post_recv,
	.post_srq_recv = gone_post_srq_recv,
	.poll_cq = gone_poll_cq,
	.req_notify_cq = gone_req_notify_cq,
	.query_device = gone_query_device,
	.query_port = gone_query_port,
	.get_port_immutable = gone_get_port_immutable,
	.alloc_pd = gone_alloc_pd,
	.dealloc_pd = gone_dealloc_pd,
	.destroy_ah = gone_destroy_ah,
	.destroy_srq = gone_destroy_srq,
	.create_qp = gone_create_qp,
	.modify_qp = gone_modify_qp,
	.destroy_qp = gone_destroy_qp,
	.create_cq = gone_create_cq,
	.modify_cq = gone_modify_cq,
	.destroy_cq = gone_destroy_cq,
	.get_dma_mr = gone_get_dma_mr,
	.dereg_mr = gone_dereg_mr,
	.revoke_mr = gone_without_mr,
	.pause_mr = gone_without_mr,
	.resume_mr = gone_resume_mr,
	.dealloc_mw = gone_dealloc_mw,
	.map_phys_fmr = gone_map_phys_fmr,
	.unmap_fmr = gone_unmap_fmr,
	.dealloc_fmr = gone_dealloc_fmr,
};

/*
 * The device, whose driver gives it up, becomes one that does nothing, and stays. Who left
 * the objects may call at this very moment: no method that is called without a look is ever
 * NULL.
 */
void ib_device_gone(struct ib_device *dev)
{
	const size_t start = offsetof(struct ib_device_ops, device_group);
	const size_t end = offsetof(struct ib_device_ops, size_ib_ah);
	void * const *from = (void *)&gone_ops + start;
	void **to = (void *)&dev->ops + start;
	size_t i;

	/* Nothing but pointers. */
	BUILD_BUG_ON((end - start) % sizeof(*to));
	for (i = 0; i < (end - start) / sizeof(*to); i++)
		WRITE_ONCE(to[i], from[i]);
	dev->ops.owner = NULL;
	get_device(&dev->dev);
}
