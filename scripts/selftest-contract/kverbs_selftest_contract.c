// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded breaches of the contract that no KUnit case can have: one stops the machine, one
 * is only reported, and one is lockdep's to find. Chosen by the parameter "fault"; each must turn a
 * run red, "contract_none" must leave it green. There must be a device.
 */
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <kverbs/contract.h>
#include <rdma/ib_verbs.h>

static char *fault = "contract_none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "contract_none, contract_panic, contract_warn or contract_locks");

static DEFINE_MUTEX(config);
static unsigned int nr_devices;

/* What a client's methods take must not be held by who waits for them. */
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

/* It waits for nobody's method this time: there is no deadlock, but there may be one. */
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

static int __init selftest_init(void)
{
	int ret;

	if (!strcmp(fault, "contract_panic"))
		return register_atomically(IB_CONTRACT_PANIC);
	if (!strcmp(fault, "contract_warn"))
		return register_atomically(IB_CONTRACT_WARN) == -EINVAL ? 0 : -ENODATA;
	ret = ib_register_client(&locking);
	if (ret)
		return ret;
	if (!strcmp(fault, "contract_locks"))
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
	if (strcmp(fault, "contract_warn"))
		ib_unregister_client(&locking);
}
module_exit(selftest_exit);

MODULE_DESCRIPTION("Breaches of the contract that the machine must notice");
MODULE_LICENSE("GPL");
