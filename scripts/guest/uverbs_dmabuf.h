/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Regions of dma-bufs. librxe of rdma-core 44 has no call for them, but the kernel has, so this
 * calls its methods of memory regions by itself.
 */
#ifndef UVERBS_DMABUF_H
#define UVERBS_DMABUF_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include "uverbs.h"

struct dmabuf_mr {
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

static inline struct ib_uverbs_attr attr_in(int id, uint64_t value, int len)
{
	return (struct ib_uverbs_attr) {
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = value,
	};
}

static inline int mr_method(struct pair *p, int method, const struct ib_uverbs_attr *attrs, int nr,
			    uint32_t *handle)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[10];
	} req = {
		.hdr = { .length = sizeof(req.hdr) + nr * sizeof(*attrs), .num_attrs = nr,
			 .object_id = UVERBS_OBJECT_MR, .method_id = method,
			 .driver_id = RDMA_DRIVER_RXE },
	};
	int err;

	memcpy(req.attrs, attrs, nr * sizeof(*attrs));
	err = ioctl(p->ctx->cmd_fd, RDMA_VERBS_IOCTL, &req);
	*handle = req.attrs[0].data;
	return err;
}

/* The region begins at address 0. */
static inline int reg_dmabuf(struct pair *p, int fd, uint64_t length, int access,
			     struct dmabuf_mr *mr)
{
	const struct ib_uverbs_attr attrs[] = {
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, p->pd->handle, 0),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 0, 8),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length, 8),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 0, 8),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_FD, fd, 4),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access, 4),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, (uintptr_t)&mr->lkey, 4),
		attr_in(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, (uintptr_t)&mr->rkey, 4),
	};

	return mr_method(p, UVERBS_METHOD_REG_DMABUF_MR, attrs, 9, &mr->handle);
}

static inline int dereg_dmabuf(struct pair *p, struct dmabuf_mr *mr)
{
	const struct ib_uverbs_attr attr = attr_in(UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle, 0);

	return mr_method(p, UVERBS_METHOD_MR_DESTROY, &attr, 1, &mr->handle);
}

#endif
