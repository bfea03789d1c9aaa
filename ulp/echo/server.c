// SPDX-License-Identifier: GPL-2.0-only
/* Sends each message back to where it came from, on all devices. */
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/wait.h>
#include "echo.h"

/**
 * struct connection - a client's
 * @echo: our end of it
 * @list: in connections
 * @close: ends it: an ID cannot be destroyed in its own handler
 * @closing: @close is queued
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
static DEFINE_MUTEX(lock);
static DECLARE_WAIT_QUEUE_HEAD(none_left);

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		echo_post_recv(container_of(wc->wr_cqe, struct echo, send));
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		echo_post_send(container_of(wc->wr_cqe, struct echo, recv));
}

static void close_connection(struct work_struct *work)
{
	struct connection *conn = container_of(work, struct connection, close);

	/* From here on server_exit() leaves the ID alone. */
	mutex_lock(&lock);
	list_del(&conn->list);
	mutex_unlock(&lock);
	echo_close(&conn->echo);
	rdma_destroy_id(conn->echo.id);
	kfree(conn);
	wake_up(&none_left);
}

/* After an error the connection manager destroys the ID. */
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
	if (ret)
		goto err_free;
	id->context = conn;
	ret = echo_post_recv(&conn->echo) ?: rdma_accept(id, &param);
	if (ret)
		goto err_close;
	mutex_lock(&lock);
	list_add(&conn->list, &connections);
	mutex_unlock(&lock);
	return 0;

err_close:
	echo_close(&conn->echo);
err_free:
	kfree(conn);
	return ret;
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
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (conn && !conn->closing) {
			conn->closing = true;
			queue_work(closer, &conn->close);
		}
		return 0;
	default:
		return 0;
	}
}

static int __init server_init(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(ECHO_PORT) };
	int ret;

	closer = alloc_workqueue("kverbs_echo", 0, 0);
	if (!closer)
		return -ENOMEM;
	listener = rdma_create_id(current->nsproxy->net_ns, server_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
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

	rdma_destroy_id(listener);
	mutex_lock(&lock);
	list_for_each_entry(conn, &connections, list)
		rdma_disconnect(conn->echo.id);
	mutex_unlock(&lock);
	wait_event(none_left, list_empty(&connections));
	/* And until the last of them is closed. */
	destroy_workqueue(closer);
}

module_init(server_init);
module_exit(server_exit);
MODULE_DESCRIPTION("Echo server over RDMA");
MODULE_LICENSE("GPL");
