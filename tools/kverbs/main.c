// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs: shows channel adapters, watches them, and tries operations on them.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs.h"

static const struct command * const commands[] = {
	&list_command,
	&show_command,
	&monitor_command,
	&reg_command,
	&p2p_command,
	&fault_command,
	&capture_command,
	&version_command,
	&switch_command,
	&doctor_command,
	&stats_command,
	&top_command,
};

static int show_help(void)
{
	size_t i;

	puts("Usage: kverbs <command> [argument...]\n"
	     "\n"
	     "Show, watch and test the RDMA devices of kverbs.\n"
	     "\n"
	     "Commands:");
	for (i = 0; i < COUNT(commands); i++)
		printf("  %-9s%s\n", commands[i]->name, commands[i]->summary);
	puts("\n"
	     "  kverbs <command> --help   the arguments of a command\n"
	     "  kverbs --version          the version of this command\n"
	     "\n"
	     "Exit status: 0; 1 if something failed; 2 if the arguments are wrong.\n"
	     "The man page kverbs(1) has the details, including the JSON output.");
	return STATUS_OK;
}

int command_help(const struct command *cmd)
{
	printf("Usage: kverbs %s%s%s\n\n%s", cmd->name,
	       *cmd->arguments ? " " : "", cmd->arguments, cmd->help);
	return STATUS_OK;
}

int usage_error(const struct command *cmd, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "kverbs %s: ", cmd->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nUsage: kverbs %s%s%s\n", cmd->name,
		*cmd->arguments ? " " : "", cmd->arguments);
	return STATUS_USAGE;
}

/* Returns the status for a wrong option, which getopt_long() has reported already. */
int option_error(const struct command *cmd)
{
	fprintf(stderr, "Usage: kverbs %s%s%s\n", cmd->name,
		*cmd->arguments ? " " : "", cmd->arguments);
	return STATUS_USAGE;
}

bool parse_number(const char *text, uint64_t min, uint64_t max,
		  uint64_t *number)
{
	char *end;

	/* strtoull() accepts blanks, and negates a number with a minus sign. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return !errno && !*end && *number >= min && *number <= max;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	char *name = NULL;
	int status;

	/* The name appears in the messages of getopt_long(). */
	if (asprintf(&name, "kverbs %s", cmd->name) < 0)
		return say_error("no memory");
	argv[0] = name;
	status = finish_output(cmd->run(cmd, argc, argv));
	free(name);
	return status;
}

int main(int argc, char **argv)
{
	size_t i;

	/*
	 * A reader that has gone causes a write error instead of killing the
	 * process.
	 */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		fputs("kverbs: which command? See: kverbs --help\n", stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help"))
		return finish_output(show_help());
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("kverbs " KVERBS_VERSION);
		return finish_output(STATUS_OK);
	}
	for (i = 0; i < COUNT(commands); i++)
		if (!strcmp(argv[1], commands[i]->name))
			return run(commands[i], argc - 1, argv + 1);
	fprintf(stderr, "kverbs: unknown command %s. See: kverbs --help\n", argv[1]);
	return STATUS_USAGE;
}
