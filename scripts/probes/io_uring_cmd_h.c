// SPDX-License-Identifier: GPL-2.0-only
/* struct io_uring_cmd has a header of its own (6.8). */
#include <linux/io_uring/cmd.h>

static struct io_uring_cmd __used probe;
