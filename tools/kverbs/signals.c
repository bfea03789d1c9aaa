// SPDX-License-Identifier: GPL-2.0-only
/*
 * SIGINT and SIGTERM end a command when it has written what it has. A write that nobody reads would
 * sleep for ever: if it does not go on after the signal, what it writes to is replaced by
 * /dev/null. The kernel then restarts the write, which succeeds, as do those that follow; stdio
 * does not notice. So there is no moment at which a signal comes too late for a write that is about
 * to sleep.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kverbs.h"

/* Seconds that the output may take to go on. */
#define PATIENCE	1

static int output, nowhere;
static volatile sig_atomic_t caught, given_up;

/* A pipe that is read slowly, or a file on a slow disk, gets all. */
static bool is_stuck(int fd)
{
	struct pollfd out = { .fd = fd, .events = POLLOUT };

	return !poll(&out, 1, 0);
}

/* First the output is given up, then messages, too: they may go the same way. */
static void end(int sig)
{
	int error = errno, fd = given_up ? STDERR_FILENO : output;

	if (!caught) {
		caught = true;
	} else if (sig != SIGALRM) {
		return;
	} else if (is_stuck(fd)) {
		dup2(nowhere, fd);
		given_up = true;
	}
	alarm(PATIENCE);
	errno = error;
}

int catch_signals(int fd)
{
	struct sigaction action = { .sa_handler = end, .sa_flags = SA_RESTART };

	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nowhere < 0)
		return say_error("cannot open /dev/null: %s", strerror(errno));
	output = fd;
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaddset(&action.sa_mask, SIGALRM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &action.sa_mask, NULL);
	return STATUS_OK;
}

bool signal_caught(void)
{
	if (caught)
		alarm(PATIENCE);
	return caught;
}

bool output_given_up(void)
{
	return given_up;
}

int poll_or_signal(struct pollfd *fds, nfds_t count)
{
	static const struct timespec no_time;
	sigset_t all, old;
	int ret;

	/* One that comes between the look at caught and the sleep ends the sleep. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	ret = ppoll(fds, count, caught ? &no_time : NULL, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}
