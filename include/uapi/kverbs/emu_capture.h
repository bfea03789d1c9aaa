/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Records of the messages of a software HCA (kverbs_emu), read from its file capture in debugfs:
 * /sys/kernel/debug/kverbs_emu/<device>/capture. Documentation/emu.rst is its manual.
 *
 * A capture starts when the process that has the file open writes
 *
 *   start [snaplen=<bytes>] [qp=<number>]
 *
 * to it until it closes it. read(2) returns whole records, and waits for the first one. When the
 * device is removed, read(2) still returns the records that are left, and then 0. poll(2) tells
 * when there are some. When the buffer is full, messages are still executed; their records are
 * lost, and counted. An open file holds a reference on the module.
 *
 * Errors. EINVAL: another command, or a buffer too short for a record; EBUSY: somebody
 * captures on this device, or this file has been started; ENODEV: the device goes; ENOMEM;
 * EAGAIN: nothing to read, with O_NONBLOCK; ENODATA: read before the start.
 */
#ifndef _UAPI_KVERBS_EMU_CAPTURE_H
#define _UAPI_KVERBS_EMU_CAPTURE_H

#include <linux/types.h>

#define KVERBS_EMU_CAPTURE_VERSION	1
/* Bytes of data of a message that its record holds at most, and by default. */
#define KVERBS_EMU_CAPTURE_MAX_DATA	65536
#define KVERBS_EMU_CAPTURE_DATA		256

enum kverbs_emu_capture_kind {
	KVERBS_EMU_CAPTURE_MESSAGE	= 1,
	/* Only says how many records were lost; the rest is 0. */
	KVERBS_EMU_CAPTURE_LOST		= 2,
};

/* By the numbers that the IBTA has in the opcodes of packets. */
enum kverbs_emu_capture_transport {
	KVERBS_EMU_CAPTURE_RC	= 0,
	KVERBS_EMU_CAPTURE_UC	= 1,
	KVERBS_EMU_CAPTURE_UD	= 3,
};

enum kverbs_emu_capture_flags {
	KVERBS_EMU_CAPTURE_GRH		= 1 << 0,	/* sgid and dgid are the addresses */
	KVERBS_EMU_CAPTURE_SOLICITED	= 1 << 1,
	KVERBS_EMU_CAPTURE_RETRIED	= 1 << 2,	/* it was sent before */
	KVERBS_EMU_CAPTURE_ANSWERED	= 1 << 3,	/* the responder answered */
};

/**
 * struct kverbs_emu_capture_record - a message, sent once
 * @size: bytes of the record, with the data
 * @version: KVERBS_EMU_CAPTURE_VERSION
 * @kind: enum kverbs_emu_capture_kind
 * @opcode: of the request, enum ib_uverbs_wr_opcode
 * @time: when it was sent, in nanoseconds since 1970
 * @ended: when it was answered, or dropped
 * @lost: records that were lost so far, as the sender saw it when it made the record. Senders are
 *	not in step: it may be less than in the record before, and the most is what counts
 * @remote_addr: of RDMA and atomic operations
 * @compare_add: of an atomic: what to compare with, or to add
 * @swap: what to store then; of an ATOMIC WRITE: what to store
 * @found: of an atomic: what was there; only with KVERBS_EMU_CAPTURE_ANSWERED
 * @rkey: of RDMA and atomic operations
 * @length: bytes of the message, of a READ: of the answer
 * @data_size: how many of them follow the structure
 * @imm_data: immediate data, as on the wire
 * @invalidate_rkey: the key that a SEND invalidates
 * @src_qpn: the requester's queue pair
 * @dest_qpn: the responder's
 * @qkey: of a datagram
 * @psn: number of the first packet. It counts the messages that were captured
 * @msn: messages that the responder has completed, with this one if that is an ACK; likewise
 * @flow: traffic class << 20 | flow label
 * @pkey: P_Key of the requester
 * @mtu: bytes of data in a packet
 * @slid: the requester's LID; 0 on an Ethernet port
 * @dlid: where it was sent to; likewise
 * @vlan_id: VLAN, or 0xffff
 * @transport: enum kverbs_emu_capture_transport
 * @flags: enum kverbs_emu_capture_flags
 * @syndrome: of the answer, as in an AETH: 0x1f for an ACK, 0x20 and the code of the time to
 *	wait for an RNR NAK, 0x60 and a code for a NAK
 * @hop_limit: of the global route
 * @sl: service level
 * @smac: the requester's address on an Ethernet port, or 0
 * @dmac: the responder's, or 0 where that is not known
 * @sgid: the requester's GID
 * @dgid: the responder's
 * @reserved: 0
 */
struct kverbs_emu_capture_record {
	__u32 size;
	__u16 version;
	__u8 kind;
	__u8 opcode;
	__u64 time;
	__u64 ended;
	__u64 lost;
	__u64 remote_addr;
	__u64 compare_add;
	__u64 swap;
	__u64 found;
	__u32 rkey;
	__u32 length;
	__u32 data_size;
	union {
		__be32 imm_data;
		__u32 invalidate_rkey;
	};
	__u32 src_qpn;
	__u32 dest_qpn;
	__u32 qkey;
	__u32 psn;
	__u32 msn;
	__u32 flow;
	__u16 pkey;
	__u16 mtu;
	__u16 slid;
	__u16 dlid;
	__u16 vlan_id;
	__u8 transport;
	__u8 flags;
	__u8 syndrome;
	__u8 hop_limit;
	__u8 sl;
	__u8 smac[6];
	__u8 dmac[6];
	__u8 sgid[16];
	__u8 dgid[16];
	__u8 reserved[5];
};

#endif /* _UAPI_KVERBS_EMU_CAPTURE_H */
