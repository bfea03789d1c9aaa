// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_nth <device>: fails each allocation of each command of a process in turn, or with EVERY=k
 * and FROM=n the n-th and from there on each k-th, and each, if none of these made one fail.
 *
 * A command whose allocation fails does so with ENOMEM, or succeeds; one that destroys must
 * succeed. Prints a line for each command. Whether something was left is for the caller to see:
 * all is destroyed in the end. Needs CONFIG_FAULT_INJECTION, and its knobs set as for failnth.
 */
#define PROGRAM "uverbs_nth"

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "nth.h"

#define NTH "/proc/thread-self/fail-nth"
#define BYTES 65536
/* A completion that has not come by then is lost. */
#define MAX_POLLS 100000
#define POLL_US 100
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static int nth_fd;
static struct ibv_context *ctx;
static int file, async_fd;
static struct ibv_pd *pd, *pd2;
static struct ibv_comp_channel *channel, *channel2;
static struct ibv_cq *cq, *cq2;
static struct ibv_srq *srq, *srq2;
static struct ibv_qp *qp, *qp2, *loop, *ud;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static uint32_t ah;
static uint16_t lid;
static char node[64];
static void *mem;

/* Errors of libibverbs are in errno, or what it returns. */
static int errno_unless(const void *object)
{
	return object ? 0 : errno;
}

/* By the command alone: the library has errors of its own. */
static int open_context(void)
{
	struct ib_uverbs_get_context_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .in_words = sizeof(req) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp },
	};
	int err;

	file = open(node, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return errno;
	if (write(file, &req, sizeof(req)) == sizeof(req)) {
		async_fd = resp.async_fd;
		return 0;
	}
	err = errno;
	close(file);
	return err;
}

static int close_context(void)
{
	return close(async_fd) || close(file) ? errno : 0;
}

static int alloc_pd(void)
{
	return errno_unless(pd2 = ibv_alloc_pd(ctx));
}

static int dealloc_pd(void)
{
	return ibv_dealloc_pd(pd2);
}

static int reg_mr(void)
{
	return errno_unless(mr = ibv_reg_mr(pd, mem, BYTES, IBV_ACCESS_LOCAL_WRITE));
}

static int dereg_mr(void)
{
	return ibv_dereg_mr(mr);
}

static int reg_empty_mr(void)
{
	return errno_unless(mr = ibv_reg_mr(pd, mem, 0, IBV_ACCESS_LOCAL_WRITE));
}

static int alloc_mw(void)
{
	return errno_unless(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
}

static int dealloc_mw(void)
{
	return ibv_dealloc_mw(mw);
}

static int create_channel(void)
{
	return errno_unless(channel2 = ibv_create_comp_channel(ctx));
}

static int destroy_channel(void)
{
	return ibv_destroy_comp_channel(channel2);
}

static int create_cq(void)
{
	return errno_unless(cq2 = ibv_create_cq(ctx, 100, NULL, channel, 0));
}

static int destroy_cq(void)
{
	return ibv_destroy_cq(cq2);
}

static int resize_cq(void)
{
	return ibv_resize_cq(cq, 500);
}

static int resize_cq_back(void)
{
	return ibv_resize_cq(cq, 100);
}

static int create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 100, .max_sge = 2 } };

	return errno_unless(srq2 = ibv_create_srq(pd, &init));
}

static int destroy_srq(void)
{
	return ibv_destroy_srq(srq2);
}

static int set_srq_size(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int resize_srq(void)
{
	return set_srq_size(500);
}

static int resize_srq_back(void)
{
	return set_srq_size(100);
}

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_srq *of)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq, .srq = of,
		.cap = { .max_send_wr = 50, .max_recv_wr = 50, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};

	return ibv_create_qp(pd, &init);
}

static int create_qp(void)
{
	return errno_unless(qp2 = new_qp(IBV_QPT_RC, NULL));
}

static int create_qp_of_srq(void)
{
	return errno_unless(qp2 = new_qp(IBV_QPT_RC, srq));
}

static int create_ud_qp(void)
{
	return errno_unless(qp2 = new_qp(IBV_QPT_UD, NULL));
}

static int destroy_qp(void)
{
	return ibv_destroy_qp(qp2);
}

static int to_state(struct ibv_qp *of, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(of, &attr, IBV_QP_STATE);
}

static int to_reset(void)
{
	return to_state(qp, IBV_QPS_RESET);
}

static int to_init(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			     IBV_QP_ACCESS_FLAGS);
}

/* There is no way from the first state of all; one that failed half way leads on. */
static int to_error(void)
{
	int err = to_init();

	return err ? err : to_state(qp, IBV_QPS_ERR);
}

static int reset_loop(void)
{
	return to_state(loop, IBV_QPS_RESET);
}

/* A connection with itself, from the start: the one before may have failed half way. */
static int connect_loop(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = loop->qp_num, .max_dest_rd_atomic = 1, .max_rd_atomic = 1,
		.retry_cnt = 7, .rnr_retry = 7, .ah_attr = { .dlid = lid, .port_num = 1 },
	};
	int err = reset_loop();

	if (!err)
		err = ibv_modify_qp(loop, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(loop, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(loop, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return err;
}

/* Waits for a completion. */
static int completion(void)
{
	struct ibv_wc wc;
	int i, nr;

	for (i = 0; !(nr = ibv_poll_cq(cq, 1, &wc)) && i < MAX_POLLS; i++)
		usleep(POLL_US);
	if (!nr)
		errno = ETIMEDOUT;
	else if (nr < 0 || wc.status)
		errno = EIO;
	else
		return 0;
	return errno;
}

/* A message over the connection, which exists for this long. Its doorbell is a command, too. */
static int send_message(void)
{
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND,
					       .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr *bad_recv, recv = { 0 };
	struct ibv_wc wc;
	int err = connect_loop(), i;

	/* Of a message that failed half way. */
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	if (!err)
		err = ibv_post_recv(loop, &recv, &bad_recv);
	if (!err)
		err = ibv_post_send(loop, &send, &bad_send);
	for (i = 0; !err && i < 2; i++)
		err = completion();
	reset_loop();
	return err;
}

static union ibv_gid group = { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 1 } };

static int attach_mcast(void)
{
	return ibv_attach_mcast(ud, &group, 0xc001);
}

static int detach_mcast(void)
{
	return ibv_detach_mcast(ud, &group, 0xc001);
}

static int query_device(void)
{
	struct ibv_device_attr attr;

	return ibv_query_device(ctx, &attr);
}

static int query_port(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(ctx, 1, &attr);
}

static int query_srq(void)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(srq, &attr);
}

static int query_qp(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
}

static int req_notify(void)
{
	return ibv_req_notify_cq(cq, 0);
}

/* librxe makes none on an InfiniBand port, but the command does. */
static int create_ah(void)
{
	struct {
		struct ib_uverbs_create_ah_resp base;
		uint32_t number, reserved;
	} resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_ah cmd;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_CREATE_AH, .in_words = sizeof(req) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp, .pd_handle = pd->handle,
			 .attr = { .dlid = 1, .port_num = 1 } },
	};

	if (write(ctx->cmd_fd, &req, sizeof(req)) < 0)
		return errno;
	ah = resp.base.ah_handle;
	return 0;
}

static int destroy_ah(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_ah cmd;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_DESTROY_AH, .in_words = sizeof(req) / 4 },
		.cmd = { .ah_handle = ah },
	};

	return write(ctx->cmd_fd, &req, sizeof(req)) < 0 ? errno : 0;
}

/* What undoes an action fails for no allocation, unless it is one of both ways. */
static const struct {
	const char *name;
	int (*run)(void);
	int (*undo)(void);
	int undo_may_fail;
} actions[] = {
	{ "a context", open_context, close_context, 0 },
	{ "a PD", alloc_pd, dealloc_pd, 0 },
	{ "a region", reg_mr, dereg_mr, 0 },
	{ "an empty region", reg_empty_mr, dereg_mr, 0 },
	{ "a window", alloc_mw, dealloc_mw, 0 },
	{ "an address handle", create_ah, destroy_ah, 0 },
	{ "a completion channel", create_channel, destroy_channel, 0 },
	{ "a CQ", create_cq, destroy_cq, 0 },
	{ "another size of a CQ", resize_cq, resize_cq_back, 1 },
	{ "an SRQ", create_srq, destroy_srq, 0 },
	{ "another size of an SRQ", resize_srq, resize_srq_back, 1 },
	{ "a queue pair", create_qp, destroy_qp, 0 },
	{ "a queue pair of an SRQ", create_qp_of_srq, destroy_qp, 0 },
	{ "a queue pair for datagrams", create_ud_qp, destroy_qp, 0 },
	{ "a queue pair's next state", to_init, to_reset, 1 },
	{ "a queue pair's error state", to_error, to_reset, 1 },
	{ "a connection", connect_loop, reset_loop, 1 },
	{ "a message", send_message, NULL, 0 },
	{ "a member of a group", attach_mcast, detach_mcast, 0 },
	{ "a query of a device", query_device, NULL, 0 },
	{ "a query of a port", query_port, NULL, 0 },
	{ "a query of an SRQ", query_srq, NULL, 0 },
	{ "a query of a queue pair", query_qp, NULL, 0 },
	{ "a request for a notification", req_notify, NULL, 0 },
};

/* Fails the n-th allocation of @run; returns how many were left to go. */
static int try_action(int n, int (*run)(void), int *err)
{
	int left;

	put_number(nth_fd, NTH, n);
	*err = run();
	left = get_number(nth_fd, NTH);
	put_number(nth_fd, NTH, 0);
	return left;
}

/* Done again, it works. */
static void undo(int (*back)(void), int n, int may_fail)
{
	int err;

	if (!back)
		return;
	try_action(n, back, &err);
	if (err && !may_fail) {
		fprintf(stderr, PROGRAM ": allocation %d: what undoes it fails: %s\n", n, strerror(err));
		exit(1);
	}
	must_work(err ? back() : 0);
}

static void sweep(size_t i, struct turns turns)
{
	int n, err, left, ends = 0, refused = tally.refused, survived = tally.survived;

	for (n = turns.from; ends < ENDS; n += turns.every) {
		must_end(n);
		left = try_action(n, actions[i].run, &err);
		if (left)
			must_work(err);
		else
			count(n, err);
		if (!err)
			undo(actions[i].undo, n, actions[i].undo_may_fail);
		ends = left ? ends + 1 : 0;
	}
	printf("%s: %d errors, %d survived\n", actions[i].name, tally.refused - refused,
	       tally.survived - survived);
}

static void open_device(const char *name)
{
	int i, nr = 0;
	struct ibv_device **list = ibv_get_device_list(&nr);

	for (i = 0; i < nr && !ctx; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		snprintf(node, sizeof(node), "/dev/infiniband/%.32s", list[i]->dev_name);
	}
	ibv_free_device_list(list);
	if (!ctx)
		die(name);
}

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 100, .max_sge = 2 } };
	struct turns turns = which_turns();
	struct ibv_port_attr port;
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "usage: uverbs_nth <device>\n");
		return 2;
	}
	read_other_errno();
	nth_fd = open(NTH, O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		die(NTH);
	open_device(argv[1]);
	mem = aligned_alloc(4096, BYTES);
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	cq = ibv_create_cq(ctx, 100, NULL, channel, 0);
	srq = ibv_create_srq(pd, &init);
	qp = new_qp(IBV_QPT_RC, NULL);
	loop = new_qp(IBV_QPT_RC, NULL);
	ud = new_qp(IBV_QPT_UD, NULL);
	if (!mem || !srq || !qp || !loop || !ud || ibv_query_port(ctx, 1, &port))
		die("cannot make what is needed");
	memset(mem, 1, BYTES);
	lid = port.lid;
	for (i = 0; i < ARRAY_SIZE(actions); i++)
		sweep(i, turns);
	for (i = 0; all_are_wanted(turns, tally.refused) && i < ARRAY_SIZE(actions); i++)
		sweep(i, all_turns);
	if (!tally.refused) {
		fprintf(stderr, PROGRAM ": no allocation made a command fail\n");
		return 1;
	}
	if (ibv_destroy_qp(qp) || ibv_destroy_qp(loop) || ibv_destroy_qp(ud) ||
	    ibv_destroy_srq(srq) || ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel) ||
	    ibv_dealloc_pd(pd) || ibv_close_device(ctx))
		die("cannot destroy");
	printf("%d allocations failed in turn: %d errors, %d of them not ENOMEM, %d survived\n",
	       tally.refused + tally.survived, tally.refused, other_errno.seen, tally.survived);
	return 0;
}
