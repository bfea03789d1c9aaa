// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs fault: rules by which requests on a software HCA go wrong. The driver keeps them,
 * in debugfs: Documentation/emu.rst has what a rule can say.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulated.h"

#define COMMAND_MAX	256

/* The keys of a rule with numbers as values; all other values are text. */
static const char * const numbers[] = {
	"qp", "nth", "every", "rate", "count", "delay", "flap", "seen", "hits",
};

static int say_no_faults(const char *device, int error)
{
	if (say_no_emulation(error))
		return STATUS_FAILED;
	fflush(stdout);
	fputs("kverbs: ", stderr);
	print_text(stderr, device);
	fprintf(stderr, ": %s\n  Emulated devices, where things go wrong on demand: ls %s\n",
		error == ENOENT ? "no such emulated device" : strerror(error), EMULATED_DIR);
	return STATUS_FAILED;
}

/* --- commands that change something ------------------------------------------- */

static int say_refused(const char *device, const char *text, int error)
{
	switch (error) {
	case EINVAL:
		return say_error("%s does not understand '%s'\n"
				 "  A rule is conditions (qp= op= nth= every= rate= count=) and one action\n"
				 "  (status= delay= drop rnr flap= overflow), all separated by blanks.\n"
				 "  The kernel log says which word it is.", device, text);
	case ENOENT:
		return say_error("%s has no rule of this number. To list its rules: kverbs fault %s",
				 device, device);
	case ENOSPC:
		return say_error("%s has reached the limit of rules\n"
				 "  Remove some: kverbs fault del %s all", device, device);
	default:
		return say_error("cannot change the rules of %s: %s", device, strerror(error));
	}
}

static int write_command(const char *device, const char *file, const char *text)
{
	int fd = open_emulated(device, file, O_WRONLY);
	int status = STATUS_OK;

	if (fd < 0)
		return say_no_faults(device, errno);
	if (write(fd, text, strlen(text)) < 0)
		status = say_refused(device, text, errno);
	close(fd);
	return status;
}

static int add_rule(const struct command *cmd, int argc, char **argv)
{
	char text[COMMAND_MAX] = "add";
	size_t len = strlen(text);
	int i;

	if (argc < 2)
		return usage_error(cmd, "add: needs a device and a rule");
	for (i = 1; i < argc; i++) {
		len += snprintf(text + len, sizeof(text) - len, " %s", argv[i]);
		if (len >= sizeof(text))
			return usage_error(cmd, "add: the rule is longer than %d characters",
					   COMMAND_MAX - 1);
	}
	return write_command(argv[0], "faults/rules", text);
}

static int del_rule(const struct command *cmd, int argc, char **argv)
{
	char text[COMMAND_MAX];
	uint64_t id;

	if (argc != 2)
		return usage_error(cmd, "del: needs a device and the number of a rule, or all");
	if (!strcmp(argv[1], "all"))
		return write_command(argv[0], "faults/rules", "clear");
	if (!parse_number(argv[1], 1, UINT32_MAX, &id))
		return usage_error(cmd, "del: %s is neither the number of a rule nor all", argv[1]);
	snprintf(text, sizeof(text), "del %u", (unsigned int)id);
	return write_command(argv[0], "faults/rules", text);
}

static int set_seed(const struct command *cmd, int argc, char **argv)
{
	uint64_t number;

	if (argc != 2)
		return usage_error(cmd, "seed: needs a device and a number");
	if (!parse_number(argv[1], 0, UINT64_MAX, &number))
		return usage_error(cmd, "seed: %s is not a number", argv[1]);
	return write_command(argv[0], "faults/seed", argv[1]);
}

/* --- the list ------------------------------------------------------------------ */

static bool is_number(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(numbers); i++)
		if (!strcmp(name, numbers[i]))
			return true;
	return false;
}

static void json_word(struct json *json, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	/* If the action has an amount, that is a member of its own. */
	if (value && is_number(word))
		json_number(json, word, strtoull(value, NULL, 10));
	else if (value)
		json_string(json, word, value);
	else
		json_bool(json, word, true);
}

static void json_rule(struct json *json, const char *device, char *line)
{
	char *rest = line, *word = strsep(&rest, " ");

	json_object(json, NULL);
	json_string(json, "device", device);
	json_number(json, "rule", strtoull(word, NULL, 10));
	while ((word = strsep(&rest, " ")))
		json_word(json, word);
	json_end(json);
}

/* @may_go: the device may be removed meanwhile, and has no rules then. */
static int list_device(struct json *json, const char *device, bool may_go)
{
	int fd = open_emulated(device, "faults/rules", O_RDONLY);
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	FILE *file;

	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file && may_go && errno == ENOENT)
		return STATUS_OK;
	if (!file)
		return say_no_faults(device, errno);
	while ((len = getline(&line, &size, file)) > 0) {
		line[len - 1] = '\0';
		if (json)
			json_rule(json, device, line);
		else
			printf("%s %s\n", device, line);
	}
	free(line);
	fclose(file);
	return STATUS_OK;
}

static int list_all(struct json *json)
{
	struct dirent **entries;
	int count = scandir(EMULATED_DIR, &entries, NULL, versionsort);
	int i, status = STATUS_OK;

	if (count < 0)
		return say_no_faults("kverbs_emu", errno);
	for (i = 0; i < count; i++) {
		if (*entries[i]->d_name != '.' && list_device(json, entries[i]->d_name, true))
			status = STATUS_FAILED;
		free(entries[i]);
	}
	free(entries);
	return status;
}

static int list(const char *device, bool as_json)
{
	struct json json;
	int status;

	if (as_json) {
		json_start(&json, stdout, false);
		json_array(&json, NULL);
	}
	status = device ? list_device(as_json ? &json : NULL, device, false) :
			  list_all(as_json ? &json : NULL);
	if (as_json)
		json_end(&json);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool as_json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			as_json = true;
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc && !strcmp(argv[0], "add"))
		return add_rule(cmd, argc - 1, argv + 1);
	if (argc && !strcmp(argv[0], "del"))
		return del_rule(cmd, argc - 1, argv + 1);
	if (argc && !strcmp(argv[0], "seed"))
		return set_seed(cmd, argc - 1, argv + 1);
	if (argc > 1)
		return usage_error(cmd, "%s is not add, del or seed", argv[0]);
	return list(argc ? argv[0] : NULL, as_json);
}

const struct command fault_command = {
	.name = "fault",
	.arguments = "[<device>] [--json] | add <device> <rule> | del <device> <number>|all | seed <device> <number>",
	.summary = "inject faults into an emulated device, by rules",
	.help =
	"Lists the fault rules of an emulated device, or of all, with the number of requests\n"
	"that each matched (seen) and of those that it made fail (hits). Requires root.\n"
	"\n"
	"  add <device> <rule>     add a rule: conditions, and one action\n"
	"  del <device> <number>   remove a rule, or all\n"
	"  seed <device> <number>  set the random seed of rate=, and reset all counts\n"
	"  -j, --json              print JSON: an array, see kverbs(1)\n"
	"  -h, --help              print this help\n"
	"\n"
	"Conditions, all optional:\n"
	"  qp=<number>   requests of this queue pair\n"
	"  op=<name>,... send send_imm send_inv write write_imm read read_inv cmp_swap\n"
	"                fetch_add atomic_write local_inv reg_mr bind_mw\n"
	"  nth=<n>       the n-th of them; with every=, from the n-th on\n"
	"  every=<n>     every n-th\n"
	"  rate=<ppm>    n in a million, at random\n"
	"  count=<n>     at most n times\n"
	"Actions:\n"
	"  status=<name>  it fails with this status, for example rem_access_err\n"
	"  delay=<us>     it is executed that much later\n"
	"  drop           its message is lost\n"
	"  rnr            it gets an RNR NAK, as if no receive were posted\n"
	"  flap=<ms>      the port goes down for that long\n"
	"  overflow       the next completion finds its CQ full\n"
	"\n"
	"Example: the 100th RDMA WRITE of a queue pair fails\n"
	"  kverbs fault add emu0 qp=17 op=write nth=100 status=rem_access_err\n",
	.run = run,
};
