// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads that could keep preemption or interrupts off for long: large bursts, long messages,
 * long queues, many queue pairs, posted from each context. The cases check that all of it
 * completes. With trace=1, the kernel's latency tracer runs from the moment of the first post
 * until the last completion has been polled, and scripts/guest/latency.sh judges what it has
 * found. Nothing else is to run then, least of all a console.
 */
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/jhash.h>

#include "emu/latency.h"
#include "emu/rig_net.h"
#include "lib/objects.h"

static bool trace;
module_param(trace, bool, 0444);
MODULE_PARM_DESC(trace, "Run the latency tracer while a load runs (default: N)");

static char *context = "";
module_param(context, charp, 0444);
MODULE_PARM_DESC(context,
		 "Post from this context only: task, softirq or hardirq (default: all)");

/* The largest multicast group. */
#define LAT_MEMBERS	4096
/* A smaller one, which gets more messages: as many copies in all. */
#define LAT_BURST	64
#define LAT_GROUP_LID	0xc003
/* The payload of the largest datagram, and what a post in hard interrupt sends itself. */
#define LAT_MTU		4096
#define LAT_SHORT	256

/* The longest message. */
#define LAT_BLOCKS	(SZ_2G / RIG_BLOCK)

const struct kvt_run *lat_run_of_param(struct kunit *test)
{
	const struct kvt_run *run = test->param_value;

	if (*context && strcmp(context, run->name))
		kunit_skip(test, "not asked for");
	return run;
}

void lat_begin(void)
{
	if (trace)
		tracing_on();
}

void lat_end(void)
{
	if (trace)
		tracing_off();
}

/* Where nobody measures, a few are enough to see them complete. */
int lat_scaled(int full)
{
	return trace ? full : max(full / 64, 1);
}

void lat_resize(struct kunit *test, struct ib_cq *cq, int cqe)
{
	KUNIT_ASSERT_EQ(test, 0, ib_resize_cq(cq, cqe));
}

/*
 * The work requests are SENDs of the first bytes of the buffer; the case may change them.
 * They are posted in pieces, for a post takes the longer, the more it is given.
 */
struct lat_load *lat_load_new(struct kunit *test, struct rig *r, int nr, int nr_wr)
{
	struct lat_load *load = kvt_zalloc(test, sizeof(*load));
	int i;

	load->r = r;
	load->nr = nr;
	load->nr_wr = nr_wr;
	load->end = kunit_kcalloc(test, nr, sizeof(*load->end), GFP_KERNEL);
	load->wr = kunit_kcalloc(test, nr_wr, sizeof(*load->wr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, load->end);
	KUNIT_ASSERT_NOT_NULL(test, load->wr);
	load->sge[0] = rig_sge(&r->a, 0, LAT_SHORT);
	for (i = 0; i < nr_wr; i++) {
		rig_send_wr(&load->wr[i].wr, i, load->sge, 1);
		if ((i + 1) % LAT_CHAIN && i + 1 < nr_wr)
			load->wr[i].wr.next = &load->wr[i + 1].wr;
	}
	for (i = 0; i < nr; i++)
		load->end[i] = r->a;
	return load;
}

/* Makes the queue pairs, and connects each to itself. */
void lat_add_rc(struct kunit *test, struct lat_load *load)
{
	struct rig_end *e;
	int i;

	load->r->init.qp_type = IB_QPT_RC;
	for (i = 0; i < load->nr; i++) {
		e = &load->end[i];
		rig_make_qp(test, load->r, e);
		rig_connect_end(test, load->r, e, e);
	}
}

/* The first @len bytes of the buffer, by the key of its region and in @num elements. */
void lat_scatter(struct rig_end *e, struct ib_sge *sge, int num, u32 len)
{
	u32 each = len / num;
	int i;

	for (i = 0; i < num; i++)
		sge[i] = (struct ib_sge){ e->mr->iova + i * each, each, e->mr->lkey };
	sge[num - 1].length += len % num;
}

/* Posts a piece of the chain to a queue pair. */
void lat_post(void *arg)
{
	struct lat_load *load = arg;

	load->err = ib_post_send(load->end[load->next].qp, &load->wr[load->at].wr, NULL);
}

/* One post at a time: in interrupt context, one per interrupt. */
void lat_post_all(struct lat_load *load, const struct kvt_run *run)
{
	for (load->next = 0; load->next < load->nr; load->next++) {
		for (load->at = 0; load->at < load->nr_wr && !load->err; load->at += LAT_CHAIN)
			run->run(lat_post, load);
	}
	load->next = 0;
	load->at = 0;
}

/* Polls @wanted completions; returns how many there were, less those of another status. */
int lat_collect(struct ib_cq *cq, int wanted, enum ib_wc_status status)
{
	unsigned long end = jiffies + KVT_TIMEOUT;
	int got = 0, bad = 0, i, n;
	struct ib_wc wc[4];

	while (got < wanted && time_before(jiffies, end)) {
		n = ib_poll_cq(cq, min_t(int, wanted - got, ARRAY_SIZE(wc)), wc);
		for (i = 0; i < n; i++)
			bad += wc[i].status != status;
		got += n;
		if (!n)
			usleep_range(100, 200);
	}
	return got - bad;
}

KUNIT_ARRAY_PARAM_DESC(lat_run, kvt_runs, name);

/* What the kernel itself does in the meantime. */
static void idle(struct kunit *test)
{
	const struct kvt_run *run = lat_run_of_param(test);

	lat_begin();
	run->run(kvt_nothing, NULL);
	msleep(20);
	lat_end();
}

static const union ib_gid lat_gid = { .raw = { 0xff, 0x12, [15] = 9 } };

/* What a member receives into: its buffer, or as many elements of a region as there can be. */
static int group_receives(struct kunit *test, struct rig_end *e, int nr, u32 len, bool scattered)
{
	struct ib_sge sge[LAT_SGE] = { rig_sge(e, 0, len) };
	struct ib_recv_wr wr = { .sg_list = sge, .num_sge = scattered ? LAT_SGE : 1 };
	int err = 0;

	if (scattered)
		lat_scatter(e, sge, LAT_SGE, len);
	while (nr-- && !err)
		err = ib_post_recv(e->qp, &wr, NULL);
	return err;
}

/* A sender, whose chain of @messages goes to a group of @members others with room for them. */
static struct lat_load *group_new(struct kunit *test, int members, int messages, u32 len,
				  bool scattered)
{
	struct rig *r = rig_net_new(test, &rig_nets[2]);
	struct lat_load *load;
	struct rig_end to, *member;
	struct ib_ah *ah;
	int i;

	lat_resize(test, r->b.rcq, members * messages);
	lat_resize(test, r->a.scq, messages);
	r->init.cap.max_send_wr = messages;
	r->init.cap.max_recv_wr = 1;
	r->init.cap.max_send_sge = LAT_SGE;
	r->init.cap.max_recv_sge = LAT_SGE;
	rig_register_apart(test, &r->a, IB_ACCESS_LOCAL_WRITE);
	rig_register_apart(test, &r->b, IB_ACCESS_LOCAL_WRITE);
	load = lat_load_new(test, r, 1, messages);
	load->sge[0].length = len;
	rig_make_ud(test, r, &load->end[0]);
	to = load->end[0];
	to.gid = lat_gid;
	to.lid = LAT_GROUP_LID;
	ah = rig_ah(test, &load->end[0], &to);
	if (scattered)
		lat_scatter(&r->a, load->sge, LAT_SGE, len);
	for (i = 0; i < messages; i++) {
		load->wr[i].wr.num_sge = scattered ? LAT_SGE : 1;
		load->wr[i].ud.ah = ah;
		load->wr[i].ud.remote_qpn = IB_MULTICAST_QPN;
		load->wr[i].ud.remote_qkey = RIG_QKEY;
	}

	member = KVT_PTR(test, kunit_kcalloc(test, members, sizeof(*member), GFP_KERNEL));
	r->init.cap.max_send_wr = 1;
	r->init.cap.max_recv_wr = messages;
	for (i = 0; i < members; i++) {
		member[i] = r->b;
		rig_make_ud(test, r, &member[i]);
		rig_attach(test, member[i].qp, &lat_gid, LAT_GROUP_LID);
		KUNIT_ASSERT_EQ(test, 0, group_receives(test, &member[i], messages,
							RIG_GRH + len, scattered));
	}
	return load;
}

static void group_send_all(struct kunit *test, struct lat_load *load, int members)
{
	const struct kvt_run *run = lat_run_of_param(test);
	int sent, received;

	lat_begin();
	lat_post_all(load, run);
	received = lat_collect(load->r->b.rcq, members * load->nr_wr, IB_WC_SUCCESS);
	sent = lat_collect(load->r->a.scq, load->nr_wr, IB_WC_SUCCESS);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, load->nr_wr, sent);
	KUNIT_EXPECT_EQ(test, members * load->nr_wr, received);
}

static void group_send(struct kunit *test, int members, int messages, u32 len, bool scattered)
{
	lat_run_of_param(test);
	group_send_all(test, group_new(test, members, messages, len, scattered), members);
}

static void multicast_to_4096(struct kunit *test)
{
	group_send(test, lat_scaled(LAT_MEMBERS), 1, LAT_MTU, false);
}

static void scattered_multicast_to_4096(struct kunit *test)
{
	group_send(test, lat_scaled(LAT_MEMBERS), 1, LAT_SHORT, true);
}

static void multicasts_to_64(struct kunit *test)
{
	group_send(test, LAT_BURST, lat_scaled(LAT_MEMBERS) / LAT_BURST, LAT_MTU, false);
}

static void scattered_multicasts_to_64(struct kunit *test)
{
	group_send(test, LAT_BURST, lat_scaled(LAT_MEMBERS) / LAT_BURST, LAT_SHORT, true);
}

static void short_multicasts_to_8(struct kunit *test)
{
	group_send(test, 8, lat_scaled(LAT_MEMBERS) / 8, LAT_SHORT, false);
}

static void scattered_multicasts_to_8(struct kunit *test)
{
	group_send(test, 8, lat_scaled(LAT_MEMBERS) / 8, LAT_SHORT, true);
}

/* Groups that would share a list of 256 if the hash were one that anybody can compute. */
static u32 guessed_list(const union ib_gid *gid)
{
	return hash_32(jhash(gid->raw, sizeof(gid->raw), 0), 8);
}

static void short_multicasts_beside_4095_groups(struct kunit *test)
{
	int others = lat_scaled(LAT_MEMBERS) - 1;
	struct lat_load *load;
	union ib_gid gid = lat_gid;
	u32 i;

	lat_run_of_param(test);
	load = group_new(test, 8, lat_scaled(LAT_MEMBERS) / 8, LAT_SHORT, false);
	for (i = 1; others; i++) {
		memcpy(&gid.raw[4], &i, sizeof(i));
		if (guessed_list(&gid) != guessed_list(&lat_gid))
			continue;
		rig_attach(test, load->end[0].qp, &gid, LAT_GROUP_LID);
		others--;
	}
	group_send_all(test, load, 8);
}

/* One message of 2 GiB, where somebody measures. */
static void long_message(struct kunit *test, enum ib_wr_opcode op)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	const struct kvt_run *run = lat_run_of_param(test);
	int blocks = lat_scaled(LAT_BLOCKS), got;
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct lat_load *load = lat_load_new(test, r, 1, 1);
	struct rig_end *from, *to;
	struct ib_mr *local, *remote;
	struct ib_sge sge;

	lat_add_rc(test, load);
	from = rig_block(test, &load->end[0], 0);
	to = rig_block(test, &load->end[0], 0);
	rig_register_blocks(test, from, blocks, from, access);
	rig_register_blocks(test, to, blocks, to, access);
	local = from->mr;
	remote = to->mr;
	sge = (struct ib_sge){ remote->iova, remote->length, remote->lkey };
	if (op == IB_WR_SEND) {
		struct ib_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };

		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(load->end[0].qp, &recv, NULL));
	}
	load->sge[0] = (struct ib_sge){ local->iova, local->length, local->lkey };
	load->wr[0].rdma.wr.opcode = op;
	load->wr[0].rdma.remote_addr = remote->iova;
	load->wr[0].rdma.rkey = remote->rkey;

	lat_begin();
	lat_post_all(load, run);
	got = lat_collect(r->a.scq, 1, IB_WC_SUCCESS);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, 1, got);
}

static void send_of_2_gib(struct kunit *test)
{
	long_message(test, IB_WR_SEND);
}

static void write_of_2_gib(struct kunit *test)
{
	long_message(test, IB_WR_RDMA_WRITE);
}

static void read_of_2_gib(struct kunit *test)
{
	long_message(test, IB_WR_RDMA_READ);
}

static struct kunit_case emu_latency_cases[] = {
	KUNIT_CASE_PARAM(idle, lat_run_gen_params),
	KUNIT_CASE_PARAM(multicast_to_4096, lat_run_gen_params),
	KUNIT_CASE_PARAM(scattered_multicast_to_4096, lat_run_gen_params),
	KUNIT_CASE_PARAM(multicasts_to_64, lat_run_gen_params),
	KUNIT_CASE_PARAM(scattered_multicasts_to_64, lat_run_gen_params),
	KUNIT_CASE_PARAM(short_multicasts_to_8, lat_run_gen_params),
	KUNIT_CASE_PARAM(scattered_multicasts_to_8, lat_run_gen_params),
	KUNIT_CASE_PARAM(short_multicasts_beside_4095_groups, lat_run_gen_params),
	KUNIT_CASE_PARAM(send_of_2_gib, lat_run_gen_params),
	KUNIT_CASE_PARAM(write_of_2_gib, lat_run_gen_params),
	KUNIT_CASE_PARAM(read_of_2_gib, lat_run_gen_params),
	{}
};
KVT_SUITE(emu_latency);

MODULE_DESCRIPTION("KUnit: loads that could keep preemption off for long");
MODULE_LICENSE("GPL");
