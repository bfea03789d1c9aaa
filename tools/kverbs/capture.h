/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs capture: frames.c makes of a message the frames that it would be on a wire, and
 * pcapng.c writes them.
 */
#ifndef KVERBS_CAPTURE_H
#define KVERBS_CAPTURE_H

#include <stdint.h>
#include <stdio.h>

#include <kverbs/emu_capture.h>

/* Headers of a frame, its longest payload, padding, and the ICRC. */
#define FRAME_MAX	(128 + 4096 + 8)

/**
 * struct frame - an Ethernet frame
 * @time: nanoseconds since 1970
 * @size: bytes of it that there are; if its data was not all recorded, fewer than its headers
 *	say
 * @bytes: from the Ethernet header on
 */
struct frame {
	uint64_t time;
	uint32_t size;
	uint8_t bytes[FRAME_MAX];
};

/* frames.c */
/*
 * Writes each frame of a message and of its answer, in the order in which they are sent. data:
 * what the record has of the message. Return: the number of frames.
 */
unsigned int frames_of(const struct kverbs_emu_capture_record *rec, const uint8_t *data, FILE *out);

/* pcapng.c: errors are left in the stream. */
/* The file begins: what wrote it, and on which device. */
void pcapng_start(FILE *out, const char *device);
void pcapng_frame(FILE *out, const struct frame *frame);
/* It ends: how many frames there are, and how many messages were lost, at time (ns). */
void pcapng_end(FILE *out, uint64_t time, uint64_t frames, uint64_t lost);

#endif /* KVERBS_CAPTURE_H */
