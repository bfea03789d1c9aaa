// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table that a device gets from a client's table: it covers exactly the range that was
 * asked for, with the client's DMA address of each page, in as few entries as possible. An
 * invalid table is refused as a whole.
 */
#include <linux/scatterlist.h>

#include "peer/rig.h"

#define RUNS		4
#define RANDOM_TABLES	50000
#define MAX_PAGES	600
#define MAX_ENTRIES	300

struct run {
	u64 dma;
	u32 len;
};

/* A table, a range of it, and the expected result. */
struct table_row {
	const char *what;	/* for messages */
	/* Entries of the table, up to the first that has neither address nor length. */
	struct run from[RUNS];
	unsigned int nents;	/* number of entries that the caller passes */
	u64 skip;		/* bytes before the range */
	u64 length;		/* bytes of the range */
	int ret;		/* the expected return value */
	struct run to[RUNS];	/* the expected entries, if @ret is 0 */
};

static const struct table_row table_rows[] = {
	{ "all of an entry", { { 0x10000, SZ_64K } }, 1, 0, SZ_64K, 0,
	  { { 0x10000, SZ_64K } } },
	{ "a page in an entry", { { 0x10000, SZ_64K } }, 1, 0x3000, SZ_4K, 0,
	  { { 0x13000, SZ_4K } } },
	{ "first page", { { 0x10000, SZ_64K } }, 1, 0, SZ_4K, 0,
	  { { 0x10000, SZ_4K } } },
	{ "last page", { { 0x10000, SZ_64K } }, 1, 0xf000, SZ_4K, 0,
	  { { 0x1f000, SZ_4K } } },
	{ "address 0", { { 0, SZ_64K } }, 1, 0, SZ_64K, 0, { { 0, SZ_64K } } },
	{ "neighbours", { { 0x10000, SZ_64K }, { 0x20000, SZ_64K } },
	  2, 0, SZ_128K, 0, { { 0x10000, SZ_128K } } },
	{ "parts of neighbours", { { 0x10000, SZ_64K }, { 0x20000, SZ_64K } },
	  2, 0xf000, SZ_8K, 0, { { 0x1f000, SZ_8K } } },
	{ "a gap between", { { 0x10000, SZ_64K }, { 0x30000, SZ_64K } },
	  2, 0xf000, SZ_8K, 0, { { 0x1f000, SZ_4K }, { 0x30000, SZ_4K } } },
	{ "neighbours the other way round", { { 0x20000, SZ_64K }, { 0x10000, SZ_64K } },
	  2, 0, SZ_128K, 0, { { 0x20000, SZ_64K }, { 0x10000, SZ_64K } } },
	{ "the same twice", { { 0x10000, SZ_64K }, { 0x10000, SZ_64K } },
	  2, 0, SZ_128K, 0, { { 0x10000, SZ_64K }, { 0x10000, SZ_64K } } },
	{ "second entry only", { { 0x10000, SZ_64K }, { 0x80000, SZ_64K } },
	  2, SZ_64K, SZ_4K, 0, { { 0x80000, SZ_4K } } },
	{ "from the middle of the second", { { 0x10000, SZ_64K }, { 0x80000, SZ_64K },
	    { 0x90000, SZ_64K } }, 3, SZ_64K + SZ_32K, SZ_64K, 0,
	  { { 0x88000, SZ_64K } } },
	{ "first stands alone", { { 0x10000, SZ_64K }, { 0x80000, SZ_64K },
	    { 0x90000, SZ_64K } }, 3, SZ_32K, SZ_128K, 0,
	  { { 0x18000, SZ_32K }, { 0x80000, SZ_64K + SZ_32K } } },
	{ "last stands alone", { { 0x10000, SZ_64K }, { 0x20000, SZ_64K },
	    { 0x90000, SZ_64K } }, 3, SZ_32K, SZ_128K, 0,
	  { { 0x18000, SZ_64K + SZ_32K }, { 0x90000, SZ_32K } } },
	{ "entries of any size", { { 0x10000, SZ_4K }, { 0x11000, SZ_32K },
	    { 0x40000, SZ_2M } }, 3, SZ_4K, SZ_64K, 0,
	  { { 0x11000, SZ_32K }, { 0x40000, SZ_32K } } },
	{ "the end is not looked at", { { 0x10000, SZ_64K }, { 0x20800, SZ_64K } },
	  2, 0, SZ_64K, 0, { { 0x10000, SZ_64K } } },
	{ "address of 52 bits", { { BIT_ULL(52) - SZ_64K, SZ_64K } }, 1, SZ_32K,
	  SZ_32K, 0, { { BIT_ULL(52) - SZ_32K, SZ_32K } } },

	{ "too short by a page", { { 0x10000, SZ_64K } }, 1, SZ_4K, SZ_64K, -EINVAL },
	{ "range behind the end", { { 0x10000, SZ_64K } }, 1, SZ_64K, SZ_4K, -EINVAL },
	{ "range far behind the end", { { 0x10000, SZ_64K } }, 1, BIT_ULL(40), SZ_4K,
	  -EINVAL },
	{ "range that wraps", { { 0x10000, SZ_64K } }, 1, SZ_4K, 0 - (u64)SZ_4K,
	  -EINVAL },
	{ "fewer entries than said", { { 0x10000, SZ_64K } }, 2, 0, SZ_128K, -EINVAL },
	{ "no entries said", { { 0x10000, SZ_64K } }, 0, 0, SZ_4K, -EINVAL },
	{ "fewer entries said than there are", { { 0x10000, SZ_64K },
	    { 0x20000, SZ_64K } }, 1, 0, SZ_128K, -EINVAL },
	{ "misaligned address", { { 0x10800, SZ_64K } }, 1, 0, SZ_4K, -EINVAL },
	{ "misaligned second address", { { 0x10000, SZ_64K }, { 0x30200, SZ_64K } },
	  2, 0, SZ_128K, -EINVAL },
	{ "misaligned end in the middle", { { 0x10000, 0x1800 }, { 0x11800, SZ_64K } },
	  2, 0, SZ_8K, -EINVAL },
	{ "empty entry", { { 0x10000, 0 }, { 0x20000, SZ_64K } },
	  2, 0, SZ_4K, -EINVAL },
	{ "empty entry in the middle", { { 0x10000, SZ_64K }, { 0x20000, 0 },
	    { 0x30000, SZ_64K } }, 3, 0, SZ_128K, -EINVAL },
	{ "entry beyond all addresses", { { 0 - (u64)SZ_32K, SZ_64K } }, 1, 0, SZ_64K,
	  -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(table_row, table_rows, what);

static unsigned int count_runs(const struct run *runs)
{
	unsigned int n = 0;

	while (n < RUNS && (runs[n].dma || runs[n].len))
		n++;
	return n;
}

/* Builds a table of DMA addresses without pages behind them. */
static int table_of(struct sg_table *sgt, const struct run *runs, unsigned int count)
{
	struct scatterlist *sg;
	unsigned int i;
	int ret = sg_alloc_table(sgt, count, GFP_KERNEL);

	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		sg->length = runs[i].len;
		sg_dma_address(sg) = runs[i].dma;
		sg_dma_len(sg) = runs[i].len;
	}
	return 0;
}

static void expect_runs(struct kunit *test, const struct run *want, unsigned int count,
			const struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, count, sgt->nents);
	KUNIT_EXPECT_EQ(test, count, sgt->orig_nents);
	for_each_sgtable_dma_sg(sgt, sg, i) {
		KUNIT_EXPECT_EQ(test, want[i].dma, sg_dma_address(sg));
		KUNIT_EXPECT_EQ(test, want[i].len, sg_dma_len(sg));
	}
}

static void range_is_cut_out(struct kunit *test)
{
	const struct table_row *row = test->param_value;
	struct run all[RUNS];
	struct sg_table from, to = {};
	unsigned int count;

	memcpy(all, row->from, sizeof(all));
	/* An entry with neither address nor length ends the list; a table has at least one. */
	count = max(count_runs(all), 1U);
	KUNIT_ASSERT_EQ(test, 0, table_of(&from, all, count));
	KUNIT_EXPECT_EQ(test, row->ret, peer_table_trim(&to, from.sgl, row->nents,
							row->skip, row->length));
	if (!row->ret) {
		expect_runs(test, row->to, max(count_runs(row->to), 1U), &to);
		sg_free_table(&to);
	}
	expect_runs(test, all, count, &from);
	sg_free_table(&from);
}

/* Stores the DMA address of each page of a table, @most at most. Returns their number. */
static unsigned long pages_of(struct sg_table *sgt, u64 *pages, unsigned long most)
{
	unsigned long n = 0;
	struct scatterlist *sg;
	unsigned int i;
	u32 at;

	for_each_sgtable_dma_sg(sgt, sg, i)
		for (at = 0; at < sg_dma_len(sg) && n < most; at += PAGE_SIZE)
			pages[n++] = sg_dma_address(sg) + at;
	return n;
}

/* Does an entry begin where the previous one ends, so that the two could be merged? */
static bool could_be_less(struct sg_table *sgt)
{
	struct scatterlist *sg, *last = NULL;
	unsigned int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (last && sg_dma_address(last) + sg_dma_len(last) == sg_dma_address(sg))
			return true;
		last = sg;
	}
	return false;
}

/* A random table, and its pages one by one. */
struct random_table {
	u32 rand;			/* state of the random number generator */
	struct run runs[MAX_ENTRIES];	/* entries of the table */
	unsigned int count;		/* number of entries */
	u64 pages[MAX_PAGES];		/* DMA address of each page */
	u64 got[MAX_PAGES];		/* DMA address of each page that the device gets */
};

/*
 * Entries have few pages, and about half of them begin where the previous one ends. Returns
 * the number of pages.
 */
static unsigned long draw_table(struct random_table *t)
{
	unsigned int i, most = kvt_rand(&t->rand) % 16 ? 12 : MAX_ENTRIES;
	unsigned long n = 0, pages, k;
	u64 dma = 0;

	t->count = 1 + kvt_rand(&t->rand) % most;
	for (i = 0; i < t->count; i++) {
		pages = 1 + kvt_rand(&t->rand) % (t->count > 12 ? 2 : 16);
		if (kvt_rand(&t->rand) % 2)
			dma = (u64)(kvt_rand(&t->rand) % SZ_64K) << PAGE_SHIFT;
		t->runs[i] = (struct run) { dma, pages << PAGE_SHIFT };
		for (k = 0; k < pages; k++, dma += PAGE_SIZE)
			t->pages[n++] = dma;
	}
	return n;
}

static void one_random_table(struct kunit *test, struct random_table *t)
{
	unsigned long total = draw_table(t), skip, left, want;
	struct sg_table from, to = {};
	int ret;

	skip = kvt_rand(&t->rand) % total;
	/* One time in eight, the range may end one page behind the table. */
	left = total - skip + (kvt_rand(&t->rand) % 8 == 0);
	want = 1 + kvt_rand(&t->rand) % left;
	KUNIT_ASSERT_EQ(test, 0, table_of(&from, t->runs, t->count));
	ret = peer_table_trim(&to, from.sgl, t->count, (u64)skip << PAGE_SHIFT,
			      (u64)want << PAGE_SHIFT);
	sg_free_table(&from);
	KUNIT_ASSERT_EQ(test, skip + want > total ? -EINVAL : 0, ret);
	if (ret)
		return;
	KUNIT_ASSERT_EQ(test, want, pages_of(&to, t->got, MAX_PAGES));
	KUNIT_ASSERT_TRUE(test, !memcmp(t->got, t->pages + skip, want * sizeof(u64)));
	KUNIT_ASSERT_FALSE(test, could_be_less(&to));
	sg_free_table(&to);
}

static void any_range_of_any_table_is_cut_out(struct kunit *test)
{
	struct random_table *t = kvt_zalloc(test, sizeof(*t));
	u64 i, count = kvt_count(RANDOM_TABLES);

	t->rand = kvt_seed(test, "tables", count);
	for (i = 0; i < count; i++)
		one_random_table(test, t);
}

/* A long run may take several entries, whose lengths have 32 bits; there must be no gap. */
static void expect_one_run(struct kunit *test, struct sg_table *sgt, u64 dma, u64 length)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 at = dma;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		KUNIT_EXPECT_EQ(test, at, sg_dma_address(sg));
		KUNIT_EXPECT_EQ(test, 0, sg_dma_len(sg) % PAGE_SIZE);
		at += sg_dma_len(sg);
	}
	KUNIT_EXPECT_EQ(test, dma + length, at);
}

static void merged_entries_do_not_overflow(struct kunit *test)
{
	const struct run runs[] = {
		{ BIT_ULL(40), SZ_2G },
		{ BIT_ULL(40) + SZ_2G, SZ_2G },
		{ BIT_ULL(40) + 2ULL * SZ_2G, U32_MAX - SZ_4K + 1 },
		{ BIT_ULL(40) + 4ULL * SZ_2G - SZ_4K, SZ_64K },
	};
	u64 skip = SZ_1M, length = 4ULL * SZ_2G - SZ_4K + SZ_64K - SZ_1M;
	struct sg_table from, to = {};

	KUNIT_ASSERT_EQ(test, 0, table_of(&from, runs, ARRAY_SIZE(runs)));
	KUNIT_EXPECT_EQ(test, 0, peer_table_trim(&to, from.sgl, 4, skip, length));
	expect_one_run(test, &to, BIT_ULL(40) + skip, length);
	KUNIT_EXPECT_LE(test, to.nents, 5);
	sg_free_table(&to);
	KUNIT_EXPECT_EQ(test, -EINVAL, peer_table_trim(&to, from.sgl, 4, skip, length + SZ_4K));
	sg_free_table(&from);
}

static void many_entries_are_few_for_the_device(struct kunit *test)
{
	const unsigned int count = SZ_1G / SZ_64K;
	struct sg_table from, to = {};
	struct scatterlist *sg;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, sg_alloc_table(&from, count, GFP_KERNEL));
	for_each_sgtable_sg(&from, sg, i) {
		sg_dma_address(sg) = BIT_ULL(40) + (u64)i * SZ_64K;
		sg_dma_len(sg) = SZ_64K;
	}
	KUNIT_EXPECT_EQ(test, 0, peer_table_trim(&to, from.sgl, count, 0, SZ_1G));
	KUNIT_EXPECT_EQ(test, 1, to.nents);
	expect_one_run(test, &to, BIT_ULL(40), SZ_1G);
	sg_free_table(&to);
	sg_free_table(&from);
}

/* --- tables of clients --- */

struct cut_row {
	const char *what;
	unsigned long page_size;
	unsigned long offset;
	size_t size;
	struct run to[RUNS];
};

/* The mock leaves a gap of one page between the DMA addresses of its pages. */
static const struct cut_row cut_rows[] = {
	{ "one page", SZ_64K, 0, SZ_64K, { { PEER_DMA, SZ_64K } } },
	{ "one byte", SZ_64K, 0x3005, 1, { { PEER_DMA + 0x3000, SZ_4K } } },
	{ "last byte", SZ_64K, 0xffff, 1, { { PEER_DMA + 0xf000, SZ_4K } } },
	{ "two bytes of two pages", SZ_64K, 0xffff, 2,
	  { { PEER_DMA + 0xf000, SZ_4K }, { PEER_DMA + SZ_128K, SZ_4K } } },
	{ "start within a later page", SZ_64K, 0x12345, SZ_4K,
	  { { PEER_DMA + 0x2000, SZ_8K } } },
	{ "three pages", SZ_64K, SZ_32K, SZ_128K,
	  { { PEER_DMA + SZ_32K, SZ_32K }, { PEER_DMA + SZ_128K, SZ_64K },
	    { PEER_DMA + 2 * SZ_128K, SZ_32K } } },
	{ "small pages", SZ_4K, 0x1800, SZ_4K,
	  { { PEER_DMA, SZ_4K }, { PEER_DMA + SZ_8K, SZ_4K } } },
	{ "large page", SZ_2M, 0x123000, SZ_8K, { { PEER_DMA + 0x123000, SZ_8K } } },
};

KUNIT_ARRAY_PARAM_DESC(cut_row, cut_rows, what);

static void device_gets_the_range_only(struct kunit *test)
{
	const struct cut_row *row = test->param_value;
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0) + row->offset, row->size);

	m->page_size = row->page_size;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	expect_runs(test, row->to, count_runs(row->to), peer_region_table(u->region));
	peer_user_put(u);
	PEER_EXPECT_IDLE(test, m);
}

/* An unusual or invalid table of a client. */
struct bad_row {
	const char *what;		/* for messages */
	struct run runs[RUNS];		/* entries of the table */
	int nmap;			/* number of mapped entries that the client returns */
	unsigned long page_size;	/* page size that the client returns */
	int ret;			/* the expected result */
};

/* The region that is asked for has three pages of 64 KiB. */
static const struct bad_row bad_rows[] = {
	{ "one entry for all", { { 0x10000, 3 * SZ_64K } }, 1, SZ_64K, 0 },
	{ "more than needed", { { 0x10000, SZ_2M } }, 1, SZ_64K, 0 },
	{ "fewer mapped than there are", { { 0x10000, 3 * SZ_64K }, { 1, 1 } }, 1,
	  SZ_64K, 0 },
	{ "first of a larger page", { { 0x200000, SZ_2M } }, 1, SZ_2M, 0 },
	{ "nothing mapped", { { 0x10000, 3 * SZ_64K } }, 0, SZ_64K, -EINVAL },
	{ "less than nothing mapped", { { 0x10000, 3 * SZ_64K } }, -1, SZ_64K, -EINVAL },
	{ "more mapped than there are", { { 0x10000, 3 * SZ_64K } }, 2, SZ_64K, -EINVAL },
	{ "many more mapped", { { 0x10000, 3 * SZ_64K } }, INT_MAX, SZ_64K, -EINVAL },
	{ "too few mapped", { { 0x10000, SZ_64K }, { 0x20000, SZ_128K } }, 1, SZ_64K,
	  -EINVAL },
	{ "short table", { { 0x10000, SZ_128K } }, 1, SZ_64K, -EINVAL },
	{ "misaligned", { { 0x10010, 3 * SZ_64K } }, 1, SZ_64K, -EINVAL },
	{ "empty entry", { { 0x10000, SZ_64K }, { 0x20000, 0 }, { 0x20000, SZ_128K } },
	  3, SZ_64K, -EINVAL },
	{ "pages of no size", { { 0x10000, 3 * SZ_64K } }, 1, 0, -EINVAL },
	{ "pages of 3 pages", { { 0x10000, 3 * SZ_64K } }, 1, 3 * PAGE_SIZE, -EINVAL },
	{ "pages that are too small", { { 0x10000, 3 * SZ_64K } }, 1, PAGE_SIZE / 2,
	  -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(bad_row, bad_rows, what);

static int fill_badly(struct peer_pin *pin, struct sg_table *sgt, int *nmap)
{
	const struct bad_row *row = pin->mock->arg;

	*nmap = row->nmap;
	return table_of(sgt, row->runs, count_runs(row->runs));
}

static void expect_bad_row(struct kunit *test, bool early)
{
	const struct bad_row *row = test->param_value;
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), 3 * SZ_64K);
	struct run all[] = { { row->runs[0].dma, 3 * SZ_64K } };

	m->arg = (void *)row;
	m->fill = fill_badly;
	m->fill_early = early;
	m->page_size = row->page_size;
	KUNIT_EXPECT_EQ(test, row->ret, peer_user_get(u));
	if (u->region) {
		expect_runs(test, all, 1, peer_region_table(u->region));
		peer_user_put(u);
	}
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_PUT_PAGES));
	PEER_EXPECT_IDLE(test, m);
}

static void bad_table_is_refused_and_given_back(struct kunit *test)
{
	expect_bad_row(test, false);
}

static void bad_table_of_get_pages_is_refused_and_given_back(struct kunit *test)
{
	expect_bad_row(test, true);
}

static int fill_nothing(struct peer_pin *pin, struct sg_table *sgt, int *nmap)
{
	*nmap = 1;
	return 0;
}

static void no_table_is_refused(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	m->fill = fill_nothing;
	KUNIT_EXPECT_EQ(test, -EINVAL, peer_user_get(u));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(m, PEER_PUT_PAGES));
	PEER_EXPECT_IDLE(test, m);
}

/* A dma_map() that does not set *nmap has mapped nothing. */
static int fill_in_silence(struct peer_pin *pin, struct sg_table *sgt, int *nmap)
{
	const struct run run = { 0x10000, SZ_64K };

	return table_of(sgt, &run, 1);
}

static void silence_about_the_count_is_refused(struct kunit *test)
{
	struct peer_mock *m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0), SZ_64K);

	m->fill = fill_in_silence;
	KUNIT_EXPECT_EQ(test, -EINVAL, peer_user_get(u));
	PEER_EXPECT_IDLE(test, m);
}

static void pages_are_the_systems_unless_the_client_says(struct kunit *test)
{
	const struct run want[] = {
		{ PEER_DMA, SZ_4K }, { PEER_DMA + SZ_8K, SZ_4K },
	};
	struct peer_mock *m = peer_mock_new(test, 0, "kvt_a", PEER_CORE);
	struct peer_user *u = peer_user_new(test, PEER_BASE(0) + 0x1fff, 2);

	m->ex.client.get_page_size = NULL;
	m->page_size = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, 0, peer_mock_register(m));
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	expect_runs(test, want, 2, peer_region_table(u->region));
	peer_user_put(u);
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(m, PEER_PAGE_SIZE));
	PEER_EXPECT_IDLE(test, m);
}

static struct kunit_case peer_table_cases[] = {
	KUNIT_CASE_PARAM(range_is_cut_out, table_row_gen_params),
	KUNIT_CASE_SLOW(any_range_of_any_table_is_cut_out),
	KUNIT_CASE(merged_entries_do_not_overflow),
	KUNIT_CASE(many_entries_are_few_for_the_device),
	KUNIT_CASE_PARAM(device_gets_the_range_only, cut_row_gen_params),
	KUNIT_CASE_PARAM(bad_table_is_refused_and_given_back, bad_row_gen_params),
	KUNIT_CASE_PARAM(bad_table_of_get_pages_is_refused_and_given_back, bad_row_gen_params),
	KUNIT_CASE(no_table_is_refused),
	KUNIT_CASE(silence_about_the_count_is_refused),
	KUNIT_CASE(pages_are_the_systems_unless_the_client_says),
	{}
};
KVT_SUITE(peer_table);
