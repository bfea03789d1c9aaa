// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: features that the software HCA lacks, on a mock device of each thread:
 * virtual functions, modify_port and modify_device, affinity of vectors, MRs with integrity.
 *
 * Locking: only the thread changes its device and the model of it. The core's work items
 * call methods of the device, too, but only to read.
 */
#include <linux/cpumask.h>
#include <linux/if_link.h>
#include <linux/scatterlist.h>
#include <rdma/ib_mad.h>
#include <rdma/mr_pool.h>

#include "fuzz/mock_device.h"

/* A port number that no device has. */
#define X_NO_PORT	99
/* Bytes of each entry of protection information. */
#define X_META		64
/* A RoCE port accepts any capabilities without modify_port. */
#define X_CAP_CM	IB_PORT_CM_SUP
#define X_CAP_OTHER	IB_PORT_SM

static void end_netdevs(void *arg)
{
	x_roce_end(arg);
}

/**
 * x_own_new() - prepare a thread's own device
 * @test: the running case
 * @w: the thread's world; its mock and network devices live as long as the case
 */
void x_own_new(struct kunit *test, struct x_world *w)
{
	struct x_own *own = kvt_zalloc(test, sizeof(*own));

	own->mock = mock_new(test);
	own->ports = 1;
	w->own = own;
	x_roce_new(test, own);
	kvt_defer(test, end_netdevs, own);
}

/**
 * x_own_begin() - clear the model for a new world
 * @w: the world; no objects of the world before it are left
 */
void x_own_begin(struct x_world *w)
{
	struct x_own *own = w->own;
	int i;

	memset(own->handle, 0, sizeof(own->handle));
	memset(own->req, 0, sizeof(own->req));
	memset(&own->file, 0, sizeof(own->file));
	for (i = 0; i < X_CA_REQS; i++)
		init_completion(&own->req[i].a.got);
	init_completion(&own->closing.a.got);
	for (i = 0; i <= MOCK_MAX_PORTS; i++)
		own->bound[i] = -1;
	x_roce_begin(own);
}

static void on_freed(struct ib_device *ibdev)
{
	struct x_own *own = container_of(ibdev, struct x_ibdev, mib.ibdev)->own;

	atomic_inc(&own->freed);
	complete(&own->gone);
}

/* Chooses the kind of the thread's next device by bits of @r: a plain one if @r is 0. */
void x_own_prepare(struct x_world *w, u32 r)
{
	struct x_own *own = w->own;
	struct mock *m = own->mock;
	int i;

	own->eth = r & 1;
	own->rich = r & 2;
	own->frees = r & 4;
	own->asks = own->eth && r & 8;
	own->ports = r & 16 ? 2 : 1;
	own->name = 0;
	atomic_set(&own->freed, 0);
	init_completion(&own->gone);
	m->eth = own->eth;
	m->nports = own->ports;
	own->ops = m->ops;
	if (own->eth)
		mock_eth_methods(&own->ops, own->asks);
	if (own->rich) {
		mock_optional_methods(&own->ops);
		mock_integrity_methods(&own->ops);
	}
	own->ops.dealloc_driver = own->frees ? on_freed : NULL;
	memset(m->vf, 0, sizeof(m->vf));
	memset(own->vf, 0, sizeof(own->vf));
	/* After a failure, objects of the last device may be left: do not count these. */
	atomic_set(&m->wrong_ca, 0);
	for (i = 0; i < MOCK_OBJ_NR; i++)
		atomic_set(&m->live[i], 0);
	for (i = 0; i <= MOCK_MAX_PORTS; i++) {
		own->caps[i] = 0;
		WRITE_ONCE(m->port[i].valid, 0);
		m->port[i].attr.port_cap_flags = 0;
	}
	mock_log_reset(m);
}

/* Number of objects that the driver has for the thread, without those of open CAs. */
int x_own_objects(const struct x_own *own)
{
	int i, n = !!own->pd;

	for (i = 0; i < X_PIS; i++)
		n += !!own->pi[i].mr;
	return n;
}

/* Checks that the driver has as many objects as the model, unless CA requests are pending. */
enum x_verdict x_own_idle(struct x_world *w)
{
	struct x_own *own = w->own;
	bool known = true;
	int n = x_own_objects(own) + x_ca_objects(own, &known);

	if (!own->dev || !known)
		return X_DONE;
	return x_want(w, "objects that the driver has", n, mock_live(own->mock));
}

/* --- MRs with integrity --- */

static enum x_verdict need_pd(struct x_world *w)
{
	struct x_own *own = w->own;
	struct ib_pd *pd;

	if (own->pd)
		return X_DONE;
	pd = ib_alloc_pd(own->dev, 0);
	if (IS_ERR(pd))
		return x_want(w, "a PD of the thread's device", 0, PTR_ERR(pd));
	own->pd = pd;
	return X_DONE;
}

static enum x_verdict check_pd(struct x_world *w)
{
	int used = x_own_objects(w->own) - 1;

	if (x_want(w, "regions with integrity that use a PD", used,
		   atomic_read(&w->own->pd->usecnt)))
		return X_FAILED;
	return x_own_idle(w);
}

static enum x_verdict pi_alloc(struct x_world *w, struct x_pi *pi, u32 r)
{
	u32 data = r % 8 ? 1 + (r >> 3) % X_PAGES : MOCK_MAX_PAGES + 1;
	u32 meta = r >> 5 & 7 ? 1 + (r >> 8 & 1) : 0;
	struct ib_mr *mr;
	int want = 0;

	if (!w->own->rich)
		want = -EOPNOTSUPP;
	else if (!meta || data > MOCK_MAX_PAGES)
		want = -EINVAL;
	mr = ib_alloc_mr_integrity(w->own->pd, data, meta);
	if (IS_ERR(mr))
		return x_want(w, "a region with integrity", want, PTR_ERR(mr));
	*pi = (struct x_pi){ .mr = mr, .data = data, .meta = meta };
	if (!mr->sig_attrs)
		return x_fail(w, "a region with integrity has no attributes");
	if (mr->type != IB_MR_TYPE_INTEGRITY || mr->pd != w->own->pd)
		return x_fail(w, "a region with integrity is of another kind");
	return x_want(w, "a region with integrity", want, 0);
}

static void fill_list(const struct x_world *w, struct scatterlist *sg, int n, u32 at, u32 bytes)
{
	int i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++)
		sg_set_buf(&sg[i], w->buf[0] + at + i * bytes, bytes);
}

static enum x_verdict pi_mapped(struct x_world *w, const struct ib_mr *mr, u64 iova, u64 length,
				u32 page_size)
{
	if (mr->page_size != page_size)
		return x_want(w, "page size of a mapping", page_size, mr->page_size);
	if (mr->iova != iova)
		return x_fail(w, "a mapping begins elsewhere");
	return x_want(w, "length of data and protection", length, mr->length);
}

/* Maps a list of data pages and a list of pieces of protection in the first of the pages. */
static int map_pi(struct x_world *w, struct ib_mr *mr, int data, int meta, u32 page_size, u64 *iova)
{
	struct scatterlist data_sg[X_PAGES], meta_sg[3];
	struct ib_device *ibdev = w->own->dev;
	int ret = -ENOMEM;

	fill_list(w, data_sg, data, X_PAGES_AT, PAGE_SIZE);
	fill_list(w, meta_sg, meta, X_PAGES_AT, X_META);
	if (ib_dma_map_sg(ibdev, data_sg, data, DMA_TO_DEVICE) != data)
		return ret;
	if (ib_dma_map_sg(ibdev, meta_sg, meta, DMA_TO_DEVICE) == meta) {
		*iova = sg_dma_address(data_sg);
		ret = ib_map_mr_sg_pi(mr, data_sg, data, NULL, meta_sg, meta, NULL, page_size);
		ib_dma_unmap_sg(ibdev, meta_sg, meta, DMA_TO_DEVICE);
	}
	ib_dma_unmap_sg(ibdev, data_sg, data, DMA_TO_DEVICE);
	return ret;
}

static enum x_verdict pi_map(struct x_world *w, struct x_pi *pi, u32 r)
{
	u32 page_size = r & 1 ? PAGE_SIZE : 512;
	int data = 1 + (r >> 1) % X_PAGES, meta = 1 + (r >> 3) % 3, want = 0, ret;
	u64 iova = 0;

	if (data > pi->data || meta > pi->meta)
		want = -EINVAL;
	ret = map_pi(w, pi->mr, data, meta, page_size, &iova);
	if (ret || want)
		return x_want(w, "mapping data and protection", want, ret);
	return pi_mapped(w, pi->mr, iova, data * PAGE_SIZE + meta * X_META, page_size);
}

/* An MR of another type cannot map protection information. */
static enum x_verdict map_plain(struct x_world *w)
{
	int want = w->own->rich ? -EINVAL : -EOPNOTSUPP, ret;
	struct ib_mr *mr = ib_alloc_mr(w->own->pd, IB_MR_TYPE_MEM_REG, 1);
	u64 iova;

	if (IS_ERR(mr))
		return x_want(w, "a region of the thread's device", 0, PTR_ERR(mr));
	ret = map_pi(w, mr, 1, 1, PAGE_SIZE, &iova);
	x_want(w, "protection for a region without", want, ret);
	x_want(w, "freeing a region of the thread's device", 0, ib_dereg_mr(mr));
	return *w->why ? X_FAILED : X_DONE;
}

static enum x_verdict pi_check(struct x_world *w, struct x_pi *pi, u32 r)
{
	u32 mask = r & 1 ? IB_MR_CHECK_SIG_STATUS : 0;
	struct ib_mr_status status = { .fail_status = 99 };
	int i, ret;

	if (r & 2) {
		for (i = 0; i < X_PIS; i++)
			w->own->pi[i].bad = &w->own->pi[i] == pi;
		WRITE_ONCE(w->own->mock->bad_sig, pi->mr->rkey);
	}
	ret = ib_check_mr_status(pi->mr, mask, &status);
	if (ret)
		return x_want(w, "asking for the result of checks", 0, ret);
	if (pi->bad && status.sig_err.key != pi->mr->rkey)
		return x_fail(w, "checks of another region");
	return x_want(w, "checks that failed", pi->bad ? mask : 0, status.fail_status);
}

static enum x_verdict pi_free(struct x_world *w, struct x_pi *pi)
{
	struct ib_mr *mr = pi->mr;

	pi->mr = NULL;
	return x_want(w, "freeing a region with integrity", 0, ib_dereg_mr(mr));
}

enum x_verdict x_pi(struct x_world *w, const struct x_op *op)
{
	struct x_pi *pi = &w->own->pi[op->a];
	enum x_verdict verdict;

	if (!w->own->dev)
		return X_SKIPPED;
	if (need_pd(w))
		return X_FAILED;
	if (!pi->mr)
		verdict = op->b % 4 ? pi_alloc(w, pi, op->r) : map_plain(w);
	else if (op->b < 4)
		verdict = pi_map(w, pi, op->r);
	else if (op->b < 7)
		verdict = pi_check(w, pi, op->r);
	else
		verdict = pi_free(w, pi);
	return verdict ?: check_pd(w);
}

/* --- pools of MRs with integrity --- */

static enum x_verdict fill_pool(struct x_world *w, struct ib_qp *qp, u32 r)
{
	int nr = 1 + r % X_POOL, meta = r >> 2 & 7 ? 1 : 0, want = 0, ret;
	int before = atomic_read(&w->own->pd->usecnt);
	enum x_verdict verdict;

	if (!w->own->rich)
		want = -EOPNOTSUPP;
	else if (!meta)
		want = -EINVAL;
	ret = ib_mr_pool_init(qp, &qp->sig_mrs, nr, IB_MR_TYPE_INTEGRITY, X_PAGES, meta);
	verdict = x_want(w, "filling a pool with integrity", want, ret);
	if (!verdict)
		verdict = x_want(w, "regions of a pool that use the PD", ret ? 0 : nr,
				 atomic_read(&w->own->pd->usecnt) - before);
	if (!verdict)
		verdict = x_use_pool(w, qp, &qp->sig_mrs, ret ? 0 : nr);
	ib_mr_pool_destroy(qp, &qp->sig_mrs);
	if (!list_empty(&qp->sig_mrs))
		return x_fail(w, "a pool with integrity is not empty");
	return verdict;
}

enum x_verdict x_pi_pool(struct x_world *w, const struct x_op *op)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	if (!w->own->dev)
		return X_SKIPPED;
	if (need_pd(w))
		return X_FAILED;
	cq = ib_alloc_cq(w->own->dev, NULL, 4, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq))
		return x_want(w, "a CQ of the thread's device", 0, PTR_ERR(cq));
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(w->own->pd, &init);
	if (!IS_ERR(qp)) {
		fill_pool(w, qp, op->r);
		x_want(w, "freeing a QP of the thread's device", 0, ib_destroy_qp(qp));
	} else {
		x_want(w, "a QP of the thread's device", 0, PTR_ERR(qp));
	}
	ib_free_cq(cq);
	return *w->why ? X_FAILED : check_pd(w);
}

/* --- virtual functions --- */

static enum x_verdict vf_config(struct x_world *w, int vf, u32 port, int want)
{
	struct ifla_vf_info info = { .linkstate = 99 };
	int ret = ib_get_vf_config(w->own->dev, vf, port, &info);

	if (ret || want)
		return x_want(w, "configuration of a function", want, ret);
	if (info.vf != vf)
		return x_want(w, "number of a function", vf, info.vf);
	return x_want(w, "policy of a function", w->own->vf[port][vf].link, info.linkstate);
}

static enum x_verdict vf_stats(struct x_world *w, int vf, u32 port, int want)
{
	struct ifla_vf_stats stats = {};
	int ret = ib_get_vf_stats(w->own->dev, vf, port, &stats);

	if (ret || want)
		return x_want(w, "counters of a function", want, ret);
	return x_want(w, "a counter of a function", w->own->vf[port][vf].sets, stats.rx_packets);
}

static enum x_verdict vf_guid(struct x_world *w, int vf, u32 port, int want)
{
	struct ifla_vf_guid node = {}, of_port = {};
	int ret = ib_get_vf_guid(w->own->dev, vf, port, &node, &of_port);

	if (ret || want)
		return x_want(w, "GUIDs of a function", want, ret);
	if (node.guid != w->own->vf[port][vf].guid[0])
		return x_want(w, "GUID of a function", w->own->vf[port][vf].guid[0], node.guid);
	return x_want(w, "GUID of a function's port", w->own->vf[port][vf].guid[1], of_port.guid);
}

static enum x_verdict vf_set_guid(struct x_world *w, int vf, u32 port, int want, u32 r)
{
	int ret = ib_set_vf_guid(w->own->dev, vf, port, r,
				 r & 1 ? IFLA_VF_IB_PORT_GUID : IFLA_VF_IB_NODE_GUID);

	if (!ret && !want) {
		w->own->vf[port][vf].guid[r & 1] = r;
		w->own->vf[port][vf].sets++;
	}
	return x_want(w, "setting a GUID of a function", want, ret);
}

static enum x_verdict vf_set_link(struct x_world *w, int vf, u32 port, int want, u32 r)
{
	int state = r % 3, ret = ib_set_vf_link_state(w->own->dev, vf, port, state);

	if (!ret && !want) {
		w->own->vf[port][vf].link = state;
		w->own->vf[port][vf].sets++;
	}
	return x_want(w, "setting the policy of a function", want, ret);
}

/* The highest value of op->a, MOCK_VFS, is no virtual function. */
enum x_verdict x_vf(struct x_world *w, const struct x_op *op)
{
	int vf = op->a, want = vf < MOCK_VFS ? 0 : -EINVAL;
	u32 port = 1 + op->c % 2 % w->own->ports;

	if (!w->own->dev)
		return X_SKIPPED;
	if (!w->own->rich)
		want = -EOPNOTSUPP;
	switch (op->b) {
	case 0:
		return vf_config(w, vf, port, want);
	case 1:
		return vf_stats(w, vf, port, want);
	case 2:
	case 3:
		return vf_guid(w, vf, port, want);
	case 4:
	case 5:
		return vf_set_guid(w, vf, port, want, op->r);
	default:
		return vf_set_link(w, vf, port, want, op->r);
	}
}

/* --- modify_port, modify_device, firmware version and vectors --- */

/* Queries the CA as its users do. It must show a change at once, as no event reports it. */
static enum x_verdict ask_ca(struct x_world *w, u32 port, void *out, size_t len)
{
	struct ib_ca_request req = { .op = KVERBS_CA_OPEN, .version = KVERBS_CA_VERSION };
	struct ib_ca_request query = {
		.op = port ? KVERBS_CA_QUERY_PORT : KVERBS_CA_QUERY_CA,
		.version = KVERBS_CA_VERSION,
		.port = port,
		.out = out,
		.out_len = len,
	};
	long ret = ib_ca_call(w->own->dev, &req);

	if (ret)
		return x_want(w, "opening the thread's CA", 0, ret);
	query.handle = req.handle;
	ret = ib_ca_call(w->own->dev, &query);
	/* @out has no room for the tables that follow the attributes. */
	if (ret != -EOVERFLOW)
		x_want(w, "asking the thread's CA", -EOVERFLOW, ret);
	req.op = KVERBS_CA_CLOSE;
	x_want(w, "closing the thread's CA", 0, ib_ca_call(w->own->dev, &req));
	return *w->why ? X_FAILED : X_DONE;
}

static enum x_verdict check_caps(struct x_world *w, u32 port)
{
	struct kverbs_ca_port_attr told = {};
	struct ib_port_attr attr;
	int ret = ib_query_port(w->own->dev, port, &attr);

	if (ret)
		return x_want(w, "querying the thread's port", 0, ret);
	if (attr.port_cap_flags != w->own->caps[port])
		return x_want(w, "capabilities of a port", w->own->caps[port], attr.port_cap_flags);
	if (ask_ca(w, port, &told, sizeof(told)))
		return X_FAILED;
	return x_want(w, "capabilities that the CA tells", w->own->caps[port], told.cap_flags);
}

static enum x_verdict modify_port(struct x_world *w, u32 port, u32 r)
{
	static const u32 sets[4] = { X_CAP_CM, X_CAP_OTHER, X_CAP_CM | X_CAP_OTHER, 0 };
	struct ib_port_modify change = {
		.set_port_cap_mask = sets[r & 3],
		.clr_port_cap_mask = sets[r >> 2 & 3] & ~sets[r & 3],
	};
	bool bad = !(r >> 4 & 7);
	int want = -EOPNOTSUPP, ret;

	if (bad)
		want = -EINVAL;
	else if (w->own->rich || w->own->eth)
		want = 0;
	ret = ib_modify_port(w->own->dev, bad ? X_NO_PORT : port, 0, &change);
	if (ret || want || !w->own->rich)
		return x_want(w, "changing the thread's port", want, ret);
	w->own->caps[port] |= change.set_port_cap_mask;
	w->own->caps[port] &= ~change.clr_port_cap_mask;
	return check_caps(w, port);
}

static enum x_verdict modify_device(struct x_world *w, u32 r)
{
	int want = !w->own->rich || !(r & 7) ? -EOPNOTSUPP : 0, ret;
	struct kverbs_ca_attr told = {};
	struct ib_device_modify change = {};

	snprintf(change.node_desc, sizeof(change.node_desc), "node %u", r >> 3);
	ret = ib_modify_device(w->own->dev, r & 7 ? IB_DEVICE_MODIFY_NODE_DESC :
						    IB_DEVICE_MODIFY_SYS_IMAGE_GUID, &change);
	if (ret || want)
		return x_want(w, "changing the thread's device", want, ret);
	if (ask_ca(w, 0, &told, sizeof(told)))
		return X_FAILED;
	return x_want(w, "the text that the CA tells", 0, strcmp(told.node_desc, change.node_desc));
}

static enum x_verdict check_fw(struct x_world *w, u32 r)
{
	char text[IB_FW_VERSION_NAME_MAX], want[IB_FW_VERSION_NAME_MAX] = "";

	WRITE_ONCE(w->own->mock->fw, r);
	if (w->own->rich)
		snprintf(want, sizeof(want), "mock %u", r);
	memset(text, 'x', sizeof(text));
	ib_get_device_fw_str(w->own->dev, text);
	return x_want(w, "version of the firmware", 0, strncmp(text, want, sizeof(want)));
}

/* Only vector 0 has an affinity, and only if the device is rich. */
static enum x_verdict check_vector(struct x_world *w, int vector)
{
	const struct cpumask *cpus = ib_get_vector_affinity(w->own->dev, vector);

	return x_want(w, "CPUs of a vector", true,
		      cpus == (w->own->rich && !vector ? cpumask_of(0) : NULL));
}

enum x_verdict x_modify(struct x_world *w, const struct x_op *op)
{
	if (!w->own->dev)
		return X_SKIPPED;
	switch (op->b % 5) {
	case 0:
	case 1:
		return modify_port(w, 1 + op->c % 2 % w->own->ports, op->r);
	case 2:
		return modify_device(w, op->r);
	case 3:
		return check_vector(w, op->c % 3 - 1);
	default:
		return check_fw(w, op->r);
	}
}

/**
 * x_own_leave() - free the thread's objects before its device goes
 * @w: the world
 * @some: leave some channel adapters open and requests pending
 */
void x_own_leave(struct x_world *w, bool some)
{
	struct x_own *own = w->own;
	int i;

	x_roce_leave(w);
	x_ca_leave(w, some);
	for (i = 0; i < X_PIS; i++) {
		if (own->pi[i].mr)
			pi_free(w, &own->pi[i]);
	}
	if (own->pd)
		x_want(w, "freeing a PD of the thread's device", 0,
		       ib_dealloc_pd_user(own->pd, NULL));
	own->pd = NULL;
	memset(own->pi, 0, sizeof(own->pi));
}
