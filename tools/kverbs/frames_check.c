// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tools/check: writes the frames of messages of each kind.
 */
#include <arpa/inet.h>
#include <string.h>
#include <rdma/ib_user_verbs.h>

#include "capture.h"
#include "kverbs.h"

#define MTU		1024
#define NS_PER_SECOND	1000000000ULL

static uint8_t data[4 * MTU];
static uint64_t clock_ns = 1700000000 * NS_PER_SECOND;
static uint64_t frames;

/* All of rec that a case does not care for is filled in. */
static void write_message(struct kverbs_emu_capture_record rec)
{
	rec.time = clock_ns;
	rec.ended = clock_ns + 500;
	clock_ns += 1000;
	rec.mtu = MTU;
	rec.pkey = 0xffff;
	rec.src_qpn = 0x11;
	rec.dest_qpn = 0x12;
	rec.msn = 7;
	if (!rec.vlan_id)
		rec.vlan_id = 0xffff;
	if (!rec.syndrome)
		rec.syndrome = 0x1f;
	frames += frames_of(&rec, data, stdout);
}

#define IPV4	.flags = KVERBS_EMU_CAPTURE_GRH | KVERBS_EMU_CAPTURE_ANSWERED,	\
		.hop_limit = 64,						\
		.sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },			\
		.dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },			\
		.smac = { 2, 0, 0, 0, 0, 1 }, .dmac = { 2, 0, 0, 0, 0, 2 }

static void write_connected(void)
{
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_SEND, .psn = 10, .length = 5, .data_size = 5 });
	/* The PSN goes round. */
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_SEND_WITH_IMM, .psn = 0xffffff, .length = 2 * MTU + 1,
		.data_size = 2 * MTU + 1, .imm_data = htonl(0x1234) });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_SEND_WITH_INV, .psn = 20, .length = 2 * MTU,
		.data_size = 2 * MTU, .invalidate_rkey = 0x5678 });
	/* Only some of the data was kept. */
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_RDMA_WRITE, .psn = 30, .length = 3 * MTU,
		.data_size = MTU + 100, .remote_addr = 0x10000, .rkey = 0x999 });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_RDMA_WRITE_WITH_IMM, .psn = 40, .imm_data = htonl(1) });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_RDMA_READ, .psn = 50, .length = 2 * MTU + 8,
		.data_size = 2 * MTU + 8, .remote_addr = 0x20000, .rkey = 0x999 });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_ATOMIC_CMP_AND_SWP, .psn = 60, .length = 8,
		.compare_add = 1, .swap = 2, .found = 3, .rkey = 0x999 });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD, .psn = 61, .length = 8,
		.compare_add = 4, .found = 5, .rkey = 0x999 });
	/* An ATOMIC WRITE. */
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = 15, .psn = 62, .length = 8, .swap = 6, .remote_addr = 0x30000,
		.rkey = 0x999 });
}

static void write_failing(void)
{
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_SEND, .psn = 70, .length = 4, .data_size = 4,
		.syndrome = 0x21 });
	write_message((struct kverbs_emu_capture_record) { IPV4,
		.opcode = IB_UVERBS_WR_RDMA_READ, .psn = 71, .length = 4, .syndrome = 0x62 });
	/* Nobody answers. */
	write_message((struct kverbs_emu_capture_record) {
		.opcode = IB_UVERBS_WR_SEND, .psn = 72, .length = 4, .data_size = 4,
		.slid = 1, .dlid = 2 });
}

static void write_unreliable(void)
{
	write_message((struct kverbs_emu_capture_record) {
		.transport = KVERBS_EMU_CAPTURE_UC, .opcode = IB_UVERBS_WR_RDMA_WRITE, .psn = 80,
		.length = 3, .data_size = 3, .slid = 1, .dlid = 2, .vlan_id = 5 });
	write_message((struct kverbs_emu_capture_record) {
		.transport = KVERBS_EMU_CAPTURE_UD, .opcode = IB_UVERBS_WR_SEND_WITH_IMM, .psn = 81,
		.length = 3, .data_size = 3, .qkey = 0x11111111, .imm_data = htonl(2),
		.flags = KVERBS_EMU_CAPTURE_GRH | KVERBS_EMU_CAPTURE_SOLICITED,
		.sgid = { 0xfe, 0x80, [8] = 2, 0, 0, 0xff, 0xfe, 0, 0, 1 },
		.dgid = { 0xff, 0x12, [15] = 9 } });
}

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i;
	pcapng_start(stdout, "emu0");
	write_connected();
	write_failing();
	write_unreliable();
	pcapng_end(stdout, clock_ns, frames, 3);
	return finish_output(STATUS_OK);
}
