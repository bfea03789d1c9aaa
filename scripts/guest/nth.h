/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What those share that fail each allocation of an action in turn; each is one program of
 * one file, which says in PROGRAM what it is called.
 */
#ifndef NTH_H
#define NTH_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No action of ours allocates as often: it is a loop that never ends, which is an error. */
#define MAX_N 20000

/*
 * The kernel does not allocate equally often each time: how full its slabs are, and which
 * stacks KASAN has seen before, differs. So there is an end only where something was left
 * so many times running.
 */
#define ENDS 3

static struct {
	int refused;
	int survived;
} tally;

/* Of the allocations each fails, or but each n-th. */
struct turns {
	int from;
	int every;
};

static void die(const char *what)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(errno));
	exit(2);
}

static void put_number(int fd, const char *what, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fd, text, len, 0) != len)
		die(what);
}

static int get_number(int fd, const char *what)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		die(what);
	return atoi(text);
}

static int number_of(const char *variable, int otherwise)
{
	const char *text = getenv(variable);
	int n = text && *text ? atoi(text) : otherwise;

	if (n >= 1)
		return n;
	fprintf(stderr, PROGRAM ": %s=%s is no positive number\n", variable, text);
	exit(2);
}

/* The variables EVERY and FROM say which: all, if they are not there. */
static struct turns which_turns(void)
{
	return (struct turns){
		.from = number_of("FROM", 1),
		.every = number_of("EVERY", 1),
	};
}

/*
 * Of some allocations it may be that none matters, where most are survived. Where none of
 * those that were to fail made the action fail, all are taken before that is an error.
 */
static bool all_are_wanted(struct turns turns, int refused)
{
	return !refused && (turns.from > 1 || turns.every > 1);
}

static const struct turns all_turns = { .from = 1, .every = 1 };

/* Another one than ENOMEM, and how often it is allowed. */
static struct {
	int number;
	int most;
	int seen;
} other_errno;

/* The variable ERRNO names it: a number, and :<how often at most>. */
static void read_other_errno(void)
{
	const char *text = getenv("ERRNO");

	other_errno.most = MAX_N;
	if (text)
		sscanf(text, "%d:%d", &other_errno.number, &other_errno.most);
}

static int errno_is_allowed(int err)
{
	if (err == ENOMEM)
		return 1;
	return err == other_errno.number && ++other_errno.seen <= other_errno.most;
}

/* Counts how the action ended whose n-th allocation failed. */
static void count(int n, int err)
{
	if (err && !errno_is_allowed(err)) {
		fprintf(stderr, PROGRAM ": allocation %d: it fails with %d: %s\n", n, err,
			strerror(err));
		exit(1);
	}
	tally.refused += !!err;
	tally.survived += !err;
}

static void must_work(int err)
{
	if (!err)
		return;
	errno = err;
	die("undisturbed, the action fails");
}

static void must_end(int n)
{
	if (n <= MAX_N)
		return;
	fprintf(stderr, PROGRAM ": after %d allocations there is no end\n", MAX_N);
	exit(1);
}

#endif
