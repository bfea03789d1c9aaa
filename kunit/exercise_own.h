/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exerciser: what only a thread's own device shows, and requests to channel
 * adapters that take time. It lives longer than a world; x_own_begin() has it begin
 * anew.
 */
#ifndef KVT_EXERCISE_OWN_H
#define KVT_EXERCISE_OWN_H

#include <linux/completion.h>
#include <linux/if_ether.h>
#include <kunit/test.h>

#include "exercise.h"
#include "mock.h"

/* Network devices of a thread, and IPv4 addresses of each. */
#define X_NDEVS		2
#define X_ADDRS		2
/* Address vectors. */
#define X_AVS		3
/* Regions with integrity. */
#define X_PIS		2
/* Requests, handles, and PDs under each. */
#define X_CA_REQS	4
#define X_CA_HANDLES	3
#define X_CA_PDS	2
/* Number of the thread's own device, after those of x_shared. */
#define X_CA_OWN	X_DEVS
/* How often a PD is lent. */
#define X_LENT		2

/* The device, and whose it is. */
struct x_ibdev {
	struct mock_ibdev mib;
	struct x_own *own;
};

/**
 * struct x_av - an address vector
 * @attr: it
 * @there: model: it holds a source GID
 * @live: model: which is in the table still
 * @entry: model: the source GID
 * @gid: model: its value
 * @index: model: its place
 * @port: model: its port
 * @ndev: model: its network device
 * @addr: model: which address of that, or -1 for the default GID
 * @sl: model: service level
 */
struct x_av {
	struct rdma_ah_attr attr;
	bool there;
	bool live;
	const struct ib_gid_attr *entry;
	union ib_gid gid;
	int index;
	u32 port;
	u8 ndev;
	s8 addr;
	u8 sl;
};

/**
 * struct x_pi - a region with integrity
 * @mr: it, or NULL
 * @data: model: entries of data
 * @meta: model: entries of protection information
 * @bad: model: its checks fail
 */
struct x_pi {
	struct ib_mr *mr;
	u8 data;
	u8 meta;
	bool bad;
};

/**
 * struct x_vf - model: a virtual function
 * @guid: of the node, and of the port
 * @link: policy
 * @sets: how often something was set
 */
struct x_vf {
	u64 guid[2];
	int link;
	u32 sets;
};

enum x_ca_state {
	X_CA_NONE,
	X_CA_BUSY,		/* a request makes it, or frees it */
	X_CA_THERE,
};

enum x_ca_what {
	X_CA_OPEN,
	X_CA_ALLOC_PD,
	X_CA_DEALLOC_PD,
	X_CA_REG_MR,
	X_CA_DEREG_MR,
	X_CA_QUERY,
	X_CA_CLOSE,
	X_CA_WHATS
};

struct x_ca_obj {
	u64 id;
	enum x_ca_state state;
};

/**
 * struct x_ca_handle - model: an open channel adapter
 * @self: its number
 * @dev: number of its device
 * @pending: requests that use it
 * @pd: PDs
 * @mr: a region
 * @mr_pd: in which of the PDs
 */
struct x_ca_handle {
	struct x_ca_obj self;
	u8 dev;
	u8 pending;
	struct x_ca_obj pd[X_CA_PDS];
	struct x_ca_obj mr;
	u8 mr_pd;
};

/**
 * struct x_ca_req - a request that takes time
 * @req: it
 * @reg: what is to be registered
 * @out: answer
 * @result: what the submission returned
 * @calls: calls of done()
 * @over: completed by each
 * @busy: it was submitted, and its end was not looked at
 * @cancelled: and cancelled
 * @what: what it does
 * @handle: model: slot
 * @pd: model: PD
 * @want: model: its result, if it is not cancelled
 */
struct x_ca_req {
	struct ib_ca_request req;
	struct kverbs_ca_reg_mr reg;
	u64 out[2];
	ssize_t result;
	atomic_t calls;
	struct completion over;
	bool busy;
	bool cancelled;
	enum x_ca_what what;
	u8 handle;
	u8 pd;
	long want;
};

/**
 * struct x_ca_file - a file of a channel adapter, as a process has it
 * @there: model: it is open
 * @fd: its number
 * @dev: of this device
 * @gone: model: which has gone
 * @handle: a handle
 * @pd: a PD under it, or 0
 * @lent: what the thread has of the PD
 */
struct x_ca_file {
	bool there;
	int fd;
	u8 dev;
	bool gone;
	u64 handle;
	u64 pd;
	struct ib_ca_pd *lent[X_LENT];
};

/**
 * struct x_own - what only a thread's own device shows
 * @mock: tables and methods of the device
 * @ndev: network devices
 * @idle: one that was never registered
 * @fresh: references on each network device when it was made
 * @before: the same when the world began
 * @dev: the device, or NULL
 * @ops: methods of the next one
 * @name: which of its names it has
 * @ports: how many
 * @eth: they are Ethernet ports
 * @asks: it tells of its network devices itself, rather than being told
 * @frees: has a dealloc_driver method
 * @rich: has what few devices have
 * @freed: calls of that
 * @gone: completed by it
 * @bound: model: network device of each port, or -1
 * @addrs: model: bits: addresses of each network device
 * @mbps: model: their speed
 * @av: address vectors
 * @pd: of what follows, or NULL
 * @pi: regions with integrity
 * @vf: model: virtual functions
 * @caps: model: capabilities of each port
 * @handle: channel adapters
 * @req: requests to them
 * @file: file of one
 */
struct x_own {
	struct mock *mock;
	struct net_device *ndev[X_NDEVS];
	struct net_device *idle;
	int fresh[X_NDEVS];
	int before[X_NDEVS];

	struct ib_device *dev;
	struct ib_device_ops ops;
	int name;
	u32 ports;
	bool eth;
	bool asks;
	bool frees;
	bool rich;
	atomic_t freed;
	struct completion gone;

	s8 bound[MOCK_MAX_PORTS + 1];
	u8 addrs[X_NDEVS];
	u32 mbps[X_NDEVS];
	struct x_av av[X_AVS];
	struct ib_pd *pd;
	struct x_pi pi[X_PIS];
	struct x_vf vf[MOCK_PORT_NRS][MOCK_VFS];
	u32 caps[MOCK_MAX_PORTS + 1];

	struct x_ca_handle handle[X_CA_HANDLES];
	struct x_ca_req req[X_CA_REQS];
	struct x_ca_file file;
};

/* exercise_own.c */
int x_own_objects(const struct x_own *own);
enum x_verdict x_own_idle(struct x_world *w);
void x_own_prepare(struct x_world *w, u32 r);
void x_own_leave(struct x_world *w, bool some);

/* exercise_roce.c */
void x_roce_new(struct kunit *test, struct x_own *own);
void x_roce_prepare(struct x_world *w, u32 r);
enum x_verdict x_roce_check(struct x_world *w);
void x_roce_leave(struct x_world *w);
void x_roce_begin(struct x_own *own);
enum x_verdict x_roce_gone(struct x_world *w);
void x_roce_end(struct x_own *own);

/* exercise_ca.c */
int x_ca_objects(const struct x_own *own, bool *known);
void x_ca_leave(struct x_world *w, bool some);
enum x_verdict x_ca_gone(struct x_world *w);

#endif
