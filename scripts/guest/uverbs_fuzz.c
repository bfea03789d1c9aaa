// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_fuzz [--count N] [--seed S] [--trace] <node>
 *	makes N random commands of the node, by write() and by ioctl(), most of them nearly right,
 *	as an unprivileged user, while two threads write nonsense into all that is mapped, and ring
 *	doorbells. The same seed makes the same commands; with --trace each is printed before it is
 *	made, so that the last one is known if the kernel does not survive it.
 *
 * No command may write more than its response has room for, nor an address of the kernel's; all
 * else is for the kernel to complain about. Exit status: 0, or 1 after reporting what went wrong.
 */
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uverbs.h"
#include "uverbs_scribble.h"

#define NOBODY		65534
#define SCRIBBLERS	2
#define ARENA_BYTES	(64 * 4096UL)
#define RESP_BYTES	1024
#define POISON		0xa5
/* After so many commands everything is closed, and opened again. */
#define LIFE		5000
#define MAX_HANDLES	12
/* Larger queues would need more memory than there is; those beyond the limits are refused. */
#define SMALL_QUEUE	256
#define LARGE_QUEUE	(1 << 20)
#define FLAG_EXTENDED	0x80000000U

enum kind { PD, MR, MW, CQ, SRQ, QP, AH, CHANNEL, NR_KINDS };

/* Handles that are there, or were. */
static struct {
	_Atomic uint32_t handle[MAX_HANDLES];
	int nr;
	long made;
} pool[NR_KINDS];
static long accepted;
/* Numbers of queue pairs, by place in the pool. */
static uint32_t qpns[MAX_HANDLES];

static const char *node;
static _Atomic int cmd_fd = -1;
static unsigned char *arena;
static uint16_t port_lid;
/* Has the file a context? Main thread. */
static bool has_context;
static bool trace, failed;
static uint64_t seed;
static long count = 100000;
static _Atomic bool over;
/* Whoever maps or unmaps a ring holds it, and so does who scribbles. */
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

/* A command on its way. The response comes first in what most commands take. */
struct command {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		uint32_t words[64];
		uint64_t response;
		struct ib_uverbs_get_context get_context;
		struct ib_uverbs_query_port query_port;
		struct ib_uverbs_reg_mr reg_mr;
		struct ib_uverbs_alloc_mw alloc_mw;
		struct ib_uverbs_create_cq create_cq;
		struct ib_uverbs_resize_cq resize_cq;
		struct ib_uverbs_poll_cq poll_cq;
		struct ib_uverbs_req_notify_cq req_notify;
		struct ib_uverbs_create_qp create_qp;
		struct ib_uverbs_query_qp query_qp;
		struct ib_uverbs_modify_qp modify_qp;
		struct ib_uverbs_post_send post_send;
		struct ib_uverbs_create_srq create_srq;
		struct ib_uverbs_modify_srq modify_srq;
		struct ib_uverbs_create_ah create_ah;
		struct ib_uverbs_attach_mcast mcast;
		/* Of those that take a handle, and nothing else of interest. */
		struct {
			uint64_t response;
			uint32_t handle;
		} one;
		uint32_t handle;
	};
};

/* Where the kernel answers, and a page that it cannot write behind it. */
static unsigned char *resp;

static uint32_t any_handle(enum kind kind, uint64_t *state)
{
	uint32_t n = chance_draw(state);

	if (!(n & 31))
		kind = (n >> 5) % NR_KINDS;
	if (!pool[kind].nr || !(n & 63))
		return value(state);
	return pool[kind].handle[(n >> 6) % pool[kind].nr];
}

/* The newest takes the place of any other. Returns the place. */
static int keep_handle(enum kind kind, uint32_t handle, uint64_t *state)
{
	int place = pool[kind].nr;

	if (place < MAX_HANDLES)
		pool[kind].nr++;
	else
		place = chance_below(state, MAX_HANDLES);
	pool[kind].handle[place] = handle;
	pool[kind].made++;
	return place;
}

static uint32_t queue_size(uint64_t *state)
{
	uint32_t size = chance_one_in(state, 8) ? value(state) : chance_below(state, 40);

	return size > SMALL_QUEUE && size <= LARGE_QUEUE ? SMALL_QUEUE : size;
}

/* --- rings -------------------------------------------------------------------------------- */

static void unmap_rings(void)
{
	pthread_mutex_lock(&rings_lock);
	while (nr_rings) {
		nr_rings--;
		munmap(rings[nr_rings].start, rings[nr_rings].bytes);
	}
	pthread_mutex_unlock(&rings_lock);
}

static void map_ring(const struct mminfo *info, uint64_t *state)
{
	void *mem;

	if (!info->size)
		return;
	if (nr_rings == MAX_RINGS)
		unmap_rings();
	pthread_mutex_lock(&rings_lock);
	mem = mmap(NULL, info->size, PROT_READ | PROT_WRITE,
		   chance_one_in(state, 32) ? MAP_PRIVATE : MAP_SHARED, cmd_fd, info->offset);
	if (mem != MAP_FAILED) {
		rings[nr_rings].start = mem;
		rings[nr_rings++].bytes = info->size;
	}
	pthread_mutex_unlock(&rings_lock);
}

static void map_anything(uint64_t *state)
{
	struct mminfo info = { .offset = (uint64_t)value(state) << 12, .size = 4096 };

	info.size *= chance_below(state, 8);
	map_ring(&info, state);
}

static void ring_any_doorbell(uint64_t *state)
{
	struct command cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND, .out_words = 1,
			 .in_words = (sizeof(cmd.hdr) + sizeof(cmd.post_send)) / 4 },
		.post_send = { .qp_handle = any_handle(QP, state),
			       .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};
	uint32_t answer;

	cmd.response = (uintptr_t)&answer;
	if (write(cmd_fd, &cmd, cmd.hdr.in_words * 4))
		return;
}

static void *scribbler(void *from)
{
	uint64_t state = (uintptr_t)from;
	int i;

	while (!over) {
		pthread_mutex_lock(&rings_lock);
		for (i = 0; i < 50 && nr_rings; i++)
			scribble(&state);
		pthread_mutex_unlock(&rings_lock);
		ring_any_doorbell(&state);
		sched_yield();
	}
	return NULL;
}

/* --- commands ------------------------------------------------------------------------------ */

static size_t draw_reg_mr(struct command *cmd, uint64_t *state)
{
	uint64_t offset = chance_below(state, ARENA_BYTES);

	cmd->reg_mr.start = (uintptr_t)arena + offset;
	cmd->reg_mr.hca_va = chance_one_in(state, 8) ? value(state) : cmd->reg_mr.start;
	cmd->reg_mr.length = chance_one_in(state, 8) ? (uint64_t)value(state) << 32 | value(state) :
						       chance_below(state, ARENA_BYTES - offset);
	cmd->reg_mr.pd_handle = any_handle(PD, state);
	cmd->reg_mr.access_flags = chance_one_in(state, 8) ? value(state) : 0x1f;
	return sizeof(cmd->reg_mr);
}

static size_t draw_create_qp(struct command *cmd, uint64_t *state)
{
	cmd->create_qp.user_handle = chance_draw(state);
	cmd->create_qp.pd_handle = any_handle(PD, state);
	cmd->create_qp.send_cq_handle = any_handle(CQ, state);
	cmd->create_qp.recv_cq_handle = any_handle(CQ, state);
	cmd->create_qp.srq_handle = any_handle(SRQ, state);
	cmd->create_qp.is_srq = chance_one_in(state, 4);
	cmd->create_qp.max_send_wr = queue_size(state);
	cmd->create_qp.max_recv_wr = queue_size(state);
	cmd->create_qp.max_send_sge = chance_one_in(state, 16) ? value(state) : chance_below(state, 5);
	cmd->create_qp.max_recv_sge = chance_one_in(state, 16) ? value(state) : chance_below(state, 5);
	cmd->create_qp.max_inline_data =
		chance_one_in(state, 16) ? value(state) : chance_below(state, 257);
	cmd->create_qp.sq_sig_all = chance_draw(state) & 1;
	cmd->create_qp.qp_type = chance_one_in(state, 8) ? chance_below(state, 12) : 2;
	return sizeof(cmd->create_qp);
}

/* From one state to the next, most of the time; two neighbours are connected with each other. */
static size_t draw_modify_qp(struct command *cmd, uint64_t *state)
{
	static const uint32_t masks[] = {
		IBV_QP_STATE,
		IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		IBV_QP_STATE, IBV_QP_STATE, IBV_QP_STATE,
	};
	struct ib_uverbs_modify_qp *qp = &cmd->modify_qp;
	uint32_t to = chance_one_in(state, 4) ? chance_below(state, 7) : 1 + chance_below(state, 3);
	uint32_t place = chance_below(state, MAX_HANDLES);

	qp->qp_handle = chance_one_in(state, 16) ? any_handle(QP, state) : pool[QP].handle[place];
	qp->qp_state = to;
	qp->cur_qp_state = chance_below(state, 8);
	qp->attr_mask = chance_one_in(state, 16) ? value(state) : masks[to];
	qp->dest.dlid = port_lid;
	qp->dest.port_num = qp->port_num = 1;
	qp->dest_qp_num = qpns[place ^ 1];
	qp->qp_access_flags = chance_one_in(state, 8) ? value(state) : 0xf;
	qp->path_mtu = 1 + chance_below(state, 5);
	qp->max_rd_atomic = qp->max_dest_rd_atomic = 1;
	qp->timeout = chance_one_in(state, 4) ? chance_draw(state) : 1;
	qp->retry_cnt = qp->rnr_retry = chance_one_in(state, 4) ? chance_draw(state) : 1;
	qp->min_rnr_timer = chance_one_in(state, 4) ? chance_draw(state) : 1;
	return sizeof(cmd->modify_qp);
}

static size_t draw_create(struct command *cmd, uint64_t *state)
{
	switch (cmd->hdr.command) {
	case IB_USER_VERBS_CMD_CREATE_CQ:
		cmd->create_cq.cqe = queue_size(state);
		cmd->create_cq.comp_channel = chance_one_in(state, 2) ? -1 : (int)any_handle(CHANNEL, state);
		return sizeof(cmd->create_cq);
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		cmd->create_srq.pd_handle = any_handle(PD, state);
		cmd->create_srq.max_wr = queue_size(state);
		cmd->create_srq.max_sge = chance_one_in(state, 16) ? value(state) : chance_below(state, 5);
		cmd->create_srq.srq_limit = value(state);
		return sizeof(cmd->create_srq);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		cmd->alloc_mw.pd_handle = any_handle(PD, state);
		cmd->alloc_mw.mw_type = chance_below(state, 4);
		return sizeof(cmd->alloc_mw);
	case IB_USER_VERBS_CMD_CREATE_AH:
		cmd->create_ah.pd_handle = any_handle(PD, state);
		cmd->create_ah.attr.dlid = port_lid;
		cmd->create_ah.attr.port_num = chance_one_in(state, 16) ? value(state) : 1;
		cmd->create_ah.attr.is_global = chance_draw(state) & 1;
		return sizeof(cmd->create_ah);
	default:
		return sizeof(cmd->response);
	}
}

/* Where the answer goes that tells of a ring that moves. */
static struct mminfo moved;

/* With that address. */
static size_t draw_modify_srq(struct command *cmd, uint64_t *state)
{
	uint64_t where = chance_one_in(state, 8) ? value(state) : (uintptr_t)&moved;

	cmd->modify_srq.srq_handle = any_handle(SRQ, state);
	cmd->modify_srq.attr_mask = chance_one_in(state, 8) ? value(state) : 1 + chance_below(state, 3);
	cmd->modify_srq.max_wr = queue_size(state);
	cmd->modify_srq.srq_limit = chance_below(state, 50);
	memcpy(cmd->words + sizeof(cmd->modify_srq) / 4, &where, sizeof(where));
	return sizeof(cmd->modify_srq) + sizeof(where);
}

static size_t draw_one(struct command *cmd, enum kind kind, uint64_t *state)
{
	cmd->one.handle = any_handle(kind, state);
	return 16;
}

static size_t draw_bare(struct command *cmd, enum kind kind, uint64_t *state)
{
	cmd->handle = any_handle(kind, state);
	return 4;
}

/* Fills in what a command takes, nearly right. Returns its bytes. */
static size_t draw_command(struct command *cmd, uint64_t *state)
{
	switch (cmd->hdr.command) {
	case IB_USER_VERBS_CMD_QUERY_PORT:
		cmd->query_port.port_num = chance_one_in(state, 8) ? value(state) : 1;
		return sizeof(cmd->query_port);
	case IB_USER_VERBS_CMD_DEALLOC_PD:
		return draw_bare(cmd, PD, state);
	case IB_USER_VERBS_CMD_REG_MR:
		return draw_reg_mr(cmd, state);
	case IB_USER_VERBS_CMD_DEREG_MR:
		return draw_bare(cmd, MR, state);
	case IB_USER_VERBS_CMD_DEALLOC_MW:
		return draw_bare(cmd, MW, state);
	case IB_USER_VERBS_CMD_DESTROY_AH:
		return draw_bare(cmd, AH, state);
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		cmd->resize_cq.cq_handle = any_handle(CQ, state);
		cmd->resize_cq.cqe = queue_size(state);
		return sizeof(cmd->resize_cq);
	case IB_USER_VERBS_CMD_POLL_CQ:
		cmd->poll_cq.cq_handle = any_handle(CQ, state);
		cmd->poll_cq.ne = chance_below(state, 4);
		return sizeof(cmd->poll_cq);
	case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
		cmd->req_notify.cq_handle = any_handle(CQ, state);
		cmd->req_notify.solicited_only = chance_draw(state) & 1;
		return sizeof(cmd->req_notify);
	case IB_USER_VERBS_CMD_DESTROY_CQ:
		return draw_one(cmd, CQ, state);
	case IB_USER_VERBS_CMD_CREATE_QP:
		return draw_create_qp(cmd, state);
	case IB_USER_VERBS_CMD_QUERY_QP:
		cmd->query_qp.attr_mask = value(state);
		cmd->query_qp.qp_handle = any_handle(QP, state);
		return sizeof(cmd->query_qp);
	case IB_USER_VERBS_CMD_MODIFY_QP:
		return draw_modify_qp(cmd, state);
	case IB_USER_VERBS_CMD_DESTROY_QP:
		return draw_one(cmd, QP, state);
	case IB_USER_VERBS_CMD_POST_SEND:
	case IB_USER_VERBS_CMD_POST_RECV:
	case IB_USER_VERBS_CMD_POST_SRQ_RECV:
		cmd->post_send.qp_handle = any_handle(QP, state);
		cmd->post_send.wr_count = chance_one_in(state, 8) ? value(state) : 0;
		cmd->post_send.sge_count = chance_one_in(state, 8) ? value(state) : 0;
		cmd->post_send.wqe_size = sizeof(struct ib_uverbs_send_wr);
		return sizeof(cmd->post_send);
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
	case IB_USER_VERBS_CMD_DETACH_MCAST:
		cmd->mcast.gid[0] = 0xff;
		cmd->mcast.qp_handle = any_handle(QP, state);
		cmd->mcast.mlid = 0xc000 | chance_draw(state);
		return sizeof(cmd->mcast);
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		return draw_modify_srq(cmd, state);
	case IB_USER_VERBS_CMD_QUERY_SRQ:
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
		return draw_one(cmd, SRQ, state);
	default:
		return draw_create(cmd, state);
	}
}

/* What destroys is drawn seldom: it takes long, and nothing would be there. */
static uint32_t draw_number(uint64_t *state)
{
	static const uint8_t often[] = {
		IB_USER_VERBS_CMD_ALLOC_PD, IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_QUERY_QP,
		IB_USER_VERBS_CMD_MODIFY_QP, IB_USER_VERBS_CMD_MODIFY_QP,
		IB_USER_VERBS_CMD_MODIFY_QP, IB_USER_VERBS_CMD_MODIFY_QP,
		IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_SEND,
		IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, IB_USER_VERBS_CMD_QUERY_SRQ,
		IB_USER_VERBS_CMD_QUERY_PORT, IB_USER_VERBS_CMD_ALLOC_MW,
		IB_USER_VERBS_CMD_CREATE_AH, IB_USER_VERBS_CMD_QUERY_DEVICE,
	};

	/* Behind the last one is the space of none. */
	if (chance_one_in(state, 8))
		return chance_below(state, IB_USER_VERBS_CMD_OPEN_QP + 2);
	return often[chance_below(state, ARRAY_SIZE(often))];
}

/* Makes a right command wrong somewhere. */
static void spoil(struct command *cmd, size_t *bytes, uint64_t *state)
{
	switch (chance_below(state, 5)) {
	case 0:
		cmd->words[chance_below(state, *bytes / 4)] = value(state);
		break;
	case 1:
		cmd->words[chance_below(state, *bytes / 4)] ^= 1U << chance_below(state, 32);
		break;
	case 2:
		cmd->hdr.in_words = value(state);
		break;
	case 3:
		cmd->hdr.out_words = chance_below(state, RESP_BYTES / 4);
		break;
	default:
		*bytes = chance_below(state, sizeof(cmd->words)) & ~3U;
	}
}

/* The kernel may be asked to write where it cannot, but not where we have something. */
static void spoil_response(struct command *cmd, uint64_t *state)
{
	const uint64_t wrong[] = { 0, 8, (uintptr_t)resp + 1, (uintptr_t)resp + RESP_BYTES - 8,
				   (uintptr_t)resp + RESP_BYTES, 0xffff888000000000 };

	if (cmd->response != (uintptr_t)resp || chance_one_in(state, 8))
		cmd->response = wrong[chance_below(state, ARRAY_SIZE(wrong))];
}

/* Likewise; a bit of the address makes it that of other data of ours. */
static void spoil_moved(struct command *cmd)
{
	uint32_t *words = cmd->words + sizeof(cmd->modify_srq) / 4;
	uint64_t where;

	memcpy(&where, words, sizeof(where));
	/* Others that are drawn have 32 bits. */
	if (where != (uintptr_t)&moved && where >> 32)
		memset(words, 0, sizeof(where));
}

/* Nor may peers. */
static void protect(struct ib_uverbs_reg_mr *reg)
{
	uint64_t offset = reg->start - (uintptr_t)arena;

	if (offset > ARENA_BYTES || reg->length > ARENA_BYTES - offset)
		reg->access_flags &= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
}

/* Larger queues than SMALL_QUEUE come of what was spoiled, too. */
static void limit_size(uint32_t *size)
{
	if (*size > SMALL_QUEUE && *size <= LARGE_QUEUE)
		*size = SMALL_QUEUE;
}

static void limit_sizes(struct command *cmd)
{
	switch (cmd->hdr.command & 0xff) {
	case IB_USER_VERBS_CMD_CREATE_CQ:
		limit_size(&cmd->create_cq.cqe);
		break;
	case IB_USER_VERBS_CMD_REG_MR:
		protect(&cmd->reg_mr);
		break;
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		limit_size(&cmd->resize_cq.cqe);
		break;
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		limit_size(&cmd->create_srq.max_wr);
		break;
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		limit_size(&cmd->modify_srq.max_wr);
		break;
	case IB_USER_VERBS_CMD_CREATE_QP:
		limit_size(&cmd->create_qp.max_send_wr);
		limit_size(&cmd->create_qp.max_recv_wr);
		break;
	}
}

/* Takes note of what a command has made. */
static void made(uint32_t number, uint64_t *state)
{
	const uint32_t *word = (const uint32_t *)resp;
	const struct mminfo *info;

	switch (number) {
	case IB_USER_VERBS_CMD_ALLOC_PD:
		keep_handle(PD, word[0], state);
		break;
	case IB_USER_VERBS_CMD_REG_MR:
		keep_handle(MR, word[0], state);
		lkey = word[1];
		break;
	case IB_USER_VERBS_CMD_ALLOC_MW:
		keep_handle(MW, word[0], state);
		break;
	case IB_USER_VERBS_CMD_CREATE_AH:
		keep_handle(AH, word[0], state);
		break;
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		keep_handle(CHANNEL, word[0], state);
		break;
	case IB_USER_VERBS_CMD_CREATE_CQ:
		keep_handle(CQ, word[0], state);
		map_ring((const struct mminfo *)(resp + sizeof(struct ib_uverbs_create_cq_resp)), state);
		break;
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		keep_handle(SRQ, word[0], state);
		map_ring((const struct mminfo *)(resp + sizeof(struct ib_uverbs_create_srq_resp)),
			 state);
		break;
	case IB_USER_VERBS_CMD_CREATE_QP:
		qpns[keep_handle(QP, word[0], state)] = word[1];
		info = (const struct mminfo *)(resp + sizeof(struct ib_uverbs_create_qp_resp));
		map_ring(&info[0], state);
		map_ring(&info[1], state);
		break;
	}
}

/* What the kernel wrote must have been asked for, and be no address of its own. */
static void check_response(const char *what, uint32_t number, size_t room)
{
	size_t i;

	for (i = room; i < RESP_BYTES && !failed; i++) {
		if (resp[i] != POISON) {
			printf("%s %u writes behind its response of %zu bytes\n", what, number, room);
			failed = true;
		}
	}
	if (has_address(resp, RESP_BYTES)) {
		printf("%s %u tells an address of the kernel's\n", what, number);
		failed = true;
	}
}

/* Does a command begin with where to answer? */
static bool answers_to(uint32_t number)
{
	return number != IB_USER_VERBS_CMD_MODIFY_QP && number != IB_USER_VERBS_CMD_MODIFY_SRQ &&
	       number != IB_USER_VERBS_CMD_REQ_NOTIFY_CQ &&
	       number != IB_USER_VERBS_CMD_ATTACH_MCAST && number != IB_USER_VERBS_CMD_DETACH_MCAST;
}

/* How much a command has room for. Extended ones count in eights, and the driver's part besides. */
static size_t room_for(const struct command *cmd)
{
	size_t words = cmd->hdr.out_words;

	return cmd->hdr.command & FLAG_EXTENDED ? 8 * (words + (cmd->words[2] >> 16)) : 4 * words;
}

static void make_command(long n, uint32_t number, bool right, uint64_t *state)
{
	struct command cmd = { .hdr.command = number, .hdr.out_words = 64 };
	size_t bytes = draw_command(&cmd, state), i;
	bool answers = bytes >= 8 && answers_to(number);

	if (answers)
		cmd.response = (uintptr_t)resp;
	if (!right)
		spoil(&cmd, &bytes, state);
	if (!right && answers)
		spoil_response(&cmd, state);
	if (number == IB_USER_VERBS_CMD_MODIFY_SRQ)
		spoil_moved(&cmd);
	limit_sizes(&cmd);
	if (right || chance_draw(state) & 1)
		cmd.hdr.in_words = (sizeof(cmd.hdr) + bytes) / 4;
	/* Extended ones all answer. */
	if (!right && answers && chance_one_in(state, 8))
		cmd.hdr.command |= FLAG_EXTENDED;
	if (trace) {
		printf("%ld: command %x in %u out %u:", n, cmd.hdr.command, cmd.hdr.in_words,
		       cmd.hdr.out_words);
		for (i = 0; i < bytes / 4; i++)
			printf(" %x", cmd.words[i]);
		printf("\n");
	}
	memset(resp, POISON, RESP_BYTES);
	if (write(cmd_fd, &cmd, sizeof(cmd.hdr) + bytes) > 0) {
		accepted++;
		if (right)
			made(cmd.hdr.command, state);
	}
	/* What was spoiled may lead to the middle of it. */
	if (cmd.response == (uintptr_t)resp)
		check_response("command", cmd.hdr.command, room_for(&cmd));
}

/* What the other commands are about. */
static void furnish(long n, uint64_t *state)
{
	static const uint8_t numbers[] = {
		IB_USER_VERBS_CMD_ALLOC_PD, IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_CREATE_CQ,
		IB_USER_VERBS_CMD_CREATE_CQ, IB_USER_VERBS_CMD_CREATE_SRQ,
		IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, IB_USER_VERBS_CMD_CREATE_QP,
		IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_CREATE_QP,
		IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_CREATE_QP,
		IB_USER_VERBS_CMD_CREATE_QP,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		make_command(n, numbers[i], true, state);
}

/*
 * Mainline's ib_uverbs, 6.12's among others, frees the context of a file that has one already
 * without giving back its reference on the process, which then is never freed: kmemleak tells of
 * it.
 */
static bool leaks_process(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return has_context && hdr->object_id == UVERBS_OBJECT_DEVICE &&
	       hdr->method_id == UVERBS_METHOD_GET_CONTEXT;
}

/* An attribute's number: mostly @i, which is right; common ones, or those of drivers. */
static uint16_t any_attribute(uint32_t i, uint64_t *state)
{
	if (!chance_one_in(state, 4))
		return i;
	if (chance_one_in(state, 2))
		return chance_below(state, 16);
	return 0x1000 | chance_below(state, 4);
}

static void make_ioctl(long n, uint64_t *state)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[8];
	} req = {
		.hdr = { .object_id = chance_below(state, 18), .method_id = chance_below(state, 10),
			 .driver_id = chance_one_in(state, 32) ? value(state) : RDMA_DRIVER_RXE },
	};
	static const uint16_t lengths[] = { 0, 4, 8, 16, 24, 40, 64, 512 };
	uint32_t i, nr = chance_below(state, ARRAY_SIZE(req.attrs) + 1);

	for (i = 0; i < nr; i++) {
		req.attrs[i] = (struct ib_uverbs_attr) {
			.attr_id = any_attribute(i, state),
			.len = lengths[chance_below(state, ARRAY_SIZE(lengths))],
			.flags = chance_one_in(state, 8) ? chance_draw(state) : UVERBS_ATTR_F_MANDATORY,
			.data = chance_one_in(state, 2) ? (uintptr_t)resp :
				any_handle(chance_below(state, NR_KINDS), state),
		};
	}
	req.hdr.num_attrs = chance_one_in(state, 32) ? value(state) : nr;
	req.hdr.length = chance_one_in(state, 32) ? value(state) :
						    sizeof(req.hdr) + nr * sizeof(req.attrs[0]);
	if (trace)
		printf("%ld: ioctl %u.%u with %u\n", n, req.hdr.object_id, req.hdr.method_id, nr);
	memset(resp, POISON, RESP_BYTES);
	if (leaks_process(&req.hdr) || ioctl(cmd_fd, RDMA_VERBS_IOCTL, &req))
		return;
	if (req.hdr.object_id == UVERBS_OBJECT_DEVICE &&
	    req.hdr.method_id == UVERBS_METHOD_GET_CONTEXT)
		has_context = true;
	check_response("method", req.hdr.object_id << 8 | req.hdr.method_id, RESP_BYTES);
}

/* --- life ---------------------------------------------------------------------------------- */

static void ask_for_lid(void)
{
	struct ib_uverbs_query_port_resp answer = {};
	struct command cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_QUERY_PORT, .out_words = sizeof(answer) / 4,
			 .in_words = (sizeof(cmd.hdr) + sizeof(cmd.query_port)) / 4 },
		.query_port = { .response = (uintptr_t)&answer, .port_num = 1 },
	};

	if (write(cmd_fd, &cmd, cmd.hdr.in_words * 4) < 0)
		die("cannot query the port");
	port_lid = answer.lid;
}

/* Now and then nobody asks for a context. */
static void open_node(uint64_t *state)
{
	struct ib_uverbs_get_context_resp answer;
	struct command cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .out_words = sizeof(answer) / 4,
			 .in_words = (sizeof(cmd.hdr) + sizeof(cmd.get_context)) / 4 },
		.get_context = { .response = (uintptr_t)&answer },
	};
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die(node);
	cmd_fd = fd;
	has_context = false;
	if (chance_one_in(state, 16))
		return;
	if (write(fd, &cmd, cmd.hdr.in_words * 4) < 0)
		die("no context");
	has_context = true;
	ask_for_lid();
}

/* Closes all that the process has; the rings stay mapped half the time. */
static void close_all(uint64_t *state)
{
	int i;

	if (chance_one_in(state, 2))
		unmap_rings();
	cmd_fd = -1;
	for (i = 3; i < 1024; i++)
		close(i);
	for (i = 0; i < NR_KINDS; i++)
		pool[i].nr = 0;
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'c')
			count = strtol(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			trace = true;
		else
			break;
	}
	if (option != -1 || optind + 1 != argc || !seed || count <= 0) {
		fprintf(stderr, "usage: uverbs_fuzz [--count N] [--seed S] [--trace] <node>\n");
		exit(2);
	}
	node = argv[optind];
}

int main(int argc, char **argv)
{
	pthread_t thread[SCRIBBLERS];
	uint64_t state;
	long n;
	int i;

	seed = time(NULL);
	options(argc, argv);
	state = seed;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		die("cannot become nobody");
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	resp = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || resp == MAP_FAILED || mprotect(resp + 4096, 4096, PROT_READ))
		die("no memory");
	resp += 4096 - RESP_BYTES;
	addr = (uintptr_t)arena;
	open_node(&state);
	for (i = 0; i < SCRIBBLERS; i++) {
		if (pthread_create(&thread[i], NULL, scribbler, (void *)(uintptr_t)(state + i)))
			die("no thread");
	}
	for (n = 0; n < count && !failed; n++) {
		if (n % LIFE == LIFE - 1) {
			close_all(&state);
			open_node(&state);
		}
		if (n % LIFE == 0)
			furnish(n, &state);
		if (chance_one_in(&state, 8))
			make_ioctl(n, &state);
		else if (chance_one_in(&state, 256))
			map_anything(&state);
		else
			make_command(n, draw_number(&state), chance_draw(&state) & 3, &state);
	}
	over = true;
	for (i = 0; i < SCRIBBLERS; i++)
		pthread_join(thread[i], NULL);
	close_all(&state);
	printf("%ld operations, %ld commands accepted; made %ld PDs, %ld MRs, %ld MWs, %ld CQs, %ld SRQs, %ld QPs, %ld AHs\n",
	       n, accepted, pool[PD].made, pool[MR].made, pool[MW].made, pool[CQ].made,
	       pool[SRQ].made, pool[QP].made, pool[AH].made);
	return failed;
}
