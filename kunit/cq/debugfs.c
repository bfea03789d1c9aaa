// SPDX-License-Identifier: GPL-2.0-only
/*
 * The debugfs files of CQs, their vectors and the CQ pool: the numbers are there and right,
 * also while devices come and go. Memory windows and FMRs are listed, too.
 */
#include <linux/timekeeping.h>
#include <kverbs/completion.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define DEVICE		"kvtm_a"
#define TEXT_LEN	8192

/* A share, plus what is polled ahead of a CQ that is alone. */
#define BURST		(IB_CQ_SHARE + IB_CQ_AHEAD)

/* Devices registered and freed while their files are read. */
#define COMINGS		100

/* Longer than a run takes on any test kernel. */
#define NO_HURRY_US	60000000

static const char *const context_names[] = {
	[IB_POLL_SOFTIRQ] = "softirq", [IB_POLL_WORKQUEUE] = "workqueue",
	[IB_POLL_UNBOUND_WORKQUEUE] = "unbound", [IB_POLL_THREAD] = "thread",
};

static int read_debugfs(const char *name, char *buf, size_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/debug/kverbs/" DEVICE "/%s", name);
	return kvt_read_debugfs(path, buf, len);
}

/* Reads a debugfs file of the device. The text is freed at the end of the case. */
static const char *text_of(struct kunit *test, const char *name)
{
	char *text = kvt_zalloc(test, TEXT_LEN);

	KUNIT_ASSERT_GE(test, read_debugfs(name, text, TEXT_LEN), 0);
	return text;
}

/* Returns the number after " @key=" in the first line of @text, or -1 if there is none. */
static long long number(const char *text, const char *key)
{
	const char *end = strchrnul(text, '\n');
	char pattern[32], digits[24];
	const char *at;
	long long value;

	snprintf(pattern, sizeof(pattern), " %s=", key);
	at = strstr(text, pattern);
	if (!at || at > end)
		return -1;
	at += strlen(pattern);
	strscpy(digits, at, min(sizeof(digits), strspn(at, "0123456789") + 1));
	return kstrtoll(digits, 10, &value) ? -1 : value;
}

/* Whether the first line of @text contains @words. */
static bool says(const char *text, const char *words)
{
	const char *end = strchrnul(text, '\n');
	const char *at = strstr(text, words);

	return at && at < end;
}

static void set_timing(bool on)
{
	kvt_write_file("/sys/module/kverbs/parameters/cq_timing", on ? "Y" : "N");
}

static void timing_off(void *unused)
{
	set_timing(false);
}

/* Sets a time limit so high that a lane runs until its CQs are empty. */
static void take_time(struct kunit *test)
{
	cq_rig_tune(test, "cq_time_us", NO_HURRY_US);
}

static void push_quiet(struct item *it)
{
	struct ib_wc wc = { .wr_cqe = &it->cqe, .status = IB_WC_SUCCESS };

	mock_cq_push_quiet(it->rec->cq, &wc);
}

/* Pushes BURST completions with one notification, and waits until the lane rests. */
static void burst(struct kunit *test, struct recorder *rec)
{
	struct item *items = items_new(test, rec, BURST);
	int i;

	take_time(test);
	rec->expect = BURST;
	for (i = 0; i < BURST - 1; i++)
		push_quiet(&items[i]);
	KUNIT_EXPECT_TRUE(test, item_push(&items[i]));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	KUNIT_ASSERT_TRUE(test, cq_rig_rest(rec->cq));
}

static void numbers_of_a_cq_are_right(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct recorder *rec = recorder_of_param(test);
	const char *text = text_of(test, "cq");
	char words[32];

	snprintf(words, sizeof(words), " context=%s ", context_names[ctx]);
	KUNIT_EXPECT_EQ(test, 0, strncmp(text, "cq=", 3));
	KUNIT_EXPECT_TRUE(test, says(text, words));
	KUNIT_EXPECT_TRUE(test, says(text, " maker=kverbs_kunit "));
	KUNIT_EXPECT_EQ(test, 0, number(text, "vector"));
	KUNIT_EXPECT_EQ(test, CQ_RIG_SIZE, number(text, "depth"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "weight"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "schedules"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "completions"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "rearms"));

	burst(test, rec);
	text = text_of(test, "cq");
	KUNIT_EXPECT_TRUE(test, says(text, " state=idle "));
	KUNIT_EXPECT_EQ(test, 1, number(text, "schedules"));
	KUNIT_EXPECT_EQ(test, 3, number(text, "polls"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "empty_polls"));
	KUNIT_EXPECT_EQ(test, BURST, number(text, "completions"));
	KUNIT_EXPECT_EQ(test, 2, number(text, "rearms"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "missed"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "errors"));
	/* A CQ alone in its lane may get several shares in a round. Only the last empties it. */
	KUNIT_EXPECT_GE(test, number(text, "rounds"), 2);
	KUNIT_EXPECT_LE(test, number(text, "rounds"), 5);
	KUNIT_EXPECT_EQ(test, number(text, "rounds") - 1, number(text, "exhausted"));
}

static void weight_shows(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	const char *text;

	KUNIT_ASSERT_EQ(test, 0, ib_cq_set_weight(rec->cq, 8));
	burst(test, rec);
	text = text_of(test, "cq");
	KUNIT_EXPECT_EQ(test, 8, number(text, "weight"));
	/* The first two rounds end where the run looks at the clock. */
	KUNIT_EXPECT_EQ(test, 3, number(text, "rounds"));
	KUNIT_EXPECT_EQ(test, 3, number(text, "polls"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "exhausted"));
}

static void numbers_of_a_direct_cq_are_right(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, DEVICE), IB_POLL_DIRECT, 0);
	struct item *items = items_new(test, rec, 40);
	const char *text;

	items_push_each(test, items, 40, NULL);
	KUNIT_EXPECT_EQ(test, 5, ib_process_cq_direct(rec->cq, 5));
	KUNIT_EXPECT_EQ(test, 35, ib_process_cq_direct(rec->cq, -1));

	text = text_of(test, "cq");
	KUNIT_EXPECT_TRUE(test, says(text, " context=direct "));
	KUNIT_EXPECT_TRUE(test, says(text, " state=idle "));
	KUNIT_EXPECT_EQ(test, 4, number(text, "polls"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "empty_polls"));
	KUNIT_EXPECT_EQ(test, 40, number(text, "completions"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "rearms"));
	KUNIT_EXPECT_STREQ(test, "", text_of(test, "vectors"));
}

static void ignore_event(struct ib_event *event, void *context)
{
}

static void cq_with_a_handler_shows_its_errors(struct kunit *test)
{
	struct mock *m = mock_up(test, DEVICE);
	struct ib_cq_init_attr attr = { .cqe = 32 };
	struct ib_cq *cq = KVT_PTR(test, ib_create_cq(m->ibdev, NULL, ignore_event, NULL, &attr));
	const char *text;

	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	text = text_of(test, "cq");
	KUNIT_EXPECT_TRUE(test, says(text, " context=handler "));
	KUNIT_EXPECT_EQ(test, 32, number(text, "depth"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "errors"));
	KUNIT_EXPECT_EQ(test, -1, number(text, "polls"));
	ib_destroy_cq(cq);
	KUNIT_EXPECT_STREQ(test, "", text_of(test, "cq"));
}

static void numbers_of_a_lane_are_right(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct recorder *rec = recorder_of_param(test);
	const char *text;
	char words[48];

	burst(test, rec);
	text = text_of(test, "vectors");
	snprintf(words, sizeof(words), "vector=0 context=%s cpu=%c", context_names[ctx],
		 ctx == IB_POLL_THREAD ? '0' : '-');
	KUNIT_EXPECT_EQ(test, 0, strncmp(text, words, strlen(words)));
	KUNIT_EXPECT_EQ(test, 0, number(text, "active"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "schedules"));
	KUNIT_EXPECT_EQ(test, 1, number(text, "runs"));
	KUNIT_EXPECT_EQ(test, number(text_of(test, "cq"), "rounds"), number(text, "rounds"));
	KUNIT_EXPECT_EQ(test, BURST, number(text, "completions"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "budget_spent"));
	KUNIT_EXPECT_EQ(test, 0, number(text, "time_spent"));
	KUNIT_EXPECT_EQ(test, ctx == IB_POLL_THREAD, number(text, "sleeps") > 0);
	KUNIT_EXPECT_EQ(test, ctx == IB_POLL_THREAD, number(text, "gap_ns") >= 0);

	/* The lane's counters stay when its CQ is freed. */
	recorder_free(rec);
	KUNIT_EXPECT_EQ(test, BURST, number(text_of(test, "vectors"), "completions"));
}

static void state_tells_what_is_polled(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct cq_hold *h = cq_hold_new(test, mock_up(test, DEVICE), ctx);
	const char *text;

	KUNIT_EXPECT_TRUE(test, says(text_of(test, "cq"), " state=idle "));
	KUNIT_ASSERT_TRUE(test, cq_hold_begin(h));
	text = text_of(test, "cq");
	KUNIT_EXPECT_TRUE(test, says(text, ctx == IB_POLL_DIRECT ? " state=busy " :
								   " state=queued "));
	KUNIT_EXPECT_EQ(test, kvt_other_cpu(), number(text, "vector"));
	if (ctx != IB_POLL_DIRECT)
		KUNIT_EXPECT_EQ(test, 1, number(text_of(test, "vectors"), "active"));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	if (ctx != IB_POLL_DIRECT)
		KUNIT_EXPECT_TRUE(test, cq_rig_rest(h->rec->cq));
	KUNIT_EXPECT_TRUE(test, says(text_of(test, "cq"), " state=idle "));
}

/* Pushes a completion with a timestamp @ago nanoseconds in the past; 0: no timestamp. */
static void push_stamped(struct item *it, u64 ago)
{
	struct ib_wc wc = { .wr_cqe = &it->cqe, .status = IB_WC_SUCCESS };

	if (ago)
		wc.timestamp = ktime_get_mono_fast_ns() - ago;
	mock_cq_push_quiet(it->rec->cq, &wc);
}

static void latencies_are_counted_while_timing(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, DEVICE), IB_POLL_DIRECT, 0);
	struct item *items = items_new(test, rec, 5);
	bool late;
	u64 begin;

	/* The clock starts at 0 at boot, and the timestamps must not be negative. */
	if (ktime_get_mono_fast_ns() <= 2 * NSEC_PER_SEC)
		kunit_skip(test, "too early");
	push_stamped(&items[0], BIT(29));
	ib_process_cq_direct(rec->cq, -1);
	KUNIT_EXPECT_NULL(test, strstr(text_of(test, "cq"), "latency"));

	kvt_defer(test, timing_off, NULL);
	set_timing(true);
	begin = ktime_get_mono_fast_ns();
	push_stamped(&items[1], BIT(29));
	push_stamped(&items[2], 0);
	push_stamped(&items[3], 2 * NSEC_PER_SEC);
	push_stamped(&items[4], 2 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, 4, ib_process_cq_direct(rec->cq, -1));
	late = ktime_get_mono_fast_ns() - begin >= BIT(29);
	set_timing(false);
	/* If polling took more than half a second, the first one may not count as <1s. */
	KUNIT_EXPECT_TRUE(test, strstr(text_of(test, "cq"), "\n  latency <1s=1 >1s=2\n") ||
				(late && strstr(text_of(test, "cq"), "\n  latency >1s=3\n")));
}

static void pool_is_listed(struct kunit *test)
{
	struct mock *m = mock_up(test, DEVICE);
	struct ib_cq *cq;

	KUNIT_EXPECT_STREQ(test, "", text_of(test, "cq_pool"));
	cq = ib_cq_pool_get(m->ibdev, 16, 0, IB_POLL_SOFTIRQ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text_of(test, "cq_pool"), KBUILD_MODNAME));
	ib_cq_pool_put(cq, 16);
}

struct reader {
	char text[TEXT_LEN];
	int reads;
};

static int read_all_fn(void *arg)
{
	static const char *const files[] = { "cq", "vectors", "cq_pool" };
	struct reader *r = arg;
	unsigned int i;

	for (i = 0; !kvt_should_stop(); i++) {
		if (read_debugfs(files[i % ARRAY_SIZE(files)], r->text, TEXT_LEN) >= 0)
			r->reads++;
		cond_resched();
	}
	return 0;
}

static void use_all_contexts(struct kunit *test, struct mock *m)
{
	struct recorder *rec[IB_CQ_CONTEXTS];
	struct item *item;
	int ctx;

	for (ctx = 0; ctx < IB_CQ_CONTEXTS; ctx++) {
		rec[ctx] = recorder_up(test, m, ctx, 0);
		rec[ctx]->expect = 1;
		item = items_new(test, rec[ctx], 1);
		KUNIT_EXPECT_TRUE(test, item_push(item));
	}
	for (ctx = 0; ctx < IB_CQ_CONTEXTS; ctx++) {
		KUNIT_EXPECT_TRUE(test, recorder_settle(rec[ctx]));
		recorder_free(rec[ctx]);
	}
}

static void readers_do_not_mind_what_comes_and_goes(struct kunit *test)
{
	struct reader *r = kvt_zalloc(test, sizeof(*r));
	u64 n, count = kvt_count(COMINGS);
	struct kvt_thread *reader;
	struct mock *m;

	reader = kvt_thread_start(test, kvt_other_cpu(), read_all_fn, r);
	/* Go on if the reader was too late to read any of them. */
	for (n = 0; n < count || (!READ_ONCE(r->reads) && n < 1000 * count); n++) {
		m = mock_up(test, DEVICE);
		use_all_contexts(test, m);
		mock_free(test, m);
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(reader));
	KUNIT_EXPECT_GT(test, r->reads, 0);
	kunit_info(test, "%llu devices, %d reads", n, r->reads);
}

static void windows_and_fmrs_are_listed(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m = mock_up(test, DEVICE);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_mw *mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_2));
	struct ib_fmr *fmr = KVT_PTR(test, ib_alloc_fmr(pd, 0, &attr));
	const char *text;
	char key[24];

	text = text_of(test, "mw");
	snprintf(key, sizeof(key), " rkey=%#x ", mw->rkey);
	KUNIT_EXPECT_TRUE(test, says(text, "mw=1 maker=kverbs_kunit type=2"));
	KUNIT_EXPECT_TRUE(test, says(text, key));
	KUNIT_EXPECT_EQ(test, pd->res.id, number(text, "pd"));
	text = text_of(test, "fmr");
	snprintf(key, sizeof(key), " rkey=%#x ", fmr->rkey);
	KUNIT_EXPECT_TRUE(test, says(text, "fmr=1 maker=kverbs_kunit "));
	KUNIT_EXPECT_TRUE(test, says(text, key));
	text = text_of(test, "info");
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "\nmw: 1\nfmr: 1\n"));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
	KUNIT_EXPECT_STREQ(test, text_of(test, "mw"), "");
	KUNIT_EXPECT_STREQ(test, text_of(test, "fmr"), "");
}

static struct kunit_case cq_debugfs_cases[] = {
	KUNIT_CASE_PARAM(numbers_of_a_cq_are_right, kvt_scheduled_context),
	KUNIT_CASE_PARAM(weight_shows, kvt_scheduled_context),
	KUNIT_CASE(numbers_of_a_direct_cq_are_right),
	KUNIT_CASE(cq_with_a_handler_shows_its_errors),
	KUNIT_CASE_PARAM(numbers_of_a_lane_are_right, kvt_scheduled_context),
	KUNIT_CASE_PARAM(state_tells_what_is_polled, kvt_any_context),
	KUNIT_CASE(latencies_are_counted_while_timing),
	KUNIT_CASE(pool_is_listed),
	KUNIT_CASE(readers_do_not_mind_what_comes_and_goes),
	KUNIT_CASE(windows_and_fmrs_are_listed),
	{}
};
KVT_SUITE(cq_debugfs);

MODULE_DESCRIPTION("KUnit: what debugfs tells of completion queues");
MODULE_LICENSE("GPL");
