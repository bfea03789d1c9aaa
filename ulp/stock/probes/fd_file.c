// SPDX-License-Identifier: GPL-2.0-only
/* Macros hide the members of struct fd (6.12). */
#include <linux/file.h>

static struct file __used *probe(void)
{
	struct fd f = EMPTY_FD;

	return fd_file(f);
}
