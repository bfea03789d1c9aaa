// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs reg: tries to register memory, and undoes it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kverbs.h"

#define DEFAULT_SIZE	(2ULL << 20)
#define DEFAULT_ACCESS	(KVERBS_CA_ACCESS_LOCAL_WRITE |		\
			 KVERBS_CA_ACCESS_REMOTE_WRITE |	\
			 KVERBS_CA_ACCESS_REMOTE_READ)
#define REMOTE_WRITES	(KVERBS_CA_ACCESS_REMOTE_WRITE |	\
			 KVERBS_CA_ACCESS_REMOTE_ATOMIC)

enum touch { TOUCH_NONE, TOUCH_READ, TOUCH_WRITE };

static const struct name touch_names[] = {
	{ TOUCH_NONE,	"none" },
	{ TOUCH_READ,	"read" },
	{ TOUCH_WRITE,	"write" },
	{}
};

struct times {
	uint64_t min;
	uint64_t max;
	uint64_t sum;
};

/**
 * struct reg - a trial
 * @device: its name
 * @size: bytes to register
 * @access: KVERBS_CA_ACCESS_*
 * @path: enum kverbs_ca_path
 * @source: source of the memory, as for memory_get()
 * @peer: the only client to ask for memory of peers, or ""
 * @touch: enum touch: access to the memory before the registration
 * @count: number of registrations
 * @json: print the result as JSON
 * @ca: the device
 * @memory: the memory to register
 * @pd: protection domain under the handle
 * @attr: attributes of the last registration
 * @reg: nanoseconds that REG_MR took
 * @dereg: nanoseconds that DEREG_MR took
 */
struct reg {
	const char *device;
	uint64_t size;
	uint64_t access;
	uint64_t path;
	const char *source;
	const char *peer;
	uint64_t touch;
	uint64_t count;
	bool json;
	struct ca ca;
	struct memory memory;
	__u64 pd;
	struct kverbs_ca_mr_attr attr;
	struct times reg;
	struct times dereg;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void times_add(struct times *times, uint64_t ns)
{
	if (!times->sum || ns < times->min)
		times->min = ns;
	if (ns > times->max)
		times->max = ns;
	times->sum += ns;
}

/* --- what can go wrong ----------------------------------------------------- */

static int say_no_memory(const struct reg *reg)
{
	struct rlimit limit;
	char size[TEXT_MAX], most[TEXT_MAX];

	text_bytes(reg->size, size);
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY && reg->size > limit.rlim_cur)
		return say_error("cannot register %s: this process may lock %s (RLIMIT_MEMLOCK)\n"
				 "  Raise the limit: ulimit -l unlimited; permanently: memlock in\n"
				 "  /etc/security/limits.conf, LimitMEMLOCK= of a service.\n"
				 "  Or register less: --size", size,
				 text_bytes(limit.rlim_cur, most));
	return say_error("cannot register %s: out of memory\n"
			 "  Register less: --size. Other registrations are listed in\n"
			 "  /sys/kernel/debug/kverbs/%s/mr", size, reg->device);
}

/* Says what may be invalid, because the kernel reports only that something is. */
static int say_invalid(const struct reg *reg)
{
	struct kverbs_ca_attr attr;
	char size[TEXT_MAX];

	if ((reg->access & REMOTE_WRITES) &&
	    !(reg->access & KVERBS_CA_ACCESS_LOCAL_WRITE))
		return say_error("cannot register: remote writes or atomics require local writes\n"
				 "  Add lw to --access.");
	if (!ca_query_alone(&reg->ca, 0, &attr) && reg->size > attr.max_mr_size)
		return say_error("cannot register: the limit for a region of %s is %s\n"
				 "  Register less: --size", reg->device,
				 text_bytes(attr.max_mr_size, size));
	return say_error("cannot register: %s does not support this size, access and path\n"
			 "  Its limits: kverbs show %s", reg->device, reg->device);
}

/* Tells whether there is more to report than the error of system memory. */
static bool has_reasons(const struct reg *reg)
{
	int peer = reg->attr.peer_error;

	return reg->attr.dmabuf_error || reg->attr.p2p_error ||
	       (peer && (peer != -ENODEV || reg->path == KVERBS_CA_PATH_PEER));
}

static int say_reasons(const struct reg *reg)
{
	const struct kverbs_ca_mr_attr *attr = &reg->attr;
	const struct {
		const char *name;
		uint32_t path;
		int error;
	} reasons[] = {
		{ "dmabuf", KVERBS_CA_PATH_DMABUF, attr->dmabuf_error },
		{ "host", KVERBS_CA_PATH_HOST, attr->host_error },
		{ "p2p", KVERBS_CA_PATH_P2P, attr->p2p_error },
		{ "peer", KVERBS_CA_PATH_PEER, attr->peer_error },
	};
	size_t i;

	say_error("cannot register: %s cannot reach this memory by any path", reg->device);
	for (i = 0; i < COUNT(reasons); i++) {
		if (reasons[i].error)
			fprintf(stderr, "  %s: %s\n", reasons[i].name,
				text_path_error(reasons[i].path, reasons[i].error));
	}
	return STATUS_FAILED;
}

static int say_reg_error(const struct reg *reg, int error)
{
	char buf[TEXT_MAX];

	if (has_reasons(reg))
		return say_reasons(reg);
	switch (error) {
	case -ENOMEM:
	case -EPERM:
		return say_no_memory(reg);
	case -EINVAL:
		return say_invalid(reg);
	case -EOPNOTSUPP:
		return say_error("cannot register: %s does not support this access, or the path %s\n"
				 "  Try: --access lw --path any", reg->device,
				 text_path(reg->path, buf));
	case -EDQUOT:
		return say_error("cannot register: the handle has reached the limit of objects\n"
				 "  See /sys/module/kverbs_ca/parameters/ca_max_objects");
	case -EFAULT:
		return say_error("cannot register: the device may not use this memory");
	default:
		return say_request_error(reg->device, "register", error);
	}
}

/* --- a trial --------------------------------------------------------------- */

static void touch_memory(const struct reg *reg)
{
	uint64_t step = sysconf(_SC_PAGESIZE), i;

	/* Atomic, so that the compiler does not remove it. */
	for (i = 0; i < reg->size; i += step) {
		if (reg->touch == TOUCH_WRITE)
			__atomic_store_n(&reg->memory.start[i], 1, __ATOMIC_RELAXED);
		else if (reg->touch == TOUCH_READ)
			__atomic_load_n(&reg->memory.start[i], __ATOMIC_RELAXED);
	}
}

/* Passes a dma-buf of the memory if there is one and the path allows it. */
static struct kverbs_ca_reg_mr what_to_register(const struct reg *reg)
{
	struct kverbs_ca_reg_mr in = {
		.pd = reg->pd,
		.start = (uintptr_t)reg->memory.start,
		.length = reg->size,
		.iova = (uintptr_t)reg->memory.start,
		.access = reg->access,
		.path = reg->path,
	};

	if (reg->memory.dmabuf >= 0 && (reg->path == KVERBS_CA_PATH_ANY ||
					reg->path == KVERBS_CA_PATH_DMABUF)) {
		in.flags = KVERBS_CA_REG_FD;
		in.fd = reg->memory.dmabuf;
	}
	return in;
}

static int register_once(struct reg *reg)
{
	struct kverbs_ca_reg_mr in = what_to_register(reg);
	uint64_t start = now();
	__u64 mr;
	int ret = ca_reg_mr(&reg->ca, &in, &mr, &reg->attr);

	if (ret)
		return say_reg_error(reg, ret);
	times_add(&reg->reg, now() - start);
	start = now();
	ret = ca_dereg_mr(&reg->ca, mr);
	if (ret)
		return say_request_error(reg->device, "deregister", ret);
	times_add(&reg->dereg, now() - start);
	return STATUS_OK;
}

static int with_pd(struct reg *reg)
{
	int ret, status = STATUS_OK;
	uint64_t i;

	ret = ca_alloc_pd(&reg->ca, &reg->pd);
	if (ret)
		return say_request_error(reg->device, "allocate a PD", ret);
	for (i = 0; i < reg->count && status == STATUS_OK; i++)
		status = register_once(reg);
	ret = ca_dealloc_pd(&reg->ca, reg->pd);
	if (ret && status == STATUS_OK)
		status = say_request_error(reg->device, "free the PD", ret);
	return status;
}

static int with_memory(struct reg *reg)
{
	int status = memory_get(&reg->memory, reg->source, reg->size);

	if (status != STATUS_OK)
		return status;
	if (reg->path == KVERBS_CA_PATH_DMABUF && reg->memory.dmabuf < 0) {
		status = say_error("%s has no dma-buf\n"
				   "  Try: --memory udmabuf", reg->source);
	} else {
		touch_memory(reg);
		status = with_pd(reg);
	}
	memory_put(&reg->memory);
	return status;
}

static int with_peer(struct reg *reg)
{
	int ret = *reg->peer ? ca_set_peer(&reg->ca, reg->peer) : 0;

	if (ret == -EINVAL)
		return say_error("--peer: no client has such a name");
	if (ret)
		return say_request_error(reg->device, "name the peer", ret);
	return with_memory(reg);
}

/* --- its result ------------------------------------------------------------ */

static void print_times(const struct reg *reg, const char *what,
			const struct times *times)
{
	char min[TEXT_MAX], mean[TEXT_MAX], max[TEXT_MAX];

	if (reg->count == 1)
		printf("  %-12s%s\n", what, text_ns(times->sum, mean));
	else
		printf("  %-12s%s on average, %s to %s, %" PRIu64 " times\n", what,
		       text_ns(times->sum / reg->count, mean),
		       text_ns(times->min, min), text_ns(times->max, max),
		       reg->count);
}

static const char *path_explained(uint32_t path)
{
	switch (path) {
	case KVERBS_CA_PATH_HOST:
		return ": pages of system memory";
	case KVERBS_CA_PATH_PEER:
		return ": memory of another device, through its driver ";
	case KVERBS_CA_PATH_DMABUF:
		return ": memory of a dma-buf";
	case KVERBS_CA_PATH_P2P:
		return ": peer-to-peer memory of PCI device ";
	default:
		return "";
	}
}

static const char *stay_explained(const struct kverbs_ca_mr_attr *attr)
{
	if (attr->flags & KVERBS_CA_MR_REVOKED)
		return "has been revoked: using it is an error";
	if (attr->flags & KVERBS_CA_MR_PINNED)
		return "is pinned";
	return attr->path == KVERBS_CA_PATH_DMABUF ? "may move" :
						     "may be revoked";
}

/* Prints why a path failed that was tried before the final one. */
static void print_reason(uint32_t path, int error)
{
	char buf[TEXT_MAX], what[TEXT_MAX + 4];

	if (!error)
		return;
	snprintf(what, sizeof(what), "not %s", text_path(path, buf));
	printf("  %-12s%s\n", what, text_path_error(path, error));
}

static void print_path(const struct kverbs_ca_mr_attr *attr)
{
	char buf[TEXT_MAX];

	printf("  %-12s%s%s", "path", text_path(attr->path, buf),
	       path_explained(attr->path));
	print_text(stdout, attr->peer);
	putchar('\n');
	print_reason(KVERBS_CA_PATH_DMABUF, attr->dmabuf_error);
	print_reason(KVERBS_CA_PATH_HOST, attr->host_error);
	print_reason(KVERBS_CA_PATH_P2P, attr->p2p_error);
	print_reason(KVERBS_CA_PATH_PEER, attr->peer_error);
	printf("  %-12s%s\n", "memory", stay_explained(attr));
}

static void print_result(const struct reg *reg)
{
	uint64_t access = reg->attr.access;
	char buf[TEXT_MAX];
	const char *name;

	printf("%s: registered %s\n", reg->device,
	       text_bytes(reg->attr.length, buf));
	print_path(&reg->attr);
	printf("  %-12slr", "access");
	while ((name = next_flag(access_names, &access, buf)))
		printf(",%s", name);
	printf("\n  %-12s0x%08" PRIx32 "\n", "lkey", reg->attr.lkey);
	printf("  %-12s0x%08" PRIx32 "\n", "rkey", reg->attr.rkey);
	print_times(reg, "register", &reg->reg);
	print_times(reg, "deregister", &reg->dereg);
}

static void json_times(struct json *json, const char *key,
		       const struct times *times, uint64_t count)
{
	json_object(json, key);
	json_number(json, "min", times->min);
	json_number(json, "mean", times->sum / count);
	json_number(json, "max", times->max);
	json_end(json);
}

/* Writes the name of an errno. */
static void json_error(struct json *json, const char *key, int error)
{
	const char *name = error ? strerrorname_np(-error) : NULL;

	if (name)
		json_string(json, key, name);
	else
		json_null(json, key);
}

static void json_path(struct json *json, const struct kverbs_ca_mr_attr *attr)
{
	char buf[TEXT_MAX];

	json_string(json, "path", text_path(attr->path, buf));
	if (*attr->peer)
		json_string(json, "peer", attr->peer);
	else
		json_null(json, "peer");
	json_flags(json, "flags", mr_flag_names, attr->flags);
	json_error(json, "dmabuf_error", attr->dmabuf_error);
	json_error(json, "host_error", attr->host_error);
	json_error(json, "p2p_error", attr->p2p_error);
	json_error(json, "peer_error", attr->peer_error);
}

static void json_result(const struct reg *reg)
{
	struct json json;

	json_start(&json, stdout, false);
	json_object(&json, NULL);
	json_string(&json, "device", reg->device);
	json_number(&json, "length", reg->attr.length);
	json_path(&json, &reg->attr);
	json_flags(&json, "access", access_names, reg->attr.access);
	json_string(&json, "touched", touch_names[reg->touch].name);
	json_number(&json, "lkey", reg->attr.lkey);
	json_number(&json, "rkey", reg->attr.rkey);
	json_number(&json, "count", reg->count);
	json_times(&json, "register_ns", &reg->reg, reg->count);
	json_times(&json, "deregister_ns", &reg->dereg, reg->count);
	json_end(&json);
}

static int reg_run(struct reg *reg)
{
	int ret, status = open_ca(&reg->ca, reg->device, O_RDWR);

	if (status != STATUS_OK)
		return status;
	status = with_peer(reg);
	ret = ca_close(&reg->ca);
	if (ret && status == STATUS_OK)
		status = say_request_error(reg->device,
					   "close the channel adapter", ret);
	ca_close_file(&reg->ca);
	if (status != STATUS_OK)
		return status;
	if (reg->json)
		json_result(reg);
	else
		print_result(reg);
	return STATUS_OK;
}

/* --- arguments ------------------------------------------------------------- */

/* Parses a size such as 4096, 64K, 2M, 1G or 1T; iB or B may follow the letter. */
static bool parse_size(const char *text, uint64_t *size)
{
	static const char letters[] = "KMGT";
	char *end, *letter;
	unsigned int shift = 0;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*size = strtoull(text, &end, 0);
	if (errno)
		return false;
	letter = isalpha((unsigned char)*end) ? strchr(letters, toupper((unsigned char)*end)) : NULL;
	if (letter) {
		shift = 10 * (letter - letters + 1);
		end++;
		if (!strcmp(end, "iB") || !strcmp(end, "B"))
			end += strlen(end);
	}
	if (*end || !*size || *size > UINT64_MAX >> shift)
		return false;
	*size <<= shift;
	return true;
}

/* Parses a list such as lw,rr,rw, of names in access_names; lr is always allowed. */
static bool parse_access(const char *text, uint64_t *access)
{
	uint64_t flag;
	size_t len;

	*access = 0;
	while (true) {
		len = strcspn(text, ",");
		if (len == 2 && !memcmp(text, "lr", 2))
			flag = 0;
		else if (!parse_name(access_names, text, len, &flag))
			return false;
		*access |= flag;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

static bool parse_value(struct reg *reg, int opt, const char *text)
{
	switch (opt) {
	case 's':
		return parse_size(text, &reg->size) && reg->size <= SIZE_MAX;
	case 'a':
		return parse_access(text, &reg->access);
	case 'P':
		return parse_name(path_names, text, strlen(text), &reg->path);
	case 'm':
		reg->source = text;
		return *text;
	case 'p':
		reg->peer = text;
		return *text;
	case 't':
		return parse_name(touch_names, text, strlen(text), &reg->touch);
	default:
		return parse_number(text, 1, UINT32_MAX, &reg->count);
	}
}

static const char *name_of(const struct option *options, int opt)
{
	while (options->val != opt)
		options++;
	return options->name;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "access", required_argument, NULL, 'a' },
		{ "path", required_argument, NULL, 'P' },
		{ "memory", required_argument, NULL, 'm' },
		{ "peer", required_argument, NULL, 'p' },
		{ "touch", required_argument, NULL, 't' },
		{ "count", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct reg reg = { .size = DEFAULT_SIZE, .access = DEFAULT_ACCESS,
			   .source = MEMORY_SYSTEM, .peer = "",
			   .touch = TOUCH_WRITE, .count = 1 };
	int opt;

	while ((opt = getopt_long(argc, argv, "s:a:P:m:p:t:c:jh", options,
				  NULL)) != -1) {
		if (opt == 'h')
			return command_help(cmd);
		if (opt == '?')
			return option_error(cmd);
		if (opt == 'j')
			reg.json = true;
		else if (!parse_value(&reg, opt, optarg))
			return usage_error(cmd, "%s is no value of --%s; see: kverbs reg --help",
					   optarg, name_of(options, opt));
	}
	if (optind + 1 != argc)
		return usage_error(cmd, optind == argc ?
				   "on which device? \"kverbs list\" has them" :
				   "one device at a time");
	reg.device = argv[optind];
	return reg_run(&reg);
}

const struct command reg_command = {
	.name = "reg",
	.arguments = "<device> [--size <bytes>] [--access <list>]\n"
		     "                  [--path any|host|p2p|peer|dmabuf]\n"
		     "                  [--memory system|udmabuf|<file>] [--peer <name>]\n"
		     "                  [--touch none|read|write] [--count <n>] [--json]",
	.summary = "register memory, show the result, and undo it",
	.help =
	"Registers memory with a device, prints the keys, the time taken and the path by\n"
	"which the device reaches it, and undoes it. Requires permission to write to the\n"
	"device's file.\n"
	"\n"
	"  -s, --size <bytes>   size (default: 2M); K, M, G, T are powers of 1024\n"
	"  -a, --access <list>  allowed accesses (default: lw,rr,rw): lr, lw: local read,\n"
	"                       write; rr, rw, ra: remote read, write, atomics; mw: bind\n"
	"                       memory windows; ro: relaxed ordering. lr is always allowed\n"
	"  -P, --path <path>    required path: any (default), host (pages of system memory),\n"
	"                       p2p (peer-to-peer memory of a PCI device), peer (memory of\n"
	"                       another device, through its driver), dmabuf\n"
	"  -m, --memory <what>  system (default); udmabuf: system memory as a dma-buf; or\n"
	"                       the file of a fake GPU, or the file p2pmem/allocate of a\n"
	"                       PCI device, from which memory is allocated\n"
	"  -p, --peer <name>    ask only this peer-memory driver\n"
	"  -t, --touch <how>    access to the memory beforehand: none, read, or write\n"
	"                       (default)\n"
	"  -c, --count <n>      repeat n times (default: 1)\n"
	"  -j, --json           print JSON: an object, see kverbs(1)\n"
	"  -h, --help           print this help\n",
	.run = run,
};
