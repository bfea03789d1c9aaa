/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exerciser: a thread's own mock device, with what the emulated HCA lacks, and
 * asynchronous requests to channel adapters. struct x_own outlives a world;
 * x_own_begin() resets it for the next one.
 */
#ifndef KVT_EXERCISE_OWN_H
#define KVT_EXERCISE_OWN_H

#include <linux/if_ether.h>

#include "fuzz/fuzz.h"
#include "lib/mock.h"

/* Network devices of a thread, and IPv4 addresses of each. */
#define X_NDEVS		2
#define X_ADDRS		2
/* Address vectors of a thread. */
#define X_AVS		3
/* Regions with integrity of a thread. */
#define X_PIS		2
/* CA requests and CA handles of a thread, and PDs under each handle. */
#define X_CA_REQS	4
#define X_CA_HANDLES	3
#define X_CA_PDS	2
/* Device number of the thread's own device, after those of x_shared. */
#define X_CA_OWN	X_DEVS
/* How often a thread may borrow its file's PD at a time. */
#define X_LENT		2

/* The thread's device, with a pointer to the thread's state. */
struct x_ibdev {
	struct mock_ibdev mib;
	struct x_own *own;
};

/**
 * struct x_av - an address vector
 * @attr: the address vector
 * @there: model: @attr holds a source GID
 * @live: model: the source GID is still in the GID table
 * @entry: model: GID table entry of the source GID
 * @gid: model: value of the source GID
 * @index: model: index of the source GID
 * @port: model: port of the source GID
 * @ndev: model: number of the network device of the source GID
 * @addr: model: address of @ndev that the GID is made of, or -1 for the default GID
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
 * @mr: the region, or NULL
 * @data: model: maximum of entries of data
 * @meta: model: maximum of entries of protection information
 * @bad: model: the region's integrity checks fail
 */
struct x_pi {
	struct ib_mr *mr;
	u8 data;
	u8 meta;
	bool bad;
};

/**
 * struct x_vf - model: a virtual function
 * @guid: GUID of the node [0], and of the port [1]
 * @link: link state policy
 * @sets: how often a GUID or the policy was set
 */
struct x_vf {
	u64 guid[2];
	int link;
	u32 sets;
};

enum x_ca_state {
	X_CA_NONE,
	X_CA_BUSY,		/* a pending request makes or frees the object */
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
 * @self: the handle
 * @dev: number of the device
 * @pending: number of requests that use the handle
 * @pd: PDs under the handle
 * @mr: region under the handle
 * @mr_pd: index in @pd of the region's PD
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
 * struct x_ca_req - an asynchronous request
 * @req: the request
 * @reg: input of REG_MR
 * @out: room for the answer
 * @result: result of ib_ca_submit()
 * @calls: calls of done()
 * @over: completed by each call of done()
 * @busy: the request was submitted, and its result is not checked yet
 * @cancelled: ib_ca_cancel() has cancelled the request
 * @what: operation
 * @handle: model: index of the CA handle
 * @pd: model: index of the PD
 * @want: model: result of the request if it is not cancelled
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
 * struct x_ca_file - a device file of a channel adapter, opened as by a process
 * @there: model: the file is open
 * @fd: file descriptor
 * @dev: number of the device
 * @gone: model: the device has gone since the file was opened
 * @handle: CA handle opened through the file
 * @pd: PD under @handle, or 0
 * @lent: references that the thread has borrowed on the PD
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
 * struct x_own - a thread's own device, and the thread's channel adapters
 * @mock: tables and methods of the device
 * @ndev: network devices
 * @idle: a network device that was never registered
 * @fresh: references on each network device when it was made
 * @before: references on each network device when the world began
 * @dev: the device, or NULL
 * @ops: methods of the next device
 * @name: number of the device's current name
 * @ports: number of ports
 * @eth: the ports are Ethernet ports
 * @asks: the driver has get_netdev, instead of calls of ib_device_set_netdev()
 * @frees: the driver has dealloc_driver
 * @rich: the driver has the optional methods, and those for integrity
 * @freed: calls of dealloc_driver
 * @gone: completed by dealloc_driver
 * @bound: model: number of the network device of each port, or -1
 * @addrs: model: bitmap of the IPv4 addresses that each network device has
 * @mbps: model: speed of each network device
 * @av: address vectors
 * @pd: PD of @pi, or NULL
 * @pi: regions with integrity
 * @vf: model: virtual functions, by port
 * @caps: model: capabilities of each port
 * @handle: open channel adapters
 * @req: requests to channel adapters
 * @file: device file of a channel adapter
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

/* own_device.c */
int x_own_objects(const struct x_own *own);
enum x_verdict x_own_idle(struct x_world *w);
void x_own_prepare(struct x_world *w, u32 r);
void x_own_leave(struct x_world *w, bool some);

/* roce.c */
void x_roce_new(struct kunit *test, struct x_own *own);
void x_roce_prepare(struct x_world *w, u32 r);
enum x_verdict x_roce_check(struct x_world *w);
void x_roce_leave(struct x_world *w);
void x_roce_begin(struct x_own *own);
enum x_verdict x_roce_gone(struct x_world *w);
void x_roce_end(struct x_own *own);

/* ca.c */
int x_ca_objects(const struct x_own *own, bool *known);
void x_ca_leave(struct x_world *w, bool some);
enum x_verdict x_ca_gone(struct x_world *w);

#endif
