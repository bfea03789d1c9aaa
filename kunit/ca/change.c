// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries of a channel adapter that changes: event handlers already find the new
 * values, and the generation numbers tell what has changed. Readers in task and
 * interrupt context race with a writer.
 */
#include <linux/irq_work.h>
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>

#include "ca/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define RACE_CHANGES	20000
/* Room for the complete QUERY_CA answer of a mock device with two ports. */
#define ANSWER_LEN	2048

/* An event handler that queries the CA at each event. */
struct ca_listener {
	struct ib_event_handler handler;	/* the handler as registered with the core */
	u64 handle;				/* handle of the open CA */
	ssize_t ret;				/* result of the last query */
	struct completion got;			/* completed by each event */
	u8 answer[ANSWER_LEN] __aligned(8);	/* answer to the last query */
};

static void ask_in_handler(struct ib_event_handler *handler, struct ib_event *event)
{
	struct ca_listener *l = container_of(handler, struct ca_listener, handler);
	struct ib_ca_request req = CA_REQ(QUERY_CA, .handle = l->handle,
					  .out = l->answer,
					  .out_len = sizeof(l->answer));

	l->ret = ib_ca_submit(event->device, &req);
	complete(&l->got);
}

static struct ca_listener *listener_up(struct kunit *test, struct mock *m, u64 handle)
{
	struct ca_listener *l = kvt_zalloc(test, sizeof(*l));

	l->handle = handle;
	init_completion(&l->got);
	INIT_IB_EVENT_HANDLER(&l->handler, m->ibdev, ask_in_handler);
	ib_register_event_handler(&l->handler);
	kvt_defer(test, kvt_end_handler, &l->handler);
	return l;
}

static const struct kverbs_ca_attr *heard(struct kunit *test, struct ca_listener *l)
{
	KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
	KUNIT_ASSERT_GT(test, l->ret, (ssize_t)sizeof(struct kverbs_ca_attr));
	return (const void *)l->answer;
}

static struct mock *two_ports_up(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->nports = 2;
	mock_start(test, m, "kvtm_a");
	return m;
}

static u64 generation(struct kunit *test, struct mock *m, u64 h)
{
	return ca_rig_attr(test, m->ibdev, h)->generation;
}

/* A change, the event that reports it, and how a query shows it. */
struct change {
	const char *name;
	enum ib_event_type event;
	void (*make)(struct mock_port *p);
	bool (*is_there)(const struct kverbs_ca_port_attr *port);
};

static void change_state(struct mock_port *p)
{
	p->attr.state = IB_PORT_DOWN;
}

static bool state_is_there(const struct kverbs_ca_port_attr *port)
{
	return port->state == KVERBS_CA_PORT_DOWN;
}

static void change_lid(struct mock_port *p)
{
	p->attr.lid = 0x77;
}

static bool lid_is_there(const struct kverbs_ca_port_attr *port)
{
	return port->lid == 0x77;
}

static void change_sm(struct mock_port *p)
{
	p->attr.sm_sl = 9;
}

static bool sm_is_there(const struct kverbs_ca_port_attr *port)
{
	return port->sm_sl == 9;
}

static void change_pkey(struct mock_port *p)
{
	p->pkeys[MOCK_PKEYS - 1] = 0x8123;
}

static bool pkey_is_there(const struct kverbs_ca_port_attr *port)
{
	return ca_rig_pkey(port, MOCK_PKEYS - 1) == 0x8123;
}

static void change_gid(struct mock_port *p)
{
	p->gids[MOCK_GIDS - 1].global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	p->gids[MOCK_GIDS - 1].global.interface_id = cpu_to_be64(0xabcd);
}

static bool gid_is_there(const struct kverbs_ca_port_attr *port)
{
	const struct kverbs_ca_gid *gid = ca_rig_gid(port, MOCK_GIDS - 1);

	return gid->type == KVERBS_CA_GID_IB && gid->gid[14] == 0xab;
}

static const struct change changes[] = {
	{ "state", IB_EVENT_PORT_ERR, change_state, state_is_there },
	{ "LID", IB_EVENT_LID_CHANGE, change_lid, lid_is_there },
	{ "SM", IB_EVENT_SM_CHANGE, change_sm, sm_is_there },
	{ "P_Key", IB_EVENT_PKEY_CHANGE, change_pkey, pkey_is_there },
	{ "GID", IB_EVENT_GID_CHANGE, change_gid, gid_is_there },
	{ "GID at another event", IB_EVENT_CLIENT_REREGISTER, change_gid,
	  gid_is_there },
};

KUNIT_ARRAY_PARAM_DESC(change, changes, name);

static void handler_finds_what_has_changed(struct kunit *test)
{
	const struct change *change = test->param_value;
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev);
	struct ca_listener *l = listener_up(test, m, h);
	const struct kverbs_ca_attr *before = ca_rig_attr(test, m->ibdev, h);
	const struct kverbs_ca_attr *now;

	KUNIT_ASSERT_FALSE(test, change->is_there(ca_rig_port_in(before, 2)));
	change->make(&m->port[2]);
	mock_event(m, 2, change->event);
	now = heard(test, l);
	KUNIT_EXPECT_TRUE(test, change->is_there(ca_rig_port_in(now, 2)));
	KUNIT_EXPECT_EQ(test, before->generation + 1, now->generation);
	KUNIT_EXPECT_EQ(test, now->generation, ca_rig_port_in(now, 2)->generation);
	KUNIT_EXPECT_EQ(test, ca_rig_port_in(before, 1)->generation,
			ca_rig_port_in(now, 1)->generation);
	KUNIT_EXPECT_MEMEQ(test, ca_rig_port_in(before, 1),
			   ca_rig_port_in(now, 1),
			   ca_rig_port_in(now, 1)->size);
}

static void generation_of_both_ports_moves_on(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct ca_listener *l = listener_up(test, m, h);
	const struct kverbs_ca_attr *now;

	change_lid(&m->port[1]);
	mock_event(m, 1, IB_EVENT_LID_CHANGE);
	heard(test, l);
	change_lid(&m->port[2]);
	mock_event(m, 2, IB_EVENT_LID_CHANGE);
	now = heard(test, l);
	KUNIT_EXPECT_EQ(test, before + 2, now->generation);
	KUNIT_EXPECT_EQ(test, before + 1, ca_rig_port_in(now, 1)->generation);
	KUNIT_EXPECT_EQ(test, before + 2, ca_rig_port_in(now, 2)->generation);
}

static void event_without_a_change_keeps_the_generation(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct ca_listener *l = listener_up(test, m, h);

	KUNIT_EXPECT_NE(test, 0, before);
	mock_event(m, 1, IB_EVENT_PORT_ACTIVE);
	KUNIT_EXPECT_EQ(test, before, heard(test, l)->generation);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_EQ(test, before, heard(test, l)->generation);
}

static void counters_alone_keep_the_generation(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct ca_listener *l = listener_up(test, m, h);
	const struct kverbs_ca_attr *now;

	m->port[1].attr.bad_pkey_cntr = 5;
	m->port[1].attr.qkey_viol_cntr = 6;
	KUNIT_EXPECT_EQ(test, 0, ca_rig_port(test, m->ibdev, h, 1)->bad_pkeys);
	mock_event(m, 1, IB_EVENT_PORT_ACTIVE);
	now = heard(test, l);
	KUNIT_EXPECT_EQ(test, before, now->generation);
	KUNIT_EXPECT_EQ(test, 5, ca_rig_port_in(now, 1)->bad_pkeys);
	KUNIT_EXPECT_EQ(test, 6, ca_rig_port_in(now, 1)->bad_qkeys);
	KUNIT_EXPECT_EQ(test, 5, ca_rig_port(test, m->ibdev, h, 1)->bad_pkeys);
}

static ssize_t ask_fresh(struct mock *m, u64 h, struct kverbs_ca_attr *attr)
{
	return CA_CALL(m->ibdev, QUERY_CA, .handle = h,
		       .flags = KVERBS_CA_FRESH, .out = attr,
		       .out_len = sizeof(*attr));
}

static void fresh_query_asks_the_driver(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct kverbs_ca_attr attr;

	mock_log_reset(m);
	m->port[2].attr.qkey_viol_cntr = 7;
	KUNIT_EXPECT_EQ(test, 0, ca_rig_port(test, m->ibdev, h, 2)->bad_qkeys);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_port));
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, ask_fresh(m, h, &attr));
	KUNIT_EXPECT_EQ(test, before, attr.generation);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_query_port));
	KUNIT_EXPECT_EQ(test, 7, ca_rig_port(test, m->ibdev, h, 2)->bad_qkeys);
	/* No event reports a change of the link width: only a fresh query finds it. */
	m->port[2].attr.active_width = IB_WIDTH_1X;
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, ask_fresh(m, h, &attr));
	KUNIT_EXPECT_EQ(test, before + 1, attr.generation);
	KUNIT_EXPECT_EQ(test, 1, ca_rig_port(test, m->ibdev, h, 2)->width);
}

static void fresh_query_tells_of_an_error(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct kverbs_ca_attr attr = {};

	change_lid(&m->port[1]);
	mock_fail(m, MOCK_query_port, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, ask_fresh(m, h, &attr));
	KUNIT_EXPECT_EQ(test, 0, attr.version);
	KUNIT_EXPECT_EQ(test, before, generation(test, m, h));
	KUNIT_EXPECT_EQ(test, 0x11, ca_rig_port(test, m->ibdev, h, 1)->lid);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, before + 1, generation(test, m, h));
	KUNIT_EXPECT_EQ(test, 0x77, ca_rig_port(test, m->ibdev, h, 1)->lid);
}

static void refused_query_does_not_bother_the_driver(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev);
	struct kverbs_ca_attr attr;

	mock_log_reset(m);
	KUNIT_EXPECT_EQ(test, -ENOENT, ask_fresh(m, h + 1, &attr));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			CA_CALL(m->ibdev, QUERY_CA, .handle = h, .object = 1,
				.flags = KVERBS_CA_FRESH, .out = &attr,
				.out_len = sizeof(attr)));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_port));
}

struct old_query {
	struct mock *m;
	struct ib_ca_request req;
	struct kverbs_ca_port_attr attr;
	ssize_t ret;
};

static void ask_old(void *arg)
{
	struct old_query *q = arg;

	q->req.out = &q->attr;
	q->req.out_len = sizeof(q->attr);
	q->ret = ib_ca_submit(q->m->ibdev, &q->req);
}

/* After a failed refresh, queries get the old values until one that may sleep refreshes. */
static void failing_refresh_is_made_good_later(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct ca_listener *l = listener_up(test, m, h);
	struct old_query q = {
		.m = m,
		.req = CA_REQ(QUERY_PORT, .handle = h, .port = 2),
	};

	mock_fail(m, MOCK_query_port, -EIO);
	change_state(&m->port[2]);
	mock_event(m, 2, IB_EVENT_PORT_ERR);
	KUNIT_EXPECT_EQ(test, before, heard(test, l)->generation);
	KUNIT_EXPECT_EQ(test, before, generation(test, m, h));
	mock_fail_none(m);
	kvt_run_in_hardirq(ask_old, &q);
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, q.ret);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PORT_ACTIVE, q.attr.state);
	KUNIT_EXPECT_TRUE(test, state_is_there(ca_rig_port(test, m->ibdev, h, 2)));
	KUNIT_EXPECT_EQ(test, before + 1, generation(test, m, h));
	mock_log_reset(m);
	generation(test, m, h);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_port));
}

static void new_name_is_told(struct kunit *test)
{
	struct mock *m = two_ports_up(test);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	const struct kverbs_ca_attr *now;

	KUNIT_ASSERT_EQ(test, 0, ib_device_rename(m->ibdev, "kvtm_b"));
	now = ca_rig_attr(test, m->ibdev, h);
	KUNIT_EXPECT_STREQ(test, "kvtm_b", (const char *)now->name);
	KUNIT_EXPECT_EQ(test, before + 1, now->generation);
	KUNIT_EXPECT_EQ(test, before, ca_rig_port_in(now, 1)->generation);
	KUNIT_EXPECT_EQ(test, before, ca_rig_port_in(now, 2)->generation);
	KUNIT_EXPECT_EQ(test, -EEXIST, ib_device_rename(m->ibdev, "emu0"));
	KUNIT_EXPECT_EQ(test, before + 1, generation(test, m, h));
}

/* Does one of the port's GIDs end with the IPv4 address? */
static bool has_gid_of(const struct kverbs_ca_port_attr *port, __be32 addr)
{
	u32 i;

	for (i = 0; i < port->gid_count; i++)
		if (!memcmp(ca_rig_gid(port, i)->gid + 12, &addr, 4))
			return true;
	return false;
}

/* Waits for an event whose query shows the GID of the address, or shows that it is gone. */
static bool hear_of_gid(struct kunit *test, struct ca_listener *l, __be32 addr, bool there)
{
	const struct kverbs_ca_attr *now;

	do
		now = heard(test, l);
	while (has_gid_of(ca_rig_port_in(now, 1), addr) != there);
	return true;
}

static void addresses_of_a_network_device_are_followed(struct kunit *test)
{
	const __be32 addr = cpu_to_be32(0x0a630001);
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	u64 h = ca_rig_open(test, m->ibdev), before = generation(test, m, h);
	struct ca_listener *l = listener_up(test, m, h);
	u64 with;

	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, addr, true));
	KUNIT_EXPECT_TRUE(test, hear_of_gid(test, l, addr, true));
	with = generation(test, m, h);
	KUNIT_EXPECT_GT(test, with, before);
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, addr, false));
	KUNIT_EXPECT_TRUE(test, hear_of_gid(test, l, addr, false));
	KUNIT_EXPECT_GT(test, generation(test, m, h), with);
}

/* No event says that it has another one, as the table of GIDs stays the same. */
static void network_device_of_a_port_is_followed(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);
	int ifindex = ndev->ifindex;
	u64 h;

	mock_iwarp_methods(&m->ops, false);
	mock_start(test, m, "kvtm_a");
	h = ca_rig_open(test, m->ibdev);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_port(test, m->ibdev, h, 1)->netdev);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	KUNIT_EXPECT_TRUE(test, kvt_until(ca_rig_port(test, m->ibdev, h, 1)->netdev == ifindex));
	kvt_netdev_unregister(test, ndev);
	KUNIT_EXPECT_TRUE(test, kvt_until(!ca_rig_port(test, m->ibdev, h, 1)->netdev));
}

static bool has_netdev(struct mock *m)
{
	struct net_device *ndev = ib_device_get_netdev(m->ibdev, 1);

	dev_put(ndev);
	return ndev;
}

/* A thread that lets the reader of a port go on once the port has no network device any more. */
static int let_reader_go_on(void *arg)
{
	struct mock *m = arg;
	const bool gone = kvt_until(!has_netdev(m));

	mock_hold_end(m);
	return gone ? 0 : -ETIMEDOUT;
}

/*
 * Returns how often GIDs were read before the network device goes, which the caller makes it do.
 * Binding it has the port read again, which may be as late as that: so a reader is held up behind
 * the GIDs, and holds up all others.
 */
static int reads_before_netdev_goes(struct kunit *test, struct mock *m)
{
	mock_hold(m, MOCK_query_port);
	mock_event(m, 1, IB_EVENT_PKEY_CHANGE);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&m->hold.entered));
	return mock_calls(m, MOCK_query_gid);
}

/*
 * The GID of an iWARP port names the network device, and must not keep it when that goes: the driver,
 * which may need the device to tell its GIDs, is not asked then.
 */
static void network_device_of_an_iwarp_port_can_go(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);
	const struct ib_gid_attr *attr;
	struct kvt_thread *t;
	int reads;

	mock_iwarp_methods(&m->ops, false);
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 0));
	KUNIT_EXPECT_PTR_EQ(test, ndev, rcu_access_pointer(attr->ndev));
	reads = reads_before_netdev_goes(test, m);
	t = kvt_thread_start(test, -1, let_reader_go_on, m);
	/* Returns only when all references to it are gone. */
	kvt_netdev_unregister(test, ndev);
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(t));
	mock_events_flush(m);
	KUNIT_EXPECT_EQ(test, reads, mock_calls(m, MOCK_query_gid));
	/* rdma_cm looks at the network device of whatever GID it gets. */
	KUNIT_EXPECT_EQ(test, -ENODATA, PTR_ERR_OR_ZERO(rdma_get_gid_attr(m->ibdev, 1, 0)));
	/* Also of one that it got before. */
	KUNIT_EXPECT_NOT_NULL(test, rcu_access_pointer(attr->ndev));
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(rdma_read_gid_attr_ndev_rcu(attr)));
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
}

/*
 * The writer changes the LID of port 1 and sends a fresh query, so that each
 * generation has its own LID. Readers check that the generation and the LID of an
 * answer match, and that no answer is older than the one before.
 */
struct race {
	struct mock *m;
	u64 h;
	u64 first;
	u64 count;
	struct reader *reader[2];
	bool over;
};

/* A thread [0] and an interrupt [1] that query the CA. */
struct reader {
	struct race *race;	/* the CA that they query, and its expected values */
	struct irq_work work;			/* raises the interrupt */
	u64 last[2];				/* generation of the last answer to each */
	u64 queries[2];				/* number of queries by each */
	u64 wrong[2];	/* how many of these failed or had an inconsistent answer */
	u8 answer[2][ANSWER_LEN] __aligned(8);	/* last answer to each */
};

static u32 lid_of(const struct race *r, u64 generation)
{
	return 0x11 + (generation - r->first);
}

static bool consistent(const struct race *r, const struct kverbs_ca_attr *attr, u64 last)
{
	const struct kverbs_ca_port_attr *one = ca_rig_port_in(attr, 1);
	const struct kverbs_ca_port_attr *two = ca_rig_port_in(attr, 2);

	return one && two && attr->generation >= last &&
	       one->lid == lid_of(r, attr->generation) &&
	       one->sm_lid == (attr->generation == r->first ? 1 : one->lid) &&
	       one->generation == attr->generation && two->lid == 0x12 &&
	       two->generation == r->first;
}

static void read_once(struct reader *rd, int who)
{
	const struct kverbs_ca_attr *attr = (const void *)rd->answer[who];
	struct ib_ca_request req = CA_REQ(QUERY_CA, .handle = rd->race->h,
					  .out = rd->answer[who],
					  .out_len = ANSWER_LEN);
	ssize_t ret = ib_ca_submit(rd->race->m->ibdev, &req);

	WRITE_ONCE(rd->queries[who], rd->queries[who] + 1);
	if (ret != attr->size || !consistent(rd->race, attr, rd->last[who]))
		rd->wrong[who]++;
	rd->last[who] = attr->generation;
}

static void read_in_irq(struct irq_work *work)
{
	read_once(container_of(work, struct reader, work), 1);
}

static int reader_fn(void *arg)
{
	struct reader *rd = arg;

	while (!READ_ONCE(rd->race->over)) {
		read_once(rd, 0);
		irq_work_queue(&rd->work);
		irq_work_sync(&rd->work);
		cond_resched();
	}
	return 0;
}

static bool all_have_queried(const struct race *r)
{
	int i, who;

	for (i = 0; i < 2; i++)
		for (who = 0; who < 2; who++)
			if (!READ_ONCE(r->reader[i]->queries[who]))
				return false;
	return true;
}

/* Readers may get a CPU late: it goes on until all of them have met it, or the case gives up. */
static bool is_over(const struct race *r, u64 changes)
{
	return changes >= r->count && (all_have_queried(r) || READ_ONCE(r->over));
}

static int writer_fn(void *arg)
{
	struct race *r = arg;
	struct kverbs_ca_attr attr;
	int wrong = 0;
	u64 i;

	for (i = 1; !is_over(r, i - 1); i++) {
		if (i > r->count)
			kvt_yield();
		r->m->port[1].attr.lid = 0x11 + i;
		r->m->port[1].attr.sm_lid = 0x11 + i;
		if (ask_fresh(r->m, r->h, &attr) != -EOVERFLOW || attr.generation != r->first + i)
			wrong++;
	}
	WRITE_ONCE(r->over, true);
	return wrong;
}

static void expect_reader(struct kunit *test, struct reader *rd)
{
	int who;

	for (who = 0; who < 2; who++) {
		KUNIT_EXPECT_GT(test, rd->queries[who], 0);
		KUNIT_EXPECT_EQ_MSG(test, 0, rd->wrong[who], "of %llu", rd->queries[who]);
	}
}

static void readers_see_each_generation_with_its_content(struct kunit *test)
{
	struct race r = { .m = two_ports_up(test),
			  .count = kvt_count(RACE_CHANGES) };
	struct kvt_thread *t[2], *writer;
	struct reader *rd[2];
	int i;

	r.h = ca_rig_open(test, r.m->ibdev);
	r.first = generation(test, r.m, r.h);
	kvt_print_length(test, "changes under two readers and their interrupts", r.count);
	for (i = 0; i < 2; i++) {
		rd[i] = kvt_zalloc(test, sizeof(*rd[i]));
		rd[i]->race = &r;
		r.reader[i] = rd[i];
		rd[i]->work = IRQ_WORK_INIT_HARD(read_in_irq);
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, reader_fn, rd[i]);
	}
	writer = kvt_thread_start(test, -1, writer_fn, &r);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(writer));
	WRITE_ONCE(r.over, true);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
		expect_reader(test, rd[i]);
	}
	KUNIT_EXPECT_EQ(test, 0, writer->ret);
}

static struct kunit_case ca_change_cases[] = {
	KUNIT_CASE_PARAM(handler_finds_what_has_changed, change_gen_params),
	KUNIT_CASE(generation_of_both_ports_moves_on),
	KUNIT_CASE(event_without_a_change_keeps_the_generation),
	KUNIT_CASE(counters_alone_keep_the_generation),
	KUNIT_CASE(fresh_query_asks_the_driver),
	KUNIT_CASE(fresh_query_tells_of_an_error),
	KUNIT_CASE(refused_query_does_not_bother_the_driver),
	KUNIT_CASE(failing_refresh_is_made_good_later),
	KUNIT_CASE(new_name_is_told),
	KUNIT_CASE(addresses_of_a_network_device_are_followed),
	KUNIT_CASE(network_device_of_a_port_is_followed),
	KUNIT_CASE(network_device_of_an_iwarp_port_can_go),
	KUNIT_CASE(readers_see_each_generation_with_its_content),
	{}
};
KVT_SUITE(ca_change);
