// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends each message back to where it came from, on all devices.
 *
 * Lock protocol: lock guards the list of connections and whether each is closing. shut() queues
 * a connection's close once, whoever calls it: a handler of events or completions, or
 * server_exit(). From then on the connection is that work item's, which frees it when no
 * handler can run any more. Nothing sleeps under the lock.
 */
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include "echo.h"

/**
 * struct connection - a client's
 * @echo: our end of it
 * @list: in connections
 * @close: ends it: an ID cannot be destroyed in its own handler
 * @closing: @close was queued
 */
struct connection {
	struct echo echo;
	struct list_head list;
	struct work_struct close;
	bool closing;
};

static struct rdma_cm_id *listener;
static struct workqueue_struct *closer;

static LIST_HEAD(connections);
static DEFINE_SPINLOCK(lock);

static void shut_locked(struct connection *conn)
{
	if (!conn->closing)
		queue_work(closer, &conn->close);
	conn->closing = true;
}

static void shut(struct connection *conn)
{
	spin_lock(&lock);
	shut_locked(conn);
	spin_unlock(&lock);
}

/* The buffer of the answer is free again: so the next message may come. */
static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct connection *conn = container_of(wc->wr_cqe, struct connection, echo.send);

	if (wc->status != IB_WC_SUCCESS || echo_post_recv(&conn->echo))
		shut(conn);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct connection *conn = container_of(wc->wr_cqe, struct connection, echo.recv);

	if (wc->status != IB_WC_SUCCESS) {
		shut(conn);
		return;
	}
	memcpy(echo_out(&conn->echo), echo_in(&conn->echo), wc->byte_len);
	if (echo_post_send(&conn->echo, wc->byte_len))
		shut(conn);
}

static void close_connection(struct work_struct *work)
{
	struct connection *conn = container_of(work, struct connection, close);

	spin_lock(&lock);
	list_del(&conn->list);
	spin_unlock(&lock);
	echo_close(&conn->echo);
	rdma_destroy_id(conn->echo.id);
	kfree(conn);
}

/* The connection manager destroys the ID if this fails, else the connection has it. */
static int accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct connection *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int ret;

	if (!conn)
		return -ENOMEM;
	conn->echo.recv.done = received;
	conn->echo.send.done = sent;
	INIT_WORK(&conn->close, close_connection);
	ret = echo_open(&conn->echo, id);
	if (ret) {
		kfree(conn);
		return ret;
	}
	id->context = conn;
	spin_lock(&lock);
	list_add(&conn->list, &connections);
	spin_unlock(&lock);
	if (echo_post_recv(&conn->echo) || rdma_accept(id, &param))
		shut(conn);
	return 0;
}

/* For one ID, this is called once at a time. The listener's own ID has no connection. */
static int server_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct connection *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept(id);
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (conn)
			shut(conn);
		return 0;
	default:
		return 0;
	}
}

static int __init server_init(void)
{
	/* Of either family. */
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(ECHO_PORT) };
	struct net *net = current->nsproxy->net_ns;
	int ret;

	closer = alloc_workqueue("kverbs_echo", 0, 0);
	if (!closer)
		return -ENOMEM;
	listener = rdma_create_id(net, server_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	ret = PTR_ERR_OR_ZERO(listener);
	if (ret)
		goto err_closer;
	ret = rdma_bind_addr(listener, (struct sockaddr *)&any) ?: rdma_listen(listener, 16);
	if (ret)
		goto err_listener;
	return 0;

err_listener:
	rdma_destroy_id(listener);
err_closer:
	destroy_workqueue(closer);
	return ret;
}

static void __exit server_exit(void)
{
	struct connection *conn;

	/* No more requests come. */
	rdma_destroy_id(listener);
	spin_lock(&lock);
	list_for_each_entry(conn, &connections, list)
		shut_locked(conn);
	spin_unlock(&lock);
	/* Waits until the last of them is closed. */
	destroy_workqueue(closer);
}

module_init(server_init);
module_exit(server_exit);
MODULE_DESCRIPTION("Echo server over RDMA");
MODULE_LICENSE("GPL");
