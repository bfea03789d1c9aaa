/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests from user space. A program is a table of cases. Each case runs in a process
 * of its own, so that one that dies or leaves things behind does not affect the
 * others; it ends at the first unexpected result.
 *
 * For each case there is a line, "ok <what>", "skip <what>: <why>" or
 * "not ok <what>: <why>", and at the end "1..<cases>". The exit status is 0 if none
 * failed. With a word as argument, only cases whose name contains it run.
 */
#ifndef KVERBS_TEST_H
#define KVERBS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct test_case - a case
 * @name: what it shows
 * @run: returns if everything was as expected
 */
struct test_case {
	const char *name;
	void (*run)(void);
};

#define TEST_COUNT(array)	(sizeof(array) / sizeof((array)[0]))

int test_main(int argc, char **argv, const struct test_case *cases,
	      size_t count, void (*tidy)(void));

void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void test_skip(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* Ends the case, as failed, if a condition does not hold. */
#define EXPECT(condition)						\
	do {								\
		if (!(condition))					\
			test_fail(__FILE__, __LINE__, "not so: %s",	\
				  #condition);				\
	} while (0)

/* The same for two integers; a negative one is also shown as an errno. */
#define EXPECT_EQ(got, want)						\
	test_expect_eq(__FILE__, __LINE__, #got, (long long)(got),	\
		       (long long)(want))

void test_expect_eq(const char *file, int line, const char *what,
		    long long got, long long want);

/* Runs a function in a child process of the case; its failure fails the case. */
int test_spawn(void (*run)(void *), void *arg);
void test_join(int pid);

#endif /* KVERBS_TEST_H */
