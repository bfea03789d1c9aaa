// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs list: one line for each device.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs.h"

/* The columns of a device's line. */
enum {
	COL_NAME, COL_PORTS, COL_STATE, COL_LINK, COL_GUID, COL_FW, COL_DRIVER,
	COL_NETDEV, COL_COUNT
};

struct line {
	char column[COL_COUNT][128];
};

static const struct line titles = { {
	[COL_NAME]	= "DEVICE",
	[COL_PORTS]	= "PORTS",
	[COL_STATE]	= "STATE",
	[COL_LINK]	= "LINK",
	[COL_GUID]	= "NODE GUID",
	[COL_FW]	= "FIRMWARE",
	[COL_DRIVER]	= "DRIVER",
	[COL_NETDEV]	= "NETDEV",
} };

/* Adds a word to a column, unless it is there already. */
static void add_word(char *column, size_t size, const char *word)
{
	size_t len = strlen(word), used = strlen(column);
	const char *at = column;

	while ((at = strstr(at, word))) {
		if ((at == column || at[-1] == ' ') &&
		    (!at[len] || at[len] == ';'))
			return;
		at++;
	}
	snprintf(column + used, size - used, "%s%s", used ? "; " : "", word);
}

/* "active", or "1 active; 2 down" where ports differ. */
static void summarize_state(const struct kverbs_ca_attr *attr, char *column,
			    size_t size)
{
	static const uint32_t order[] = {
		KVERBS_CA_PORT_ACTIVE, KVERBS_CA_PORT_ACTIVE_DEFER,
		KVERBS_CA_PORT_ARMED, KVERBS_CA_PORT_INIT, KVERBS_CA_PORT_DOWN,
		KVERBS_CA_PORT_NOP,
	};
	const struct kverbs_ca_port_attr *port;
	char buf[TEXT_MAX], word[2 * TEXT_MAX];
	uint32_t count;
	size_t i;

	for (i = 0; i < COUNT(order); i++) {
		count = 0;
		ca_for_each_port(attr, port)
			count += port->state == order[i];
		if (!count)
			continue;
		if (count == attr->port_count)
			snprintf(word, sizeof(word), "%s",
				 text_port_state(order[i], buf));
		else
			snprintf(word, sizeof(word), "%" PRIu32 " %s", count,
				 text_port_state(order[i], buf));
		add_word(column, size, word);
	}
}

static void summarize_ports(const struct kverbs_ca_attr *attr, struct line *line)
{
	const struct kverbs_ca_port_attr *port;
	char buf[TEXT_MAX];

	summarize_state(attr, line->column[COL_STATE],
			sizeof(line->column[COL_STATE]));
	ca_for_each_port(attr, port) {
		add_word(line->column[COL_LINK], sizeof(line->column[COL_LINK]),
			 text_link(port->width, port->speed, buf));
		if (port->netdev)
			add_word(line->column[COL_NETDEV],
				 sizeof(line->column[COL_NETDEV]),
				 netdev_name(port->netdev, buf));
	}
}

static void summarize(const struct kverbs_ca_attr *attr, struct line *line)
{
	char buf[TEXT_MAX];
	int i;

	memset(line, 0, sizeof(*line));
	snprintf(line->column[COL_NAME], CA_NAME_MAX, "%s", attr->name);
	snprintf(line->column[COL_PORTS], TEXT_MAX, "%" PRIu32, attr->port_count);
	summarize_ports(attr, line);
	snprintf(line->column[COL_GUID], TEXT_MAX, "%s",
		 text_guid(attr->node_guid, buf));
	snprintf(line->column[COL_FW], sizeof(line->column[COL_FW]), "%s",
		 attr->fw_str);
	device_driver(attr->name, line->column[COL_DRIVER],
		      sizeof(line->column[COL_DRIVER]));
	for (i = 0; i < COL_COUNT; i++)
		if (!*line->column[i])
			line->column[i][0] = '-';
}

static void print_line(const struct line *line, const int width[COL_COUNT])
{
	int i, pad;

	for (i = 0; i < COL_COUNT; i++) {
		print_text(stdout, line->column[i]);
		pad = width[i] - (int)strlen(line->column[i]);
		printf("%*s", i == COL_COUNT - 1 ? 0 : pad + 2, "");
	}
	putchar('\n');
}

static void print_lines(const struct line *lines, size_t count)
{
	int width[COL_COUNT], len, i;
	size_t n;

	for (i = 0; i < COL_COUNT; i++) {
		width[i] = strlen(titles.column[i]);
		for (n = 0; n < count; n++) {
			len = strlen(lines[n].column[i]);
			width[i] = len > width[i] ? len : width[i];
		}
	}
	print_line(&titles, width);
	for (n = 0; n < count; n++)
		print_line(&lines[n], width);
}

static void json_driver(struct json *json, const char *device)
{
	char driver[128];

	device_driver(device, driver, sizeof(driver));
	if (*driver)
		json_string(json, "driver", driver);
	else
		json_null(json, "driver");
}

static void json_list_port(struct json *json,
			   const struct kverbs_ca_port_attr *port)
{
	char buf[TEXT_MAX];

	json_object(json, NULL);
	json_number(json, "port", port->port);
	json_string(json, "state", text_port_state(port->state, buf));
	json_string(json, "link_layer", text_link_layer(port->link_layer, buf));
	json_number(json, "rate_mbps", link_mbps(port->width, port->speed));
	if (port->netdev)
		json_string(json, "netdev", netdev_name(port->netdev, buf));
	else
		json_null(json, "netdev");
	json_end(json);
}

static void json_device(struct json *json, const struct kverbs_ca_attr *attr)
{
	const struct kverbs_ca_port_attr *port;
	char buf[TEXT_MAX];

	json_object(json, NULL);
	json_string(json, "name", attr->name);
	json_string(json, "node_guid", text_guid(attr->node_guid, buf));
	json_string(json, "fw_str", attr->fw_str);
	json_driver(json, attr->name);
	json_array(json, "ports");
	ca_for_each_port(attr, port)
		json_list_port(json, port);
	json_end(json);
	json_end(json);
}

/*
 * Reports errors. Return: false if there is no answer. A device that was
 * removed a moment ago is simply not listed: then status stays unchanged.
 */
static bool ask(const char *device, struct kverbs_ca_attr **attr, int *status)
{
	struct ca ca;
	long len = ca_open_file(&ca, device, O_RDONLY);

	if (len == -ENOENT || len == -ENXIO || len == -ENODEV)
		return false;
	if (len) {
		*status = say_open_error(device, len, false);
		return false;
	}
	len = ca_open(&ca, 0) ?: ca_query(&ca, 0, attr);
	ca_close_file(&ca);
	if (len < 0 && len != -ENODEV)
		*status = say_request_error(device, "query", len);
	return len >= 0;
}

static int list_as_json(const struct devices *devices)
{
	struct kverbs_ca_attr *attr;
	int status = STATUS_OK;
	struct json json;
	size_t i;

	json_start(&json, stdout, false);
	json_array(&json, NULL);
	for (i = 0; i < devices->count; i++) {
		if (!ask(devices->names[i], &attr, &status))
			continue;
		json_device(&json, attr);
		free(attr);
	}
	json_end(&json);
	return status;
}

static int list_as_text(const struct devices *devices)
{
	struct line *lines = calloc(devices->count + 1, sizeof(*lines));
	struct kverbs_ca_attr *attr;
	int status = STATUS_OK;
	size_t i, count = 0;

	if (!lines)
		return say_error("no memory");
	for (i = 0; i < devices->count; i++) {
		if (!ask(devices->names[i], &attr, &status))
			continue;
		summarize(attr, &lines[count++]);
		free(attr);
	}
	if (count)
		print_lines(lines, count);
	else if (status == STATUS_OK)
		status = say_no_device();
	free(lines);
	return status;
}

static int list(bool as_json)
{
	struct devices devices;
	int ret = devices_find(&devices);
	int status;

	if (ret)
		return say_error("cannot read %s: %s", CA_DIR, strerror(-ret));
	if (as_json)
		status = list_as_json(&devices);
	else
		status = list_as_text(&devices);
	devices_free(&devices);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	if (optind < argc)
		return usage_error(cmd, "unexpected argument %s; for one device: kverbs show %s",
				   argv[optind], argv[optind]);
	return list(json);
}

const struct command list_command = {
	.name = "list",
	.arguments = "[--json]",
	.summary = "list the devices, one line each",
	.help =
	"Lists the devices of kverbs, one line each: ports and their state, links, node\n"
	"GUID, firmware, driver, network devices.\n"
	"\n"
	"  -j, --json   print JSON: an array, [] if there is no device\n"
	"  -h, --help   print this help\n",
	.run = run,
};
