// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which changes of a QP's state are legal, and which attributes each of them
 * needs or allows: IBTA vol. 1, 10.3.1 and table 91 in 11.2.5.2, with the
 * additions of Linux for XRC and raw packet QPs. Constant data, no locks.
 */
#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <rdma/ib_verbs.h>

#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "verbs.h"

/* Sets of QP types, as bits. */
#define RC	BIT(IB_QPT_RC)
#define UC	BIT(IB_QPT_UC)
#define INI	BIT(IB_QPT_XRC_INI)
#define TGT	BIT(IB_QPT_XRC_TGT)
#define UD	BIT(IB_QPT_UD)
#define RAW	BIT(IB_QPT_RAW_PACKET)
#define SPECIAL	(BIT(IB_QPT_SMI) | BIT(IB_QPT_GSI))

#define REQUESTER	(RC | INI)	/* waits for acknowledgements */
#define RESPONDER	(RC | TGT)	/* sends them */
#define CONNECTED	(RC | UC | INI | TGT)
#define DATAGRAM	(UD | SPECIAL)

/* Attributes that go together. */
#define PATH_CHANGE	(IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS)
#define MIGRATION	(PATH_CHANGE | IB_QP_PATH_MIG_STATE)
#define RETRIES		(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | \
			 IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC)

/* By state: the states that it may change to. */
static const u8 legal_moves[] = {
	[IB_QPS_RESET]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_INIT),
	[IB_QPS_INIT]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_INIT) |
			  BIT(IB_QPS_RTR) | BIT(IB_QPS_ERR),
	[IB_QPS_RTR]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_RTS) | BIT(IB_QPS_ERR),
	[IB_QPS_RTS]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_RTS) |
			  BIT(IB_QPS_SQD) | BIT(IB_QPS_ERR),
	[IB_QPS_SQD]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_RTS) |
			  BIT(IB_QPS_SQD) | BIT(IB_QPS_ERR),
	[IB_QPS_SQE]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_RTS) | BIT(IB_QPS_ERR),
	[IB_QPS_ERR]	= BIT(IB_QPS_RESET) | BIT(IB_QPS_ERR),
};

/* States that a caller may name with IB_QP_CUR_STATE. */
#define CUR_STATES	(BIT(IB_QPS_RTR) | BIT(IB_QPS_RTS) | \
			 BIT(IB_QPS_SQD) | BIT(IB_QPS_SQE))

/*
 * A rule adds attributes to the moves between two states, for some types. All
 * rules that match a move apply. A legal move without a rule takes no
 * attributes.
 */
struct qp_rule {
	u8 from;
	u8 to;
	u16 types;
	u32 required;
	u32 optional;
};

#define NEED(from, to, types, attrs) \
	{ IB_QPS_##from, IB_QPS_##to, types, attrs, 0 }
#define MAY(from, to, types, attrs) \
	{ IB_QPS_##from, IB_QPS_##to, types, 0, attrs }

static const struct qp_rule rules[] = {
	NEED(RESET, INIT, CONNECTED | DATAGRAM, IB_QP_PKEY_INDEX),
	NEED(RESET, INIT, CONNECTED | UD | RAW, IB_QP_PORT),
	NEED(RESET, INIT, CONNECTED, IB_QP_ACCESS_FLAGS),
	NEED(RESET, INIT, DATAGRAM, IB_QP_QKEY),

	MAY(INIT, INIT, CONNECTED | DATAGRAM, IB_QP_PKEY_INDEX),
	MAY(INIT, INIT, CONNECTED | UD, IB_QP_PORT),
	MAY(INIT, INIT, CONNECTED, IB_QP_ACCESS_FLAGS),
	MAY(INIT, INIT, DATAGRAM, IB_QP_QKEY),

	NEED(INIT, RTR, CONNECTED, IB_QP_AV | IB_QP_PATH_MTU |
				   IB_QP_DEST_QPN | IB_QP_RQ_PSN),
	NEED(INIT, RTR, RESPONDER, IB_QP_MAX_DEST_RD_ATOMIC |
				   IB_QP_MIN_RNR_TIMER),
	MAY(INIT, RTR, CONNECTED, PATH_CHANGE | IB_QP_PKEY_INDEX),
	MAY(INIT, RTR, DATAGRAM, IB_QP_PKEY_INDEX | IB_QP_QKEY),

	NEED(RTR, RTS, CONNECTED | DATAGRAM, IB_QP_SQ_PSN),
	NEED(RTR, RTS, REQUESTER, RETRIES),
	NEED(RTR, RTS, TGT, IB_QP_TIMEOUT),
	MAY(RTR, RTS, CONNECTED, IB_QP_CUR_STATE | MIGRATION),
	MAY(RTR, RTS, RESPONDER, IB_QP_MIN_RNR_TIMER),
	MAY(RTR, RTS, DATAGRAM, IB_QP_CUR_STATE | IB_QP_QKEY),
	MAY(RTR, RTS, RAW, IB_QP_RATE_LIMIT),

	MAY(RTS, RTS, CONNECTED, IB_QP_CUR_STATE | MIGRATION),
	MAY(RTS, RTS, RESPONDER, IB_QP_MIN_RNR_TIMER),
	MAY(RTS, RTS, DATAGRAM, IB_QP_CUR_STATE | IB_QP_QKEY),
	MAY(RTS, RTS, RAW, IB_QP_RATE_LIMIT),

	MAY(RTS, SQD, CONNECTED | DATAGRAM, IB_QP_EN_SQD_ASYNC_NOTIFY),

	MAY(SQD, RTS, CONNECTED, IB_QP_CUR_STATE | MIGRATION),
	MAY(SQD, RTS, RESPONDER, IB_QP_MIN_RNR_TIMER),
	MAY(SQD, RTS, DATAGRAM, IB_QP_CUR_STATE | IB_QP_QKEY),

	MAY(SQD, SQD, CONNECTED, IB_QP_AV | MIGRATION | IB_QP_PKEY_INDEX),
	MAY(SQD, SQD, REQUESTER | TGT, IB_QP_PORT | IB_QP_TIMEOUT),
	MAY(SQD, SQD, REQUESTER, RETRIES),
	MAY(SQD, SQD, RESPONDER, IB_QP_MAX_DEST_RD_ATOMIC |
				 IB_QP_MIN_RNR_TIMER),
	MAY(SQD, SQD, DATAGRAM, IB_QP_PKEY_INDEX | IB_QP_QKEY),

	MAY(SQE, RTS, UC, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS),
	MAY(SQE, RTS, DATAGRAM, IB_QP_CUR_STATE | IB_QP_QKEY),
};

/* By bit of &enum ib_qp_attr_mask. */
static const char * const attr_names[] = {
	"qp_state", "cur_qp_state", "en_sqd_async_notify", "qp_access_flags", "pkey_index",
	"port_num", "qkey", "ah_attr", "path_mtu", "timeout", "retry_cnt", "rnr_retry",
	"rq_psn", "max_rd_atomic", "alt_path", "min_rnr_timer", "sq_psn",
	"max_dest_rd_atomic", "path_mig_state", "cap", "dest_qp_num",
	[ilog2(IB_QP_RATE_LIMIT)] = "rate_limit",
};

/* The name of the first attribute in @mask, which is not 0. */
static const char *first_attr_name(u32 mask)
{
	unsigned int bit = __ffs(mask);

	return bit < ARRAY_SIZE(attr_names) && attr_names[bit] ? attr_names[bit] :
								 "a reserved attribute";
}

/*
 * Returns what forbids a change of state, for the log, or NULL if nothing does. Sets @attr to the
 * name of the attribute concerned, or "".
 */
static const char *move_fault(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type,
			      u32 mask, const char **attr)
{
	u32 required = 0, optional = IB_QP_STATE;
	const struct qp_rule *rule;

	*attr = "";
	if (type >= IB_QPT_MAX || from >= ARRAY_SIZE(legal_moves) ||
	    to >= ARRAY_SIZE(legal_moves) || !(legal_moves[from] & BIT(to)))
		return "not a legal change of state";
	*attr = first_attr_name(IB_QP_CUR_STATE);
	if ((mask & IB_QP_CUR_STATE) && !(CUR_STATES & BIT(from)))
		return "does not take ";

	for (rule = rules; rule < rules + ARRAY_SIZE(rules); rule++) {
		if (rule->from != from || rule->to != to || !(rule->types & BIT(type)))
			continue;
		required |= rule->required;
		optional |= rule->optional;
	}
	if (required & ~mask) {
		*attr = first_attr_name(required & ~mask);
		return "lacks ";
	}
	if (mask & ~(required | optional)) {
		*attr = first_attr_name(mask & ~(required | optional));
		return "does not take ";
	}
	return NULL;
}

/**
 * ib_modify_qp_is_ok() - test a change of state and its attributes
 * @cur_state: state the QP is in
 * @next_state: the new state; @cur_state if it does not change
 * @type: type of the QP
 * @mask: attributes given
 *
 * Helps a driver's modify_qp method to refuse what the specification forbids.
 *
 * Context: Any.
 * Return: true if the move is legal, all attributes that it needs are given,
 * and no attribute that it does not allow.
 */
bool ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
			enum ib_qp_type type, enum ib_qp_attr_mask mask)
{
	const char *attr;

	return !move_fault(cur_state, next_state, type, mask, &attr);
}
EXPORT_SYMBOL(ib_modify_qp_is_ok);

/* Logs what the core does not check, and the driver does. */
static void log_refused_attr(const struct ib_verb_call *call, const struct ib_qp_attr *attr,
			     u32 mask)
{
	const struct rdma_ah_attr *path = &attr->ah_attr;
	char text[128] = "";
	int len = 0;

	if (mask & IB_QP_CUR_STATE)
		len += scnprintf(text, sizeof(text), ", cur_qp_state %s",
				 ib_qp_state_name(attr->cur_qp_state));
	if (mask & IB_QP_ACCESS_FLAGS)
		len += scnprintf(text + len, sizeof(text) - len, ", qp_access_flags %#x",
				 attr->qp_access_flags);
	if (mask & IB_QP_AV)
		len += scnprintf(text + len, sizeof(text) - len,
				 ", ah_attr: port_num %u, dlid %u, sl %u", rdma_ah_get_port_num(path),
				 rdma_ah_get_dlid(path), rdma_ah_get_sl(path));
	if ((mask & IB_QP_AV) && (rdma_ah_get_ah_flags(path) & IB_AH_GRH))
		scnprintf(text + len, sizeof(text) - len, ", dgid %pI6",
			  rdma_ah_read_grh(path)->dgid.raw);
	ib_invalid(call, "refused by the driver (attr_mask %#x%s); query the QP's state", mask,
		   text);
}

/*
 * Logs why the driver has refused to change the state of @qp. @from is the state that the consumer
 * has set last; after an error, the device may be in another one.
 */
void ib_modify_qp_refused(const struct ib_verb_call *call, const struct ib_qp *qp,
			  enum ib_qp_state from, const struct ib_qp_attr *attr, u32 mask)
{
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	const char *fault, *name;

	fault = move_fault(from, to, qp->qp_type, mask, &name);
	if (fault)
		ib_invalid(call, "%s%s", fault, name);
	else
		log_refused_attr(call, attr, mask);
}
