// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs top: devices and their ports, with rates and latencies, again and again.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stats.h"

#define INTERVAL_DEFAULT	2
#define INTERVAL_MAX		3600
/* A CQ has up to 32 limits. */
#define LIMITS_MORE		32

/* How many completions of a device reached their handler in less than limit. */
struct latency {
	char device[96];
	char limit[16];
	double ns;
	uint64_t times;
};

struct latencies {
	size_t count;
	size_t size;
	struct latency *of;
};

struct view {
	struct samples samples;
	struct latencies latencies;
	struct timespec when;
};

/* --- latencies ------------------------------------------------------------------- */

/* Returns a limit in ns; ">8s" stands for all longer times. */
static double limit_ns(const char *limit)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double value = strtod(limit + 1, &end);
	size_t i;

	for (i = 0; i < COUNT(units); i++)
		if (!strcmp(end, units[i].unit))
			return value * units[i].ns + (*limit == '>');
	return 0;
}

static void add_latency(struct latencies *all, const char *device, const char *limit,
			uint64_t times)
{
	double ns = limit_ns(limit);
	struct latency *more;
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->of[i].ns == ns && !strcmp(all->of[i].device, device))
			break;
	if (i == all->size) {
		more = reallocarray(all->of, all->size + LIMITS_MORE, sizeof(*more));
		if (!more)
			return;
		all->of = more;
		all->size += LIMITS_MORE;
	}
	if (i == all->count) {
		snprintf(all->of[i].device, sizeof(all->of[i].device), "%s", device);
		snprintf(all->of[i].limit, sizeof(all->of[i].limit), "%s", limit);
		all->of[i].ns = ns;
		all->of[i].times = 0;
		all->count++;
	}
	all->of[i].times += times;
}

/* "  latency <1us=5 <2us=7 >8s=1" of each CQ */
static void read_latencies(struct latencies *all, const char *device)
{
	FILE *file = open_to_read(STATS_DEBUGFS "/%s/cq", device);
	char *line = NULL, *rest, *word, *value;
	size_t size = 0;

	while (file && getline(&line, &size, file) != -1) {
		rest = line + strspn(line, " ");
		if (rest == line || strncmp(rest, "latency ", strlen("latency ")))
			continue;
		while ((word = strsep(&rest, "\n "))) {
			value = strchr(word, '=');
			if (!value || !strchr("<>", *word))
				continue;
			*value++ = '\0';
			add_latency(all, device, word, strtoull(value, NULL, 10));
		}
	}
	free(line);
	if (file)
		fclose(file);
}

static int compare_latencies(const void *a, const void *b)
{
	const struct latency *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static uint64_t times_before(const struct latencies *before, const char *device, double ns)
{
	size_t i;

	for (i = 0; i < before->count; i++)
		if (before->of[i].ns == ns && !strcmp(before->of[i].device, device))
			return before->of[i].times;
	return 0;
}

/* Less than before: CQs were destroyed, and what they counted is gone. */
static uint64_t times_since(const struct latency *now, const struct latencies *before)
{
	uint64_t old = times_before(before, now->device, now->ns);

	return now->times > old ? now->times - old : 0;
}

/*
 * Returns the limit below which a share of the completions since the view before stayed; "-" if
 * there were none.
 */
static const char *quantile(const struct view *now, const struct view *before, const char *device,
			    double share)
{
	uint64_t all = 0, sum = 0;
	int pass;
	size_t i;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < now->latencies.count; i++) {
			if (strcmp(now->latencies.of[i].device, device))
				continue;
			sum += times_since(&now->latencies.of[i], &before->latencies);
			if (pass && sum && sum >= share * all)
				return now->latencies.of[i].limit;
		}
		all = sum;
		sum = 0;
	}
	return "-";
}

/* --- views ------------------------------------------------------------------------ */

static int look(struct view *view)
{
	DIR *dir = open_dir(STATS_DEBUGFS);
	const char *device;

	view->latencies.count = 0;
	while ((device = next_name(dir)))
		read_latencies(&view->latencies, device);
	if (dir)
		closedir(dir);
	qsort(view->latencies.of, view->latencies.count, sizeof(view->latencies.of[0]),
	      compare_latencies);
	clock_gettime(CLOCK_MONOTONIC, &view->when);
	return samples_get(&view->samples);
}

/* Returns the sum of all samples that match; second, a port or a state, is NULL for any. */
static uint64_t total(const struct view *view, const char *name, const char *device,
		      const char *second)
{
	const struct sample *sample;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < view->samples.count; i++) {
		sample = &view->samples.sample[i];
		if (!strcmp(sample->name, name) && !strcmp(sample->label[0].value, device) &&
		    (!second || !strcmp(sample->label[1].value, second)))
			sum += sample->value;
	}
	return sum;
}

static double seconds(const struct view *now, const struct view *before)
{
	return now->when.tv_sec - before->when.tv_sec +
	       (now->when.tv_nsec - before->when.tv_nsec) / 1e9;
}

/* Returns a rate such as "1.25G"; "-" in the first view, and for a counter that was reset. */
static const char *rate(char buf[16], const struct view *now, const struct view *before,
			unsigned int unit, const char *name, const char *device, const char *port)
{
	static const char prefixes[] = " kMGTPE";
	uint64_t value = total(now, name, device, port), old = total(before, name, device, port);
	double times = seconds(now, before);
	unsigned int i = 0;

	snprintf(buf, 16, "-");
	if (!before->when.tv_sec || value < old || times <= 0)
		return buf;
	times = (value - old) * (double)unit / times;
	for (; times >= 1000 && prefixes[i + 1]; i++)
		times /= 1000;
	snprintf(buf, 16, "%.*f%.*s", i && times < 100 ? 1 : 0, times, i > 0, &prefixes[i]);
	return buf;
}

static void print_rates(const struct view *now, const struct view *before, const char *device,
			const char *port, bool active)
{
	char buf[6][16];

	printf("%-12s %4s %-6s %8s %8s %8s %8s %6" PRIu64 " %5" PRIu64 " %8s %7s %7s\n", device,
	       port, active ? "active" : "down",
	       rate(buf[0], now, before, 4, "kverbs_port_xmit_data_total", device, port),
	       rate(buf[1], now, before, 4, "kverbs_port_rcv_data_total", device, port),
	       rate(buf[2], now, before, 1, "kverbs_port_xmit_packets_total", device, port),
	       rate(buf[3], now, before, 1, "kverbs_port_rcv_packets_total", device, port),
	       total(now, "kverbs_qps", device, NULL), total(now, "kverbs_qps", device, "ERR"),
	       rate(buf[4], now, before, 1, "kverbs_cq_completions_total", device, NULL),
	       quantile(now, before, device, 0.5), quantile(now, before, device, 0.99));
}

static void print_view(const struct view *now, const struct view *before)
{
	const struct sample *sample;
	size_t i;

	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	printf("%-12s %4s %-6s %8s %8s %8s %8s %6s %5s %8s %7s %7s\n", "DEVICE", "PORT", "STATE",
	       "SENT B/s", "RCVD B/s", "SENT/s", "RCVD/s", "QPS", "ERR", "COMPL/s", "MEDIAN", "99%");
	for (i = 0; i < now->samples.count; i++) {
		sample = &now->samples.sample[i];
		if (!strcmp(sample->name, "kverbs_port_active"))
			print_rates(now, before, sample->label[0].value, sample->label[1].value,
				    sample->value);
	}
	putchar('\n');
}

/* count: number of views to show; 0: until interrupted */
static int watch(uint64_t interval, uint64_t count)
{
	static struct view views[2];
	struct view *now = &views[0], *before = &views[1], *other;
	const struct timespec pause = { .tv_sec = interval };
	int status;

	for (;;) {
		status = look(now);
		if (status)
			break;
		if (!now->samples.count) {
			status = say_no_device();
			break;
		}
		print_view(now, before);
		status = finish_output(STATUS_OK);
		if (status || !--count)
			break;
		nanosleep(&pause, NULL);
		other = before;
		before = now;
		now = other;
		samples_put(&now->samples);
	}
	samples_put(&now->samples);
	samples_put(&before->samples);
	free(views[0].latencies.of);
	free(views[1].latencies.of);
	return status;
}

static int top_run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'c' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	uint64_t interval = INTERVAL_DEFAULT, count = 0;
	int option, status;

	while ((option = getopt_long(argc, argv, "i:c:r:h", options, NULL)) != -1) {
		switch (option) {
		case 'i':
			if (!parse_number(optarg, 1, INTERVAL_MAX, &interval))
				return usage_error(cmd, "--interval %s: 1 to %d seconds", optarg,
						   INTERVAL_MAX);
			break;
		case 'c':
			if (!parse_number(optarg, 1, UINT64_MAX, &count))
				return usage_error(cmd, "--count %s: 1 or more", optarg);
			break;
		default:
			status = machine_option(cmd, option);
			if (status != STATUS_NONE)
				return status;
		}
	}
	if (optind < argc)
		return usage_error(cmd, "takes no arguments");
	return watch(interval, count);
}

const struct command top_command = {
	.name		= "top",
	.arguments	= "[--interval S] [--count N] [--root DIR]",
	.summary	= "show rates of ports, QPs and completions, continuously",
	.help		=
	"Shows the ports of all devices, continuously: bytes and packets per second; queue pairs,\n"
	"and how many of them are in the state ERR; completions per second, and the median and 99th\n"
	"percentile of their latency from completion to handler, if kverbs measures it (cq_timing).\n"
	"Queue pairs and completions are in debugfs and require root.\n"
	"\n"
	"  -i, --interval S   seconds between updates (default: 2)\n"
	"  -c, --count N      stop after N updates\n"
	ROOT_HELP("     ")
	"  -h, --help         print this help\n",
	.run		= top_run,
};
