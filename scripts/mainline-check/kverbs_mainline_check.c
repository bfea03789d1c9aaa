// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the software HCA does by itself under mainline's core, checked on emu0 when this
 * module is loaded: it refuses what exceeds the device's limits, and serves memory of the
 * process that loads the module. Loading fails if anything is wrong, and the log says what.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define BYTES	10000
/* Neither at the beginning of a page nor at the end of one. */
#define SKIP	100

struct check {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	int failed;
};

static int result = -ENODEV;

static char *cached_of;
module_param(cached_of, charp, 0444);
MODULE_PARM_DESC(cached_of,
		 "Check only whether the core knows the state of this device's port (default: check emu0)");

static void expect(struct check *c, bool right, const char *what)
{
	if (right)
		return;
	pr_err("%s\n", what);
	c->failed++;
}

static struct ib_qp *make_qp(struct check *c, u32 max_send_wr, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.send_cq = cq, .recv_cq = c->cq,
		.cap = { .max_send_wr = max_send_wr, .max_send_sge = 1 },
	};

	return ib_create_qp(c->pd, &init);
}

/* Connects the queue pair with itself. Returns 0 or an errno. */
static int connect(struct check *c, const struct ib_port_attr *port)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ib_modify_qp(c->qp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_4096, .dest_qp_num = c->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
	};
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, port->lid);
	expect(c, ib_modify_qp(c->qp, &(struct ib_qp_attr) { .qp_state = IB_QPS_ERR + 1 },
			       IB_QP_STATE) == -EINVAL, "a state beyond the last was taken");
	err = ib_modify_qp(c->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS, .timeout = 32, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	expect(c, ib_modify_qp(c->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			       IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC) == -EINVAL,
	       "a timeout beyond 31 was taken");
	attr.timeout = 14;
	return ib_modify_qp(c->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int post_and_wait(struct check *c, const struct ib_send_wr *wr)
{
	unsigned long end = jiffies + 10 * HZ;
	struct ib_wc wc;
	int got, err;

	err = ib_post_send(c->qp, wr, NULL);
	if (err)
		return err;
	while (!(got = ib_poll_cq(c->cq, 1, &wc)) && time_before(jiffies, end))
		cond_resched();
	return got == 1 && wc.status == IB_WC_SUCCESS ? 0 : -EIO;
}

/* A region of two parts of the caller's memory: an RDMA WRITE copies the first to the second. */
static void check_user_memory(struct check *c)
{
	unsigned long addr = vm_mmap(NULL, 0, 4 * BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	u8 byte = 0, last = 0x5a;
	struct ib_rdma_wr wr = {};
	struct ib_sge sge;
	struct ib_mr *mr;

	if (IS_ERR_VALUE(addr)) {
		expect(c, false, "no memory for the process");
		return;
	}
	addr += SKIP;
	if (put_user(last, (u8 __user *)addr + BYTES - 1))
		expect(c, false, "the memory cannot be written");
	mr = ib_reg_user_mr(c->pd, addr, 2 * BYTES, addr,
			    IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	if (IS_ERR(mr)) {
		pr_err("ib_reg_user_mr(): %ld\n", PTR_ERR(mr));
		c->failed++;
		goto unmap;
	}
	sge = (struct ib_sge) { .addr = addr, .length = BYTES, .lkey = mr->lkey };
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	wr.remote_addr = addr + BYTES;
	wr.rkey = mr->rkey;
	expect(c, !post_and_wait(c, &wr.wr), "an RDMA WRITE of the process's memory failed");
	expect(c, !get_user(byte, (u8 __user *)addr + 2 * BYTES - 1) && byte == last,
	       "the last byte did not arrive");
	expect(c, !ib_dereg_mr(mr), "the region cannot be deregistered");
	wr.wr.opcode = IB_WR_BIND_MW;
	expect(c, ib_post_send(c->qp, &wr.wr, NULL) == -EINVAL, "a bind was taken");
unmap:
	vm_munmap(addr - SKIP, 4 * BYTES);
}

static void check_limits(struct check *c)
{
	const struct ib_device_attr *limit = &c->pd->device->attrs;
	struct ib_srq_init_attr srq = { .attr = { .max_wr = limit->max_srq_wr + 1, .max_sge = 1 } };
	struct ib_cq_init_attr cq = { .cqe = 1, .comp_vector = c->pd->device->num_comp_vectors };

	expect(c, make_qp(c, limit->max_qp_wr + 1, c->cq) == ERR_PTR(-EINVAL),
	       "a send queue beyond max_qp_wr was made");
	expect(c, make_qp(c, 1, NULL) == ERR_PTR(-EINVAL), "a QP without a CQ was made");
	expect(c, ib_create_srq(c->pd, &srq) == ERR_PTR(-EINVAL), "an SRQ beyond max_srq_wr was made");
	srq.attr.max_wr = 1;
	srq.srq_type = IB_SRQT_XRC;
	srq.ext.cq = c->cq;
	expect(c, ib_create_srq(c->pd, &srq) == ERR_PTR(-EOPNOTSUPP), "an XRC SRQ was made");
	expect(c, ib_create_cq(c->pd->device, NULL, NULL, NULL, &cq) == ERR_PTR(-EINVAL),
	       "a CQ of a completion vector that is not there was made");
}

static int check_device(struct ib_device *device)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct ib_port_attr port;
	struct check c = {};

	c.pd = ib_alloc_pd(device, 0);
	if (IS_ERR(c.pd))
		return PTR_ERR(c.pd);
	c.cq = ib_create_cq(device, NULL, NULL, NULL, &attr);
	expect(&c, !IS_ERR(c.cq), "no CQ");
	if (IS_ERR(c.cq))
		goto dealloc;
	check_limits(&c);
	c.qp = make_qp(&c, 16, c.cq);
	expect(&c, !IS_ERR(c.qp), "no QP");
	if (IS_ERR(c.qp))
		goto free_cq;
	if (ib_query_port(device, 1, &port) || connect(&c, &port))
		expect(&c, false, "the QP cannot be connected");
	else
		check_user_memory(&c);
	ib_destroy_qp(c.qp);
free_cq:
	ib_destroy_cq(c.cq);
dealloc:
	ib_dealloc_pd(c.pd);
	return c.failed ? -EIO : 0;
}

/* The core refreshes its copy of the state some time after the event; then both are the same. */
static int check_cached(struct ib_device *device)
{
	enum ib_port_state cached;
	struct ib_port_attr port;
	int err;

	err = ib_query_port(device, 1, &port) ?: ib_get_cached_port_state(device, 1, &cached);
	if (!err && cached != port.state)
		err = -EAGAIN;
	return err;
}

static int check_add(struct ib_device *device)
{
	if (cached_of && !strcmp(dev_name(&device->dev), cached_of))
		result = check_cached(device);
	else if (!cached_of && !strcmp(dev_name(&device->dev), "emu0"))
		result = check_device(device);
	return 0;
}

static struct ib_client check_client = {
	.name = "kverbs_mainline_check",
	.add = check_add,
};

static int __init check_init(void)
{
	int err;

	err = ib_register_client(&check_client);
	if (err)
		return err;
	if (result)
		ib_unregister_client(&check_client);
	return result;
}

static void __exit check_exit(void)
{
	ib_unregister_client(&check_client);
}

module_init(check_init);
module_exit(check_exit);

MODULE_DESCRIPTION("Checks of the software HCA under mainline's core");
MODULE_LICENSE("GPL");
