// SPDX-License-Identifier: GPL-2.0-only
/* Mainline's reg_user_mr_dmabuf method is passed the attributes of an ioctl (6.11). */
#include <rdma/ib_verbs.h>

static struct ib_mr *probe_reg(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd,
			       int access, struct uverbs_attr_bundle *attrs)
{
	return NULL;
}

const struct ib_device_ops probe_ops = {
	.reg_user_mr_dmabuf = probe_reg,
};
