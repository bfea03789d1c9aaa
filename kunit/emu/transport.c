// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the software HCA's engine asks of a transport that is not the one in memory: the
 * engine's sources are included here, and the cases have a transport that records what it is
 * asked, and answers as they want it to. Queue pairs have a send queue and a doorbell, and
 * nothing else.
 */
#include <linux/percpu.h>

#include "lib/lib.h"
#include "../drivers/emu/lib/wait.c"
#include "../drivers/emu/queue/doorbell.c"
#include "../drivers/emu/engine/exec.c"
#include "../drivers/emu/engine/engine.c"

#define DEPTH		8
/* Longer than any case takes. */
#define LONG_NS		(3600ULL * NSEC_PER_SEC)
/* A code for 10 us, the shortest time. */
#define RNR_TIMER	1

/* A queue pair, its transport, and the calls to that. */
static struct wire {
	struct emu_qp *qp;		/* the queue pair */
	struct emu_port port;
	struct kvt_trace *tr;		/* what was asked, in order */
	/* What the transport answers, in order; after the last one EMU_DONE. */
	enum emu_outcome answers[DEPTH];
	unsigned int nr_answers;	/* number of @answers */
	unsigned int asked;		/* number of questions */
	u64 delay_ns;			/* how long a wait takes; as long as no case takes, if 0 */
	struct completion left;		/* completed when the owner has left */
	enum ib_wc_status status;	/* status of the last entry that the engine ended */
} wire;

/* --- what the engine's sources use of others -------------------------------- */

/* No process has a queue here. */
const struct emu_user_ops *emu_user;

DEFINE_STATIC_KEY_FALSE(emu_faulty);
DEFINE_STATIC_KEY_FALSE(emu_detour);
struct emu_ram emu_main_ram;
atomic_long_t emu_fabric_gen = ATOMIC_LONG_INIT(1);
atomic_long_t emu_keys_gen = ATOMIC_LONG_INIT(1);

void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why)
{
	kvt_trace_add(wire.tr, "completed");
	wire.status = status;
	emu_ring_advance(&qp->sq, pos);
}

void emu_qp_fail(struct emu_qp *qp)
{
	atomic_set(&qp->state, IB_QPS_ERR);
}

s64 emu_qp_flush(struct emu_qp *qp, s64 budget)
{
	kvt_trace_add(wire.tr, "flush");
	return budget;
}

enum emu_outcome emu_region_invalidate(const struct ib_qp *qp, u32 key, enum emu_syndrome *why)
{
	kvt_trace_add(wire.tr, "invalidate");
	return EMU_DONE;
}

bool emu_datagram_needs_runner(const struct emu_exec *ex, struct emu_swqe *wqe)
{
	kvt_trace_add(wire.tr, __func__);
	return false;
}

#define NOT_CALLED(function, ...)					\
enum emu_outcome function(__VA_ARGS__)					\
{									\
	kvt_trace_add(wire.tr, #function);				\
	return EMU_FAILED;						\
}

NOT_CALLED(emu_enter_peer, struct emu_exec *ex)
NOT_CALLED(emu_lost_recv, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_send, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_write, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_read, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_atomic, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_datagram, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_read_data, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_exec_atomic_data, struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
NOT_CALLED(emu_region_register, const struct ib_qp *qp, const struct emu_reg *reg,
	   enum emu_syndrome *why)
NOT_CALLED(emu_region_bind, const struct ib_qp *qp, const struct emu_bind *bind, bool by_process,
	   enum emu_syndrome *why)

#define NOT_USED(function, ...)						\
void function(__VA_ARGS__)						\
{									\
	kvt_trace_add(wire.tr, #function);				\
}

NOT_USED(emu_capture_begin, struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done)
NOT_USED(emu_capture_answer, struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done)
NOT_USED(emu_capture_end, struct emu_exec *ex, enum emu_outcome outcome, struct emu_captured *done)
NOT_USED(emu_leave_peer, struct emu_exec *ex)
NOT_USED(emu_cursor_leave, struct emu_cursor *cur)
NOT_USED(emu_srq_check_limit, struct emu_srq *srq)
NOT_USED(emu_port_flap, struct emu_port *port, u32 ms)
NOT_USED(emu_qp_fail_sends, struct emu_qp *qp)
NOT_USED(emu_qp_drained, struct emu_qp *qp)
NOT_USED(emu_qp_lost, struct emu_qp *qp)
NOT_USED(emu_cq_overrun, struct emu_cq *cq)
NOT_USED(emu_cq_wake, struct emu_cq *cq, u32 pos, bool any)

bool emu_target_find(struct emu_target *target, struct emu_device *edev, u32 key)
{
	return false;
}

void *emu_target_pages(const struct emu_region *region, u64 offset, u32 length)
{
	return NULL;
}

void *emu_dma_span_slow(struct emu_device *edev, u64 addr, u64 len)
{
	return NULL;
}

enum emu_syndrome emu_region_must_leave(const struct emu_region *region)
{
	return EMU_SYN_NONE;
}

bool emu_cursor_next_slow(struct emu_cursor *cur)
{
	return false;
}

bool emu_cursor_check_rest(struct emu_cursor *cur)
{
	return false;
}

enum emu_fault_action emu_fault_in_exec(struct emu_device *edev,
					const struct emu_fault_site *site, u64 *value)
{
	return EMU_FAULT_NONE;
}

u32 emu_fault_in_link(struct emu_device *edev, u32 port_num)
{
	return 0;
}

bool emu_fault_in_cqe(struct emu_device *edev)
{
	return false;
}

/* --- the transport ------------------------------------------------------------ */

static enum emu_outcome wire_answer(struct emu_exec *ex, const char *what, u32 pos)
{
	enum emu_outcome outcome = EMU_DONE;

	kvt_trace_add(wire.tr, "%s%s", what, ex->may_sleep ? "(runner)" : "");
	if (wire.asked < wire.nr_answers)
		outcome = wire.answers[wire.asked];
	wire.asked++;
	ex->delay_ns = wire.delay_ns ?: LONG_NS;
	ex->rnr_timer = RNR_TIMER;
	if (outcome == EMU_DONE)
		emu_ring_advance(&ex->qp->sq, pos);
	return outcome;
}

#define WIRE_FUNCTION(name)								\
static enum emu_outcome wire_##name(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)	\
{											\
	return wire_answer(ex, #name, pos);						\
}

WIRE_FUNCTION(send)
WIRE_FUNCTION(write)
WIRE_FUNCTION(read)
WIRE_FUNCTION(atomic)
WIRE_FUNCTION(datagram)

static void wire_leave(struct emu_exec *ex)
{
	kvt_trace_add(wire.tr, "leave");
	complete(&wire.left);
}

static const struct emu_transport wire_transport = {
	.send = wire_send,
	.write = wire_write,
	.read = wire_read,
	.atomic = wire_atomic,
	.datagram = wire_datagram,
	.leave = wire_leave,
};

/* Its functions are the engine's own affair; here it is only told from the other. */
const struct emu_transport emu_in_memory = {
	.fastpath = true,
};

static void wire_qp_end(void *arg)
{
	struct emu_qp *qp = arg;

	mutex_lock(&qp->lock);
	emu_qp_freeze(qp);
	emu_qp_exit_doorbell(qp);
	mutex_unlock(&qp->lock);
	emu_qp_free_doorbell(qp);
	emu_ring_destroy(&qp->sq);
	/* A former owner may be about to look whether somebody waits. */
	synchronize_rcu();
}

static int wire_init(struct kunit *test)
{
	struct emu_qp *qp = kvt_zalloc(test, sizeof(*qp));

	memset(&wire, 0, sizeof(wire));
	init_completion(&wire.left);
	wire.tr = kvt_trace_new(test);
	wire.qp = qp;
	wire.port.counters = alloc_percpu(struct emu_counters);
	if (!wire.port.counters)
		return -ENOMEM;

	qp->ibqp.qp_type = IB_QPT_RC;
	qp->port = &wire.port;
	qp->transport = &wire_transport;
	qp->attr.retry_cnt = 1;
	qp->attr.rnr_retry = 1;
	qp->attr.timeout = 1;
	atomic_set(&qp->state, IB_QPS_RTS);
	mutex_init(&qp->lock);
	KUNIT_ASSERT_EQ(test, 0, emu_qp_init_doorbell(qp));
	emu_qp_reset_retries(qp);
	kvt_defer(test, wire_qp_end, qp);
	return emu_ring_init(&qp->sq, DEPTH, sizeof(struct emu_swqe));
}

static void wire_exit(struct kunit *test)
{
	/* The runners use it until the queue pair is frozen, if a case has failed. */
	kunit_release_action(test, wire_qp_end, wire.qp);
	free_percpu(wire.port.counters);
}

static void wire_post(u8 opcode)
{
	struct emu_swqe *wqe;
	u32 pos;

	preempt_disable();
	wqe = emu_ring_reserve(&wire.qp->sq, &pos);
	memset_after(wqe, 0, slot);
	wqe->opcode = opcode;
	emu_ring_publish(&wqe->slot, pos);
	preempt_enable();
	emu_qp_ring(wire.qp);
}

/* --- cases ---------------------------------------------------------------------- */

static const struct operation {
	u8 opcode;
	const char *name;
	const char *trace;
} operations[] = {
	{ IB_WR_SEND, "send", "send leave" },
	{ IB_WR_SEND_WITH_IMM, "send with immediate data", "send leave" },
	{ IB_WR_SEND_WITH_INV, "send with invalidation", "send leave" },
	{ IB_WR_RDMA_WRITE, "write", "write leave" },
	{ IB_WR_RDMA_WRITE_WITH_IMM, "write with immediate data", "write leave" },
	{ IB_WR_RDMA_READ, "read", "read leave" },
	{ IB_WR_RDMA_READ_WITH_INV, "read with invalidation", "read leave" },
	{ IB_WR_ATOMIC_CMP_AND_SWP, "compare and swap", "atomic leave" },
	{ IB_WR_ATOMIC_FETCH_AND_ADD, "fetch and add", "atomic leave" },
	/* Nothing that a peer notices. */
	{ IB_WR_LOCAL_INV, "local invalidation", "invalidate completed leave" },
};

KUNIT_ARRAY_PARAM_DESC(operation, operations, name);

static void each_operation_is_asked_for(struct kunit *test)
{
	const struct operation *operation = test->param_value;

	wire_post(operation->opcode);
	KVT_EXPECT_TRACE(test, wire.tr, operation->trace);
}

static void datagram_is_asked_for(struct kunit *test)
{
	wire.qp->ibqp.qp_type = IB_QPT_UD;
	wire.qp->av_offset = sizeof(struct emu_swqe);
	wire_post(IB_WR_SEND);
	KVT_EXPECT_TRACE(test, wire.tr, "datagram leave");
}

/* Peers in memory are reached without a table, and there is nothing to leave. */
static void transport_in_memory_is_not_asked(struct kunit *test)
{
	wire.qp->transport = &emu_in_memory;
	wire.qp->fastpath = true;
	wire_post(IB_WR_RDMA_READ);
	KVT_EXPECT_TRACE(test, wire.tr, "emu_exec_read");
	/* The entry was not ended. */
	wire.qp->fastpath = false;
	kvt_trace_reset(wire.tr);
	emu_qp_ring(wire.qp);
	KVT_EXPECT_TRACE(test, wire.tr, "emu_exec_datagram");
}

/* Posts an entry that is answered with @first at first, and waits until it is done. */
static void wire_post_twice_asked(struct kunit *test, enum emu_outcome first,
				  enum emu_outcome second)
{
	wire.answers[0] = first;
	wire.answers[1] = second;
	wire.nr_answers = 2;
	wire_post(IB_WR_SEND);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&wire.left));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&wire.left));
}

/* Requests posted meanwhile wait behind it, and the owner leaves when nothing is left. */
static void wait_ends_when_the_transport_says_so(struct kunit *test)
{
	wire.answers[0] = EMU_DELAYED;
	wire.nr_answers = 1;
	wire_post(IB_WR_SEND);
	wire_post(IB_WR_RDMA_WRITE);
	wire_post(IB_WR_RDMA_READ);
	KVT_EXPECT_TRACE(test, wire.tr, "send leave");
	kvt_trace_reset(wire.tr);
	reinit_completion(&wire.left);
	emu_qp_unpark(wire.qp);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&wire.left));
	KVT_EXPECT_TRACE(test, wire.tr, "send(runner) write(runner) read(runner) leave");
}

static void runner_goes_on_if_asked_to(struct kunit *test)
{
	wire_post_twice_asked(test, EMU_AGAIN, EMU_DONE);
	KVT_EXPECT_TRACE(test, wire.tr, "send leave send(runner) leave");
}

static void time_of_the_transport_is_waited_for(struct kunit *test)
{
	wire.delay_ns = 10 * NSEC_PER_USEC;
	wire_post_twice_asked(test, EMU_DELAYED, EMU_DONE);
	KVT_EXPECT_TRACE(test, wire.tr, "send leave send(runner) leave");
}

static void wire_expect_given_up(struct kunit *test, enum ib_wc_status status, const char *trace)
{
	/* The owner has more to do after it has left: waits for its end. */
	mutex_lock(&wire.qp->lock);
	emu_qp_freeze(wire.qp);
	KVT_EXPECT_TRACE(test, wire.tr, trace);
	KUNIT_EXPECT_EQ(test, wire.status, status);
	emu_qp_thaw(wire.qp);
	mutex_unlock(&wire.qp->lock);
}

/* The last attempt has its time, too; nothing is asked for after that. */
static void wire_expect_unanswered(struct kunit *test)
{
	KUNIT_ASSERT_TRUE(test, kvt_until(READ_ONCE(wire.status) == IB_WC_RETRY_EXC_ERR));
	wire_expect_given_up(test, IB_WC_RETRY_EXC_ERR,
			     "send leave send(runner) leave completed leave flush");
}

static void receiver_that_is_never_ready_ends_it(struct kunit *test)
{
	wire_post_twice_asked(test, EMU_RNR, EMU_RNR);
	wire_expect_given_up(test, IB_WC_RNR_RETRY_EXC_ERR,
			     "send leave send(runner) leave completed flush");
}

/* What a responder that is not ready says is an answer: the retries begin anew. */
static void answer_restores_the_retries(struct kunit *test)
{
	wire.qp->attr.retry_cnt = 0;
	emu_qp_reset_retries(wire.qp);
	wire.qp->retries = -1;
	wire_post_twice_asked(test, EMU_RNR, EMU_NO_RESPONSE);
	wire_expect_unanswered(test);
}

static void peer_that_never_answers_ends_it(struct kunit *test)
{
	wire_post_twice_asked(test, EMU_NO_RESPONSE, EMU_NO_RESPONSE);
	wire_expect_unanswered(test);
}

static int wire_suite_init(struct kunit_suite *suite)
{
	return emu_engine_init();
}

static void wire_suite_exit(struct kunit_suite *suite)
{
	emu_engine_exit();
}

static struct kunit_case emu_transport_cases[] = {
	KUNIT_CASE_PARAM(each_operation_is_asked_for, operation_gen_params),
	KUNIT_CASE(datagram_is_asked_for),
	KUNIT_CASE(transport_in_memory_is_not_asked),
	KUNIT_CASE(wait_ends_when_the_transport_says_so),
	KUNIT_CASE(runner_goes_on_if_asked_to),
	KUNIT_CASE(time_of_the_transport_is_waited_for),
	KUNIT_CASE(receiver_that_is_never_ready_ends_it),
	KUNIT_CASE(answer_restores_the_retries),
	KUNIT_CASE(peer_that_never_answers_ends_it),
	{}
};
KVT_SUITE(emu_transport,
	  .suite_init = wire_suite_init, .suite_exit = wire_suite_exit, .init = wire_init, .exit = wire_exit);

MODULE_DESCRIPTION("KUnit: what the software HCA's engine asks of a transport");
MODULE_LICENSE("GPL");
