// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client that records the calls of its callbacks in a trace.
 */
#include "lib/client.h"
#include "lib/mock.h"

/* The core does not tell a callback whose it is, so each client has callbacks of its own. */
#define KVT_CLIENTS	4
static struct kvt_client *kvt_clients[KVT_CLIENTS];

static int kvt_add(struct kvt_client *c, struct ib_device *ibdev)
{
	if (!c || !mock_of(ibdev))
		return -EOPNOTSUPP;
	kvt_trace_add(c->trace, "%s+%s", c->client.name, dev_name(&ibdev->dev));
	if (c->data)
		ib_set_client_data(ibdev, &c->client, c->data);
	if (c->on_add)
		c->on_add(c, ibdev);
	return c->add_ret;
}

static void kvt_remove(struct kvt_client *c, struct ib_device *ibdev, void *data)
{
	kvt_trace_add(c->trace, "%s-%s", c->client.name, dev_name(&ibdev->dev));
	if (data != c->data)
		c->wrong_data++;
	if (c->on_remove)
		c->on_remove(c, ibdev);
}

static void kvt_rename(struct kvt_client *c, struct ib_device *ibdev, void *data)
{
	kvt_trace_add(c->trace, "%s=%s", c->client.name, dev_name(&ibdev->dev));
	if (data != c->data)
		c->wrong_data++;
}

#define KVT_CALLBACKS(n)						\
static int kvt_add_##n(struct ib_device *ibdev)				\
{									\
	return kvt_add(kvt_clients[n], ibdev);				\
}									\
static void kvt_remove_##n(struct ib_device *ibdev, void *data)		\
{									\
	kvt_remove(kvt_clients[n], ibdev, data);			\
}									\
static void kvt_rename_##n(struct ib_device *ibdev, void *data)		\
{									\
	kvt_rename(kvt_clients[n], ibdev, data);			\
}

KVT_CALLBACKS(0)
KVT_CALLBACKS(1)
KVT_CALLBACKS(2)
KVT_CALLBACKS(3)

#define KVT_CLIENT(n) { \
	.add = kvt_add_##n, .remove = kvt_remove_##n, .rename = kvt_rename_##n }
static const struct ib_client kvt_callbacks[KVT_CLIENTS] = {
	KVT_CLIENT(0), KVT_CLIENT(1), KVT_CLIENT(2), KVT_CLIENT(3),
};

/**
 * kvt_client_unregister() - unregister a client
 * @c: the client; nothing is done if it is not registered
 */
void kvt_client_unregister(struct kvt_client *c)
{
	if (!c->registered)
		return;
	c->registered = false;
	ib_unregister_client(&c->client);
}
EXPORT_SYMBOL_GPL(kvt_client_unregister);

static void kvt_client_end(void *arg)
{
	struct kvt_client *c = arg;
	int i;

	kvt_client_unregister(c);
	for (i = 0; i < KVT_CLIENTS; i++)
		if (kvt_clients[i] == c)
			kvt_clients[i] = NULL;
}

/**
 * kvt_client_new() - make a client without registering it
 * @test: the running case; at most four clients live at a time
 * @name: name of the client, also used in the trace
 * @trace: trace that records the callbacks
 *
 * Return: the client, unregistered at the latest when the case ends.
 */
struct kvt_client *kvt_client_new(struct kunit *test, const char *name, struct kvt_trace *trace)
{
	struct kvt_client *c = kvt_zalloc(test, sizeof(*c));
	int i;

	for (i = 0; i < KVT_CLIENTS && kvt_clients[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, KVT_CLIENTS);
	c->client = kvt_callbacks[i];
	c->client.name = name;
	c->trace = trace;
	c->data = c;
	kvt_clients[i] = c;
	kvt_defer(test, kvt_client_end, c);
	return c;
}
EXPORT_SYMBOL_GPL(kvt_client_new);

/**
 * kvt_client_register() - register a client with the core
 * @c: the client
 *
 * Return: what ib_register_client() returned.
 */
int kvt_client_register(struct kvt_client *c)
{
	int ret = ib_register_client(&c->client);

	c->registered = !ret;
	return ret;
}
EXPORT_SYMBOL_GPL(kvt_client_register);

/**
 * kvt_client_up() - make a client and register it
 * @test: the running case
 * @name: name of the client
 * @trace: trace that records the callbacks
 *
 * Return: the client.
 */
struct kvt_client *kvt_client_up(struct kunit *test, const char *name, struct kvt_trace *trace)
{
	struct kvt_client *c = kvt_client_new(test, name, trace);

	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	return c;
}
EXPORT_SYMBOL_GPL(kvt_client_up);
