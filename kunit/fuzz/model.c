// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of the exerciser: which objects use which others, which QP state changes are
 * legal, and how each work request completes. It makes no verbs calls.
 *
 * In the model a request is executed as soon as it is posted. The thread makes sure that no
 * result depends on when the device really executes it, see &x_world.async. The model
 * belongs to one thread and needs no locks.
 */
#include "fuzz/fuzz.h"

/* --- changes of state: IBTA vol. 1, table 91, a row for each type --- */

#define PATH		(IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define MIGRATE		(IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE | IB_QP_ACCESS_FLAGS)
#define RETRY		(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
			 IB_QP_MAX_QP_RD_ATOMIC)

struct x_move {
	u8 type;
	u8 from;
	u8 to;
	int required;
	int optional;
};

#define MOVE(type, from, to, required, optional) \
	{ IB_QPT_##type, IB_QPS_##from, IB_QPS_##to, required, optional }

static const struct x_move moves[] = {
	MOVE(RC, RESET, INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0),
	MOVE(RC, INIT, INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS),
	MOVE(RC, INIT, RTR, PATH | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	     IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX),
	MOVE(RC, RTR, RTS, IB_QP_SQ_PSN | RETRY, IB_QP_CUR_STATE | MIGRATE | IB_QP_MIN_RNR_TIMER),
	MOVE(RC, RTS, RTS, 0, IB_QP_CUR_STATE | MIGRATE | IB_QP_MIN_RNR_TIMER),
	MOVE(RC, RTS, SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY),
	MOVE(RC, SQD, RTS, 0, IB_QP_CUR_STATE | MIGRATE | IB_QP_MIN_RNR_TIMER),
	MOVE(RC, SQD, SQD, 0, IB_QP_PORT | IB_QP_AV | RETRY | IB_QP_MAX_DEST_RD_ATOMIC |
	     MIGRATE | IB_QP_PKEY_INDEX | IB_QP_MIN_RNR_TIMER),

	MOVE(UC, RESET, INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0),
	MOVE(UC, INIT, INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS),
	MOVE(UC, INIT, RTR, PATH, IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX),
	MOVE(UC, RTR, RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | MIGRATE),
	MOVE(UC, RTS, RTS, 0, IB_QP_CUR_STATE | MIGRATE),
	MOVE(UC, RTS, SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY),
	MOVE(UC, SQD, RTS, 0, IB_QP_CUR_STATE | MIGRATE),
	MOVE(UC, SQD, SQD, 0, IB_QP_AV | MIGRATE | IB_QP_PKEY_INDEX),
	MOVE(UC, SQE, RTS, 0, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS),

	MOVE(UD, RESET, INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY, 0),
	MOVE(UD, INIT, INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY),
	MOVE(UD, INIT, RTR, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY),
	MOVE(UD, RTR, RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | IB_QP_QKEY),
	MOVE(UD, RTS, RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY),
	MOVE(UD, RTS, SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY),
	MOVE(UD, SQD, RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY),
	MOVE(UD, SQD, SQD, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY),
	MOVE(UD, SQE, RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY),
};

static const struct x_move *find_move(enum ib_qp_state from, enum ib_qp_state to,
				      enum ib_qp_type type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(moves); i++) {
		if (moves[i].type == type && moves[i].from == from && moves[i].to == to)
			return &moves[i];
	}
	return NULL;
}

/* Returns whether a change of state is legal with the attributes in @mask, less IB_QP_STATE. */
bool xm_may_modify(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type, int mask)
{
	const struct x_move *move;

	/* Legal from any state, except from RESET to ERR, but without attributes. */
	if (to == IB_QPS_RESET || (to == IB_QPS_ERR && from != IB_QPS_RESET))
		return !mask;
	move = find_move(from, to, type);
	return move && (mask & move->required) == move->required &&
	       !(mask & ~(move->required | move->optional));
}

/* Returns the attributes that a change of state needs. */
int xm_required(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type)
{
	const struct x_move *move = find_move(from, to, type);

	return move ? move->required : 0;
}

/* --- objects: which ones use which others --- */

void xm_make(struct x_world *w, enum x_kind kind, int slot, int dev)
{
	w->obj[kind][slot] = (struct x_obj){ .there = true, .dev = dev };
}

void xm_use(struct x_world *w, enum x_kind kind, int slot, enum x_kind used, int used_slot)
{
	struct x_obj *obj = &w->obj[kind][slot];

	if (w->lie == X_LIE_COUNT && kind == X_MR)
		return;
	obj->kind[obj->nr] = used;
	obj->slot[obj->nr++] = used_slot;
	w->obj[used][used_slot].users++;
}

/* Returns 0 or -EBUSY. */
int xm_may_destroy(const struct x_world *w, enum x_kind kind, int slot)
{
	if (kind == X_QP && w->qp[slot].groups)
		return -EBUSY;
	return w->obj[kind][slot].users ? -EBUSY : 0;
}

void xm_gone(struct x_world *w, enum x_kind kind, int slot)
{
	struct x_obj *obj = &w->obj[kind][slot];

	while (obj->nr--)
		w->obj[obj->kind[obj->nr]][obj->slot[obj->nr]].users--;
	memset(obj, 0, sizeof(*obj));
}

/* --- queues --- */

void xm_queue_init(struct x_queue *q, struct x_world *w, const char *name, int dev, u32 base,
		   u32 depth)
{
	memset(q, 0, sizeof(*q));
	q->w = w;
	q->name = name;
	q->dev = dev;
	q->base = base;
	q->depth = depth;
}

/* Requests that are left in the queue never complete. */
void xm_queue_clear(struct x_queue *q)
{
	int i;

	q->head = 0;
	q->next = 0;
	q->checked = 0;
	q->retired = 0;
	q->floor = 0;
	q->completions = 0;
	atomic_set(&q->order, 0);
	for (i = 0; i < X_WRS; i++)
		atomic_set(&q->wr[i].state, X_IDLE);
}

u32 xm_queue_used(const struct x_queue *q)
{
	return q->w->lie == X_LIE_EVER ? 0 : q->head - q->retired;
}

/*
 * Called when all requests that have ended have completed. A send without a completion takes
 * room until a later send completes.
 */
void xm_queue_retire(struct x_queue *q, bool sends)
{
	u32 pos = q->next;

	/* Requests that were in the SRQ when its size was changed take no room. */
	if ((s32)(q->floor - pos) > 0)
		pos = q->floor;
	while (sends && pos != q->retired && !xm_wr(q, pos - 1)->completes)
		pos--;
	q->retired = pos;
}

static int opcode_of(const struct x_wr *wr)
{
	static const int opcodes[] = {
		[X_SEND] = IB_WC_SEND,
		[X_WRITE] = IB_WC_RDMA_WRITE,
		[X_READ] = IB_WC_RDMA_READ,
		[X_ATOMIC] = IB_WC_FETCH_ADD,
		[X_MCAST] = IB_WC_SEND,
		[X_REG] = IB_WC_REG_MR,
		[X_INV] = IB_WC_LOCAL_INV,
		[X_BIND] = IB_WC_BIND_MW,
		[X_INV_MW] = IB_WC_LOCAL_INV,
		[X_RECV] = IB_WC_RECV,
	};

	return wr->what == X_ATOMIC && wr->swaps ? IB_WC_COMP_SWAP : opcodes[wr->what];
}

/* Ends the oldest request of a queue, as a request of @qp. */
static void end_wr(struct x_qp *qp, struct x_queue *q, enum ib_wc_status status)
{
	struct x_wr *wr = xm_wr(q, q->next++);
	struct x_world *w = q->w;

	wr->ended = true;
	wr->want_wc.qp = w->ptr[X_QP][qp - w->qp];
	wr->want_wc.cq = w->ptr[X_CQ][wr->what == X_RECV ? qp->rcq : qp->scq];
	if (wr->what != X_RECV)
		wr->want_wc.opcode = opcode_of(wr);
	wr->want = status;
	/* A type 1 window gets a new key when a bind is posted: it is wrong if the bind fails. */
	if (wr->what == X_BIND && !q->w->mw[wr->mw].two)
		q->w->mw[wr->mw].stale = status != IB_WC_SUCCESS;
	wr->completes = wr->what == X_RECV || wr->signaled || status != IB_WC_SUCCESS;
	if (wr->completes) {
		wr->want_order = ++q->completions;
		/* Read at any moment by contexts that handle completions. */
		WRITE_ONCE(q->w->expected, q->w->expected + 1);
	}
}

static bool flush(struct x_qp *qp, struct x_queue *q)
{
	bool any = q->next != q->head;
	int status = q->w->lie == X_LIE_STATUS ? IB_WC_SUCCESS : IB_WC_WR_FLUSH_ERR;

	while (q->next != q->head)
		end_wr(qp, q, status);
	return any;
}

/* --- execution --- */

static bool responds(const struct x_qp *qp)
{
	switch (qp->state) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* Returns the peer of a connected QP, or NULL if no peer would answer. */
struct x_qp *xm_peer(struct x_world *w, struct x_qp *qp)
{
	int own = xm_dev(w, X_QP, qp - w->qp), i;
	struct x_qp *peer;

	for (i = 0; i < X_SLOTS; i++) {
		peer = &w->qp[i];
		if (!xm_there(w, X_QP, i) || xm_dev(w, X_QP, i) != qp->dest_dev ||
		    peer->num != qp->dest)
			continue;
		return peer->type == qp->type && peer->dest_dev == own &&
		       peer->dest == qp->num && responds(peer) ? peer : NULL;
	}
	return NULL;
}

static void tell(struct x_qp *qp, enum x_event event)
{
	qp->events[event]++;
}

/* For an event that occurs at most once between two resets. */
static void tell_once(struct x_qp *qp, enum x_event event)
{
	if (qp->told & BIT(event))
		return;
	qp->told |= BIT(event);
	tell(qp, event);
}

/*
 * Likewise the peer that is to answer a request. The first request since its reset raises
 * COMM_EST if the peer is in RTR.
 */
static struct x_qp *ask_peer(struct x_world *w, struct x_qp *qp)
{
	struct x_qp *peer = xm_peer(w, qp);

	if (!peer || peer->told & BIT(X_COMM_EST))
		return peer;
	peer->told |= BIT(X_COMM_EST);
	if (peer->state == IB_QPS_RTR)
		tell(peer, X_COMM_EST);
	return peer;
}

/* Returns the queue whose receives take the messages to a QP: its own one, or its SRQ. */
struct x_queue *xm_receives(struct x_world *w, struct x_qp *qp)
{
	return qp->srq < 0 ? &qp->rq : &w->srq[qp->srq];
}

static struct x_wr *next_receive(struct x_world *w, struct x_qp *qp)
{
	struct x_queue *q = xm_receives(w, qp);

	return q->next != q->head ? xm_wr(q, q->next) : NULL;
}

static bool fail_sends(struct x_world *w, struct x_qp *qp, enum ib_wc_status status)
{
	end_wr(qp, &qp->sq, status);
	qp->state = qp->type == IB_QPT_RC ? IB_QPS_ERR : IB_QPS_SQE;
	w->async = true;
	return true;
}

/* The responder refuses a request: both QPs go to their error states. */
static bool fail_both(struct x_world *w, struct x_qp *qp, struct x_qp *peer,
		      enum ib_wc_status status)
{
	fail_sends(w, qp, status);
	peer->state = IB_QPS_ERR;
	tell(peer, status == IB_WC_REM_ACCESS_ERR ? X_ACCESS_ERR : X_REQ_ERR);
	return true;
}

/* The receive is too short for the message: both QPs fail. */
static bool fail_receive(struct x_world *w, struct x_qp *qp, struct x_qp *peer)
{
	end_wr(peer, xm_receives(w, peer), IB_WC_LOC_LEN_ERR);
	fail_sends(w, qp, IB_WC_REM_INV_REQ_ERR);
	peer->state = IB_QPS_ERR;
	return true;
}

/*
 * The responder cannot invalidate the key. If that names nothing in its PD, its receive says so,
 * as does the request. Else its receive fails, and it does not answer any more; if it is the requester,
 * too, its own error flushes the request.
 */
static bool fail_invalidation(struct x_world *w, struct x_qp *qp, struct x_qp *peer,
			      const struct x_wr *wr)
{
	const struct x_mr *mr = &w->mr[wr->inv];

	if (!xm_there(w, X_MR, wr->inv) || mr->pd != peer->pd || (mr->key ^ wr->inv_key) >> 8) {
		end_wr(peer, xm_receives(w, peer), IB_WC_REM_ACCESS_ERR);
		fail_sends(w, qp, IB_WC_REM_ACCESS_ERR);
		peer->state = IB_QPS_ERR;
		return true;
	}
	end_wr(peer, xm_receives(w, peer), IB_WC_MW_BIND_ERR);
	peer->state = IB_QPS_ERR;
	tell(peer, X_ACCESS_ERR);
	return fail_sends(w, qp, peer == qp ? IB_WC_WR_FLUSH_ERR : IB_WC_RETRY_EXC_ERR);
}

/* Completes the peer's next receive. @header: length of the GRH of a datagram, else 0. */
static void receive(struct x_world *w, struct x_qp *peer, struct x_qp *from,
		    const struct x_wr *wr, u32 header)
{
	struct x_wr *recv = next_receive(w, peer);
	struct x_whence *wc = &recv->want_wc;

	recv->want_len = wr->bytes + header;
	recv->want_payload = wr->payload;
	recv->no_data = wr->what == X_WRITE;
	wc->opcode = recv->no_data ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	wc->flags = (wr->imm ? IB_WC_WITH_IMM : 0) |
		    (wr->inv >= 0 ? IB_WC_WITH_INVALIDATE : 0) |
		    (wr->what == X_MCAST ? IB_WC_GRH : 0);
	wc->ex = wr->imm ? (u32)wr->payload : wr->inv >= 0 ? wr->inv_key : 0;
	wc->src = header ? from->num : 0;
	end_wr(peer, xm_receives(w, peer), IB_WC_SUCCESS);
}

static bool succeed(struct x_qp *qp)
{
	end_wr(qp, &qp->sq, IB_WC_SUCCESS);
	return true;
}

/* The message is lost, or was to a group: the send succeeds, maybe later than in the model. */
static bool drop(struct x_world *w, struct x_qp *qp)
{
	w->async = true;
	return succeed(qp);
}

static bool exec_datagram(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_qp *to = wr->dest < 0 ? NULL : &w->qp[wr->dest];
	struct x_wr *recv;

	/* A request that waited in SQD may find another QP in the slot of its destination. */
	if (!to || !xm_there(w, X_QP, wr->dest) || to->num != wr->key ||
	    to->type != IB_QPT_UD || !responds(to))
		return drop(w, qp);
	recv = next_receive(w, to);
	if (!recv || recv->bytes < wr->bytes + X_GRH)
		return drop(w, qp);
	receive(w, to, qp, wr, X_GRH);
	return succeed(qp);
}

/* Each member with a receive that is long enough gets a copy, even the sender. */
static bool exec_mcast(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_wr *recv;
	struct x_qp *to;
	int i;

	for (i = 0; i < X_SLOTS && wr->dest >= 0; i++) {
		to = &w->qp[i];
		if (!xm_there(w, X_QP, i) || !(to->groups & BIT(wr->dest)) || !responds(to))
			continue;
		recv = next_receive(w, to);
		if (recv && recv->bytes >= wr->bytes + X_GRH)
			receive(w, to, qp, wr, X_GRH);
	}
	return drop(w, qp);
}

static bool exec_unreliable(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_qp *peer = ask_peer(w, qp);
	struct x_wr *recv = peer ? next_receive(w, peer) : NULL;

	if (!recv || recv->bytes < wr->bytes)
		return drop(w, qp);
	receive(w, peer, qp, wr, 0);
	return succeed(qp);
}

/* Invalidates an MR, which must be of the QP's PD, but may be invalid already. */
static bool invalidate(struct x_world *w, const struct x_qp *qp, int slot, u32 key)
{
	struct x_mr *mr = &w->mr[slot];

	if (!xm_there(w, X_MR, slot) || mr->key != key || mr->pd != qp->pd || mr->windows)
		return false;
	mr->valid = false;
	return true;
}

/* The responder has no receive: the request waits for one, or fails. */
static bool find_no_receive(struct x_world *w, struct x_qp *qp)
{
	/* It retries without limit. */
	if (qp->rnr_retry == 7)
		return false;
	return fail_sends(w, qp, IB_WC_RNR_RETRY_EXC_ERR);
}

static bool exec_send(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_qp *peer;
	struct x_wr *recv;

	if (wr->bad_key)
		return fail_sends(w, qp, IB_WC_LOC_PROT_ERR);
	if (qp->type == IB_QPT_UD)
		return exec_datagram(w, qp, wr);
	if (qp->type == IB_QPT_UC)
		return exec_unreliable(w, qp, wr);

	peer = ask_peer(w, qp);
	if (!peer)
		return fail_sends(w, qp, IB_WC_RETRY_EXC_ERR);
	recv = next_receive(w, peer);
	if (!recv)
		return find_no_receive(w, qp);
	if (wr->inv >= 0 && !invalidate(w, peer, wr->inv, wr->inv_key))
		return fail_invalidation(w, qp, peer, wr);
	if (recv->bytes < wr->bytes)
		return fail_receive(w, qp, peer);
	receive(w, peer, qp, wr, 0);
	return succeed(qp);
}

/* Returns whether the MR of a request is still there, with the same key. */
static bool has_mr(const struct x_world *w, const struct x_wr *wr)
{
	return xm_there(w, X_MR, wr->mr) && w->mr[wr->mr].key == wr->key;
}

static bool may_access_user(const struct x_world *w, const struct x_qp *peer,
			    const struct x_wr *wr, int access)
{
	const struct x_user *user = &w->user[wr->user];

	return xm_there(w, X_USER, wr->user) && user->key == wr->key && user->pd == peer->pd &&
	       user->access & access;
}

/* Returns whether an RDMA request may access the window or region at the peer. */
static bool may_access(struct x_world *w, const struct x_qp *peer, const struct x_wr *wr)
{
	int access = wr->what == X_READ ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE;
	struct x_mr *mr;
	struct x_mw *mw;

	if (wr->user >= 0)
		return may_access_user(w, peer, wr, access);
	mr = &w->mr[wr->mr];
	if (wr->mw < 0)
		return has_mr(w, wr) && mr->valid && mr->pd == peer->pd &&
		       mr->access & access && wr->bytes <= mr->mapped;
	mw = &w->mw[wr->mw];
	return xm_there(w, X_MW, wr->mw) && mw->mr >= 0 && !mw->stale && mw->pd == peer->pd &&
	       mw->access & access && (!mw->two || mw->qpn == peer->num);
}

static bool exec_rdma(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_qp *peer;

	if (wr->bad_key && wr->what == X_WRITE)
		return fail_sends(w, qp, IB_WC_LOC_PROT_ERR);
	peer = ask_peer(w, qp);
	if (!peer)
		return fail_sends(w, qp, IB_WC_RETRY_EXC_ERR);
	if (!may_access(w, peer, wr)) {
		if (wr->imm && next_receive(w, peer))
			end_wr(peer, xm_receives(w, peer), IB_WC_LOC_ACCESS_ERR);
		return fail_both(w, qp, peer, IB_WC_REM_ACCESS_ERR);
	}
	if (wr->bad_key)
		return fail_sends(w, qp, IB_WC_LOC_PROT_ERR);
	if (wr->imm) {
		if (!next_receive(w, peer))
			return find_no_receive(w, qp);
		receive(w, peer, qp, wr, 0);
	}
	/* The data was read, even if the invalidation fails. */
	if (wr->what == X_READ && wr->inv >= 0 && !invalidate(w, qp, wr->inv, wr->inv_key))
		return fail_sends(w, qp, IB_WC_MW_BIND_ERR);
	if (wr->user >= 0 && wr->what == X_WRITE)
		w->user_word[wr->user] = wr->payload;
	else if (wr->user >= 0)
		wr->want_payload = w->user_word[wr->user];
	return succeed(qp);
}

/* Returns whether an atomic operation may change the word in the peer's region. */
static bool may_change(const struct x_world *w, const struct x_qp *peer, const struct x_wr *wr)
{
	const struct x_mr *mr = &w->mr[wr->mr];

	return has_mr(w, wr) && mr->valid && mr->pd == peer->pd &&
	       mr->access & IB_ACCESS_REMOTE_ATOMIC && wr->word < X_WORDS;
}

static bool exec_atomic(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_qp *peer;
	u64 *word;

	peer = ask_peer(w, qp);
	if (!peer)
		return fail_sends(w, qp, IB_WC_RETRY_EXC_ERR);
	if (wr->word < 0 || !(peer->access & IB_ACCESS_REMOTE_ATOMIC))
		return fail_both(w, qp, peer, IB_WC_REM_INV_REQ_ERR);
	if (!may_change(w, peer, wr))
		return fail_both(w, qp, peer, IB_WC_REM_ACCESS_ERR);
	word = &w->word[qp->dest_dev][wr->word];
	wr->want_payload = *word;
	if (!wr->swaps)
		*word += wr->operand;
	else if (*word == wr->operand)
		*word = wr->payload;
	/* The peer has answered, but the answer has no place. */
	if (wr->bad_key)
		return fail_sends(w, qp, IB_WC_LOC_PROT_ERR);
	return succeed(qp);
}

static bool exec_mr(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_mr *mr = &w->mr[wr->mr];

	/* An MR that is not valid can be invalidated, but a valid one cannot be registered. */
	if (!has_mr(w, wr) || mr->pd != qp->pd || mr->windows || (wr->what == X_REG && mr->valid))
		return fail_sends(w, qp, IB_WC_MW_BIND_ERR);
	mr->valid = wr->what == X_REG;
	if (mr->valid)
		mr->access = wr->access;
	return succeed(qp);
}

/* Ends the binding of a window, if it has one. */
void xm_unbind(struct x_world *w, int slot)
{
	struct x_mw *mw = &w->mw[slot];

	if (mw->mr >= 0)
		w->mr[mw->mr].windows--;
	mw->mr = -1;
	mw->qpn = 0;
}

static bool may_bind(const struct x_world *w, const struct x_qp *qp, const struct x_wr *wr)
{
	const struct x_mw *mw = &w->mw[wr->mw];
	const struct x_mr *mr;

	if (mw->pd != qp->pd)
		return false;
	/* Only a type 1 window can be bound while it is bound, or be bound to nothing. */
	if (mw->two && (wr->mr < 0 || mw->mr >= 0))
		return false;
	if (wr->mr < 0)
		return true;
	mr = &w->mr[wr->mr];
	return mr->valid && mr->pd == qp->pd && mr->access & IB_ACCESS_MW_BIND;
}

static bool exec_bind(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_mw *mw = &w->mw[wr->mw];

	if (!may_bind(w, qp, wr))
		return fail_sends(w, qp, IB_WC_MW_BIND_ERR);
	xm_unbind(w, wr->mw);
	mw->mr = wr->mr;
	if (mw->mr >= 0) {
		mw->access = wr->access;
		mw->qpn = mw->two ? qp->num : 0;
		w->mr[mw->mr].windows++;
	}
	return succeed(qp);
}

static bool exec_inv_mw(struct x_world *w, struct x_qp *qp, struct x_wr *wr)
{
	struct x_mw *mw = &w->mw[wr->mw];

	if (mw->pd != qp->pd || !mw->two || (mw->mr >= 0 && mw->qpn != qp->num))
		return fail_sends(w, qp, IB_WC_MW_BIND_ERR);
	xm_unbind(w, wr->mw);
	return succeed(qp);
}

/* Executes the oldest request of a send queue. Returns false if it has to wait. */
static bool exec(struct x_world *w, struct x_qp *qp)
{
	struct x_wr *wr = xm_wr(&qp->sq, qp->sq.next);

	switch (wr->what) {
	case X_SEND:
		return exec_send(w, qp, wr);
	case X_WRITE:
	case X_READ:
		return exec_rdma(w, qp, wr);
	case X_ATOMIC:
		return exec_atomic(w, qp, wr);
	case X_MCAST:
		return exec_mcast(w, qp, wr);
	case X_BIND:
		return exec_bind(w, qp, wr);
	case X_INV_MW:
		return exec_inv_mw(w, qp, wr);
	default:
		return exec_mr(w, qp, wr);
	}
}

static bool step(struct x_world *w, struct x_qp *qp)
{
	switch (qp->state) {
	case IB_QPS_ERR:
		/* A QP in ERR takes no more receives from its SRQ. */
		if (qp->srq >= 0 && w->lie != X_LIE_EVENT)
			tell_once(qp, X_LAST_WQE);
		return flush(qp, &qp->sq) | flush(qp, &qp->rq);
	case IB_QPS_SQE:
		return flush(qp, &qp->sq);
	case IB_QPS_RTS:
		return qp->sq.next != qp->sq.head && exec(w, qp);
	default:
		return false;
	}
}

/* Returns whether requests in the send queue wait to be executed. */
bool xm_is_blocked(const struct x_qp *qp)
{
	return qp->sq.next != qp->sq.head;
}

/* Executes all requests of all QPs that can be executed. */
void xm_run(struct x_world *w)
{
	bool more;
	int i;

	do {
		more = false;
		for (i = 0; i < X_SLOTS; i++) {
			while (xm_there(w, X_QP, i) && step(w, &w->qp[i]))
				more = true;
		}
	} while (more);
}

/* Applies a legal change of state. */
void xm_moved(struct x_world *w, struct x_qp *qp, enum ib_qp_state to)
{
	if (to == IB_QPS_RESET) {
		xm_queue_clear(&qp->sq);
		xm_queue_clear(&qp->rq);
		qp->dest_dev = -1;
		qp->notify = false;
		qp->told = 0;
	}
	/* All requests posted before have been executed: the send queue is drained. */
	if (qp->state == IB_QPS_RTS && to == IB_QPS_SQD && qp->notify)
		tell(qp, X_SQ_DRAINED);
	qp->state = to;
	xm_run(w);
}
