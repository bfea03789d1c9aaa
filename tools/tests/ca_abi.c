// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interface, to the byte: what queries answer for each length, and how invalid requests
 * are handled. Also built for 32 bits, where the same must hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE	"t-abi"
#define PORTS	2

/* Margin around an answer, to detect stray writes. */
#define MARGIN	16

static int fd;
static uint64_t handle;

static void setup(void)
{
	emu_make(DEVICE, PORTS);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
}

/* --- contents of an answer ------------------------------------------------- */

/* Reads a number from a sysfs file of the device. */
static long long sysfs_number(const char *file)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/" DEVICE "/%s", file);
	EXPECT(file_read(path, text, sizeof(text)));
	return strtoll(text, NULL, 0);
}

/* Compares eight or sixteen bytes with a GUID or GID in sysfs. */
static void expect_id(const char *file, const void *id, int words)
{
	const unsigned char *b = id;
	char path[128], text[64], want[64];
	int i, at = 0;

	snprintf(path, sizeof(path), "/sys/class/infiniband/" DEVICE "/%s", file);
	EXPECT(file_read(path, text, sizeof(text)));
	for (i = 0; i < words; i++)
		at += snprintf(want + at, sizeof(want) - at, "%s%02x%02x",
			       i ? ":" : "", b[2 * i], b[2 * i + 1]);
	text[strcspn(text, "\n")] = 0;
	if (strcmp(text, want))
		test_fail(__FILE__, __LINE__, "%s: %s, not %s", file, want, text);
}

/* Checks that it is terminated, with only zeros after the end. */
static void expect_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	EXPECT(len < size);
	while (len < size)
		EXPECT(!text[len++]);
}

static void attributes(void)
{
	struct kverbs_ca_attr *attr;

	setup();
	attr = must_query(fd, handle);
	EXPECT_EQ(attr->version, KVERBS_CA_VERSION);
	EXPECT_EQ(attr->attr_size, sizeof(*attr));
	EXPECT_EQ(attr->port_count, PORTS);
	EXPECT_EQ(attr->first_port, 1);
	EXPECT_EQ(attr->node_type, 1);
	EXPECT(attr->generation);
	expect_id("node_guid", &attr->node_guid, 4);
	expect_id("sys_image_guid", &attr->sys_image_guid, 4);
	EXPECT(attr->page_sizes & 4096);
	EXPECT(attr->max_mr_size >= 1 << 20);
	EXPECT(attr->max_qp && attr->max_qp_wr && attr->max_send_sge &&
	       attr->max_recv_sge && attr->max_cq && attr->max_cqe &&
	       attr->max_mr && attr->max_pd && attr->max_mw && attr->max_srq &&
	       attr->max_srq_wr && attr->max_pkeys);
	EXPECT(attr->cap_flags & KVERBS_CA_CAP_MEM_MGT_EXTENSIONS);
	EXPECT(!strcmp(attr->name, DEVICE));
	expect_text(attr->name, sizeof(attr->name));
	expect_text(attr->fw_str, sizeof(attr->fw_str));
	expect_text(attr->node_desc, sizeof(attr->node_desc));
}

static void expect_port(struct kverbs_ca_attr *attr, unsigned int n)
{
	struct kverbs_ca_port_attr *port = port_of(attr, n);
	struct kverbs_ca_gid *gid = gid_of(port, 0);
	char path[64];

	EXPECT_EQ((uintptr_t)port % 8, 0);
	EXPECT_EQ(port->version, KVERBS_CA_VERSION);
	EXPECT_EQ(port->attr_size, sizeof(*port));
	EXPECT_EQ(port->port, n + 1);
	EXPECT(port->generation && port->generation <= attr->generation);
	EXPECT_EQ(port->state, KVERBS_CA_PORT_ACTIVE);
	EXPECT_EQ(port->phys_state, 5);
	EXPECT_EQ(port->link_layer, KVERBS_CA_LINK_INFINIBAND);
	EXPECT_EQ(port->max_mtu, 4096);
	EXPECT_EQ(port->active_mtu, 4096);
	EXPECT_EQ(port->netdev, 0);
	EXPECT(!port->reserved[0] && !port->reserved[1] && !port->reserved[2]);
	snprintf(path, sizeof(path), "ports/%d/lid", n + 1);
	EXPECT_EQ(port->lid, sysfs_number(path));
	snprintf(path, sizeof(path), "ports/%d/gids/0", n + 1);
	expect_id(path, gid->gid, 8);
	EXPECT(!memcmp(gid->gid, &port->subnet_prefix, 8));
	EXPECT_EQ(gid->type, KVERBS_CA_GID_IB);
	EXPECT_EQ(gid->netdev, 0);
	EXPECT(port->gid_size >= sizeof(*gid));
	EXPECT_EQ(gid_of(port, port->gid_count - 1)->type, KVERBS_CA_GID_NONE);
	EXPECT_EQ(pkey_of(port, 0), 0xffff);
	EXPECT_EQ(pkey_of(port, port->pkey_count - 1), 0);
	EXPECT(port->pkey_count <= attr->max_pkeys);
}

static void ports(void)
{
	struct kverbs_ca_port_attr *last;
	struct kverbs_ca_attr *attr;
	unsigned int n;

	setup();
	attr = must_query(fd, handle);
	for (n = 0; n < PORTS; n++)
		expect_port(attr, n);
	last = port_of(attr, PORTS - 1);
	EXPECT_EQ((char *)last + last->size - (char *)attr, attr->size);
}

/* --- lengths ----------------------------------------------------------------- */

/* Makes a query, of the CA if port is 0. */
static long query(unsigned int port, void *out, uint32_t len)
{
	return port ? ca_query_port(fd, handle, port, out, len) :
		      ca_query(fd, handle, out, len);
}

static void expect_untouched(const unsigned char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		EXPECT_EQ(p[i], UNTOUCHED);
}

/* Queries with a given length and place; @full is the complete answer. */
static void ask(unsigned int port, const void *full, uint32_t size, uint32_t len,
		unsigned char *place)
{
	uint32_t told = len < size ? len : size;
	long want = len < 8 ? -ENOSPC : len < size ? -EOVERFLOW : (long)size;

	memset(place - MARGIN, UNTOUCHED, len + 2 * MARGIN);
	EXPECT_EQ(query(port, place, len), want);
	if (want == -ENOSPC)
		told = 0;
	EXPECT(!memcmp(place, full, told));
	expect_untouched(place - MARGIN, MARGIN);
	expect_untouched(place + told, len + MARGIN - told);
}

static void lengths(unsigned int port)
{
	static unsigned char full[ANSWER_MAX], place[ANSWER_MAX];
	uint32_t size, len;
	long ret;

	setup();
	ret = query(port, full, sizeof(full));
	EXPECT(ret > 8);
	size = ((uint32_t *)full)[1];
	EXPECT_EQ(ret, size);
	for (len = 0; len <= size + 16; len++)
		ask(port, full, size, len, place + MARGIN);
	for (len = 0; len < 64; len++)
		ask(port, full, size, len, place + MARGIN + len % 8);
	for (len = 1; len < 8; len++)
		ask(port, full, size, size + 1, place + MARGIN + len);
}

static void lengths_ca(void)
{
	lengths(0);
}

static void lengths_port1(void)
{
	lengths(1);
}

static void lengths_port2(void)
{
	lengths(2);
}

static void port_is_part(void)
{
	static unsigned char answer[ANSWER_MAX];
	struct kverbs_ca_port_attr *port;
	unsigned int n;

	setup();
	for (n = 0; n < PORTS; n++) {
		port = port_of(must_query(fd, handle), n);
		EXPECT_EQ(ca_query_port(fd, handle, n + 1, answer, sizeof(answer)),
			  port->size);
		EXPECT(!memcmp(answer, port, port->size));
	}
}

static void no_buffer(void)
{
	struct kverbs_ca_attr attr;
	unsigned int port;

	setup();
	for (port = 0; port <= PORTS; port++) {
		EXPECT_EQ(query(port, NULL, 0), -EINVAL);
		EXPECT_EQ(query(port, NULL, 4), -EINVAL);
		EXPECT_EQ(query(port, NULL, sizeof(attr)), -EINVAL);
		EXPECT_EQ(query(port, &attr, 0), -ENOSPC);
		EXPECT_EQ(query(port, &attr, 7), -ENOSPC);
	}
}

static void bad_ports(void)
{
	static const uint32_t bad[] = { 0, PORTS + 1, 255, 256, 257, 1U << 31, ~0U };
	char answer[16];
	unsigned int i;

	setup();
	for (i = 0; i < TEST_COUNT(bad); i++)
		EXPECT_EQ(ca_query_port(fd, handle, bad[i], answer, sizeof(answer)), -EINVAL);
}

/* --- invalid requests -------------------------------------------------------- */

#define FIRST_OP	KVERBS_CA_OPEN
#define LAST_OP		KVERBS_CA_SET_PEER

enum { PORT = 1, HANDLE = 2, OBJECT = 4, IN = 8, OUT = 16 };

/* Members that an operation uses. */
static const struct {
	unsigned int fields;
	uint32_t flags;
} uses[LAST_OP + 1] = {
	[KVERBS_CA_OPEN] = { IN, KVERBS_CA_SHARED },
	[KVERBS_CA_CLOSE] = { HANDLE | OUT },
	[KVERBS_CA_QUERY_CA] = { HANDLE | OUT, KVERBS_CA_FRESH },
	[KVERBS_CA_QUERY_PORT] = { HANDLE | PORT | OUT, KVERBS_CA_FRESH },
	[KVERBS_CA_ALLOC_PD] = { HANDLE },
	[KVERBS_CA_DEALLOC_PD] = { HANDLE | OBJECT },
	[KVERBS_CA_REG_MR] = { HANDLE | IN | OUT },
	[KVERBS_CA_DEREG_MR] = { HANDLE | OBJECT },
	[KVERBS_CA_QUERY_MR] = { HANDLE | OBJECT | OUT },
	[KVERBS_CA_LIST] = { HANDLE | OUT },
	[KVERBS_CA_SET_PEER] = { HANDLE | IN },
};

static char out_buffer[ANSWER_MAX];

/* Fills in a request that is valid except for its object and input. */
static void fill(struct kverbs_ca_request *r, unsigned int op)
{
	*r = (struct kverbs_ca_request) {
		.size = sizeof(*r),
		.version = KVERBS_CA_VERSION,
	};
	if (uses[op].fields & HANDLE)
		r->handle = handle;
	if (uses[op].fields & PORT)
		r->port = 1;
	if (uses[op].fields & OUT) {
		r->out = (uintptr_t)out_buffer;
		r->out_len = sizeof(out_buffer);
	}
}

static void refused(unsigned int op, struct kverbs_ca_request *r)
{
	long ret = ca_raw(fd, op, r);

	if (ret != -EINVAL)
		test_fail(__FILE__, __LINE__, "operation %u: %ld, not EINVAL", op,
			  ret);
}

/* Each member that an operation might not use, and a value for it. */
static const struct {
	unsigned int field;
	struct kverbs_ca_request value;
} members[] = {
	{ 0, { .reserved = 1 } },
	{ 0, { .reserved = 1ULL << 63 } },
	{ PORT, { .port = 1 } },
	{ HANDLE, { .handle = 1 } },
	{ HANDLE, { .handle = 1ULL << 63 } },
	{ OBJECT, { .object = 1ULL << 32 } },
	{ IN, { .in = 1 } },
	{ IN, { .in_len = 1 } },
	{ OUT, { .out = 4096 } },
	{ OUT, { .out_len = 8 } },
};

static void unused_fields(void)
{
	const struct kverbs_ca_request *value;
	struct kverbs_ca_request r;
	unsigned int op, i;

	setup();
	for (op = FIRST_OP; op <= LAST_OP; op++) {
		for (i = 0; i < TEST_COUNT(members); i++) {
			if (uses[op].fields & members[i].field)
				continue;
			value = &members[i].value;
			fill(&r, op);
			r.port |= value->port;
			r.handle |= value->handle;
			r.object |= value->object;
			r.in |= value->in;
			r.in_len |= value->in_len;
			r.out |= value->out;
			r.out_len |= value->out_len;
			r.reserved |= value->reserved;
			refused(op, &r);
		}
	}
}

static void unknown_flags(void)
{
	struct kverbs_ca_request r;
	unsigned int op, bit;

	setup();
	for (op = FIRST_OP; op <= LAST_OP; op++) {
		for (bit = 0; bit < 32; bit++) {
			fill(&r, op);
			r.flags = 1U << bit;
			if (!(r.flags & uses[op].flags))
				refused(op, &r);
		}
	}
}

static void versions(void)
{
	static const uint32_t bad[] = { 0, 2, 0x100, 0x10001, ~0U };
	struct kverbs_ca_request r;
	unsigned int op, i;

	setup();
	for (op = FIRST_OP; op <= LAST_OP; op++) {
		for (i = 0; i < TEST_COUNT(bad); i++) {
			fill(&r, op);
			r.version = bad[i];
			refused(op, &r);
		}
	}
}

static void unknown_operations(void)
{
	static const unsigned int bad[] = { 0, LAST_OP + 1, 0x1f, 0x3f };
	struct kverbs_ca_request r;
	unsigned int i;

	setup();
	for (i = 0; i < TEST_COUNT(bad); i++) {
		fill(&r, 0);
		EXPECT_EQ(ca_raw(fd, bad[i], &r), -ENOTTY);
	}
	EXPECT(ioctl(fd, 0, &r) == -1 && errno == ENOTTY);
	EXPECT(ioctl(fd, 0x5401, &r) == -1 && errno == ENOTTY);
	EXPECT(ioctl(fd, KVERBS_CA_IOCTL(1) | 1U << 30, &r) == -1 &&
	       errno == ENOTTY);
}

/* --- older and newer callers ---------------------------------------------------- */

static void request_sizes(void)
{
	static _Alignas(8) char space[4096];
	struct kverbs_ca_request *r = (void *)space;
	uint32_t size;

	setup();
	for (size = 0; size < KVERBS_CA_REQUEST_SIZE_MIN; size++) {
		fill(r, KVERBS_CA_QUERY_CA);
		r->size = size;
		refused(KVERBS_CA_QUERY_CA, r);
	}
	fill(r, KVERBS_CA_QUERY_CA);
	for (size = sizeof(*r); size <= sizeof(space); size += 1 + size / 16) {
		r->size = size;
		EXPECT(ca_raw(fd, KVERBS_CA_QUERY_CA, r) > 0);
	}
	for (size = sizeof(*r) + 1; size <= sizeof(space); size += 1 + size / 8) {
		space[size - 1] = 1;
		r->size = size;
		EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, r), -E2BIG);
		space[size - 1] = 0;
	}
	r->size = sizeof(space) + 1;
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, r), -E2BIG);
	r->size = ~0U;
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, r), -E2BIG);
}

/* A caller built when the structures were shorter. */
struct older_attr {
	__u32 version;
	__u32 size;
	__u32 attr_size;
	__u32 port_offset;
	__u32 port_count;
};

struct older_port {
	__u32 version;
	__u32 size;
	__u32 attr_size;
	__u32 port;
};

static void older_caller(void)
{
	struct kverbs_ca_attr *now;
	struct older_attr *attr;
	struct older_port *port;
	uint32_t offset, n;

	setup();
	now = must_query(fd, handle);
	attr = malloc(now->size);
	EXPECT_EQ(ca_query(fd, handle, attr, sizeof(*attr)), -EOVERFLOW);
	EXPECT_EQ(attr->size, now->size);
	EXPECT_EQ(ca_query(fd, handle, attr, attr->size), now->size);
	offset = attr->port_offset;
	for (n = 0; n < attr->port_count; n++) {
		port = (void *)((char *)attr + offset);
		EXPECT_EQ(port->port, n + 1);
		EXPECT(port->attr_size >= sizeof(*port));
		offset += port->size;
	}
	EXPECT_EQ(offset, attr->size);
}

/* And a caller built when they are longer. */
struct newer_attr {
	union {
		struct kverbs_ca_attr v1;
		__u32 words[3];
		struct {
			__u32 version;
			__u32 size;
			__u32 attr_size;
		};
	};
	__u8 next;
	__u8 padding[7];
	__aligned_u64 later;
};

static void newer_caller(void)
{
	static _Alignas(8) char answer[ANSWER_MAX];
	struct newer_attr *attr = (void *)answer;

	setup();
	EXPECT(ca_query(fd, handle, answer, sizeof(answer)) > 0);
	EXPECT(KVERBS_CA_HAS(&attr->v1, version));
	EXPECT(KVERBS_CA_HAS(&attr->v1, max_pkeys));
	EXPECT(KVERBS_CA_HAS(&attr->v1, node_desc));
	EXPECT(!KVERBS_CA_HAS(attr, next));
	EXPECT(!KVERBS_CA_HAS(attr, later));
	attr->attr_size++;
	EXPECT(KVERBS_CA_HAS(attr, next));
	EXPECT(!KVERBS_CA_HAS(attr, later));
	attr->attr_size = offsetof(struct newer_attr, later) + 8;
	EXPECT(KVERBS_CA_HAS(attr, later));
}

/* --- memory ------------------------------------------------------------------------ */

static void faults(void)
{
	struct kverbs_ca_request r;
	long page = sysconf(_SC_PAGESIZE);
	char *p;

	setup();
	p = pages(4 * page);
	EXPECT(!mprotect(p + page, page, PROT_NONE));
	EXPECT(!mprotect(p + 3 * page, page, PROT_READ));
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, NULL), -EFAULT);
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, p + page), -EFAULT);
	fill(&r, KVERBS_CA_QUERY_CA);
	memcpy(p + page - 32, &r, 32);
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, p + page - 32), -EFAULT);
	memcpy(p + page - 4, &r, 4);
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, p + page - 4), -EFAULT);
	EXPECT_EQ(ca_query(fd, handle, p + page, page), -EFAULT);
	EXPECT_EQ(ca_query(fd, handle, p + page - 100, page), -EFAULT);
	EXPECT_EQ(ca_query(fd, handle, p + 3 * page, page), -EFAULT);
	EXPECT_EQ(ca_query(fd, handle, p + page - 100, 100), -EOVERFLOW);
	r.out = 1ULL << 63;
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, &r), -EFAULT);
	r.out = ~0ULL - 100;
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, &r), -EFAULT);
	r.out = 1ULL << 52 | (uintptr_t)out_buffer;
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, &r), -EFAULT);
}

static void overlap(void)
{
	union {
		struct kverbs_ca_request request;
		struct kverbs_ca_attr attr;
	} both;

	setup();
	fill(&both.request, KVERBS_CA_QUERY_CA);
	both.request.out = (uintptr_t)&both;
	both.request.out_len = sizeof(both);
	EXPECT_EQ(ca_raw(fd, KVERBS_CA_QUERY_CA, &both), -EOVERFLOW);
	EXPECT_EQ(both.attr.attr_size, sizeof(both.attr));
	EXPECT(!strcmp(both.attr.name, DEVICE));
}

static void unaligned_request(void)
{
	char space[sizeof(struct kverbs_ca_request) + 8];
	struct kverbs_ca_request r;
	int i;

	setup();
	for (i = 0; i < 8; i++) {
		fill(&r, KVERBS_CA_QUERY_PORT);
		memcpy(space + i, &r, sizeof(r));
		EXPECT(ca_raw(fd, KVERBS_CA_QUERY_PORT, space + i) > 0);
	}
}

/* --- changes -------------------------------------------------------------------------- */

static uint64_t port_generation(unsigned int n)
{
	return port_of(must_query(fd, handle), n)->generation;
}

/* Creating the device causes events of its own, a moment later. */
static void settle(void)
{
	uint64_t last = 0;

	while (generation(fd, handle) != last) {
		last = generation(fd, handle);
		moment();
		moment();
		moment();
	}
}

/*
 * Changes something of port 1, and checks by the generation that it is seen there and only
 * there.
 */
static void change(const char *file, const char *value)
{
	uint64_t before = generation(fd, handle), other = port_generation(1);
	char path[64];
	int tries = 500;

	snprintf(path, sizeof(path), DEVICE "/port1/%s", file);
	emu_set(path, value);
	while (generation(fd, handle) == before) {
		moment();
		if (!tries--)
			test_fail(__FILE__, __LINE__, "no sign of '%s' to %s",
				  value, file);
	}
	settle();
	EXPECT_EQ(port_generation(0), generation(fd, handle));
	EXPECT_EQ(port_generation(1), other);
}

static bool gid_is(unsigned int n, unsigned char last)
{
	return gid_of(port_of(must_query(fd, handle), 0), n)->gid[15] == last;
}

static void changes(void)
{
	setup();
	settle();
	change("pkeys", "1 0x8001");
	EXPECT_EQ(pkey_of(port_of(must_query(fd, handle), 0), 1), 0x8001);
	change("gids", "1 fe80::9");
	EXPECT_SOON(gid_is(1, 9));
	EXPECT_EQ(gid_of(port_of(must_query(fd, handle), 0), 1)->type, KVERBS_CA_GID_IB);
	change("state", "down");
	EXPECT_SOON(port_of(must_query(fd, handle), 0)->state == KVERBS_CA_PORT_DOWN);
	change("state", "active");
	change("lid", "4711");
	EXPECT_SOON(port_of(must_query(fd, handle), 0)->lid == 4711);
	change("sm_lid", "9");
	change("gids", "1");
	EXPECT_SOON(gid_is(1, 0));
}

static void no_change(void)
{
	struct kverbs_ca_request r;
	uint64_t before;
	int i;

	setup();
	settle();
	before = generation(fd, handle);
	for (i = 0; i < 10; i++) {
		fill(&r, KVERBS_CA_QUERY_CA);
		r.flags = KVERBS_CA_FRESH;
		EXPECT(ca_raw(fd, KVERBS_CA_QUERY_CA, &r) > 0);
		fill(&r, KVERBS_CA_QUERY_PORT);
		r.flags = KVERBS_CA_FRESH;
		EXPECT(ca_raw(fd, KVERBS_CA_QUERY_PORT, &r) > 0);
		EXPECT_EQ(generation(fd, handle), before);
	}
}

/* A prefix of the answer is enough to see whether anything has changed. */
static void prefix(void)
{
	struct kverbs_ca_attr attr;
	uint64_t before;

	setup();
	settle();
	EXPECT_EQ(ca_query(fd, handle, &attr, 32), -EOVERFLOW);
	before = attr.generation;
	emu_set(DEVICE "/port2/pkeys", "3 0x8003");
	do
		EXPECT_EQ(ca_query(fd, handle, &attr, 32), -EOVERFLOW);
	while (attr.generation == before);
	EXPECT(attr.size == must_query(fd, handle)->size);
}

static void gone(void)
{
	struct kverbs_ca_request r;
	unsigned int op;

	setup();
	emu_enable(DEVICE, false);
	for (op = FIRST_OP; op <= LAST_OP; op++) {
		fill(&r, op);
		EXPECT_EQ(ca_raw(fd, op, &r), -ENODEV);
	}
	EXPECT(access(CA_DIR DEVICE, F_OK) && errno == ENOENT);
	emu_enable(DEVICE, true);
	EXPECT_EQ(ca_query(fd, handle, out_buffer, sizeof(out_buffer)), -ENODEV);
	close(fd);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	EXPECT(ca_query(fd, handle, out_buffer, sizeof(out_buffer)) > 0);
}

static const struct test_case cases[] = {
	{ "the attributes are the device's", attributes },
	{ "the ports follow, each with its tables", ports },
	{ "QUERY_CA of any length", lengths_ca },
	{ "QUERY_PORT of any length, port 1", lengths_port1 },
	{ "QUERY_PORT of any length, port 2", lengths_port2 },
	{ "QUERY_PORT is a part of QUERY_CA", port_is_part },
	{ "no buffer, or none to speak of", no_buffer },
	{ "ports that are not there", bad_ports },
	{ "what an operation does not use must be 0", unused_fields },
	{ "flags that an operation does not know", unknown_flags },
	{ "versions that are not there", versions },
	{ "operations that are not there", unknown_operations },
	{ "requests of any size", request_sizes },
	{ "a caller older than the kernel", older_caller },
	{ "a caller newer than the kernel", newer_caller },
	{ "memory that cannot be read or written", faults },
	{ "a request that its own answer overwrites", overlap },
	{ "a request at any address", unaligned_request },
	{ "each change has a generation", changes },
	{ "no change has none", no_change },
	{ "a prefix tells of a change", prefix },
	{ "a device that is gone", gone },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
