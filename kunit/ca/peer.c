// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests for memory of other devices: what REG_MR and QUERY_MR report for
 * a region, and for one that cannot be made; which peer client SET_PEER selects; and PDs
 * that a ULP borrows with ib_ca_pd_get().
 */
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/uaccess.h>
#include <kverbs/contract.h>
#include <rdma/ib_umem.h>

#include "ca/rig.h"
#include "lib/dmabuf_rig.h"
#include "lib/mock.h"
#include "peer/rig.h"

#define LENGTH		SZ_64K

/* An open CA and a peer memory client. */
struct under {
	struct mock *m;			/* the CA's device */
	u64 h;				/* handle of the CA */
	u64 pd;				/* a PD under @h */
	struct peer_mock *client;	/* the peer client, which stands for a GPU driver */
};

static void under_up(struct kunit *test, struct under *u)
{
	u->client = peer_mock_up(test, 0, "kvt_gpu", PEER_CORE);
	u->m = mock_up_umem(test, "kvtm_a");
	u->h = ca_rig_open(test, u->m->ibdev);
	u->pd = ca_rig_pd(test, u->m->ibdev, u->h);
}

static void expect_closes(struct kunit *test, struct under *u)
{
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u->m->ibdev, u->h, u->pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(u->m->ibdev, u->h));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&u->m->wrong_mr));
	MOCK_EXPECT_IDLE(test, u->m);
	PEER_EXPECT_IDLE(test, u->client);
}

static struct kverbs_ca_reg_mr peer_reg(const struct under *u, u32 path)
{
	struct kverbs_ca_reg_mr reg = ca_rig_reg_of(u->pd, PEER_BASE(0) + 100, LENGTH);

	reg.path = path;
	return reg;
}

/* The request calls into the peer client; its mock checks calls against this visit. */
static ssize_t call(struct under *u, struct ib_ca_request *req)
{
	struct peer_visit v;
	ssize_t ret;

	peer_visit_begin(&v);
	ret = ib_ca_call(u->m->ibdev, req);
	peer_visit_end(&v);
	return ret;
}

static ssize_t reg_mr(struct under *u, const struct kverbs_ca_reg_mr *reg,
		      struct kverbs_ca_mr_attr *attr, u64 *mr)
{
	struct ib_ca_request req = CA_REQ(REG_MR, .handle = u->h, .in = reg,
					  .in_len = sizeof(*reg), .out = attr,
					  .out_len = sizeof(*attr));
	ssize_t ret;

	memset(attr, 0xa5, sizeof(*attr));
	ret = call(u, &req);
	*mr = req.object;
	return ret;
}

static ssize_t dereg(struct under *u, u64 mr)
{
	return call(u, &CA_REQ(DEREG_MR, .handle = u->h, .object = mr));
}

static ssize_t query(struct under *u, u64 mr, struct kverbs_ca_mr_attr *attr)
{
	return CA_CALL(u->m->ibdev, QUERY_MR, .handle = u->h, .object = mr,
		       .out = attr, .out_len = sizeof(*attr));
}

static void expect_errors(struct kunit *test, const struct kverbs_ca_mr_attr *attr,
			  int host, int peer, int dmabuf)
{
	KUNIT_EXPECT_EQ(test, host, attr->host_error);
	KUNIT_EXPECT_EQ(test, peer, attr->peer_error);
	KUNIT_EXPECT_EQ(test, dmabuf, attr->dmabuf_error);
}

/* What a region reports */

static void region_tells_whose_memory_it_is(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr, asked;
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 mr;

	under_up(test, &u);
	reg = peer_reg(&u, KVERBS_CA_PATH_ANY);
	KUNIT_ASSERT_EQ(test, (ssize_t)sizeof(attr), reg_mr(&u, &reg, &attr, &mr));
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PATH_PEER, attr.path);
	KUNIT_EXPECT_EQ(test, 0, attr.flags);
	KUNIT_EXPECT_STREQ(test, (char *)attr.peer, "kvt_gpu");
	KUNIT_EXPECT_NULL(test, memchr_inv(attr.peer + 7, 0, sizeof(attr.peer) - 7));
	KUNIT_EXPECT_EQ(test, reg.start, attr.start);
	expect_errors(test, &attr, -EFAULT, 0, 0);
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(asked), query(&u, mr, &asked));
	KUNIT_EXPECT_MEMEQ(test, &attr, &asked, sizeof(attr));
	KUNIT_EXPECT_EQ(test, 0, dereg(&u, mr));
	expect_closes(test, &u);
}

static void region_tells_that_it_lost_its_memory(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr, after;
	struct kverbs_ca_reg_mr reg;
	struct peer_pin *pin;
	struct under u;
	u64 mr;

	under_up(test, &u);
	reg = peer_reg(&u, KVERBS_CA_PATH_PEER);
	KUNIT_ASSERT_EQ(test, (ssize_t)sizeof(attr), reg_mr(&u, &reg, &attr, &mr));
	pin = KVT_PTR(test, peer_mock_pin(u.client, 0));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(pin));
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(after), query(&u, mr, &after));
	attr.flags = KVERBS_CA_MR_REVOKED;
	KUNIT_EXPECT_MEMEQ(test, &attr, &after, sizeof(attr));
	KUNIT_EXPECT_EQ(test, 2, ca_rig_list(test, u.m->ibdev, u.h)->count);
	KUNIT_EXPECT_EQ(test, 0, dereg(&u, mr));
	peer_pin_put(pin);
	expect_closes(test, &u);
}

static void failure_tells_of_each_path_why(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 mr;

	under_up(test, &u);
	u.client->ret[PEER_GET_PAGES] = -EXFULL;
	reg = peer_reg(&u, KVERBS_CA_PATH_ANY);
	reg.flags = KVERBS_CA_REG_FD;
	reg.fd = -1;
	KUNIT_EXPECT_EQ(test, -EXFULL, reg_mr(&u, &reg, &attr, &mr));
	KUNIT_EXPECT_EQ(test, 0, mr);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_VERSION, attr.version);
	KUNIT_EXPECT_EQ(test, sizeof(attr), attr.size);
	KUNIT_EXPECT_EQ(test, 0, attr.object);
	KUNIT_EXPECT_EQ(test, u.pd, attr.pd);
	KUNIT_EXPECT_EQ(test, reg.start, attr.start);
	KUNIT_EXPECT_EQ(test, reg.length, attr.length);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PATH_ANY, attr.path);
	KUNIT_EXPECT_EQ(test, 0, attr.flags | attr.lkey | attr.rkey);
	expect_errors(test, &attr, -EFAULT, -EXFULL, -EBADF);
	KUNIT_EXPECT_NULL(test, memchr_inv(attr.peer, 0, sizeof(attr.peer)));
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, u.m->ibdev, u.h)->count);
	expect_closes(test, &u);
}

/* Without an output buffer, a failed REG_MR returns the error alone. */
static void failure_need_not_be_told(struct kunit *test)
{
	struct kverbs_ca_reg_mr reg;
	struct under u;

	under_up(test, &u);
	u.client->ret[PEER_DMA_MAP] = -EXFULL;
	reg = peer_reg(&u, KVERBS_CA_PATH_PEER);
	KUNIT_EXPECT_EQ(test, -EXFULL,
			call(&u, &CA_REQ(REG_MR, .handle = u.h, .in = &reg,
					 .in_len = sizeof(reg))));
	expect_closes(test, &u);
}

static void region_of_a_dmabuf_tells_if_it_stays(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_reg_mr reg;
	struct dmabuf_rig *buf;
	struct under u;
	u32 flags;
	u64 mr;

	under_up(test, &u);
	buf = dmabuf_rig_new(test, 2 * LENGTH);
	reg = peer_reg(&u, KVERBS_CA_PATH_DMABUF);
	reg.flags = KVERBS_CA_REG_FD;
	reg.fd = buf->fd;
	reg.offset = LENGTH;
	KUNIT_ASSERT_EQ(test, (ssize_t)sizeof(attr), reg_mr(&u, &reg, &attr, &mr));
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PATH_DMABUF, attr.path);
	flags = IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY) ? 0 : KVERBS_CA_MR_PINNED;
	KUNIT_EXPECT_EQ(test, flags, attr.flags);
	KUNIT_EXPECT_EQ(test, 0, attr.start);
	expect_errors(test, &attr, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, 0, dereg(&u, mr));
	DMABUF_EXPECT_IDLE(test, buf);
	expect_closes(test, &u);
}

/* Selecting a peer client */

static ssize_t set_peer(struct under *u, const char *name, u8 data)
{
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
		.data = { [IB_PEER_MEMORY_DATA_MAX - 1] = data },
	};

	strscpy(peer.name, name, sizeof(peer.name));
	return CA_CALL(u->m->ibdev, SET_PEER, .handle = u->h, .in = &peer, .in_len = sizeof(peer));
}

static ssize_t try_reg(struct under *u, u32 path)
{
	struct kverbs_ca_reg_mr reg = peer_reg(u, path);
	struct kverbs_ca_mr_attr attr;
	ssize_t ret;
	u64 mr;

	ret = reg_mr(u, &reg, &attr, &mr);
	return ret < 0 ? ret : dereg(u, mr);
}

static void client_gets_name_and_data(struct kunit *test)
{
	struct under u, other;

	under_up(test, &u);
	KUNIT_EXPECT_EQ(test, 0, set_peer(&u, "kvt_gpu", 77));
	KUNIT_EXPECT_EQ(test, 0, try_reg(&u, KVERBS_CA_PATH_ANY));
	KUNIT_EXPECT_STREQ(test, (char *)u.client->name, "kvt_gpu");
	KUNIT_EXPECT_TRUE(test, u.client->has_data);
	KUNIT_EXPECT_EQ(test, 77, u.client->data[IB_PEER_MEMORY_DATA_MAX - 1]);

	/* SET_PEER does not affect other handles. */
	other = u;
	other.h = ca_rig_open(test, u.m->ibdev);
	other.pd = ca_rig_pd(test, u.m->ibdev, other.h);
	KUNIT_EXPECT_EQ(test, 0, try_reg(&other, KVERBS_CA_PATH_PEER));
	KUNIT_EXPECT_STREQ(test, (char *)u.client->name, "-");
	KUNIT_EXPECT_FALSE(test, u.client->has_data);
	ca_rig_dealloc(u.m->ibdev, other.h, other.pd);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(u.m->ibdev, other.h));

	KUNIT_EXPECT_EQ(test, 0, set_peer(&u, "kvt_nobody", 0));
	KUNIT_EXPECT_EQ(test, -ENOENT, try_reg(&u, KVERBS_CA_PATH_PEER));
	KUNIT_EXPECT_EQ(test, -EFAULT, try_reg(&u, KVERBS_CA_PATH_ANY));
	KUNIT_EXPECT_EQ(test, 0, set_peer(&u, "", 0));
	KUNIT_EXPECT_EQ(test, 0, try_reg(&u, KVERBS_CA_PATH_PEER));
	expect_closes(test, &u);
}

/* A refused SET_PEER leaves the previous setting in effect. */
static void name_that_cannot_be_is_refused(struct kunit *test)
{
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
	};
	struct under u;

	under_up(test, &u);
	KUNIT_EXPECT_EQ(test, 0, set_peer(&u, "kvt_gpu", 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_peer(&u, "", 1));
	memset(peer.name, 'x', sizeof(peer.name));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			CA_CALL(u.m->ibdev, SET_PEER, .handle = u.h, .in = &peer,
				.in_len = sizeof(peer)));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			CA_CALL(u.m->ibdev, SET_PEER, .handle = u.h, .in = &peer,
				.in_len = sizeof(peer) - 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, CA_CALL(u.m->ibdev, SET_PEER, .handle = u.h));
	KUNIT_EXPECT_EQ(test, 0, try_reg(&u, KVERBS_CA_PATH_PEER));
	KUNIT_EXPECT_STREQ(test, (char *)u.client->name, "kvt_gpu");
	expect_closes(test, &u);
}

/* PDs borrowed with ib_ca_pd_get() */

/* A CA's file opened by the case's thread, as by a user process. */
struct process {
	struct mock *m;		/* the device */
	int fd;			/* the file */
	unsigned long room;	/* a page of user memory */
	u64 h;			/* handle of the CA */
	u64 pd;			/* a PD under @h */
};

static int open_fd(struct kunit *test, int flags)
{
	int fd = ca_rig_open_file("kvtm_a", flags);

	KUNIT_ASSERT_GE(test, fd, 0);
	return fd;
}

static long request(struct process *p, u32 op, struct kverbs_ca_request *r)
{
	return ca_rig_ioctl(p->fd, p->room, op, r);
}

/* @p->m is a device that is registered as kvtm_a. */
static void process_opens(struct kunit *test, struct process *p)
{
	struct kverbs_ca_request r = {};

	p->room = kvt_map(test, PAGE_SIZE);
	p->fd = open_fd(test, O_RDWR);
	KUNIT_ASSERT_EQ(test, 0, request(p, KVERBS_CA_OPEN, &r));
	p->h = r.handle;
	KUNIT_ASSERT_EQ(test, 0, request(p, KVERBS_CA_ALLOC_PD, &r));
	p->pd = r.object;
}

static void process_up(struct kunit *test, struct process *p)
{
	p->m = mock_up_umem(test, "kvtm_a");
	process_opens(test, p);
}

/* Close the file, as the process does when it exits. */
static void process_end(struct kunit *test, struct process *p)
{
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close_file(p->fd));
}

static long dealloc_pd(struct process *p)
{
	return request(p, KVERBS_CA_DEALLOC_PD,
		       &(struct kverbs_ca_request) { .handle = p->h, .object = p->pd });
}

static u64 process_reg(struct kunit *test, struct process *p, unsigned long addr, size_t length)
{
	struct kverbs_ca_reg_mr reg = ca_rig_reg_of(p->pd, addr, length);
	struct kverbs_ca_request r = {
		.handle = p->h, .in = p->room + 256, .in_len = sizeof(reg),
	};
	struct peer_visit v;

	KUNIT_ASSERT_EQ(test, 0, copy_to_user((void __user *)p->room + 256, &reg, sizeof(reg)));
	peer_visit_begin(&v);
	KUNIT_ASSERT_EQ(test, 0, request(p, KVERBS_CA_REG_MR, &r));
	peer_visit_end(&v);
	return r.object;
}

static int borrow_error(int fd, u64 handle, u64 object)
{
	struct ib_ca_pd *pd = ib_ca_pd_get(fd, handle, object);

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ib_ca_pd_put(pd);
	return 0;
}

static void pd_that_is_lent_is_busy(struct kunit *test)
{
	struct ib_ca_pd *pd, *again;
	struct process p;

	process_up(test, &p);
	pd = KVT_PTR(test, ib_ca_pd_get(p.fd, p.h, p.pd));
	KUNIT_EXPECT_PTR_EQ(test, pd->pd->device, p.m->ibdev);
	again = KVT_PTR(test, ib_ca_pd_get(p.fd, p.h, p.pd));
	KUNIT_EXPECT_PTR_EQ(test, pd->pd, again->pd);
	KUNIT_EXPECT_EQ(test, -EBUSY, dealloc_pd(&p));
	ib_ca_pd_put(again);
	KUNIT_EXPECT_EQ(test, -EBUSY, dealloc_pd(&p));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(p.m, MOCK_dealloc_pd));
	ib_ca_pd_put(pd);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(p.m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, 0, dealloc_pd(&p));
	KUNIT_EXPECT_EQ(test, -ENOENT, borrow_error(p.fd, p.h, p.pd));
	process_end(test, &p);
	MOCK_EXPECT_IDLE(test, p.m);
}

/* The lent PD outlives the file; MRs do not, for they are of the process's memory. */
static void pd_that_is_lent_outlives_its_process(struct kunit *test)
{
	struct ib_ca_pd *pd;
	struct process p;

	process_up(test, &p);
	process_reg(test, &p, p.room, PAGE_SIZE);
	pd = KVT_PTR(test, ib_ca_pd_get(p.fd, p.h, p.pd));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&p.m->live[MOCK_MR]));
	process_end(test, &p);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&p.m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&p.m->live[MOCK_PD]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->pd->usecnt));
	ib_ca_pd_put(pd);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&p.m->live[MOCK_PD]));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(p.m, MOCK_dealloc_pd));
}

/*
 * A window of the borrower keeps the region, as which the first dereg_mr() fails. The device can
 * use the memory of the peer as long as there is the region, if it cannot revoke it.
 */
static void lost_region_keeps_its_memory(struct kunit *test, bool revocable)
{
	struct peer_mock *client = peer_mock_up(test, 0, "kvt_gpu", revocable ? PEER_CORE : PEER_NEVER);
	struct process p = { .m = mock_new(test) };
	struct peer_visit v;
	struct ib_ca_pd *pd;

	mock_by_umem(p.m);
	if (!revocable) {
		p.m->ops.open_mr = NULL;
		p.m->ops.revoke_mr = NULL;
	}
	mock_start(test, p.m, "kvtm_a");
	process_opens(test, &p);
	process_reg(test, &p, PEER_BASE(0), LENGTH);
	pd = KVT_PTR(test, ib_ca_pd_get(p.fd, p.h, p.pd));
	mock_fail_nth(p.m, MOCK_dereg_mr, 1, -EBUSY);
	peer_visit_begin(&v);
	process_end(test, &p);
	KUNIT_EXPECT_EQ(test, revocable, peer_mock_calls(client, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, revocable, peer_mock_calls(client, PEER_PUT_PAGES));
	ib_ca_pd_put(pd);
	peer_visit_end(&v);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(client, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(client, PEER_PUT_PAGES));
	MOCK_EXPECT_IDLE(test, p.m);
	PEER_EXPECT_IDLE(test, client);
}

static void lost_region_keeps_memory_that_cannot_be_revoked(struct kunit *test)
{
	lost_region_keeps_its_memory(test, false);
}

static void lost_region_gives_memory_back_that_can_be_revoked(struct kunit *test)
{
	lost_region_keeps_its_memory(test, true);
}

struct stranger {
	struct process *p;
	int ret;
};

/* Runs in a thread that shares the file table, but not the mm, of the process. */
static int stranger_fn(void *arg)
{
	struct stranger *s = arg;

	s->ret = borrow_error(s->p->fd, s->p->h, s->p->pd);
	return 0;
}

static void pd_of_others_is_not_lent(struct kunit *test)
{
	struct stranger s = {};
	struct dmabuf_rig *buf;
	struct process p;
	int fd;

	process_up(test, &p);
	KUNIT_EXPECT_EQ(test, 0, borrow_error(p.fd, p.h, p.pd));
	KUNIT_EXPECT_EQ(test, -ENOENT, borrow_error(p.fd, p.h + 1, p.pd));
	KUNIT_EXPECT_EQ(test, -ENOENT, borrow_error(p.fd, p.h, p.pd + BIT_ULL(32)));
	KUNIT_EXPECT_EQ(test, -ENOENT, borrow_error(p.fd, p.h, 0));
	KUNIT_EXPECT_EQ(test, -EBADF, borrow_error(-1, p.h, p.pd));
	buf = dmabuf_rig_new(test, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, -EINVAL, borrow_error(buf->fd, p.h, p.pd));
	fd = open_fd(test, O_RDONLY);
	KUNIT_EXPECT_EQ(test, -EBADF, borrow_error(fd, p.h, p.pd));
	KUNIT_EXPECT_EQ(test, 0, close_fd(fd));
	fd = open_fd(test, O_RDWR);
	KUNIT_EXPECT_EQ(test, -ENOENT, borrow_error(fd, p.h, p.pd));
	KUNIT_EXPECT_EQ(test, 0, close_fd(fd));
	s.p = &p;
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(kvt_thread_start(test, 0, stranger_fn, &s)));
	KUNIT_EXPECT_EQ(test, -EACCES, s.ret);
	process_end(test, &p);
	MOCK_EXPECT_IDLE(test, p.m);
}

static void pd_of_a_device_that_is_gone_is_not_lent(struct kunit *test)
{
	struct process p;

	process_up(test, &p);
	mock_unregister(p.m);
	KUNIT_EXPECT_EQ(test, -ENODEV, borrow_error(p.fd, p.h, p.pd));
	MOCK_EXPECT_IDLE(test, p.m);
	KUNIT_EXPECT_EQ(test, 0, close_fd(p.fd));
}

static int unregister_fn(void *arg)
{
	mock_unregister(arg);
	return 0;
}

static void expect_event(struct kunit *test, struct file *file, u32 type)
{
	struct kverbs_ca_event event = {};

	KUNIT_EXPECT_TRUE(test, kvt_until(kernel_read(file, &event, sizeof(event), NULL) ==
					  sizeof(event)));
	KUNIT_EXPECT_EQ(test, type, event.type);
}

/* What the device gives back meanwhile may take any time, as a GPU's memory does. */
static void file_has_events_until_the_device_is_gone(struct kunit *test)
{
	struct kvt_thread *unreg;
	struct process p;
	struct file *file;

	process_up(test, &p);
	file = fget(p.fd);
	file->f_flags |= O_NONBLOCK;
	mock_hold(p.m, MOCK_close_ca);
	unreg = kvt_thread_start(test, -1, unregister_fn, p.m);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&p.m->hold.entered));
	mock_event(p.m, 1, IB_EVENT_PORT_ERR);
	expect_event(test, file, IB_EVENT_PORT_ERR);
	mock_hold_end(p.m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unreg));
	expect_event(test, file, KVERBS_CA_EVENT_REMOVED);
	fput(file);
	process_end(test, &p);
}

/* A client that borrows a PD twice and returns it once; @remove may return it again. */
static struct borrower {
	bool registered;
	struct ib_device *ibdev;
	const struct process *p;
	struct ib_ca_pd *pd;
	void (*remove)(void);
} borrower;

static void keep(void)
{
}

static void give_back(void)
{
	ib_ca_pd_put(borrower.pd);
}

/* Stands for another thread, which borrows the PD before it checks for the removal. */
static void give_back_and_borrow(void)
{
	give_back();
	borrower.pd = ib_ca_pd_get(borrower.p->fd, borrower.p->h, borrower.p->pd);
}

static int borrower_add(struct ib_device *dev)
{
	return dev == borrower.ibdev ? 0 : -EOPNOTSUPP;
}

static void borrower_remove(struct ib_device *dev, void *data)
{
	borrower.remove();
}

static struct ib_client borrower_client = {
	.name = "kvt_borrower", .add = borrower_add, .remove = borrower_remove,
};

static void borrower_leave(void *arg)
{
	if (borrower.registered)
		ib_unregister_client(&borrower_client);
	borrower.registered = false;
}

static noinline void borrow_twice(struct kunit *test, struct process *p)
{
	borrower.pd = KVT_PTR(test, ib_ca_pd_get(p->fd, p->h, p->pd));
	KUNIT_EXPECT_PTR_EQ(test, borrower.pd, ib_ca_pd_get(p->fd, p->h, p->pd));
	ib_ca_pd_put(borrower.pd);
	barrier();
}

static void restore_contract(void *mode)
{
	ib_contract_set_mode((unsigned long)mode);
}

/* Returns how many violations of IB_RULE_LEFT the client's unregistration added. */
static unsigned int borrow_and_leave(struct kunit *test, struct process *p, void (*remove)(void))
{
	unsigned long mode = ib_contract_get_mode();
	u64 before;

	kvt_not_with_rt(test, "there is no checker");
	kvt_defer(test, restore_contract, (void *)mode);
	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	process_up(test, p);
	borrower.ibdev = p->m->ibdev;
	borrower.p = p;
	borrower.remove = remove;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&borrower_client));
	borrower.registered = true;
	kvt_defer(test, borrower_leave, NULL);
	borrow_twice(test, p);
	before = ib_contract_count(IB_RULE_LEFT);
	borrower_leave(NULL);
	return ib_contract_count(IB_RULE_LEFT) - before;
}

static void pd_that_a_client_keeps_is_reported(struct kunit *test)
{
	struct ib_contract_report report = {};
	struct process p;

	KUNIT_EXPECT_EQ(test, 1, borrow_and_leave(test, &p, keep));
	KUNIT_EXPECT_TRUE(test, ib_contract_read(0, &report));
	KUNIT_EXPECT_EQ(test, IB_RULE_LEFT, report.rule);
	KUNIT_EXPECT_STREQ(test, "kunit_ca_open", report.module);
	KUNIT_EXPECT_STREQ(test, "kvtm_a", report.device);
	KUNIT_EXPECT_STREQ(test, "1 borrowed pd left when remove() returned", report.what);
	KUNIT_EXPECT_EQ(test, 1, report.count);
	KUNIT_EXPECT_TRUE(test, within_module(report.site, THIS_MODULE));
	ib_ca_pd_put(borrower.pd);
	process_end(test, &p);
	MOCK_EXPECT_IDLE(test, p.m);
}

static void pd_that_a_client_gives_back_is_not(struct kunit *test)
{
	struct process p;

	KUNIT_EXPECT_EQ(test, 0, borrow_and_leave(test, &p, give_back));
	process_end(test, &p);
	MOCK_EXPECT_IDLE(test, p.m);
}

static void pd_that_is_borrowed_during_remove_is_not(struct kunit *test)
{
	struct process p;

	KUNIT_EXPECT_EQ(test, 0, borrow_and_leave(test, &p, give_back_and_borrow));
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(borrower.pd));
	ib_ca_pd_put(borrower.pd);
	process_end(test, &p);
	MOCK_EXPECT_IDLE(test, p.m);
}

/* By a signal that is handled: no other kind of memory is tried, and the program can go on. */
static void exporter_that_is_interrupted_ends_it(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_reg_mr reg;
	struct dmabuf_rig *buf;
	struct under u;
	u64 mr;

	under_up(test, &u);
	buf = dmabuf_rig_new(test, 2 * LENGTH);
	buf->ret[DMABUF_MAP] = -ERESTARTSYS;
	reg = peer_reg(&u, KVERBS_CA_PATH_ANY);
	reg.start = 0;
	reg.flags = KVERBS_CA_REG_FD;
	reg.fd = buf->fd;
	KUNIT_EXPECT_EQ(test, -ERESTARTSYS, reg_mr(&u, &reg, &attr, &mr));
	KUNIT_EXPECT_EQ(test, -EINTR, (int)attr.dmabuf_error);
	KUNIT_EXPECT_EQ(test, 0, (int)attr.host_error);
	buf->ret[DMABUF_MAP] = 0;
	expect_closes(test, &u);
}

static struct kunit_case ca_peer_cases[] = {
	KUNIT_CASE(exporter_that_is_interrupted_ends_it),
	KUNIT_CASE(region_tells_whose_memory_it_is),
	KUNIT_CASE(region_tells_that_it_lost_its_memory),
	KUNIT_CASE(failure_tells_of_each_path_why),
	KUNIT_CASE(failure_need_not_be_told),
	KUNIT_CASE(region_of_a_dmabuf_tells_if_it_stays),
	KUNIT_CASE(client_gets_name_and_data),
	KUNIT_CASE(name_that_cannot_be_is_refused),
	KUNIT_CASE(pd_that_is_lent_is_busy),
	KUNIT_CASE(pd_that_is_lent_outlives_its_process),
	KUNIT_CASE(lost_region_keeps_memory_that_cannot_be_revoked),
	KUNIT_CASE(lost_region_gives_memory_back_that_can_be_revoked),
	KUNIT_CASE(pd_of_others_is_not_lent),
	KUNIT_CASE(pd_of_a_device_that_is_gone_is_not_lent),
	KUNIT_CASE(file_has_events_until_the_device_is_gone),
	KUNIT_CASE(pd_that_a_client_keeps_is_reported),
	KUNIT_CASE(pd_that_a_client_gives_back_is_not),
	KUNIT_CASE(pd_that_is_borrowed_during_remove_is_not),
	{}
};
KVT_SUITE(ca_peer);
