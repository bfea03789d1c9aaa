// SPDX-License-Identifier: GPL-2.0-only
/* There is a tracepoint for calls of sk_data_ready() (6.3). */
#include <trace/events/sock.h>

static void __used probe(struct sock *sk)
{
	trace_sk_data_ready(sk);
}
