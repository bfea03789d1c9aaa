// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frames of RoCE v2 that a message would be on a wire: IBTA vol. 1, chapter 9, and annex 17.
 *
 * Whatever the device is, the frames are Ethernet and UDP. The address of an InfiniBand port is
 * fe80::<LID> if there is no global route. Ethernet addresses that are not known are made from
 * GIDs.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>
#include <rdma/ib_user_verbs.h>

#include "capture.h"

/* IB_UVERBS_WR_ATOMIC_WRITE, which headers before Linux 6.2 do not have. */
#define WR_ATOMIC_WRITE	15

#define ROCE_PORT	4791
#define NO_VLAN		0xffff
#define PSN_MASK	0xffffff
#define FLOW_LABEL	0xfffff
#define DEFAULT_HOPS	64

#define BTH_BYTES	12
#define ICRC_BYTES	4

/* Operations, without the transport: IBTA vol. 1, table 38. */
enum {
	SEND_FIRST	= 0x00,
	SEND_LAST_IMM	= 0x03,
	WRITE_FIRST	= 0x06,
	READ_REQUEST	= 0x0c,
	READ_RESPONSE	= 0x0d,
	ACK		= 0x11,
	ATOMIC_ACK	= 0x12,
	CMP_SWAP	= 0x13,
	FETCH_ADD	= 0x14,
	SEND_LAST_INV	= 0x16,
	SEND_ONLY_INV	= 0x17,
	ATOMIC_WRITE	= 0x1d,
};

/* Offsets from the first opcode of an operation. */
enum {
	MIDDLE		= 1,
	LAST		= 2,
	SEND_ONLY	= 4,
	RESPONSE_ONLY	= 3,
};

/**
 * struct packet - a packet to be made a frame of
 * @opcode: with the transport
 * @answer: it goes from the responder to the requester
 * @solicited: it asks for an event
 * @ack: it asks for an acknowledgment
 * @psn: its number
 * @headers: extended transport headers
 * @header_size: bytes of them
 * @length: bytes of payload
 * @data: the payload
 * @kept: how much of it was recorded
 */
struct packet {
	uint8_t opcode;
	bool answer;
	bool solicited;
	bool ack;
	uint32_t psn;
	uint8_t headers[32];
	uint32_t header_size;
	uint32_t length;
	const uint8_t *data;
	uint32_t kept;
};

/* What the functions below share while they write one message. */
struct message {
	const struct kverbs_emu_capture_record *rec;
	const uint8_t *data;
	FILE *out;
	unsigned int frames;
};

/* --- bytes --------------------------------------------------------------------- */

static uint8_t *put8(uint8_t *at, uint8_t value)
{
	*at = value;
	return at + 1;
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	return put8(put8(at, value >> 8), value);
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	return put32(put32(at, value >> 32), value);
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

static void add32(struct packet *pkt, uint32_t value)
{
	put32(pkt->headers + pkt->header_size, value);
	pkt->header_size += sizeof(value);
}

static void add64(struct packet *pkt, uint64_t value)
{
	put64(pkt->headers + pkt->header_size, value);
	pkt->header_size += sizeof(value);
}

static uint32_t crc_of_byte(uint32_t crc)
{
	int bit;

	for (bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return crc;
}

/* Adds bytes to a CRC of Ethernet. The table is filled at first use: only table[0] is 0. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t size)
{
	static uint32_t table[256];
	uint32_t byte;

	for (byte = 0; !table[255] && byte < 256; byte++)
		table[byte] = crc_of_byte(byte);
	while (size--)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return crc;
}

/* --- addresses ----------------------------------------------------------------- */

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

static void gid_of_lid(uint8_t gid[16], uint16_t lid)
{
	memset(gid, 0, 16);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	put16(gid + 14, lid);
}

static void mac_of_gid(uint8_t mac[6], const uint8_t gid[16])
{
	bool multicast = is_ipv4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;

	if (!multicast && gid[11] == 0xff && gid[12] == 0xfe) {
		memcpy(mac, gid + 8, 3);
		memcpy(mac + 3, gid + 13, 3);
		mac[0] ^= 2;
		return;
	}
	memcpy(mac + 2, gid + 12, 4);
	mac[0] = multicast ? 0x33 : 0x02;
	mac[1] = multicast ? 0x33 : 0x4b;
	if (multicast && is_ipv4(gid)) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] &= 0x7f;
	}
}

/* An end of a message. */
struct end {
	uint8_t gid[16];
	uint8_t mac[6];
};

static void end_of(struct end *end, const uint8_t mac[6], const uint8_t gid[16], uint16_t lid,
		   bool grh)
{
	static const uint8_t unknown[6];

	if (grh)
		memcpy(end->gid, gid, sizeof(end->gid));
	else
		gid_of_lid(end->gid, lid);
	if (memcmp(mac, unknown, sizeof(unknown)))
		memcpy(end->mac, mac, sizeof(end->mac));
	else
		mac_of_gid(end->mac, end->gid);
}

/* Chooses the UDP port as senders do: it is the same for all packets of a stream. */
static uint16_t source_port(const struct kverbs_emu_capture_record *rec)
{
	uint64_t mixed = (uint64_t)rec->src_qpn * rec->dest_qpn;
	uint32_t label = rec->flow & FLOW_LABEL;

	if (!label)
		label = (mixed ^ mixed >> 20 ^ mixed >> 40) & FLOW_LABEL;
	return ((label & 0x3fff) ^ label >> 14) | 0xc000;
}

/* --- one frame ----------------------------------------------------------------- */

static uint8_t *put_ethernet(uint8_t *at, const struct kverbs_emu_capture_record *rec,
			     const struct end *from, const struct end *to)
{
	at = put_bytes(at, to->mac, sizeof(to->mac));
	at = put_bytes(at, from->mac, sizeof(from->mac));
	if (rec->vlan_id != NO_VLAN)
		at = put16(put16(at, 0x8100), (rec->sl & 7) << 13 | (rec->vlan_id & 0xfff));
	return put16(at, is_ipv4(to->gid) ? 0x0800 : 0x86dd);
}

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* length: bytes behind the header */
static uint8_t *put_ip(uint8_t *at, const struct kverbs_emu_capture_record *rec,
		       const struct end *from, const struct end *to, uint32_t length)
{
	uint8_t hops = rec->hop_limit ? rec->hop_limit : DEFAULT_HOPS;
	uint8_t *header = at;

	if (!is_ipv4(to->gid)) {
		at = put32(at, 6U << 28 | rec->flow);
		at = put8(put8(put16(at, length), IPPROTO_UDP), hops);
		at = put_bytes(at, from->gid, 16);
		return put_bytes(at, to->gid, 16);
	}
	at = put16(put8(put8(at, 0x45), rec->flow >> 20), 20 + length);
	at = put32(at, 0x4000);
	at = put16(put8(put8(at, hops), IPPROTO_UDP), 0);
	at = put_bytes(at, from->gid + 12, 4);
	at = put_bytes(at, to->gid + 12, 4);
	put16(header + 10, ipv4_checksum(header));
	return at;
}

static uint8_t *put_bth(uint8_t *at, const struct kverbs_emu_capture_record *rec,
			const struct packet *pkt)
{
	at = put8(at, pkt->opcode);
	at = put8(at, pkt->solicited << 7 | 1 << 6 | (-pkt->length & 3) << 4);
	at = put16(at, rec->pkey);
	at = put32(at, pkt->answer ? rec->src_qpn : rec->dest_qpn);
	return put32(at, (uint32_t)pkt->ack << 31 | (pkt->psn & PSN_MASK));
}

/*
 * Computes the CRC of all that does not change on the way. Fields that may change count as ones,
 * and so does the local route header, which InfiniBand has in front.
 */
static uint32_t icrc(const uint8_t *ip, bool ipv4, const uint8_t *end)
{
	size_t ip_size = ipv4 ? 20 : 40, head = ip_size + 8 + BTH_BYTES;
	uint8_t copy[8 + 40 + 8 + BTH_BYTES], *masked = copy + 8;

	memset(copy, 0xff, 8);
	memcpy(masked, ip, head);
	if (ipv4) {
		masked[1] = 0xff;
		masked[8] = 0xff;
		put16(masked + 10, 0xffff);
	} else {
		put32(masked, 0x6fffffff);
		masked[7] = 0xff;
	}
	put16(masked + ip_size + 6, 0xffff);
	masked[ip_size + 8 + 4] = 0xff;
	return ~crc_add(crc_add(~0U, copy, 8 + head), ip + head, end - ip - head);
}

static void put_frame(struct message *msg, const struct packet *pkt)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	bool grh = rec->flags & KVERBS_EMU_CAPTURE_GRH;
	uint32_t pad = -pkt->length & 3;
	uint32_t length = 8 + BTH_BYTES + pkt->header_size + pkt->length + pad + ICRC_BYTES;
	uint16_t port = source_port(rec);
	struct end ends[2], *from, *to;
	struct frame frame;
	uint8_t *at, *ip;
	uint32_t crc;

	end_of(&ends[0], rec->smac, rec->sgid, rec->slid, grh);
	end_of(&ends[1], rec->dmac, rec->dgid, rec->dlid, grh);
	from = &ends[pkt->answer];
	to = &ends[!pkt->answer];
	ip = put_ethernet(frame.bytes, rec, from, to);
	at = put_ip(ip, rec, from, to, length);
	at = put16(put16(at, port), ROCE_PORT);
	at = put16(put16(at, length), 0);
	at = put_bth(at, rec, pkt);
	at = put_bytes(at, pkt->headers, pkt->header_size);
	at = put_bytes(at, pkt->data, pkt->kept);
	if (pkt->kept == pkt->length) {
		while (pad--)
			at = put8(at, 0);
		crc = icrc(ip, is_ipv4(to->gid), at);
		/* Lowest byte first. */
		at = put8(put8(put8(put8(at, crc), crc >> 8), crc >> 16), crc >> 24);
	}
	frame.size = at - frame.bytes;
	frame.time = pkt->answer ? rec->ended : rec->time;
	pcapng_frame(msg->out, &frame);
	msg->frames++;
}

/* --- messages ------------------------------------------------------------------ */

static uint8_t with_transport(const struct kverbs_emu_capture_record *rec, uint8_t operation)
{
	return rec->transport << 5 | operation;
}

/* Gives the packet the part of the data that begins at offset. */
static void fill_payload(const struct message *msg, struct packet *pkt, uint32_t offset)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	uint32_t rest = rec->data_size > offset ? rec->data_size - offset : 0;

	pkt->length = rec->length - offset;
	if (pkt->length > rec->mtu)
		pkt->length = rec->mtu;
	pkt->kept = rest < pkt->length ? rest : pkt->length;
	pkt->data = msg->data + (pkt->kept ? offset : 0);
}

static uint32_t packets_of(const struct kverbs_emu_capture_record *rec)
{
	return rec->length ? (rec->length - 1) / rec->mtu + 1 : 1;
}

static void add_aeth(struct packet *pkt, const struct kverbs_emu_capture_record *rec)
{
	add32(pkt, (uint32_t)rec->syndrome << 24 | (rec->msn & PSN_MASK));
}

/* Returns the operation of packet i of n of a SEND or WRITE; base is that of the first packet. */
static uint8_t request_operation(const struct kverbs_emu_capture_record *rec, uint8_t base,
				 uint32_t i, uint32_t n)
{
	bool imm = rec->opcode == IB_UVERBS_WR_SEND_WITH_IMM ||
		   rec->opcode == IB_UVERBS_WR_RDMA_WRITE_WITH_IMM;

	if (i + 1 < n)
		return base + (i ? MIDDLE : 0);
	if (rec->opcode == IB_UVERBS_WR_SEND_WITH_INV)
		return n == 1 ? SEND_ONLY_INV : SEND_LAST_INV;
	return base + (n == 1 ? SEND_ONLY : LAST) + imm;
}

static void put_request(struct message *msg, uint8_t base)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	uint32_t i, n = packets_of(rec);

	for (i = 0; i < n; i++) {
		bool last = i + 1 == n;
		struct packet pkt = {
			.opcode = with_transport(rec, request_operation(rec, base, i, n)),
			.solicited = last && rec->flags & KVERBS_EMU_CAPTURE_SOLICITED,
			.ack = last && rec->transport == KVERBS_EMU_CAPTURE_RC,
			.psn = rec->psn + i,
		};

		if (rec->transport == KVERBS_EMU_CAPTURE_UD) {
			add32(&pkt, rec->qkey);
			add32(&pkt, rec->src_qpn);
		}
		if (base == WRITE_FIRST && !i) {
			add64(&pkt, rec->remote_addr);
			add32(&pkt, rec->rkey);
			add32(&pkt, rec->length);
		}
		if (last && (rec->opcode == IB_UVERBS_WR_SEND_WITH_IMM ||
			     rec->opcode == IB_UVERBS_WR_RDMA_WRITE_WITH_IMM))
			add32(&pkt, ntohl(rec->imm_data));
		else if (last && rec->opcode == IB_UVERBS_WR_SEND_WITH_INV)
			add32(&pkt, rec->invalidate_rkey);
		fill_payload(msg, &pkt, i * rec->mtu);
		put_frame(msg, &pkt);
	}
}

static void put_read_request(struct message *msg)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	struct packet pkt = {
		.opcode = with_transport(rec, READ_REQUEST),
		.psn = rec->psn,
		.data = msg->data,
	};

	add64(&pkt, rec->remote_addr);
	add32(&pkt, rec->rkey);
	add32(&pkt, rec->length);
	put_frame(msg, &pkt);
}

static void put_read_response(struct message *msg)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	uint32_t i, n = packets_of(rec);

	for (i = 0; i < n; i++) {
		bool last = i + 1 == n;
		struct packet pkt = { .answer = true, .psn = rec->psn + i };

		if (n == 1)
			pkt.opcode = with_transport(rec, READ_RESPONSE + RESPONSE_ONLY);
		else
			pkt.opcode = with_transport(rec, READ_RESPONSE +
						    (last ? LAST : i ? MIDDLE : 0));
		if (!i || last)
			add_aeth(&pkt, rec);
		fill_payload(msg, &pkt, i * rec->mtu);
		put_frame(msg, &pkt);
	}
}

static void put_atomic_request(struct message *msg)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	bool cmp_swap = rec->opcode == IB_UVERBS_WR_ATOMIC_CMP_AND_SWP;
	struct packet pkt = {
		.opcode = with_transport(rec, cmp_swap ? CMP_SWAP : FETCH_ADD),
		.psn = rec->psn,
		.data = msg->data,
	};

	add64(&pkt, rec->remote_addr);
	add32(&pkt, rec->rkey);
	add64(&pkt, cmp_swap ? rec->swap : rec->compare_add);
	add64(&pkt, cmp_swap ? rec->compare_add : 0);
	put_frame(msg, &pkt);
}

/* Writes an ATOMIC WRITE. The bytes of its operand are sent in their order in memory. */
static void put_atomic_write(struct message *msg)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	struct packet pkt = {
		.opcode = with_transport(rec, ATOMIC_WRITE),
		.ack = true,
		.psn = rec->psn,
		.length = sizeof(rec->swap),
		.data = (const uint8_t *)&rec->swap,
		.kept = sizeof(rec->swap),
	};

	add64(&pkt, rec->remote_addr);
	add32(&pkt, rec->rkey);
	add32(&pkt, sizeof(rec->swap));
	put_frame(msg, &pkt);
}

/* Writes an ACK, an RNR NAK, a NAK, or the answer to an atomic or an ATOMIC WRITE. */
static void put_ack(struct message *msg, uint8_t operation, uint32_t psn)
{
	const struct kverbs_emu_capture_record *rec = msg->rec;
	struct packet pkt = {
		.opcode = with_transport(rec, operation),
		.answer = true,
		.psn = psn,
		.data = msg->data,
	};

	add_aeth(&pkt, rec);
	if (operation == ATOMIC_ACK)
		add64(&pkt, rec->found);
	put_frame(msg, &pkt);
}

unsigned int frames_of(const struct kverbs_emu_capture_record *rec, const uint8_t *data, FILE *out)
{
	struct message msg = { .rec = rec, .data = data, .out = out };
	bool answered = rec->flags & KVERBS_EMU_CAPTURE_ANSWERED;
	/* NAKs of either kind have one of the upper bits. */
	bool nak = rec->syndrome & 0x60;
	bool read = false, atomic = false, atomic_write = false;

	switch (rec->opcode) {
	case IB_UVERBS_WR_RDMA_WRITE:
	case IB_UVERBS_WR_RDMA_WRITE_WITH_IMM:
		put_request(&msg, WRITE_FIRST);
		break;
	case IB_UVERBS_WR_RDMA_READ:
	case IB_UVERBS_WR_RDMA_READ_WITH_INV:
		read = true;
		put_read_request(&msg);
		break;
	case IB_UVERBS_WR_ATOMIC_CMP_AND_SWP:
	case IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD:
		atomic = true;
		put_atomic_request(&msg);
		break;
	case WR_ATOMIC_WRITE:
		atomic_write = true;
		put_atomic_write(&msg);
		break;
	default:
		put_request(&msg, SEND_FIRST);
	}
	if (!answered)
		return msg.frames;
	if (nak)
		put_ack(&msg, ACK, rec->psn);
	else if (read)
		put_read_response(&msg);
	else if (atomic)
		put_ack(&msg, ATOMIC_ACK, rec->psn);
	else if (atomic_write)
		/* It is answered as a READ of nothing. */
		put_ack(&msg, READ_RESPONSE + RESPONSE_ONLY, rec->psn);
	else
		put_ack(&msg, ACK, rec->psn + packets_of(rec) - 1);
	return msg.frames;
}
