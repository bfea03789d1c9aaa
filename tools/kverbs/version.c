// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs version: the versions of this command, of the interface to the kernel that it
 * was built for, and of the modules that are loaded.
 */
#include <getopt.h>
#include <kverbs/emu.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

/* The prefix of all modules of kverbs. */
#define MODULE		"kverbs"

struct module {
	char name[64];
	/* "" if the module does not say. */
	char version[64];
};

struct modules {
	size_t count;
	struct module module[64];
};

static int compare_modules(const void *a, const void *b)
{
	return strcmp(((const struct module *)a)->name,
		      ((const struct module *)b)->name);
}

static bool is_module(const char *name)
{
	return !strncmp(name, MODULE, strlen(MODULE)) &&
	       (!name[strlen(MODULE)] || name[strlen(MODULE)] == '_');
}

/* Finds loaded modules. One without a state is about to be unloaded: none of kverbs is built in. */
static void find_modules(struct modules *modules)
{
	DIR *dir = open_dir("/sys/module");
	struct module *module;
	const char *name;

	modules->count = 0;
	while ((name = next_name(dir))) {
		if (!is_module(name) || !file_exists("/sys/module/%s/initstate", name) ||
		    modules->count == COUNT(modules->module))
			continue;
		module = &modules->module[modules->count++];
		snprintf(module->name, sizeof(module->name), "%s", name);
		read_line(module->version, sizeof(module->version),
			  "/sys/module/%s/version", name);
	}
	if (dir)
		closedir(dir);
	qsort(modules->module, modules->count, sizeof(*modules->module),
	      compare_modules);
}

/* KUnit suites have no version, because they are only built together with the rest. */
static bool differs(const struct module *module)
{
	return *module->version && strcmp(module->version, KVERBS_VERSION);
}

static int show(const struct modules *modules)
{
	const struct module *module;
	int status = STATUS_OK;
	size_t i;

	printf("command  %s\nrequests version %u (<kverbs/ca.h>)\nemulated version %u (<kverbs/emu.h>)\n",
	       KVERBS_VERSION, KVERBS_CA_VERSION, KVERBS_EMU_VERSION);
	for (i = 0; i < modules->count; i++) {
		module = &modules->module[i];
		printf("module   %s %s\n", module->name, *module->version ? module->version : "-");
	}
	if (!modules->count)
		puts("no module of kverbs is loaded");
	for (i = 0; i < modules->count; i++) {
		module = &modules->module[i];
		if (differs(module))
			status = say_error("%s has version %s, and this command has %s\n"
					   "  Install both in the same version, and reload the module.",
					   module->name, module->version, KVERBS_VERSION);
	}
	return status;
}

static int show_json(const struct modules *modules)
{
	const struct module *module;
	bool same = true;
	struct json json;
	size_t i;

	json_start(&json, stdout, false);
	json_object(&json, NULL);
	json_string(&json, "command", KVERBS_VERSION);
	json_number(&json, "ca_version", KVERBS_CA_VERSION);
	json_number(&json, "emu_version", KVERBS_EMU_VERSION);
	json_array(&json, "modules");
	for (i = 0; i < modules->count; i++) {
		module = &modules->module[i];
		json_object(&json, NULL);
		json_string(&json, "name", module->name);
		if (*module->version)
			json_string(&json, "version", module->version);
		else
			json_null(&json, "version");
		json_end(&json);
		same = same && !differs(module);
	}
	json_end(&json);
	json_bool(&json, "same", same);
	json_end(&json);
	return same ? STATUS_OK : STATUS_FAILED;
}

static int version_run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct modules modules;
	bool json = false;
	int option, status;

	while ((option = getopt_long(argc, argv, "jr:h", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json = true;
			break;
		default:
			status = machine_option(cmd, option);
			if (status != STATUS_NONE)
				return status;
		}
	}
	if (optind < argc)
		return usage_error(cmd, "takes no arguments");
	find_modules(&modules);
	return json ? show_json(&modules) : show(&modules);
}

const struct command version_command = {
	.name		= "version",
	.arguments	= "[--json] [--root DIR]",
	.summary	= "compare the versions of this command and the modules",
	.help		=
	"Prints the version of this command, those of the structures that it exchanges with the\n"
	"kernel, and that of each loaded module of kverbs. Fails if a module's version differs from\n"
	"the command's.\n"
	"\n"
	"  -j, --json       print JSON\n"
	ROOT_HELP("   ")
	"  -h, --help       print this help\n",
	.run		= version_run,
};
