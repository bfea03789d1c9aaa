// SPDX-License-Identifier: GPL-2.0-only
/* Connects to an echo server, sends it messages, and compares what comes back. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poison.h>
#include "echo.h"

#define CLIENT_PATIENCE_MS	5000

static char *from, *to = "";
module_param(from, charp, 0444);
MODULE_PARM_DESC(from, "IP address to connect from (default: any)");
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "IP address of the server");
static unsigned int rounds = 100;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "Number of messages (default: 100)");

/* The only connection; that something has happened to it, and the first error. */
static struct echo client;
static DECLARE_COMPLETION(news);
static int status;

/* Events and completions come at once: a message that still arrives must not hide an error. */
static void tell(int ret)
{
	if (ret)
		cmpxchg(&status, 0, ret);
	complete(&news);
}

static int wait_for_news(void)
{
	return wait_for_completion_timeout(&news, msecs_to_jiffies(2 * CLIENT_PATIENCE_MS)) ?
	       READ_ONCE(status) : -ETIMEDOUT;
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	tell(wc->status == IB_WC_SUCCESS ? 0 : -EIO);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	tell(wc->status == IB_WC_SUCCESS && wc->byte_len == ECHO_BYTES ? 0 : -EIO);
}

static int client_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		tell(0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		tell(-ECONNRESET);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		pr_err("%s: %s, status %d\n", to, rdma_event_msg(event->event), event->status);
		tell(-ECONNABORTED);
	}
	return 0;
}

static int resolve(struct rdma_cm_id *id)
{
	struct sockaddr_storage src = {}, dst = {};
	struct net *net = current->nsproxy->net_ns;
	int ret;

	ret = inet_pton_with_scope(net, AF_UNSPEC, to, __stringify(ECHO_PORT), &dst);
	if (!ret && from)
		ret = inet_pton_with_scope(net, AF_UNSPEC, from, NULL, &src);
	if (ret)
		return ret;
	return rdma_resolve_addr(id, from ? (struct sockaddr *)&src : NULL,
				 (struct sockaddr *)&dst, CLIENT_PATIENCE_MS) ?:
	       wait_for_news() ?:
	       rdma_resolve_route(id, CLIENT_PATIENCE_MS) ?: wait_for_news();
}

static int echo_once(unsigned int round)
{
	u32 *word = echo_out(&client);
	int ret, i;

	for (i = 0; i < ECHO_BYTES / sizeof(*word); i++)
		word[i] = round * ECHO_BYTES + i;
	/* Of an answer that does not arrive, nothing must look right. */
	memset(echo_in(&client), POISON_FREE, ECHO_BYTES);
	ret = echo_post_recv(&client) ?: echo_post_send(&client, ECHO_BYTES) ?:
	      /* The message has gone and the answer has come, in whichever order. */
	      wait_for_news() ?: wait_for_news();
	if (ret)
		return ret;
	return memcmp(echo_in(&client), echo_out(&client), ECHO_BYTES) ? -EBADMSG : 0;
}

static int run(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	unsigned int round;
	int ret;

	ret = rdma_connect(id, &param) ?: wait_for_news();
	for (round = 0; !ret && round < rounds; round++)
		ret = echo_once(round);
	return ret;
}

static int __init client_init(void)
{
	struct rdma_cm_id *id;
	int ret;

	client.recv.done = received;
	client.send.done = sent;
	id = rdma_create_id(current->nsproxy->net_ns, client_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = resolve(id) ?: echo_open(&client, id);
	if (!ret) {
		ret = run(id);
		pr_info("%s: %u messages to %s and back: %d\n", dev_name(&id->device->dev),
			rounds, to, ret);
		echo_close(&client);
	}
	rdma_destroy_id(id);
	return ret;
}

static void __exit client_exit(void)
{
}

module_init(client_init);
module_exit(client_exit);
MODULE_DESCRIPTION("Echo client over RDMA");
MODULE_LICENSE("GPL");
