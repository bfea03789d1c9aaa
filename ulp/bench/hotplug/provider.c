// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device of this module's own, which does no work but can be unregistered at any
 * moment and from any context: during its registration, from a client's add(), from the
 * work item of an event handler. <debugfs>/kverbs_hotplug/device takes these words:
 *
 *  on     register it; returns after all clients have been notified
 *  off    unregister it if it exists, and wait until it is gone
 *  fatal  report that it is broken
 *
 * The device is freed at the end of its unregistration. It is looked up by its name, so
 * this file needs no lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "hotplug.h"

#define HP_DEVICE	"hotplug0"
/* A number is required; no machine that runs our core can have this hardware. */
#define HP_DRIVER	RDMA_DRIVER_USNIC
#define HP_CQES		64
#define HP_WRS		64

struct hp_pd { struct ib_pd pd; };
struct hp_cq { struct ib_cq cq; };
struct hp_dqp { struct ib_qp qp; };

static int hp_query_device(struct ib_device *dev, struct ib_device_attr *attr,
			   struct ib_udata *udata)
{
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_qp = 1;
	attr->max_qp_wr = HP_WRS;
	attr->max_cq = 1;
	attr->max_cqe = HP_CQES;
	return 0;
}

static int hp_query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_ACTIVE;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	return 0;
}

static int hp_get_port_immutable(struct ib_device *dev, u32 port,
				 struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	return 0;
}

static int hp_query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	return -EINVAL;
}

static int hp_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int hp_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int hp_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			struct uverbs_attr_bundle *attrs)
{
	cq->cqe = attr->cqe;
	return 0;
}

static int hp_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

static int hp_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	return 0;
}

static int hp_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static int hp_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

static int hp_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

static int hp_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

static int hp_no_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	*bad = wr;
	return -EOPNOTSUPP;
}

static int hp_no_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -EOPNOTSUPP;
}

static struct ib_mr *hp_get_dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int hp_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	return 0;
}

/*
 * There is nothing to free here, but only with this method does the midlayer free the
 * device.
 */
static void hp_dealloc_driver(struct ib_device *dev)
{
}

static const struct ib_device_ops hp_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = HP_DRIVER,

	.alloc_pd = hp_alloc_pd,
	.create_cq = hp_create_cq,
	.create_qp = hp_create_qp,
	.dealloc_driver = hp_dealloc_driver,
	.dealloc_pd = hp_dealloc_pd,
	.dereg_mr = hp_dereg_mr,
	.destroy_cq = hp_destroy_cq,
	.destroy_qp = hp_destroy_qp,
	.get_dma_mr = hp_get_dma_mr,
	.get_port_immutable = hp_get_port_immutable,
	.modify_qp = hp_modify_qp,
	.poll_cq = hp_poll_cq,
	.post_recv = hp_no_recv,
	.post_send = hp_no_send,
	.query_device = hp_query_device,
	.query_pkey = hp_query_pkey,
	.query_port = hp_query_port,
	.req_notify_cq = hp_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, hp_cq, cq),
	INIT_RDMA_OBJ_SIZE(ib_pd, hp_pd, pd),
	INIT_RDMA_OBJ_SIZE(ib_qp, hp_dqp, qp),
};

/**
 * hp_is_own_device() - tell whether a device is the one of this file
 * @dev: a device
 *
 * Return: true if it is.
 */
bool hp_is_own_device(const struct ib_device *dev)
{
	return dev->ops.query_device == hp_query_device;
}

static int hp_device_on(void)
{
	struct ib_device *dev;
	int ret;

	dev = _ib_alloc_device(sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->node_type = RDMA_NODE_IB_CA;
	dev->phys_port_cnt = 1;
	dev->num_comp_vectors = 1;
	dev->local_dma_lkey = 1;
	ib_set_device_ops(dev, &hp_device_ops);
	ret = ib_register_device(dev, HP_DEVICE, NULL);
	/* On success, the device may be gone already. */
	if (ret)
		ib_dealloc_device(dev);
	return ret;
}

static int hp_device_off(void)
{
	struct ib_device *dev = ib_device_get_by_name(HP_DEVICE, HP_DRIVER);

	if (dev)
		ib_unregister_device_and_put(dev);
	/*
	 * A device whose unregistration has begun is not found any more, but still has
	 * the name.
	 */
	ib_unregister_driver(HP_DRIVER);
	return 0;
}

static int hp_device_fatal(void)
{
	struct ib_device *dev = ib_device_get_by_name(HP_DEVICE, HP_DRIVER);
	struct ib_event event = { .device = dev, .event = IB_EVENT_DEVICE_FATAL };

	if (!dev)
		return -ENODEV;
	ib_dispatch_event(&event);
	ib_device_put(dev);
	return 0;
}

static int hp_device_command(const char *word)
{
	if (!strcmp(word, "on"))
		return hp_device_on();
	if (!strcmp(word, "off"))
		return hp_device_off();
	return strcmp(word, "fatal") ? -EINVAL : hp_device_fatal();
}

static ssize_t hp_device_write(struct file *file, const char __user *buf, size_t len,
			       loff_t *pos)
{
	char word[8] = "";
	int ret;

	if (len >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, buf, len))
		return -EFAULT;
	ret = hp_device_command(strim(word));
	return ret ?: len;
}

static const struct file_operations hp_device_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = hp_device_write,
};

/**
 * hp_provider_init - add the device's file
 * @dir: debugfs directory
 */
void hp_provider_init(struct dentry *dir)
{
	debugfs_create_file("device", 0200, dir, NULL, &hp_device_fops);
}

/**
 * hp_provider_exit - unregister the device, after its file has been removed
 */
void hp_provider_exit(void)
{
	ib_unregister_driver(HP_DRIVER);
}
