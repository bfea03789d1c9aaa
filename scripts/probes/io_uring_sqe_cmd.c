// SPDX-License-Identifier: GPL-2.0-only
/* The command of a URING_CMD is reached through its SQE (6.6). */
#if __has_include("linux/io_uring/cmd.h")
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

static const void __used *probe(struct io_uring_cmd *cmd)
{
	return io_uring_sqe_cmd(cmd->sqe);
}
