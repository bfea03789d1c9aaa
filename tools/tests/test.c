// SPDX-License-Identifier: GPL-2.0-only
/* Carries out cases and reports on them. See test.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* An emulated guest with all of the kernel's checks is slow. */
#define CASE_SECONDS	300

enum { PASSED, FAILED, SKIPPED };

/* The reason for a failure, passed from the case's process to the reporting one. */
static char (*reason)[512];

static void give_reason(const char *format, va_list args)
{
	vsnprintf(*reason, sizeof(*reason), format, args);
}

void test_fail(const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	char place[512];
	va_list args;

	snprintf(place, sizeof(place), "%s:%d: %s", base, line, format);
	va_start(args, format);
	give_reason(place, args);
	va_end(args);
	_exit(FAILED);
}

void test_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	give_reason(format, args);
	va_end(args);
	_exit(SKIPPED);
}

/* Formats a value for a reason. */
static const char *value(char *text, size_t len, long long v)
{
	if (v < 0 && v > -4096)
		snprintf(text, len, "%lld (%s)", v, strerror(-v));
	else
		snprintf(text, len, "%lld", v);
	return text;
}

void test_expect_eq(const char *file, int line, const char *what,
		    long long got, long long want)
{
	char a[64], b[64];

	if (got != want)
		test_fail(file, line, "%s: %s, not %s", what,
			  value(a, sizeof(a), got), value(b, sizeof(b), want));
}

int test_spawn(void (*run)(void *), void *arg)
{
	int pid = fork();

	if (pid < 0)
		test_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	alarm(CASE_SECONDS);
	run(arg);
	_exit(PASSED);
}

void test_join(int pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		test_fail(__FILE__, __LINE__, "waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == PASSED)
		return;
	if (WIFEXITED(status) && **reason)
		_exit(WEXITSTATUS(status));
	test_fail(__FILE__, __LINE__, "a process ended with status %#x", status);
}

static void run_case(void *arg)
{
	const struct test_case *c = arg;

	setpgid(0, 0);
	c->run();
}

static bool report(const struct test_case *c, int status)
{
	if (WIFSIGNALED(status)) {
		printf("not ok %s: ended by signal %d%s\n", c->name,
		       WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? ", it took too long" : "");
		return false;
	}
	switch (WEXITSTATUS(status)) {
	case PASSED:
		printf("ok %s\n", c->name);
		return true;
	case SKIPPED:
		printf("skip %s: %s\n", c->name, *reason);
		return true;
	}
	printf("not ok %s: %s\n", c->name, *reason);
	return false;
}

int test_main(int argc, char **argv, const struct test_case *cases,
	      size_t count, void (*tidy)(void))
{
	int failed = 0, status, seen = 0, pid;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	reason = mmap(NULL, sizeof(*reason), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reason == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (i = 0; i < count; i++) {
		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		**reason = 0;
		seen++;
		pid = test_spawn(run_case, (void *)&cases[i]);
		waitpid(pid, &status, 0);
		/* Ends processes that a failed case has left running. */
		kill(-pid, SIGKILL);
		failed += !report(&cases[i], status);
		tidy();
	}
	printf("1..%d\n", seen);
	return !!failed;
}
