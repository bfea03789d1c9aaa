// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of a client. Each CPU has counters of its own, so counting takes no
 * lock, and no cache line from other CPUs; a reader adds them up.
 *
 * What goes up and down may go up on a CPU that the reader has passed, and down on another: the sum
 * is then less than 0, for which the reader gets 0.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/time64.h>

#include "peer.h"

u64 peer_stat_sum(const struct peer_client *client, enum peer_stat stat)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(client->stats, cpu)->count[stat]);
	return max_t(s64, sum, 0);
}

void peer_count_revoke(struct peer_client *client, u64 ns)
{
	long us = div_u64(ns, NSEC_PER_USEC);
	long max = atomic_long_read(&client->max_revoke_us);

	peer_count(client, PEER_STAT_REVOKES, 1);
	while (us > max && !atomic_long_try_cmpxchg(&client->max_revoke_us, &max, us))
		;
}
