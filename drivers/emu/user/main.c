// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts of processes, and the methods by which processes open a device.
 *
 * Our devices have rdma_rxe's driver number, because libibverbs chooses the provider by it. The
 * core chooses by it, too, which devices to unregister when a driver is unloaded: rdma_rxe would
 * take our devices with its own. So the two must not be loaded at the same time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/namei.h>
#include <rdma/uverbs_ioctl.h>

#include "methods.h"
#include "user.h"

/* The version of the ABI that librxe knows. */
#define EMU_UVERBS_ABI	2

#define EMU_OTHER_DRIVER "rdma_rxe"

struct emu_ucontext {
	struct ib_ucontext ibuc;
};

static int emu_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	return 0;
}

/* Nothing to do: the core has destroyed all objects of the context. */
static void emu_dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * Called if the device is removed while a process has it open. Nothing to do: the core destroys
 * all objects, and a ring that is still mapped is merely memory.
 */
static void emu_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static const struct ib_device_ops emu_user_methods = {
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = EMU_UVERBS_ABI,

	.alloc_ucontext = emu_alloc_ucontext,
	.create_user_ah = emu_user_create_ah,
	.dealloc_ucontext = emu_dealloc_ucontext,
	.destroy_ah = emu_user_destroy_ah,
	.disassociate_ucontext = emu_disassociate_ucontext,
	.mmap = emu_user_mmap,
	.mmap_free = emu_user_mmap_free,

	INIT_RDMA_OBJ_SIZE(ib_ah, emu_user_ah, ah.ibah),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, emu_ucontext, ibuc),
};

static int emu_user_module_event(struct notifier_block *nb, unsigned long state, void *data)
{
	const struct module *module = data;

	if (state != MODULE_STATE_COMING || strcmp(module->name, EMU_OTHER_DRIVER))
		return NOTIFY_DONE;
	pr_err("%s cannot be loaded beside this module: both are RDMA_DRIVER_RXE to user space. Unload kverbs_emu first\n",
	       EMU_OTHER_DRIVER);
	return notifier_from_errno(-EBUSY);
}

static struct notifier_block emu_user_module_nb = {
	.notifier_call = emu_user_module_event,
};

/**
 * emu_user_init() - make sure that rdma_rxe is not loaded
 *
 * Context: Process.
 * Return: 0; -EBUSY if it is.
 */
int emu_user_init(void)
{
	struct path path;
	int err;

	/* The notifier comes first, or the module might be loaded between the two. */
	err = register_module_notifier(&emu_user_module_nb);
	if (err)
		return err;
	if (kern_path("/sys/module", 0, &path)) {
		pr_warn("no /sys/module to see whether %s is loaded: make sure that it is not\n",
			EMU_OTHER_DRIVER);
		return 0;
	}
	path_put(&path);
	if (kern_path("/sys/module/" EMU_OTHER_DRIVER, 0, &path))
		return 0;
	path_put(&path);
	pr_err("cannot be loaded beside %s: both are RDMA_DRIVER_RXE to user space. Unload that first\n",
	       EMU_OTHER_DRIVER);
	unregister_module_notifier(&emu_user_module_nb);
	return -EBUSY;
}

void emu_user_exit(void)
{
	unregister_module_notifier(&emu_user_module_nb);
}

static void emu_user_reset_qp(struct emu_qp *qp)
{
	emu_user_drop_sends(qp, emu_user_sends_end(qp));
	if (qp->user_rq)
		emu_user_reset_rq(qp);
}

static const struct emu_user_ops emu_user_queues = {
	.fetch = emu_user_fetch,
	.claim = emu_user_claim,
	.used = emu_user_used,
	.depth = emu_user_depth,
	.reset = emu_user_reset_qp,
	.sends_end = emu_user_sends_end,
	.drop_sends = emu_user_drop_sends,
	.flushed = emu_user_watch_recvs,
	.completed = emu_user_completed,
	.settle = emu_user_settle_cq,
};

/**
 * emu_user_setup() - let processes open a device
 * @ibdev: the device, not registered yet
 *
 * To processes the device looks like one of rdma_rxe: libibverbs finds the provider by the driver's
 * number, whatever the name of the device. Processes post and poll in shared memory. The commands
 * that remain are the request for a notification, and the post of an empty list, which is the
 * doorbell.
 *
 * Context: Process.
 */
void emu_user_setup(struct ib_device *ibdev)
{
	emu_user = &emu_user_queues;
	ib_set_device_ops(ibdev, &emu_user_methods);
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
}

/* Copies a response to the process, which must have room for all of it. */
int emu_user_respond(struct ib_udata *udata, const void *resp, size_t bytes)
{
	if (udata->outlen < bytes)
		return -EINVAL;
	return ib_copy_to_udata(udata, (void *)resp, bytes);
}

/* Returns the context that a request came from. */
struct ib_ucontext *emu_user_context(struct ib_udata *udata)
{
	return &rdma_udata_to_drv_context(udata, struct emu_ucontext, ibuc)->ibuc;
}
