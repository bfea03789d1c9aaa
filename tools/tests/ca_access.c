// SPDX-License-Identifier: GPL-2.0-only
/*
 * Access rights to a channel adapter, and what remains of a process that ends: modes of the
 * file, handles in other files and processes, limits, namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE		"t-access"
#define SHOWN		"/sys/kernel/debug/kverbs/" DEVICE "/ca"
#define PARAMETERS	"/sys/module/kverbs_ca/parameters/"
#define LENGTH		(64 * 4096)

static int fd;
static uint64_t handle, pd;
static char *memory;
static char answer[ANSWER_MAX];

static void setup(void)
{
	emu_make(DEVICE, 1);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	memory = pages(LENGTH);
}

/* Tries every operation on a handle that exists but that the caller may not use. */
static void expect_useless(int file, uint64_t h, long want)
{
	uint64_t object;

	EXPECT_EQ(ca_query(file, h, answer, sizeof(answer)), want);
	EXPECT_EQ(ca_query_port(file, h, 1, answer, sizeof(answer)), want);
	EXPECT_EQ(ca_alloc_pd(file, h, &object), want);
	EXPECT_EQ(ca_dealloc_pd(file, h, pd), want);
	EXPECT_EQ(ca_reg(file, h, pd, memory, LENGTH, &object), want);
	EXPECT_EQ(ca_dereg(file, h, 1), want);
	EXPECT_EQ(ca_list(file, h, answer, sizeof(answer)), want);
	EXPECT_EQ(ca_close(file, h), want);
}

static void expect_useful(int file, uint64_t h)
{
	uint64_t mine = must_alloc_pd(file, h);

	EXPECT(ca_query(file, h, answer, sizeof(answer)) > 0);
	EXPECT(ca_list(file, h, answer, sizeof(answer)) > 0);
	EXPECT_EQ(ca_dealloc_pd(file, h, mine), 0);
}

/* --- files ------------------------------------------------------------------- */

static void look_only(void)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_request r = {
		.out = (uintptr_t)&attr,
		.out_len = sizeof(attr),
	};
	uint64_t object;

	setup();
	fd = node_open(DEVICE, O_RDONLY);
	handle = must_open(fd, 0);
	EXPECT(ca_query(fd, handle, answer, sizeof(answer)) > 0);
	EXPECT(ca_query_port(fd, handle, 1, answer, sizeof(answer)) > 0);
	EXPECT(ca_list(fd, handle, answer, sizeof(answer)) > 0);
	EXPECT_EQ(ca_alloc_pd(fd, handle, &object), -EBADF);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), -EBADF);
	EXPECT_EQ(ca_reg(fd, handle, pd, memory, LENGTH, &object), -EBADF);
	EXPECT_EQ(ca_dereg(fd, handle, 1), -EBADF);
	r.handle = handle;
	r.object = 1;
	EXPECT_EQ(ca_do(fd, KVERBS_CA_QUERY_MR, &r), -ENOENT);
	EXPECT_EQ(ca_close(fd, handle), 0);
}

static void mode_of_node(void)
{
	struct stat st;

	setup();
	EXPECT(!stat(CA_DIR DEVICE, &st));
	EXPECT_EQ(st.st_mode & 07777, 0644);
	EXPECT(S_ISCHR(st.st_mode) && st.st_uid == 0);
	become_nobody();
	EXPECT(open(CA_DIR DEVICE, O_RDWR) == -1 && errno == EACCES);
	fd = node_open(DEVICE, O_RDONLY);
	EXPECT(ca_query(fd, must_open(fd, 0), answer, sizeof(answer)) > 0);
}

static void other_file(void)
{
	int other;

	setup();
	other = node_open(DEVICE, O_RDWR);
	expect_useless(other, handle, -ENOENT);
	emu_make("t-access2", 1);
	other = node_open("t-access2", O_RDWR);
	expect_useless(other, handle, -ENOENT);
}

static void dup_of_file(void)
{
	int other;

	setup();
	other = dup(fd);
	expect_useful(other, handle);
	close(fd);
	expect_useful(other, handle);
}

/* --- processes ------------------------------------------------------------------ */

static void in_child(void *arg)
{
	(void)arg;
	expect_useless(fd, handle, -EACCES);
	expect_useful(fd, must_open(fd, 0));
}

static void forked(void)
{
	setup();
	test_join(test_spawn(in_child, NULL));
	expect_useful(fd, handle);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), 0);
	EXPECT_EQ(ca_close(fd, handle), 0);
}

/* Has separate memory, but shares the table of files. */
static int in_sibling(void *arg)
{
	in_child(arg);
	return 0;
}

static void files_in_common(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int pid;

	setup();
	pid = clone(in_sibling, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	EXPECT(pid > 0);
	test_join(pid);
	expect_useful(fd, handle);
}

static void in_child_shared(void *arg)
{
	(void)arg;
	expect_useful(fd, handle);
}

static void forked_shared(void)
{
	setup();
	handle = must_open(fd, KVERBS_CA_SHARED);
	test_join(test_spawn(in_child_shared, NULL));
	expect_useful(fd, handle);
}

static void *in_thread(void *arg)
{
	expect_useful(fd, handle);
	*(uint64_t *)arg = must_open(fd, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	uint64_t theirs;

	setup();
	EXPECT(!pthread_create(&thread, NULL, in_thread, &theirs));
	EXPECT(!pthread_join(thread, NULL));
	expect_useful(fd, theirs);
}

/* Runs after exec: argv holds the file, the handle and the expected result. */
static int after_exec(char **argv)
{
	long want = atol(argv[4]), ret;
	char shown[64];
	pid_t pid;

	ret = ca_query(atoi(argv[2]), strtoull(argv[3], NULL, 0), answer,
		       sizeof(answer));
	if (want < 0 ? ret != want : ret <= 0) {
		printf("after exec: %ld, not %ld\n", ret, want);
		return 3;
	}
	/* A process that ends with the file open waits for the closing of earlier ones. */
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	/* Nothing may be left under the handle either, before the file is closed. */
	snprintf(shown, sizeof(shown), "handle=%s ", argv[3]);
	if (want < 0 && file_has(SHOWN, shown)) {
		printf("after exec the handle is still open\n");
		return 4;
	}
	return 0;
}

static void run_exec(void *arg)
{
	char file[16], number[32], want[16];
	char *argv[6] = { "ca_access", "--after-exec", file, number, want };

	handle = must_open(fd, arg ? KVERBS_CA_SHARED : 0);
	must_reg(fd, handle, must_alloc_pd(fd, handle), memory, LENGTH);
	fcntl(fd, F_SETFD, 0);
	snprintf(file, sizeof(file), "%d", fd);
	snprintf(number, sizeof(number), "%#llx", (unsigned long long)handle);
	snprintf(want, sizeof(want), "%d", arg ? 1 : -ENOENT);
	execv("/proc/self/exe", argv);
	test_fail(__FILE__, __LINE__, "execv: %s", strerror(errno));
}

static void exec_private(void)
{
	long long pinned;

	setup();
	pinned = pinned_pages();
	test_join(test_spawn(run_exec, NULL));
	expect_pinned(pinned);
}

static void exec_shared(void)
{
	setup();
	test_join(test_spawn(run_exec, &fd));
}

/* --- files that are sent ----------------------------------------------------------- */

static union {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
} control;

static struct msghdr message(struct iovec *iov)
{
	return (struct msghdr) {
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
}

static void send_file(int socket, int file, uint64_t h)
{
	struct iovec iov = { &h, sizeof(h) };
	struct msghdr msg = message(&iov);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(file));
	EXPECT_EQ(sendmsg(socket, &msg, 0), sizeof(h));
}

static int receive_file(int socket, uint64_t *h)
{
	struct iovec iov = { h, sizeof(*h) };
	struct msghdr msg = message(&iov);
	int file;

	EXPECT_EQ(recvmsg(socket, &msg, 0), sizeof(*h));
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(file));
	return file;
}

static int sockets[2];

static void in_receiver(void *arg)
{
	uint64_t h;
	int file;

	(void)arg;
	file = receive_file(sockets[1], &h);
	expect_useless(file, h, -EACCES);
	file = receive_file(sockets[1], &h);
	expect_useful(file, h);
}

/* The receiver exists before the file is opened, and is user nobody. */
static void sent(void)
{
	int pid;

	EXPECT(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets));
	emu_make(DEVICE, 1);
	memory = pages(LENGTH);
	pid = test_spawn(in_receiver, NULL);
	fd = node_open(DEVICE, O_RDWR);
	send_file(sockets[0], fd, must_open(fd, 0));
	send_file(sockets[0], fd, must_open(fd, KVERBS_CA_SHARED));
	test_join(pid);
}

/* --- limits ------------------------------------------------------------------------- */

static void in_memlock(void *arg)
{
	struct rlimit limit = { 16 * 4096, 16 * 4096 };
	uint64_t mr, other;

	(void)arg;
	EXPECT(!setrlimit(RLIMIT_MEMLOCK, &limit));
	become_nobody();
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	EXPECT_EQ(ca_reg(fd, handle, pd, memory, 17 * 4096, &mr), -ENOMEM);
	mr = must_reg(fd, handle, pd, memory, 12 * 4096);
	EXPECT_EQ(ca_reg(fd, handle, pd, memory, 5 * 4096, &other), -ENOMEM);
	other = must_reg(fd, handle, pd, memory, 4 * 4096);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	mr = must_reg(fd, handle, pd, memory, 12 * 4096);
	EXPECT_EQ(ca_reg(fd, handle, pd, memory, 1, &other), -ENOMEM);
}

static void memlock(void)
{
	setup();
	test_join(test_spawn(in_memlock, NULL));
	must_reg(fd, handle, pd, memory, LENGTH);
}

static void in_max_handles(void *arg)
{
	uint64_t h[4], more;
	int i;

	(void)arg;
	fd = node_open(DEVICE, O_RDWR);
	become_nobody();
	for (i = 0; i < 4; i++)
		h[i] = must_open(fd, 0);
	EXPECT_EQ(ca_open(fd, 0, &more), -EMFILE);
	EXPECT_EQ(ca_close(fd, h[1]), 0);
	must_open(fd, 0);
	EXPECT_EQ(ca_open(fd, 0, &more), -EMFILE);
}

static void max_handles(void)
{
	int i;

	setup();
	EXPECT(file_write(PARAMETERS "ca_max_handles", "4"));
	test_join(test_spawn(in_max_handles, NULL));
	for (i = 0; i < 10; i++)
		must_open(fd, 0);
}

static void in_max_objects(void *arg)
{
	uint64_t more, mr;

	(void)arg;
	become_nobody();
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	mr = must_reg(fd, handle, pd, memory, 100);
	must_alloc_pd(fd, handle);
	EXPECT_EQ(ca_alloc_pd(fd, handle, &more), -EDQUOT);
	EXPECT_EQ(ca_reg(fd, handle, pd, memory, 100, &more), -EDQUOT);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	must_alloc_pd(fd, handle);
	must_alloc_pd(fd, must_open(fd, 0));
}

static void max_objects(void)
{
	int i;

	setup();
	EXPECT(file_write(PARAMETERS "ca_max_objects", "3"));
	test_join(test_spawn(in_max_objects, NULL));
	for (i = 0; i < 10; i++)
		must_alloc_pd(fd, handle);
}

/* --- namespaces ----------------------------------------------------------------------- */

/* Counts the visible GIDs of port 1, and checks that nothing of the others is visible. */
static int gids_seen(int file, uint64_t h)
{
	struct kverbs_ca_attr *attr = must_query(file, h);
	struct kverbs_ca_port_attr *port = port_of(attr, 0);
	static const unsigned char zero[16];
	struct kverbs_ca_gid *gid;
	unsigned int i;
	int seen = 0;

	for (i = 0; i < port->gid_count; i++) {
		gid = gid_of(port, i);
		if (gid->type != KVERBS_CA_GID_NONE) {
			EXPECT_EQ(gid->netdev, port->netdev);
			seen++;
			continue;
		}
		EXPECT(!memcmp(gid->gid, zero, sizeof(zero)));
		EXPECT_EQ(gid->netdev, 0);
	}
	EXPECT(!port->netdev == !seen);
	return seen;
}

/* A short answer is the beginning of the complete one, with or without zeros in it. */
static void expect_beginnings(int file, uint64_t h)
{
	static unsigned char whole[ANSWER_MAX], part[ANSWER_MAX];
	long size = ca_query(file, h, whole, sizeof(whole));
	long len;

	EXPECT(size > 0);
	for (len = 8; len < size; len++) {
		memset(part, UNTOUCHED, size);
		EXPECT_EQ(ca_query(file, h, part, len), -EOVERFLOW);
		EXPECT(!memcmp(part, whole, len));
		EXPECT(part[len] == UNTOUCHED);
	}
}

static void in_other_net(void *arg)
{
	uint32_t size = must_query(fd, handle)->size;
	int mine;

	(void)arg;
	EXPECT(!unshare(CLONE_NEWNET));
	mine = node_open(DEVICE, O_RDWR);
	handle = must_open(mine, 0);
	EXPECT_EQ(gids_seen(mine, handle), 0);
	expect_beginnings(mine, handle);
	EXPECT_EQ(must_query(mine, handle)->size, size);
	EXPECT_EQ(ca_query_port(mine, handle, 1, answer, sizeof(answer)),
		  port_of(must_query(mine, handle), 0)->size);
	EXPECT_EQ(((struct kverbs_ca_port_attr *)answer)->netdev, 0);
	/* The file belongs to the namespace where it was opened. */
	EXPECT(gids_seen(fd, must_open(fd, 0)) > 0);
}

static void run_other_net(void *arg)
{
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	in_other_net(arg);
}

static void other_net(void)
{
	if (access("/sys/class/net/dummy0", F_OK))
		test_skip("there is no dummy0");
	EXPECT(!mkdir(EMU_CONFIG DEVICE, 0755));
	emu_set(DEVICE "/netdev", "dummy0");
	emu_enable(DEVICE, true);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	EXPECT_SOON(gids_seen(fd, handle) > 0);
	EXPECT_EQ(port_of(must_query(fd, handle), 0)->link_layer,
		  KVERBS_CA_LINK_ETHERNET);
	test_join(test_spawn(run_other_net, NULL));
}

/* Checks the line of a handle in debugfs. */
static bool shows(uint64_t h, int pid)
{
	char line[128], text[32];
	static char all[65536];
	char *at, *end;

	EXPECT(file_read(SHOWN, all, sizeof(all)));
	snprintf(line, sizeof(line), "handle=%#llx user ", (unsigned long long)h);
	at = strstr(all, line);
	if (!at)
		return false;
	end = strchr(at, '\n');
	if (end)
		*end = 0;
	snprintf(text, sizeof(text), " pid=%d ", pid);
	return strstr(at, text);
}

static void in_pid_namespace(void *arg)
{
	uint64_t *theirs = arg, mine;

	EXPECT_EQ(getpid(), 1);
	/* So that the handle does not have the first number of its file. */
	EXPECT_EQ(ca_close(fd, must_open(fd, 0)), 0);
	mine = must_open(fd, 0);
	EXPECT(shows(mine, 1));
	EXPECT(shows(*theirs, 0));
	EXPECT(!shows(*theirs, getppid() ? getppid() : -1));
}

static void run_pid_namespace(void *arg)
{
	EXPECT(!unshare(CLONE_NEWPID));
	test_join(test_spawn(in_pid_namespace, arg));
}

static void other_pids(void)
{
	setup();
	EXPECT(shows(handle, getpid()));
	test_join(test_spawn(run_pid_namespace, &handle));
	EXPECT(shows(handle, getpid()));
}

static void what_is_shown(void)
{
	setup();
	EXPECT(file_has(SHOWN, " user owner=ca_access pid="));
	EXPECT(file_has(SHOWN, " pds=1 mrs=0 bytes=0"));
	must_reg(fd, handle, pd, memory, LENGTH);
	EXPECT(file_has(SHOWN, " pds=1 mrs=1 bytes=262144"));
	must_open(fd, KVERBS_CA_SHARED);
	EXPECT(file_has(SHOWN, " shared"));
	close(fd);
	EXPECT(!file_has(SHOWN, "handle="));
}

/* --- ends --------------------------------------------------------------------------------- */

static int ready[2];

static void tell_ready(void)
{
	EXPECT_EQ(write(ready[1], "x", 1), 1);
}

static void wait_ready(void)
{
	char x;

	EXPECT_EQ(read(ready[0], &x, 1), 1);
}

static void with_regions(void)
{
	int i;

	fd = node_open(DEVICE, O_RDWR);
	for (i = 0; i < 4; i++) {
		handle = must_open(fd, 0);
		pd = must_alloc_pd(fd, handle);
		must_reg(fd, handle, pd, memory, LENGTH);
		must_reg(fd, handle, pd, memory + 4096, 8192);
	}
	tell_ready();
}

static void in_killed(void *arg)
{
	(void)arg;
	with_regions();
	pause();
}

static void setup_end(void)
{
	emu_make(DEVICE, 1);
	memory = pages(LENGTH);
	EXPECT(!pipe(ready));
}

static void end(int pid, int signal)
{
	int status;

	EXPECT(!kill(pid, signal));
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

static void killed(void)
{
	long long pinned;
	int pid;

	setup_end();
	pinned = pinned_pages();
	pid = test_spawn(in_killed, NULL);
	wait_ready();
	expect_pinned(pinned + 4 * (LENGTH / 4096 + 2));
	end(pid, SIGKILL);
	expect_pinned(pinned);
	EXPECT(!file_has(SHOWN, "handle="));
}

/* Tells the child of the killed process to check what is left. */
static int keeper[2];

static void in_keeper(void *arg)
{
	char x;

	(void)arg;
	EXPECT_EQ(read(keeper[0], &x, 1), 1);
	expect_useless(fd, handle, -ENOENT);
	expect_useful(fd, must_open(fd, 0));
	tell_ready();
	pause();
}

/* A process with a region, and its child. */
static int with_keeper(void)
{
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	must_reg(fd, handle, pd, memory, LENGTH);
	return test_spawn(in_keeper, NULL);
}

static void in_killed_parent(void *arg)
{
	int pid = with_keeper();

	(void)arg;
	EXPECT_EQ(write(ready[1], &pid, sizeof(pid)), sizeof(pid));
	pause();
}

/* It ends without a descriptor of the file; only its child has one. */
static void in_killed_closer(void *arg)
{
	int pid = with_keeper();

	(void)arg;
	EXPECT(!close(fd));
	EXPECT_EQ(write(ready[1], &pid, sizeof(pid)), sizeof(pid));
	pause();
}

static void leaves_nothing_to_child(void (*parent)(void *arg))
{
	long long pinned;
	int pid, child;

	setup_end();
	EXPECT(!pipe(keeper));
	pinned = pinned_pages();
	pid = test_spawn(parent, NULL);
	EXPECT_EQ(read(ready[0], &child, sizeof(child)), sizeof(child));
	expect_pinned(pinned + LENGTH / 4096);
	end(pid, SIGKILL);
	expect_pinned(pinned);
	EXPECT(!kill(child, 0));
	EXPECT_EQ(write(keeper[1], "x", 1), 1);
	wait_ready();
	EXPECT(!kill(child, SIGKILL));
	EXPECT_SOON(!file_has(SHOWN, "handle="));
}

static void killed_with_child(void)
{
	leaves_nothing_to_child(in_killed_parent);
}

static void killed_after_close(void)
{
	leaves_nothing_to_child(in_killed_closer);
}

static void in_sharer(void *arg)
{
	(void)arg;
	handle = must_open(fd, KVERBS_CA_SHARED);
	pd = must_alloc_pd(fd, handle);
	must_reg(fd, handle, pd, memory, LENGTH);
}

static void shared_stays(void)
{
	long long pinned;

	setup();
	pinned = pinned_pages();
	test_join(test_spawn(in_sharer, NULL));
	expect_pinned(pinned + LENGTH / 4096);
	close(fd);
	expect_pinned(pinned);
}

static void in_exit(void *arg)
{
	(void)arg;
	with_regions();
}

static void exited(void)
{
	long long pinned;

	setup_end();
	pinned = pinned_pages();
	test_join(test_spawn(in_exit, NULL));
	wait_ready();
	expect_pinned(pinned);
}

static void closed(void)
{
	long long pinned;
	int other;

	setup();
	other = dup(fd);
	pinned = pinned_pages();
	must_reg(fd, handle, pd, memory, LENGTH);
	close(fd);
	expect_pinned(pinned + LENGTH / 4096);
	close(other);
	expect_pinned(pinned);
}

static void *churn(void *arg)
{
	uint64_t mr;

	while (!*(volatile bool *)arg) {
		if (!ca_reg(fd, handle, pd, memory, 8192, &mr))
			ca_dereg(fd, handle, mr);
	}
	return NULL;
}

static void in_busy(void *arg)
{
	static bool stop;
	pthread_t thread;
	int i;

	(void)arg;
	with_regions();
	for (i = 0; i < 3; i++)
		EXPECT(!pthread_create(&thread, NULL, churn, &stop));
	churn(&stop);
}

static void killed_busy(void)
{
	long long pinned;
	int pid, i;

	setup_end();
	pinned = pinned_pages();
	for (i = 0; i < 8; i++) {
		pid = test_spawn(in_busy, NULL);
		wait_ready();
		usleep(i * 3000);
		end(pid, SIGKILL);
		expect_pinned(pinned);
	}
}

#define ENDING	8
#define MANY	3000

/* Has so much to free that the removal of the device takes a while. */
static void in_heavy(void *arg)
{
	int i;

	(void)arg;
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	for (i = 0; i < MANY; i++)
		must_reg(fd, handle, pd, memory, 4096);
	tell_ready();
	pause();
}

/* It ends after the removal of the device has begun. */
static void in_ending(void *arg)
{
	(void)arg;
	with_regions();
	while (ca_query(fd, handle, answer, sizeof(answer)) > 0)
		;
}

/* Each process closes what the removal of the device closes as well. */
static void ended_as_device_goes(void)
{
	int pids[ENDING], heavy, round, i;
	long long pinned;

	setup_end();
	pinned = pinned_pages();
	for (round = 0; round < 4; round++) {
		heavy = test_spawn(in_heavy, NULL);
		wait_ready();
		for (i = 0; i < ENDING; i++) {
			pids[i] = test_spawn(in_ending, NULL);
			wait_ready();
		}
		emu_enable(DEVICE, false);
		for (i = 0; i < ENDING; i++)
			test_join(pids[i]);
		expect_pinned(pinned);
		end(heavy, SIGKILL);
		emu_enable(DEVICE, true);
	}
}

static void tidy(void)
{
	file_write(PARAMETERS "ca_max_handles", "64");
	file_write(PARAMETERS "ca_max_objects", "16384");
	emu_tidy();
}

static const struct test_case cases[] = {
	{ "a file opened to read is to look only", look_only },
	{ "everybody may look, root may do", mode_of_node },
	{ "a handle is nothing in another file", other_file },
	{ "a handle is good in a duplicate of its file", dup_of_file },
	{ "a handle is useless in a forked process", forked },
	{ "a handle is useless in a process with the same files", files_in_common },
	{ "a shared handle is good in a forked process", forked_shared },
	{ "a handle is the whole process's, not the thread's", threads },
	{ "a handle is useless after exec", exec_private },
	{ "a shared handle outlives exec", exec_shared },
	{ "a file that is sent takes only shared handles along", sent },
	{ "pinned memory is limited by RLIMIT_MEMLOCK", memlock },
	{ "open adapters of a file are limited", max_handles },
	{ "objects of a handle are limited", max_objects },
	{ "GIDs of another network namespace are hidden", other_net },
	{ "processes are shown as the reader's namespace has them", other_pids },
	{ "debugfs shows who has what", what_is_shown },
	{ "a process that is killed leaves nothing", killed },
	{ "a process that is killed leaves nothing to its child", killed_with_child },
	{ "nor if it had closed the file before", killed_after_close },
	{ "a process that is killed in the midst of requests leaves nothing", killed_busy },
	{ "processes may end while the device does", ended_as_device_goes },
	{ "a shared handle stays with the file", shared_stays },
	{ "a process that exits leaves nothing", exited },
	{ "the last close of a file leaves nothing", closed },
};

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--after-exec"))
		return after_exec(argv);
	return test_main(argc, argv, cases, TEST_COUNT(cases), tidy);
}
