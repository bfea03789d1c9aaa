// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to a channel adapter through io_uring, with liburing: everything that ioctl(2) does,
 * by the thousands, and rings that go away while requests are in progress.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE		"t-uring"
#define FLIGHT		4096
#define PAGE		4096

typedef struct kverbs_ca_request request;

static int fd;
static uint64_t handle, pd;
static struct io_uring ring;
static unsigned int ring_flags;

static void setup_ring(unsigned int entries)
{
	int ret = io_uring_queue_init(entries, &ring, ring_flags);

	if (ret == -ENOSYS)
		test_skip("this kernel has no io_uring");
	EXPECT_EQ(ret, 0);
}

static void setup(void)
{
	setup_ring(64);
	emu_make(DEVICE, 1);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
}

/* --- one at a time ---------------------------------------------------------------- */

static struct io_uring_sqe *sqe_of(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	EXPECT(sqe);
	return sqe;
}

static void prepare(struct io_uring_sqe *sqe, unsigned int op, void *r)
{
	struct kverbs_ca_uring_cmd cmd = { .request = (uintptr_t)r };

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = KVERBS_CA_IOCTL(op);
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
}

static long complete(uint64_t *data)
{
	struct io_uring_cqe *cqe;
	long res;

	EXPECT_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
	res = cqe->res;
	*data = cqe->user_data;
	io_uring_cqe_seen(&ring, cqe);
	return res;
}

static long run(struct io_uring_sqe *sqe)
{
	static uint64_t last;
	uint64_t data;
	long res;

	sqe->user_data = ++last;
	/* The return value means something else if the kernel takes entries by itself. */
	EXPECT(io_uring_submit(&ring) > 0);
	res = complete(&data);
	EXPECT_EQ(data, last);
	return res;
}

static long through_ring(unsigned int op, request *r)
{
	struct io_uring_sqe *sqe = sqe_of();

	r->size = sizeof(*r);
	r->version = KVERBS_CA_VERSION;
	prepare(sqe, op, r);
	return run(sqe);
}

static long list_through_ring(uint64_t h)
{
	static char out[4096];
	request r = { .handle = h, .out = (uintptr_t)out, .out_len = sizeof(out) };

	return through_ring(KVERBS_CA_LIST, &r);
}

static void queries(void)
{
	static char a[ANSWER_MAX], b[ANSWER_MAX];
	request r = { .out = (uintptr_t)a };
	uint32_t len;

	for (len = 0; len < 64; len++) {
		memset(a, UNTOUCHED, 128);
		memset(b, UNTOUCHED, 128);
		r.handle = handle;
		r.out_len = len;
		EXPECT_EQ(through_ring(KVERBS_CA_QUERY_CA, &r),
			  ca_query(fd, handle, b, len));
		EXPECT(!memcmp(a, b, 128));
	}
	r.out_len = sizeof(a);
	len = ca_query(fd, handle, b, sizeof(b));
	EXPECT_EQ(through_ring(KVERBS_CA_QUERY_CA, &r), len);
	EXPECT(!memcmp(a, b, len));
	r.flags = KVERBS_CA_FRESH;
	EXPECT_EQ(through_ring(KVERBS_CA_QUERY_CA, &r), len);
	r.port = 1;
	len = ca_query_port(fd, handle, 1, b, sizeof(b));
	EXPECT_EQ(through_ring(KVERBS_CA_QUERY_PORT, &r), len);
	EXPECT(!memcmp(a, b, len));
}

static void objects(void)
{
	struct kverbs_ca_mr_attr given = { 0 }, asked = { 0 };
	struct kverbs_ca_reg_mr reg;
	uint64_t h, domain, mr;
	request r = { 0 };

	EXPECT_EQ(through_ring(KVERBS_CA_OPEN, &r), 0);
	h = r.handle;
	r = (request) { .handle = h };
	EXPECT_EQ(through_ring(KVERBS_CA_ALLOC_PD, &r), 0);
	domain = r.object;
	ca_fill_reg(&reg, domain, pages(4 * PAGE), 4 * PAGE);
	r = (request) {
		.handle = h,
		.in = (uintptr_t)&reg,
		.in_len = sizeof(reg),
		.out = (uintptr_t)&given,
		.out_len = sizeof(given),
	};
	EXPECT_EQ(through_ring(KVERBS_CA_REG_MR, &r), sizeof(given));
	mr = r.object;
	r = (request) {
		.handle = h,
		.object = mr,
		.out = (uintptr_t)&asked,
		.out_len = sizeof(asked),
	};
	EXPECT_EQ(through_ring(KVERBS_CA_QUERY_MR, &r), sizeof(asked));
	EXPECT(!memcmp(&given, &asked, sizeof(asked)));
	EXPECT_EQ(list_through_ring(h), sizeof(struct kverbs_ca_list) +
		  2 * sizeof(struct kverbs_ca_object));
	r = (request) { .handle = h };
	EXPECT_EQ(through_ring(KVERBS_CA_CLOSE, &r), -EBUSY);
	r.object = domain;
	EXPECT_EQ(through_ring(KVERBS_CA_DEALLOC_PD, &r), -EBUSY);
	r.object = mr;
	EXPECT_EQ(through_ring(KVERBS_CA_DEREG_MR, &r), 0);
	r.object = domain;
	EXPECT_EQ(through_ring(KVERBS_CA_DEALLOC_PD, &r), 0);
	r.object = 0;
	EXPECT_EQ(through_ring(KVERBS_CA_CLOSE, &r), 0);
	EXPECT_EQ(list_through_ring(h), -ENOENT);
}

static void each_operation(void)
{
	setup();
	queries();
	objects();
}

/* Longer entries, which the ring may copy elsewhere. */
static void long_entries(void)
{
	ring_flags = IORING_SETUP_SQE128;
	setup();
	queries();
	objects();
}

/* A kernel thread takes entries by itself, with the process's memory and files. */
static void kernel_thread(void)
{
	ring_flags = IORING_SETUP_SQPOLL;
	setup();
	queries();
	objects();
}

static void by_worker(void)
{
	static char out[ANSWER_MAX];
	struct io_uring_sqe *sqe;
	request r = {
		.size = sizeof(r),
		.version = KVERBS_CA_VERSION,
		.out = (uintptr_t)out,
		.out_len = sizeof(out),
	};
	long res;

	setup();
	r.handle = handle;
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_QUERY_CA, &r);
	sqe->flags |= IOSQE_ASYNC;
	res = run(sqe);
	EXPECT(res > 0);
	EXPECT_EQ(res, ((struct kverbs_ca_attr *)out)->size);
}

static void wrong_commands(void)
{
	static const unsigned int unknown[] = { 0, KVERBS_CA_SET_PEER + 1, 0x3f, 0x1000 };
	struct kverbs_ca_uring_cmd cmd = { .reserved = 1 };
	struct io_uring_sqe *sqe;
	unsigned int i;
	request r;

	setup();
	r = (request) { .size = sizeof(r), .version = KVERBS_CA_VERSION };
	for (i = 0; i < TEST_COUNT(unknown); i++) {
		sqe = sqe_of();
		prepare(sqe, unknown[i], &r);
		EXPECT_EQ(run(sqe), -ENOTTY);
	}
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_OPEN, NULL);
	EXPECT_EQ(run(sqe), -EFAULT);
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_OPEN, (void *)(1UL << 63));
	EXPECT_EQ(run(sqe), -EFAULT);
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_OPEN, &r);
	cmd.request = (uintptr_t)&r;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	EXPECT_EQ(run(sqe), -EINVAL);
	r.size = 8;
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_OPEN, &r);
	EXPECT_EQ(run(sqe), -EINVAL);
	r.size = sizeof(r);
	r.version = 7;
	sqe = sqe_of();
	prepare(sqe, KVERBS_CA_OPEN, &r);
	EXPECT_EQ(run(sqe), -EINVAL);
	r = (request) { .handle = 77 };
	EXPECT_EQ(through_ring(KVERBS_CA_ALLOC_PD, &r), -ENOENT);
}

static void not_writable(void)
{
	request r = { 0 };

	setup();
	fd = node_open(DEVICE, O_RDONLY);
	EXPECT_EQ(through_ring(KVERBS_CA_OPEN, &r), 0);
	r = (request) { .handle = r.handle };
	EXPECT_EQ(through_ring(KVERBS_CA_ALLOC_PD, &r), -EBADF);
}

/* --- events --------------------------------------------------------------------------- */

static void read_events(void)
{
	struct kverbs_ca_event e = { 0 };
	struct io_uring_sqe *sqe;
	uint64_t data;
	long res;

	setup();
	/* Discard the events of the creation of the device. */
	while (poll(&(struct pollfd) { fd, POLLIN, 0 }, 1, 100) == 1)
		EXPECT_EQ(read(fd, &e, sizeof(e)), sizeof(e));
	sqe = sqe_of();
	io_uring_prep_read(sqe, fd, &e, sizeof(e), 0);
	sqe->user_data = 1;
	EXPECT_EQ(io_uring_submit(&ring), 1);
	moment();
	emu_set(DEVICE "/port1/pkeys", "1 0x8001");
	EXPECT_EQ(complete(&data), sizeof(e));
	EXPECT_EQ(e.type, KVERBS_CA_EVENT_PKEY_CHANGE);
	sqe = sqe_of();
	io_uring_prep_poll_add(sqe, fd, POLLIN);
	EXPECT_EQ(io_uring_submit(&ring), 1);
	emu_drop(DEVICE);
	res = complete(&data);
	EXPECT(res > 0 && res & POLLIN);
}

/* --- thousands ---------------------------------------------------------------------------- */

static struct flight {
	request r;
	struct kverbs_ca_reg_mr reg;
	uint64_t mr;
	unsigned int done;
	unsigned int op;
	char out[512];
} *flights;

static void prepare_flight(unsigned int i, unsigned int op, void *memory)
{
	struct flight *f = &flights[i];

	f->op = op;
	f->done = 0;
	f->r = (request) {
		.size = sizeof(f->r),
		.version = KVERBS_CA_VERSION,
		.handle = handle,
	};
	switch (op) {
	case KVERBS_CA_REG_MR:
		ca_fill_reg(&f->reg, pd, memory, PAGE);
		f->r.in = (uintptr_t)&f->reg;
		f->r.in_len = sizeof(f->reg);
		break;
	case KVERBS_CA_QUERY_MR:
		f->r.object = f->mr;
		f->r.out = (uintptr_t)f->out;
		f->r.out_len = sizeof(struct kverbs_ca_mr_attr);
		break;
	case KVERBS_CA_DEREG_MR:
		f->r.object = f->mr;
		break;
	default:
		f->r.out = (uintptr_t)f->out;
		f->r.out_len = sizeof(f->out);
	}
}

static void submit_flight(unsigned int i)
{
	struct io_uring_sqe *sqe = sqe_of();

	prepare(sqe, flights[i].op, &flights[i].r);
	sqe->user_data = i;
}

static void land(void)
{
	struct flight *f;
	uint64_t i;
	long res = complete(&i);

	EXPECT(i < FLIGHT);
	f = &flights[i];
	EXPECT_EQ(f->done++, 0);
	switch (f->op) {
	case KVERBS_CA_REG_MR:
		EXPECT_EQ(res, 0);
		EXPECT(f->r.object);
		f->mr = f->r.object;
		break;
	case KVERBS_CA_DEREG_MR:
		EXPECT_EQ(res, 0);
		f->mr = 0;
		break;
	case KVERBS_CA_QUERY_MR:
		EXPECT_EQ(res, sizeof(struct kverbs_ca_mr_attr));
		EXPECT_EQ(((struct kverbs_ca_mr_attr *)f->out)->object, f->mr);
		break;
	default:
		EXPECT_EQ(res, -EOVERFLOW);
	}
}

/* Submits all of them before waiting for any. */
static void fly(const unsigned int *ops, unsigned int nr_ops, char *memory)
{
	unsigned int i, op;

	for (i = 0; i < FLIGHT; i++) {
		op = ops[i % nr_ops];
		if (op == KVERBS_CA_REG_MR && flights[i].mr)
			op = KVERBS_CA_DEREG_MR;
		else if (op != KVERBS_CA_REG_MR && !flights[i].mr)
			op = KVERBS_CA_QUERY_CA;
		prepare_flight(i, op, memory + i % 64 * PAGE);
		submit_flight(i);
	}
	EXPECT_EQ(io_uring_submit(&ring), FLIGHT);
	for (i = 0; i < FLIGHT; i++)
		land();
}

static void setup_thousands(void)
{
	setup();
	io_uring_queue_exit(&ring);
	setup_ring(FLIGHT);
	flights = pages(FLIGHT * sizeof(*flights));
}

static void thousands(void)
{
	static const unsigned int reg[] = { KVERBS_CA_REG_MR };
	static const unsigned int mixed[] = {
		KVERBS_CA_REG_MR, KVERBS_CA_QUERY_CA, KVERBS_CA_QUERY_MR,
		KVERBS_CA_DEREG_MR,
	};
	struct kverbs_ca_list list;
	long long pinned;
	char *memory;
	int round;

	setup_thousands();
	memory = pages(64 * PAGE);
	pinned = pinned_pages();
	fly(reg, 1, memory);
	expect_pinned(pinned + FLIGHT);
	for (round = 0; round < 3; round++)
		fly(mixed, 4, memory);
	close(fd);
	io_uring_queue_exit(&ring);
	expect_pinned(pinned);
	fd = node_open(DEVICE, O_RDWR);
	EXPECT_EQ(ca_list(fd, must_open(fd, 0), &list, sizeof(list)), sizeof(list));
}

static void submit_all(char *memory)
{
	unsigned int i;

	/* Earlier ones may still be written to. */
	flights = pages(FLIGHT * sizeof(*flights));
	for (i = 0; i < FLIGHT; i++) {
		prepare_flight(i, i % 8 ? KVERBS_CA_REG_MR : KVERBS_CA_QUERY_CA,
			       memory + i % 64 * PAGE);
		submit_flight(i);
	}
	EXPECT_EQ(io_uring_submit(&ring), FLIGHT);
}

/* The ring goes; a request is either completed or never started. */
static void ring_closed(void)
{
	static char answer[FLIGHT * 40];
	long long pinned;
	unsigned int i, round;
	char *memory;
	long ret;

	setup_thousands();
	memory = pages(64 * PAGE);
	pinned = pinned_pages();
	for (round = 0; round < 5; round++) {
		submit_all(memory);
		for (i = 0; i < round * 100; i++)
			land();
		io_uring_queue_exit(&ring);
		ret = ca_list(fd, handle, answer, sizeof(answer));
		EXPECT(ret > 0 || ret == -EOVERFLOW);
		setup_ring(FLIGHT);
	}
	close(fd);
	io_uring_queue_exit(&ring);
	expect_pinned(pinned);
}

static void in_ended(void *arg)
{
	int i;

	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	setup_ring(FLIGHT);
	submit_all(arg);
	for (i = 0; i < 100; i++)
		land();
}

/* The same when the process ends. */
static void ended(void)
{
	long long pinned;
	char *memory;
	int round;

	emu_make(DEVICE, 1);
	memory = pages(64 * PAGE);
	pinned = pinned_pages();
	for (round = 0; round < 3; round++) {
		test_join(test_spawn(in_ended, memory));
		expect_pinned(pinned);
		EXPECT_SOON(!file_has("/sys/kernel/debug/kverbs/" DEVICE "/ca",
				      "handle="));
	}
}

/* --- waiting requests --------------------------------------------------------------------- */

/* Memory whose first access waits until the test provides a page. */
static void *withheld(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p = pages(PAGE);

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (*uffd < 0)
		test_skip("this kernel has no userfaultfd");
	EXPECT(!ioctl(*uffd, UFFDIO_API, &api));
	reg.range.start = (uintptr_t)p;
	reg.range.len = PAGE;
	EXPECT(!ioctl(*uffd, UFFDIO_REGISTER, &reg));
	return p;
}

static void give(int uffd, void *p, const void *content)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)p,
		.src = (uintptr_t)content,
		.len = PAGE,
	};

	EXPECT(!ioctl(uffd, UFFDIO_COPY, &copy));
}

/* Starts a registration whose description cannot be read yet. */
static void begin_reg(request *r, void *description, int uffd)
{
	struct io_uring_sqe *sqe = sqe_of();

	*r = (request) {
		.size = sizeof(*r),
		.version = KVERBS_CA_VERSION,
		.handle = handle,
		.in = (uintptr_t)description,
		.in_len = sizeof(struct kverbs_ca_reg_mr),
	};
	prepare(sqe, KVERBS_CA_REG_MR, r);
	sqe->user_data = 1000;
	EXPECT_EQ(io_uring_submit(&ring), 1);
	EXPECT(poll(&(struct pollfd) { uffd, POLLIN, 0 }, 1, 10000) == 1);
}

/* The request waits for its page without blocking others. */
static void submitter_goes_on(void)
{
	struct kverbs_ca_reg_mr *reg = pages(PAGE);
	request r, open = { 0 };
	struct io_uring_cqe *cqe;
	uint64_t data;
	void *p;
	int uffd;

	setup();
	p = withheld(&uffd);
	begin_reg(&r, p, uffd);
	EXPECT_EQ(through_ring(KVERBS_CA_OPEN, &open), 0);
	must_alloc_pd(fd, handle);
	EXPECT_EQ(io_uring_peek_cqe(&ring, &cqe), -EAGAIN);
	EXPECT_EQ(ca_close(fd, handle), -EBUSY);
	ca_fill_reg(reg, pd, pages(PAGE), PAGE);
	give(uffd, p, reg);
	EXPECT_EQ(complete(&data), 0);
	EXPECT_EQ(data, 1000);
	EXPECT_EQ(ca_dereg(fd, handle, r.object), 0);
}

/* A file that is closed during a request stays until the request has completed. */
static void file_closed(void)
{
	struct kverbs_ca_reg_mr *reg = pages(PAGE);
	long long pinned = pinned_pages();
	uint64_t data;
	request r;
	void *p;
	int uffd;

	setup();
	p = withheld(&uffd);
	begin_reg(&r, p, uffd);
	close(fd);
	ca_fill_reg(reg, pd, pages(PAGE), PAGE);
	give(uffd, p, reg);
	EXPECT_EQ(complete(&data), 0);
	expect_pinned(pinned);
}

static const struct test_case cases[] = {
	{ "each operation", each_operation },
	{ "each operation, in rings of long entries", long_entries },
	{ "each operation, submitted by the kernel", kernel_thread },
	{ "a query that a worker is to do", by_worker },
	{ "commands that are not right", wrong_commands },
	{ "a file opened to read is to look only", not_writable },
	{ "events are read and polled", read_events },
	{ "4096 requests in flight", thousands },
	{ "a ring that is closed with 4096 requests in flight", ring_closed },
	{ "a process that ends with 4096 requests in flight", ended },
	{ "the submitter does not wait", submitter_goes_on },
	{ "a file that is closed with a request under way", file_closed },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
