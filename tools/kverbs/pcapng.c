// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer of pcapng files, in this machine's byte order:
 * https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/
 */
#include <string.h>

#include "capture.h"
#include "kverbs.h"

#define BLOCK_SECTION		0x0a0d0d0a
#define BLOCK_INTERFACE		1
#define BLOCK_STATISTICS	5
#define BLOCK_PACKET		6
#define BYTE_ORDER_MAGIC	0x1a2b3c4d
#define LINK_ETHERNET		1

#define OPT_END			0
#define OPT_IF_NAME		2
#define OPT_IF_TSRESOL		9
#define OPT_SHB_USERAPPL	4
#define OPT_ISB_IFRECV		4
#define OPT_ISB_IFDROP		5

/* Times are in units of 10^-9 s. */
#define NANOSECONDS		9

static uint32_t padded(uint32_t size)
{
	return (size + 3) & ~3U;
}

static void put16(FILE *out, uint16_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put32(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_padded(FILE *out, const void *data, uint32_t size)
{
	static const uint8_t zeros[4];

	fwrite(data, size, 1, out);
	fwrite(zeros, padded(size) - size, 1, out);
}

static uint32_t option_size(uint32_t size)
{
	return 2 * sizeof(uint16_t) + padded(size);
}

static void put_option(FILE *out, uint16_t code, const void *data, uint16_t size)
{
	put16(out, code);
	put16(out, size);
	put_padded(out, data, size);
}

static void put_time(FILE *out, uint64_t time)
{
	put32(out, time >> 32);
	put32(out, time);
}

void pcapng_start(FILE *out, const char *device)
{
	static const char writer[] = "kverbs " KVERBS_VERSION;
	static const uint8_t resolution = NANOSECONDS;
	uint32_t size = 28 + option_size(strlen(writer)) + option_size(0);

	put32(out, BLOCK_SECTION);
	put32(out, size);
	put32(out, BYTE_ORDER_MAGIC);
	put16(out, 1);
	put16(out, 0);
	/* The length of the section is not known. */
	put32(out, UINT32_MAX);
	put32(out, UINT32_MAX);
	put_option(out, OPT_SHB_USERAPPL, writer, strlen(writer));
	put_option(out, OPT_END, NULL, 0);
	put32(out, size);

	size = 20 + option_size(strlen(device)) + option_size(1) + option_size(0);
	put32(out, BLOCK_INTERFACE);
	put32(out, size);
	put16(out, LINK_ETHERNET);
	put16(out, 0);
	put32(out, 0);
	put_option(out, OPT_IF_NAME, device, strlen(device));
	put_option(out, OPT_IF_TSRESOL, &resolution, sizeof(resolution));
	put_option(out, OPT_END, NULL, 0);
	put32(out, size);
}

/*
 * Writes a frame. Where only a part of the data was recorded, the frame is not marked as cut off,
 * because tshark would not decode it then; its length on the wire is in its headers.
 */
void pcapng_frame(FILE *out, const struct frame *frame)
{
	uint32_t size = 32 + padded(frame->size);

	put32(out, BLOCK_PACKET);
	put32(out, size);
	put32(out, 0);
	put_time(out, frame->time);
	put32(out, frame->size);
	put32(out, frame->size);
	put_padded(out, frame->bytes, frame->size);
	put32(out, size);
}

void pcapng_end(FILE *out, uint64_t time, uint64_t frames, uint64_t lost)
{
	uint32_t size = 24 + 2 * option_size(sizeof(uint64_t)) + option_size(0);

	put32(out, BLOCK_STATISTICS);
	put32(out, size);
	put32(out, 0);
	put_time(out, time);
	put_option(out, OPT_ISB_IFRECV, &frames, sizeof(frames));
	put_option(out, OPT_ISB_IFDROP, &lost, sizeof(lost));
	put_option(out, OPT_END, NULL, 0);
	put32(out, size);
}
