// SPDX-License-Identifier: GPL-2.0-only
/*
 * ib_modify_qp_is_ok() compared with an oracle: a text table of the legal QP state
 * transitions (IBTA volume 1, section 11.2.5, and what drivers accept in practice), parsed
 * here by code that is independent of the code under test.
 */
#include "lib/lib.h"
#include "lib/qp_oracle.h"

#define RANDOM_MASKS	200000

static const char *const state_names[] = {
	[IB_QPS_RESET] = "RESET", [IB_QPS_INIT] = "INIT", [IB_QPS_RTR] = "RTR",
	[IB_QPS_RTS] = "RTS", [IB_QPS_SQD] = "SQD", [IB_QPS_SQE] = "SQE",
	[IB_QPS_ERR] = "ERR",
};

#define NSTATES	ARRAY_SIZE(state_names)

static const struct {
	const char *name;
	enum ib_qp_type type;
} types[] = {
	{ "RC", IB_QPT_RC }, { "UC", IB_QPT_UC }, { "UD", IB_QPT_UD },
	{ "SMI", IB_QPT_SMI }, { "GSI", IB_QPT_GSI },
	{ "XINI", IB_QPT_XRC_INI }, { "XTGT", IB_QPT_XRC_TGT },
	{ "RAW", IB_QPT_RAW_PACKET },
};

static const struct {
	const char *name;
	int bit;
} words[] = {
	{ "access", IB_QP_ACCESS_FLAGS }, { "alt", IB_QP_ALT_PATH },
	{ "av", IB_QP_AV }, { "cap", IB_QP_CAP }, { "cur", IB_QP_CUR_STATE },
	{ "dest", IB_QP_DEST_QPN }, { "drd", IB_QP_MAX_DEST_RD_ATOMIC },
	{ "mig", IB_QP_PATH_MIG_STATE }, { "mtu", IB_QP_PATH_MTU },
	{ "pkey", IB_QP_PKEY_INDEX }, { "port", IB_QP_PORT },
	{ "qkey", IB_QP_QKEY }, { "rate", IB_QP_RATE_LIMIT },
	{ "rd", IB_QP_MAX_QP_RD_ATOMIC }, { "retry", IB_QP_RETRY_CNT },
	{ "rnr", IB_QP_RNR_RETRY }, { "rnrtimer", IB_QP_MIN_RNR_TIMER },
	{ "rpsn", IB_QP_RQ_PSN }, { "sqdnotify", IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ "spsn", IB_QP_SQ_PSN }, { "state", IB_QP_STATE },
	{ "timeout", IB_QP_TIMEOUT },
};

/* "from>to types: required; optional"; types are separated by '/', ALL is every type. */
static const char *const rows[] = {
	"RESET>RESET ALL:;",
	"RESET>INIT RC/UC/XINI/XTGT: pkey port access;",
	"RESET>INIT UD: pkey port qkey;",
	"RESET>INIT SMI/GSI: pkey qkey;",
	"RESET>INIT RAW: port;",

	"INIT>RESET ALL:;",
	"INIT>ERR ALL:;",
	"INIT>INIT RC/UC/XINI/XTGT:; pkey port access",
	"INIT>INIT UD:; pkey port qkey",
	"INIT>INIT SMI/GSI:; pkey qkey",
	"INIT>INIT RAW:;",
	"INIT>RTR RC/XTGT: av mtu dest rpsn drd rnrtimer; alt access pkey",
	"INIT>RTR UC/XINI: av mtu dest rpsn; alt access pkey",
	"INIT>RTR UD/SMI/GSI:; pkey qkey",
	"INIT>RTR RAW:;",

	"RTR>RESET ALL:;",
	"RTR>ERR ALL:;",
	"RTR>RTS RC: timeout retry rnr spsn rd; cur alt access rnrtimer mig",
	"RTR>RTS UC: spsn; cur alt access mig",
	"RTR>RTS UD/SMI/GSI: spsn; cur qkey",
	"RTR>RTS XINI: timeout retry rnr spsn rd; cur alt access mig",
	"RTR>RTS XTGT: timeout spsn; cur alt access rnrtimer mig",
	"RTR>RTS RAW:; rate",

	"RTS>RESET ALL:;",
	"RTS>ERR ALL:;",
	"RTS>RTS RC/XTGT:; cur alt access rnrtimer mig",
	"RTS>RTS UC/XINI:; cur alt access mig",
	"RTS>RTS UD/SMI/GSI:; cur qkey",
	"RTS>RTS RAW:; rate",
	"RTS>SQD RC/UC/UD/SMI/GSI/XINI/XTGT:; sqdnotify",
	"RTS>SQD RAW:;",

	"SQD>RESET ALL:;",
	"SQD>ERR ALL:;",
	"SQD>RTS RC/XTGT:; cur alt access rnrtimer mig",
	"SQD>RTS UC/XINI:; cur alt access mig",
	"SQD>RTS UD/SMI/GSI:; cur qkey",
	"SQD>RTS RAW:;",
	"SQD>SQD RC:; port av timeout retry rnr rd drd alt access pkey rnrtimer mig",
	"SQD>SQD XINI:; port av timeout retry rnr rd alt access pkey mig",
	"SQD>SQD XTGT:; port av timeout drd alt access pkey rnrtimer mig",
	"SQD>SQD UC:; av alt access pkey mig",
	"SQD>SQD UD/SMI/GSI:; pkey qkey",
	"SQD>SQD RAW:;",

	"SQE>RESET ALL:;",
	"SQE>ERR ALL:;",
	"SQE>RTS UD/SMI/GSI:; cur qkey",
	"SQE>RTS UC:; cur access",
	"SQE>RTS RC/XINI/XTGT/RAW:;",

	"ERR>RESET ALL:;",
	"ERR>ERR ALL:;",
};

/* Number of legal moves, the same for each QP type: detects a missing row. */
#define LEGAL_MOVES	22

static bool has_word(const char *list, size_t len, const char *word)
{
	size_t wlen = strlen(word);
	const char *p, *end = list + len;

	for (p = list; p + wlen <= end; p++) {
		bool starts = p == list || p[-1] == '/' || p[-1] == ' ';
		bool ends = p + wlen == end || p[wlen] == '/' || p[wlen] == ' ';

		if (starts && ends && !memcmp(p, word, wlen))
			return true;
	}
	return false;
}

static int words_to_mask(const char *list, size_t len)
{
	int mask = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (has_word(list, len, words[i].name))
			mask |= words[i].bit;
	return mask;
}

/* Looks up the attributes of a move of a QP type; returns false if the move is illegal. */
static bool oracle(int from, int to, int type, int *req, int *opt)
{
	char move[16];
	int i;

	snprintf(move, sizeof(move), "%s>%s ", state_names[from], state_names[to]);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *list = rows[i] + strlen(move);
		const char *colon = strchr(rows[i], ':');
		const char *semi = strchr(rows[i], ';');

		if (strncmp(rows[i], move, strlen(move)))
			continue;
		if (!has_word(list, colon - list, "ALL") &&
		    !has_word(list, colon - list, types[type].name))
			continue;
		*req = words_to_mask(colon + 1, semi - colon - 1);
		*opt = words_to_mask(semi + 1, strlen(semi + 1));
		return true;
	}
	return false;
}

static bool oracle_says(int from, int to, int type, int mask)
{
	int req, opt;

	if (!oracle(from, to, type, &req, &opt))
		return false;
	return (mask & req) == req && !(mask & ~(req | opt | IB_QP_STATE));
}

/* oracle() for other suites, which know types as enum ib_qp_type. */
bool oracle_move(int from, int to, enum ib_qp_type type, int *req, int *opt)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].type == type)
			return oracle(from, to, i, req, opt);
	return false;
}

const char *oracle_state(int state)
{
	return state_names[state];
}

static void type_desc(const int *type, char *desc)
{
	strscpy(desc, types[*type].name, KUNIT_PARAM_DESC_SIZE);
}

static const int type_indices[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
KUNIT_ARRAY_PARAM(type, type_indices, type_desc);

static bool is_ok(int from, int to, int type, int mask)
{
	return ib_modify_qp_is_ok(from, to, types[type].type, mask);
}

#define EXPECT_OK(test, want, from, to, type, mask)			\
	KUNIT_EXPECT_EQ_MSG(test, want, is_ok(from, to, type, mask),	\
			    "%s %s>%s mask %#x", types[type].name,	\
			    state_names[from], state_names[to], mask)

#define for_each_move(from, to)						\
	for ((from) = 0; (from) < NSTATES; (from)++)			\
		for ((to) = 0; (to) < NSTATES; (to)++)

static void oracle_is_complete(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt, n = 0;

	for_each_move(from, to)
		n += oracle(from, to, type, &req, &opt);
	KUNIT_EXPECT_EQ(test, LEGAL_MOVES, n);
}

static void q1_illegal_moves_are_refused_with_any_mask(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt, i;

	for_each_move(from, to) {
		if (oracle(from, to, type, &req, &opt))
			continue;
		EXPECT_OK(test, false, from, to, type, 0);
		EXPECT_OK(test, false, from, to, type, IB_QP_STATE);
		EXPECT_OK(test, false, from, to, type, (IB_QP_RATE_LIMIT << 1) - 1);
		for (i = 0; i < ARRAY_SIZE(words); i++)
			EXPECT_OK(test, false, from, to, type, IB_QP_STATE | words[i].bit);
	}
}

static void q1_legal_moves_take_least_and_most(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt;

	for_each_move(from, to) {
		if (!oracle(from, to, type, &req, &opt))
			continue;
		EXPECT_OK(test, true, from, to, type, IB_QP_STATE | req);
		EXPECT_OK(test, true, from, to, type, IB_QP_STATE | req | opt);
		EXPECT_OK(test, true, from, to, type, req | opt);
	}
}

static void q1_each_missing_attribute_is_refused(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt, i;

	for_each_move(from, to) {
		if (!oracle(from, to, type, &req, &opt))
			continue;
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (req & words[i].bit)
				EXPECT_OK(test, false, from, to, type,
					  IB_QP_STATE | (req & ~words[i].bit) | opt);
	}
}

static void q1_each_forbidden_attribute_is_refused(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt, i;

	for_each_move(from, to) {
		if (!oracle(from, to, type, &req, &opt))
			continue;
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (!((req | opt | IB_QP_STATE) & words[i].bit))
				EXPECT_OK(test, false, from, to, type,
					  IB_QP_STATE | req | words[i].bit);
	}
}

static void q1_each_set_of_legal_attributes_is_judged(struct kunit *test)
{
	int type = *(const int *)test->param_value;
	int from, to, req, opt, all, sub;

	for_each_move(from, to) {
		if (!oracle(from, to, type, &req, &opt))
			continue;
		all = req | opt;
		/* Walk all subsets of the bits in all. */
		for (sub = all; ; sub = (sub - 1) & all) {
			EXPECT_OK(test, (sub & req) == req, from, to, type, sub | IB_QP_STATE);
			if (!sub)
				break;
		}
	}
}

static void q1_random_masks_are_judged(struct kunit *test)
{
	u64 count = kvt_count(RANDOM_MASKS);
	u32 seed = kvt_seed(test, "masks", count);
	u64 i;

	for (i = 0; i < count; i++) {
		u32 r = kvt_rand(&seed);
		int from = r % NSTATES, to = r / 16 % NSTATES;
		int type = r / 256 % ARRAY_SIZE(types);
		/* Set few bits: otherwise legal masks would be too rare. */
		int mask = kvt_rand(&seed) & kvt_rand(&seed) & kvt_rand(&seed) &
			   ((IB_QP_RATE_LIMIT << 1) - 1);

		EXPECT_OK(test, oracle_says(from, to, type, mask), from, to, type, mask);
	}
}

static void cur_state_is_taken_only_where_it_means_something(struct kunit *test)
{
	int from, type;

	for (type = 0; type < ARRAY_SIZE(types); type++)
		for (from = 0; from < NSTATES; from++) {
			EXPECT_OK(test, false, from, IB_QPS_RESET, type,
				  IB_QP_STATE | IB_QP_CUR_STATE);
			EXPECT_OK(test, false, from, IB_QPS_ERR, type,
				  IB_QP_STATE | IB_QP_CUR_STATE);
		}
	EXPECT_OK(test, true, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_STATE | IB_QP_CUR_STATE);
	EXPECT_OK(test, true, IB_QPS_SQE, IB_QPS_RTS, 2, IB_QP_STATE | IB_QP_CUR_STATE);
}

static struct kunit_case core_qp_state_cases[] = {
	KUNIT_CASE_PARAM(oracle_is_complete, type_gen_params),
	KUNIT_CASE_PARAM(q1_illegal_moves_are_refused_with_any_mask, type_gen_params),
	KUNIT_CASE_PARAM(q1_legal_moves_take_least_and_most, type_gen_params),
	KUNIT_CASE_PARAM(q1_each_missing_attribute_is_refused, type_gen_params),
	KUNIT_CASE_PARAM(q1_each_forbidden_attribute_is_refused, type_gen_params),
	KUNIT_CASE_PARAM(q1_each_set_of_legal_attributes_is_judged, type_gen_params),
	KUNIT_CASE(q1_random_masks_are_judged),
	KUNIT_CASE(cur_state_is_taken_only_where_it_means_something),
	{}
};
KVT_SUITE(core_qp_state);

MODULE_DESCRIPTION("KUnit: legal QP state transitions");
MODULE_LICENSE("GPL");
