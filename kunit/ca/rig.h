/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers shared by the suites that test channel adapter requests.
 */
#ifndef KVT_CA_RIG_H
#define KVT_CA_RIG_H

#include <kverbs/ca.h>

#include "lib/lib.h"

#define CA_REQ(operation, ...)						\
	((struct ib_ca_request) {					\
		.op = KVERBS_CA_##operation,				\
		.version = KVERBS_CA_VERSION,				\
		##__VA_ARGS__						\
	})

/* Makes a synchronous request as an in-kernel consumer does; yields its result. */
#define CA_CALL(ibdev, operation, ...)					\
({									\
	struct ib_ca_request _req = CA_REQ(operation, ##__VA_ARGS__);	\
									\
	ib_ca_call(ibdev, &_req);					\
})

u64 ca_rig_open(struct kunit *test, struct ib_device *ibdev);
u64 ca_rig_pd(struct kunit *test, struct ib_device *ibdev, u64 handle);
u64 ca_rig_reg(struct kunit *test, struct ib_device *ibdev, u64 handle,
	       const struct kverbs_ca_reg_mr *reg);
ssize_t ca_rig_dereg(struct ib_device *ibdev, u64 handle, u64 object);
ssize_t ca_rig_dealloc(struct ib_device *ibdev, u64 handle, u64 object);
ssize_t ca_rig_close(struct ib_device *ibdev, u64 handle);

const struct kverbs_ca_attr *ca_rig_attr(struct kunit *test, struct ib_device *ibdev, u64 handle);
const struct kverbs_ca_port_attr *ca_rig_port(struct kunit *test,
					      struct ib_device *ibdev,
					      u64 handle, u32 port);
const struct kverbs_ca_port_attr *
ca_rig_port_in(const struct kverbs_ca_attr *attr, u32 port);
const struct kverbs_ca_gid *ca_rig_gid(const struct kverbs_ca_port_attr *port, u32 index);
u16 ca_rig_pkey(const struct kverbs_ca_port_attr *port, u32 index);
const struct kverbs_ca_list *ca_rig_list(struct kunit *test, struct ib_device *ibdev, u64 handle);
const struct kverbs_ca_object *
ca_rig_entry(const struct kverbs_ca_list *list, u32 index);

void ca_rig_any_length(struct kunit *test, struct ib_device *ibdev,
		       const struct ib_ca_request *req);

int ca_rig_open_file(const char *device, int flags);
int ca_rig_close_file(int fd);
long ca_rig_ioctl(int fd, unsigned long room, u32 op, struct kverbs_ca_request *r);
struct kverbs_ca_reg_mr ca_rig_reg_of(u64 pd, u64 start, u64 length);

/* A request that counts its callbacks. */
struct ca_async {
	struct ib_ca_request req;
	atomic_t calls;		/* number of callbacks so far */
	struct completion got;	/* completed by each callback */
};

void ca_async_again(struct ca_async *a, const struct ib_ca_request *req);
void ca_async_init(struct ca_async *a, const struct ib_ca_request *req);
struct ca_async *ca_async_new(struct kunit *test, const struct ib_ca_request *req);
ssize_t ca_async_wait(struct ca_async *a);

#endif
