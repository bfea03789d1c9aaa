// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile callers of channel-adapter requests.
 *
 *   ca_fuzz [--count N] [--seed S] [--threads T]
 *
 * Threads make requests that are nearly valid: they draw one that should succeed, then replace
 * some members with random values. Requests, input and output are aligned or not, overlap, end
 * at an unmapped page, or are in memory that another thread constantly rewrites. Regions are of
 * system memory, of dma-bufs, and of files that are not dma-bufs. Files are opened, duplicated,
 * closed and handed to forked processes, some of which are killed; tables change, and the
 * device goes and comes. One thread in four uses io_uring.
 *
 * Each answer is checked, as far as nothing else wrote there: only the reported bytes were
 * written, its contents are consistent, reserved members are 0, and nothing in it looks like a
 * kernel address or like uninitialised memory: the patterns of slub_debug=P, of free and of new
 * objects, and of INIT_STACK_ALL_PATTERN. In the end everything is closed, no page is pinned,
 * each operation has succeeded at times, and each error has occurred.
 *
 * The seed determines what a thread draws, but not how the threads interleave.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
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
#define NOBODY		65534

#define THREADS_MAX	16

/* Number of requests of a thread between two events of the same kind. */
#define EVERY_FILE	2000	/* a file is closed, and another opened */
#define EVERY_CHANGE	2000	/* a table changes */
#define EVERY_FORK	20000	/* a child makes requests */
#define EVERY_REMOVAL	50000	/* the device goes and comes */
#define CHILD_REQUESTS	200

struct file files[FILES];
struct shared *shared;
uint64_t seed = 1;
static uint64_t wanted = 100000;
static unsigned int nr_threads = 4;
char *common, *nothing, *constant, *memory;
int fds[FDS];
static atomic_bool over;

/* --- afterwards -------------------------------------------------------------------------- */

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

/* Objects that are gone need not be tried again, or hardly ever. */
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

/* Replaces a file with another one, the same again, or none. */
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
		/* Leaves the number of a closed file behind. */
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

/* --- concurrent events ---------------------------------------------------- */

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

/* Reads events into arbitrary memory. */
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

/* Rewrites the memory that holds requests, regions and answers. */
static void *scribble(void *arg)
{
	struct thread *t = arg;
	uint64_t value;

	while (!over) {
		value = one_in(t, 2) ? strange(t) :
			(uintptr_t)common + below(t, COMMON - PAGE);
		/* If taken for the address of an answer, it must be in common or invalid. */
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

	/* Every second thread has fewer rights. The C library would change all threads. */
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

/* --- all of it ------------------------------------------------------------ */

/* Maps memory followed by an unmapped page, so that no answer can run into other memory. */
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

/* Returns -1 if the kernel cannot make one. */
static int make_dmabuf(void)
{
	struct udmabuf_create create = { .size = DMABUF_SIZE };
	int maker = open("/dev/udmabuf", O_RDWR), file = memfd_create("ca_fuzz",
								 MFD_ALLOW_SEALING);

	if (maker < 0 || ftruncate(file, create.size) ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	create.memfd = file;
	return ioctl(maker, UDMABUF_CREATE, &create);
}

/* Opens two dma-bufs, and files of other kinds; the last number is of no file. */
static void open_fds(void)
{
	int pipes[2];

	fds[0] = make_dmabuf();
	fds[1] = make_dmabuf();
	fds[2] = open(CA_DIR DEVICE, O_RDWR);
	fds[3] = memfd_create("ca_fuzz", 0);
	fds[4] = open("/dev/zero", O_RDWR);
	fds[5] = open("/", O_RDONLY);
	fds[6] = pipe(pipes) ? -1 : pipes[0];
	fds[7] = -1;
}

static void set_up(void)
{
	struct kverbs_ca_request *r;
	unsigned int i;

	open_fds();

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
		a->peer = (void *)(a->space + 3 * SPACE);
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
	close(fds[2]);
}

static int verdict(const char *what, bool good)
{
	printf("%s %s, seed %llu\n", good ? "ok" : "not ok", what,
	       (unsigned long long)seed);
	return good ? 0 : 1;
}

/* Checks that the random requests have covered everything. */
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
	/* Path 0 is that of regions that could not be made; only system memory exists here. */
	for (i = 0; i < PATHS; i++) {
		printf("# path %u: %llu answers\n", i,
		       (unsigned long long)shared->paths[i]);
		all &= shared->paths[i] > 0 || i == KVERBS_CA_PATH_PEER ||
		       i == KVERBS_CA_PATH_P2P ||
		       (i == KVERBS_CA_PATH_DMABUF && fds[0] < 0);
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
		if (!strcmp(argv[i], "--count"))
			wanted = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--threads"))
			nr_threads = atoi(argv[i + 1]);
		else
			break;
	}
	if (i < argc || !wanted || !nr_threads || nr_threads > THREADS_MAX) {
		fprintf(stderr, "usage: ca_fuzz [--count N] [--seed S] [--threads 1..%d]\n",
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
