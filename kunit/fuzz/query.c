// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: queries and searches of ports, GIDs and P_Keys, and asynchronous events of a
 * device.
 */
#include <rdma/ib_cache.h>

#include "fuzz/fuzz.h"

/* A port number that no device has, and an index beyond each GID and P_Key table. */
#define X_NO_PORT	99
#define X_NO_INDEX	999
#define X_PKEY		0xffff
#define X_NO_PKEY	0x1234

static enum x_verdict query_port(struct x_world *w, int dev, bool bad)
{
	struct ib_port_attr attr = {};
	int ret = ib_query_port(w->s->dev[dev], bad ? X_NO_PORT : X_PORT, &attr);

	if (ret || bad)
		return x_want(w, "querying a port", bad ? -EINVAL : 0, ret);
	return x_want(w, "LID of a port", w->s->lid[dev], attr.lid);
}

static enum x_verdict query_gid(struct x_world *w, int dev, bool bad)
{
	union ib_gid gid;
	int ret = rdma_query_gid(w->s->dev[dev], X_PORT, bad ? X_NO_INDEX : 0, &gid);

	if (ret || bad)
		return x_want(w, "querying a GID", bad ? -EINVAL : 0, ret);
	return x_want(w, "a GID", 0, memcmp(&gid, &w->s->gid[dev], sizeof(gid)));
}

static enum x_verdict query_pkey(struct x_world *w, int dev, bool bad, bool cached)
{
	int index = bad ? X_NO_INDEX : 0, ret;
	u16 pkey = 0;

	if (cached)
		ret = ib_get_cached_pkey(w->s->dev[dev], X_PORT, index, &pkey);
	else
		ret = ib_query_pkey(w->s->dev[dev], X_PORT, index, &pkey);
	if (ret || bad)
		return x_want(w, "querying a P_Key", bad ? -EINVAL : 0, ret);
	return x_want(w, "a P_Key", X_PKEY, pkey);
}

static enum x_verdict query_state(struct x_world *w, int dev)
{
	enum ib_port_state state = 0;
	u8 lmc = 0xff;

	if (ib_get_cached_port_state(w->s->dev[dev], X_PORT, &state) ||
	    ib_get_cached_lmc(w->s->dev[dev], X_PORT, &lmc))
		return x_fail(w, "querying the cache of a port");
	if (lmc)
		return x_want(w, "LMC of a port", 0, lmc);
	return x_want(w, "state of a port", IB_PORT_ACTIVE, state);
}

enum x_verdict x_query(struct x_world *w, const struct x_op *op)
{
	bool bad = !(op->r % 8);
	int dev = op->a % X_DEVS;
	char text[IB_FW_VERSION_NAME_MAX];

	switch (op->b % 5) {
	case 0:
		return query_port(w, dev, bad);
	case 1:
		return query_gid(w, dev, bad);
	case 2:
		return query_pkey(w, dev, bad, op->c & 1);
	case 3:
		return query_state(w, dev);
	default:
		ib_get_device_fw_str(w->s->dev[dev], text);
		return x_want(w, "link layer", IB_LINK_LAYER_INFINIBAND,
			      rdma_port_get_link_layer(w->s->dev[dev], X_PORT));
	}
}

static enum x_verdict find_device(struct x_world *w, bool bad)
{
	struct ib_device *ibdev;
	bool right;

	ibdev = ib_device_get_by_name(bad ? "nobody" : dev_name(&w->s->dev[0]->dev),
				      RDMA_DRIVER_UNKNOWN);
	right = ibdev == (bad ? NULL : w->s->dev[0]);
	if (ibdev)
		ib_device_put(ibdev);
	return x_want(w, "finding a device", true, right);
}

static enum x_verdict find_gid(struct x_world *w, int dev)
{
	const struct ib_gid_attr *attr;
	bool right;

	attr = rdma_find_gid_by_port(w->s->dev[dev], &w->s->gid[dev], IB_GID_TYPE_IB, X_PORT, NULL);
	if (IS_ERR(attr))
		return x_want(w, "finding a GID by port", 0, PTR_ERR(attr));
	right = attr->index == 0 && attr->port_num == X_PORT;
	rdma_put_gid_attr(attr);
	return x_want(w, "the GID that was found", true, right);
}

static enum x_verdict find_gid_everywhere(struct x_world *w, int dev, bool bad)
{
	union ib_gid gid = w->s->gid[dev];
	u32 port = 0;
	u16 index = 9;
	int ret;

	gid.raw[9] ^= bad ? 0xff : 0;
	ret = ib_find_gid(w->s->dev[dev], &gid, &port, &index);
	if (ret || bad)
		return x_want(w, "finding a GID", bad ? -ENOENT : 0, ret);
	return x_want(w, "port and index of a GID", X_PORT << 16, port << 16 | index);
}

static enum x_verdict find_pkey(struct x_world *w, int dev, bool bad, bool exact)
{
	u16 pkey = bad ? X_NO_PKEY : X_PKEY, index = 9;
	int ret;

	if (exact)
		ret = ib_find_exact_cached_pkey(w->s->dev[dev], X_PORT, pkey, &index);
	else
		ret = ib_find_pkey(w->s->dev[dev], X_PORT, pkey, &index);
	if (ret || bad)
		return x_want(w, "finding a P_Key", bad ? -ENOENT : 0, ret);
	return x_want(w, "index of a P_Key", 0, index);
}

enum x_verdict x_find(struct x_world *w, const struct x_op *op)
{
	bool bad = !(op->r % 8);
	int dev = op->a % X_DEVS;

	switch (op->b % 4) {
	case 0:
		return find_device(w, bad);
	case 1:
		return find_gid(w, dev);
	case 2:
		return find_gid_everywhere(w, dev, bad);
	default:
		return find_pkey(w, dev, bad, op->c & 1);
	}
}

/* --- events --- */

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct x_world *w = container_of(handler, struct x_world, handler);

	if (!READ_ONCE(w->listening))
		atomic_inc(&w->stray);
	atomic_inc(&w->heard);
	wake_up(&w->wait);
}

static enum x_verdict hear(struct x_world *w)
{
	struct ib_event event = {
		.device = w->s->dev[0],
		.element.port_num = X_PORT,
		.event = IB_EVENT_SM_CHANGE,
	};
	int before = atomic_read(&w->heard);

	ib_dispatch_event(&event);
	/* The event that is heard may be another thread's, but one must be heard. */
	if (!wait_event_timeout(w->wait, atomic_read(&w->heard) != before, w->patience))
		return x_fail(w, "an event was not heard");
	return X_DONE;
}

enum x_verdict x_listen(struct x_world *w, const struct x_op *op)
{
	if (w->listening && op->c & 3)
		return hear(w);
	if (w->listening) {
		ib_unregister_event_handler(&w->handler);
		WRITE_ONCE(w->listening, 0);
		return X_DONE;
	}
	INIT_IB_EVENT_HANDLER(&w->handler, w->s->dev[0], on_event);
	WRITE_ONCE(w->listening, 1);
	ib_register_event_handler(&w->handler);
	return X_DONE;
}
