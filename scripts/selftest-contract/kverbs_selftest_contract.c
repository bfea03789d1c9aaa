// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded breaches of the contract that no KUnit case can contain: one stops the machine,
 * one is only reported, and lockdep must find another. The others are for kernels without
 * KUnit: in a driver's post_send(), and a client that leaves something behind, for a
 * while or for ever. The parameter "fault" selects one; each must turn a run red, while
 * "contract_none" and "contract_kept" must leave it green. A device is required.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <kverbs/completion.h>
#include <kverbs/contract.h>
#include <rdma/ib_verbs.h>

static char *fault = "contract_none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault,
		 "contract_{none,panic,warn,locks}; with contract=warn, _{kept,sleep,chain,left,lost}");

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static DEFINE_MUTEX(config);
static unsigned int nr_devices;

/* A lock that a client's methods take must not be held while waiting for them. */
static int add(struct ib_device *dev)
{
	mutex_lock(&config);
	nr_devices++;
	mutex_unlock(&config);
	return 0;
}

static void remove(struct ib_device *dev, void *data)
{
	mutex_lock(&config);
	nr_devices--;
	mutex_unlock(&config);
}

static struct ib_client locking = {
	.name = "selftest_locking", .add = add, .remove = remove,
};

static struct ib_client other = { .name = "selftest_other" };

/* This call waits for no method: there is no deadlock this time, but there could be one. */
static int register_under_lock(void)
{
	int ret;

	mutex_lock(&config);
	ret = ib_register_client(&other);
	mutex_unlock(&config);
	if (!ret)
		ib_unregister_client(&other);
	return ret;
}

static int register_before_lock(void)
{
	int ret = ib_register_client(&other);

	mutex_lock(&config);
	nr_devices = max(nr_devices, 1U);
	mutex_unlock(&config);
	if (!ret)
		ib_unregister_client(&other);
	return ret;
}

static int register_atomically(enum ib_contract_mode mode)
{
	int ret = ib_contract_set_mode(mode);

	if (ret)
		return ret;
	local_irq_disable();
	ret = ib_register_client(&other);
	local_irq_enable();
	return ret;
}

static DECLARE_COMPLETION(told);
static struct ib_pd *pd;

static void tell(struct ib_cq *cq, void *context)
{
	complete(&told);
}

/* A driver's method: it must not sleep, and completion handlers run only later. */
static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	if (is("contract_sleep"))
		msleep(20);
	else
		udelay(20);
	if (is("contract_chain"))
		qp->send_cq->comp_handler(qp->send_cq, qp->send_cq->cq_context);
	else
		ib_cq_notify(qp->send_cq);
	return 0;
}

static int post(struct ib_qp *qp)
{
	int (*own)(struct ib_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad) = qp->device->ops.post_send;
	struct ib_qp_attr init = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	int ret = ib_modify_qp(qp, &init, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					  IB_QP_ACCESS_FLAGS) ?:
		  ib_modify_qp(qp, &error, IB_QP_STATE);

	if (ret)
		return ret;
	qp->device->ops.post_send = post_send;
	ret = ib_post_send(qp, &wr, NULL);
	qp->device->ops.post_send = own;
	return ret;
}

static int use(struct ib_device *dev)
{
	struct ib_cq_init_attr attr = { .cqe = 4 };
	struct ib_cq *cq = ib_create_cq(dev, tell, NULL, NULL, &attr);
	struct ib_qp_init_attr init = { .qp_type = IB_QPT_RC, .send_cq = cq, .recv_cq = cq,
					.cap = { .max_send_wr = 2, .max_recv_wr = 2 } };
	struct ib_qp *qp;
	int ret;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	qp = ib_create_qp(pd, &init);
	ret = PTR_ERR_OR_ZERO(qp);
	if (!ret) {
		ret = post(qp);
		if (!ret && !wait_for_completion_timeout(&told, 30 * HZ))
			ret = -ETIMEDOUT;
		ib_destroy_qp(qp);
	}
	ib_destroy_cq(cq);
	return ret;
}

/* The result of add(), which the registration does not report. */
static int added = -ENODEV;

static int using_add(struct ib_device *dev)
{
	pd = ib_alloc_pd(dev, 0);
	added = PTR_ERR_OR_ZERO(pd);
	if (added)
		return added;
	added = use(dev);
	if (added)
		ib_dealloc_pd(pd);
	return added;
}

static void using_remove(struct ib_device *dev, void *data)
{
	if (!is("contract_left") && !is("contract_lost"))
		ib_dealloc_pd(pd);
}

static struct ib_client using = {
	.name = "selftest_using", .add = using_add, .remove = using_remove,
};

static int register_using(void)
{
	int ret = ib_register_client(&using);

	if (!ret && added) {
		ib_unregister_client(&using);
		ret = added;
	}
	return ret;
}

static bool is_using(void)
{
	return is("contract_kept") || is("contract_sleep") || is("contract_chain") ||
	       is("contract_left") || is("contract_lost");
}

static int __init selftest_init(void)
{
	int ret;

	if (is("contract_panic"))
		return register_atomically(IB_CONTRACT_PANIC);
	if (is("contract_warn"))
		return register_atomically(IB_CONTRACT_WARN) == -EINVAL ? 0 : -ENODATA;
	if (is_using())
		return register_using();
	ret = ib_register_client(&locking);
	if (ret)
		return ret;
	if (is("contract_locks"))
		ret = register_under_lock();
	else
		ret = register_before_lock();
	if (ret)
		ib_unregister_client(&locking);
	return ret;
}
module_init(selftest_init);

static void __exit selftest_exit(void)
{
	if (is_using())
		ib_unregister_client(&using);
	else if (!is("contract_warn"))
		ib_unregister_client(&locking);
	/*
	 * The client may not use what it left behind. No tail call, as that would hide the
	 * caller.
	 */
	if (is("contract_left")) {
		ib_dealloc_pd(pd);
		pd = NULL;
	}
}
module_exit(selftest_exit);

MODULE_DESCRIPTION("Breaches of the contract that the machine must notice");
MODULE_LICENSE("GPL");
