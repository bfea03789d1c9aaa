/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device driver that mostly just logs the calls of its methods. A case can make each
 * method fail, and sets the tables that the core reads (ports, GIDs, P_Keys).
 */
#ifndef KVT_MOCK_H
#define KVT_MOCK_H

#include <rdma/ib_verbs.h>

#include "lib/lib.h"

struct platform_device;

#define MOCK_MAX_PORTS	2
/* Size of arrays that are indexed by port number: from 1, but 0 for a switch. */
#define MOCK_PORT_NRS	(MOCK_MAX_PORTS + 1)
#define MOCK_GIDS	8
#define MOCK_PKEYS	4
#define MOCK_LOG	1024

/* Capabilities that the mock reports. */
#define MOCK_MAX_QP_WR	128
#define MOCK_MAX_SGE	4
#define MOCK_MAX_CQE	1024
#define MOCK_MAX_SRQ_WR	64
#define MOCK_MAX_SRQ_SGE 2
#define MOCK_MAX_PAGES	16
#define MOCK_MAX_MAPS	4
#define MOCK_LKEY	0x4d6f636b
#define MOCK_MAD_SIZE	256
/* Virtual functions of each port, for devices with mock_optional_methods(). */
#define MOCK_VFS	2
/* Bytes that the mock keeps of the vendor data of an open_ca call. */
#define MOCK_VENDOR	16

#define MOCK_OPS(X)							\
	X(query_device) X(query_port) X(get_port_immutable)		\
	X(query_gid) X(query_pkey) X(add_gid) X(del_gid)		\
	X(alloc_pd) X(dealloc_pd)					\
	X(create_ah) X(modify_ah) X(query_ah) X(destroy_ah)		\
	X(create_srq) X(modify_srq) X(query_srq) X(destroy_srq)		\
	X(post_srq_recv)						\
	X(create_cq) X(destroy_cq) X(modify_cq) X(resize_cq)		\
	X(poll_cq) X(req_notify_cq)					\
	X(create_qp) X(modify_qp) X(query_qp) X(destroy_qp)		\
	X(post_send) X(post_recv)					\
	X(get_dma_mr) X(alloc_mr) X(map_mr_sg) X(reg_user_mr) X(dereg_mr) \
	X(reg_user_mr_dmabuf) X(reg_umem_mr) X(open_mr)			\
	X(revoke_mr) X(pause_mr) X(resume_mr)				\
	X(alloc_mw) X(dealloc_mw)					\
	X(alloc_fmr) X(map_phys_fmr) X(unmap_fmr) X(dealloc_fmr)	\
	X(alloc_mr_integrity) X(map_mr_sg_pi) X(check_mr_status)	\
	X(modify_port) X(modify_device)					\
	X(set_vf_link_state) X(get_vf_config) X(get_vf_stats)		\
	X(get_vf_guid) X(set_vf_guid)					\
	X(open_ca) X(close_ca)						\
	X(enable_driver) X(dealloc_driver)

#define MOCK_OP_ENUM(op)	MOCK_##op,
enum mock_op {
	MOCK_OPS(MOCK_OP_ENUM)
	MOCK_OP_NR,
};

enum mock_obj {
	MOCK_PD,
	MOCK_AH,
	MOCK_SRQ,
	MOCK_CQ,
	MOCK_QP,
	MOCK_MR,
	MOCK_MW,
	MOCK_FMR,
	MOCK_CA,
	MOCK_OBJ_NR,
};

/* One line of the log. */
struct mock_call {
	enum mock_op op;	/* the method */
	const void *obj;	/* the object it was called on, not to be dereferenced */
	u64 arg;		/* port, attribute mask, flags or number of entries */
	u64 arg2;		/* index or state */
};

/* What the device reports about a port. */
struct mock_port {
	/* the port's attributes; the table lengths are set by mock_new() */
	struct ib_port_attr attr;
	union ib_gid gids[MOCK_GIDS];		/* for InfiniBand ports: results of query_gid */
	u16 pkeys[MOCK_PKEYS];			/* results of query_pkey */
	struct net_device *ndev;		/* net device of an Ethernet port */
	union ib_gid added[MOCK_GIDS];	/* GIDs that the core added to an Ethernet port, by index */
	enum ib_gid_type added_type[MOCK_GIDS];	/* types of @added */
	unsigned long valid;			/* bit per index of @added that is in use */
};

/* A virtual function. */
struct mock_vf {
	u64 node_guid;		/* the node GUID that was set */
	u64 port_guid;		/* the port GUID that was set */
	int link_state;		/* the link state that was set, IFLA_VF_LINK_STATE_* */
	u32 sets;		/* how often one of them was set */
};

/* Arguments of open_ca. */
struct mock_opening {
	u64 handle;		/* the handle */
	bool user;		/* opened by a process */
	bool vendor;		/* there was vendor data */
	size_t len;		/* bytes of vendor data */
	u8 head[MOCK_VENDOR];	/* the first bytes of the vendor data */
};

/**
 * struct mock - one device and its state
 * @ibdev: the device, NULL after it was freed
 * @ops: methods of the device; to be changed between mock_new() and mock_alloc()
 * @nports: number of ports; to be changed before mock_alloc()
 * @eth: ports are Ethernet; to be changed before mock_alloc()
 * @is_switch: a switch, whose port is number 0; to be changed before mock_alloc()
 * @no_local_lkey: there is no local_dma_lkey; to be changed before mock_register()
 * @dma: the device has DMA addresses; to be changed before mock_alloc()
 * @pdev: the device used for DMA mapping, if @dma
 * @registered: must be unregistered at the end of the case
 * @flush_ns: delay of the completion of requests of QPs in error, which then comes from hard
 *	interrupt; 0 for at once
 * @flush_lost: requests of QPs in error do not complete
 * @refused: GID whose RoCE v1 entry the driver refuses, while @refusing
 * @refusing: see @refused
 * @on_error: called when a QP has entered the error state
 * @on_error_arg: argument of @on_error
 * @held: the method whose callers are held up, %MOCK_OP_NR for none; see mock_hold()
 * @hold: where they are held up
 * @fill: changes the result of query_device
 * @bind: the last %IB_WR_BIND_MW that was posted
 * @opened: arguments of the last open_ca, under @lock
 * @wrong_ca: inconsistencies found in calls of open_ca and close_ca
 * @user_mr: the last region of user memory, which may have been freed
 * @wrong_mr: wrong calls of the methods of a region
 * @bad_sig: key of the region with integrity whose checks fail
 * @fw: number in the text of the firmware version
 * @vf: virtual functions, by port
 * @port: ports, by port number
 * @live: objects made and not destroyed, by kind
 * @next_key: counter that QP numbers and keys are made from
 * @lock: guards the log and the failures
 * @fail: by method, the value to return, from the n-th call on or once
 * @calls: the log
 * @ncalls: entries in @calls
 * @count: calls by method
 */
struct mock {
	struct ib_device *ibdev;
	struct ib_device_ops ops;
	u32 nports;
	bool eth;
	bool is_switch;
	bool no_local_lkey;
	bool dma;
	struct platform_device *pdev;
	bool registered;
	u64 flush_ns;
	bool flush_lost;
	union ib_gid refused;
	bool refusing;
	void (*on_error)(struct ib_qp *qp, void *arg);
	void *on_error_arg;
	enum mock_op held;
	struct kvt_gate hold;
	void (*fill)(struct ib_device_attr *attr);
	struct ib_bind_mw_wr bind;
	struct mock_opening opened;
	atomic_t wrong_ca;
	struct ib_mr *user_mr;
	atomic_t wrong_mr;
	u32 bad_sig;
	u32 fw;
	struct mock_vf vf[MOCK_PORT_NRS][MOCK_VFS];
	struct mock_port port[MOCK_MAX_PORTS + 1];
	atomic_t live[MOCK_OBJ_NR];
	atomic_t next_key;

	raw_spinlock_t lock;
	struct {
		int ret;
		unsigned int after;
		bool once;
	} fail[MOCK_OP_NR];
	struct mock_call calls[MOCK_LOG];
	unsigned int ncalls;
	unsigned int count[MOCK_OP_NR];
};

struct mock_ibdev {
	struct ib_device ibdev;
	struct mock *mock;
};

struct mock *mock_new(struct kunit *test);
void mock_alloc(struct kunit *test, struct mock *m);
int mock_register(struct mock *m, const char *name);
#define mock_start(test, m, name)					\
do {									\
	mock_alloc(test, m);						\
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, name));		\
} while (0)
void mock_unregister(struct mock *m);
void mock_dealloc(struct mock *m);
void mock_free(struct kunit *test, struct mock *m);
void mock_dealloc_by_core(struct mock *m, bool yes);
struct mock *mock_up(struct kunit *test, const char *name);
struct mock *mock_up_eth(struct kunit *test, const char *name, struct net_device *ndev);

bool mock_exists(const char *name);
struct mock *mock_of(const struct ib_device *ibdev);
const char *mock_op_name(enum mock_op op);

void mock_fail(struct mock *m, enum mock_op op, int ret);
void mock_fail_nth(struct mock *m, enum mock_op op, unsigned int n, int ret);
void mock_fail_none(struct mock *m);

void mock_hold(struct mock *m, enum mock_op op);
void mock_hold_end(struct mock *m);

void mock_log_reset(struct mock *m);
unsigned int mock_calls(struct mock *m, enum mock_op op);
int mock_log_find(struct mock *m, enum mock_op op, unsigned int from);
bool mock_last(struct mock *m, enum mock_op op, struct mock_call *call);
int mock_enter(struct mock *m, enum mock_op op, const void *obj, u64 arg, u64 arg2);

void mock_event(struct mock *m, u32 port, enum ib_event_type type);
void mock_events_flush(struct mock *m);
bool mock_event_is_taken(struct mock *m);
void mock_event_has_waited(struct mock *m, int times);

int mock_live(struct mock *m);
#define MOCK_EXPECT_IDLE(test, m) KUNIT_EXPECT_EQ(test, 0, mock_live(m))

/* Completions of a CQ, put there by the case. */
bool mock_cq_push(struct ib_cq *cq, const struct ib_wc *wc, bool solicited);
bool mock_cq_push_quiet(struct ib_cq *cq, const struct ib_wc *wc);
unsigned int mock_cq_pending(struct ib_cq *cq);
bool mock_cq_armed(struct ib_cq *cq);
void mock_cq_purge(struct ib_cq *cq, const struct ib_qp *qp);

/* Calls of a CQ's methods, and notifications. */
struct mock_cq_counts {
	u64 polls;		/* calls of poll_cq */
	u64 empty;		/* calls of poll_cq that found no completion */
	u64 arms;		/* calls of req_notify_cq */
	/* calls of req_notify_cq that reported missed completions and left the CQ unarmed */
	u64 missed;
	u64 again;		/* calls of req_notify_cq that found the CQ armed already */
	u64 fired;		/* notifications */
};

void mock_cq_count(struct ib_cq *cq, struct mock_cq_counts *counts);
void mock_cq_on_arm(struct ib_cq *cq, void (*fn)(struct ib_cq *cq, void *arg), void *arg);
void mock_cq_on_destroy(struct ib_cq *cq, void (*fn)(struct ib_cq *cq, void *arg), void *arg);
enum ib_qp_state mock_qp_state(struct ib_qp *qp);

/* State of a region whose memory the core got. */
enum mock_mr_state {
	MOCK_MR_MADE,
	MOCK_MR_LIVE,
	MOCK_MR_PAUSED,
	MOCK_MR_REVOKED,
};

struct ib_umem *mock_mr_umem(struct ib_mr *mr);
enum mock_mr_state mock_mr_state(struct ib_mr *mr);
u64 mock_mr_dma(struct ib_mr *mr);
void mock_by_umem(struct mock *m);
struct mock *mock_up_umem(struct kunit *test, const char *name);

struct mock_qp {
	struct ib_qp ibqp;
	enum ib_qp_state state;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
};

/* Used between the parts of the mock. */
void mock_cq_push_late(struct ib_cq *cq, const struct ib_wc *wc, u64 ns);

/* Each part of the mock fills in its methods. */
void mock_object_methods(struct ib_device_ops *ops);
void mock_memory_methods(struct ib_device_ops *ops);
void mock_cq_methods(struct ib_device_ops *ops);
void mock_ca_methods(struct ib_device_ops *ops);

/* Methods that a case adds to ib_device_ops itself. */
void mock_eth_methods(struct ib_device_ops *ops, bool get_netdev);
void mock_iwarp_methods(struct ib_device_ops *ops, bool get_netdev);
void mock_integrity_methods(struct ib_device_ops *ops);
void mock_optional_methods(struct ib_device_ops *ops);
void mock_counter_methods(struct ib_device_ops *ops);

#endif
