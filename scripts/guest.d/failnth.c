// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fails each allocation of one action in turn.
 *
 *   failnth insmod <file.ko> [parameters]     what the module's init allocates
 *   failnth write <file> <text> [<text>]      what a write allocates; the second
 *                                             text undoes one that succeeded
 *
 * Prints one line: how many allocations failed in turn, how often the action
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
 * After the last allocation of init, the loader makes some more that do no harm
 * when they fail. Before the first one, so many in a row are the loader's again.
 */
#define MAX_SURVIVED_AFTER 200
#define MAX_SURVIVED 24

/* Says in the trace when a module's init is called. */
#define TRACING "/sys/kernel/tracing/"
#define INIT_EVENT TRACING "events/initcall/initcall_start/enable"

static int nth_fd;

static struct {
	int failed;
	int refused;
} tally;

static void die(const char *what)
{
	fprintf(stderr, "failnth: %s: %s\n", what, strerror(errno));
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

static void remove_module(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		die("cannot remove the module that was inserted");
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

static int try_write(int n, const char *path, const char *text, int *err)
{
	int fd = open(path, O_WRONLY);
	int left;

	if (fd < 0)
		die(path);
	set_nth(n);
	*err = write(fd, text, strlen(text)) < 0 ? errno : 0;
	left = get_nth();
	set_nth(0);
	close(fd);
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

/*
 * Loading a module allocates a thousand times before the module's own code
 * runs, and not all of the kernel's loader is at ease with failures. So from
 * the last allocation back to where init was not reached any more.
 */
static void sweep_insmod(const char *path, const char *params)
{
	size_t len;
	void *image = read_file(path, &len);
	int n, err, left, missed = 0, survived = 0;
	int limit = MAX_SURVIVED_AFTER;

	write_file(INIT_EVENT, "1");
	n = MAX_N - try_insmod(MAX_N, image, len, params, &err);
	must_work(err);
	remove_module(path);
	for (; n > 0 && missed < 2 && survived < limit; n--) {
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
		survived = err ? 0 : survived + 1;
		if (err)
			limit = MAX_SURVIVED;
		tally.failed++;
		tally.refused += !!err;
	}
	write_file(INIT_EVENT, "0");
}

static void sweep_write(const char *path, const char *text, const char *undo)
{
	int n, err;

	for (n = 1; n < MAX_N; n++) {
		int left = try_write(n, path, text, &err);

		if (!err && undo)
			write_file(path, undo);
		if (left)
			break;
		tally.failed++;
		tally.refused += !!err;
	}
	must_work(err);
}

int main(int argc, char **argv)
{
	int insmod = argc >= 3 && !strcmp(argv[1], "insmod");

	if (!insmod && (argc < 4 || strcmp(argv[1], "write"))) {
		fprintf(stderr, "usage: failnth insmod <file.ko> [parameters]\n"
			"       failnth write <file> <text> [<undo>]\n");
		return 2;
	}
	nth_fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		die("/proc/self/fail-nth");
	if (insmod)
		sweep_insmod(argv[2], argc > 3 ? argv[3] : "");
	else
		sweep_write(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
	if (!tally.failed) {
		fprintf(stderr, "failnth: nothing failed\n");
		return 1;
	}
	printf("%d allocations failed in turn: %d errors, %d survived\n",
	       tally.failed, tally.refused, tally.failed - tally.refused);
	return 0;
}
