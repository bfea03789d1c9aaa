// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests by io_uring: registers many pieces of memory, with all
 * the requests under way at a time, while it asks for the attributes.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kverbs/ca.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECES	16
#define LENGTH	65536

/* A request, and its result. Both stay where they are until the CQE is there. */
struct call {
	struct kverbs_ca_request req;
	struct kverbs_ca_reg_mr reg;
	int result;
};

/* One of those that are under way; finish() has its result. */
static void begin(struct io_uring *ring, int fd, enum kverbs_ca_op op, struct call *call)
{
	struct kverbs_ca_uring_cmd cmd = { .request = (uintptr_t)&call->req };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		errx(1, "the queue is full");
	call->req.size = sizeof(call->req);
	call->req.version = KVERBS_CA_VERSION;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = KVERBS_CA_IOCTL(op);
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	io_uring_sqe_set_data(sqe, call);
}

/* They are carried out in any order, those of one moment beside each other. */
static void finish(struct io_uring *ring, unsigned int count)
{
	struct io_uring_cqe *cqe;
	struct call *call;
	int ret = io_uring_submit(ring);

	while (ret >= 0 && count--) {
		ret = io_uring_wait_cqe(ring, &cqe);
		if (ret)
			break;
		call = io_uring_cqe_get_data(cqe);
		call->result = cqe->res;
		io_uring_cqe_seen(ring, cqe);
	}
	if (ret < 0)
		errx(1, "io_uring: %s", strerror(-ret));
}

static void check(const char *what, const struct call *call)
{
	if (call->result < 0)
		errx(1, "%s: %s", what, strerror(-call->result));
}

static void one(struct io_uring *ring, int fd, enum kverbs_ca_op op, const char *what,
		struct call *call)
{
	begin(ring, fd, op, call);
	finish(ring, 1);
	check(what, call);
}

static void describe(struct call *mr, __u64 handle, __u64 pd, char *memory)
{
	*mr = (struct call) {
		.req = {
			.handle = handle,
			.in = (uintptr_t)&mr->reg,
			.in_len = sizeof(mr->reg),
		},
		.reg = {
			.version = KVERBS_CA_VERSION,
			.size = sizeof(mr->reg),
			.pd = pd,
			.start = (uintptr_t)memory,
			.length = LENGTH,
			.iova = (uintptr_t)memory,
			.access = KVERBS_CA_ACCESS_LOCAL_WRITE,
		},
	};
}

/* Room for the attributes of the CA without its ports: EOVERFLOW is expected. */
static void try_all(struct io_uring *ring, int fd, __u64 handle, __u64 pd, char *memory)
{
	static struct call mr[PIECES], look;
	struct kverbs_ca_attr attr;
	int i;

	look.req.handle = handle;
	look.req.out = (uintptr_t)&attr;
	look.req.out_len = sizeof(attr);
	begin(ring, fd, KVERBS_CA_QUERY_CA, &look);
	for (i = 0; i < PIECES; i++) {
		describe(&mr[i], handle, pd, memory + i * LENGTH);
		begin(ring, fd, KVERBS_CA_REG_MR, &mr[i]);
	}
	finish(ring, PIECES + 1);

	if (look.result != -EOVERFLOW)
		check("QUERY_CA", &look);
	for (i = 0; i < PIECES; i++) {
		check("REG_MR", &mr[i]);
		/* The object was written into the request. */
		mr[i].req.in = 0;
		mr[i].req.in_len = 0;
		begin(ring, fd, KVERBS_CA_DEREG_MR, &mr[i]);
	}
	finish(ring, PIECES);
	for (i = 0; i < PIECES; i++)
		check("DEREG_MR", &mr[i]);
	printf("%s: %u ports, %d regions\n", attr.name, attr.port_count, PIECES);
}

int main(int argc, char **argv)
{
	struct call ca = { 0 }, pd = { 0 };
	char *memory = aligned_alloc(4096, PIECES * LENGTH);
	struct io_uring ring;
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), "/dev/infiniband/ca/%s", argc > 1 ? argv[1] : "emu0");
	fd = open(path, O_RDWR);
	if (fd < 0 || !memory)
		err(1, "%s", path);
	ret = io_uring_queue_init(2 * PIECES, &ring, 0);
	if (ret)
		errx(1, "io_uring: %s", strerror(-ret));

	one(&ring, fd, KVERBS_CA_OPEN, "OPEN", &ca);
	pd.req.handle = ca.req.handle;
	one(&ring, fd, KVERBS_CA_ALLOC_PD, "ALLOC_PD", &pd);
	try_all(&ring, fd, ca.req.handle, pd.req.object, memory);
	one(&ring, fd, KVERBS_CA_DEALLOC_PD, "DEALLOC_PD", &pd);
	one(&ring, fd, KVERBS_CA_CLOSE, "CLOSE", &ca);

	io_uring_queue_exit(&ring);
	free(memory);
	close(fd);
	return 0;
}
