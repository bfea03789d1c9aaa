// SPDX-License-Identifier: GPL-2.0-only
/*
 * Helpers shared by the suites of channel-adapter requests.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#include "ca/rig.h"

/* Guard bytes behind every output buffer; they must not be overwritten. */
#define GUARD		16
#define GUARD_BYTE	0xa5

struct open_ca {
	struct ib_device *ibdev;
	u64 handle;
};

static void close_at_end(void *arg)
{
	struct open_ca *open = arg;

	ca_rig_close(open->ibdev, open->handle);
}

/**
 * ca_rig_open() - open a CA
 * @test: the running case, which fails if it cannot be opened
 * @ibdev: the device
 *
 * Return: the handle. If it is open and empty when the case ends, it is closed.
 */
u64 ca_rig_open(struct kunit *test, struct ib_device *ibdev)
{
	struct open_ca *open = kvt_zalloc(test, sizeof(*open));
	struct ib_ca_request req = CA_REQ(OPEN);

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(ibdev, &req));
	open->ibdev = ibdev;
	open->handle = req.handle;
	kvt_defer(test, close_at_end, open);
	return req.handle;
}
EXPORT_SYMBOL_GPL(ca_rig_open);

/**
 * ca_rig_close() - close a CA
 * @ibdev: the device
 * @handle: the handle
 *
 * Return: the result of the request.
 */
ssize_t ca_rig_close(struct ib_device *ibdev, u64 handle)
{
	return CA_CALL(ibdev, CLOSE, .handle = handle);
}
EXPORT_SYMBOL_GPL(ca_rig_close);

/**
 * ca_rig_pd() - allocate a PD
 * @test: the running case, which fails if the PD cannot be allocated
 * @ibdev: the device
 * @handle: the handle
 *
 * Return: the PD's object number.
 */
u64 ca_rig_pd(struct kunit *test, struct ib_device *ibdev, u64 handle)
{
	struct ib_ca_request req = CA_REQ(ALLOC_PD, .handle = handle);

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(ibdev, &req));
	KUNIT_ASSERT_NE(test, 0, req.object);
	return req.object;
}
EXPORT_SYMBOL_GPL(ca_rig_pd);

/**
 * ca_rig_reg() - register memory
 * @test: the running case, which fails if the registration does
 * @ibdev: the device
 * @handle: the handle
 * @reg: what to register
 *
 * Return: the region's object number.
 */
u64 ca_rig_reg(struct kunit *test, struct ib_device *ibdev, u64 handle,
	       const struct kverbs_ca_reg_mr *reg)
{
	struct ib_ca_request req = CA_REQ(REG_MR, .handle = handle, .in = reg,
					  .in_len = sizeof(*reg));

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(ibdev, &req));
	KUNIT_ASSERT_NE(test, 0, req.object);
	return req.object;
}
EXPORT_SYMBOL_GPL(ca_rig_reg);

/**
 * ca_rig_dereg() - free a region
 * @ibdev: the device
 * @handle: the handle
 * @object: the region
 *
 * Return: the result of the request.
 */
ssize_t ca_rig_dereg(struct ib_device *ibdev, u64 handle, u64 object)
{
	return CA_CALL(ibdev, DEREG_MR, .handle = handle, .object = object);
}
EXPORT_SYMBOL_GPL(ca_rig_dereg);

/**
 * ca_rig_dealloc() - free a PD
 * @ibdev: the device
 * @handle: the handle
 * @object: the PD
 *
 * Return: the result of the request.
 */
ssize_t ca_rig_dealloc(struct ib_device *ibdev, u64 handle, u64 object)
{
	return CA_CALL(ibdev, DEALLOC_PD, .handle = handle, .object = object);
}
EXPORT_SYMBOL_GPL(ca_rig_dealloc);

/* Returns the complete answer to a request, valid until the end of the case. */
static const void *answer(struct kunit *test, struct ib_device *ibdev,
			  const struct ib_ca_request *what)
{
	struct ib_ca_request req = *what;
	struct { u32 version, size; } head = {};
	void *buf;

	req.out = &head;
	req.out_len = sizeof(head);
	KUNIT_ASSERT_EQ(test, -EOVERFLOW, ib_ca_call(ibdev, &req));
	KUNIT_ASSERT_EQ(test, KVERBS_CA_VERSION, head.version);
	buf = kvt_zalloc(test, head.size);
	req.out = buf;
	req.out_len = head.size;
	KUNIT_ASSERT_EQ(test, head.size, ib_ca_call(ibdev, &req));
	return buf;
}

/**
 * ca_rig_attr() - query all attributes of a CA
 * @test: the running case, which fails without an answer
 * @ibdev: the device
 * @handle: the handle
 *
 * Return: the answer, with the ports.
 */
const struct kverbs_ca_attr *ca_rig_attr(struct kunit *test, struct ib_device *ibdev, u64 handle)
{
	return answer(test, ibdev, &CA_REQ(QUERY_CA, .handle = handle));
}
EXPORT_SYMBOL_GPL(ca_rig_attr);

/**
 * ca_rig_port() - query all attributes of a port
 * @test: the running case, which fails without an answer
 * @ibdev: the device
 * @handle: the handle
 * @port: the port's number
 *
 * Return: the answer, with the tables.
 */
const struct kverbs_ca_port_attr *ca_rig_port(struct kunit *test,
					      struct ib_device *ibdev,
					      u64 handle, u32 port)
{
	return answer(test, ibdev, &CA_REQ(QUERY_PORT, .handle = handle, .port = port));
}
EXPORT_SYMBOL_GPL(ca_rig_port);

/**
 * ca_rig_port_in() - find a port in the answer to QUERY_CA
 * @attr: the complete answer
 * @port: the port's number
 *
 * Return: the port, NULL if @attr has no such port.
 */
const struct kverbs_ca_port_attr *
ca_rig_port_in(const struct kverbs_ca_attr *attr, u32 port)
{
	const struct kverbs_ca_port_attr *p;
	u32 i, at = attr->port_offset;

	for (i = 0; i < attr->port_count; i++) {
		p = (const void *)attr + at;
		if (p->port == port)
			return p;
		at += p->size;
	}
	return NULL;
}
EXPORT_SYMBOL_GPL(ca_rig_port_in);

/**
 * ca_rig_gid() - get an entry of a port's GID table
 * @port: the complete answer to QUERY_PORT
 * @index: index in the table
 *
 * Return: the entry.
 */
const struct kverbs_ca_gid *ca_rig_gid(const struct kverbs_ca_port_attr *port, u32 index)
{
	return (const void *)port + port->gid_offset + index * port->gid_size;
}
EXPORT_SYMBOL_GPL(ca_rig_gid);

/**
 * ca_rig_pkey() - get an entry of a port's P_Key table
 * @port: the complete answer to QUERY_PORT
 * @index: index in the table
 *
 * Return: the P_Key.
 */
u16 ca_rig_pkey(const struct kverbs_ca_port_attr *port, u32 index)
{
	const u16 *pkeys = (const void *)port + port->pkey_offset;

	return pkeys[index];
}
EXPORT_SYMBOL_GPL(ca_rig_pkey);

/**
 * ca_rig_list() - list the objects under a handle
 * @test: the running case, which fails without an answer
 * @ibdev: the device
 * @handle: the handle
 *
 * Return: the list.
 */
const struct kverbs_ca_list *ca_rig_list(struct kunit *test, struct ib_device *ibdev, u64 handle)
{
	struct ib_ca_request req = CA_REQ(LIST, .handle = handle);
	const size_t most = SZ_64K;

	req.out = kvt_zalloc(test, most);
	req.out_len = most;
	KUNIT_ASSERT_GT(test, ib_ca_call(ibdev, &req), 0);
	return req.out;
}
EXPORT_SYMBOL_GPL(ca_rig_list);

/**
 * ca_rig_entry() - get an entry of a list
 * @list: from ca_rig_list()
 * @index: index in the list
 *
 * Return: the entry.
 */
const struct kverbs_ca_object *
ca_rig_entry(const struct kverbs_ca_list *list, u32 index)
{
	return (const void *)list + list->entry_offset +
	       index * list->entry_size;
}
EXPORT_SYMBOL_GPL(ca_rig_entry);

static ssize_t result_for(enum kverbs_ca_op op, u32 len, u32 size)
{
	if (len < 8)
		return -ENOSPC;
	/* The shortest structure is a complete answer. */
	if (op == KVERBS_CA_QUERY_MR && len == KVERBS_CA_MR_ATTR_SIZE_MIN)
		return len;
	if (len < size)
		return -EOVERFLOW;
	return size;
}

static bool untouched(const u8 *buf, u32 len)
{
	return !len || !memchr_inv(buf, GUARD_BYTE, len);
}

static void one_length(struct kunit *test, struct ib_device *ibdev,
		       const struct ib_ca_request *what, const void *full,
		       u32 size, u8 *buf, bool submit)
{
	struct ib_ca_request req = *what;
	u32 len = req.out_len, written = len < 8 ? 0 : min(len, size);

	memset(buf, GUARD_BYTE, len + GUARD);
	req.out = buf;
	KUNIT_ASSERT_EQ_MSG(test, result_for(req.op, len, size),
			    submit ? ib_ca_submit(ibdev, &req) :
				     ib_ca_call(ibdev, &req), "%u bytes", len);
	KUNIT_ASSERT_TRUE_MSG(test, !memcmp(buf, full, written), "%u bytes", len);
	KUNIT_ASSERT_TRUE_MSG(test, untouched(buf + written,
					      len + GUARD - written),
			      "behind %u of %u bytes", written, len);
}

static bool is_answered_at_once(const struct ib_ca_request *req)
{
	return req->op == KVERBS_CA_QUERY_CA || req->op == KVERBS_CA_QUERY_PORT;
}

/**
 * ca_rig_any_length() - check a request with output buffers of every length
 * @test: the running case
 * @ibdev: the device
 * @req: request whose answer does not change
 *
 * Each buffer must get as much of the answer as fits, and nothing behind it is written.
 */
void ca_rig_any_length(struct kunit *test, struct ib_device *ibdev, const struct ib_ca_request *req)
{
	const struct { u32 version, size; } *full = answer(test, ibdev, req);
	u32 len, most = full->size + 8;
	u8 *buf = kvt_zalloc(test, most + GUARD);
	struct ib_ca_request each = *req;

	for (len = 0; len <= most; len++) {
		each.out_len = len;
		one_length(test, ibdev, &each, full, full->size, buf, false);
		if (is_answered_at_once(req))
			one_length(test, ibdev, &each, full, full->size, buf, true);
	}
}
EXPORT_SYMBOL_GPL(ca_rig_any_length);

/**
 * ca_rig_reg_of() - fill in a registration with local write access
 * @pd: the PD
 * @start: address of the first byte, and the region's IOVA
 * @length: bytes
 *
 * Return: the filled-in structure.
 */
struct kverbs_ca_reg_mr ca_rig_reg_of(u64 pd, u64 start, u64 length)
{
	return (struct kverbs_ca_reg_mr) {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(struct kverbs_ca_reg_mr),
		.pd = pd,
		.start = start,
		.length = length,
		.iova = start,
		.access = KVERBS_CA_ACCESS_LOCAL_WRITE,
	};
}
EXPORT_SYMBOL_GPL(ca_rig_reg_of);

/**
 * ca_rig_open_file() - open the file of a CA, as a process does
 * @device: name of the device
 * @flags: as for open(2)
 *
 * Return: the file descriptor, or a negative errno.
 */
int ca_rig_open_file(const char *device, int flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;
	char name[64];

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "/dev/infiniband/ca/%s", device);
	file = filp_open(name, flags, 0);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}
EXPORT_SYMBOL_GPL(ca_rig_open_file);

/**
 * ca_rig_close_file() - close a file opened with ca_rig_open_file()
 * @fd: the file descriptor
 *
 * The objects under the file's handles are freed before this returns. A plain close_fd() by
 * a kernel thread would leave the final fput() to a work item.
 *
 * Return: the result of close_fd().
 */
int ca_rig_close_file(int fd)
{
	struct file *file = fget(fd);
	int ret = close_fd(fd);

	__fput_sync(file);
	return ret;
}
EXPORT_SYMBOL_GPL(ca_rig_close_file);

/**
 * ca_rig_ioctl() - make a request on a file, as ioctl(2) does
 * @fd: the file descriptor
 * @room: address of user memory for the request
 * @op: the operation
 * @r: the request; receives it as the ioctl left it
 *
 * Return: the result of the ioctl, failures as a negative errno.
 */
long ca_rig_ioctl(int fd, unsigned long room, u32 op, struct kverbs_ca_request *r)
{
	void __user *at = (void __user *)room;
	struct file *file = fget(fd);
	long ret = -EFAULT;

	if (!file)
		return -EBADF;
	r->size = sizeof(*r);
	r->version = KVERBS_CA_VERSION;
	if (!copy_to_user(at, r, sizeof(*r)))
		ret = file->f_op->unlocked_ioctl(file, KVERBS_CA_IOCTL(op), room);
	fput(file);
	return copy_from_user(r, at, sizeof(*r)) ? -EFAULT : ret;
}
EXPORT_SYMBOL_GPL(ca_rig_ioctl);

static void async_done(struct ib_ca_request *req)
{
	struct ca_async *a = container_of(req, struct ca_async, req);

	atomic_inc(&a->calls);
	complete(&a->got);
}

/**
 * ca_async_again() - give a request that is over another thing to do
 * @a: the request, whose completion is initialised
 * @req: what it is to do
 */
void ca_async_again(struct ca_async *a, const struct ib_ca_request *req)
{
	a->req = *req;
	a->req.done = async_done;
	atomic_set(&a->calls, 0);
	/* Its lock must stay as it is: the callback that completed it may not have returned. */
	reinit_completion(&a->got);
}
EXPORT_SYMBOL_GPL(ca_async_again);

/**
 * ca_async_init() - set up a request that counts its callbacks
 * @a: the request, not on the stack
 * @req: what it is to do
 */
void ca_async_init(struct ca_async *a, const struct ib_ca_request *req)
{
	init_completion(&a->got);
	ca_async_again(a, req);
}
EXPORT_SYMBOL_GPL(ca_async_init);

/**
 * ca_async_new() - allocate a request that counts its callbacks
 * @test: the running case
 * @req: what it is to do
 *
 * Return: the request, valid until the end of the case.
 */
struct ca_async *ca_async_new(struct kunit *test, const struct ib_ca_request *req)
{
	struct ca_async *a = kvt_zalloc(test, sizeof(*a));

	ca_async_init(a, req);
	return a;
}
EXPORT_SYMBOL_GPL(ca_async_new);

/**
 * ca_async_wait() - wait for the callback of a request
 * @a: request that was submitted
 *
 * Context: process.
 * Return: the request's result; -ETIMEDOUT if there was no callback within KVT_TIMEOUT.
 */
ssize_t ca_async_wait(struct ca_async *a)
{
	return kvt_wait(&a->got) ? a->req.result : -ETIMEDOUT;
}
EXPORT_SYMBOL_GPL(ca_async_wait);
