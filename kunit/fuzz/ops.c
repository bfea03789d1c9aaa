// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: the table of operations, how they are drawn at random, and how they are
 * written as text and read back.
 *
 * A sequence is written as name.a.b.c.r for each operation, with hexadecimal numbers and a
 * slash between operations.
 */
#include "fuzz/mock_device.h"

/* A kind of operation. */
struct x_kind_of_op {
	const char *name;	/* its name in texts */
	u8 weight;		/* how often it is drawn, relative to the others */
	u8 a;			/* number of values of &x_op.a, which mostly is a slot */
	x_op_fn *run;		/* performs the operation */
};

static const struct x_kind_of_op kinds[] = {
	{ "pd_alloc", 12, 3, x_pd_alloc },
	{ "pd_free", 6, 3, x_pd_free },
	{ "cq_make", 24, 5, x_cq_make },
	{ "cq_free", 6, 5, x_cq_free },
	{ "cq_poll", 24, 1, x_cq_poll },
	{ "cq_arm", 12, 5, x_cq_arm },
	{ "cq_resize", 2, 5, x_cq_resize },
	{ "cq_tune", 8, 5, x_cq_tune },
	{ "srq_make", 10, 3, x_srq_make },
	{ "srq_free", 6, 3, x_srq_free },
	{ "srq_modify", 4, 3, x_srq_modify },
	{ "srq_query", 8, 3, x_srq_query },
	{ "srq_recv", 60, 3, x_srq_recv },
	{ "qp_make", 40, 4, x_qp_make },
	{ "qp_free", 3, 4, x_qp_free },
	{ "qp_up", 120, 4, x_qp_up },
	{ "qp_err", 4, 4, x_qp_err },
	{ "qp_modify", 12, 4, x_qp_modify },
	{ "qp_query", 20, 4, x_qp_query },
	{ "qp_drain", 3, 4, x_qp_drain },
	{ "qp_recv", 200, 4, x_qp_recv },
	{ "qp_send", 250, 4, x_qp_send },
	{ "mr_post", 60, 4, x_mr_post },
	{ "rdma", 100, 4, x_rdma },
	{ "send_inv", 40, 4, x_send_inv },
	{ "write_imm", 80, 4, x_write_imm },
	{ "read_inv", 40, 4, x_read_inv },
	{ "atomic", 200, 4, x_atomic },
	{ "mcast_join", 10, 4, x_mcast_join },
	{ "mcast_leave", 10, 4, x_mcast_leave },
	{ "mcast_send", 60, 4, x_mcast_send },
	{ "user_make", 30, 3, x_user_make },
	{ "user_free", 4, 3, x_user_free },
	{ "user_rdma", 120, 4, x_user_rdma },
	{ "ah_make", 30, 4, x_ah_make },
	{ "ah_modify", 16, 4, x_ah_modify },
	{ "ah_query", 20, 4, x_ah_query },
	{ "ah_free", 16, 4, x_ah_free },
	{ "mr_alloc", 30, 3, x_mr_alloc },
	{ "mr_map", 30, 3, x_mr_map },
	{ "mr_free", 4, 3, x_mr_free },
	{ "mw_alloc", 24, 2, x_mw_alloc },
	{ "mw_free", 6, 2, x_mw_free },
	{ "mw_post", 100, 4, x_mw_post },
	{ "rdma_mw", 120, 4, x_rdma_mw },
	{ "fmr_alloc", 10, 2, x_fmr_alloc },
	{ "fmr_map", 24, 2, x_fmr_map },
	{ "fmr_unmap", 6, 2, x_fmr_unmap },
	{ "fmr_free", 6, 2, x_fmr_free },
	{ "query", 24, 2, x_query },
	{ "find", 20, 2, x_find },
	{ "listen", 2, 1, x_listen },
	{ "drain_one", 4, 4, x_drain_one },
	{ "cq_moderate", 8, 5, x_cq_moderate },
	{ "pool", 8, 4, x_pool },
	{ "optional", 6, 2, x_optional },
	{ "gid", 16, 2, x_gid },
	{ "reply", 16, 1, x_reply },
	{ "restrack", 24, 4, x_restrack },
	{ "client", 3, 1, x_client },
	{ "device", 6, 1, x_device },
	{ "vf", 6, MOCK_VFS + 1, x_vf },
	{ "modify", 4, 1, x_modify },
	{ "pi", 12, X_PIS, x_pi },
	{ "pi_pool", 2, 1, x_pi_pool },
	{ "netdev", 8, X_NDEVS, x_netdev },
	{ "netdev_find", 6, X_NDEVS, x_netdev_find },
	{ "av", 14, X_AVS, x_av },
	{ "ca_submit", 40, X_CA_REQS, x_ca_submit },
	{ "ca_cancel", 4, X_CA_REQS, x_ca_cancel },
	{ "ca_wait", 16, X_CA_REQS, x_ca_wait },
	{ "ca_file", 12, 2, x_ca_file },
	{ "flight", 12, 3, x_flight },
	{ "overrun", 3, 3, x_overrun },
};

/**
 * x_fail() - note why a world failed
 * @w: the world
 * @format: the reason; ignored if there is one already
 *
 * Return: %X_FAILED.
 */
enum x_verdict x_fail(struct x_world *w, const char *format, ...)
{
	va_list args;

	if (*w->why)
		return X_FAILED;
	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
	return X_FAILED;
}

/**
 * x_want() - compare a value with what the model expects
 * @w: the world
 * @what: name of the value
 * @want: expected value
 * @got: value that was seen
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_want(struct x_world *w, const char *what, long want, long got)
{
	if (want == got)
		return X_DONE;
	return x_fail(w, "%s: expected %ld, saw %ld", what, want, got);
}

/* Returns random bits, each of which depends on all bits of @x: splitmix64. */
static u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static u32 total_weight(void)
{
	u32 sum = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		sum += kinds[i].weight;
	return sum;
}

/**
 * x_draw() - draw an operation
 * @op: filled in
 * @seed: seed of the run
 * @thread: number of the thread
 * @number: number of the operation in the thread
 */
void x_draw(struct x_op *op, u32 seed, u32 thread, u32 number)
{
	u64 bits = mix(mix((u64)seed << 32 | thread) + number);
	u32 at = (u32)bits % total_weight();

	op->kind = 0;
	while (at >= kinds[op->kind].weight)
		at -= kinds[op->kind++].weight;
	bits = mix(bits);
	op->a = (bits & 0xff) % kinds[op->kind].a;
	op->b = bits >> 8 & 7;
	op->c = bits >> 16 & 15;
	op->r = bits >> 32;
}

/**
 * x_run_op() - perform an operation, and compare the results with the model
 * @w: the world
 * @op: the operation
 *
 * Return: whether it was done, skipped, or failed; &x_world.why says why it failed.
 */
enum x_verdict x_run_op(struct x_world *w, const struct x_op *op)
{
	return kinds[op->kind].run(w, op);
}

/* Returns the name of a kind of operation, NULL after the last one. */
const char *x_op_name(int kind)
{
	return kind < ARRAY_SIZE(kinds) ? kinds[kind].name : NULL;
}

int x_write_op(const struct x_op *op, char *buf, size_t len)
{
	return scnprintf(buf, len, "%s.%x.%x.%x.%x", kinds[op->kind].name, op->a, op->b,
			 op->c, op->r);
}

/* Returns the number of characters that were read, or -EINVAL. */
int x_read_op(struct x_op *op, const char *text)
{
	size_t len = strcspn(text, "./");
	unsigned int a, b, c, r;
	int i, used = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, text, len))
			break;
	}
	if (i == ARRAY_SIZE(kinds) ||
	    sscanf(text + len, ".%x.%x.%x.%x%n", &a, &b, &c, &r, &used) < 4 ||
	    a >= kinds[i].a || b > 7 || c > 15)
		return -EINVAL;
	*op = (struct x_op){ .kind = i, .a = a, .b = b, .c = c, .r = r };
	return len + used;
}
