/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A client that records the core's calls in a trace, for mock devices only.
 */
#ifndef KVT_CLIENT_H
#define KVT_CLIENT_H

#include <rdma/ib_verbs.h>

#include "lib/lib.h"

/**
 * struct kvt_client - a recording client
 * @client: the client that is registered with the core
 * @trace: gets "<name>+<device>" for add, "<name>-<device>" for remove and
 *	   "<name>=<device>" for rename
 * @add_ret: return value of add
 * @data: set as client data in add, checked in remove and rename
 * @wrong_data: calls of remove or rename that got other client data
 * @on_add: called in add, before it returns @add_ret
 * @on_remove: called in remove
 * @arg: for the callbacks
 * @registered: must be unregistered at the end of the case
 */
struct kvt_client {
	struct ib_client client;
	struct kvt_trace *trace;
	int add_ret;
	void *data;
	int wrong_data;
	void (*on_add)(struct kvt_client *c, struct ib_device *ibdev);
	void (*on_remove)(struct kvt_client *c, struct ib_device *ibdev);
	void *arg;
	bool registered;
};

struct kvt_client *kvt_client_new(struct kunit *test, const char *name, struct kvt_trace *trace);
int kvt_client_register(struct kvt_client *c);
void kvt_client_unregister(struct kvt_client *c);
struct kvt_client *kvt_client_up(struct kunit *test, const char *name, struct kvt_trace *trace);

#endif
