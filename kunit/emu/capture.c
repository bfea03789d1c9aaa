// SPDX-License-Identifier: GPL-2.0-only
/*
 * Captures: what the reader of a device's capture file learns about its messages, and that
 * nobody waits for the reader.
 *
 * A shell starts the capture in the background: a program reads a number of bytes of it into a
 * file, and ends.
 */
#include <linux/fs.h>
#include <uapi/kverbs/emu_capture.h>
#include <kverbs/delay.h>

#include "emu/control.h"
#include "emu/rig_net.h"

#define DEVICE		"emu0"
#define PEER		"emu1"
#define CAPTURE		"/sys/kernel/debug/kverbs_emu/" DEVICE "/capture"
#define RULES		"/sys/kernel/debug/kverbs_emu/" DEVICE "/faults/rules"
#define START		"exec 3<>" CAPTURE "; echo start snaplen=%d %s >&3 || exit; "
/* Fails if that takes a minute or more. */
#define ENDED		"i=0; while kill -0 $(cat " READER ") 2>/dev/null; do " \
			"i=$((i + 1)); [ $i -lt 60000 ] || exit 1; usleep 1000; done"
#define OUTPUT		"/tmp/kvt_capture"
#define READER		OUTPUT ".reader"
/* A FIFO, at which a reader waits until it is to begin. */
#define GO		OUTPUT ".go"

#define GROUP_LID	0xc003

#define RECORD		sizeof(struct kverbs_emu_capture_record)
#define SNAPLEN		16
/* What the RNR timer of the rig asks for. */
#define RNR_CODE	1
#define DATA_SEED	7
/* Records in the buffer, and more than that. */
#define DEPTH		16384
#define FLOOD		(DEPTH + 616)

/* What the reader has written of a message. */
struct captured {
	struct kverbs_emu_capture_record rec;
	u8 data[SNAPLEN];
};

static void end_reader(void *unused)
{
	control_shell("kill $(cat " READER ") 2>/dev/null; rm -f " OUTPUT " " READER " " GO);
}

/* Starts a capture with a reader: a command that reads from 3. */
static void start_reader(struct kunit *test, const char *options, const char *reader)
{
	kvt_defer(test, end_reader, NULL);
	KUNIT_ASSERT_EQ_MSG(test, 0,
			    control_shell(START "%s & echo $! >" READER, SNAPLEN, options, reader),
			    "no capture: mount debugfs");
}

/* Starts a capture whose reader ends after @bytes. */
static void start(struct kunit *test, size_t bytes, const char *options)
{
	char reader[48];

	snprintf(reader, sizeof(reader), "head -c %zu <&3 >" OUTPUT, bytes);
	start_reader(test, options, reader);
}

/* The same, but it does not read before release_reader(). */
static void start_late(struct kunit *test, size_t bytes)
{
	char reader[80];

	KUNIT_ASSERT_EQ(test, 0, control_shell("mkfifo " GO));
	snprintf(reader, sizeof(reader), "(read x <" GO "; exec head -c %zu <&3 >" OUTPUT ")",
		 bytes);
	start_reader(test, "", reader);
}

static void release_reader(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, control_shell("echo >" GO));
}

/* Waits for the reader to end. */
static void finish(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, control_shell(ENDED));
}

/* Takes the next record, at *pos. */
static void next(struct kunit *test, struct captured *got, loff_t *pos)
{
	struct file *file = filp_open(OUTPUT, O_RDONLY, 0);
	ssize_t size, data = 0;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	memset(got, 0, sizeof(*got));
	size = kernel_read(file, &got->rec, RECORD, pos);
	if (size == RECORD && got->rec.data_size <= SNAPLEN)
		data = kernel_read(file, got->data, got->rec.data_size, pos);
	filp_close(file, NULL);
	KUNIT_ASSERT_EQ(test, (ssize_t)RECORD, size);
	KUNIT_ASSERT_EQ(test, (ssize_t)got->rec.data_size, data);
	KUNIT_EXPECT_EQ(test, RECORD + data, (size_t)got->rec.size);
	KUNIT_EXPECT_EQ(test, KVERBS_EMU_CAPTURE_VERSION, got->rec.version);
}

static struct rig *capture_rig(struct kunit *test)
{
	struct rig *r = rig_new(test, DEVICE, PEER);

	r->access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | r->access);
	rig_fill(r->a.buf, 64, DATA_SEED);
	return r;
}

static void send(struct kunit *test, struct rig *r, u32 len)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, len));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, len));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
}

/* The parts of a record that all messages of the rig have. */
static void expect_message(struct kunit *test, struct rig *r, const struct captured *got,
			   enum ib_wr_opcode opcode, u32 length)
{
	const struct kverbs_emu_capture_record *rec = &got->rec;

	KUNIT_EXPECT_EQ(test, KVERBS_EMU_CAPTURE_MESSAGE, rec->kind);
	KUNIT_EXPECT_EQ(test, opcode, (enum ib_wr_opcode)rec->opcode);
	KUNIT_EXPECT_EQ(test, length, rec->length);
	KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, rec->src_qpn);
	KUNIT_EXPECT_EQ(test, r->b.qp->qp_num, rec->dest_qpn);
	KUNIT_EXPECT_EQ(test, r->a.lid, rec->slid);
	KUNIT_EXPECT_EQ(test, r->b.lid, rec->dlid);
	KUNIT_EXPECT_EQ(test, ib_mtu_enum_to_int(r->mtu), (int)rec->mtu);
	KUNIT_EXPECT_LE(test, rec->time, rec->ended);
}

/* The first SNAPLEN bytes are kept, and the PSNs count packets. */
static void sends_are_told_with_their_data(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	u32 mtu = ib_mtu_enum_to_int(r->mtu);
	struct captured got;
	loff_t pos = 0;

	start(test, 2 * (RECORD + SNAPLEN), "");
	send(test, r, 2 * mtu + 1);
	send(test, r, SNAPLEN);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 2 * mtu + 1);
	KUNIT_EXPECT_EQ(test, r->psn, got.rec.psn);
	KUNIT_EXPECT_EQ(test, 1U, got.rec.msn);
	KUNIT_EXPECT_EQ(test, KVERBS_EMU_CAPTURE_RC, (int)got.rec.transport);
	KUNIT_EXPECT_TRUE(test, got.rec.flags & KVERBS_EMU_CAPTURE_ANSWERED);
	KUNIT_EXPECT_EQ(test, 0x1f, (int)got.rec.syndrome);
	KUNIT_EXPECT_TRUE(test, rig_filled(got.data, SNAPLEN, DATA_SEED));
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, SNAPLEN);
	KUNIT_EXPECT_EQ(test, r->psn + 3, got.rec.psn);
	KUNIT_EXPECT_EQ(test, 2U, got.rec.msn);
}

/* Messages that arrive at a device are captured there. */
static void messages_are_told_where_they_arrive(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	struct captured got;
	struct ib_wc wc;
	loff_t pos = 0;

	start(test, RECORD + 8, "");
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->b, 1, 0, 8));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	finish(test);
	next(test, &got, &pos);
	KUNIT_EXPECT_EQ(test, r->b.qp->qp_num, got.rec.src_qpn);
	KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, got.rec.dest_qpn);
}

static void answers_are_told(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	struct ib_atomic_wr add = {
		.remote_addr = r->b.dma, .compare_add = 5, .rkey = r->b.mr->rkey,
	};
	struct captured got;
	struct ib_wc wc;
	loff_t pos = 0;

	start(test, 2 * RECORD + SNAPLEN, "");
	rig_fill(r->b.buf, 64, DATA_SEED + 1);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0, 64, r->b.dma,
					  r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	*(u64 *)r->b.buf = 37;
	KUNIT_ASSERT_EQ(test, 0, rig_atomic(&r->a, IB_WR_ATOMIC_FETCH_AND_ADD, 2, 0, &add));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 42ULL, *(u64 *)r->b.buf);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_RDMA_READ, 64);
	KUNIT_EXPECT_EQ(test, (u64)r->b.dma, (u64)got.rec.remote_addr);
	KUNIT_EXPECT_EQ(test, r->b.mr->rkey, got.rec.rkey);
	KUNIT_EXPECT_TRUE(test, rig_filled(got.data, SNAPLEN, DATA_SEED + 1));
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_ATOMIC_FETCH_AND_ADD, sizeof(u64));
	KUNIT_EXPECT_EQ(test, 5ULL, got.rec.compare_add);
	KUNIT_EXPECT_EQ(test, 37ULL, got.rec.found);
}

/* An attempt that finds no receive is captured, and so is the next one, with the same PSN. */
static void refusals_are_told(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	struct captured got;
	struct ib_wc wc;
	loff_t pos = 0;

	start(test, 3 * RECORD + 8, "");
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0, 8, r->b.dma,
					  r->b.mr->rkey + 1));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	r->rnr_timer = RNR_CODE;
	rig_reconnect(test, r);
	KUNIT_ASSERT_EQ(test, 0, control_shell("echo add op=send nth=1 rnr >" RULES));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 0));
	RIG_EXPECT_DELIVERED(test, r, &wc, 2, 3);
	control_shell("echo clear >" RULES);
	send(test, r, 8);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_RDMA_READ, 8);
	KUNIT_EXPECT_EQ(test, 0x62, (int)got.rec.syndrome);
	KUNIT_EXPECT_EQ(test, 0U, got.rec.msn);
	KUNIT_EXPECT_EQ(test, r->b.mr->rkey + 1, got.rec.rkey);
	KUNIT_EXPECT_EQ(test, 0U, got.rec.data_size);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 0);
	KUNIT_EXPECT_EQ(test, 0x20 | RNR_CODE, (int)got.rec.syndrome);
	KUNIT_EXPECT_EQ(test, r->psn, got.rec.psn);
	KUNIT_EXPECT_EQ(test, 0U, got.rec.msn);
	/* Nothing of the READ that was in this entry of the queue before. */
	KUNIT_EXPECT_EQ(test, 0ULL, got.rec.remote_addr);
	KUNIT_EXPECT_EQ(test, 0U, got.rec.rkey);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 0);
	KUNIT_EXPECT_EQ(test, 0x1f, (int)got.rec.syndrome);
	KUNIT_EXPECT_EQ(test, r->psn, got.rec.psn);
	KUNIT_EXPECT_EQ(test, 1U, got.rec.msn);
	KUNIT_EXPECT_TRUE(test, got.rec.flags & KVERBS_EMU_CAPTURE_RETRIED);
}

/* The second start captures all queue pairs, whatever the first one asked for. */
static void a_refused_start_leaves_nothing_behind(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	struct captured got;
	loff_t pos = 0;

	start(test, RECORD + 8, "qp=1 unknown >&3; echo start");
	send(test, r, 8);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 8);
}

static void other_queue_pairs_are_not_told(struct kunit *test)
{
	struct rig *r = capture_rig(test), *other = capture_rig(test);
	struct captured got;
	char options[16];
	loff_t pos = 0;

	snprintf(options, sizeof(options), "qp=%u", r->b.qp->qp_num);
	start(test, RECORD + 8, options);
	send(test, other, 4);
	send(test, r, 8);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 8);
}

/* A request that fails at the requester is not sent. */
static void local_errors_are_not_told(struct kunit *test)
{
	struct rig *r = capture_rig(test), *other = capture_rig(test);
	struct ib_sge sge = rig_sge(&other->a, 0, 8);
	const struct ib_send_wr *bad;
	struct captured got;
	struct ib_send_wr wr;
	struct ib_wc wc;
	loff_t pos = 0;

	start(test, RECORD + 8, "");
	sge.lkey = ~sge.lkey;
	rig_send_wr(&wr, 1, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(other->a.qp, &wr, &bad));
	RIG_EXPECT_WC(test, other->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	send(test, r, 8);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 8);
}

struct drained {
	struct kunit *test;
	struct rig *r;
};

static void make_ready_again(void *arg)
{
	struct drained *d = arg;

	KUNIT_EXPECT_EQ(d->test, 0, rig_to(d->r->a.qp, IB_QPS_RESET));
	rig_connect_end(d->test, d->r, &d->r->a, NULL);
}

/*
 * What ib_drain_sq() posts is an RDMA write, of which a UD queue pair knows no address. It comes
 * late: the queue pair has been made ready again.
 */
static void drain_of_a_datagram_queue_pair_is_not_told(struct kunit *test)
{
	struct rig *r = rig_ud(test, DEVICE, PEER), *other = capture_rig(test);
	struct ib_rdma_wr drain = { .wr = { .wr_id = 1, .opcode = IB_WR_RDMA_WRITE } };
	struct drained d = { test, r };
	const struct ib_send_wr *bad;
	struct captured got;
	struct ib_wc wc;
	loff_t pos = 0;

	start(test, RECORD + 8, "");
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	kverbs_delay_set("emu_drain_wr", make_ready_again, &d);
	/* Past the contract checker, to which a poster that is held up sleeps. */
	KUNIT_EXPECT_EQ(test, 0, r->a.qp->device->ops.post_send(r->a.qp, &drain.wr, &bad));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_QP_OP_ERR);
	send(test, other, 8);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, other, &got, IB_WR_SEND, 8);
}

/* Who posts a multicast of two buffers leaves it to a runner, which is the first to try it. */
static void multicast_is_not_told_as_retried(struct kunit *test)
{
	static const struct rig_net net = { "", RIG_NET_IB_GRH, true };
	struct rig *r = rig_net_new(test, &net);
	struct captured got;
	struct ib_sge sge[2];
	struct rig_end to;
	struct ib_ud_wr wr;
	struct ib_wc wc;
	loff_t pos = 0;

	rig_make_ud(test, r, &r->a);
	to = r->a;
	to.gid = (union ib_gid) { .raw = { 0xff, 0x12, [15] = 3 } };
	to.lid = GROUP_LID;
	sge[0] = rig_sge(&r->a, 0, 8);
	sge[1] = rig_sge(&r->a, 8, 8);
	rig_ud_wr(&wr, 1, sge, 2, rig_ah(test, &r->a, &to), &to);
	wr.remote_qpn = IB_MULTICAST_QPN;
	start(test, RECORD + 16, "");
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	finish(test);
	next(test, &got, &pos);
	KUNIT_EXPECT_EQ(test, 16U, got.rec.length);
	KUNIT_EXPECT_EQ(test, IB_MULTICAST_QPN, (int)got.rec.dest_qpn);
	KUNIT_EXPECT_FALSE(test, got.rec.flags & KVERBS_EMU_CAPTURE_RETRIED);
}

/*
 * Nobody reads: messages are still sent, and the reader learns in the end how many records
 * were lost.
 */
static void nobody_waits_for_the_reader(struct kunit *test)
{
	struct rig *r = capture_rig(test);
	struct captured got;
	loff_t pos = 0;
	int i;

	start_late(test, DEPTH * (RECORD + 4) + RECORD);
	for (i = 0; i < FLOOD; i++)
		send(test, r, 4);
	KUNIT_EXPECT_NE(test, 0, control_shell("exec 3<>" CAPTURE "; echo start >&3"));
	release_reader(test);
	finish(test);
	for (i = 0; i < DEPTH; i++) {
		next(test, &got, &pos);
		expect_message(test, r, &got, IB_WR_SEND, 4);
		KUNIT_ASSERT_EQ(test, (u32)i + 1, got.rec.msn);
	}
	next(test, &got, &pos);
	KUNIT_EXPECT_EQ(test, KVERBS_EMU_CAPTURE_LOST, got.rec.kind);
	KUNIT_EXPECT_EQ(test, (u64)FLOOD - DEPTH, got.rec.lost);
}

/* What others send while one stands still. */
struct flood {
	struct rig *r;
	u32 failed;	/* messages that did not arrive at once */
};

static void others_send(void *arg)
{
	struct flood *f = arg;
	struct ib_wc wc[2];
	int i;

	for (i = 0; i < FLOOD && !f->failed; i++) {
		f->failed += rig_recv(&f->r->b, 2, 0, 4) || rig_send(&f->r->a, 1, 0, 4) ||
			     ib_poll_cq(f->r->a.scq, 1, &wc[0]) != 1 || wc[0].status ||
			     ib_poll_cq(f->r->b.rcq, 1, &wc[1]) != 1 || wc[1].status;
	}
}

/*
 * The writer of a record stands still before the record can be read. Later records wait in the
 * buffer and are lost when it is full; but no sender waits.
 */
static void slow_record_holds_up_the_reader_only(struct kunit *test)
{
	struct rig *r = capture_rig(test), *other = capture_rig(test);
	struct flood f = { .r = other };
	struct captured got;
	loff_t pos = 0;
	int i;

	start_late(test, DEPTH * (RECORD + 4) + RECORD);
	kverbs_delay_set("emu_capture_end", others_send, &f);
	send(test, r, 4);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, f.failed);
	release_reader(test);
	finish(test);
	next(test, &got, &pos);
	expect_message(test, r, &got, IB_WR_SEND, 4);
	for (i = 1; i < DEPTH; i++) {
		next(test, &got, &pos);
		expect_message(test, other, &got, IB_WR_SEND, 4);
		KUNIT_ASSERT_EQ(test, (u32)i, got.rec.msn);
	}
	next(test, &got, &pos);
	KUNIT_EXPECT_EQ(test, KVERBS_EMU_CAPTURE_LOST, got.rec.kind);
	KUNIT_EXPECT_EQ(test, (u64)FLOOD + 1 - DEPTH, got.rec.lost);
}

static struct kunit_case emu_capture_cases[] = {
	KUNIT_CASE(sends_are_told_with_their_data),
	KUNIT_CASE(messages_are_told_where_they_arrive),
	KUNIT_CASE(answers_are_told),
	KUNIT_CASE(refusals_are_told),
	KUNIT_CASE(a_refused_start_leaves_nothing_behind),
	KUNIT_CASE(other_queue_pairs_are_not_told),
	KUNIT_CASE(local_errors_are_not_told),
	KUNIT_CASE(drain_of_a_datagram_queue_pair_is_not_told),
	KUNIT_CASE(multicast_is_not_told_as_retried),
	KUNIT_CASE(nobody_waits_for_the_reader),
	KUNIT_CASE(slow_record_holds_up_the_reader_only),
	{}
};

KVT_SUITE(emu_capture);
