/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of the machine, and the modules that are loaded: what doctor, switch, version
 * and stats read.
 *
 * Paths are given as for printf(3) and begin with a slash. They are below the root that
 * --root names, "/" without it.
 */
#ifndef KVERBS_FILES_H
#define KVERBS_FILES_H

#include <dirent.h>
#include <limits.h>

#include "kverbs.h"

/* The option of commands that can look at another root. @gap leads to the others' descriptions. */
#define ROOT_HELP(gap)							\
	"  -r, --root DIR" gap "look at the machine whose / is at DIR: a tree that is mounted there\n"

#define STATUS_NONE	(-1)

/*
 * For the options that these commands share, --root and --help, and those that getopt_long()
 * does not know. Return: STATUS_NONE to go on, or an exit status.
 */
int machine_option(const struct command *cmd, int option);
/* Whether there is another root than "/". */
bool has_root(void);
/* Return: path, filled in. */
const char *in_root(char path[PATH_MAX], const char *format, ...)
	__printf(2, 3);
bool file_exists(const char *format, ...) __printf(1, 2);
/* Return: NULL with errno, if the file cannot be opened. */
FILE *open_to_read(const char *format, ...) __printf(1, 2);
/* Reads the first line, without its end. Return: false, and line "", if there is none. */
bool read_line(char *line, size_t size, const char *format, ...)
	__printf(3, 4);
/* Return: NULL if the directory cannot be opened; next_name() takes that for an empty one. */
DIR *open_dir(const char *format, ...) __printf(1, 2);
/* The next name that does not begin with a dot. Return: NULL at the end. */
const char *next_name(DIR *dir);

#endif /* KVERBS_FILES_H */
