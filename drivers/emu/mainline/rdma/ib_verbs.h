/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mainline's header, with what the software HCA uses besides. Kernel consumers of mainline
 * have no windows, so there is no request to bind one.
 */
#ifndef KVERBS_EMU_MAINLINE_VERBS_H
#define KVERBS_EMU_MAINLINE_VERBS_H

#include_next <rdma/ib_verbs.h>

/* Older kernels do not know this speed; ports may have it all the same. */
#ifndef HAVE_IB_SPEED_XDR
#define IB_SPEED_XDR 256
#endif

/* Nor these operations: processes may know the second. */
#ifndef HAVE_IB_WR_FLUSH
#define IB_WR_FLUSH 14
#define IB_WR_ATOMIC_WRITE 15
#define IB_WC_ATOMIC_WRITE 9
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#endif

/* The software HCA reports events of devices that are not registered, too. */
void emu_dispatch_event(const struct ib_event *event);
#define ib_dispatch_event(event) emu_dispatch_event(event)

/* Mainline's core asks for network devices, and does not keep them; see core_mainline.c. */
int emu_set_netdev(struct ib_device *ibdev, struct net_device *netdev, u32 port_num);
#define ib_device_set_netdev(ibdev, netdev, port_num) emu_set_netdev(ibdev, netdev, port_num)

/* Mainline's core has no words for a request that a driver refuses. */
#define emu_post_failed(ibdev, verb, bad, err)							\
	do {											\
		if ((err) == -EINVAL)								\
			ibdev_warn_ratelimited(ibdev, verb ": wr_id %#llx refused, num_sge %d\n",	\
					       (bad)->wr_id, (bad)->num_sge);			\
	} while (0)
#define ib_post_send_failed(qp, bad, err) emu_post_failed((qp)->device, "post_send", bad, err)
#define ib_post_recv_failed(qp, bad, err) emu_post_failed((qp)->device, "post_recv", bad, err)
#define ib_post_srq_recv_failed(srq, bad, err)							\
	emu_post_failed((srq)->device, "post_srq_recv", bad, err)

/**
 * struct ib_bind_mw_wr - binding of a memory window
 * @wr: part that all requests have
 * @mw: the window
 * @rkey: its new key: the current one with another low byte
 * @bind_info: what to bind it to
 */
struct ib_bind_mw_wr {
	struct ib_send_wr wr;
	struct ib_mw *mw;
	u32 rkey;
	struct {
		struct ib_mr *mr;
		u64 addr;
		u64 length;
		int mw_access_flags;
	} bind_info;
};

static inline const struct ib_bind_mw_wr *bind_mw_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_bind_mw_wr, wr);
}

#endif
