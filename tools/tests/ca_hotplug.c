// SPDX-License-Identifier: GPL-2.0-only
/*
 * A channel adapter is unplugged while processes have it open, with a PD and memory registered
 * under their handles, and plugged in again.
 *
 * ca_hotplug				carries out the cases
 * ca_hotplug hold <device> <file>	has the device open, as long as the file is there,
 *					whoever unplugs it: opened anew when it comes back,
 *					with files of former times still open. Prints how
 *					many unplugs it has seen with all that set up. Exit
 *					status: 0, or 1 after saying what was not as documented
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE	"t-hotplug"
#define LENGTH	16384
#define FORMER	8	/* files of removed devices, kept open */
#define UNPLUGS	6
#define COMES	20	/* milliseconds between attempts to open a device */

/**
 * struct user - a user that has the device open
 * @fd: its file
 * @handle: the handle opened there
 * @pd: PD under @handle
 * @mr: region under @handle
 */
struct user {
	int fd;
	uint64_t handle;
	uint64_t pd;
	uint64_t mr;
};

static char *memory;

/* --- cases --------------------------------------------------------------------- */

static struct user use_device(void)
{
	struct user u = { .fd = node_open(DEVICE, O_RDWR | O_NONBLOCK) };

	u.handle = must_open(u.fd, 0);
	u.pd = must_alloc_pd(u.fd, u.handle);
	u.mr = must_reg(u.fd, u.handle, u.pd, memory, LENGTH);
	return u;
}

static void setup(void)
{
	memory = pages(LENGTH);
	emu_make(DEVICE, 1);
}

/* The last event was the removal; a reader that has read it is told once more. */
static void expect_hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct kverbs_ca_event e[16];
	ssize_t n;

	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(p.revents & (POLLHUP | POLLERR), POLLHUP | POLLERR);
	while ((n = read(fd, e, sizeof(e))) > 0)
		;
	EXPECT_EQ(n, -1);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(p.revents & (POLLHUP | POLLERR), POLLHUP | POLLERR);
}

/* Tries every request, and everything else that the file supports. */
static void expect_gone(const struct user *u)
{
	char answer[4096];
	uint64_t out;

	EXPECT_EQ(ca_open(u->fd, 0, &out), -ENODEV);
	EXPECT_EQ(ca_query(u->fd, u->handle, answer, sizeof(answer)), -ENODEV);
	EXPECT_EQ(ca_query_port(u->fd, u->handle, 1, answer, sizeof(answer)), -ENODEV);
	EXPECT_EQ(ca_list(u->fd, u->handle, answer, sizeof(answer)), -ENODEV);
	EXPECT_EQ(ca_alloc_pd(u->fd, u->handle, &out), -ENODEV);
	EXPECT_EQ(ca_reg(u->fd, u->handle, u->pd, memory, LENGTH, &out), -ENODEV);
	EXPECT_EQ(ca_dereg(u->fd, u->handle, u->mr), -ENODEV);
	EXPECT_EQ(ca_dealloc_pd(u->fd, u->handle, u->pd), -ENODEV);
	EXPECT_EQ(ca_close(u->fd, u->handle), -ENODEV);
	expect_hung_up(u->fd);
}

static void each_request(void)
{
	struct user u;

	setup();
	u = use_device();
	emu_enable(DEVICE, false);
	expect_gone(&u);
	EXPECT(!close(u.fd));
	emu_enable(DEVICE, true);
	u = use_device();
	EXPECT_EQ(ca_dereg(u.fd, u.handle, u.mr), 0);
	EXPECT_EQ(ca_dealloc_pd(u.fd, u.handle, u.pd), 0);
	EXPECT_EQ(ca_close(u.fd, u.handle), 0);
}

static void many_unplugs(void)
{
	struct user users[UNPLUGS];
	unsigned int i, k;

	setup();
	for (i = 0; i < UNPLUGS; i++) {
		users[i] = use_device();
		EXPECT(must_query(users[i].fd, users[i].handle)->size);
		emu_enable(DEVICE, false);
		for (k = 0; k <= i; k++)
			expect_gone(&users[k]);
		emu_enable(DEVICE, true);
	}
	for (i = 0; i < UNPLUGS; i++)
		EXPECT(!close(users[i].fd));
}

static void unpinned(void)
{
	long long pinned;
	struct user u;

	setup();
	pinned = pinned_pages();
	u = use_device();
	expect_pinned(pinned + LENGTH / sysconf(_SC_PAGESIZE));
	emu_enable(DEVICE, false);
	expect_pinned(pinned);
	memset(memory, 1, LENGTH);
	EXPECT(!close(u.fd));
}

static void open_without_handle(void)
{
	char answer[64];
	uint64_t handle;
	int fd;

	setup();
	fd = node_open(DEVICE, O_RDWR);
	emu_enable(DEVICE, false);
	EXPECT(access(CA_DIR DEVICE, F_OK));
	emu_enable(DEVICE, true);
	EXPECT(!access(CA_DIR DEVICE, F_OK));
	EXPECT_EQ(ca_open(fd, 0, &handle), -ENODEV);
	EXPECT_EQ(ca_query(fd, 1, answer, sizeof(answer)), -ENODEV);
	EXPECT(!close(fd));
}

static const struct test_case cases[] = {
	{ "after an unplug each request is refused, and a new file works", each_request },
	{ "files outlive many unplugs, and stay refused", many_unplugs },
	{ "an unplug gives back the memory", unpinned },
	{ "a file without a handle is of the device that has gone", open_without_handle },
};

/* --- holding a device ----------------------------------------------------------- */

static int complain(const char *what, long ret)
{
	printf("not ok %s: %ld (%s)\n", what, ret, strerror(ret < 0 ? -ret : 0));
	return 1;
}

/* Returns 0, -ENODEV if the device has gone meanwhile, or 1 after reporting an error. */
static int take(struct user *u)
{
	long ret;

	ret = ca_open(u->fd, 0, &u->handle);
	if (!ret)
		ret = ca_alloc_pd(u->fd, u->handle, &u->pd);
	if (!ret)
		ret = ca_reg(u->fd, u->handle, u->pd, memory, LENGTH, &u->mr);
	return ret && ret != -ENODEV ? complain("a device is used", ret) : ret;
}

/* Waits until the device goes. Returns 1 when it has, 0 if asked to stop. */
static int await_removal(struct user *u, const char *stop)
{
	struct kverbs_ca_event e[16];
	struct pollfd p = { .fd = u->fd, .events = POLLIN };

	while (!access(stop, F_OK)) {
		if (poll(&p, 1, 10 * COMES) == 1 && p.revents & POLLHUP)
			return 1;
		while (read(u->fd, e, sizeof(e)) > 0)
			;
	}
	return 0;
}

static int refused(const struct user *u)
{
	char answer[1024];
	uint64_t out;
	long ret;

	ret = ca_query(u->fd, u->handle, answer, sizeof(answer));
	if (ret == -ENODEV)
		ret = ca_alloc_pd(u->fd, u->handle, &out);
	if (ret == -ENODEV)
		ret = ca_close(u->fd, u->handle);
	return ret == -ENODEV ? 0 : complain("a device that has gone", ret);
}

/*
 * Holds a file of the device, with everything set up under it, until the device goes. Returns
 * 1 when that happened, 0 if the device went earlier or the program was asked to stop, -1
 * after reporting an error.
 */
static int hold_once(struct user *u, const char *stop)
{
	int ret = take(u);

	if (ret > 0)
		return -1;
	if (!await_removal(u, stop))
		return 0;
	if (refused(u))
		return -1;
	return !ret;
}

/* Closes the oldest file in this place and opens a new one; -1 if there is no device. */
static int open_anew(struct user *u, const char *path)
{
	if (u->fd > 0)
		close(u->fd);
	*u = (struct user) { .fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) };
	return u->fd;
}

static int hold(const char *device, const char *stop)
{
	struct user former[FORMER] = {}, *u;
	unsigned int opened = 0, seen = 0;
	char path[128];
	int ret;

	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return complain("mmap", -errno);
	snprintf(path, sizeof(path), CA_DIR "%s", device);
	while (!access(stop, F_OK)) {
		u = &former[opened % FORMER];
		if (u->fd > 0 && refused(u))
			return 1;
		if (open_anew(u, path) < 0) {
			poll(NULL, 0, COMES);
			continue;
		}
		opened++;
		ret = hold_once(u, stop);
		if (ret < 0)
			return 1;
		seen += ret;
	}
	printf("%u\n", seen);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "hold"))
		return hold(argv[2], argv[3]);
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
