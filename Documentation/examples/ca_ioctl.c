// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests by ioctl(2): shows a device with its ports and GIDs, and
 * registers memory with it.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kverbs/ca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LENGTH	65536

static int request(int fd, enum kverbs_ca_op op, struct kverbs_ca_request *req)
{
	req->size = sizeof(*req);
	req->version = KVERBS_CA_VERSION;
	return ioctl(fd, KVERBS_CA_IOCTL(op), req);
}

/*
 * All of the answer, however long: its first two members tell how long, and it may
 * have grown when it is asked for again.
 */
static struct kverbs_ca_attr *query(int fd, __u64 handle)
{
	struct kverbs_ca_attr *attr = NULL;
	struct kverbs_ca_request req;
	__u32 size = 8;

	for (;;) {
		attr = realloc(attr, size);
		if (!attr)
			err(1, "no memory");
		req = (struct kverbs_ca_request) {
			.handle = handle,
			.out = (uintptr_t)attr,
			.out_len = size,
		};
		if (request(fd, KVERBS_CA_QUERY_CA, &req) >= 0)
			return attr;
		if (errno != EOVERFLOW)
			err(1, "QUERY_CA");
		size = attr->size;
	}
}

static void show_gids(const struct kverbs_ca_port_attr *port)
{
	const char *entry = (const char *)port + port->gid_offset;
	const struct kverbs_ca_gid *gid;
	__u32 i, byte;

	/* Entries may be longer than we know them: by the size that is stated. */
	for (i = 0; i < port->gid_count; i++, entry += port->gid_size) {
		gid = (const struct kverbs_ca_gid *)entry;
		if (gid->type == KVERBS_CA_GID_NONE)
			continue;
		printf("  GID %u: ", i);
		for (byte = 0; byte < sizeof(gid->gid); byte++)
			printf("%02x%s", gid->gid[byte], byte % 2 && byte < 15 ? ":" : "");
		printf(", type %u\n", gid->type);
	}
}

static void show(const struct kverbs_ca_attr *attr)
{
	const char *at = (const char *)attr + attr->port_offset;
	const struct kverbs_ca_port_attr *port;
	__u32 i;

	printf("%s: GUID %016llx, %u ports\n", attr->name,
	       (unsigned long long)be64toh(attr->node_guid), attr->port_count);
	for (i = 0; i < attr->port_count; i++, at += port->size) {
		port = (const struct kverbs_ca_port_attr *)at;
		printf(" port %u: state %u, LID %u, MTU %u\n", port->port, port->state,
		       port->lid, port->active_mtu);
		show_gids(port);
	}
}

/* Into a PD of its own; closing the file would free both. */
static void try_memory(int fd, __u64 handle)
{
	struct kverbs_ca_reg_mr reg = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(reg),
		.length = LENGTH,
		.access = KVERBS_CA_ACCESS_LOCAL_WRITE | KVERBS_CA_ACCESS_REMOTE_READ,
	};
	struct kverbs_ca_request pd = { .handle = handle }, mr = { .handle = handle };
	struct kverbs_ca_mr_attr region;
	void *memory = aligned_alloc(4096, LENGTH);

	if (!memory || request(fd, KVERBS_CA_ALLOC_PD, &pd))
		err(1, "ALLOC_PD");
	reg.pd = pd.object;
	reg.start = (uintptr_t)memory;
	reg.iova = reg.start;
	mr.in = (uintptr_t)&reg;
	mr.in_len = sizeof(reg);
	mr.out = (uintptr_t)&region;
	mr.out_len = sizeof(region);
	if (request(fd, KVERBS_CA_REG_MR, &mr) < 0)
		err(1, "REG_MR");
	printf("%llu bytes: lkey %#x, rkey %#x\n", (unsigned long long)region.length,
	       region.lkey, region.rkey);

	/* What a request does not use is 0. */
	mr = (struct kverbs_ca_request) { .handle = handle, .object = region.object };
	if (request(fd, KVERBS_CA_DEREG_MR, &mr) || request(fd, KVERBS_CA_DEALLOC_PD, &pd))
		err(1, "DEREG_MR, DEALLOC_PD");
	free(memory);
}

int main(int argc, char **argv)
{
	struct kverbs_ca_request ca = { 0 };
	struct kverbs_ca_attr *attr;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/ca/%s", argc > 1 ? argv[1] : "emu0");
	fd = open(path, O_RDWR);
	if (fd < 0)
		err(1, "%s", path);
	if (request(fd, KVERBS_CA_OPEN, &ca))
		err(1, "OPEN");
	attr = query(fd, ca.handle);
	show(attr);
	free(attr);
	try_memory(fd, ca.handle);
	if (request(fd, KVERBS_CA_CLOSE, &ca))
		err(1, "CLOSE");
	close(fd);
	return 0;
}
