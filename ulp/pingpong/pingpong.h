/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_pingpong: declarations that its files share.
 *
 * main.c     module, parameters, debugfs, ib_client
 * run.c      one run from start to result
 * setup.c    the objects of a run: PDs, CQs, QPs, remote keys
 * connect.c  addresses and queue pair states
 * buf.c      message memory, its layout, the test pattern
 * traffic.c  the hot path
 * plain.c    another: one request a call, as most ULPs post
 * hist.c     latency histogram
 */
#ifndef KVERBS_PINGPONG_H
#define KVERBS_PINGPONG_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "plain.h"

#define PP_MAX_SIZE	SZ_1M
#define PP_MAX_WINDOW	4096
#define PP_MAX_SGES	32U
#define PP_MAX_PAIRS	64
#define PP_STR		IB_DEVICE_NAME_MAX

/* Each run logs one line of each kind: wrong data, and the error that ended it. */
#define PP_SAID_DATA	1
#define PP_SAID_STATUS	2

enum pp_op {
	PP_SEND,
	PP_SEND_IMM,
	PP_WRITE,
	PP_WRITE_IMM,
	PP_READ,
	PP_FETCH_ADD,
	PP_MEMCPY,
};

/**
 * struct pp_params - parameters of a run, as the user gave them
 * @initiator: device that posts the messages
 * @target: device at the other end, may be the same one
 * @ctx: polling context by name
 * @op: operation by name
 * @iport: port of @initiator, from 1
 * @tport: port of @target, from 1
 * @size: bytes of a message
 * @window: messages outstanding per pair
 * @iters: messages per pair
 * @sges: pieces of memory a message is gathered from or scattered to
 * @pairs: queue pairs that run side by side
 * @verify: fill and check every byte of every message
 * @sig: one in this many sends is signaled
 * @batch: messages posted by one call, 0 picks a quarter of the window
 * @lat: measure the time of every signaled message
 * @timeout: seconds without any completion after which a run fails
 * @seed: start value of the test pattern
 * @cpus: CPUs that the pairs are spread over, 0 leaves them where the run is
 * @plain: post one request a call, as most ULPs do
 * @srq: the target takes its receives from an SRQ; only with @plain
 */
struct pp_params {
	char initiator[PP_STR];
	char target[PP_STR];
	char ctx[16];
	char op[16];
	unsigned int iport;
	unsigned int tport;
	unsigned int size;
	unsigned int window;
	unsigned int iters;
	unsigned int sges;
	unsigned int pairs;
	unsigned int verify;
	unsigned int sig;
	unsigned int batch;
	unsigned int lat;
	unsigned int timeout;
	unsigned int seed;
	unsigned int cpus;
	unsigned int plain;
	unsigned int srq;
};

/**
 * struct pp_result - result of a run
 * @batch: messages posted by one call, as chosen
 * @msgs: messages that completed at every end involved
 * @ns: nanoseconds from the first post to the last completion
 * @p50: median latency in nanoseconds, 0 if it was not measured
 * @p99: 99th percentile of the latency in nanoseconds
 * @errors: completions in error, wrong messages, refused posts
 * @verified: messages of which every byte was checked
 * @err: 0 or the negative errno that ended the run
 */
struct pp_result {
	u32 batch;
	u64 msgs;
	u64 ns;
	u64 p50;
	u64 p99;
	u64 errors;
	u64 verified;
	int err;
};

/* A device that can be used, on the list in main.c. */
struct pp_dev {
	struct list_head list;
	struct ib_device *ibdev;
	refcount_t users;
	struct completion idle;
};

/* Where the bytes of a message lie in a slot; the same for all slots. */
struct pp_layout {
	u32 nseg;
	u32 stride;
	struct pp_seg {
		u32 place;	/* bytes from the start of the slot */
		u32 len;	/* bytes: head + 8 * words + tail */
		u32 first;	/* word of the message it begins in */
		u32 skip;	/* bytes of that word before it */
		u32 head;
		u32 words;
		u32 tail;
	} seg[PP_MAX_SGES];
};

struct pp_slot {
	void *va;
	u64 dma;
	u32 rkey;
};

/* Memory that is contiguous for the CPU and the device: one or more slots. */
struct pp_chunk {
	void *va;
	size_t len;
	struct scatterlist sg;
	struct ib_mr *mr;
};

struct pp_buf {
	struct ib_device *dev;
	enum dma_data_direction dir;
	struct pp_chunk *chunk;
	u32 nr_chunks;
	u32 per_chunk;		/* slots */
	struct pp_slot *slot;
};

/* One message that the initiator can have in flight, with its work request. */
struct pp_tx {
	struct ib_cqe cqe;
	struct pp_tx *next;	/* of the next message in the circle */
	u32 covers;		/* messages that its completion completes */
	u64 stamp;		/* time of the post, in nanoseconds */
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
	struct ib_sge *sge;
};

struct pp_rx {
	struct ib_cqe cqe;
	struct pp_rx *next;
	struct ib_recv_wr wr;
	struct ib_sge *sge;
};

struct pp_hist;

/* A side of a pair: its queue pair, the CQ for both queues, its memory. */
struct pp_end {
	struct ib_cq *cq;
	struct ib_qp *qp;
	bool drain;
	struct pp_buf buf;
};

enum pp_side_nr {
	PP_INITIATOR,
	PP_TARGET,
	PP_SIDES,
};

/* A work request whose completion the run waits for, outside the hot path. */
struct pp_wait {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* The top of traffic.c explains which context may access which fields of a pair. */
struct pp_pair {
	struct pp_run *run;
	u64 base;		/* start of the pattern */
	const struct pp_slot *fill;
	const struct pp_slot *check;
	struct pp_end end[PP_SIDES];
	struct ib_sge *sge_mem[PP_SIDES];
	struct ib_srq *srq;
	struct pp_wait wait;
	struct plain plain;

	/* The sender. */
	struct pp_tx *tx ____cacheline_aligned_in_smp;
	struct pp_tx *tx_due;	/* the next message to complete */
	u32 completed;
	u32 tx_wake;		/* completions left before there is more to do */
	u32 posted;
	u32 tx_head;		/* slot of the next message to post */
	struct ib_send_wr *tx_cut;
	struct pp_hist *hist;
	u32 unsignaled;		/* posted since the last signaled one */
	u64 tx_verified;

	/* The receiver. */
	struct pp_rx *rx ____cacheline_aligned_in_smp;
	struct pp_rx *rx_due;	/* the next message to arrive */
	u32 received;
	u32 rx_wake;		/* messages left before there is more to do */
	struct pp_rx *rx_first;	/* the first one waiting to be posted again */
	struct ib_recv_wr *rx_cut;
	u64 rx_verified;

	/* Between the two. */
	u32 recycled ____cacheline_aligned_in_smp;
	u32 stalled;
};

struct pp_side {
	struct pp_dev *pdev;
	struct ib_device *dev;
	u32 port;
	struct ib_pd *pd;
	struct ib_port_attr attr;
	const struct ib_gid_attr *gid;	/* RoCE only, a reference */
	bool frwr;
};

/**
 * struct pp_run - a run under way
 * @p: its parameters; @p.batch is never 0 here
 * @op: operation
 * @ctx: polling context
 * @slots: messages for which a pair has memory
 * @two_sided: the operation consumes receive requests
 * @touch: every message is handled on its own when it is posted and when it is
 *	done; otherwise completions are only checked and counted
 * @side: the devices
 * @linear: layout of memory that the remote end addresses
 * @scattered: layout of memory described by SGEs
 * @fill_layout: how a message lies where it is written before it is posted
 * @check_layout: how a message lies where it is checked
 * @fill_dev: device that reads the messages written there
 * @check_dev: device that writes the messages to be checked
 * @pairs: array of @p.pairs
 * @start: time of the first post in nanoseconds
 * @end: time of the last completion in nanoseconds
 * @busy: ends of pairs that still expect messages
 * @err: 0 or the errno that stopped the run, set once
 * @done: completed when nothing is left to wait for
 * @reported: kinds of errors of this run that were printed, PP_SAID_*
 * @errors: see struct pp_result
 */
struct pp_run {
	struct pp_params p;
	enum pp_op op;
	enum ib_poll_context ctx;
	u32 slots;
	bool two_sided;
	bool touch;
	struct pp_side side[PP_SIDES];
	struct pp_layout linear;
	struct pp_layout scattered;
	const struct pp_layout *fill_layout;
	const struct pp_layout *check_layout;
	struct ib_device *fill_dev;
	struct ib_device *check_dev;
	struct pp_pair *pairs;
	u64 start;
	u64 end;
	int err;
	struct completion done;

	atomic_t busy ____cacheline_aligned_in_smp;
	atomic_t reported;
	atomic64_t errors;
};

/* main.c */
int pp_devs_get(struct pp_run *run);
void pp_devs_put(struct pp_run *run);

/* run.c */
int pp_run(const struct pp_params *params, struct pp_result *res);
void pp_run_stop(struct pp_run *run, int err);
bool pp_run_first_report(struct pp_run *run, int kind);

/* setup.c */
int pp_setup(struct pp_run *run);
void pp_quiesce(struct pp_run *run);
void pp_teardown(struct pp_run *run);

/* connect.c */
int pp_sides_resolve(struct pp_run *run);
void pp_sides_release(struct pp_run *run);
int pp_connect(struct pp_run *run, struct pp_pair *pair, u32 psn);

/* buf.c */
void pp_layout_init(struct pp_layout *l, u32 size, u32 nseg);
int pp_buf_alloc(struct pp_buf *buf, struct ib_device *dev,
		 enum dma_data_direction dir, const struct pp_layout *layout,
		 u32 slots);
void pp_buf_free(struct pp_buf *buf);
void pp_fill(const struct pp_layout *l, void *slot, u64 word);
bool pp_check(const struct pp_layout *l, const void *slot, u64 word);

/* Odd, so that the first words of messages differ. */
#define PP_SEQ_STEP	0x9e3779b97f4a7c15ULL

/* A seed or sequence number spread over a word of pattern; sums stay sums. */
static inline u64 pp_base(u64 seed)
{
	return seed * PP_SEQ_STEP;
}

/* traffic.c */
void pp_give_up(struct pp_run *run, const char *what, const char *why);
void pp_wc_bad(struct pp_run *run, const char *what, const struct ib_wc *wc);
void pp_corrupt(struct pp_run *run, u32 seq, const char *how);
void pp_end_done(struct pp_run *run);
int pp_traffic_init(struct pp_run *run, struct pp_pair *pair);
void pp_traffic_free(struct pp_pair *pair);
int pp_traffic_listen(struct pp_pair *pair);
void pp_traffic_start(struct pp_pair *pair);
void pp_traffic_copy(struct pp_pair *pair);
bool pp_traffic_sum_right(const struct pp_pair *pair);

/* plain.c */
int pp_plain_init(struct pp_run *run, struct pp_pair *pair);
void pp_plain_free(struct pp_pair *pair);
int pp_plain_listen(struct pp_pair *pair);
void pp_plain_start(struct pp_pair *pair);
u32 pp_plain_check(struct pp_pair *pair);

/* hist.c */
struct pp_hist *pp_hist_alloc(void);
void pp_hist_free(struct pp_hist *hist);
void pp_hist_add(struct pp_hist *hist, u64 ns);
void pp_hist_merge(struct pp_hist *to, const struct pp_hist *from);
u64 pp_hist_percentile(const struct pp_hist *hist, unsigned int percent);

#endif
