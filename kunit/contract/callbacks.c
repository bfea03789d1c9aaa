// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a consumer's callbacks, and a function for each kind that has the midlayer or
 * a driver call it. While the callback runs, it calls a function of the case.
 */
#include "contract/callbacks.h"

/* Handlers of a CQ, a QP or an SRQ, called by the driver. */
static u32 run_handler(struct kunit *test, const struct contract_callback *callback,
		       contract_fn inside)
{
	struct contract_scene *scene = contract_scene_up(test);

	scene->in_handler = inside;
	callback->call(scene);
	KUNIT_EXPECT_TRUE(test, completion_done(&scene->handled));
	return contract_object_id(scene, callback->object);
}

/* A handler of a device's events, called in an RCU read-side critical section. */
struct event_case {
	struct ib_event_handler handler;	/* the registered handler */
	contract_fn inside;			/* called in the handler */
	struct completion handled;		/* completed after @inside has returned */
};

static void on_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct event_case *ec = container_of(handler, struct event_case, handler);

	ec->inside(NULL);
	complete(&ec->handled);
}

/* Returns when the handler has returned and the checker has examined the call. */
static u32 run_event(struct kunit *test, const struct contract_callback *callback,
		     contract_fn inside)
{
	struct event_case *ec = kvt_zalloc(test, sizeof(*ec));
	struct mock *m = mock_up(test, CONTRACT_DEVICE);

	init_completion(&ec->handled);
	ec->inside = inside;
	INIT_IB_EVENT_HANDLER(&ec->handler, m->ibdev, on_device_event);
	ib_register_event_handler(&ec->handler);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&ec->handled));
	ib_unregister_event_handler(&ec->handler);
	return 0;
}

/* done() of a completion: the core polls the CQ, or the caller does if it is a direct one. */

void contract_done_fn(struct ib_cq *cq, struct ib_wc *wc)
{
	struct contract_done *dc = container_of(wc->wr_cqe, struct contract_done, cqe);

	dc->inside(NULL);
	complete(&dc->handled);
}

struct contract_done *contract_done_up(struct kunit *test, enum ib_poll_context ctx)
{
	struct contract_done *dc = kvt_zalloc(test, sizeof(*dc));
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_qp_init_attr init;

	init_completion(&dc->handled);
	dc->cqe.done = contract_done_fn;
	dc->cq = kvt_cq(test, m->ibdev, 16, ctx);
	kvt_qp_init(&init, dc->cq, dc->cq);
	dc->qp = kvt_qp(test, kvt_pd(test, m->ibdev), &init);
	return dc;
}

void contract_push_done(struct kunit *test, struct contract_done *dc, contract_fn inside)
{
	struct ib_wc wc = { .wr_cqe = &dc->cqe, .qp = dc->qp };

	dc->inside = inside;
	KUNIT_ASSERT_TRUE(test, mock_cq_push(dc->cq, &wc, true));
}

/* Returns when done() has returned and the checker has examined the call. */
static u32 run_done(struct kunit *test, const struct contract_callback *callback,
		    contract_fn inside)
{
	struct contract_done *dc = contract_done_up(test, callback->ctx);
	u32 id = dc->cq->res.id;

	contract_push_done(test, dc, inside);
	if (dc->cq->poll_ctx == IB_POLL_DIRECT)
		KUNIT_EXPECT_EQ(test, 1, ib_process_cq_direct(dc->cq, -1));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&dc->handled));
	kvt_qp_put(test, dc->qp);
	kvt_cq_put(test, dc->cq);
	return id;
}

/* done() of a channel adapter request, called by a work item. */
static u32 run_request(struct kunit *test, const struct contract_callback *callback,
		       contract_fn inside)
{
	struct ib_ca_request *req = kvt_zalloc(test, sizeof(*req));
	struct contract_scene *scene = contract_scene_up(test);
	struct kverbs_ca_list list;

	*req = (struct ib_ca_request) {
		.op = KVERBS_CA_LIST, .version = KVERBS_CA_VERSION, .handle = 1,
		.out = &list, .out_len = sizeof(list),
		.done = contract_request_done, .context = scene,
	};
	scene->in_handler = inside;
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(scene->m->ibdev, req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&scene->handled));
	KUNIT_EXPECT_EQ(test, -ENOENT, req->result);
	/* Waits for the work item, so the checker has examined the call. */
	mock_unregister(scene->m);
	return 0;
}

/* Client methods: one of the three calls the case's function. */

static struct {
	struct ib_device *dev;
	contract_fn add;
	contract_fn remove;
	contract_fn rename;
} client_case;

static void in_client(contract_fn *inside)
{
	if (*inside)
		(*inside)(NULL);
	*inside = NULL;
}

static int client_add(struct ib_device *dev)
{
	if (dev != client_case.dev)
		return -EOPNOTSUPP;
	in_client(&client_case.add);
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	in_client(&client_case.remove);
}

static void client_rename(struct ib_device *dev, void *data)
{
	in_client(&client_case.rename);
}

static struct ib_client client = {
	.name = "contract_callbacks", .add = client_add, .remove = client_remove,
	.rename = client_rename,
};

/*
 * Reports must name the device CONTRACT_DEVICE. It is renamed to that before the client is
 * registered, or, if rename() is the callback, while it is registered.
 */
static u32 run_client(struct kunit *test, const struct contract_callback *callback,
		      contract_fn inside)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE "_old");

	memset(&client_case, 0, sizeof(client_case));
	client_case.dev = m->ibdev;
	if (callback->function == client_rename)
		client_case.rename = inside;
	else
		KUNIT_ASSERT_EQ(test, 0, ib_device_rename(m->ibdev, CONTRACT_DEVICE));
	if (callback->function == client_add)
		client_case.add = inside;
	if (callback->function == client_remove)
		client_case.remove = inside;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&client));
	if (callback->function == client_rename)
		KUNIT_EXPECT_EQ(test, 0, ib_device_rename(m->ibdev, CONTRACT_DEVICE));
	ib_unregister_client(&client);
	KUNIT_EXPECT_TRUE(test, !client_case.add && !client_case.remove && !client_case.rename);
	return 0;
}

#define HANDLER(kind, name_of, call_of, handler, of)				\
	{ .name = name_of, .run = run_handler, .what = handler, .function = of,	\
	  .object = kind, .in = CONTRACT_IN_CALLER, .call = call_of }
#define EVENT(kind, name_of, call_of)						\
	HANDLER(kind, name_of, call_of, "event handler", contract_event_handler)
#define DONE(name_of, context, where)						\
	{ .name = name_of, .run = run_done, .what = "done()",			\
	  .function = contract_done_fn, .object = "cq", .in = where, .ctx = context,	\
	  .may_sleep = where != CONTRACT_IN_SOFTIRQ }
#define CLIENT(method)								\
	{ .name = #method "()", .run = run_client, .what = #method "()",	\
	  .function = client_##method, .in = CONTRACT_IN_CALLER, .may_sleep = true }

const struct contract_callback contract_callbacks[CONTRACT_CALLBACKS] = {
	HANDLER("cq", "completion of a CQ", contract_call_comp_handler, "completion handler",
		contract_comp_handler),
	EVENT("cq", "event of a CQ", contract_call_cq_event_handler),
	EVENT("qp", "event of a QP", contract_call_qp_event_handler),
	EVENT("srq", "event of an SRQ", contract_call_srq_event_handler),
	{ .name = "event of a device", .run = run_event, .what = "event handler",
	  .function = on_device_event, .in = CONTRACT_IN_RCU },
	DONE("done(), direct", IB_POLL_DIRECT, CONTRACT_IN_CALLER),
	DONE("done(), softirq", IB_POLL_SOFTIRQ, CONTRACT_IN_SOFTIRQ),
	DONE("done(), workqueue", IB_POLL_WORKQUEUE, CONTRACT_IN_TASK),
	DONE("done(), unbound", IB_POLL_UNBOUND_WORKQUEUE, CONTRACT_IN_TASK),
	DONE("done(), thread", IB_POLL_THREAD, CONTRACT_IN_TASK),
	{ .name = "done() of a request", .run = run_request, .what = "done() of a request",
	  .function = contract_request_done, .in = CONTRACT_IN_TASK },
	CLIENT(add), CLIENT(remove), CLIENT(rename),
};
