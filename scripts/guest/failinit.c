// SPDX-License-Identifier: GPL-2.0-only
/*
 * failinit <file.ko> [parameters]: fails each allocation of a module's init in turn, from
 * the first one on, until init makes no more of them; or with EVERY=k and FROM=n the n-th and
 * from there on each k-th, but no fewer than ten; and each, if none of these made init fail.
 *
 * Where init fails, it does so with ENOMEM, or with what the variable ERRNO names, as often
 * as that allows (22:4), and the module works the next time; where it does not, the module
 * can be removed. Nothing of it is left either way.
 *
 * Prints one line: how many allocations failed in turn, how often the init failed, and how
 * often it survived. Needs kverbs_initfail, CONFIG_FAULT_INJECTION, and the knobs of
 * failslab and fail_page_alloc set as init does. With SURVIVES=1 init needs no allocation.
 */
#define PROGRAM "failinit"

#include <glob.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "nth.h"

#define NTH "/sys/module/kverbs_initfail/parameters/nth"

/* What modules leave behind shows here. */
static const char *const places[] = {
	"/sys/module/*", "/sys/bus/*", "/sys/bus/*/drivers/*", "/sys/bus/*/devices/*",
	"/sys/class/*", "/sys/class/*/*", "/sys/kernel/debug/*", "/sys/kernel/debug/*/*",
	"/sys/kernel/config/*", "/sys/kernel/config/*/*", "/sys/kernel/mm/*",
	"/sys/kernel/tracing/events/*", NULL
};

static struct {
	const char *params;
	char name[64];
	void *image;
	size_t len;
	glob_t before;
	int nth_fd;
	FILE *kmsg;
} victim;

static void read_module(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die(path);
	victim.len = st.st_size;
	victim.image = malloc(victim.len);
	if (!victim.image || read(fd, victim.image, victim.len) != st.st_size)
		die(path);
	close(fd);
	snprintf(victim.name, sizeof(victim.name), "%.*s", (int)strcspn(base, "."), base);
}

static void look(glob_t *seen)
{
	int i;

	for (i = 0; places[i]; i++)
		glob(places[i], i ? GLOB_APPEND : 0, NULL, seen);
}

static void must_be_gone(int n, const char *ending)
{
	const glob_t *before = &victim.before;
	glob_t now;
	size_t i;

	look(&now);
	for (i = 0; i < now.gl_pathc && i < before->gl_pathc; i++)
		if (strcmp(now.gl_pathv[i], before->gl_pathv[i]))
			break;
	if (now.gl_pathc != before->gl_pathc || i < now.gl_pathc) {
		fprintf(stderr, PROGRAM ": allocation %d, init %s: %s is left or gone\n", n,
			ending, i < now.gl_pathc ? now.gl_pathv[i] : before->gl_pathv[i]);
		exit(1);
	}
	globfree(&now);
}

static int insert(void)
{
	return syscall(SYS_init_module, victim.image, victim.len, victim.params) ? errno : 0;
}

static void take_away(void)
{
	if (syscall(SYS_delete_module, victim.name, O_NONBLOCK))
		die("cannot remove the module that was inserted");
}

/* Fails the n-th allocation of init; returns how many were left to go. */
static int try_insert(int n, int *err)
{
	int left;

	put_number(victim.nth_fd, NTH, n);
	*err = insert();
	left = get_number(victim.nth_fd, NTH);
	if (left >= 0)
		return left;
	errno = *err;
	die("init was not called");
	return left;
}

/* Returns how often init allocates when nothing fails. */
static int load_undisturbed(void)
{
	int err, left = try_insert(MAX_N + 1, &err);

	must_work(err);
	take_away();
	return MAX_N + 1 - left;
}

/* Returns whether there was an n-th allocation. */
static bool fail_nth(int n)
{
	int err, left = try_insert(n, &err);

	if (left)
		must_work(err);
	else
		count(n, err);
	if (!err)
		take_away();
	must_be_gone(n, err ? "failed" : "survived");
	if (err)
		load_undisturbed();
	return !left;
}

/* On the console: a sweep takes minutes, and where it hangs is of interest. */
static void tell(int n)
{
	static int told;

	if (n / 50 != told && victim.kmsg)
		fprintf(victim.kmsg, PROGRAM ": %s: allocation %d\n", victim.name, n);
	told = n / 50;
}

static struct turns at_least_ten(struct turns turns, int total)
{
	int most = total < 10 ? 1 : total / 10;

	if (turns.every > most)
		turns.every = most;
	if (turns.from > most)
		turns.from = most;
	return turns;
}

static void sweep(struct turns turns)
{
	int n, ends = 0;

	for (n = turns.from; ends < ENDS; n += turns.every) {
		must_end(n);
		tell(n);
		ends = fail_nth(n) ? 0 : ends + 1;
	}
}

int main(int argc, char **argv)
{
	const char *survives = getenv("SURVIVES");
	bool may_survive = survives && *survives;
	struct turns turns = which_turns();
	int total;

	if (argc < 2) {
		fprintf(stderr, "usage: failinit <file.ko> [parameters]\n");
		return 2;
	}
	victim.params = argc > 2 ? argv[2] : "";
	read_other_errno();
	victim.nth_fd = open(NTH, O_RDWR | O_CLOEXEC);
	if (victim.nth_fd < 0)
		die(NTH);
	victim.kmsg = fopen("/dev/kmsg", "we");
	if (victim.kmsg)
		setlinebuf(victim.kmsg);
	read_module(argv[1]);
	/* What the kernel keeps of a module that it sees for the first time, it has then. */
	load_undisturbed();
	look(&victim.before);
	total = load_undisturbed();
	turns = at_least_ten(turns, total);
	sweep(turns);
	if (!may_survive && all_are_wanted(turns, tally.refused)) {
		turns = all_turns;
		sweep(turns);
	}
	if (!may_survive && !tally.refused) {
		fprintf(stderr, PROGRAM ": of %d allocations none made init fail\n", total);
		return 1;
	}
	printf("each %d from %d on of %d: %d refused, %d of them not ENOMEM, %d survived\n",
	       turns.every, turns.from, total, tally.refused, other_errno.seen, tally.survived);
	return 0;
}
