/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exerciser: a thread's own mock device, with what the software HCA lacks, and
 * requests to channel adapters. struct x_own outlives a world;
 * x_own_begin() resets it for the next one.
 */
#ifndef KVT_EXERCISE_OWN_H
#define KVT_EXERCISE_OWN_H

#include <linux/if_ether.h>

#include "ca/rig.h"
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

/* An address vector. */
struct x_av {
	struct rdma_ah_attr attr;	/* the address vector */
	bool there;			/* model: @attr holds a source GID */
	bool live;			/* model: the source GID is still in the GID table */
	const struct ib_gid_attr *entry;	/* model: GID table entry of the source GID */
	union ib_gid gid;		/* model: value of the source GID */
	int index;			/* model: index of the source GID */
	u32 port;			/* model: port of the source GID */
	u8 ndev;			/* model: number of the network device of the source GID */
	/* Model: address of @ndev that the GID is made of, or -1 for the default GID. */
	s8 addr;
	u8 sl;				/* model: service level */
};

/* A region with integrity. */
struct x_pi {
	struct ib_mr *mr;	/* the region, or NULL */
	u8 data;		/* model: maximum of entries of data */
	u8 meta;		/* model: maximum of entries of protection information */
	bool bad;		/* model: the region's integrity checks fail */
};

/* Model: a virtual function. */
struct x_vf {
	u64 guid[2];	/* GUID of the node [0], and of the port [1] */
	int link;	/* link state policy */
	u32 sets;	/* how often a GUID or the policy was set */
};

enum x_ca_state {
	X_CA_NONE,
	X_CA_BUSY,		/* a pending request makes or frees the object */
	X_CA_THERE,
};

struct x_ca_obj {
	u64 id;
	enum x_ca_state state;
};

/* Model: an open channel adapter. */
struct x_ca_handle {
	struct x_ca_obj self;		/* the handle */
	u8 dev;				/* number of the device */
	u8 pending;			/* number of requests that use the handle */
	struct x_ca_obj pd[X_CA_PDS];	/* PDs under the handle */
	struct x_ca_obj mr;		/* region under the handle */
	u8 mr_pd;			/* index in @pd of the region's PD */
};

/* A request, asynchronous or not. */
struct x_ca_req {
	struct ca_async a;		/* the request */
	struct kverbs_ca_reg_mr reg;	/* input of REG_MR */
	struct kverbs_ca_port_attr out;	/* room for the beginning of an answer */
	ssize_t result;		/* result of ib_ca_submit() */
	bool busy;		/* the request was submitted, and its result is not checked yet */
	bool cancelled;		/* ib_ca_cancel() has cancelled the request */
	enum kverbs_ca_op what;	/* operation */
	u8 handle;		/* model: index of the CA handle */
	u8 pd;			/* model: index of the PD */
	long want;		/* model: result of the request if it is not cancelled */
};

/* A device file of a channel adapter, opened as by a process. */
struct x_ca_file {
	bool there;			/* model: the file is open */
	int fd;				/* file descriptor */
	u8 dev;				/* number of the device */
	bool gone;			/* model: the device has gone since the file was opened */
	u64 handle;			/* CA handle opened through the file */
	u64 pd;				/* PD under @handle, or 0 */
	struct ib_ca_pd *lent[X_LENT];	/* references that the thread has borrowed on the PD */
};

/* A thread's own device, and the thread's channel adapters. */
struct x_own {
	struct mock *mock;		/* tables and methods of the device */
	struct net_device *ndev[X_NDEVS];	/* network devices */
	struct net_device *idle;	/* a network device that was never registered */
	int fresh[X_NDEVS];		/* references on each network device when it was made */
	int before[X_NDEVS];		/* references on each network device when the world began */

	/* The device, or NULL. */
	struct ib_device *dev;
	struct ib_device_ops ops;	/* methods of the next device */
	int name;			/* number of the device's current name */
	u32 ports;			/* number of ports */
	bool eth;			/* the ports are Ethernet ports */
	bool asks;	/* the driver has get_netdev, instead of calls of ib_device_set_netdev() */
	bool frees;			/* the driver has dealloc_driver */
	bool rich;	/* the driver has the optional methods, and those for integrity */
	atomic_t freed;			/* calls of dealloc_driver */
	struct completion gone;		/* completed by dealloc_driver */

	/* Model: number of the network device of each port, or -1. */
	s8 bound[MOCK_MAX_PORTS + 1];
	/* Model: bitmap of the IPv4 addresses that each network device has. */
	u8 addrs[X_NDEVS];
	u32 mbps[X_NDEVS];		/* model: speed of each network device */
	struct x_av av[X_AVS];		/* address vectors */
	struct ib_pd *pd;		/* PD of @pi, or NULL */
	struct x_pi pi[X_PIS];		/* regions with integrity */
	struct x_vf vf[MOCK_PORT_NRS][MOCK_VFS];	/* model: virtual functions, by port */
	u32 caps[MOCK_MAX_PORTS + 1];	/* model: capabilities of each port */

	/* Open channel adapters. */
	struct x_ca_handle handle[X_CA_HANDLES];
	struct x_ca_req req[X_CA_REQS];	/* requests to channel adapters */
	struct x_ca_req closing;	/* the requests that close what is left at the end */
	struct x_ca_file file;		/* device file of a channel adapter */
};

/* mock_device.c */
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
