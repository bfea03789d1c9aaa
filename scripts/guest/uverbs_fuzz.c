// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_fuzz <node> <operations> [<seed> [trace]]
 *	makes random commands of the node, by write() and by ioctl(), most of them nearly right, as
 *	an unprivileged user, while two threads write nonsense into all that is mapped, and ring
 *	doorbells. The same seed makes the same commands; with "trace" each is printed before it is
 *	made, so that the last one is known if the kernel does not survive it.
 *
 * No command may write more than its response has room for, nor an address of the kernel's; all
 * else is for the kernel to complain about. Exit status: 0, or 1 after reporting what went wrong.
 */
#include <fcntl.h>
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
	uint32_t n = draw(state);

	if (!(n & 31))
		kind = (n >> 5) % NR_KINDS;
	if (!pool[kind].nr || !(n & 63))
		return value(state);
	return pool[kind].handle[(n >> 6) % pool[kind].nr];
}

/* The newest takes the place of any other. Returns the place. */
static int keep_handle(enum kind kind, uint32_t handle, uint64_t *state)
{
	int place = pool[kind].nr < MAX_HANDLES ? pool[kind].nr++ : (int)(draw(state) % MAX_HANDLES);

	pool[kind].handle[place] = handle;
	pool[kind].made++;
	return place;
}

static uint32_t queue_size(uint64_t *state)
{
	uint32_t size = draw(state) & 7 ? draw(state) % 40 : value(state);

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
	mem = mmap(NULL, info->size, PROT_READ | PROT_WRITE, draw(state) & 31 ? MAP_SHARED : MAP_PRIVATE,
		   cmd_fd, info->offset);
	if (mem != MAP_FAILED) {
		rings[nr_rings].start = mem;
		rings[nr_rings++].bytes = info->size;
	}
	pthread_mutex_unlock(&rings_lock);
}

static void map_anything(uint64_t *state)
{
	struct mminfo info = { .offset = (uint64_t)value(state) << 12, .size = 4096 };

	info.size *= draw(state) % 8;
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

static void *scribbler(void *seed)
{
	uint64_t state = (uintptr_t)seed;
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
	uint64_t offset = draw(state) % ARENA_BYTES;

	cmd->reg_mr.start = (uintptr_t)arena + offset;
	cmd->reg_mr.hca_va = draw(state) & 7 ? cmd->reg_mr.start : value(state);
	cmd->reg_mr.length = draw(state) & 7 ? draw(state) % (ARENA_BYTES - offset) :
					       ((uint64_t)value(state) << 32) + value(state);
	cmd->reg_mr.pd_handle = any_handle(PD, state);
	cmd->reg_mr.access_flags = draw(state) & 7 ? 0x1f : value(state);
	return sizeof(cmd->reg_mr);
}

static size_t draw_create_qp(struct command *cmd, uint64_t *state)
{
	cmd->create_qp.user_handle = draw(state);
	cmd->create_qp.pd_handle = any_handle(PD, state);
	cmd->create_qp.send_cq_handle = any_handle(CQ, state);
	cmd->create_qp.recv_cq_handle = any_handle(CQ, state);
	cmd->create_qp.srq_handle = any_handle(SRQ, state);
	cmd->create_qp.is_srq = !(draw(state) & 3);
	cmd->create_qp.max_send_wr = queue_size(state);
	cmd->create_qp.max_recv_wr = queue_size(state);
	cmd->create_qp.max_send_sge = draw(state) & 15 ? draw(state) % 5 : value(state);
	cmd->create_qp.max_recv_sge = draw(state) & 15 ? draw(state) % 5 : value(state);
	cmd->create_qp.max_inline_data = draw(state) & 15 ? draw(state) % 257 : value(state);
	cmd->create_qp.sq_sig_all = draw(state) & 1;
	cmd->create_qp.qp_type = draw(state) & 7 ? 2 : draw(state) % 12;
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
	uint32_t to = draw(state) & 3 ? 1 + draw(state) % 3 : draw(state) % 7;
	uint32_t place = draw(state) % MAX_HANDLES;

	qp->qp_handle = draw(state) & 15 ? pool[QP].handle[place] : any_handle(QP, state);
	qp->qp_state = to;
	qp->cur_qp_state = draw(state) % 8;
	qp->attr_mask = draw(state) & 15 ? masks[to] : value(state);
	qp->dest.dlid = port_lid;
	qp->dest.port_num = qp->port_num = 1;
	qp->dest_qp_num = qpns[place ^ 1];
	qp->qp_access_flags = draw(state) & 7 ? 0xf : value(state);
	qp->path_mtu = 1 + draw(state) % 5;
	qp->max_rd_atomic = qp->max_dest_rd_atomic = 1;
	qp->timeout = draw(state) & 3 ? 1 : draw(state);
	qp->retry_cnt = qp->rnr_retry = draw(state) & 3 ? 1 : draw(state);
	qp->min_rnr_timer = draw(state) & 3 ? 1 : draw(state);
	return sizeof(cmd->modify_qp);
}

static size_t draw_create(struct command *cmd, uint64_t *state)
{
	switch (cmd->hdr.command) {
	case IB_USER_VERBS_CMD_CREATE_CQ:
		cmd->create_cq.cqe = queue_size(state);
		cmd->create_cq.comp_channel = draw(state) & 1 ? -1 : (int)any_handle(CHANNEL, state);
		return sizeof(cmd->create_cq);
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		cmd->create_srq.pd_handle = any_handle(PD, state);
		cmd->create_srq.max_wr = queue_size(state);
		cmd->create_srq.max_sge = draw(state) & 15 ? draw(state) % 5 : value(state);
		cmd->create_srq.srq_limit = value(state);
		return sizeof(cmd->create_srq);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		cmd->alloc_mw.pd_handle = any_handle(PD, state);
		cmd->alloc_mw.mw_type = draw(state) % 4;
		return sizeof(cmd->alloc_mw);
	case IB_USER_VERBS_CMD_CREATE_AH:
		cmd->create_ah.pd_handle = any_handle(PD, state);
		cmd->create_ah.attr.dlid = port_lid;
		cmd->create_ah.attr.port_num = draw(state) & 15 ? 1 : value(state);
		cmd->create_ah.attr.is_global = draw(state) & 1;
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
	uint64_t where = draw(state) & 7 ? (uintptr_t)&moved : value(state);

	cmd->modify_srq.srq_handle = any_handle(SRQ, state);
	cmd->modify_srq.attr_mask = draw(state) & 7 ? 1 + draw(state) % 3 : value(state);
	cmd->modify_srq.max_wr = queue_size(state);
	cmd->modify_srq.srq_limit = draw(state) % 50;
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
		cmd->query_port.port_num = draw(state) & 7 ? 1 : value(state);
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
		cmd->poll_cq.ne = draw(state) % 4;
		return sizeof(cmd->poll_cq);
	case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
		cmd->req_notify.cq_handle = any_handle(CQ, state);
		cmd->req_notify.solicited_only = draw(state) & 1;
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
		cmd->post_send.wr_count = draw(state) & 7 ? 0 : value(state);
		cmd->post_send.sge_count = draw(state) & 7 ? 0 : value(state);
		cmd->post_send.wqe_size = sizeof(struct ib_uverbs_send_wr);
		return sizeof(cmd->post_send);
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
	case IB_USER_VERBS_CMD_DETACH_MCAST:
		cmd->mcast.gid[0] = 0xff;
		cmd->mcast.qp_handle = any_handle(QP, state);
		cmd->mcast.mlid = 0xc000 | draw(state);
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

	if (draw(state) & 7)
		return often[draw(state) % ARRAY_SIZE(often)];
	/* Behind the last one is the space of none. */
	return draw(state) % (IB_USER_VERBS_CMD_OPEN_QP + 2);
}

/* Makes a right command wrong somewhere. */
static void spoil(struct command *cmd, size_t *bytes, uint64_t *state)
{
	switch (draw(state) % 5) {
	case 0:
		cmd->words[draw(state) % (*bytes / 4)] = value(state);
		break;
	case 1:
		cmd->words[draw(state) % (*bytes / 4)] ^= 1U << draw(state) % 32;
		break;
	case 2:
		cmd->hdr.in_words = value(state);
		break;
	case 3:
		cmd->hdr.out_words = draw(state) % (RESP_BYTES / 4);
		break;
	default:
		*bytes = draw(state) % sizeof(cmd->words) & ~3U;
	}
}

/* The kernel may be asked to write where it cannot, but not where we have something. */
static void spoil_response(struct command *cmd, uint64_t *state)
{
	const uint64_t wrong[] = { 0, 8, (uintptr_t)resp + 1, (uintptr_t)resp + RESP_BYTES - 8,
				   (uintptr_t)resp + RESP_BYTES, 0xffff888000000000 };

	if (cmd->response != (uintptr_t)resp || !(draw(state) & 7))
		cmd->response = wrong[draw(state) % ARRAY_SIZE(wrong)];
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
	if (right || draw(state) & 1)
		cmd.hdr.in_words = (sizeof(cmd.hdr) + bytes) / 4;
	/* Extended ones all answer. */
	if (!right && answers && !(draw(state) & 7))
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

static void make_ioctl(long n, uint64_t *state)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[8];
	} req = {
		.hdr = { .object_id = draw(state) % 18, .method_id = draw(state) % 10,
			 .driver_id = draw(state) & 31 ? RDMA_DRIVER_RXE : value(state) },
	};
	static const uint16_t lengths[] = { 0, 4, 8, 16, 24, 40, 64, 512 };
	uint32_t i, nr = draw(state) % (ARRAY_SIZE(req.attrs) + 1);

	for (i = 0; i < nr; i++) {
		req.attrs[i] = (struct ib_uverbs_attr) {
			.attr_id = draw(state) & 3 ? i : draw(state) & 1 ? draw(state) % 16 :
				   0x1000 | draw(state) % 4,
			.len = lengths[draw(state) % ARRAY_SIZE(lengths)],
			.flags = draw(state) & 7 ? UVERBS_ATTR_F_MANDATORY : draw(state),
			.data = draw(state) & 1 ? (uintptr_t)resp :
				draw(state) & 3 ? any_handle(draw(state) % NR_KINDS, state) : value(state),
		};
	}
	req.hdr.num_attrs = draw(state) & 31 ? nr : value(state);
	req.hdr.length = draw(state) & 31 ? sizeof(req.hdr) + nr * sizeof(req.attrs[0]) : value(state);
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
	if (!(draw(state) & 15))
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

	if (draw(state) & 1)
		unmap_rings();
	cmd_fd = -1;
	for (i = 3; i < 1024; i++)
		close(i);
	for (i = 0; i < NR_KINDS; i++)
		pool[i].nr = 0;
}

int main(int argc, char **argv)
{
	pthread_t thread[SCRIBBLERS];
	uint64_t state;
	long n, operations;
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: uverbs_fuzz <node> <operations> [<seed> [trace]]\n");
		return 2;
	}
	node = argv[1];
	operations = atol(argv[2]);
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
	trace = argc > 4;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)state);
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
	for (n = 0; n < operations && !failed; n++) {
		if (n % LIFE == LIFE - 1) {
			close_all(&state);
			open_node(&state);
		}
		if (n % LIFE == 0)
			furnish(n, &state);
		if (!(draw(&state) & 7))
			make_ioctl(n, &state);
		else if (!(draw(&state) & 255))
			map_anything(&state);
		else
			make_command(n, draw_number(&state), draw(&state) & 3, &state);
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
