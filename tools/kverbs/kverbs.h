/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command kverbs: declarations that its files share.
 *
 *	main.c		commands, --help, --version
 *	list.c, show.c, monitor.c, reg.c, fault.c, version.c, doctor.c	a command each
 *	stats.c, top.c	a command each, of what has been counted: stats.h
 *	memory.c	memory to register
 *	p2p.c, capture.c	commands with headers of their own, p2p.h and capture.h
 *	fields.c	the attributes of CAs and ports, as tables
 *	text.c		names and units
 *	json.c		a writer
 *	devices.c	which devices exist, and what sysfs says about them
 *	switch.c, stack.c	the two RDMA stacks: stack.h
 *	signals.c	SIGINT and SIGTERM, for commands that run until then
 *	emulated.c	files of emulated devices: emulated.h
 *	files.c		files of the machine, below another root if that is wanted: files.h
 *	error.c		messages about errors and what to do about them
 *
 * A command is a struct command, in the table in main.c. Its run() gets its own
 * arguments, its name first, and returns an exit status.
 */
#ifndef KVERBS_H
#define KVERBS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../lib/ca.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))
#define __printf(format_arg, first_arg)					\
	__attribute((format(printf, format_arg, first_arg)))

/* Exit statuses; the man page has them. */
enum {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE,
};

struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *help;
	int (*run)(const struct command *cmd, int argc, char **argv);
};

extern const struct command list_command;
extern const struct command show_command;
extern const struct command monitor_command;
extern const struct command reg_command;
extern const struct command p2p_command;
extern const struct command fault_command;
extern const struct command capture_command;
extern const struct command version_command;
extern const struct command switch_command;
extern const struct command doctor_command;
extern const struct command stats_command;
extern const struct command top_command;

/* main.c */
/* Prints the help of a command to stdout. Return: STATUS_OK. */
int command_help(const struct command *cmd);
/* Reports what is wrong with the arguments. Return: STATUS_USAGE. */
int usage_error(const struct command *cmd, const char *format, ...)
	__printf(2, 3);
/* For options that getopt_long() does not know. Return: STATUS_USAGE. */
int option_error(const struct command *cmd);
/* Parses a number between min and max. Return: false if text is not such a number. */
bool parse_number(const char *text, uint64_t min, uint64_t max,
		  uint64_t *number);

/* devices.c */
struct devices {
	size_t count;
	char (*names)[CA_NAME_MAX];
};

/* Finds the devices with a file, in natural order. Return: 0 or a negative errno. */
int devices_find(struct devices *devices);
void devices_free(struct devices *devices);
/* Tells whether the kernel has the device, with a file or without. */
bool device_in_sysfs(const char *device);
/* The device's driver if sysfs has it, else "". */
void device_driver(const char *device, char *driver, size_t size);
/* Name of a network device; "" for index 0, a number if it is gone. */
const char *netdev_name(uint32_t index, char name[32]);

/* error.c: each function reports on stderr what is wrong and what to do. */
/*
 * The message begins with the command's name; further lines say what to do. Return:
 * STATUS_FAILED.
 */
int say_error(const char *format, ...) __printf(1, 2);
/* There is nothing to list. Return: STATUS_FAILED. */
int say_no_device(void);
/* ca_open_file() has failed. Return: STATUS_FAILED. */
int say_open_error(const char *device, int error, bool write);
/* ca_open() has failed. Return: STATUS_FAILED. */
int say_open_ca_error(const char *device, int error);
/*
 * Opens a device's file and its channel adapter, and reports errors.
 * Return: STATUS_OK or STATUS_FAILED, with nothing left open.
 */
int open_ca(struct ca *ca, const char *device, int flags);
/* Reports a failed request; what: as in "cannot <what>". Return: STATUS_FAILED. */
int say_request_error(const char *device, const char *what, int error);
/* Flushes stdout. Return: status, or STATUS_FAILED if writing fails. */
int finish_output(int status);

/* signals.c */
/*
 * From here on SIGINT and SIGTERM are only noted, and interrupt poll_or_signal(); output to fd that
 * does not go on after one of them is given up. Return: STATUS_OK or STATUS_FAILED.
 */
int catch_signals(int fd);
/* Called whenever the output has gone on, for it then gets its time anew. */
bool signal_caught(void);
/* Whether some of the output has gone nowhere. */
bool output_given_up(void);
/* As poll(2) without a limit; does not wait once a signal was caught. */
int poll_or_signal(struct pollfd *fds, nfds_t count);

/* memory.c */
#define MEMORY_SYSTEM	"system"
#define MEMORY_UDMABUF	"udmabuf"

/**
 * struct memory - memory to register
 * @start: address in this process
 * @size: bytes, perhaps more than requested
 * @dmabuf: a dma-buf of all of it, or -1
 * @owner: file of the device that owns it, or -1
 * @file: file that it is mapped from, or -1
 */
struct memory {
	char *start;
	uint64_t size;
	int dmabuf;
	int owner;
	int file;
};

/*
 * source: MEMORY_*, or a device's file. Reports errors. Return: STATUS_OK or
 * STATUS_FAILED, with nothing left to put.
 */
int memory_get(struct memory *mem, const char *source, uint64_t size);
void memory_put(struct memory *mem);

/* text.c: names, never NULL. A number without a name gets one made from it, in buf. */
#define TEXT_MAX	64

const char *text_port_state(uint32_t state, char *buf);
const char *text_phys_state(uint32_t state, char *buf);
const char *text_link_layer(uint32_t layer, char *buf);
const char *text_gid_type(uint32_t type, char *buf);
const char *text_node_type(uint32_t type, char *buf);
const char *text_atomic(uint32_t cap, char *buf);
const char *text_path(uint32_t path, char *buf);
/* Why memory is not available on a path, in words; error: a negative errno. */
const char *text_path_error(uint32_t path, int error);
const char *text_event(uint32_t type, char *buf);
const char *text_speed(uint32_t speed, char *buf);
/* Lanes of a link; 0 if the width is invalid. */
unsigned int link_lanes(uint32_t width);
/* Mb/s of a link, before encoding, as marketed; 0 if unknown. */
unsigned int link_mbps(uint32_t width, uint32_t speed);
/* "4X EDR, 100 Gb/s" */
const char *text_link(uint32_t width, uint32_t speed, char *buf);
const char *text_guid(__be64 guid, char *buf);
const char *text_gid(const uint8_t gid[16], char *buf);
/* "2 MiB" if that is exact; 0 is "0". */
const char *text_bytes(uint64_t bytes, char *buf);
/* 4.096 us * 2^n, in a suitable unit */
const char *text_timeout(unsigned int n, char *buf);
const char *text_ns(uint64_t ns, char *buf);
/* Like printf %s, but replaces characters that could control a terminal. */
void print_text(FILE *out, const char *text);

/* The name of a flag, or of a value that is looked up in the same way. */
struct name {
	uint64_t value;
	const char *name;
};

extern const struct name cap_flag_names[];
extern const struct name port_flag_names[];
extern const struct name port_cap_names[];
extern const struct name port_cap2_names[];
extern const struct name access_names[];
extern const struct name path_names[];
extern const struct name mr_flag_names[];

/* Parses one of several names, like "read|write|none". Return: false if it is none of them. */
bool parse_name(const struct name *names, const char *text, size_t len,
		uint64_t *value);

/*
 * Removes the lowest flag from flags. Return: its name, perhaps in buf; NULL if there was no
 * flag.
 */
const char *next_flag(const struct name *names, uint64_t *flags, char *buf);

/* json.c */
#define JSON_DEPTH	16

/*
 * A document being written to out, over several lines unless it is compact. filled: whether
 * the array or object of each level has contents.
 */
struct json {
	FILE *out;
	bool compact;
	unsigned int depth;
	bool filled[JSON_DEPTH];
	char closing[JSON_DEPTH];
};

void json_start(struct json *json, FILE *out, bool compact);
/* key: NULL in an array and at the outermost level. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Ends the innermost object or array, and after the outermost one the line. */
void json_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_flags(struct json *json, const char *key, const struct name *names,
		uint64_t flags);

/* fields.c */
/* all: include limits of 0 and empty entries of tables. */
void print_ca(const struct kverbs_ca_attr *attr, bool all);
void print_port(const struct kverbs_ca_port_attr *port, bool all);
/* Writes members of the innermost object. */
void json_ca(struct json *json, const struct kverbs_ca_attr *attr);
void json_port(struct json *json, const struct kverbs_ca_port_attr *port,
	       bool all);

#endif /* KVERBS_H */
