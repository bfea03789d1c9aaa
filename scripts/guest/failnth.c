// SPDX-License-Identifier: GPL-2.0-only
/*
 * failnth <file> <text> [<text>]: fails each allocation of a write in turn, or with EVERY=k
 * and FROM=n the n-th and from there on each k-th, and each, if none of these made the write
 * fail. The second text undoes a write that succeeded.
 *
 * Where the write fails, it does so with ENOMEM, or with what the variable ERRNO names, as
 * often as that allows (22:4).
 * Prints one line: how many allocations failed in turn, how often the write failed, and
 * how often it survived. Needs CONFIG_FAULT_INJECTION, and the knobs of failslab and
 * fail_page_alloc set as init does.
 */
#define PROGRAM "failnth"

#include "nth.h"

#define NTH "/proc/self/fail-nth"

static int nth_fd;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* Fails the n-th allocation of the write; returns how many were left to go. */
static int try_write(int n, const char *path, const char *text, int *err)
{
	int fd = open(path, O_WRONLY);
	int left;

	if (fd < 0)
		die(path);
	put_number(nth_fd, NTH, n);
	*err = write(fd, text, strlen(text)) < 0 ? errno : 0;
	left = get_number(nth_fd, NTH);
	put_number(nth_fd, NTH, 0);
	close(fd);
	return left;
}

static void sweep(struct turns turns, const char *path, const char *text, const char *undo)
{
	int n, err, left, ends = 0;

	for (n = turns.from; ends < ENDS; n += turns.every) {
		must_end(n);
		left = try_write(n, path, text, &err);
		if (left)
			must_work(err);
		else
			count(n, err);
		if (!err && undo)
			write_file(path, undo);
		ends = left ? ends + 1 : 0;
	}
}

int main(int argc, char **argv)
{
	struct turns turns = which_turns();
	const char *undo = argc > 3 ? argv[3] : NULL;

	if (argc < 3) {
		fprintf(stderr, "usage: failnth <file> <text> [<undo>]\n");
		return 2;
	}
	read_other_errno();
	nth_fd = open(NTH, O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		die(NTH);
	sweep(turns, argv[1], argv[2], undo);
	if (all_are_wanted(turns, tally.refused))
		sweep(all_turns, argv[1], argv[2], undo);
	if (!tally.refused) {
		fprintf(stderr, PROGRAM ": no allocation made the write fail\n");
		return 1;
	}
	printf("%d allocations failed in turn: %d errors, %d of them not ENOMEM, %d survived\n",
	       tally.refused + tally.survived, tally.refused, other_errno.seen, tally.survived);
	return 0;
}
