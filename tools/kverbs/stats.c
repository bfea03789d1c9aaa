// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs stats: what devices, ports, queue pairs, CQs and drivers of peer memory have counted,
 * from sysfs and debugfs.
 *
 * Samples are collected first: Prometheus wants those of a name together.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define IB		"/sys/class/infiniband"
#define PEERS		"/sys/kernel/mm/memory_peers"
#define DEBUGFS		STATS_DEBUGFS

/* Adds a sample with labels, which are pairs of a name and a value, and end with NULL. */
static void add(struct samples *samples, bool counts, uint64_t value, const char *name, ...)
{
	struct sample *more, *sample;
	const char *label;
	va_list args;

	more = realloc(samples->sample, (samples->count + 1) * sizeof(*more));
	samples->no_memory |= !more;
	if (!more)
		return;
	samples->sample = more;
	sample = &more[samples->count];
	memset(sample, 0, sizeof(*sample));
	snprintf(sample->name, sizeof(sample->name), "kverbs_%s%s", name, counts ? "_total" : "");
	sample->counts = counts;
	sample->value = value;
	sample->order = samples->count++;
	va_start(args, name);
	while ((label = va_arg(args, const char *))) {
		sample->label[sample->labels].name = label;
		snprintf(sample->label[sample->labels++].value, sizeof(sample->label[0].value),
			 "%s", va_arg(args, const char *));
	}
	va_end(args);
}

static bool has_sample(const struct samples *samples, const char *name, const char *device,
		       const char *port)
{
	const struct sample *sample;
	char full[96];
	size_t i;

	snprintf(full, sizeof(full), "kverbs_%s_total", name);
	for (i = 0; i < samples->count; i++) {
		sample = &samples->sample[i];
		if (!strcmp(sample->name, full) && !strcmp(sample->label[0].value, device) &&
		    !strcmp(sample->label[1].value, port))
			return true;
	}
	return false;
}

static bool read_value(const char *dir, const char *name, uint64_t *value)
{
	char line[64], *end;

	if (!read_line(line, sizeof(line), "%s/%s", dir, name) ||
	    !isdigit((unsigned char)*line))
		return false;
	errno = 0;
	*value = strtoull(line, &end, 10);
	return !errno && !*end;
}

/* --- devices and ports ---------------------------------------------------------- */

/* Adds the counters of both directories; those that are in both have the same value. */
static void add_counters(struct samples *samples, const char *device, const char *port,
			 const char *group)
{
	char dir[PATH_MAX], metric[80];
	const char *name;
	uint64_t value;
	DIR *files;

	snprintf(dir, sizeof(dir), IB "/%s/ports/%s/%s", device, port, group);
	files = open_dir("%s", dir);
	while ((name = next_name(files))) {
		/* The time for which values are cached, which is no counter. */
		if (!strcmp(name, "lifespan") || !read_value(dir, name, &value))
			continue;
		snprintf(metric, sizeof(metric), "port_%s",
			 strncmp(name, "port_", 5) ? name : name + 5);
		if (!has_sample(samples, metric, device, port))
			add(samples, true, value, metric, "device", device, "port", port, NULL);
	}
	if (files)
		closedir(files);
}

static void add_port(struct samples *samples, const char *device, const char *port)
{
	char state[32];

	read_line(state, sizeof(state), IB "/%s/ports/%s/state", device, port);
	add(samples, false, strtoul(state, NULL, 10) == KVERBS_CA_PORT_ACTIVE, "port_active",
	    "device", device, "port", port, NULL);
	add_counters(samples, device, port, "counters");
	add_counters(samples, device, port, "hw_counters");
}

/* --- objects -------------------------------------------------------------------- */

/* Gets the value of " key=value" in a line. Return: false if it has none. */
static bool value_of(const char *line, const char *key, char *value, size_t size)
{
	size_t len = strlen(key);
	const char *at = line;

	while ((at = strstr(at, key))) {
		if ((at == line || at[-1] == ' ') && at[len] == '=') {
			at += len + 1;
			snprintf(value, size, "%.*s", (int)strcspn(at, "\n "), at);
			return true;
		}
		at++;
	}
	return false;
}

/* Adds the numbers of QPs by state, but for states in which there are none. */
static void add_qps(struct samples *samples, const char *device)
{
	FILE *file = open_to_read(DEBUGFS "/%s/qp", device);
	char *line = NULL, state[16];
	struct {
		char state[16];
		uint64_t count;
	} states[16] = {};
	size_t size = 0, i;

	while (file && getline(&line, &size, file) != -1) {
		if (!value_of(line, "state", state, sizeof(state)))
			continue;
		for (i = 0; i < COUNT(states) - 1; i++)
			if (!*states[i].state || !strcmp(states[i].state, state))
				break;
		snprintf(states[i].state, sizeof(states[i].state), "%s", state);
		states[i].count++;
	}
	for (i = 0; i < COUNT(states) && states[i].count; i++)
		add(samples, false, states[i].count, "qps", "device", device, "state",
		    states[i].state, NULL);
	free(line);
	if (file)
		fclose(file);
}

static void add_objects(struct samples *samples, const char *device)
{
	static const char * const kinds[] = { "pd", "cq", "qp", "mr", "srq", "mw", "fmr" };
	FILE *file = open_to_read(DEBUGFS "/%s/info", device);
	char *line = NULL, kind[16];
	uint64_t count;
	size_t size = 0, i;

	while (file && getline(&line, &size, file) != -1) {
		if (sscanf(line, "%15[a-zA-Z]: %" SCNu64, kind, &count) != 2)
			continue;
		for (i = 0; i < COUNT(kinds); i++)
			if (!strcasecmp(kind, kinds[i]))
				add(samples, false, count, "objects", "device", device, "kind",
				    kinds[i], NULL);
	}
	free(line);
	if (file)
		fclose(file);
}

/* Adds what CQs have counted: a line begins with the CQ's number, and indented lines follow. */
static void add_cqs(struct samples *samples, const char *device)
{
	static const char * const counters[] = {
		"completions", "schedules", "rounds", "polls", "empty_polls", "rearms", "missed",
		"exhausted", "errors",
	};
	FILE *file = open_to_read(DEBUGFS "/%s/cq", device);
	char *line = NULL, cq[16] = "", maker[64] = "", value[32], metric[32];
	size_t size = 0, i;

	while (file && getline(&line, &size, file) != -1) {
		if (!isspace((unsigned char)*line) &&
		    (sscanf(line, "%*[a-zA-Z]=%15[0-9]", cq) != 1 ||
		     !value_of(line, "maker", maker, sizeof(maker))))
			continue;
		for (i = 0; i < COUNT(counters); i++) {
			if (!value_of(line, counters[i], value, sizeof(value)))
				continue;
			snprintf(metric, sizeof(metric), "cq_%s", counters[i]);
			add(samples, true, strtoull(value, NULL, 10), metric, "device", device,
			    "cq", cq, "maker", maker, NULL);
		}
	}
	free(line);
	if (file)
		fclose(file);
}

static void add_devices(struct samples *samples)
{
	DIR *devices = open_dir(IB), *ports;
	const char *device, *port;

	while ((device = next_name(devices))) {
		ports = open_dir(IB "/%s/ports", device);
		while ((port = next_name(ports)))
			add_port(samples, device, port);
		if (ports)
			closedir(ports);
		add_objects(samples, device);
		add_qps(samples, device);
		add_cqs(samples, device);
	}
	if (devices)
		closedir(devices);
}

/* --- peer memory ---------------------------------------------------------------- */

static void add_peers(struct samples *samples)
{
	DIR *peers = open_dir(PEERS), *files;
	char dir[PATH_MAX], metric[80];
	const char *peer, *name;
	uint64_t value;
	bool counts;

	while ((peer = next_name(peers))) {
		snprintf(dir, sizeof(dir), PEERS "/%s", peer);
		files = open_dir("%s", dir);
		while ((name = next_name(files))) {
			counts = !strncmp(name, "num_", 4);
			if (!strcmp(name, "version") || !read_value(dir, name, &value))
				continue;
			snprintf(metric, sizeof(metric), "peer_%s", counts ? name + 4 : name);
			add(samples, counts, value, metric, "client", peer, NULL);
		}
		if (files)
			closedir(files);
	}
	if (peers)
		closedir(peers);
}

/* --- output --------------------------------------------------------------------- */

/* Sorts samples by name; those of the same name stay in the order in which they were found. */
static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int differs = strcmp(x->name, y->name);

	return differs ?: (x->order > y->order) - (x->order < y->order);
}

/* Prints a value in quotes, with the escapes of Prometheus. */
static void print_value(const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", stdout);
		else if (*value == '"' || *value == '\\')
			printf("\\%c", *value);
		else
			putchar(iscntrl((unsigned char)*value) ? '?' : *value);
	}
}

static void print_samples(const struct samples *samples, bool types)
{
	const struct sample *sample;
	size_t i, k;

	for (i = 0; i < samples->count; i++) {
		sample = &samples->sample[i];
		if (types && (!i || strcmp(sample->name, sample[-1].name)))
			printf("# TYPE %s %s\n", sample->name, sample->counts ? "counter" : "gauge");
		printf("%s{", sample->name);
		for (k = 0; k < sample->labels; k++) {
			printf("%s%s=\"", k ? "," : "", sample->label[k].name);
			print_value(sample->label[k].value);
			putchar('"');
		}
		printf("} %" PRIu64 "\n", sample->value);
	}
}

static void json_samples(const struct samples *samples)
{
	const struct sample *sample;
	struct json json;
	size_t i, k;

	json_start(&json, stdout, false);
	json_array(&json, NULL);
	for (i = 0; i < samples->count; i++) {
		sample = &samples->sample[i];
		json_object(&json, NULL);
		json_string(&json, "name", sample->name);
		json_object(&json, "labels");
		for (k = 0; k < sample->labels; k++)
			json_string(&json, sample->label[k].name, sample->label[k].value);
		json_end(&json);
		json_number(&json, "value", sample->value);
		json_end(&json);
	}
	json_end(&json);
}

int samples_get(struct samples *samples)
{
	memset(samples, 0, sizeof(*samples));
	add_devices(samples);
	add_peers(samples);
	if (samples->no_memory) {
		samples_put(samples);
		return say_error("no memory");
	}
	if (samples->count)
		qsort(samples->sample, samples->count, sizeof(*samples->sample), compare_samples);
	return STATUS_OK;
}

void samples_put(struct samples *samples)
{
	free(samples->sample);
	memset(samples, 0, sizeof(*samples));
}

static int show_stats(bool prometheus, bool json)
{
	struct samples samples;
	int status = samples_get(&samples);

	if (status)
		return status;
	if (json)
		json_samples(&samples);
	else if (!samples.count && !prometheus)
		status = say_no_device();
	else
		print_samples(&samples, prometheus);
	samples_put(&samples);
	return status;
}

static int stats_run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "prometheus", no_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool prometheus = false, json = false;
	int option, status;

	while ((option = getopt_long(argc, argv, "pjr:h", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			prometheus = true;
			break;
		case 'j':
			json = true;
			break;
		default:
			status = machine_option(cmd, option);
			if (status != STATUS_NONE)
				return status;
		}
	}
	if (optind < argc)
		return usage_error(cmd, "takes no arguments");
	if (prometheus && json)
		return usage_error(cmd, "--prometheus and --json exclude each other");
	return show_stats(prometheus, json);
}

const struct command stats_command = {
	.name		= "stats",
	.arguments	= "[--prometheus | --json] [--root DIR]",
	.summary	= "print counters of devices, ports, QPs, CQs and peer memory",
	.help		=
	"Prints the counters of devices, one per line: name, labels, value. For devices of the\n"
	"kernel's own stack, it prints those in sysfs. The counters of queue pairs and CQs are in\n"
	"debugfs and require root.\n"
	"\n"
	"  -p, --prometheus   print the text format of Prometheus\n"
	"  -j, --json         print JSON\n"
	ROOT_HELP("     ")
	"  -h, --help         print this help\n",
	.run		= stats_run,
};
