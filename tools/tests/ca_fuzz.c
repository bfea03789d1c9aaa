// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile callers of channel-adapter requests.
 *
 *   ca_fuzz [--requests N] [--seed S] [--threads T]
 *
 * Threads make requests that are nearly right: one that should succeed is drawn, then
 * some members are replaced by others, which are drawn too. Requests, what goes in and
 * what comes out are aligned or not, overlap, end at a page that is not there, or are in
 * memory that another thread rewrites all the time. Files are opened, duplicated, closed
 * and handed to forked processes, some of which are killed; tables change, and the
 * device goes and comes. One thread in four uses io_uring.
 *
 * Of each answer it is checked, as far as nobody else wrote there: no byte but those
 * told is touched, it is as it says it is, what is reserved is 0, and nothing is in it
 * that looks like a kernel's address or like memory that nobody has set: the patterns of
 * slub_debug=P, of free and of new objects, and of INIT_STACK_ALL_PATTERN. In the end
 * everything is closed, no page is pinned, and each operation has had its successes and
 * each error has been seen.
 *
 * What a thread draws follows from the seed; how the threads meet does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ca_fuzz.h"

#define DEVICE		"t-fuzz"
#define PAGE		4096
#define NOBODY		65534

#define THREADS_MAX	16
#define FILES		8
#define HANDLES		8	/* remembered of a file */
#define OBJECTS		8	/* remembered of a handle */

#define ARENA		(4 * PAGE)	/* private room for an answer */
#define AROUND		16		/* bytes looked at before and behind it */
#define SPACE		256		/* for a request and what is behind it */
#define COMMON		(8 * PAGE)	/* rewritten all the time */

/* Requests of a thread between two of the same kind. */
#define EVERY_FILE	2000	/* a file is closed, and another opened */
#define EVERY_CHANGE	2000	/* a table changes */
#define EVERY_FORK	20000	/* a child makes requests */
#define EVERY_REMOVAL	50000	/* the device goes and comes */
#define CHILD_REQUESTS	200

struct handle {
	uint64_t id;
	uint64_t pds[OBJECTS];
	uint64_t mrs[OBJECTS];
};

/* Threads read and write these as they come: what is stale is as good. */
static struct file {
	_Atomic int fd;
	struct handle handles[HANDLES];
} files[FILES];

struct shared *shared;
uint64_t seed = 1;
static uint64_t wanted = 100000;
static unsigned int nr_threads = 4;
static char *common, *nothing, *constant, *memory;
static atomic_bool over;

/* --- chance ------------------------------------------------------------------------- */

static uint64_t draw(struct thread *t)
{
	t->random ^= t->random >> 12;
	t->random ^= t->random << 25;
	t->random ^= t->random >> 27;
	return t->random * 0x2545f4914f6cdd1dULL;
}

static uint32_t below(struct thread *t, uint32_t n)
{
	return (draw(t) >> 33) % n;
}

static bool one_in(struct thread *t, uint32_t n)
{
	return !below(t, n);
}

static uint64_t strange(struct thread *t)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 7, 8, 9, 16, 24, 63, 64, 65, 127, 128, 136, 255, 256,
		392, 393, 4095, 4096, 4097, 65535, 65536, 0x7fffffff, 0x80000000,
		0xfffffff7, 0xffffffff, 0x100000000, 0x1ffffffff,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000,
		0xffffffffffffffff,
	};

	if (one_in(t, 4))
		return 1ULL << below(t, 64);
	/* Bits of the patterns that answers are searched for do not come from here. */
	if (one_in(t, 4))
		return draw(t) & 0x0fff0fff0fff0fffULL;
	return values[below(t, TEST_COUNT(values))];
}

static bool is_known(long err)
{
	static const int known[] = {
		EINVAL, ENOTTY, EFAULT, E2BIG, ENOENT, EACCES, EBADF, ENOSPC,
		EOVERFLOW, EBUSY, ENODEV, ENOMEM, EMFILE, EDQUOT, EPERM, EINTR,
		EOPNOTSUPP,
	};
	unsigned int i;

	for (i = 0; i < TEST_COUNT(known); i++) {
		if (known[i] == err)
			return true;
	}
	return false;
}

/* --- what to ask ---------------------------------------------------------------------------- */

/* Mostly what costs the kernel little: that is how many get done in a time. */
static unsigned int draw_op(struct thread *t)
{
	static const unsigned char weights[OPS] = {
		[0] = 1,
		[KVERBS_CA_OPEN] = 3,
		[KVERBS_CA_CLOSE] = 3,
		[KVERBS_CA_QUERY_CA] = 30,
		[KVERBS_CA_QUERY_PORT] = 24,
		[KVERBS_CA_ALLOC_PD] = 4,
		[KVERBS_CA_DEALLOC_PD] = 3,
		[KVERBS_CA_REG_MR] = 6,
		[KVERBS_CA_DEREG_MR] = 4,
		[KVERBS_CA_QUERY_MR] = 14,
		[KVERBS_CA_LIST] = 8,
	};
	uint32_t at = below(t, 100);
	unsigned int op;

	for (op = 0; op < OPS - 1 && at >= weights[op]; op++)
		at -= weights[op];
	return op;
}

static uint64_t draw_address(struct thread *t, const struct attempt *a)
{
	switch (below(t, 10)) {
	case 0:
		return (uintptr_t)nothing + below(t, PAGE);
	case 1:
		return (uintptr_t)nothing - below(t, 400);
	case 2:
		return (uintptr_t)constant + below(t, PAGE);
	case 3:
		return (uintptr_t)a->space + below(t, 64);
	case 4:
		return (uintptr_t)a->reg + below(t, 8);
	case 5:
		return strange(t) | 1ULL << 63;
	case 6:
		return below(t, PAGE);
	case 7:
		return (uintptr_t)a->room + ARENA - below(t, 400);
	default:
		return (uintptr_t)common + below(t, COMMON - PAGE);
	}
}

static uint32_t draw_length(struct thread *t)
{
	switch (below(t, 8)) {
	case 0:
		return below(t, 16);
	case 1:
	case 2:
	case 3:
		return below(t, 256);
	case 4:
		return one_in(t, 2) ? 1690 + below(t, 32) : 3790 + below(t, 32);
	case 5:
		return below(t, 2 * PAGE);
	default:
		return 32 + below(t, 400);
	}
}

/* Room for an answer: anywhere in the private memory, also right before its end. */
static void place_out(struct thread *t, struct attempt *a)
{
	uint32_t len = draw_length(t);

	if (one_in(t, 4))
		a->r.out = (uintptr_t)a->room + ARENA - len;
	else
		a->r.out = (uintptr_t)a->room + AROUND + below(t, 16);
	a->r.out_len = len;
}

/* One that is there, if some tries find one. */
static uint64_t draw_object(struct thread *t, const uint64_t *ids)
{
	uint64_t id = 0;
	int tries;

	for (tries = 0; tries < OBJECTS && !id; tries++)
		id = ids[below(t, OBJECTS)];
	return id;
}

static bool has_any(const uint64_t *ids)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++) {
		if (ids[i])
			return true;
	}
	return false;
}

/* Mostly, what it takes for the operation is made first if it is not there. */
static void draw_maker(struct thread *t, struct attempt *a,
		       const struct handle *h)
{
	if (!a->op || one_in(t, 8))
		return;
	if (!h->id) {
		a->op = KVERBS_CA_OPEN;
		return;
	}
	/* There is room for so many. */
	if (a->op == KVERBS_CA_OPEN)
		a->op = KVERBS_CA_QUERY_CA;
	if ((a->op == KVERBS_CA_DEREG_MR || a->op == KVERBS_CA_QUERY_MR) &&
	    !has_any(h->mrs))
		a->op = KVERBS_CA_REG_MR;
	if ((a->op == KVERBS_CA_REG_MR || a->op == KVERBS_CA_DEALLOC_PD) &&
	    !has_any(h->pds))
		a->op = KVERBS_CA_ALLOC_PD;
}

static struct handle *draw_handle(struct thread *t, struct attempt *a)
{
	struct handle *h;

	a->handle = below(t, HANDLES);
	h = &files[a->file].handles[a->handle];
	draw_maker(t, a, h);
	return h;
}

static void draw_region(struct thread *t, struct attempt *a, struct handle *h)
{
	char *start = memory + below(t, 8 * PAGE);

	ca_fill_reg(a->reg, draw_object(t, h->pds), start,
		    1 + below(t, PAGE));
	a->reg->access = one_in(t, 4) ? below(t, 32) : 7;
	a->r.in = (uintptr_t)a->reg;
	a->r.in_len = sizeof(*a->reg);
	switch (below(t, 20)) {
	case 0:
		a->reg->version = strange(t);
		break;
	case 1:
		a->reg->size = strange(t);
		break;
	case 2:
		a->reg->pd = strange(t);
		break;
	case 3:
		a->reg->start = one_in(t, 2) ? strange(t) : draw_address(t, a);
		break;
	case 4:
		/* Long ones take long: not beyond what fits into a moment. */
		a->reg->length = one_in(t, 2) ? below(t, 64 * PAGE) :
			       strange(t) | 1ULL << 47;
		break;
	case 5:
		a->reg->iova = strange(t);
		break;
	case 6:
		a->reg->access = strange(t);
		break;
	case 7:
		a->reg->path = strange(t);
		break;
	}
}

/* A request that should succeed, if handle and object are there. */
static void draw_right(struct thread *t, struct attempt *a)
{
	struct handle *h = draw_handle(t, a);

	a->r = (struct kverbs_ca_request) {
		.size = sizeof(a->r),
		.version = KVERBS_CA_VERSION,
		.handle = h->id,
	};
	switch (a->op) {
	case KVERBS_CA_OPEN:
		a->r.handle = 0;
		a->r.flags = one_in(t, 4) ? KVERBS_CA_SHARED : 0;
		break;
	case KVERBS_CA_QUERY_PORT:
		a->r.port = 1 + below(t, 2);
		/* fall through */
	case KVERBS_CA_QUERY_CA:
		a->r.flags = one_in(t, 50) ? KVERBS_CA_FRESH : 0;
		/* fall through */
	case KVERBS_CA_LIST:
		place_out(t, a);
		break;
	case KVERBS_CA_CLOSE:
		if (one_in(t, 2))
			place_out(t, a);
		break;
	case KVERBS_CA_DEALLOC_PD:
		a->r.object = draw_object(t, h->pds);
		break;
	case KVERBS_CA_QUERY_MR:
		place_out(t, a);
		/* fall through */
	case KVERBS_CA_DEREG_MR:
		a->r.object = draw_object(t, h->mrs);
		break;
	case KVERBS_CA_REG_MR:
		draw_region(t, a, h);
		if (one_in(t, 2))
			place_out(t, a);
		break;
	}
}

static void change_member(struct thread *t, struct attempt *a)
{
	struct file *f = &files[below(t, FILES)];
	struct handle *h = &f->handles[below(t, HANDLES)];

	switch (below(t, 16)) {
	case 0:
		a->r.size = one_in(t, 2) ? 64 + below(t, 200) : strange(t);
		break;
	case 1:
		a->r.version = strange(t);
		break;
	case 2:
		a->r.flags = one_in(t, 2) ? below(t, 4) : strange(t);
		break;
	case 3:
		a->r.port = one_in(t, 2) ? below(t, 5) : strange(t);
		break;
	case 4:
		a->r.handle = one_in(t, 2) ? h->id : strange(t);
		break;
	case 5:
		a->r.handle ^= 1ULL << below(t, 64);
		break;
	case 6:
		a->r.object = one_in(t, 2) ? h->pds[below(t, OBJECTS)] :
			      strange(t);
		break;
	case 7:
		a->r.object ^= 1ULL << below(t, 64);
		break;
	case 8:
		a->r.in = one_in(t, 2) ? draw_address(t, a) : strange(t);
		break;
	case 9:
		a->r.in_len = strange(t);
		break;
	case 10:
		a->r.out_len = strange(t);
		break;
	case 11:
		a->r.reserved = strange(t);
		break;
	case 12:
		a->r.in = a->r.out;
		a->r.in_len = below(t, 100);
		break;
	case 13:
		a->r.out_len = draw_length(t);
		a->r.out = draw_address(t, a);
		break;
	default:
		a->r.out = draw_address(t, a);
	}
}

/* Where the kernel finds it: aligned or not, at the end of memory, rewritten. */
static void place_request(struct thread *t, struct attempt *a)
{
	memset(a->space, 0, SPACE);
	if (one_in(t, 8))
		a->space[sizeof(a->r) + below(t, 100)] = below(t, 2);
	switch (below(t, 32)) {
	case 0:
		a->request = common + 8 * below(t, (COMMON - PAGE) / 8);
		break;
	case 1:
		a->request = nothing - below(t, 80);
		return;
	case 2:
		a->request = (void *)(uintptr_t)draw_address(t, a);
		return;
	case 3:
		a->request = constant;
		return;
	case 4:
		a->request = a->space + below(t, 8);
		break;
	default:
		a->request = a->space;
	}
	memcpy(a->request, &a->r, sizeof(a->r));
}

/*
 * The pattern goes around the room for the answer, if that is private and nothing else
 * is there.
 */
static void watch(struct attempt *a)
{
	unsigned char *end = a->room + ARENA, *out = (void *)(uintptr_t)a->r.out;

	a->watched = out >= a->room && out < end &&
		     a->r.out_len <= (size_t)(end - out) &&
		     (unsigned char *)a->request >= a->space &&
		     (unsigned char *)a->request <= a->space + 8 &&
		     (a->r.in < (uintptr_t)a->room || a->r.in >= (uintptr_t)end);
	if (!a->watched)
		return;
	a->from = out - a->room > AROUND ? out - AROUND : a->room;
	a->to = out + a->r.out_len + AROUND;
	if (a->to > end)
		a->to = end;
	memset(a->from, UNTOUCHED, a->to - a->from);
}

static void draw_attempt(struct thread *t, struct attempt *a)
{
	uint32_t changes = below(t, 8);

	a->op = draw_op(t);
	a->file = below(t, FILES);
	a->fd = files[a->file].fd;
	draw_right(t, a);
	for (; changes > 4; changes--)
		change_member(t, a);
	place_request(t, a);
	watch(a);
	if (!a->op)
		a->op = OPS + below(t, 64);
}

/* --- afterwards ------------------------------------------------------------------------------- */

static uint64_t result_of(const struct attempt *a)
{
	const struct kverbs_ca_request *r = a->request;

	return a->op == KVERBS_CA_OPEN ? r->handle : r->object;
}

static void remember(struct thread *t, const struct attempt *a)
{
	struct handle *h = &files[a->file].handles[a->handle];
	uint64_t id = result_of(a);

	switch (a->op) {
	case KVERBS_CA_OPEN:
		memset(h, 0, sizeof(*h));
		h->id = id;
		break;
	case KVERBS_CA_ALLOC_PD:
		h->pds[below(t, OBJECTS)] = id;
		break;
	case KVERBS_CA_REG_MR:
		h->mrs[below(t, OBJECTS)] = id;
		break;
	}
}

/* What is gone need not be tried again, or hardly ever. */
static void forget(struct thread *t, const struct attempt *a, long ret)
{
	struct handle *h = &files[a->file].handles[a->handle];
	unsigned int i;

	if (one_in(t, 8) || (ret && ret != -ENOENT) || h->id != a->r.handle)
		return;
	for (i = 0; i < OBJECTS && a->r.object; i++) {
		if (a->op == KVERBS_CA_DEALLOC_PD && h->pds[i] == a->r.object)
			h->pds[i] = 0;
		if (a->op != KVERBS_CA_DEALLOC_PD && h->mrs[i] == a->r.object)
			h->mrs[i] = 0;
	}
	if (a->op == KVERBS_CA_CLOSE || a->op == KVERBS_CA_LIST)
		memset(h, 0, sizeof(*h));
}

/* Another file in the place of one; or the same again, or none. */
static void change_file(struct thread *t, unsigned int number)
{
	struct file *f = &files[number], *g = &files[below(t, FILES)];
	bool same = one_in(t, 8);
	int fd = -1, old;

	switch (same ? 0 : 1 + below(t, 8)) {
	case 0:
		fd = dup(g->fd);
		break;
	case 1:
		/* What remains is the number of a file that is closed. */
		fd = dup(f->fd);
		if (fd >= 0)
			close(fd);
		return;
	case 2:
		fd = open(CA_DIR DEVICE, O_RDONLY | O_NONBLOCK);
		break;
	default:
		fd = open(CA_DIR DEVICE, O_RDWR | O_NONBLOCK);
	}
	if (fd < 0)
		return;
	if (same)
		memmove(f->handles, g->handles, sizeof(f->handles));
	else
		memset(f->handles, 0, sizeof(f->handles));
	old = atomic_exchange(&f->fd, fd);
	if (old >= 0)
		close(old);
}

static void judge(struct thread *t, struct attempt *a, long ret)
{
	atomic_fetch_add(&shared->requests, 1);
	look_at_answer(t, a, ret);
	if (ret < 0) {
		if (!is_known(-ret))
			wrong(t, a, ret, "an error that is not documented", -ret);
		else
			atomic_fetch_add(&shared->errors[-ret], 1);
		if (ret == -ENOENT)
			forget(t, a, ret);
		if (ret == -ENODEV && one_in(t, 5))
			change_file(t, a->file);
		return;
	}
	if (a->op >= OPS) {
		wrong(t, a, ret, "an operation that is not there", a->op);
		return;
	}
	atomic_fetch_add(&shared->good[a->op], 1);
	if (a->op == KVERBS_CA_CLOSE || a->op == KVERBS_CA_DEALLOC_PD ||
	    a->op == KVERBS_CA_DEREG_MR)
		forget(t, a, ret);
	else
		remember(t, a);
}

static void by_ioctl(struct thread *t)
{
	struct attempt *a = &t->attempts[0];

	draw_attempt(t, a);
	judge(t, a, ca_raw(a->fd, a->op, a->request));
}

static void prepare_sqe(struct thread *t, unsigned int i)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&t->ring);
	struct attempt *a = &t->attempts[i];
	struct kverbs_ca_uring_cmd cmd = { 0 };

	draw_attempt(t, a);
	cmd.request = (uintptr_t)a->request;
	if (one_in(t, 50)) {
		cmd.reserved = strange(t);
		a->watched = false;
	}
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, a->fd, NULL, 0, 0);
	sqe->cmd_op = KVERBS_CA_IOCTL(a->op);
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	sqe->user_data = i;
}

static void by_ring(struct thread *t)
{
	struct io_uring_cqe *cqe;
	unsigned int i, n = 1 + below(t, BATCH);

	for (i = 0; i < n; i++)
		prepare_sqe(t, i);
	io_uring_submit(&t->ring);
	while (n--) {
		if (io_uring_wait_cqe(&t->ring, &cqe))
			return;
		judge(t, &t->attempts[cqe->user_data], cqe->res);
		io_uring_cqe_seen(&t->ring, cqe);
	}
}

/* --- what happens beside -------------------------------------------------------------------------- */

static void write_config(const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), EMU_CONFIG DEVICE "/%s", file);
	file_write(path, text);
}

static void change_table(struct thread *t)
{
	char text[64];

	if (one_in(t, 2)) {
		snprintf(text, sizeof(text), "1 %#x", 1 + below(t, 0x7000));
		write_config("port1/pkeys", text);
	} else {
		snprintf(text, sizeof(text), "%d fe80::%x", 1 + below(t, 9),
			 1 + below(t, 0x7000));
		write_config("port2/gids", text);
	}
}

static void in_child(struct thread *t)
{
	unsigned int n = CHILD_REQUESTS;

	while (n--)
		by_ioctl(t);
	if (one_in(t, 2))
		raise(SIGKILL);
	_exit(0);
}

static void fork_child(struct thread *t)
{
	int pid = fork();

	if (!pid)
		in_child(t);
	draw(t);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Events are read, to nowhere in particular. */
static void read_events(struct thread *t)
{
	char *to = one_in(t, 2) ? common : (char *)(uintptr_t)draw_address(t,
							&t->attempts[0]);
	ssize_t ret = read(files[below(t, FILES)].fd, to, below(t, 300));

	(void)ret;
}

static void beside(struct thread *t)
{
	if (one_in(t, EVERY_FILE))
		change_file(t, below(t, FILES));
	if (one_in(t, EVERY_FILE))
		read_events(t);
	if (one_in(t, EVERY_FORK))
		fork_child(t);
	if (t->number)
		return;
	if (one_in(t, EVERY_CHANGE))
		change_table(t);
	if (one_in(t, EVERY_REMOVAL)) {
		write_config("enable", "0");
		write_config("enable", "1");
	}
}

/* Rewrites memory where requests, regions and answers are. */
static void *scribble(void *arg)
{
	struct thread *t = arg;
	uint64_t value;

	while (!over) {
		value = one_in(t, 2) ? strange(t) :
			(uintptr_t)common + below(t, COMMON - PAGE);
		/* A place for an answer is one of here, or none. */
		if (value > 1ULL << 20 && value < 1ULL << 47 &&
		    (value < (uintptr_t)common ||
		     value >= (uintptr_t)common + COMMON))
			value = 0;
		*(volatile uint64_t *)(common + (below(t, COMMON - 8) & ~7)) = value;
		if (one_in(t, 64))
			usleep(50);
	}
	return NULL;
}

static void *fuzz(void *arg)
{
	struct thread *t = arg;

	/* One in two may not do all. The C library would do it to all threads. */
	if (t->number % 2)
		syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY);
	while (shared->requests < wanted && !shared->failed) {
		if (t->has_ring)
			by_ring(t);
		else
			by_ioctl(t);
		beside(t);
	}
	return NULL;
}

/* --- all of it -------------------------------------------------------------------------------------- */

/* Memory, and a page behind it that is not there: no answer gets into what follows. */
static char *map(size_t len)
{
	char *p = mmap(NULL, len + PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + len, PAGE, PROT_NONE)) {
		perror("mmap");
		exit(2);
	}
	return p;
}

static void set_up(void)
{
	struct kverbs_ca_request *r;
	unsigned int i;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	common = map(COMMON);
	memory = map(80 * PAGE);
	nothing = map(PAGE) + PAGE;
	constant = map(PAGE);
	r = (void *)constant;
	*r = (struct kverbs_ca_request) {
		.size = sizeof(*r),
		.version = KVERBS_CA_VERSION,
	};
	mprotect(constant, PAGE, PROT_READ);
	for (i = 0; i < FILES; i++)
		files[i].fd = open(CA_DIR DEVICE, O_RDWR | O_NONBLOCK);
}

static void set_up_thread(struct thread *t, unsigned int number)
{
	struct attempt *a;
	unsigned int i;

	t->number = number;
	t->random = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (number + 1ULL) << 32;
	draw(t);
	for (i = 0; i < BATCH; i++) {
		a = &t->attempts[i];
		a->room = (unsigned char *)map(ARENA);
		a->space = (unsigned char *)map(2 * PAGE);
		a->reg = (void *)(a->space + 2 * SPACE);
	}
	if (number % 4 == 3)
		t->has_ring = !io_uring_queue_init(BATCH, &t->ring, 0);
}

static void run_all(void)
{
	static struct thread threads[THREADS_MAX + 1];
	unsigned int i;

	for (i = 0; i <= nr_threads; i++) {
		set_up_thread(&threads[i], i);
		pthread_create(&threads[i].id, NULL,
			       i < nr_threads ? fuzz : scribble, &threads[i]);
	}
	for (i = 0; i < nr_threads; i++)
		pthread_join(threads[i].id, NULL);
	over = true;
	pthread_join(threads[nr_threads].id, NULL);
	for (i = 0; i < nr_threads; i++) {
		if (threads[i].has_ring)
			io_uring_queue_exit(&threads[i].ring);
	}
	for (i = 0; i < FILES; i++)
		close(files[i].fd);
}

static int verdict(const char *what, bool good)
{
	printf("%s %s, seed %llu\n", good ? "ok" : "not ok", what,
	       (unsigned long long)seed);
	return good ? 0 : 1;
}

/* Chance has reached what there is to reach. */
static bool reached_all(void)
{
	static const int errors[] = {
		EINVAL, ENOTTY, EFAULT, E2BIG, ENOENT, EACCES, EBADF, ENOSPC,
		EOVERFLOW, EBUSY,
	};
	bool all = true;
	unsigned int i;

	for (i = KVERBS_CA_OPEN; i < OPS; i++) {
		printf("# operation %u: %llu successes\n", i,
		       (unsigned long long)shared->good[i]);
		all &= shared->good[i] > 0;
	}
	for (i = 0; i < ERRNOS; i++) {
		if (shared->errors[i])
			printf("# %s: %llu\n", strerror(i),
			       (unsigned long long)shared->errors[i]);
	}
	for (i = 0; i < TEST_COUNT(errors); i++)
		all &= shared->errors[errors[i]] > 0;
	return all;
}

static void options(int argc, char **argv)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--requests"))
			wanted = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--threads"))
			nr_threads = atoi(argv[i + 1]);
	}
	if (i < argc || !nr_threads || nr_threads > THREADS_MAX) {
		fprintf(stderr, "usage: ca_fuzz [--requests N] [--seed S] [--threads 1..%d]\n",
			THREADS_MAX);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	int tries = 500, bad = 0;
	char what[128];
	long long pinned;

	options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# seed %llu\n", (unsigned long long)seed);
	emu_make(DEVICE, 2);
	set_up();
	pinned = pinned_pages();
	clock_gettime(CLOCK_MONOTONIC, &start);
	run_all();
	clock_gettime(CLOCK_MONOTONIC, &end);
	while (tries-- && pinned_pages() != pinned)
		moment();
	printf("# %lld s, %llu answers\n", (long long)end.tv_sec - start.tv_sec,
	       (unsigned long long)shared->answers);
	snprintf(what, sizeof(what), "%llu requests",
		 (unsigned long long)shared->requests);
	bad += verdict(what, !shared->failed && shared->requests >= wanted);
	bad += verdict("each operation and each error was reached", reached_all());
	bad += verdict("no page is pinned", pinned_pages() == pinned);
	bad += verdict("nothing is open",
		       !file_has("/sys/kernel/debug/kverbs/" DEVICE "/ca", "handle=") &&
		       !file_has("/sys/kernel/debug/kverbs_emu/" DEVICE "/ca", "handle="));
	emu_tidy();
	printf("1..4\n");
	return !!bad;
}
