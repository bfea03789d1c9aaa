// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs monitor: prints events as they come, a line each. Without names of
 * devices it watches all of them, and those that appear while it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kverbs.h"

/* Type of a line that this command generates itself: a device has appeared. */
#define EVENT_ADDED	UINT32_MAX

/* Bytes to read at a time: room for a full queue of events. */
#define READ_SIZE	4096

struct watch {
	char name[CA_NAME_MAX];
	dev_t rdev;
	struct ca ca;
};

/**
 * struct monitor - state of the command
 * @watches: the devices
 * @count: number of @watches
 * @dir: inotify descriptor for new devices, or -1
 * @json: print lines of JSON
 * @left: events left until the command ends; 0 for no limit
 * @ended: enough events were seen
 */
struct monitor {
	struct watch *watches;
	size_t count;
	int dir;
	bool json;
	uint64_t left;
	bool ended;
};

/* --- lines ----------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Writes the date and time of an event, whose time stamp is one of CLOCK_MONOTONIC. */
static void text_time(uint64_t monotonic_ns, bool utc, char *buf, size_t size)
{
	uint64_t ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC) +
		      monotonic_ns;
	time_t seconds = ns / 1000000000;
	unsigned int micros = ns % 1000000000 / 1000;
	char start[32];
	struct tm tm;

	if (utc)
		strftime(start, sizeof(start), "%FT%T", gmtime_r(&seconds, &tm));
	else
		strftime(start, sizeof(start), "%T", localtime_r(&seconds, &tm));
	snprintf(buf, size, "%s.%06u%s", start, micros, utc ? "Z" : "");
}

static uint32_t used_gids(const struct kverbs_ca_port_attr *port)
{
	uint32_t i, used = 0;

	for (i = 0; i < port->gid_count; i++)
		used += ca_gid(port, i)->type != KVERBS_CA_GID_NONE;
	return used;
}

static uint32_t used_pkeys(const struct kverbs_ca_port_attr *port)
{
	uint32_t i, used = 0;

	for (i = 0; i < port->pkey_count; i++)
		used += (ca_pkey(port, i) & 0x7fff) != 0;
	return used;
}

/*
 * Prints the current state of what a person would look up after such an event. It may have
 * changed since.
 */
static void print_now(uint32_t type, const struct kverbs_ca_port_attr *port)
{
	char state[TEXT_MAX], link[TEXT_MAX];

	fputs("now ", stdout);
	switch (type) {
	case KVERBS_CA_EVENT_LID_CHANGE:
		printf("LID %" PRIu32, port->lid);
		break;
	case KVERBS_CA_EVENT_SM_CHANGE:
		printf("LID of the SM %" PRIu32, port->sm_lid);
		break;
	case KVERBS_CA_EVENT_GID_CHANGE:
		printf("%" PRIu32 " GIDs", used_gids(port));
		break;
	case KVERBS_CA_EVENT_PKEY_CHANGE:
		printf("%" PRIu32 " P_Keys", used_pkeys(port));
		break;
	default:
		printf("%s, %s", text_port_state(port->state, state),
		       text_link(port->width, port->speed, link));
	}
}

static const char *event_name(uint32_t type, char *buf)
{
	return type == EVENT_ADDED ? "added" : text_event(type, buf);
}

static void print_event(const char *device, const struct kverbs_ca_event *event,
			const struct kverbs_ca_port_attr *port)
{
	char when[64], name[TEXT_MAX], place[CA_NAME_MAX + 16];

	text_time(event->time_ns, false, when, sizeof(when));
	if (event->port)
		snprintf(place, sizeof(place), "%s/%" PRIu32, device,
			 event->port);
	else
		snprintf(place, sizeof(place), "%s", device);
	printf("%s  %-10s %-18s", when, place, event_name(event->type, name));
	if (event->type == KVERBS_CA_EVENT_OVERFLOW)
		printf("%" PRIu32 " events were lost here", event->lost);
	else if (port)
		print_now(event->type, port);
	putchar('\n');
}

static void json_event(const char *device, const struct kverbs_ca_event *event,
		       const struct kverbs_ca_port_attr *port)
{
	char buf[TEXT_MAX];
	struct json json;

	json_start(&json, stdout, true);
	json_object(&json, NULL);
	text_time(event->time_ns, true, buf, sizeof(buf));
	json_string(&json, "time", buf);
	json_number(&json, "time_ns", event->time_ns);
	json_string(&json, "device", device);
	json_number(&json, "port", event->port);
	json_string(&json, "event", event_name(event->type, buf));
	json_number(&json, "lost", event->lost);
	json_number(&json, "generation", event->generation);
	if (port)
		json_string(&json, "state", text_port_state(port->state, buf));
	else
		json_null(&json, "state");
	json_end(&json);
}

static void show_event(struct monitor *monitor, const struct watch *watch,
		       const struct kverbs_ca_event *event)
{
	struct kverbs_ca_port_attr *port = NULL;

	if (event->port && ca_query_port(&watch->ca, event->port, 0, &port) < 0)
		port = NULL;
	if (monitor->json)
		json_event(watch->name, event, port);
	else
		print_event(watch->name, event, port);
	free(port);
	/* So that the reader of a pipe gets each line at once. */
	fflush(stdout);
	if (monitor->left && !--monitor->left)
		monitor->ended = true;
}

/* --- devices --------------------------------------------------------------- */

/* Takes over ca, or closes it. Return: STATUS_OK or STATUS_FAILED. */
static int watch_add(struct monitor *monitor, const char *name,
		     struct ca *ca)
{
	struct watch *watches, *watch;
	struct stat st = {};

	watches = realloc(monitor->watches,
			  (monitor->count + 1) * sizeof(*watches));
	if (!watches) {
		ca_close_file(ca);
		return say_error("no memory");
	}
	monitor->watches = watches;
	watch = &watches[monitor->count++];
	fstat(ca->fd, &st);
	snprintf(watch->name, sizeof(watch->name), "%s", name);
	watch->rdev = st.st_rdev;
	watch->ca = *ca;
	return STATUS_OK;
}

static void watch_drop(struct monitor *monitor, size_t index)
{
	ca_close_file(&monitor->watches[index].ca);
	monitor->count--;
	memmove(&monitor->watches[index], &monitor->watches[index + 1],
		(monitor->count - index) * sizeof(monitor->watches[0]));
}

static int watch_open(struct monitor *monitor, const char *name)
{
	struct ca ca;
	int status = open_ca(&ca, name, O_RDONLY | O_NONBLOCK);

	return status == STATUS_OK ? watch_add(monitor, name, &ca) : status;
}

static int watch_named(struct monitor *monitor, char **names, int count)
{
	int i, status = STATUS_OK;

	for (i = 0; i < count && status == STATUS_OK; i++)
		status = watch_open(monitor, names[i]);
	return status;
}

/*
 * Has inotify tell of new files of devices, and of what makes the directories of these, which the
 * kernel removes with the last file, be it only renamed. From the outside in: what is not there yet
 * will appear in a directory that is watched. Return: 0 or a negative errno.
 */
static int watch_dirs(struct monitor *monitor)
{
	static const char * const dirs[] = { "/dev", "/dev/infiniband", CA_DIR };
	int ret = 0;
	size_t i;

	for (i = 0; i < COUNT(dirs); i++)
		if (inotify_add_watch(monitor->dir, dirs[i],
				      IN_CREATE | IN_MOVED_TO | IN_ATTRIB) < 0 &&
		    errno != ENOENT)
			ret = -errno;
	return ret;
}

static bool is_gone(int error)
{
	return error == -ENOENT || error == -ENXIO || error == -ENODEV;
}

/* Watches a device unless it has gone since it was found, and reports other errors. */
static int watch_found(struct monitor *monitor, const char *name)
{
	struct ca ca;
	int ret;

	ret = ca_open_file(&ca, name, O_RDONLY | O_NONBLOCK);
	if (ret)
		return is_gone(ret) ? STATUS_OK : say_open_error(name, ret, false);
	ret = ca_open(&ca, 0);
	if (!ret)
		return watch_add(monitor, name, &ca);
	ca_close_file(&ca);
	return is_gone(ret) ? STATUS_OK : say_open_ca_error(name, ret);
}

/* Goes on without those that it may not watch. */
static int watch_all(struct monitor *monitor)
{
	struct devices devices;
	int ret, status = STATUS_OK;
	size_t i;

	/* Starts before the directory is read, so that no device is missed in between. */
	monitor->dir = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	ret = monitor->dir < 0 ? -errno : watch_dirs(monitor);
	if (ret)
		say_error("cannot watch for new devices: %s", strerror(-ret));
	ret = devices_find(&devices);
	if (ret)
		return say_error("cannot read %s: %s", CA_DIR, strerror(-ret));
	for (i = 0; i < devices.count; i++)
		if (watch_found(monitor, devices.names[i]) != STATUS_OK)
			status = STATUS_FAILED;
	devices_free(&devices);
	if (monitor->count)
		return STATUS_OK;
	return status == STATUS_OK ? say_no_device() : status;
}

/* Tells whether a device is watched already: a renamed one has a new file with the old number. */
static bool is_watched(struct monitor *monitor, const char *name, int fd)
{
	struct stat st = {};
	size_t i;

	fstat(fd, &st);
	for (i = 0; i < monitor->count; i++) {
		if (monitor->watches[i].rdev == st.st_rdev) {
			snprintf(monitor->watches[i].name, CA_NAME_MAX, "%s", name);
			return true;
		}
	}
	return false;
}

static void show_new(struct monitor *monitor, const struct watch *watch)
{
	struct kverbs_ca_event event = {
		.type = EVENT_ADDED,
		.time_ns = clock_ns(CLOCK_MONOTONIC),
	};
	struct kverbs_ca_attr attr;

	if (!ca_query_alone(&watch->ca, 0, &attr))
		event.generation = attr.generation;
	show_event(monitor, watch, &event);
}

/* Watches a new device, unless it has gone again, or we may not open it. */
static void watch_new(struct monitor *monitor, const char *name)
{
	struct ca ca;

	if (!ca_open_file(&ca, name, O_RDONLY | O_NONBLOCK) &&
	    !is_watched(monitor, name, ca.fd) && !ca_open(&ca, 0)) {
		if (watch_add(monitor, name, &ca) == STATUS_OK)
			show_new(monitor, &monitor->watches[monitor->count - 1]);
	} else {
		ca_close_file(&ca);
	}
}

/*
 * Something has changed in the directories. What that was does not matter: if they are new, or too
 * much has happened, inotify does not have it all.
 */
static void look_for_new(struct monitor *monitor)
{
	struct devices devices;
	char buf[READ_SIZE];
	size_t i;

	while (read(monitor->dir, buf, sizeof(buf)) > 0)
		;
	watch_dirs(monitor);
	if (devices_find(&devices))
		return;
	for (i = 0; i < devices.count && !monitor->ended; i++)
		watch_new(monitor, devices.names[i]);
	devices_free(&devices);
}

/*
 * Reads and prints a device's events. Return: false if it is gone, or cannot be
 * read: then status is set.
 */
static bool read_events(struct monitor *monitor, const struct watch *watch,
			int *status)
{
	const struct kverbs_ca_event *event;
	uint64_t buf[READ_SIZE / 8];
	ssize_t len, at;

	len = read(watch->ca.fd, buf, sizeof(buf));
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (len < 0 && errno != ENODEV)
		*status = say_error("cannot read the events of %s: %s",
				    watch->name, strerror(errno));
	for (at = 0; at + (ssize_t)sizeof(*event) <= len && !monitor->ended;
	     at += event->size) {
		event = (const void *)((char *)buf + at);
		show_event(monitor, watch, event);
		if (event->type == KVERBS_CA_EVENT_REMOVED ||
		    event->size < sizeof(*event))
			return false;
	}
	return len > 0;
}

/* --- waiting --------------------------------------------------------------- */

static int wait_for_any(struct monitor *monitor, struct pollfd *fds)
{
	size_t i;

	for (i = 0; i < monitor->count; i++)
		fds[i] = (struct pollfd) { .fd = monitor->watches[i].ca.fd,
					   .events = POLLIN };
	fds[i] = (struct pollfd) { .fd = monitor->dir, .events = POLLIN };
	return poll_or_signal(fds, monitor->count + 1);
}

/* Starts with the last device, so that removals do not move those that are yet to be read. */
static void read_all(struct monitor *monitor, const struct pollfd *fds,
		     int *status)
{
	size_t i = monitor->count;
	bool changed = fds[i].revents;

	while (i-- && !monitor->ended)
		if (fds[i].revents &&
		    !read_events(monitor, &monitor->watches[i], status))
			watch_drop(monitor, i);
	if (changed && !monitor->ended)
		look_for_new(monitor);
}

static int watch_until_end(struct monitor *monitor)
{
	int status = STATUS_OK;
	struct pollfd *fds;
	bool last;

	while (monitor->count && !monitor->ended && !ferror(stdout)) {
		/* Those events that came before a signal are still shown. */
		last = signal_caught();
		fds = calloc(monitor->count + 1, sizeof(*fds));
		if (!fds)
			return say_error("no memory");
		if (wait_for_any(monitor, fds) >= 0) {
			read_all(monitor, fds, &status);
		} else if (errno != EINTR) {
			status = say_error("poll: %s", strerror(errno));
			monitor->ended = true;
		}
		monitor->ended |= last;
		free(fds);
	}
	return status;
}

static void say_watching(const struct monitor *monitor)
{
	size_t i;

	fputs("watching", stderr);
	for (i = 0; i < monitor->count; i++)
		fprintf(stderr, " %s", monitor->watches[i].name);
	fputc('\n', stderr);
}

static int run_monitor(struct monitor *monitor, char **names, int count)
{
	int status = catch_signals(STDOUT_FILENO);

	if (status != STATUS_OK)
		return status;
	if (count)
		status = watch_named(monitor, names, count);
	else
		status = watch_all(monitor);
	if (status == STATUS_OK) {
		say_watching(monitor);
		status = watch_until_end(monitor);
	}
	while (monitor->count)
		watch_drop(monitor, monitor->count - 1);
	free(monitor->watches);
	if (monitor->dir >= 0)
		close(monitor->dir);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "count", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct monitor monitor = { .dir = -1 };
	int opt;

	while ((opt = getopt_long(argc, argv, "jc:h", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			monitor.json = true;
			break;
		case 'c':
			if (!parse_number(optarg, 1, UINT64_MAX, &monitor.left))
				return usage_error(cmd, "%s is not a number of events", optarg);
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	return run_monitor(&monitor, argv + optind, argc - optind);
}

const struct command monitor_command = {
	.name = "monitor",
	.arguments = "[<device>...] [--json] [--count <n>]",
	.summary = "print the events of devices as they occur",
	.help =
	"Prints the events of the devices as they occur, one per line, with the new state\n"
	"after a change. Without a device: of all, including those added later. Ends when\n"
	"all of them are gone, or on Ctrl-C.\n"
	"\n"
	"  -j, --json        print a JSON object in each line, see kverbs(1)\n"
	"  -c, --count <n>   stop after n events\n"
	"  -h, --help        print this help\n",
	.run = run,
};
