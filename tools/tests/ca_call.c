// SPDX-License-Identifier: GPL-2.0-only
/* Requests to a channel adapter, and devices for them. See ca_call.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ca_call.h"

#define NOBODY		65534

#define PREFIX		"t-"
#define PORTS_MAX	4

/* --- requests ------------------------------------------------------------ */

long ca_raw(int fd, unsigned int op, void *request)
{
	int ret = ioctl(fd, KVERBS_CA_IOCTL(op), request);

	return ret < 0 ? -errno : ret;
}

long ca_do(int fd, unsigned int op, struct kverbs_ca_request *r)
{
	r->size = sizeof(*r);
	r->version = KVERBS_CA_VERSION;
	return ca_raw(fd, op, r);
}

long ca_out(int fd, unsigned int op, uint64_t handle, void *out, uint32_t len)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.out = (uintptr_t)out,
		.out_len = len,
	};

	return ca_do(fd, op, &r);
}

long ca_query(int fd, uint64_t handle, void *out, uint32_t len)
{
	return ca_out(fd, KVERBS_CA_QUERY_CA, handle, out, len);
}

long ca_query_port(int fd, uint64_t handle, uint32_t port, void *out,
		   uint32_t len)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.port = port,
		.out = (uintptr_t)out,
		.out_len = len,
	};

	return ca_do(fd, KVERBS_CA_QUERY_PORT, &r);
}

long ca_open(int fd, uint32_t flags, uint64_t *handle)
{
	struct kverbs_ca_request r = { .flags = flags };
	long ret = ca_do(fd, KVERBS_CA_OPEN, &r);

	*handle = r.handle;
	return ret;
}

static long on_object(int fd, unsigned int op, uint64_t handle, uint64_t object)
{
	struct kverbs_ca_request r = { .handle = handle, .object = object };

	return ca_do(fd, op, &r);
}

long ca_close(int fd, uint64_t handle)
{
	return on_object(fd, KVERBS_CA_CLOSE, handle, 0);
}

long ca_alloc_pd(int fd, uint64_t handle, uint64_t *pd)
{
	struct kverbs_ca_request r = { .handle = handle };
	long ret = ca_do(fd, KVERBS_CA_ALLOC_PD, &r);

	*pd = r.object;
	return ret;
}

long ca_dealloc_pd(int fd, uint64_t handle, uint64_t pd)
{
	return on_object(fd, KVERBS_CA_DEALLOC_PD, handle, pd);
}

void ca_fill_reg(struct kverbs_ca_reg_mr *reg, uint64_t pd, void *start,
		 uint64_t length)
{
	*reg = (struct kverbs_ca_reg_mr) {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(*reg),
		.pd = pd,
		.start = (uintptr_t)start,
		.length = length,
		.iova = (uintptr_t)start,
		.access = KVERBS_CA_ACCESS_LOCAL_WRITE,
	};
}

long ca_reg(int fd, uint64_t handle, uint64_t pd, void *start, uint64_t length,
	    uint64_t *mr)
{
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_request r = {
		.handle = handle,
		.in = (uintptr_t)&reg,
		.in_len = sizeof(reg),
	};
	long ret;

	ca_fill_reg(&reg, pd, start, length);
	ret = ca_do(fd, KVERBS_CA_REG_MR, &r);
	*mr = r.object;
	return ret;
}

long ca_dereg(int fd, uint64_t handle, uint64_t mr)
{
	return on_object(fd, KVERBS_CA_DEREG_MR, handle, mr);
}

long ca_list(int fd, uint64_t handle, void *out, uint32_t len)
{
	return ca_out(fd, KVERBS_CA_LIST, handle, out, len);
}

/* --- requests that must succeed -------------------------------------------- */

int node_open(const char *device, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), CA_DIR "%s", device);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return fd;
}

uint64_t must_open(int fd, uint32_t flags)
{
	uint64_t handle;

	EXPECT_EQ(ca_open(fd, flags, &handle), 0);
	EXPECT(handle);
	return handle;
}

uint64_t must_alloc_pd(int fd, uint64_t handle)
{
	uint64_t pd;

	EXPECT_EQ(ca_alloc_pd(fd, handle, &pd), 0);
	EXPECT(pd);
	return pd;
}

uint64_t must_reg(int fd, uint64_t handle, uint64_t pd, void *start,
		  uint64_t length)
{
	uint64_t mr;

	EXPECT_EQ(ca_reg(fd, handle, pd, start, length, &mr), 0);
	EXPECT(mr);
	return mr;
}

/* The next call overwrites the answer. */
struct kverbs_ca_attr *must_query(int fd, uint64_t handle)
{
	static _Alignas(8) char answer[ANSWER_MAX];
	struct kverbs_ca_attr *attr = (void *)answer;
	long ret = ca_query(fd, handle, answer, sizeof(answer));

	EXPECT(ret > 0);
	EXPECT_EQ(ret, attr->size);
	return attr;
}

uint64_t generation(int fd, uint64_t handle)
{
	return must_query(fd, handle)->generation;
}

void *pages(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

/* --- answers --------------------------------------------------------------- */

struct kverbs_ca_port_attr *port_of(void *answer, unsigned int n)
{
	struct kverbs_ca_attr *attr = answer;
	uint32_t offset = attr->port_offset;
	struct kverbs_ca_port_attr *port;

	EXPECT(n < attr->port_count);
	for (;;) {
		EXPECT(offset + sizeof(*port) <= attr->size);
		port = (void *)((char *)answer + offset);
		EXPECT(offset + port->size <= attr->size);
		if (!n--)
			return port;
		offset += port->size;
	}
}

struct kverbs_ca_gid *gid_of(struct kverbs_ca_port_attr *port, unsigned int n)
{
	uint64_t offset = port->gid_offset + (uint64_t)n * port->gid_size;

	EXPECT(n < port->gid_count);
	EXPECT(offset + sizeof(struct kverbs_ca_gid) <= port->size);
	return (void *)((char *)port + offset);
}

uint16_t pkey_of(struct kverbs_ca_port_attr *port, unsigned int n)
{
	EXPECT(n < port->pkey_count);
	EXPECT(port->pkey_offset + 2 * (n + 1) <= port->size);
	return ((uint16_t *)((char *)port + port->pkey_offset))[n];
}

/* --- text files ------------------------------------------------------------ */

bool file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t ret;
	int err;

	if (fd < 0)
		return false;
	ret = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return ret == (ssize_t)strlen(text);
}

bool file_read(const char *path, char *text, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	ssize_t ret;

	text[0] = 0;
	if (fd < 0)
		return false;
	while (got < len - 1) {
		ret = read(fd, text + got, len - 1 - got);
		if (ret <= 0)
			break;
		got += ret;
	}
	text[got] = 0;
	close(fd);
	return true;
}

bool file_has(const char *path, const char *text)
{
	static char content[65536];

	return file_read(path, content, sizeof(content)) &&
	       strstr(content, text);
}

/* --- devices ----------------------------------------------------------------- */

void emu_set(const char *path, const char *value)
{
	char full[256];

	snprintf(full, sizeof(full), EMU_CONFIG "%s", path);
	if (!file_write(full, value))
		test_fail(__FILE__, __LINE__, "'%s' to %s: %s", value, full,
			  strerror(errno));
}

void emu_enable(const char *name, bool on)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/enable", name);
	emu_set(path, on ? "1" : "0");
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0755))
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
}

/* Removes added ports first, beginning with the last one. */
static bool drop(const char *name)
{
	char path[512];
	int port;

	for (port = PORTS_MAX; port >= 2; port--) {
		snprintf(path, sizeof(path), EMU_CONFIG "%s/port%d", name, port);
		if (access(path, F_OK))
			continue;
		emu_enable(name, false);
		if (rmdir(path))
			return false;
	}
	snprintf(path, sizeof(path), EMU_CONFIG "%s", name);
	return !rmdir(path);
}

void emu_make(const char *name, int ports)
{
	char path[128];
	int port;

	snprintf(path, sizeof(path), EMU_CONFIG "%s", name);
	make_dir(path);
	for (port = 2; port <= ports; port++) {
		snprintf(path, sizeof(path), EMU_CONFIG "%s/port%d", name, port);
		make_dir(path);
	}
	emu_enable(name, true);
}

void emu_make_at(const char *name, const char *pci)
{
	char path[128];

	snprintf(path, sizeof(path), EMU_CONFIG "%s", name);
	make_dir(path);
	snprintf(path, sizeof(path), "%s/pci", name);
	emu_set(path, pci);
	emu_enable(name, true);
}

void emu_drop(const char *name)
{
	if (!drop(name))
		test_fail(__FILE__, __LINE__, "rmdir %s: %s", name,
			  strerror(errno));
}

void emu_tidy(void)
{
	DIR *dir = opendir(EMU_CONFIG);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			continue;
		if (!drop(entry->d_name))
			perror(entry->d_name);
	}
	closedir(dir);
}

/* --- pages and time ---------------------------------------------------------- */

static long long vmstat(const char *text, const char *name)
{
	char line[64];
	const char *at;

	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(text, line);
	EXPECT(at);
	return atoll(at + strlen(line));
}

/* Folds the per-CPU counters first. */
long long pinned_pages(void)
{
	static char text[16384];
	char none[16];

	file_read("/proc/sys/vm/stat_refresh", none, sizeof(none));
	EXPECT(file_read("/proc/vmstat", text, sizeof(text)));
	return vmstat(text, "nr_foll_pin_acquired") -
	       vmstat(text, "nr_foll_pin_released");
}

void expect_pinned(long long want)
{
	int tries = 0;

	while (pinned_pages() != want && tries++ < 500)
		moment();
	EXPECT_EQ(pinned_pages(), want);
}

void moment(void)
{
	struct timespec ts = { .tv_nsec = 20 * 1000 * 1000 };

	nanosleep(&ts, NULL);
}

void become_nobody(void)
{
	EXPECT(!setgid(NOBODY));
	EXPECT(!setuid(NOBODY));
}
