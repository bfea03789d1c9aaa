/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures: records of the messages of a device, for a reader of its file in debugfs.
 */
#ifndef KVERBS_EMU_CAPTURE_H
#define KVERBS_EMU_CAPTURE_H

#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <uapi/kverbs/emu_capture.h>

#include "../lib/emu.h"
#include "../lib/gate.h"
#include "../lib/outcome.h"
#include "../queue/ring.h"

struct emu_exec;
struct emu_swqe;

/**
 * struct emu_capture_slot - a record in the buffer
 * @slot: sequence number, first
 * @dropped: the message was not sent after all; the reader passes over the record
 * @rec: the record
 * @data: behind it
 */
struct emu_capture_slot {
	struct emu_slot slot;
	bool dropped;
	struct kverbs_emu_capture_record rec;
	u8 data[];
};

/**
 * struct emu_capture - a capture, from the opening of the file to its release
 * @edev: the device; NULL before the start, and once it goes. Guarded by emu_capture_lock
 * @gate: open while there are records to be made; owners are inside while they make one
 * @ring: the buffer; entries count until they are taken
 * @snaplen: maximum number of bytes of data that are recorded of a message
 * @qpn: the queue pair, at either end, that is captured; 0 for all
 * @lost: records that found the buffer full
 * @reported: how many of those were reported to the reader; belongs to the reader
 * @started: there is a buffer
 * @ended: there will be no more records
 * @wait: the reader waits here
 * @wake: wakes the reader: an owner may be in any context
 * @reading: serialises readers
 * @rcu: frees it
 */
struct emu_capture {
	struct emu_device *edev;
	struct emu_gate gate;
	struct emu_ring ring;
	u32 snaplen;
	u32 qpn;
	atomic64_t lost;
	u64 reported;
	bool started;
	bool ended;
	wait_queue_head_t wait;
	struct irq_work wake;
	struct mutex reading;
	struct rcu_head rcu;
};

/* A message is captured at either end. */
#define EMU_CAPTURE_ENDS	2

/**
 * struct emu_captured - the records of a message that is being executed
 * @nr: number of them, mostly 0
 * @answered: the answer is there, whatever becomes of the entry
 * @end: the captures, whose gates are entered, and places of the records in their buffers
 */
struct emu_captured {
	unsigned int nr;
	bool answered;
	struct {
		struct emu_capture *capture;
		struct emu_capture_slot *slot;
		u32 pos;
	} end[EMU_CAPTURE_ENDS];
};

/* capture.c */
void emu_capture_begin(struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done);
void emu_capture_answer(struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done);
void emu_capture_end(struct emu_exec *ex, enum emu_outcome outcome, struct emu_captured *done);

/* capture_file.c */
void emu_capture_debugfs(struct emu_device *edev, struct dentry *dir);
void emu_capture_stop(struct emu_device *edev);

#endif
