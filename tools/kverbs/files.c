// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of the machine: what /sys, /proc and /etc say, below another root if one is
 * set.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

/* The directory that stands for /; "" for the machine's own. */
static const char *root = "";

/* Return: false if dir is no directory. */
static bool set_root(const char *dir)
{
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return false;
	root = strcmp(dir, "/") ? dir : "";
	return true;
}

int machine_option(const struct command *cmd, int option)
{
	switch (option) {
	case 'r':
		if (!set_root(optarg))
			return usage_error(cmd, "%s is not a directory", optarg);
		return STATUS_NONE;
	case 'h':
		return command_help(cmd);
	default:
		return option_error(cmd);
	}
}

bool has_root(void)
{
	return *root;
}

static void path_of(char path[PATH_MAX], const char *format, va_list args)
{
	size_t used;

	snprintf(path, PATH_MAX, "%s", root);
	used = strlen(path);
	vsnprintf(path + used, PATH_MAX - used, format, args);
}

const char *in_root(char path[PATH_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	path_of(path, format, args);
	va_end(args);
	return path;
}

bool file_exists(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	path_of(path, format, args);
	va_end(args);
	return !access(path, F_OK);
}

FILE *open_to_read(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	path_of(path, format, args);
	va_end(args);
	return fopen(path, "re");
}

bool read_line(char *line, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;
	bool ok;

	va_start(args, format);
	path_of(path, format, args);
	va_end(args);
	*line = '\0';
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(line, size, file);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return ok;
}

DIR *open_dir(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	path_of(path, format, args);
	va_end(args);
	return opendir(path);
}

const char *next_name(DIR *dir)
{
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			return entry->d_name;
	return NULL;
}
