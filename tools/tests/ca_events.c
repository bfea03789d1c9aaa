// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a channel adapter: reading, polling, losing events and reporting that, and the last
 * event. Also built for 32 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE	"t-events"
#define RING	128	/* events that a file queues */

typedef struct kverbs_ca_event event;

static int fd;
static uint64_t handle;

static int drain(int file)
{
	event e[16];
	ssize_t ret;
	int n = 0;

	while ((ret = read(file, e, sizeof(e))) > 0)
		n += ret / sizeof(event);
	EXPECT(ret == -1 && errno == EAGAIN);
	return n;
}

/* Creating the device causes events of its own, a moment later. */
static void settle(void)
{
	int quiet = 0;

	while (quiet++ < 5) {
		moment();
		if (drain(fd))
			quiet = 0;
	}
}

static void setup(void)
{
	emu_make(DEVICE, 1);
	fd = node_open(DEVICE, O_RDWR | O_NONBLOCK);
	handle = must_open(fd, 0);
	settle();
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static bool readable(int file, int milliseconds)
{
	struct pollfd p = { .fd = file, .events = POLLIN };

	return poll(&p, 1, milliseconds) == 1 && p.revents & POLLIN;
}

static event next(int file)
{
	event e;

	memset(&e, UNTOUCHED, sizeof(e));
	EXPECT(readable(file, 10000));
	EXPECT_EQ(read(file, &e, sizeof(e)), sizeof(e));
	EXPECT_EQ(e.size, sizeof(e));
	return e;
}

/* Waits for the next event of a kind; a change may also cause others. */
static event expect_event(uint32_t type, uint32_t port)
{
	event e;

	do
		e = next(fd);
	while (e.type != type);
	EXPECT_EQ(e.port, port);
	EXPECT_EQ(e.lost, 0);
	return e;
}

static void poke(void)
{
	static int last = 1;
	char text[32];

	/* Each call changes the table again, and so causes another event. */
	snprintf(text, sizeof(text), "1 %#x", 0x8000 | ++last);
	emu_set(DEVICE "/port1/pkeys", text);
}

/* --- which events are reported ------------------------------------------------- */

static void each_kind(void)
{
	static const struct {
		const char *file;
		const char *value;
		uint32_t type;
	} changes[] = {
		{ "state", "down", KVERBS_CA_EVENT_PORT_ERR },
		{ "state", "active", KVERBS_CA_EVENT_PORT_ACTIVE },
		{ "pkeys", "1 0x8001", KVERBS_CA_EVENT_PKEY_CHANGE },
		{ "gids", "1 fe80::9", KVERBS_CA_EVENT_GID_CHANGE },
		{ "lid", "4712", KVERBS_CA_EVENT_LID_CHANGE },
		{ "sm_lid", "4713", KVERBS_CA_EVENT_SM_CHANGE },
	};
	uint64_t last = 0;
	long long before;
	unsigned int i;
	char path[64];
	event e;

	setup();
	for (i = 0; i < TEST_COUNT(changes); i++) {
		before = now();
		snprintf(path, sizeof(path), DEVICE "/port1/%s", changes[i].file);
		emu_set(path, changes[i].value);
		e = expect_event(changes[i].type, 1);
		EXPECT((long long)e.time_ns >= before &&
		       (long long)e.time_ns <= now());
		EXPECT(e.generation > last);
		EXPECT(e.generation <= generation(fd, handle));
		last = e.generation;
		settle();
	}
}

#define INJECT	"/sys/kernel/debug/kverbs_emu/" DEVICE "/event"

static void injected(void)
{
	setup();
	EXPECT(file_write(INJECT, "client_reregister 1"));
	expect_event(KVERBS_CA_EVENT_CLIENT_REREGISTER, 1);
	EXPECT(file_write(INJECT, "device_fatal"));
	expect_event(KVERBS_CA_EVENT_DEVICE_FATAL, 0);
}

/* The change that an event reports is visible when the event is read. */
static void in_time(void)
{
	struct kverbs_ca_port_attr *port;
	char text[32];
	int i;

	setup();
	for (i = 2; i < 200; i++) {
		snprintf(text, sizeof(text), "1 %#x", 0x8000 | i);
		emu_set(DEVICE "/port1/pkeys", text);
		expect_event(KVERBS_CA_EVENT_PKEY_CHANGE, 1);
		port = port_of(must_query(fd, handle), 0);
		EXPECT_EQ(pkey_of(port, 1), 0x8000 | i);
	}
}

static void none(void)
{
	char buffer[64];

	setup();
	EXPECT(!readable(fd, 0));
	EXPECT(read(fd, buffer, sizeof(buffer)) == -1 && errno == EAGAIN);
	EXPECT(read(fd, buffer, sizeof(event) - 1) == -1 && errno == EINVAL);
	EXPECT(read(fd, buffer, 0) <= 0);
	EXPECT(write(fd, buffer, sizeof(buffer)) == -1 && errno == EINVAL);
	poke();
	EXPECT(readable(fd, 10000));
	EXPECT(read(fd, buffer, sizeof(event) - 1) == -1 && errno == EINVAL);
	expect_event(KVERBS_CA_EVENT_PKEY_CHANGE, 1);
}

/* --- how events are read ----------------------------------------------------------- */

static void expect_untouched(const void *p, size_t len)
{
	const unsigned char *b = p;

	while (len--)
		EXPECT_EQ(b[len], UNTOUCHED);
}

/* Waits until @n events are queued, by the count of another file. */
static void poke_and_count(int other, int n)
{
	while (n--) {
		poke();
		next(other);
	}
}

static void several_at_once(void)
{
	char buffer[10 * sizeof(event)];
	struct iovec iov[2] = {
		{ buffer, 40 }, { buffer + 40, 120 },
	};
	int other;

	setup();
	other = node_open(DEVICE, O_RDONLY);
	poke_and_count(other, 8);
	memset(buffer, UNTOUCHED, sizeof(buffer));
	EXPECT_EQ(read(fd, buffer, 2 * sizeof(event) + 10), 2 * sizeof(event));
	expect_untouched(buffer + 2 * sizeof(event), 8 * sizeof(event));
	EXPECT_EQ(read(fd, buffer + 1, sizeof(event)), sizeof(event));
	memset(buffer, UNTOUCHED, sizeof(buffer));
	EXPECT_EQ(readv(fd, iov, 2), 5 * sizeof(event));
	EXPECT(!readable(fd, 0));
	expect_untouched(buffer + 160, sizeof(buffer) - 160);
}

static void faults(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p;

	setup();
	p = pages(2 * page);
	EXPECT(!mprotect(p + page, page, PROT_NONE));
	poke();
	EXPECT(readable(fd, 10000));
	EXPECT(read(fd, p + page, page) == -1 && errno == EFAULT);
	EXPECT(read(fd, p + page - 8, page) == -1 && errno == EFAULT);
	EXPECT(read(fd, (void *)4096, page) == -1 && errno == EFAULT);
	EXPECT_EQ(read(fd, p + page - sizeof(event), page), sizeof(event));
}

static void *poke_later(void *arg)
{
	(void)arg;
	moment();
	moment();
	poke();
	return NULL;
}

static void blocking(void)
{
	pthread_t thread;
	int file, i;
	event e;

	setup();
	file = node_open(DEVICE, O_RDONLY);
	for (i = 0; i < 5; i++) {
		EXPECT(!pthread_create(&thread, NULL, poke_later, NULL));
		EXPECT_EQ(read(file, &e, sizeof(e)), sizeof(e));
		EXPECT_EQ(e.type, KVERBS_CA_EVENT_PKEY_CHANGE);
		EXPECT(!pthread_join(thread, NULL));
	}
}

static void handler(int signal)
{
	(void)signal;
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = handler };
	/* Repeated, as the first may come before the process waits. */
	struct itimerspec when = {
		.it_value.tv_nsec = 50 * 1000 * 1000,
		.it_interval.tv_nsec = 50 * 1000 * 1000,
	};
	struct sigevent how = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGUSR1,
	};
	timer_t timer;
	event e;
	int file;

	setup();
	file = node_open(DEVICE, O_RDONLY);
	EXPECT(!sigaction(SIGUSR1, &sa, NULL));
	EXPECT(!timer_create(CLOCK_MONOTONIC, &how, &timer));
	EXPECT(!timer_settime(timer, 0, &when, NULL));
	EXPECT(read(file, &e, sizeof(e)) == -1 && errno == EINTR);
}

static void epolled(void)
{
	struct epoll_event level = { .events = EPOLLIN, .data.u32 = 1 };
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET, .data.u32 = 2 };
	struct epoll_event got[4];
	int a, b;

	setup();
	a = epoll_create1(0);
	b = epoll_create1(0);
	EXPECT(!epoll_ctl(a, EPOLL_CTL_ADD, fd, &level));
	EXPECT(!epoll_ctl(b, EPOLL_CTL_ADD, fd, &edge));
	EXPECT_EQ(epoll_wait(a, got, 4, 0), 0);
	EXPECT_EQ(epoll_wait(b, got, 4, 0), 0);
	poke();
	EXPECT_EQ(epoll_wait(a, got, 4, 10000), 1);
	EXPECT_EQ(got[0].data.u32, 1);
	EXPECT_EQ(epoll_wait(a, got, 4, 0), 1);
	EXPECT_EQ(epoll_wait(b, got, 4, 10000), 1);
	EXPECT_EQ(epoll_wait(b, got, 4, 0), 0);
	drain(fd);
	EXPECT_EQ(epoll_wait(a, got, 4, 0), 0);
	poke();
	EXPECT_EQ(epoll_wait(b, got, 4, 10000), 1);
}

static void each_file(void)
{
	int other;
	event a, b;

	setup();
	other = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	poke();
	a = next(fd);
	b = next(other);
	EXPECT_EQ(a.type, b.type);
	EXPECT_EQ(a.port, b.port);
	EXPECT_EQ(a.generation, b.generation);
	EXPECT(!readable(fd, 0) && !readable(other, 0));
}

/* --- too many ------------------------------------------------------------------------ */

static void overflow(void)
{
	uint64_t last = 0;
	event e;
	int slow, counter, i;

	setup();
	slow = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	/* Events go to files in the order in which they were opened. */
	counter = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	poke_and_count(counter, RING + 70);
	for (i = 0; i < RING; i++) {
		e = next(slow);
		EXPECT_EQ(e.type, KVERBS_CA_EVENT_PKEY_CHANGE);
		EXPECT(e.generation > last);
		last = e.generation;
	}
	e = next(slow);
	EXPECT_EQ(e.type, KVERBS_CA_EVENT_OVERFLOW);
	EXPECT_EQ(e.lost, 70);
	EXPECT_EQ(e.port, 0);
	EXPECT_EQ(e.generation, generation(fd, handle));
	EXPECT(!readable(slow, 0));
	poke_and_count(counter, 1);
	EXPECT_EQ(next(slow).type, KVERBS_CA_EVENT_PKEY_CHANGE);
}

/* The loss is reported in the place of the lost events. */
static void overflow_in_place(void)
{
	int slow, counter, i, n, seen = 0, lost = 0;
	event e;

	setup();
	slow = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	/* Events go to files in the order in which they were opened. */
	counter = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	poke_and_count(counter, RING + 10);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(next(slow).type, KVERBS_CA_EVENT_PKEY_CHANGE);
	poke_and_count(counter, 5);
	for (n = 20; readable(slow, 0); n++) {
		e = next(slow);
		lost += e.lost;
		seen += e.type == KVERBS_CA_EVENT_PKEY_CHANGE;
		EXPECT_EQ(e.type == KVERBS_CA_EVENT_OVERFLOW, n == RING);
	}
	EXPECT_EQ(lost, 10);
	EXPECT_EQ(seen, RING + 5 - 20);
}

/* However a process reads, reported and lost events add up to all events. */
static void none_unaccounted(void)
{
	int slow, counter, total = 0, round, i;
	unsigned int got = 0;
	event e;

	setup();
	srand(5);
	slow = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	counter = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	for (round = 0; round < 12; round++) {
		i = rand() % 100;
		total += i;
		poke_and_count(counter, i);
		for (i = rand() % 100; i > 0 && readable(slow, 0); i--) {
			e = next(slow);
			got += e.type == KVERBS_CA_EVENT_OVERFLOW ? e.lost : 1;
		}
	}
	while (readable(slow, 0)) {
		e = next(slow);
		got += e.type == KVERBS_CA_EVENT_OVERFLOW ? e.lost : 1;
	}
	EXPECT_EQ(got, total);
}

/* --- several readers --------------------------------------------------------------------- */

#define READERS	4

static int common;
static unsigned int counts[READERS], ends[READERS];

static void *reader(void *arg)
{
	unsigned int i = (uintptr_t)arg;
	event e;

	for (;;) {
		if (read(common, &e, sizeof(e)) != sizeof(e)) {
			EXPECT_EQ(errno, ENODEV);
			return NULL;
		}
		if (e.type == KVERBS_CA_EVENT_REMOVED)
			ends[i]++;
		else
			counts[i] += e.type == KVERBS_CA_EVENT_OVERFLOW ?
				     e.lost : 1;
	}
}

static void several_readers(void)
{
	unsigned int i, all = 0, removed = 0;
	pthread_t threads[READERS];

	setup();
	common = node_open(DEVICE, O_RDONLY);
	for (i = 0; i < READERS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, reader,
				       (void *)(uintptr_t)i));
	poke_and_count(fd, 200);
	emu_drop(DEVICE);
	for (i = 0; i < READERS; i++) {
		EXPECT(!pthread_join(threads[i], NULL));
		all += counts[i];
		removed += ends[i];
	}
	EXPECT_EQ(all, 200);
	EXPECT_EQ(removed, 1);
}

/* --- removal -------------------------------------------------------------------------------- */

static void removal(void)
{
	struct pollfd p = { .events = POLLIN };
	event e;

	setup();
	poke();
	EXPECT(readable(fd, 10000));
	emu_drop(DEVICE);
	p.fd = fd;
	EXPECT_EQ(poll(&p, 1, 10000), 1);
	EXPECT_EQ(p.revents, POLLIN | POLLHUP | POLLERR);
	EXPECT_EQ(next(fd).type, KVERBS_CA_EVENT_PKEY_CHANGE);
	e = next(fd);
	EXPECT_EQ(e.type, KVERBS_CA_EVENT_REMOVED);
	EXPECT_EQ(e.port, 0);
	EXPECT(read(fd, &e, sizeof(e)) == -1 && errno == ENODEV);
	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(p.revents & (POLLHUP | POLLERR), POLLHUP | POLLERR);
	EXPECT_EQ(ca_query(fd, handle, &e, sizeof(e)), -ENODEV);
	EXPECT(access(CA_DIR DEVICE, F_OK));
}

/* Even a reader that has lost events learns of the removal. */
static void removal_after_overflow(void)
{
	int slow, i;

	setup();
	slow = node_open(DEVICE, O_RDONLY | O_NONBLOCK);
	poke_and_count(fd, RING + 3);
	emu_drop(DEVICE);
	for (i = 0; i < RING; i++)
		EXPECT_EQ(next(slow).type, KVERBS_CA_EVENT_PKEY_CHANGE);
	EXPECT_EQ(next(slow).type, KVERBS_CA_EVENT_OVERFLOW);
	EXPECT_EQ(next(slow).type, KVERBS_CA_EVENT_REMOVED);
}

static char *memory;

static void expect_gone(long ret)
{
	if (ret < 0 && ret != -ENOENT)
		EXPECT_EQ(ret, -ENODEV);
}

/* Makes requests of every kind until the device is gone. Some are not undone. */
static void *requests(void *arg)
{
	uint64_t h = 0, pd = 0, mr = 0;
	char answer[16384];
	unsigned int i = 0;
	long ret;

	(void)arg;
	do {
		ret = ca_open(fd, 0, &h);
		expect_gone(ret);
		expect_gone(ca_alloc_pd(fd, h, &pd));
		expect_gone(ca_reg(fd, h, pd, memory, 16384, &mr));
		expect_gone(ca_query(fd, h, answer, sizeof(answer)));
		expect_gone(ca_list(fd, h, answer, sizeof(answer)));
		if (++i < 100 && i % 4 == 0)
			continue;
		expect_gone(ca_dereg(fd, h, mr));
		expect_gone(ca_dealloc_pd(fd, h, pd));
		expect_gone(ca_close(fd, h));
	} while (ret != -ENODEV);
	return NULL;
}

static void removal_in_use(void)
{
	pthread_t threads[4];
	long long pinned;
	unsigned int round, i;

	memory = pages(16384);
	pinned = pinned_pages();
	for (round = 0; round < 4; round++) {
		setup();
		for (i = 0; i < TEST_COUNT(threads); i++)
			EXPECT(!pthread_create(&threads[i], NULL, requests, NULL));
		usleep(round * 8000);
		emu_drop(DEVICE);
		for (i = 0; i < TEST_COUNT(threads); i++)
			EXPECT(!pthread_join(threads[i], NULL));
		expect_pinned(pinned);
		close(fd);
	}
}

static void comes_again(void)
{
	int old;

	setup();
	old = fd;
	emu_drop(DEVICE);
	setup();
	EXPECT(ca_query(fd, handle, NULL, 0) == -EINVAL);
	EXPECT_EQ(ca_query(old, handle, NULL, 0), -ENODEV);
	poke();
	expect_event(KVERBS_CA_EVENT_PKEY_CHANGE, 1);
	EXPECT_EQ(next(old).type, KVERBS_CA_EVENT_REMOVED);
	close(old);
}

static const struct test_case cases[] = {
	{ "each change is told", each_kind },
	{ "events without a change are told", injected },
	{ "what is told is so already", in_time },
	{ "no event, and no room for one", none },
	{ "several at once, and only whole ones", several_at_once },
	{ "an event that cannot be written is not lost", faults },
	{ "a read waits", blocking },
	{ "a signal ends the wait", interrupted },
	{ "epoll, by level and by edge", epolled },
	{ "each file has all of them", each_file },
	{ "what nobody read in time is counted", overflow },
	{ "the count stands in the events' place", overflow_in_place },
	{ "each event is told or counted", none_unaccounted },
	{ "of several readers one has each", several_readers },
	{ "the removal of the device is the last", removal },
	{ "the removal is told after all that was lost", removal_after_overflow },
	{ "the device goes amidst requests", removal_in_use },
	{ "a device of the same name is another", comes_again },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
