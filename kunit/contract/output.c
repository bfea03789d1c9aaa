// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker, IB_RULE_OUTPUT: driver methods that report success without setting
 * their output are reported. Methods that set it, and methods that fail, are not.
 */
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>

#include "contract/rig.h"

/* The device's complete methods, which the incomplete ones below call. */
static struct ib_device_ops whole;

/* Methods that succeed, and make nothing, or set nothing. */
#define MAKES_NONE(type, name, ...) static struct type *name(__VA_ARGS__) { return NULL; }
#define SETS_NONE(name, ...) static int name(__VA_ARGS__) { return 0; }

MAKES_NONE(ib_mr, no_dma_mr, struct ib_pd *pd, int access)
MAKES_NONE(ib_mr, no_mr, struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
MAKES_NONE(ib_mr, no_integrity_mr, struct ib_pd *pd, u32 max_data, u32 max_meta)
MAKES_NONE(ib_mr, no_user_mr, struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
	   int access, struct ib_udata *udata)
MAKES_NONE(ib_mr, no_dmabuf_mr, struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr,
	   int fd, int access, struct uverbs_attr_bundle *attrs)
MAKES_NONE(ib_mr, no_umem_mr, struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr,
	   int access)
MAKES_NONE(ib_fmr, no_fmr, struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
SETS_NONE(query_no_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
	  struct ib_qp_init_attr *init)
SETS_NONE(query_no_srq, struct ib_srq *srq, struct ib_srq_attr *attr)
SETS_NONE(query_no_ah, struct ib_ah *ah, struct rdma_ah_attr *attr)
SETS_NONE(query_no_pkey, struct ib_device *dev, u32 port, u16 index, u16 *pkey)
SETS_NONE(query_no_gid, struct ib_device *dev, u32 port, int index, union ib_gid *gid)
SETS_NONE(cq_not_resized, struct ib_cq *cq, int cqe, struct ib_udata *udata)

static struct ib_mr *without_key(struct ib_mr *mr)
{
	if (!IS_ERR(mr)) {
		mr->lkey = 0;
		mr->rkey = 0;
	}
	return mr;
}

static struct ib_mr *dma_mr_without_key(struct ib_pd *pd, int access)
{
	return without_key(whole.get_dma_mr(pd, access));
}

static struct ib_mr *mr_without_key(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	return without_key(whole.alloc_mr(pd, type, max_num_sg));
}

/* Methods for integrity, set by device_up(): by default the mock has none. */
static struct ib_mr *integrity_mr(struct ib_pd *pd, u32 max_data, u32 max_meta)
{
	return whole.alloc_mr(pd, IB_MR_TYPE_INTEGRITY, max_data);
}

static int map_nothing(struct ib_mr *mr, struct scatterlist *data, int nr_data,
		       unsigned int *data_offset, struct scatterlist *meta, int nr_meta,
		       unsigned int *meta_offset)
{
	return -EIO;
}

static struct ib_mr *user_mr_without_key(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
					 int access, struct ib_udata *udata)
{
	return without_key(whole.reg_user_mr(pd, start, length, virt_addr, access, udata));
}

static struct ib_mr *umem_mr_without_key(struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr,
					 int access)
{
	return without_key(whole.reg_umem_mr(pd, umem, virt_addr, access));
}

static int cq_without_size(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	int ret = whole.create_cq(cq, attr, attrs);

	cq->cqe = 0;
	return ret;
}

static int qp_without_number(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	int ret = whole.create_qp(qp, init, udata);

	qp->qp_num = 0;
	return ret;
}

static int srq_without_size(struct ib_srq *srq, struct ib_srq_init_attr *init,
			    struct ib_udata *udata)
{
	int ret = whole.create_srq(srq, init, udata);

	init->attr.max_wr = 0;
	return ret;
}

static int mw_without_key(struct ib_mw *mw, struct ib_udata *udata)
{
	int ret = whole.alloc_mw(mw, udata);

	mw->rkey = 0;
	return ret;
}

static int port_without_mtu(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	int ret = whole.query_port(dev, port, attr);

	attr->max_mtu = 0;
	return ret;
}

static int too_many_completions(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	return nr + 1;
}

static int completion_without_qp(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	return 1;
}

static struct ib_mr *integrity_mr_without_key(struct ib_pd *pd, u32 max_data, u32 max_meta)
{
	return without_key(integrity_mr(pd, max_data, max_meta));
}

static int map_without_keys(struct ib_fmr *fmr, u64 *pages, int nr, u64 iova)
{
	fmr->lkey = 0;
	fmr->rkey = 0;
	return 0;
}

/* Restrack ID of the object that the report is about. */
static u32 asked;

/*
 * Callers of the methods. Each creates, or queries, an object with @pd or @cq, and frees what
 * it created. They return 0 or a negative errno.
 */

static noinline int make_pd(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_pd *more = CONTRACT_CALL(ib_alloc_pd(pd->device, IB_PD_UNSAFE_GLOBAL_RKEY));

	if (IS_ERR(more))
		return PTR_ERR(more);
	ib_dealloc_pd(more);
	return 0;
}

static noinline int make_mr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mr *mr = CONTRACT_CALL(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1));

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

/* The methods for integrity are set by device_up(). */
static noinline int make_integrity_mr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mr *mr = CONTRACT_CALL(ib_alloc_mr_integrity(pd, 1, 1));

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static noinline int make_user_mr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mr *mr = CONTRACT_CALL(ib_reg_user_mr(pd, kvt_map(test, PAGE_SIZE), PAGE_SIZE, 0,
							IB_ACCESS_LOCAL_WRITE));

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

/* @mem.fd may be any file: the mock does not look at it. */
static noinline int make_dmabuf_mr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mem mem = { .path = IB_MEM_DMABUF, .length = PAGE_SIZE, .has_fd = true };
	struct ib_mr *mr = CONTRACT_CALL(ib_reg_mem(pd, &mem, 0, IB_ACCESS_LOCAL_WRITE));

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static noinline int make_umem_mr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mem mem = {
		.path = IB_MEM_HOST, .start = kvt_map(test, PAGE_SIZE), .length = PAGE_SIZE,
	};
	struct ib_mr *mr = CONTRACT_CALL(ib_reg_mem(pd, &mem, mem.start, IB_ACCESS_LOCAL_WRITE));

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static noinline int make_fmr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_fmr *fmr = CONTRACT_CALL(ib_alloc_fmr(pd, 0, &attr));

	return IS_ERR(fmr) ? PTR_ERR(fmr) : ib_dealloc_fmr(fmr);
}

static noinline int make_cq(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct ib_cq *more = CONTRACT_CALL(ib_create_cq(pd->device, NULL, NULL, NULL, &attr));

	return IS_ERR(more) ? PTR_ERR(more) : ib_destroy_cq_user(more, NULL);
}

static noinline int make_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	kvt_qp_init(&init, cq, cq);
	qp = CONTRACT_CALL(ib_create_qp(pd, &init));
	return IS_ERR(qp) ? PTR_ERR(qp) : ib_destroy_qp(qp);
}

static noinline int make_srq(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ib_srq *srq = CONTRACT_CALL(ib_create_srq(pd, &init));

	return IS_ERR(srq) ? PTR_ERR(srq) : ib_destroy_srq_user(srq, NULL);
}

static noinline int make_mw(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mw *mw = CONTRACT_CALL(ib_alloc_mw(pd, IB_MW_TYPE_2));

	return IS_ERR(mw) ? PTR_ERR(mw) : ib_dealloc_mw(mw);
}

static noinline int ask_port(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_port_attr attr;

	return CONTRACT_CALL(ib_query_port(pd->device, 1, &attr));
}

static noinline int poll(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_wc wc[2];
	int ret = CONTRACT_CALL(ib_poll_cq(cq, 1, wc));

	asked = cq->res.id;
	return min(ret, 0);
}

/* If the driver sets no state, the caller's attributes stay as they were. */
static noinline int ask_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct ib_qp_init_attr init;
	struct ib_qp *qp;
	int ret;

	kvt_qp_init(&init, cq, cq);
	qp = ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	asked = qp->res.id;
	ret = CONTRACT_CALL(ib_query_qp(qp, &attr, IB_QP_STATE, &init));
	if (!ret)
		KUNIT_EXPECT_EQ(test, IB_QPS_RESET, attr.qp_state);
	ib_destroy_qp(qp);
	return ret;
}

static noinline int ask_srq(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ib_srq *srq = ib_create_srq(pd, &init);
	struct ib_srq_attr attr;
	int ret;

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	asked = srq->res.id;
	ret = CONTRACT_CALL(ib_query_srq(srq, &attr));
	ib_destroy_srq_user(srq, NULL);
	return ret;
}

static noinline int ask_ah(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1 };
	struct ib_ah *ah = rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	int ret;

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	/* AHs have no restrack ID: the report names the PD. */
	asked = pd->res.id;
	ret = CONTRACT_CALL(rdma_query_ah(ah, &attr));
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return ret;
}

/* If the driver sets no P_Key, the caller gets the invalid P_Key 0. */
static noinline int ask_pkey(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	u16 pkey = 1;
	int ret = CONTRACT_CALL(ib_query_pkey(pd->device, 1, 0, &pkey));
	bool none = pd->device->ops.query_pkey == query_no_pkey;

	if (!ret)
		KUNIT_EXPECT_EQ(test, none, !pkey);
	return ret;
}

static noinline int resize(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	asked = cq->res.id;
	return CONTRACT_CALL(ib_resize_cq(cq, cq->cqe + 1));
}

static noinline int map_fmr(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_fmr *fmr = ib_alloc_fmr(pd, 0, &attr);
	u64 page = 0;
	int ret;

	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	asked = fmr->res.id;
	ret = CONTRACT_CALL(ib_map_phys_fmr(fmr, &page, 1, 0));
	ib_dealloc_fmr(fmr);
	return ret;
}

/* A method with output. */
struct output {
	struct ib_device_ops broken;	/* the method, which succeeds without output */
	/* Calls the method through the core. */
	int (*call)(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq);
	const char *what;	/* how the report begins */
	/* Kind of the object in the report; NULL if the report names none. */
	const char *object;
	/* Return value of @call with the broken method; with a correct one it returns 0. */
	int ret;
	bool by_umem;		/* the device has reg_umem_mr() */
};

/* The report begins with the name of the method. */
#define OUTPUT(method, none, call, text, ...) \
	{ { .method = none }, call, #method " " text, ##__VA_ARGS__ }

static const struct output outputs[] = {
	OUTPUT(get_dma_mr, no_dma_mr, make_pd, "returned NULL", NULL, -EINVAL),
	OUTPUT(get_dma_mr, dma_mr_without_key, make_pd, "returned no key"),
	OUTPUT(alloc_mr, no_mr, make_mr, "returned NULL", NULL, -EINVAL),
	OUTPUT(alloc_mr, mr_without_key, make_mr, "returned no key"),
	OUTPUT(alloc_mr_integrity, no_integrity_mr, make_integrity_mr,
	       "returned NULL", NULL, -EINVAL),
	OUTPUT(reg_user_mr, no_user_mr, make_user_mr, "returned NULL", NULL, -EINVAL),
	OUTPUT(reg_user_mr, user_mr_without_key, make_user_mr, "returned no key"),
	OUTPUT(reg_user_mr_dmabuf, no_dmabuf_mr, make_dmabuf_mr, "returned NULL", NULL, -EINVAL),
	OUTPUT(reg_umem_mr, no_umem_mr, make_umem_mr, "returned NULL", NULL, -EINVAL, true),
	OUTPUT(reg_umem_mr, umem_mr_without_key, make_umem_mr, "returned no key", NULL, 0, true),
	OUTPUT(alloc_fmr, no_fmr, make_fmr, "returned NULL", NULL, -EINVAL),
	OUTPUT(create_cq, cq_without_size, make_cq, "returned no size"),
	OUTPUT(create_qp, qp_without_number, make_qp, "returned no number"),
	OUTPUT(create_srq, srq_without_size, make_srq, "returned no size"),
	OUTPUT(alloc_mw, mw_without_key, make_mw, "returned no key"),
	OUTPUT(query_port, port_without_mtu, ask_port, "returned no MTU"),
	OUTPUT(alloc_mr_integrity, integrity_mr_without_key, make_integrity_mr,
	       "returned no key"),
	OUTPUT(query_qp, query_no_qp, ask_qp, "returned no state", "qp"),
	OUTPUT(query_srq, query_no_srq, ask_srq, "returned no size", "srq"),
	OUTPUT(query_ah, query_no_ah, ask_ah, "returned no port", "pd"),
	OUTPUT(query_pkey, query_no_pkey, ask_pkey, "returned no P_Key"),
	OUTPUT(resize_cq, cq_not_resized, resize, "returned fewer", "cq"),
	OUTPUT(map_phys_fmr, map_without_keys, map_fmr, "returned no keys", "fmr"),
	OUTPUT(poll_cq, too_many_completions, poll, "returned more", "cq"),
	OUTPUT(poll_cq, completion_without_qp, poll, "named no QP", "cq"),
};

KUNIT_ARRAY_PARAM_DESC(outputs, outputs, what);

/* Replaces methods of a device whose others are complete. */
static void break_device(struct mock *m, const struct ib_device_ops *broken)
{
	m->ibdev->ops = *broken;
	ib_set_device_ops(m->ibdev, &whole);
}

/* Registers a device with complete methods; the case may break one afterwards. */
static struct mock *device_up(struct kunit *test, bool by_umem)
{
	struct mock *m = by_umem ? mock_up_umem(test, CONTRACT_DEVICE) :
				   mock_up(test, CONTRACT_DEVICE);

	m->ibdev->ops.alloc_mr_integrity = integrity_mr;
	m->ibdev->ops.map_mr_sg_pi = map_nothing;
	whole = m->ibdev->ops;
	return m;
}

static void missing_output_is_reported(struct kunit *test)
{
	const struct output *output = test->param_value;
	struct mock *m = device_up(test, output->by_umem);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_DIRECT);

	break_device(m, &output->broken);
	/* As a QP would: completions of a CQ without users are not checked for their QP. */
	atomic_inc(&cq->usecnt);
	KUNIT_EXPECT_EQ(test, output->ret, output->call(test, pd, cq));
	atomic_dec(&cq->usecnt);
	m->ibdev->ops = whole;
	CONTRACT_EXPECT(test, OUTPUT, DRIVER, .what = output->what, .object = output->object,
			.id = asked, .site = output->call);
}

static void output_that_is_there_is_not(struct kunit *test)
{
	const struct output *output = test->param_value;
	struct mock *m = device_up(test, output->by_umem);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_DIRECT);

	KUNIT_EXPECT_EQ(test, 0, output->call(test, pd, cq));
	contract_expect_none(test);
}

/* A method that fails need not set its output. */
static void failed_method_is_not(struct kunit *test)
{
	struct mock *m = device_up(test, false);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_DIRECT);
	unsigned int i;

	mock_fail(m, MOCK_get_dma_mr, -ENOMEM);
	mock_fail(m, MOCK_alloc_mr, -ENOMEM);
	mock_fail(m, MOCK_reg_user_mr, -ENOMEM);
	mock_fail(m, MOCK_reg_user_mr_dmabuf, -ENOMEM);
	mock_fail(m, MOCK_alloc_fmr, -ENOMEM);
	mock_fail(m, MOCK_create_cq, -ENOMEM);
	mock_fail(m, MOCK_create_qp, -ENOMEM);
	mock_fail(m, MOCK_create_srq, -ENOMEM);
	mock_fail(m, MOCK_alloc_mw, -ENOMEM);
	mock_fail(m, MOCK_query_port, -EIO);
	mock_fail(m, MOCK_query_pkey, -EIO);
	mock_fail(m, MOCK_resize_cq, -ENOMEM);
	mock_fail(m, MOCK_create_ah, -ENOMEM);
	mock_fail(m, MOCK_poll_cq, -EIO);
	for (i = 0; i < ARRAY_SIZE(outputs); i++)
		KUNIT_EXPECT_GT(test, 0, outputs[i].call(test, pd, cq));
	mock_fail_none(m);
	contract_expect_none(test);
}

static void failed_reg_umem_mr_is_not(struct kunit *test)
{
	struct mock *m = device_up(test, true);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);

	mock_fail(m, MOCK_reg_umem_mr, -ENOMEM);
	KUNIT_EXPECT_EQ(test, -ENOMEM, make_umem_mr(test, pd, NULL));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_reg_umem_mr));
	mock_fail_none(m);
	contract_expect_none(test);
}

/* Methods that are called when the device is registered */

static void no_limits(struct ib_device_attr *attr)
{
	attr->max_cqe = 0;
}

static int no_protocol(struct ib_device *dev, u32 port, struct ib_port_immutable *immutable)
{
	int ret = whole.get_port_immutable(dev, port, immutable);

	immutable->core_cap_flags = 0;
	return ret;
}

static noinline int register_here(struct mock *m)
{
	int ret = CONTRACT_CALL(ib_register_device(m->ibdev, CONTRACT_DEVICE, NULL));

	m->registered = !ret;
	return ret;
}

/* A method that is called when the device is registered. */
struct early {
	const char *what;	/* how the report begins: with the name of the method */
	struct ib_device_ops broken;	/* one that succeeds without output */
	void (*fill)(struct ib_device_attr *attr);	/* the same, for query_device */
};

static const struct early earlies[] = {
	{ "query_device returned no limits", .fill = no_limits },
	{ "get_port_immutable returned no protocol",
	  { .get_port_immutable = no_protocol } },
	{ "query_gid returned no GID", { .query_gid = query_no_gid } },
	{ "query_pkey returned no P_Key", { .query_pkey = query_no_pkey } },
};

KUNIT_ARRAY_PARAM_DESC(earlies, earlies, what);

/* One port with one GID and one P_Key, so that each of the methods is called once. */
static struct mock *small_device(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->nports = 1;
	m->port[1].attr.gid_tbl_len = 1;
	m->port[1].attr.pkey_tbl_len = 1;
	whole = m->ops;
	return m;
}

static void registration_without_output_is_reported(struct kunit *test)
{
	const struct early *early = test->param_value;
	struct mock *m = small_device(test);
	union ib_gid gid;
	u16 pkey = 1;

	m->fill = early->fill;
	mock_alloc(test, m);
	break_device(m, &early->broken);
	KUNIT_EXPECT_EQ(test, 0, register_here(m));
	CONTRACT_EXPECT(test, OUTPUT, DRIVER, .what = early->what, .site = register_here);
	/* A GID that was not set is not in the table; a P_Key that was not set reads as 0. */
	if (early->broken.query_gid)
		KUNIT_EXPECT_NE(test, 0, rdma_query_gid(m->ibdev, 1, 0, &gid));
	KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, 0, &pkey));
	KUNIT_EXPECT_EQ(test, !!early->broken.query_pkey, !pkey);
}

static void registration_with_output_is_not(struct kunit *test)
{
	struct mock *m = small_device(test);

	mock_alloc(test, m);
	KUNIT_EXPECT_EQ(test, 0, register_here(m));
	contract_expect_none(test);
}

/* Invalid and limited-member P_Keys are table entries like any other. */
static void table_may_have_any_pkey(struct kunit *test)
{
	static const u16 values[] = { 0x8000, 0x7fff, 0 };
	struct mock *m = small_device(test);
	u16 pkey = 1;
	int i;

	m->port[1].attr.pkey_tbl_len = ARRAY_SIZE(values);
	memcpy(m->port[1].pkeys, values, sizeof(values));
	mock_alloc(test, m);
	KUNIT_EXPECT_EQ(test, 0, register_here(m));
	contract_expect_none(test);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, i, &pkey));
		KUNIT_EXPECT_EQ(test, values[i], pkey);
	}
}

/* Mainline's efa has such a device. */
static void device_of_no_transport_needs_no_protocol(struct kunit *test)
{
	struct mock *m = small_device(test);

	m->ops.get_port_immutable = no_protocol;
	mock_alloc(test, m);
	m->ibdev->node_type = RDMA_NODE_UNSPECIFIED;
	KUNIT_EXPECT_EQ(test, 0, register_here(m));
	contract_expect_none(test);
}

static DECLARE_COMPLETION(asked_again);

static int query_no_pkey_again(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	complete(&asked_again);
	return 0;
}

/* When the driver reports a P_Key change, the core reads the table again from a work item. */
static void table_that_is_read_again_without_output_is_reported(struct kunit *test)
{
	struct mock *m = small_device(test);

	mock_alloc(test, m);
	KUNIT_EXPECT_EQ(test, 0, register_here(m));
	contract_expect_none(test);
	reinit_completion(&asked_again);
	m->ibdev->ops.query_pkey = query_no_pkey_again;
	mock_event(m, 1, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&asked_again));
	/* Waits for the work item, which checks the output after the method has returned. */
	mock_unregister(m);
	CONTRACT_EXPECT(test, OUTPUT, DRIVER, .what = "query_pkey returned no P_Key");
}

static struct kunit_case contract_output_cases[] = {
	KUNIT_CASE_PARAM(missing_output_is_reported, outputs_gen_params),
	KUNIT_CASE_PARAM(output_that_is_there_is_not, outputs_gen_params),
	KUNIT_CASE(failed_method_is_not),
	KUNIT_CASE(failed_reg_umem_mr_is_not),
	KUNIT_CASE_PARAM(registration_without_output_is_reported, earlies_gen_params),
	KUNIT_CASE(registration_with_output_is_not),
	KUNIT_CASE(table_may_have_any_pkey),
	KUNIT_CASE(device_of_no_transport_needs_no_protocol),
	KUNIT_CASE(table_that_is_read_again_without_output_is_reported),
	{}
};
KVT_SUITE(contract_output, .init = contract_init, .exit = contract_exit);
