// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events and faults of the software HCA that are injected through debugfs, and links that
 * are set through configfs: what consumers see of them.
 */
#include <linux/umh.h>
#include <kverbs/completion.h>

#include "emu/control.h"
#include "lib/objects.h"

#define DEVICE		"emu0"
#define PEER		"emu1"
#define ALWAYS		1000000

/* Messages of a sequence, and the rate at which they fail, per million. */
#define SEQUENCE	200
#define SOME		100000

#define DELAY_US	500000

static const char *const fault_files[] = {
	"comp_error", "delay", "port_flap", "drop_notify", "cq_overflow", "alloc_fail",
};

int control_shell(const char *fmt, ...)
{
	static char *envp[2] = { "PATH=/bin", NULL };
	char command[256];
	char *argv[4] = { "/bin/sh", "-c", command, NULL };
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

void control_make_unreliable(struct kunit *test, struct rig *r)
{
	rig_destroy_qp(test, &r->a);
	rig_destroy_qp(test, &r->b);
	r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
}

/* Writes to a file of the device. Returns what control_shell() does. */
static int put(const char *file, const char *text)
{
	return control_shell("echo %s 2>/dev/null >/sys/kernel/debug/kverbs_emu/" DEVICE "/%s",
			     text, file);
}

static int put_fault(const char *kind, u32 value)
{
	char file[32], text[16];

	snprintf(file, sizeof(file), "faults/%s", kind);
	snprintf(text, sizeof(text), "%u", value);
	return put(file, text);
}

static void no_faults(void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fault_files); i++)
		put_fault(fault_files[i], 0);
}

/* Sets a fault until the case ends or no_faults() is called. */
static void fault(struct kunit *test, const char *kind, u32 value)
{
	KUNIT_ASSERT_EQ_MSG(test, 0, put_fault(kind, value), "no %s: mount debugfs", kind);
	kvt_defer(test, no_faults, NULL);
}

static int put_event(const char *event, u32 number)
{
	char text[48];

	snprintf(text, sizeof(text), "%s %u", event, number);
	return put("event", text);
}

/* Records the events of a device, a CQ or an SRQ. */
struct listener {
	struct ib_event_handler handler;	/* event handler, if it listens to a device */
	struct completion got;		/* completed by each event */
	/* Number of events so far, also of those that @event has no room for. */
	unsigned int told;
	struct ib_event event[8];	/* the first events */
	unsigned int read;		/* number of events that expect_event() has waited for */
	struct ib_event last;		/* the last one of these */
};

static void listener_note(struct listener *l, const struct ib_event *event)
{
	/* No lock: handlers are called for one event at a time. */
	if (l->told < ARRAY_SIZE(l->event))
		l->event[l->told] = *event;
	l->told++;
	complete(&l->got);
}

static void on_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	listener_note(container_of(handler, struct listener, handler), event);
}

static void on_object_event(struct ib_event *event, void *context)
{
	listener_note(context, event);
}

static struct listener *listener_new(struct kunit *test)
{
	struct listener *l = kvt_zalloc(test, sizeof(*l));

	init_completion(&l->got);
	return l;
}

static void stop_listening(void *arg)
{
	struct listener *l = arg;

	ib_unregister_event_handler(&l->handler);
}

static struct listener *listen(struct kunit *test, struct ib_device *ibdev)
{
	struct listener *l = listener_new(test);

	INIT_IB_EVENT_HANDLER(&l->handler, ibdev, on_device_event);
	ib_register_event_handler(&l->handler);
	kvt_defer(test, stop_listening, l);
	return l;
}

static void expect_event(struct kunit *test, struct listener *l, enum ib_event_type want)
{
	KUNIT_ASSERT_TRUE_MSG(test, kvt_wait(&l->got), "not told: %s", ib_event_msg(want));
	KUNIT_ASSERT_LT(test, l->read, ARRAY_SIZE(l->event));
	l->last = l->event[l->read++];
	KUNIT_EXPECT_STREQ(test, ib_event_msg(l->last.event), ib_event_msg(want));
}

struct named_event {
	const char *name;
	enum ib_event_type type;
};

static const struct named_event port_events[] = {
	{ "port_active", IB_EVENT_PORT_ACTIVE },
	{ "port_err", IB_EVENT_PORT_ERR },
	{ "lid_change", IB_EVENT_LID_CHANGE },
	{ "pkey_change", IB_EVENT_PKEY_CHANGE },
	{ "gid_change", IB_EVENT_GID_CHANGE },
	{ "sm_change", IB_EVENT_SM_CHANGE },
	{ "client_reregister", IB_EVENT_CLIENT_REREGISTER },
};

KUNIT_ARRAY_PARAM_DESC(port_event, port_events, name);

static void port_event_is_injected(struct kunit *test)
{
	const struct named_event *event = test->param_value;
	struct listener *l = listen(test, kvt_device(test, DEVICE));

	KUNIT_ASSERT_EQ(test, 0, put_event(event->name, 1));
	expect_event(test, l, event->type);
	KUNIT_EXPECT_EQ(test, 1, l->last.element.port_num);
	KUNIT_EXPECT_NE(test, 0, put_event(event->name, 2));
}

static void device_fatal_is_injected(struct kunit *test)
{
	struct listener *l = listen(test, kvt_device(test, DEVICE));

	KUNIT_ASSERT_EQ(test, 0, put("event", "device_fatal"));
	expect_event(test, l, IB_EVENT_DEVICE_FATAL);
}

static const struct named_event qp_events[] = {
	{ "qp_fatal", IB_EVENT_QP_FATAL },
	{ "qp_req_err", IB_EVENT_QP_REQ_ERR },
	{ "qp_access_err", IB_EVENT_QP_ACCESS_ERR },
	{ "comm_est", IB_EVENT_COMM_EST },
	{ "sq_drained", IB_EVENT_SQ_DRAINED },
	{ "path_mig", IB_EVENT_PATH_MIG },
	{ "path_mig_err", IB_EVENT_PATH_MIG_ERR },
};

KUNIT_ARRAY_PARAM_DESC(qp_event, qp_events, name);

/* Only the event is raised: the QP stays in RTS and works. */
static void qp_event_is_injected(struct kunit *test)
{
	const struct named_event *event = test->param_value;
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct ib_wc wc;
	u32 qpn = r->a.qp->qp_num;

	KUNIT_ASSERT_EQ(test, 0, put_event(event->name, qpn));
	rig_expect_event(test, &r->a, event->type);
	rig_expect_no_event(test, &r->b);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	RIG_EXPECT_DELIVERED(test, r, &wc, 2, 1);
	rig_destroy_qp(test, &r->a);
	KUNIT_EXPECT_NE(test, 0, put_event(event->name, qpn));
}

static struct ib_cq *loud_cq(struct kunit *test, struct ib_device *ibdev, struct listener *l)
{
	struct ib_cq_init_attr attr = { .cqe = RIG_CQE };

	return KVT_OWN(test, ib_create_cq(ibdev, NULL, on_object_event, l, &attr), kvt_end_cq);
}

static void cq_error_is_injected(struct kunit *test)
{
	struct listener *l = listener_new(test);
	struct ib_cq *cq = loud_cq(test, kvt_device(test, DEVICE), l);
	u32 id = cq->res.id;

	KUNIT_ASSERT_EQ(test, 0, put_event("cq_err", id));
	expect_event(test, l, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_PTR_EQ(test, cq, l->last.element.cq);
	/* The CQ is in error already, so there is no second event. */
	KUNIT_ASSERT_EQ(test, 0, put_event("cq_err", id));
	irq_work_sync(&cq->notify.work);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&l->got));
	kunit_release_action(test, kvt_end_cq, cq);
	KUNIT_EXPECT_NE(test, 0, put_event("cq_err", id));
}

/*
 * ib_drain_qp() relies on this event, so injecting it also moves the QP to the error
 * state. It is refused for a QP that is not connected.
 */
static void last_receive_comes_for_a_reason(struct kunit *test)
{
	struct rig *r = rig_new(test, DEVICE, PEER);

	r->a.srq = kvt_srq(test, r->a.pd, 4, 1);
	rig_make_qps(test, r);
	KUNIT_EXPECT_NE(test, 0, put_event("last_wqe", r->a.qp->qp_num));
	rig_connect(test, r);
	KUNIT_ASSERT_EQ(test, 0, put_event("last_wqe", r->a.qp->qp_num));
	rig_expect_event(test, &r->a, IB_EVENT_QP_LAST_WQE_REACHED);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	rig_destroy_qp(test, &r->a);
	rig_destroy_qp(test, &r->b);
}

static const struct named_event srq_events[] = {
	{ "srq_err", IB_EVENT_SRQ_ERR },
	{ "srq_limit", IB_EVENT_SRQ_LIMIT_REACHED },
};

KUNIT_ARRAY_PARAM_DESC(srq_event, srq_events, name);

static void srq_event_is_injected(struct kunit *test)
{
	const struct named_event *event = test->param_value;
	struct listener *l = listener_new(test);
	struct ib_srq_init_attr init = {
		.event_handler = on_object_event,
		.srq_context = l,
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ib_pd *pd = kvt_pd(test, kvt_device(test, DEVICE));
	struct ib_srq *srq = KVT_PTR(test, ib_create_srq(pd, &init));
	u32 id;

	kvt_defer(test, kvt_end_srq, srq);
	id = srq->res.id;
	KUNIT_ASSERT_EQ(test, 0, put_event(event->name, id));
	expect_event(test, l, event->type);
	KUNIT_EXPECT_PTR_EQ(test, srq, l->last.element.srq);
	kunit_release_action(test, kvt_end_srq, srq);
	KUNIT_EXPECT_NE(test, 0, put_event(event->name, id));
}

static const struct injected_status {
	const char *name;
	enum ib_wc_status status;
} statuses[] = {
	{ "LOC_LEN_ERR", IB_WC_LOC_LEN_ERR },
	{ "LOC_QP_OP_ERR", IB_WC_LOC_QP_OP_ERR },
	{ "LOC_PROT_ERR", IB_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", IB_WC_WR_FLUSH_ERR },
	{ "MW_BIND_ERR", IB_WC_MW_BIND_ERR },
	{ "BAD_RESP_ERR", IB_WC_BAD_RESP_ERR },
	{ "REM_INV_REQ_ERR", IB_WC_REM_INV_REQ_ERR },
	{ "REM_ACCESS_ERR", IB_WC_REM_ACCESS_ERR },
	{ "REM_OP_ERR", IB_WC_REM_OP_ERR },
	{ "RETRY_EXC_ERR", IB_WC_RETRY_EXC_ERR },
	{ "RNR_RETRY_EXC_ERR", IB_WC_RNR_RETRY_EXC_ERR },
	{ "GENERAL_ERR", IB_WC_GENERAL_ERR },
};

KUNIT_ARRAY_PARAM_DESC(status, statuses, name);

/* The injected status acts like a real one: the QP goes to error and flushes later WRs. */
static void request_fails_as_wanted(struct kunit *test)
{
	const struct injected_status *status = test->param_value;
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, put("faults/comp_status", status->name));
	fault(test, "comp_error", ALWAYS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, status->status);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 3, 0, 64));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* Only the completion is late: its status and the data are right. */
static void request_is_delayed(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct ib_wc wc;
	u64 start;

	fault(test, "delay_us", DELAY_US);
	fault(test, "delay", ALWAYS);
	rig_fill(r->a.buf, 64, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	start = ktime_get_ns();
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, (u64)DELAY_US * NSEC_PER_USEC);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 64, 1));
}

/* The completion can be polled, but its notification is lost; the next one is not. */
static void notification_is_lost(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct ib_wc wc;
	int i;

	fault(test, "drop_notify", ALWAYS);
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->a.scq, IB_CQ_NEXT_COMP));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, 64));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 64));
	}
	/*
	 * The second message is executed after all that the first one caused. A notification
	 * would be queued by now, and irq_work_sync() would wait for it.
	 */
	for (i = 0; i < 2; i++) {
		RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
	}
	irq_work_sync(&r->a.scq->notify.work);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->a.called));

	no_faults(NULL);
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->a.scq, IB_CQ_NEXT_COMP));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 4, 0, 64));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->a.got_call));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r->a.called));
}

/* An injected overflow puts the CQ, though it has room, and its QP in error. */
static void queue_overflows(struct kunit *test)
{
	struct rig *r = rig_new(test, DEVICE, PEER);
	struct listener *l = listener_new(test);

	r->a.scq = loud_cq(test, r->a.ibdev, l);
	rig_start(test, r);
	fault(test, "cq_overflow", ALWAYS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	expect_event(test, l, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->a.got_event));
	KUNIT_EXPECT_STREQ(test, ib_event_msg(IB_EVENT_QP_FATAL), ib_event_msg(r->a.event));
	/* The QP uses the CQ, so it is destroyed first. */
	rig_destroy_qp(test, &r->a);
	kunit_release_action(test, kvt_end_cq, r->a.scq);
}

/* The send is retried while the port is down, and succeeds when the port is up again. */
static void request_outlives_a_flap(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct listener *l = listen(test, r->a.ibdev);
	struct ib_wc wc;

	fault(test, "port_flap_ms", 5);
	fault(test, "port_flap", ALWAYS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	expect_event(test, l, IB_EVENT_PORT_ERR);
	expect_event(test, l, IB_EVENT_PORT_ACTIVE);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
}

static void allocations_fail(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct ib_cq_init_attr cq_attr = { .cqe = 1 };
	struct ib_qp_init_attr qp_attr = r->init;
	struct rdma_ah_attr ah_attr = {};

	qp_attr.send_cq = r->a.scq;
	qp_attr.recv_cq = r->a.rcq;
	ah_attr.type = rdma_ah_find_type(r->a.ibdev, 1);
	rdma_ah_set_port_num(&ah_attr, 1);
	rdma_ah_set_dlid(&ah_attr, r->b.lid);

	fault(test, "alloc_fail", ALWAYS);
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR_OR_ZERO(ib_alloc_pd(r->a.ibdev, 0)));
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR_OR_ZERO(ib_create_cq(r->a.ibdev, NULL, NULL, NULL, &cq_attr)));
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR_OR_ZERO(ib_create_qp(r->a.pd, &qp_attr)));
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			PTR_ERR_OR_ZERO(ib_alloc_mr(r->a.pd, IB_MR_TYPE_MEM_REG, 1)));
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR_OR_ZERO(rdma_create_ah(r->a.pd, &ah_attr, 0)));
	no_faults(NULL);
	ib_dealloc_pd(ib_alloc_pd(r->a.ibdev, 0));
}

/* Sets the bits of the sends that fail. Over UC, so that a failure does not reach the peer. */
static void run_sequence(struct kunit *test, struct rig *r, u32 seed, unsigned long *failed)
{
	struct ib_wc wc;
	int i;

	bitmap_zero(failed, SEQUENCE);
	fault(test, "seed", seed);
	for (i = 0; i < SEQUENCE; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		KUNIT_ASSERT_TRUE(test, rig_poll(r->a.scq, &wc));
		if (wc.status == IB_WC_SUCCESS)
			continue;
		__set_bit(i, failed);
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
		rig_connect_end(test, r, &r->a, &r->b);
	}
}

/* The same seed fails the same sends, another seed fails others; about a tenth of them. */
static void seed_replays(struct kunit *test)
{
	DECLARE_BITMAP(first, SEQUENCE);
	DECLARE_BITMAP(second, SEQUENCE);
	DECLARE_BITMAP(third, SEQUENCE);
	struct rig *r = rig_up(test, DEVICE, PEER);

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	control_make_unreliable(test, r);

	fault(test, "comp_error", SOME);
	run_sequence(test, r, 11, first);
	run_sequence(test, r, 11, second);
	run_sequence(test, r, 12, third);
	KUNIT_EXPECT_TRUE(test, bitmap_equal(first, second, SEQUENCE));
	KUNIT_EXPECT_FALSE(test, bitmap_equal(first, third, SEQUENCE));
	KUNIT_EXPECT_GE(test, bitmap_weight(first, SEQUENCE), SEQUENCE / 40);
	KUNIT_EXPECT_LE(test, bitmap_weight(first, SEQUENCE), SEQUENCE / 4);
}

static int put_port(const char *attribute, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/config/kverbs_emu/" DEVICE "/port1/%s",
		 attribute);
	return kvt_write_file(path, text);
}

static void link_up(void *unused)
{
	put_port("state", "active");
}

static enum ib_port_state port_state(struct kunit *test, struct ib_device *ibdev)
{
	struct ib_port_attr attr = {};

	KUNIT_EXPECT_EQ(test, 0, ib_query_port(ibdev, 1, &attr));
	return attr.state;
}

/* A send waits while the link is down, if the link comes back before the retries end. */
static void link_goes_down_and_up(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);
	struct listener *l = listen(test, r->a.ibdev);
	struct ib_wc wc;

	kvt_defer(test, link_up, NULL);
	KUNIT_ASSERT_EQ(test, 0, put_port("state", "down"));
	expect_event(test, l, IB_EVENT_PORT_ERR);
	KUNIT_EXPECT_EQ(test, IB_PORT_DOWN, port_state(test, r->a.ibdev));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, put_port("state", "active"));
	expect_event(test, l, IB_EVENT_PORT_ACTIVE);
	KUNIT_EXPECT_EQ(test, IB_PORT_ACTIVE, port_state(test, r->a.ibdev));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
}

static struct kunit_case emu_control_cases[] = {
	KUNIT_CASE_PARAM(port_event_is_injected, port_event_gen_params),
	KUNIT_CASE(device_fatal_is_injected),
	KUNIT_CASE_PARAM(qp_event_is_injected, qp_event_gen_params),
	KUNIT_CASE(last_receive_comes_for_a_reason),
	KUNIT_CASE(cq_error_is_injected),
	KUNIT_CASE_PARAM(srq_event_is_injected, srq_event_gen_params),
	KUNIT_CASE_PARAM(request_fails_as_wanted, status_gen_params),
	KUNIT_CASE(request_is_delayed),
	KUNIT_CASE(notification_is_lost),
	KUNIT_CASE(queue_overflows),
	KUNIT_CASE(request_outlives_a_flap),
	KUNIT_CASE(allocations_fail),
	KUNIT_CASE(seed_replays),
	KUNIT_CASE(link_goes_down_and_up),
	{}
};
KVT_SUITE(emu_control);

MODULE_DESCRIPTION("KUnit: the software HCA under control");
MODULE_LICENSE("GPL");
