// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_mad <device> <address> <peer's address> <port> <MADs> <seed>
 *	sends MADs to the GSI of a peer, as a hostile host does: requests of connections to who
 *	listens at that port of RDMA_PS_TCP, right ones and others, many times over; answers to
 *	what nobody has asked; whatever may follow in connections that the peer has accepted,
 *	in any order; classes, versions, transactions and lengths that are wrong; and noise.
 *	Addresses are those of IPv4, the first is the device's. The same seed sends the same, but for
 *	the numbers that the peer has given its connections.
 *
 * A queue pair for datagrams is enough for that, with the Q_Key of a GSI, which takes root. What
 * the peer answers goes to this host's GSI, which knows nothing of it; a capture of the device
 * tells how the peer has numbered what it accepted. Exit status: 0, or 1 after saying what failed;
 * what becomes of the peer, others say.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <kverbs/emu_capture.h>

#include "uverbs.h"

#define GSI_QPN		1
#define GSI_QKEY	0x80010000U
#define MAX_GIDS	64

#define MAD_BYTES	256
/* What a port of an MTU of 1024 sends; no receive of a GSI has room for it. */
#define LONG_BYTES	1024
#define MAD_HDR		24
#define CLASS_CM	0x07
#define CLASS_VERSION	2
#define METHOD_SEND	0x03
#define METHOD_RESPONSE	0x80
#define ATTR_REQ	0x10
#define ATTR_REP	0x13
#define ATTR_RTU	0x14
#define ATTR_DREQ	0x15
#define ATTR_LAST	0x1a
/* Of which a connection's ID, and a queue pair, are taken: so that some come again. */
#define IDS		64
/* In which the peer answers a request, or has no time for it. It waits longer for what follows. */
#define ANSWER_MS	20
#define PRIVATE		(MAD_HDR + 140)

enum kind {
	RIGHT_REQ, BENT_REQ, ANSWER, FOLLOWING, WRONG_CLASS, WRONG_VERSION, WRONG_TID, WRONG_LENGTH, NOISE,
	NR_KINDS
};

/* What a GSI has agents for, or that is handled before these are looked for. */
static const unsigned char known_classes[] = { 0x01, 0x03, 0x04, 0x81 };

static uint64_t state;

/* As Knuth's MMIX has it. */
static uint32_t rnd(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

static void noise(unsigned char *to, size_t len)
{
	while (len--)
		*to++ = rnd();
}

static void put16(unsigned char *to, uint16_t value)
{
	value = htobe16(value);
	memcpy(to, &value, sizeof(value));
}

static void put32(unsigned char *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

static void put64(unsigned char *to, uint64_t value)
{
	value = htobe64(value);
	memcpy(to, &value, sizeof(value));
}

struct peer {
	struct in_addr from, to;
	uint16_t port;
};

static void gid_of(union ibv_gid *gid, struct in_addr addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

static void header(unsigned char *mad, uint16_t attr)
{
	mad[0] = 1;
	mad[1] = CLASS_CM;
	mad[2] = CLASS_VERSION;
	mad[3] = METHOD_SEND;
	put64(mad + 8, (uint64_t)rnd() << 32 | rnd());
	put16(mad + 16, attr);
}

/* One that is accepted, if somebody listens. */
static void request(unsigned char *mad, const struct peer *peer)
{
	unsigned char *cm = mad + MAD_HDR, *cma = mad + PRIVATE;
	union ibv_gid gid;

	header(mad, ATTR_REQ);
	put32(cm, rnd() % IDS + 1);
	put64(cm + 8, 0x01060000ULL | peer->port);
	put64(cm + 16, 1);
	put32(cm + 32, (rnd() % IDS + 2) << 8 | 1);
	put32(cm + 36, 1);
	/* RC; answers within 4.096 us << 10, or, to the peer's answer, << 14. */
	put32(cm + 40, 10 << 3);
	put32(cm + 44, (rnd() & 0xffffff) << 8 | 14 << 3 | 7);
	put16(cm + 48, 0xffff);
	/* An MTU of 1024, three tries. */
	cm[50] = 3 << 4 | 7;
	cm[51] = 3 << 4;
	gid_of(&gid, peer->from);
	memcpy(cm + 56, &gid, sizeof(gid));
	gid_of(&gid, peer->to);
	memcpy(cm + 72, &gid, sizeof(gid));
	cm[91] = 3;
	cm[93] = 64;
	cm[95] = 14 << 3;
	/* The connection manager's own: version 0, IPv4. */
	cma[1] = 4 << 4;
	put16(cma + 2, rnd());
	memcpy(cma + 16, &peer->from, sizeof(peer->from));
	memcpy(cma + 32, &peer->to, sizeof(peer->to));
}

/* What the peer has accepted, by its last answers. */
struct accepted {
	uint32_t here, there, qpn;
};

static struct accepted accepted[IDS];
static long nr_accepted;

static int capture_of(const char *device)
{
	static const char start[] = "start qp=1";
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kverbs_emu/%s/capture", device);
	fd = open(path, O_RDWR | O_NONBLOCK);
	if (fd < 0 || write(fd, start, sizeof(start) - 1) < 0)
		die("no capture of the device");
	return fd;
}

static uint32_t get32(const unsigned char *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

/* Takes the answers that were captured since the last time, until none comes for @ms. */
static void learn(int fd, const struct peer *peer, int ms)
{
	struct pollfd more = { .fd = fd, .events = POLLIN };
	static unsigned char records[1 << 16];
	union ibv_gid gid;
	ssize_t len, at;
	uint32_t here;

	gid_of(&gid, peer->to);
	while ((len = read(fd, records, sizeof(records))) > 0 || poll(&more, 1, ms) > 0) {
		struct kverbs_emu_capture_record rec;

		if (!len || (len < 0 && errno != EAGAIN))
			die("the capture has ended");
		for (at = 0; at < len; at += rec.size) {
			const unsigned char *mad = records + at + sizeof(rec);

			memcpy(&rec, records + at, sizeof(rec));
			if (rec.data_size < MAD_BYTES || memcmp(rec.sgid, &gid, sizeof(gid)) ||
			    mad[1] != CLASS_CM || mad[17] != ATTR_REP)
				continue;
			/* Other programs of this host are no enemies. */
			here = get32(mad + MAD_HDR + 4);
			if (!here || here > IDS)
				continue;
			accepted[nr_accepted++ % IDS] = (struct accepted){
				.here = here, .there = get32(mad + MAD_HDR),
				.qpn = get32(mad + MAD_HDR + 12) >> 8,
			};
		}
	}
}

/* In a connection that the peer accepted just now, if there is one. */
static void follow(unsigned char *mad)
{
	const struct accepted *to = &accepted[(nr_accepted + IDS - 1 - rnd() % DEPTH) % IDS];

	/* Most do not end it. */
	put16(mad + 16, rnd() % 4 ? ATTR_RTU : ATTR_REQ + 1 + rnd() % (ATTR_LAST - ATTR_REQ));
	noise(mad + MAD_HDR, MAD_BYTES - MAD_HDR);
	put32(mad + MAD_HDR, to->here);
	put32(mad + MAD_HDR + 4, to->there);
	if (mad[17] == ATTR_DREQ)
		put32(mad + MAD_HDR + 8, to->qpn << 8);
}

/* Returns its length. */
static uint32_t make(unsigned char *mad, const struct peer *peer, enum kind kind)
{
	uint32_t i;

	memset(mad, 0, LONG_BYTES);
	request(mad, peer);
	switch (kind) {
	case RIGHT_REQ:
	case NR_KINDS:
		break;
	case BENT_REQ:
		for (i = rnd() % 8; i < 8; i++)
			mad[MAD_HDR + rnd() % (MAD_BYTES - MAD_HDR)] = rnd();
		break;
	case ANSWER:
		put16(mad + 16, ATTR_REQ + 1 + rnd() % (ATTR_LAST - ATTR_REQ));
		noise(mad + MAD_HDR, MAD_BYTES - MAD_HDR);
		break;
	case FOLLOWING:
		follow(mad);
		break;
	case WRONG_CLASS:
		mad[1] = rnd() % 4 ? rnd() : known_classes[rnd() % 4];
		mad[3] = rnd();
		noise(mad + MAD_HDR, MAD_BYTES - MAD_HDR);
		break;
	case WRONG_VERSION:
		mad[rnd() % 2 ? 0 : 2] = rnd();
		break;
	case WRONG_TID:
		mad[3] |= METHOD_RESPONSE;
		put64(mad + 8, rnd() % 2 ? rnd() : (uint64_t)(rnd() % 16) << 32 | rnd() % 16);
		break;
	case WRONG_LENGTH:
		return rnd() % (LONG_BYTES + 1);
	case NOISE:
		noise(mad, MAD_BYTES);
		break;
	}
	return MAD_BYTES;
}

static struct ibv_qp *datagram_qp(struct pair *p)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = GSI_QKEY,
	};
	struct ibv_qp *qp = make_qp(p, IBV_QPT_UD);

	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				 IBV_QP_QKEY))
		die("no queue pair for datagrams with the Q_Key of a GSI");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("RTS");
	return qp;
}

/* From the GID that is the first address: the first one of that, as good as any other. */
static struct ibv_ah *path_to(struct pair *p, const struct peer *peer)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	union ibv_gid own, gid;
	struct ibv_ah *ah;
	int i;

	gid_of(&attr.grh.dgid, peer->to);
	gid_of(&own, peer->from);
	for (i = 0; i < MAX_GIDS; i++) {
		if (!ibv_query_gid(p->ctx, 1, i, &gid) && !memcmp(&gid, &own, sizeof(gid)))
			break;
	}
	if (i == MAX_GIDS) {
		fprintf(stderr, "the device has no GID of %s\n", inet_ntoa(peer->from));
		exit(1);
	}
	attr.grh.sgid_index = i;
	ah = ibv_create_ah(p->pd, &attr);
	if (!ah)
		die("no path to the peer");
	return ah;
}

static void post(struct pair *p, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge = sge_of(p, offset, len);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1, .wr.ud = { .ah = ah, .remote_qpn = GSI_QPN, .remote_qkey = GSI_QKEY },
	}, *bad;

	if (ibv_post_send(qp, &wr, &bad))
		die("cannot send");
}

int main(int argc, char **argv)
{
	long sent, total, of_kind[NR_KINDS] = {};
	enum kind kind = NOISE;
	struct peer peer = {};
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct pair *p;
	uint32_t at;
	int capture;

	if (argc < 7 || !inet_aton(argv[2], &peer.from) || !inet_aton(argv[3], &peer.to))
		return 1;
	peer.port = atoi(argv[4]);
	total = atol(argv[5]);
	state = atol(argv[6]);
	p = make_pair(open_device(argv[1]), DEPTH, false);
	qp = datagram_qp(p);
	ah = path_to(p, &peer);
	capture = capture_of(argv[1]);
	for (sent = 0; sent < total; sent++) {
		/* Of one kind for a while: floods. */
		if (sent % (4 * DEPTH) == 0)
			kind = rnd() % NR_KINDS;
		at = sent % DEPTH * LONG_BYTES;
		/* What follows comes at once, or the peer has given up. */
		if (kind == FOLLOWING && sent / DEPTH % 2 == 0)
			post(p, qp, ah, at, make(p->buf + at, &peer, RIGHT_REQ));
		else
			post(p, qp, ah, at, make(p->buf + at, &peer, kind));
		of_kind[kind]++;
		if (sent % DEPTH != DEPTH - 1)
			continue;
		for (at = 0; at < DEPTH; at++) {
			if (!poll_wc(p->cq, &wc) || wc.status != IBV_WC_SUCCESS) {
				fprintf(stderr, "after %ld MADs: %s\n", sent,
					ibv_wc_status_str(wc.status));
				return 1;
			}
		}
		learn(capture, &peer, kind == FOLLOWING ? ANSWER_MS : 0);
	}
	close(capture);
	printf("%ld MADs, %ld accepted:", sent, nr_accepted);
	for (kind = 0; kind < NR_KINDS; kind++)
		printf(" %ld", of_kind[kind]);
	printf("\n");
	if (ibv_destroy_qp(qp) || ibv_destroy_ah(ah))
		die("cannot destroy");
	free_pair(p);
	return 0;
}
