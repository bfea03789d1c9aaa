// SPDX-License-Identifier: GPL-2.0-only
/*
 * emudevs make|drop <number>: creates <number> devices of the software HCA through
 * configfs, or drops those that it created. They are called many0, many1, ...
 *
 * Prints the nanoseconds of CPU time that it took, and those that elapsed, waiting
 * included. Exit status: 0, or 1 after reporting what went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONFIG "/sys/kernel/config/kverbs_emu"

static void die(const char *what)
{
	fprintf(stderr, "emudevs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void make(int i)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), CONFIG "/many%d", i);
	if (mkdir(path, 0755))
		die(path);
	strcat(path, "/enable");
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "1", 1) != 1)
		die(path);
	close(fd);
}

static void drop(int i)
{
	char path[64];

	snprintf(path, sizeof(path), CONFIG "/many%d", i);
	if (rmdir(path))
		die(path);
}

int main(int argc, char **argv)
{
	long long start = now(CLOCK_MONOTONIC);
	int i, number;

	if (argc != 3) {
		fprintf(stderr, "usage: emudevs make|drop <number>\n");
		return 1;
	}
	number = atoi(argv[2]);
	for (i = 0; i < number; i++) {
		if (!strcmp(argv[1], "make"))
			make(i);
		else
			drop(i);
	}
	printf("%lld %lld\n", now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_MONOTONIC) - start);
	return 0;
}
