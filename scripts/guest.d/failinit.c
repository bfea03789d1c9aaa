// SPDX-License-Identifier: GPL-2.0-only
/*
 * failinit <file.ko> [parameters]: fails each allocation of a module's init in turn.
 *
 * The init may fail with ENOMEM, and with what the variable ERRNO names: a list
 * of numbers with commas. Then nothing of the module may be left, and now and then it
 * is loaded and removed undisturbed. With STRIDE=n each n-th allocation fails only.
 *
 * Prints one line: how many allocations failed in turn, how often the init
 * failed, and how often it survived. Needs CONFIG_FAULT_INJECTION, and the
 * knobs of failslab and fail_page_alloc set as init does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No action of ours allocates this often: it is a loop that never ends. */
#define MAX_N 200000

/*
 * Failures that do no harm are many in a row: of the loader, which makes them after
 * init and before, and of an init that has much to do. After so many of them the
 * steps grow by one with every few, until an error is seen.
 */
#define MAX_SURVIVED 60
#define GROWTH 4

/* After so many tries they grow as well: some inits make thousands of allocations. */
#define MAX_TRIED 200

/*
 * So many harmless ones in a row, in growing steps, are not of the init any more; after the
 * first error, which is one of the init's last allocations, fewer.
 */
#define MAX_ROW 90
#define MAX_ROW_AFTER 40

/*
 * What the loader allocates is not the same each time: init may be reached again by the
 * failure of an earlier allocation. Much earlier ones are those of the kernel's tracing,
 * which complains of their failure as of a bug.
 */
#define MAX_MISSED 2

/* After so many failures, the module is loaded undisturbed. */
#define REFRAIN 16

/* Says in the trace when a module's init is called. */
#define TRACING "/sys/kernel/tracing/"
#define INIT_EVENT TRACING "events/initcall/initcall_start/enable"

static int nth_fd;

static struct {
	int failed;
	int refused;
	int widest;
	int undisturbed;
} tally = { .widest = 1 };

static void die(const char *what)
{
	fprintf(stderr, "failinit: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void set_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(nth_fd, text, len, 0) != len)
		die("fail-nth");
}

static int get_nth(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		die("fail-nth");
	return atoi(text);
}

static void *read_file(const char *path, size_t *len)
{
	struct stat st;
	void *image;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die(path);
	image = malloc(st.st_size);
	if (!image || read(fd, image, st.st_size) != st.st_size)
		die(path);
	close(fd);
	*len = st.st_size;
	return image;
}

static void module_name(const char *path, char *name, size_t len)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	snprintf(name, len, "%.*s", (int)strcspn(base, "."), base);
}

static void remove_module(const char *path)
{
	char name[64];

	module_name(path, name, sizeof(name));
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		die("cannot remove the module that was inserted");
}

static int errno_is_allowed(int err)
{
	const char *list = getenv("ERRNO");
	char *end;

	if (err == ENOMEM)
		return 1;
	while (list && *list) {
		if (strtol(list, &end, 10) == err)
			return 1;
		list = *end ? end + 1 : end;
	}
	return 0;
}

/* Its init has failed. */
static void must_be_gone(const char *path, int n, int err)
{
	char name[64], dir[128];

	if (!errno_is_allowed(err)) {
		fprintf(stderr, "failinit: allocation %d: init fails with %d: %s\n", n, err,
			strerror(err));
		exit(1);
	}
	module_name(path, name, sizeof(name));
	snprintf(dir, sizeof(dir), "/sys/module/%s", name);
	if (access(dir, F_OK))
		return;
	fprintf(stderr, "failinit: allocation %d: %s is left\n", n, dir);
	exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* Fails the n-th allocation of the action; returns how many were left to go. */
static int try_insmod(int n, void *image, size_t len, const char *params,
		      int *err)
{
	int left;

	set_nth(n);
	*err = syscall(SYS_init_module, image, len, params) ? errno : 0;
	left = get_nth();
	set_nth(0);
	return left;
}

static int init_was_called(void)
{
	char text[16384];
	int fd = open(TRACING "trace", O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len < 0)
		die("trace");
	close(fd);
	text[len] = 0;
	return strstr(text, "initcall_start:") != NULL;
}

static void must_work(int err)
{
	if (!err)
		return;
	errno = err;
	die("undisturbed, the action fails");
}

static void load_undisturbed(const char *path, void *image, size_t len, const char *params)
{
	int err = syscall(SYS_init_module, image, len, params) ? errno : 0;

	must_work(err);
	remove_module(path);
	tally.undisturbed++;
}

/* Each so many of the allocations fail in turn: the variable STRIDE, or 1. */
static int stride(void)
{
	const char *text = getenv("STRIDE");
	int n = text ? atoi(text) : 1;

	return n > 0 ? n : 1;
}

/* @row: how many failures were harmless since the last one that was not. */
static int next_step(int row)
{
	int step = stride();

	if (row > MAX_SURVIVED)
		step += (row - MAX_SURVIVED) / GROWTH;
	if (tally.failed > MAX_TRIED)
		step += (tally.failed - MAX_TRIED) / GROWTH;
	if (step > tally.widest)
		tally.widest = step;
	return step;
}

/*
 * Loading a module allocates a thousand times before the module's own code
 * runs, and not all of the kernel's loader is at ease with failures. So from
 * the last allocation back to where init was not reached any more.
 */
static void sweep_insmod(const char *path, const char *params)
{
	size_t len;
	void *image = read_file(path, &len);
	int n, err, left, missed = 0, row = 0;
	int limit = MAX_ROW;

	write_file(INIT_EVENT, "1");
	n = MAX_N - try_insmod(MAX_N, image, len, params, &err);
	must_work(err);
	remove_module(path);
	n -= getpid() % stride();
	for (; n > 0 && missed < MAX_MISSED && row < limit; n -= next_step(row)) {
		write_file(TRACING "trace", "");
		left = try_insmod(n, image, len, params, &err);
		if (!err)
			remove_module(path);
		if (left)
			continue;
		if (!init_was_called()) {
			missed++;
			continue;
		}
		missed = 0;
		row = err ? 0 : row + 1;
		if (err) {
			limit = MAX_ROW_AFTER;
			must_be_gone(path, n, err);
		}
		tally.refused += !!err;
		if (++tally.failed % REFRAIN == 0)
			load_undisturbed(path, image, len, params);
	}
	load_undisturbed(path, image, len, params);
	write_file(INIT_EVENT, "0");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: failinit <file.ko> [parameters]\n");
		return 2;
	}
	nth_fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		die("/proc/self/fail-nth");
	sweep_insmod(argv[1], argc > 2 ? argv[2] : "");
	if (!tally.failed) {
		fprintf(stderr, "failinit: nothing failed\n");
		return 1;
	}
	printf("%d allocations failed in turn: %d errors, %d survived; steps of up to %d; %d times undisturbed\n",
	       tally.failed, tally.refused, tally.failed - tally.refused, tally.widest,
	       tally.undisturbed);
	return 0;
}
