// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_9p <address> <MiB>
 *	serves one file, "file", of that size, by 9P2000.L over RDMA, to one client after the other.
 *	It is kept in memory, and each client finds what the one before it has written.
 *
 * What it takes to mount that, to read and to write: else a request is answered with EOPNOTSUPP.
 * Ends when it is killed, or with 1 after saying what failed.
 */
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/stat.h>

#include "uverbs.h"

#define PORT		"5640"
#define MSIZE		65536U
#define SLOTS		32
#define FILE_NAME	"file"
#define MAX_FIDS	64

#define HEADER		7	/* size, type, tag */
#define READ_HEADER	(HEADER + 4)
#define WRITE_HEADER	(HEADER + 16)

/* Answers are one more. */
enum {
	RLERROR = 7, TSTATFS = 8, TLOPEN = 12, TGETATTR = 24, TSETATTR = 26, TFSYNC = 50,
	TVERSION = 100, TATTACH = 104, TFLUSH = 108, TWALK = 110, TREAD = 116, TWRITE = 118,
	TCLUNK = 120,
};

/* A request and the answer to it. */
struct slot {
	unsigned char in[MSIZE], out[MSIZE];
};

static struct slot *slots;
static unsigned char *contents;
static uint64_t bytes;
/* Is it the file, or the root? By number; the client's are small. */
static bool is_file[MAX_FIDS];

static uint16_t get16(const unsigned char *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return le16toh(value);
}

static uint32_t get32(const unsigned char *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const unsigned char *from)
{
	return get32(from) | (uint64_t)get32(from + 4) << 32;
}

static unsigned char *put16(unsigned char *to, uint16_t value)
{
	value = htole16(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static unsigned char *put32(unsigned char *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static unsigned char *put64(unsigned char *to, uint64_t value)
{
	return put32(put32(to, value), value >> 32);
}

static unsigned char *put_qid(unsigned char *to, bool file)
{
	*to++ = file ? 0 : 0x80;
	return put64(put32(to, 0), file ? 2 : 1);
}

static unsigned char *put_attr(unsigned char *to, bool file)
{
	int i;

	to = put_qid(put64(to, 0x7ff), file);
	to = put32(to, file ? S_IFREG | 0666 : S_IFDIR | 0777);
	to = put32(put32(to, 0), 0);
	to = put64(put64(to, file ? 1 : 2), 0);
	to = put64(to, file ? bytes : 0);
	to = put64(put64(to, 4096), bytes / 512);
	/* Times, generation and version. */
	for (i = 0; i < 10; i++)
		to = put64(to, 0);
	return to;
}

static unsigned char *put_statfs(unsigned char *to)
{
	to = put32(put32(to, 0x01021997), 4096);
	to = put64(put64(put64(to, bytes / 4096), 0), 0);
	return put32(put64(put64(put64(to, 2), 0), 0), 255);
}

/* From the root to the file, or nowhere: then 0 is returned, and the error is set. */
static unsigned char *walk(const unsigned char *in, unsigned char *to, uint32_t *error)
{
	uint32_t fid = get32(in + HEADER), new = get32(in + HEADER + 4);
	uint16_t names = get16(in + HEADER + 8), len = get16(in + HEADER + 10);

	if (names > 1 || (names && (is_file[fid % MAX_FIDS] || len != strlen(FILE_NAME) ||
				    memcmp(in + HEADER + 12, FILE_NAME, len)))) {
		*error = ENOENT;
		return NULL;
	}
	is_file[new % MAX_FIDS] = names || is_file[fid % MAX_FIDS];
	to = put16(to, names);
	return names ? put_qid(to, true) : to;
}

static unsigned char *read_file(const unsigned char *in, unsigned char *to)
{
	uint64_t offset = get64(in + HEADER + 4);
	uint32_t len = get32(in + HEADER + 12);

	if (offset >= bytes)
		len = 0;
	else if (len > bytes - offset)
		len = bytes - offset;
	if (len > MSIZE - READ_HEADER)
		len = MSIZE - READ_HEADER;
	memcpy(put32(to, len), contents + offset, len);
	return to + 4 + len;
}

static unsigned char *write_file(const unsigned char *in, unsigned char *to, uint32_t *error)
{
	uint64_t offset = get64(in + HEADER + 4);
	uint32_t len = get32(in + HEADER + 12);

	if (len > MSIZE - WRITE_HEADER || offset > bytes || len > bytes - offset) {
		*error = ENOSPC;
		return NULL;
	}
	memcpy(contents + offset, in + WRITE_HEADER, len);
	return put32(to, len);
}

/* Returns the end of the answer, or NULL with an error. */
static unsigned char *answer(const unsigned char *in, unsigned char *to, uint32_t *error)
{
	uint32_t fid = get32(in + HEADER) % MAX_FIDS;

	switch (in[4]) {
	case TVERSION:
		to = put16(put32(to, MSIZE), 8);
		memcpy(to, "9P2000.L", 8);
		return to + 8;
	case TATTACH:
		is_file[fid] = false;
		return put_qid(to, false);
	case TWALK:
		return walk(in, to, error);
	case TGETATTR:
		return put_attr(to, is_file[fid]);
	case TSTATFS:
		return put_statfs(to);
	case TLOPEN:
		return put32(put_qid(to, is_file[fid]), 0);
	case TREAD:
		return read_file(in, to);
	case TWRITE:
		return write_file(in, to, error);
	case TSETATTR:
	case TFSYNC:
	case TFLUSH:
	case TCLUNK:
		return to;
	default:
		*error = EOPNOTSUPP;
		return NULL;
	}
}

/* Returns its length. */
static uint32_t serve(struct slot *slot)
{
	uint32_t error = EINVAL;
	unsigned char *end;

	slot->out[4] = slot->in[4] + 1;
	memcpy(slot->out + 5, slot->in + 5, 2);
	end = answer(slot->in, slot->out + HEADER, &error);
	if (!end) {
		slot->out[4] = RLERROR;
		end = put32(slot->out + HEADER, error);
	}
	put32(slot->out, end - slot->out);
	return end - slot->out;
}

static int post_slot(struct rdma_cm_id *id, struct ibv_mr *mr, int i)
{
	return rdma_post_recv(id, (void *)(uintptr_t)i, slots[i].in, MSIZE, mr);
}

/* Until the connection ends. */
static void serve_client(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, slots, SLOTS * sizeof(*slots));
	struct ibv_wc wc;
	int i;

	if (!mr)
		die("cannot register memory");
	for (i = 0; i < SLOTS; i++) {
		if (post_slot(id, mr, i))
			die("cannot post a receive");
	}
	if (rdma_accept(id, NULL))
		die("cannot accept");
	while (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
		i = wc.wr_id;
		if (rdma_post_send(id, NULL, slots[i].out, serve(&slots[i]), mr, 0) ||
		    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
		    post_slot(id, mr, i))
			break;
	}
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *at;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *listener, *id;

	if (argc < 3)
		return 1;
	bytes = strtoull(argv[2], NULL, 0) << 20;
	contents = calloc(1, bytes);
	slots = aligned_alloc(4096, SLOTS * sizeof(*slots));
	if (!contents || !slots)
		die("no memory");
	if (rdma_getaddrinfo(argv[1], PORT, &hints, &at) || rdma_create_ep(&listener, at, NULL, &attr) ||
	    rdma_listen(listener, 1))
		die("cannot listen");
	while (!rdma_get_request(listener, &id))
		serve_client(id);
	die("no connection");
}
