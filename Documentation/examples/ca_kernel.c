// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel caller of channel-adapter requests: opens each device that comes, asks at
 * once what it is, and has a PD made while it does other things.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kverbs/ca.h>
#include <rdma/ib_verbs.h>

struct visit {
	struct ib_ca_request pd;	/* the core's until done() was called */
	struct completion pd_made;
	u64 handle;
};

static struct ib_client visitor;

/* Any context: it may be the one of whoever submits. */
static void visit_pd_made(struct ib_ca_request *req)
{
	struct visit *visit = req->context;

	complete(&visit->pd_made);
}

static int visit_open(struct ib_device *dev, struct visit *visit)
{
	struct ib_ca_request req = { .op = KVERBS_CA_OPEN, .version = KVERBS_CA_VERSION };
	int ret = ib_ca_call(dev, &req);

	visit->handle = req.handle;
	return ret;
}

static int visit_close(struct ib_device *dev, struct visit *visit)
{
	struct ib_ca_request req = { .op = KVERBS_CA_CLOSE, .version = KVERBS_CA_VERSION,
				     .handle = visit->handle };

	return ib_ca_call(dev, &req);
}

/* In any context: what is asked for is there. Ports and tables are not wanted. */
static int visit_look(struct ib_device *dev, struct visit *visit)
{
	struct kverbs_ca_attr attr;
	struct ib_ca_request req = { .op = KVERBS_CA_QUERY_CA, .version = KVERBS_CA_VERSION,
				     .handle = visit->handle,
				     .out = &attr, .out_len = sizeof(attr) };
	ssize_t ret = ib_ca_submit(dev, &req);

	if (ret < 0 && ret != -EOVERFLOW)
		return ret;
	pr_info("%s: %u ports, GUID %016llx, %u bytes to tell all\n", attr.name,
		attr.port_count, be64_to_cpu(attr.node_guid), attr.size);
	return 0;
}

static void visit_ask_for_pd(struct ib_device *dev, struct visit *visit)
{
	struct ib_ca_request *req = &visit->pd;
	ssize_t ret;

	req->op = KVERBS_CA_ALLOC_PD;
	req->version = KVERBS_CA_VERSION;
	req->handle = visit->handle;
	req->done = visit_pd_made;
	req->context = visit;
	ret = ib_ca_submit(dev, req);
	if (ret == -EINPROGRESS)
		return;
	/* Then done() is not called. */
	req->result = ret;
	complete(&visit->pd_made);
}

static int visit_add(struct ib_device *dev)
{
	struct visit *visit = kzalloc(sizeof(*visit), GFP_KERNEL);
	int ret;

	if (!visit)
		return -ENOMEM;
	init_completion(&visit->pd_made);
	ret = visit_open(dev, visit);
	if (!ret)
		ret = visit_look(dev, visit);
	if (ret) {
		if (visit->handle)
			visit_close(dev, visit);
		kfree(visit);
		return ret;
	}
	visit_ask_for_pd(dev, visit);
	ib_set_client_data(dev, &visitor, visit);
	return 0;
}

static void visit_remove(struct ib_device *dev, void *data)
{
	struct visit *visit = data;
	struct ib_ca_request req = { .op = KVERBS_CA_DEALLOC_PD, .version = KVERBS_CA_VERSION };

	/* The answer is what frees the request, not time. */
	wait_for_completion(&visit->pd_made);
	if (!visit->pd.result) {
		req.handle = visit->handle;
		req.object = visit->pd.object;
		if (!ib_ca_call(dev, &req))
			pr_info("%s: had a PD\n", dev_name(&dev->dev));
	}
	WARN_ON(visit_close(dev, visit));
	kfree(visit);
}

static struct ib_client visitor = {
	.name = "ca_kernel",
	.add = visit_add,
	.remove = visit_remove,
};
module_driver(visitor, ib_register_client, ib_unregister_client);
MODULE_DESCRIPTION("Channel-adapter requests of a kernel caller");
MODULE_LICENSE("GPL");
