// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: regions of user memory, and RDMA writes to and reads from them.
 *
 * The regions overlap, but the first X_USER_AT bytes of each are its own. The model knows
 * the first eight of them: the result of a read is compared with the model, and so is the
 * memory as the CPU reads it after an operation.
 */
#include <linux/uaccess.h>

#include "fuzz/fuzz.h"

/* IOVA of the first region, which differs from its user address. */
#define X_IOVA		0x7000000000ULL
/* A user address at which nothing is mapped. */
#define X_NOWHERE	PAGE_SIZE

static u64 __user *user_at(const struct x_world *w, int slot)
{
	return (u64 __user *)(w->user_mem + slot * X_USER_AT);
}

static u64 iova_of(int slot)
{
	return X_IOVA + slot * X_USER_AT;
}

/* Zeroes the first word of each region at the start of a world. */
void x_clear_user(struct x_world *w)
{
	int i;

	for (i = 0; i < X_SLOTS; i++) {
		w->user_word[i] = 0;
		if (put_user(0ULL, user_at(w, i)))
			x_fail(w, "user memory cannot be written");
	}
}

/* Makes one of the arguments invalid. Returns the errno that registration must return. */
static int spoil(struct ib_mem *mem, u64 *iova, int *access, u32 how)
{
	switch (how % 6) {
	case 0:
		mem->length = 0;
		return -EINVAL;
	case 1:
		mem->path = IB_MEM_PATHS;
		return -EINVAL;
	case 2:
		*access = IB_ACCESS_REMOTE_WRITE;
		return -EINVAL;
	case 3:
		*iova = ~0ULL;
		return -EINVAL;
	case 4:
		mem->path = IB_MEM_DMABUF;
		return -EINVAL;
	default:
		mem->path = IB_MEM_HOST;
		mem->start = X_NOWHERE;
		return -EFAULT;
	}
}

/* Registers by ib_reg_user_mr() if @plain, else by ib_reg_mem(). */
static struct ib_mr *reg(struct ib_pd *pd, struct ib_mem *mem, u64 iova, int access, bool plain)
{
	if (!plain)
		return ib_reg_mem(pd, mem, iova, access);
	mem->found = IB_MEM_HOST;
	return ib_reg_user_mr(pd, mem->start, mem->length, iova, access);
}

enum x_verdict x_user_make(struct x_world *w, const struct x_op *op)
{
	struct ib_mem mem = {
		.path = op->r & 0x10 ? IB_MEM_ANY : IB_MEM_HOST,
		.start = (unsigned long)user_at(w, op->a),
		.length = PAGE_SIZE,
		.found = IB_MEM_PATHS,
	};
	int access = IB_ACCESS_LOCAL_WRITE | (op->r & 0x60 ? IB_ACCESS_REMOTE_WRITE : 0) |
		     (op->r & 0x180 ? IB_ACCESS_REMOTE_READ : 0);
	int pd = x_pd_of(op), want = 0;
	u64 iova = iova_of(op->a);
	struct ib_mr *mr;

	if (xm_there(w, X_USER, op->a) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	if (!(op->r % 8))
		want = spoil(&mem, &iova, &access, op->r >> 9);
	mr = reg(w->ptr[X_PD][pd], &mem, iova, access, !want && op->c & 1);
	if (IS_ERR(mr))
		return x_want(w, "a region of user memory", want, PTR_ERR(mr));
	w->ptr[X_USER][op->a] = mr;
	w->user[op->a] = (struct x_user){ .pd = pd, .key = mr->rkey, .access = access };
	xm_make(w, X_USER, op->a, xm_dev(w, X_PD, pd));
	xm_use(w, X_USER, op->a, X_PD, pd);
	if (!want && mem.found != IB_MEM_HOST)
		return x_want(w, "path of user memory", IB_MEM_HOST, mem.found);
	return x_want(w, "a region of user memory", want, 0);
}

enum x_verdict x_user_free(struct x_world *w, const struct x_op *op)
{
	int ret;

	if (!xm_there(w, X_USER, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ret = ib_dereg_mr(w->ptr[X_USER][op->a]);
	if (!ret) {
		w->ptr[X_USER][op->a] = NULL;
		xm_gone(w, X_USER, op->a);
	}
	return x_want(w, "freeing a region of user memory", 0, ret);
}

/* Compares the first word, as the CPU reads it after all WRs have completed. */
static enum x_verdict look(struct x_world *w, int slot)
{
	u64 found;

	if (x_settle(w))
		return X_FAILED;
	if (get_user(found, user_at(w, slot)))
		return x_fail(w, "user memory cannot be read");
	return x_want(w, "user memory", w->user_word[slot], found);
}

/* Posts an RDMA write or an RDMA read of a region of user memory. */
enum x_verdict x_user_rdma(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a], *peer = x_responder(w, op);
	struct ib_rdma_wr rdma = {};
	int slot = op->b % 3;
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	/* The same key may be valid on both devices. */
	if (!peer || !xm_there(w, X_USER, slot) ||
	    xm_dev(w, X_USER, slot) != xm_dev(w, X_QP, peer - w->qp))
		return X_SKIPPED;
	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, op->c & 2 ? X_READ : X_WRITE, &sge, 64);
	wr->user = slot;
	wr->key = w->user[slot].key;
	rdma.wr.opcode = wr->what == X_READ ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	rdma.wr.sg_list = &sge;
	rdma.wr.num_sge = 1;
	rdma.rkey = wr->key;
	rdma.remote_addr = iova_of(slot);
	if (x_post_one(w, op->a, &rdma.wr, wr, room ? 0 : -ENOMEM))
		return X_FAILED;
	return look(w, slot);
}
