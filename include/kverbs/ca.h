/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to a channel adapter (CA), for kernel callers: open it, query its
 * attributes, keep objects under a handle. User processes make the same requests
 * through <uapi/kverbs/ca.h>, which describes the operations and structures.
 * Documentation/ca.rst is the manual.
 */
#ifndef KVERBS_CA_H
#define KVERBS_CA_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <uapi/kverbs/ca.h>

struct ca_device;
struct ib_ca_request;
struct ib_device;
struct ib_pd;
struct mm_struct;

/**
 * struct ib_ca - an open channel adapter
 * @device: the device
 * @handle: the handle
 * @user: opened by a user process, not by a kernel caller
 *
 * A driver can embed this in a structure of its own, see INIT_RDMA_OBJ_SIZE(), in
 * which its open_ca method keeps whatever it needs.
 */
struct ib_ca {
	struct ib_device *device;
	u64 handle;
	bool user;
};

/**
 * typedef ib_ca_done_fn - called when a request is finished
 * @req: the request, with its result; it belongs to the caller again
 *
 * Called once for each request for which ib_ca_submit() returns -EINPROGRESS,
 * perhaps before that returns.
 *
 * Context: Unspecified; must not sleep.
 */
typedef void (*ib_ca_done_fn)(struct ib_ca_request *req);

/**
 * struct ib_ca_request - a request
 * @op: &enum kverbs_ca_op
 * @version: %KVERBS_CA_VERSION
 * @flags: &enum kverbs_ca_request_flags; %KVERBS_CA_SHARED has no effect here
 * @port: port number
 * @handle: the open CA; OPEN: result
 * @object: a PD or MR; ALLOC_PD, REG_MR: result
 * @in: input of the operation
 * @out: buffer for its output
 * @in_len: bytes at @in
 * @out_len: bytes at @out
 * @done: called when a request is finished that ib_ca_submit() did not answer at once
 * @context: for the caller's use
 * @result: the result, as ib_ca_call() would return it; set before @done is called
 *
 * Members that an operation does not use must be 0. @in, @out and the request
 * itself must stay valid until the result is there.
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

	/* private: used by the core, from the submission to the callback */
	struct ca_device *ca;
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
 * struct ib_ca_pd - a process's PD that a kernel ULP uses on its behalf
 * @pd: the PD
 */
struct ib_ca_pd {
	struct ib_pd *pd;
};

struct ib_ca_pd *ib_ca_pd_get(int fd, u64 handle, u64 object);
void ib_ca_pd_put(struct ib_ca_pd *pd);

/* Documented in core/ca/request.c. They pass the name of the caller's module along. */
#define ib_ca_submit(device, req)	\
	__ib_ca_submit((device), (req), KBUILD_MODNAME)
#define ib_ca_call(device, req)		\
	__ib_ca_call((device), (req), KBUILD_MODNAME)

#endif /* KVERBS_CA_H */
