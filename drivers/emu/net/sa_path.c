// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator: paths. All ports of the fabric are one hop from each other, so a path
 * consists of two ports that are up, with the MTU and the rate that both support.
 */
#include "sa.h"

/* The fields that identify the two ends of a path. */
#define EMU_SA_SOURCE		(IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_SLID)
#define EMU_SA_DESTINATION	(IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_DLID)

/* Fields with a selector have it in the upper bits, and the value in the lower ones. */
#define EMU_SA_SELECTOR_SHIFT	6
#define EMU_SA_VALUE_MASK	0x3f
/* A bit of numb_path, which is set in all paths: they can be used in both directions. */
#define EMU_SA_REVERSIBLE	0x80
#define EMU_SA_SL_MASK		0xf

/* Mbit/s of one lane, rounded up so that the rate of several lanes is not missed. */
static int emu_sa_lane_mbps(u16 speed)
{
	switch (speed) {
	case IB_SPEED_SDR:
		return 2500;
	case IB_SPEED_DDR:
		return 5000;
	case IB_SPEED_QDR:
	case IB_SPEED_FDR10:
		return 10000;
	case IB_SPEED_FDR:
		return 14063;
	case IB_SPEED_EDR:
		return 25782;
	case IB_SPEED_HDR:
		return 53125;
	case IB_SPEED_NDR:
		return 106250;
	default:
		return 212500;
	}
}

/* Returns the highest rate that does not exceed @mbps. Their numbers are in no order. */
static u8 emu_sa_rate_from_mbps(int mbps)
{
	u8 rate, best = IB_RATE_2_5_GBPS;

	for (rate = IB_RATE_2_5_GBPS; rate <= EMU_SA_VALUE_MASK; rate++) {
		if (ib_rate_to_mbps(rate) <= mbps &&
		    ib_rate_to_mbps(rate) > ib_rate_to_mbps(best))
			best = rate;
	}
	return best;
}

/* Returns the active MTU and rate of a port. Process context. */
struct emu_sa_link emu_sa_query_link(const struct emu_port *port)
{
	struct ib_port_attr attr = {};

	emu_query_port(&port->edev->ibdev, port->num, &attr);
	return (struct emu_sa_link) {
		.mtu = attr.active_mtu,
		.rate = emu_sa_rate_from_mbps(emu_sa_lane_mbps(attr.active_speed) *
					      ib_width_enum_to_int(attr.active_width)),
	};
}

int emu_sa_mtu_value(u8 mtu)
{
	return ib_mtu_enum_to_int(mtu);
}

int emu_sa_rate_value(u8 rate)
{
	return ib_rate_to_mbps(rate);
}

/* Returns a field of an answer: the number with the selector for exactly that. */
u8 emu_sa_exactly(u8 number)
{
	return IB_SA_EQ << EMU_SA_SELECTOR_SHIFT | number;
}

/* Returns the number in a field, without the selector. */
u8 emu_sa_number(u8 selected)
{
	return selected & EMU_SA_VALUE_MASK;
}

/**
 * emu_sa_selects() - check whether a value satisfies a request
 * @wanted: selector and number, as in a record
 * @have: the value
 * @value: translates numbers to values; not positive for those without a meaning
 *
 * Context: Any.
 * Return: true if it does. A number without a meaning is satisfied by nothing.
 */
bool emu_sa_selects(u8 wanted, int have, int (*value)(u8 number))
{
	int limit = value(emu_sa_number(wanted));

	switch (wanted >> EMU_SA_SELECTOR_SHIFT) {
	case IB_SA_GT:
		return limit > 0 && have > limit;
	case IB_SA_LT:
		return limit > 0 && have < limit;
	case IB_SA_EQ:
		return limit > 0 && have == limit;
	default:
		return true;
	}
}

/*
 * Finds the port at one end of a path, by its GID, its LID or both. Returns NULL if there is none,
 * or if it is not active.
 */
static struct emu_port *emu_sa_find_end(const union ib_gid *gid, __be16 lid, bool by_gid,
					bool by_lid)
{
	struct emu_port *port = by_gid ? emu_sa_port_of_gid(gid) : emu_sa_port_of_lid(lid);

	if (!port || READ_ONCE(port->state) != IB_PORT_ACTIVE)
		return NULL;
	return by_lid && READ_ONCE(port->lid) != be16_to_cpu(lid) ? NULL : port;
}

/*
 * Returns a P_Key of @a with which it can reach @b, and which equals @wanted in the bits of @mask;
 * or 0.
 */
static u16 emu_sa_shared_pkey(const struct emu_port *a, const struct emu_port *b, u16 wanted,
			      u16 mask)
{
	u16 pkey;
	u32 i;

	for (i = 0; i < EMU_PKEY_TBL_LEN; i++) {
		pkey = emu_port_pkey(a, i);
		if (!((pkey ^ wanted) & mask) && emu_sa_hears(b, pkey))
			return pkey;
	}
	return 0;
}

static union ib_gid emu_sa_default_gid(const struct emu_port *port)
{
	union ib_gid gid = {};

	emu_query_gid(&port->edev->ibdev, port->num, 0, &gid);
	return gid;
}

static bool emu_sa_path_suits(const struct emu_sa_request *rq, const struct emu_sa_link *link)
{
	const struct emu_sa_path_rec *rec = &rq->rec.path;

	if ((rq->mask & IB_SA_PATH_REC_MTU_SELECTOR) && (rq->mask & IB_SA_PATH_REC_MTU) &&
	    !emu_sa_selects(rec->mtu, emu_sa_mtu_value(link->mtu), emu_sa_mtu_value))
		return false;
	if ((rq->mask & IB_SA_PATH_REC_RATE_SELECTOR) && (rq->mask & IB_SA_PATH_REC_RATE) &&
	    !emu_sa_selects(rec->rate, emu_sa_rate_value(link->rate), emu_sa_rate_value))
		return false;
	return !(rq->mask & IB_SA_PATH_REC_SL) || !(be16_to_cpu(rec->qos_sl) & EMU_SA_SL_MASK);
}

static struct emu_sa_link emu_sa_min_link(struct emu_sa_link a, struct emu_sa_link b)
{
	return (struct emu_sa_link) {
		.mtu = min(a.mtu, b.mtu),
		.rate = emu_sa_rate_value(a.rate) < emu_sa_rate_value(b.rate) ? a.rate : b.rate,
	};
}

enum emu_sa_status emu_sa_get_path(struct emu_sa_request *rq)
{
	struct emu_sa_path_rec *rec = &rq->rec.path;
	struct emu_port *from, *to;
	struct emu_sa_link link;
	u16 pkey;

	if (!(rq->mask & EMU_SA_SOURCE) || !(rq->mask & EMU_SA_DESTINATION))
		return EMU_SA_INSUFFICIENT;
	from = emu_sa_find_end(&rec->sgid, rec->slid, rq->mask & IB_SA_PATH_REC_SGID,
			       rq->mask & IB_SA_PATH_REC_SLID);
	to = emu_sa_find_end(&rec->dgid, rec->dlid, rq->mask & IB_SA_PATH_REC_DGID,
			     rq->mask & IB_SA_PATH_REC_DLID);
	if (!from || !to)
		return EMU_SA_NO_RECORDS;
	pkey = emu_sa_shared_pkey(from, to, be16_to_cpu(rec->pkey),
				  rq->mask & IB_SA_PATH_REC_PKEY ? 0x7fff : 0);
	link = emu_sa_min_link(emu_sa_query_link(from), emu_sa_query_link(to));
	if (!pkey || !emu_sa_path_suits(rq, &link))
		return EMU_SA_NO_RECORDS;

	*rec = (struct emu_sa_path_rec) {
		.service_id = rec->service_id,
		.dgid = rq->mask & IB_SA_PATH_REC_DGID ? rec->dgid : emu_sa_default_gid(to),
		.sgid = rq->mask & IB_SA_PATH_REC_SGID ? rec->sgid : emu_sa_default_gid(from),
		.dlid = cpu_to_be16(READ_ONCE(to->lid)),
		.slid = cpu_to_be16(READ_ONCE(from->lid)),
		.numb_path = EMU_SA_REVERSIBLE | 1,
		.pkey = cpu_to_be16(pkey),
		.mtu = emu_sa_exactly(link.mtu),
		.rate = emu_sa_exactly(link.rate),
		.life = emu_sa_exactly(EMU_DELAY),
	};
	return EMU_SA_OK;
}
