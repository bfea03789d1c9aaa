/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to a channel adapter (CA), for kernel callers: open it, ask what it
 * is, keep resources under a handle. User processes make the same requests by
 * <uapi/kverbs/ca.h>, where the operations and structures are described.
 * Documentation/ca.rst is the manual.
 */
#ifndef KVERBS_CA_H
#define KVERBS_CA_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <uapi/kverbs/ca.h>

struct ib_ca_request;
struct ib_device;
struct ib_pd;
struct mm_struct;

/**
 * struct ib_ca - a channel adapter that somebody has opened
 * @device: the device
 * @handle: the handle
 * @user: opened by a user process
 *
 * For drivers: the open_ca method may keep what it likes in a structure of its
 * own around it, see INIT_RDMA_OBJ_SIZE().
 */
struct ib_ca {
	struct ib_device *device;
	u64 handle;
	bool user;
};

/**
 * typedef ib_ca_done_fn - a request is through
 * @req: the request, with its result; it is the caller's again
 *
 * Called once for each request that ib_ca_submit() answered with -EINPROGRESS,
 * perhaps before that returned. Context: undefined; it does not sleep.
 */
typedef void (*ib_ca_done_fn)(struct ib_ca_request *req);

/**
 * struct ib_ca_request - a request
 * @op: &enum kverbs_ca_op
 * @version: %KVERBS_CA_VERSION
 * @flags: &enum kverbs_ca_request_flags; %KVERBS_CA_SHARED means nothing here
 * @port: port number
 * @handle: the open CA; OPEN: result
 * @object: a PD or MR; ALLOC_PD, REG_MR: result
 * @in: what goes in
 * @out: buffer for what comes out
 * @in_len: bytes at @in
 * @out_len: bytes at @out
 * @done: called when a request that takes time is through
 * @context: the caller's
 * @result: what ib_ca_call() would return; set before @done is called
 *
 * What an operation does not use must be 0. @in, @out and the request itself
 * stay until the result is there.
 */
struct ib_ca_request {
	u32 op;
	u32 version;
	u32 flags;
	u32 port;
	u64 handle;
	u64 object;
	const void *in;
	void *out;
	u32 in_len;
	u32 out_len;
	ib_ca_done_fn done;
	void *context;
	ssize_t result;

	/* private: the core's, from the submission to the callback */
	struct ib_device *device;
	const char *owner;
	unsigned long site;
	struct mm_struct *mm;
	struct work_struct work;
	atomic_t state;
};

ssize_t __ib_ca_submit(struct ib_device *device, struct ib_ca_request *req,
		       const char *owner);
ssize_t __ib_ca_call(struct ib_device *device, struct ib_ca_request *req,
		     const char *owner);
int ib_ca_cancel(struct ib_ca_request *req);

/**
 * struct ib_ca_pd - a process's PD, used by a kernel ULP on its behalf
 * @pd: the PD
 */
struct ib_ca_pd {
	struct ib_pd *pd;
};

struct ib_ca_pd *ib_ca_pd_get(int fd, u64 handle, u64 object);
void ib_ca_pd_put(struct ib_ca_pd *pd);

/* See core/ca_request.c. The name of the caller's module is passed along. */
#define ib_ca_submit(device, req)	\
	__ib_ca_submit((device), (req), KBUILD_MODNAME)
#define ib_ca_call(device, req)		\
	__ib_ca_call((device), (req), KBUILD_MODNAME)

#endif /* KVERBS_CA_H */
