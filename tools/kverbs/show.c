// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs show: everything that a device reports about itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "kverbs.h"

struct show {
	const char *device;
	bool one;		/* this port only */
	uint32_t port;
	bool json;
	bool all;
};

static void show_json(const struct show *show, const struct kverbs_ca_attr *attr,
		      const struct kverbs_ca_port_attr *only)
{
	const struct kverbs_ca_port_attr *port;
	struct json json;

	json_start(&json, stdout, false);
	json_object(&json, NULL);
	json_ca(&json, attr);
	json_array(&json, "ports");
	for (port = only ?: ca_next_port(attr, NULL); port;
	     port = only ? NULL : ca_next_port(attr, port)) {
		json_object(&json, NULL);
		json_port(&json, port, show->all);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

static int show_all(const struct ca *ca, const struct show *show)
{
	const struct kverbs_ca_port_attr *port;
	struct kverbs_ca_attr *attr;
	long len = ca_query(ca, KVERBS_CA_FRESH, &attr);

	if (len < 0)
		return say_request_error(show->device, "query", len);
	if (show->json) {
		show_json(show, attr, NULL);
	} else {
		print_ca(attr, show->all);
		ca_for_each_port(attr, port)
			print_port(port, show->all);
	}
	free(attr);
	return STATUS_OK;
}

static int say_no_port(const struct ca *ca, const struct show *show)
{
	struct kverbs_ca_attr attr;
	int ret = ca_query_alone(ca, 0, &attr);

	if (ret)
		return say_request_error(show->device, "query", ret);
	if (attr.port_count == 1)
		return say_error("%s has no port %" PRIu32 ", only port %" PRIu32,
				 show->device, show->port, attr.first_port);
	return say_error("%s has no port %" PRIu32 ". It has ports %" PRIu32
			 " to %" PRIu32, show->device, show->port,
			 attr.first_port,
			 attr.first_port + attr.port_count - 1);
}

static int show_one(const struct ca *ca, const struct show *show)
{
	struct kverbs_ca_port_attr *port;
	struct kverbs_ca_attr attr;
	int ret;

	ret = ca_query_with_port(ca, show->port, KVERBS_CA_FRESH, &attr, &port);
	if (ret == -EINVAL)
		return say_no_port(ca, show);
	if (ret)
		return say_request_error(show->device, "query", ret);
	if (show->json) {
		show_json(show, &attr, port);
	} else {
		printf("%s\n", attr.name);
		print_port(port, show->all);
	}
	free(port);
	return STATUS_OK;
}

static int show(const struct show *show)
{
	struct ca ca;
	int status = open_ca(&ca, show->device, O_RDONLY);

	if (status)
		return status;
	status = show->one ? show_one(&ca, show) : show_all(&ca, show);
	ca_close_file(&ca);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "all", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct show what = {};
	uint64_t port;
	int opt;

	while ((opt = getopt_long(argc, argv, "p:jah", options, NULL)) != -1) {
		switch (opt) {
		case 'p':
			if (!parse_number(optarg, 0, UINT32_MAX, &port))
				return usage_error(cmd, "%s is not a port number", optarg);
			what.one = true;
			what.port = port;
			break;
		case 'j':
			what.json = true;
			break;
		case 'a':
			what.all = true;
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	if (optind + 1 != argc)
		return usage_error(cmd, optind == argc ?
				   "no device given; to list the devices: kverbs list" :
				   "only one device at a time");
	what.device = argv[optind];
	return show(&what);
}

const struct command show_command = {
	.name = "show",
	.arguments = "<device> [--port <n>] [--json] [--all]",
	.summary = "show all attributes of a device and its ports",
	.help =
	"Shows all attributes of a device and of its ports, with the GIDs and P_Keys that\n"
	"are set. The device is queried now, so that the counters are current.\n"
	"\n"
	"  -p, --port <n>   only this port\n"
	"  -j, --json       print JSON: an object, see kverbs(1)\n"
	"  -a, --all        also limits of 0, and empty table entries\n"
	"  -h, --help       print this help\n",
	.run = run,
};
