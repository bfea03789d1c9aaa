// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files that emulated devices have in debugfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emulated.h"

int open_emulated(const char *device, const char *file, int flags)
{
	char path[PATH_MAX];

	if (!*device || *device == '.' || strchr(device, '/')) {
		errno = ENOENT;
		return -1;
	}
	snprintf(path, sizeof(path), EMULATED_DIR "/%s/%s", device, file);
	return open(path, flags | O_CLOEXEC);
}

bool say_no_emulation(int error)
{
	if (error == EPERM && !geteuid())
		say_error("no permission to read %s although this is root: is the kernel locked down?\n"
			  "  See /sys/kernel/security/lockdown. With Secure Boot, faults and captures are\n"
			  "  not available", EMULATED_DIR);
	else if (error == EACCES || error == EPERM)
		say_error("no permission to read %s: run this as root", EMULATED_DIR);
	else if (access(EMULATED_DIR, F_OK))
		say_error("no %s\n"
			  "  This requires the module kverbs_emu, and debugfs:\n"
			  "  mount -t debugfs none /sys/kernel/debug", EMULATED_DIR);
	else
		return false;
	return true;
}
