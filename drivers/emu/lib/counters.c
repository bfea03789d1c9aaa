// SPDX-License-Identifier: GPL-2.0-only
/*
 * Port counters, as sysfs shows them in counters/ and hw_counters/.
 *
 * The engine counts per CPU, without a lock. A reader adds up what it finds.
 */
#include "emu.h"

/*
 * The names that user space sees: where rdma_rxe counts the same, its names. Those of IBTA's
 * PortCounters appear in counters/.
 */
static const struct rdma_stat_desc emu_counter_descs[EMU_NR_COUNTERS] = {
	[EMU_CNT_XMIT_DATA].name = "port_xmit_data",
	[EMU_CNT_XMIT_PACKETS].name = "port_xmit_packets",
	[EMU_CNT_RCV_DATA].name = "port_rcv_data",
	[EMU_CNT_RCV_PACKETS].name = "port_rcv_packets",
	[EMU_CNT_RNR].name = "rcvd_rnr_err",
	[EMU_CNT_RNR_SENT].name = "send_rnr_err",
	[EMU_CNT_RNR_EXCEEDED].name = "retry_rnr_exceeded_err",
	[EMU_CNT_TIMEOUT].name = "ack_timeout_err",
	[EMU_CNT_TIMEOUT_EXCEEDED].name = "retry_exceeded_err",
	[EMU_CNT_LOST].name = "lost_completions",
	[EMU_CNT_DROPPED].name = "rx_dropped",
	[EMU_CNT_QKEY].name = "qkey_viol_cntr",
	[EMU_CNT_PKEY].name = "bad_pkey_cntr",
	[EMU_CNT_LINK_DOWNED].name = "link_downed",
};

/* Returns the sum over all CPUs; for data, in words of 32 bits, as the IBTA defines it. */
u64 emu_read_counter(const struct emu_port *port, enum emu_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(port->counters, cpu)->value[counter]);
	return counter == EMU_CNT_XMIT_DATA || counter == EMU_CNT_RCV_DATA ? sum / 4 : sum;
}

struct rdma_hw_stats *emu_alloc_port_stats(struct ib_device *ibdev, u32 port_num)
{
	return rdma_alloc_hw_stats_struct(emu_counter_descs, EMU_NR_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* Updates all counters, whichever @index asks for, and returns their number. */
int emu_get_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port_num, int index)
{
	const struct emu_port *port = emu_port(ibdev, port_num);
	int i;

	for (i = 0; i < EMU_NR_COUNTERS; i++)
		stats->value[i] = emu_read_counter(port, i);
	return EMU_NR_COUNTERS;
}
