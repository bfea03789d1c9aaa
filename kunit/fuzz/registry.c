// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: a client and a device of each thread. Each client sees the devices of all
 * threads come and go. The model predicts only whether a client has the emulated devices
 * and its thread's device, and that once the client is unregistered, add() and remove() were
 * called equally often.
 *
 * The callbacks of a client run in any thread, so their counts are atomic. The counts that
 * the model predicts are stable, and compared, after the thread has registered or
 * unregistered its client or device.
 */
#include <linux/stringify.h>

#include "fuzz/mock_device.h"

/* A thread's client. */
struct x_client {
	struct ib_client client;	/* the client as the core knows it */
	char name[16];		/* its name */
	atomic_t adds;		/* calls of add */
	atomic_t removes;	/* calls of remove */
	atomic_t renames;	/* calls of rename for the thread's device */
	atomic_t wrong;		/* calls of remove and rename with other data than add has set */
	/* Calls of add minus calls of remove, for each x_shared.dev and the thread's device. */
	atomic_t here[X_DEVS + 1];
	struct x_world *w;	/* the thread's world */
	bool registered;	/* model: the client is registered */
};

static struct x_client x_clients[X_MAX_THREADS];

static void count(struct x_client *c, struct ib_device *ibdev, int by)
{
	int i;

	for (i = 0; i < X_DEVS; i++) {
		if (ibdev == c->w->s->dev[i])
			atomic_add(by, &c->here[i]);
	}
	if (ibdev == READ_ONCE(c->w->own->dev))
		atomic_add(by, &c->here[X_DEVS]);
}

static int on_add(struct x_client *c, struct ib_device *ibdev)
{
	atomic_inc(&c->adds);
	count(c, ibdev, 1);
	ib_set_client_data(ibdev, &c->client, c);
	return 0;
}

static void on_remove(struct x_client *c, struct ib_device *ibdev, void *data)
{
	atomic_inc(&c->removes);
	count(c, ibdev, -1);
	if (data != c)
		atomic_inc(&c->wrong);
}

static void on_rename(struct x_client *c, struct ib_device *ibdev, void *data)
{
	if (ibdev == READ_ONCE(c->w->own->dev))
		atomic_inc(&c->renames);
	if (data != c)
		atomic_inc(&c->wrong);
}

/* The core does not tell a callback its client, so each client has callbacks of its own. */
#define METHODS(n)							\
static int add_##n(struct ib_device *ibdev)				\
{									\
	return on_add(&x_clients[n], ibdev);				\
}									\
static void remove_##n(struct ib_device *ibdev, void *data)		\
{									\
	on_remove(&x_clients[n], ibdev, data);				\
}									\
static void rename_##n(struct ib_device *ibdev, void *data)		\
{									\
	on_rename(&x_clients[n], ibdev, data);				\
}

METHODS(0) METHODS(1) METHODS(2) METHODS(3) METHODS(4) METHODS(5) METHODS(6) METHODS(7)
METHODS(8) METHODS(9) METHODS(10) METHODS(11) METHODS(12) METHODS(13) METHODS(14) METHODS(15)

#define CLIENT(n)	{ .add = add_##n, .remove = remove_##n, .rename = rename_##n }
static const struct ib_client methods[X_MAX_THREADS] = {
	CLIENT(0), CLIENT(1), CLIENT(2), CLIENT(3), CLIENT(4), CLIENT(5), CLIENT(6), CLIENT(7),
	CLIENT(8), CLIENT(9), CLIENT(10), CLIENT(11), CLIENT(12), CLIENT(13), CLIENT(14),
	CLIENT(15),
};

static struct x_client *client_of(const struct x_world *w)
{
	return &x_clients[w->id];
}

/* Compares the client's counts with the model. */
static enum x_verdict check(struct x_world *w)
{
	struct x_client *c = client_of(w);
	int i, own = c->registered && w->own->dev;

	for (i = 0; i < X_DEVS; i++) {
		if (atomic_read(&c->here[i]) != c->registered)
			return x_want(w, "a client at a device", c->registered,
				      atomic_read(&c->here[i]));
	}
	if (atomic_read(&c->here[X_DEVS]) != own)
		return x_want(w, "a client at the thread's device", own,
			      atomic_read(&c->here[X_DEVS]));
	if (!c->registered && atomic_read(&c->adds) != atomic_read(&c->removes))
		return x_want(w, "devices that have gone", atomic_read(&c->adds),
			      atomic_read(&c->removes));
	if (c->registered && ib_get_client_data(w->s->dev[0], &c->client) != c)
		return x_fail(w, "a client has other data");
	return x_want(w, "calls with other data", 0, atomic_read(&c->wrong));
}

static enum x_verdict register_client(struct x_world *w)
{
	struct x_client *c = client_of(w);
	int ret;

	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "exercise%u", w->id);
	c->client = methods[w->id];
	c->client.name = c->name;
	c->w = w;
	ret = ib_register_client(&c->client);
	if (ret)
		return x_want(w, "registering a client", 0, ret);
	c->registered = true;
	return check(w);
}

static enum x_verdict unregister_client(struct x_world *w)
{
	struct x_client *c = client_of(w);

	ib_unregister_client(&c->client);
	c->registered = false;
	return check(w);
}

enum x_verdict x_client(struct x_world *w, const struct x_op *op)
{
	return client_of(w)->registered ? unregister_client(w) : register_client(w);
}

/* --- the thread's device --- */

static void own_name(const struct x_world *w, int which, char *name, size_t len)
{
	snprintf(name, len, "kvtx%u_%d", w->id, which);
}

static enum x_verdict register_device(struct x_world *w, u32 r)
{
	struct x_ibdev *made = ib_alloc_device(x_ibdev, mib.ibdev);
	char name[IB_DEVICE_NAME_MAX];
	struct x_own *own = w->own;
	struct ib_device *ibdev;
	int ret;

	if (!made)
		return x_fail(w, "no memory for a device");
	x_own_prepare(w, r);
	made->own = own;
	made->mib.mock = own->mock;
	ibdev = &made->mib.ibdev;
	ib_set_device_ops(ibdev, &own->ops);
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = own->ports;
	ibdev->num_comp_vectors = 1;
	ibdev->local_dma_lkey = MOCK_LKEY;
	own_name(w, 0, name, sizeof(name));
	WRITE_ONCE(own->dev, ibdev);
	x_roce_prepare(w, r >> 5);
	ret = ib_register_device(ibdev, name, NULL);
	if (!ret)
		return check(w) ?: x_roce_check(w);
	WRITE_ONCE(own->dev, NULL);
	ib_dealloc_device(ibdev);
	return x_want(w, "registering a device", 0, ret);
}

/* Checks that a name of the thread's device finds @want, which may be NULL. */
static enum x_verdict find_own(struct x_world *w, int which, const struct ib_device *want)
{
	char name[IB_DEVICE_NAME_MAX];
	struct ib_device *ibdev;
	bool right;

	own_name(w, which, name, sizeof(name));
	ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	right = ibdev == want;
	if (ibdev)
		ib_device_put(ibdev);
	return x_want(w, "finding the thread's device", true, right);
}

/* Unregisters a device with a dealloc_driver method, in a way that bits of @how choose. */
static void unregister_freed(struct x_world *w, struct ib_device *ibdev, u32 how)
{
	bool queued = how & 2, put = how & 1;

	if (put && !ib_device_try_get(ibdev)) {
		x_fail(w, "a registered device cannot be used");
		put = false;
	}
	if (queued)
		ib_unregister_device_queued(ibdev);
	if (put)
		ib_unregister_device_and_put(ibdev);
	else if (!queued)
		ib_unregister_device(ibdev);
	else if (!wait_for_completion_timeout(&w->own->gone, w->patience))
		x_fail(w, "a device whose unregistration is queued does not go");
	/* The device is freed by now: if it was only queued, @gone was waited for. */
	if (atomic_read(&w->own->freed) != 1)
		x_want(w, "calls of dealloc_driver", 1, atomic_read(&w->own->freed));
	/* The name is free when this returns, whoever unregisters the device. */
	ib_unregister_device(ibdev);
}

/* Checks that nothing of the thread's device is left. */
static enum x_verdict check_gone(struct x_world *w)
{
	if (x_ca_gone(w) || find_own(w, w->own->name, NULL) || check(w) || x_roce_gone(w))
		return X_FAILED;
	if (atomic_read(&w->own->freed) != w->own->frees)
		return x_want(w, "calls of dealloc_driver", w->own->frees,
			      atomic_read(&w->own->freed));
	if (atomic_read(&w->own->mock->wrong_ca))
		return x_fail(w, "CAs are closed that are not those that were opened");
	return x_want(w, "objects of a device that has gone", 0, mock_live(w->own->mock));
}

static enum x_verdict unregister_device(struct x_world *w, u32 r)
{
	struct ib_device *ibdev = w->own->dev;

	x_own_leave(w, r & 4);
	get_device(&ibdev->dev);
	if (w->own->frees)
		unregister_freed(w, ibdev, r & 3);
	else
		ib_unregister_device(ibdev);
	WRITE_ONCE(w->own->dev, NULL);
	if (!w->own->frees)
		ib_dealloc_device(ibdev);
	put_device(&ibdev->dev);
	return *w->why ? X_FAILED : check_gone(w);
}

static enum x_verdict rename_own(struct x_world *w, bool taken)
{
	int before = atomic_read(&client_of(w)->renames), told, ret;
	char name[IB_DEVICE_NAME_MAX] = "emu0";

	if (taken)
		return x_want(w, "a name that is taken", -EEXIST,
			      ib_device_rename(w->own->dev, name));
	own_name(w, !w->own->name, name, sizeof(name));
	ret = ib_device_rename(w->own->dev, name);
	if (ret)
		return x_want(w, "renaming a device", 0, ret);
	w->own->name = !w->own->name;
	told = atomic_read(&client_of(w)->renames) - before;
	return x_want(w, "clients told of a new name", client_of(w)->registered, told);
}

enum x_verdict x_device(struct x_world *w, const struct x_op *op)
{
	if (!w->own->dev)
		return register_device(w, op->r);
	switch (op->c & 3) {
	case 0:
		return unregister_device(w, op->r);
	case 1:
		if (find_own(w, !w->own->name, NULL))
			return X_FAILED;
		return find_own(w, w->own->name, w->own->dev);
	default:
		return rename_own(w, !(op->r % 8));
	}
}

/* At the end of a world: unregisters the thread's device and client. */
void x_end_registry(struct x_world *w)
{
	if (w->own->dev)
		unregister_device(w, 0);
	if (client_of(w)->registered)
		unregister_client(w);
}
