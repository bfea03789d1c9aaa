// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to a channel adapter from user space. See ca.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ca.h"

/* Enough for the tables of most ports; others take a second request. */
#define CA_FIRST_ROOM	8192
/* Give up if the answer changed between two requests this often in a row. */
#define CA_TRIES	16

/*
 * The size of the first version of a structure, however much it has grown in
 * the headers since: an older kernel may return no more.
 */
#define CA_END(type, member)						\
	(offsetof(type, member) + sizeof(((type *)NULL)->member))
#define CA_ATTR_MIN	CA_END(struct kverbs_ca_attr, node_desc)
#define CA_PORT_MIN	CA_END(struct kverbs_ca_port_attr, pkey_count)
#define CA_GID_MIN	CA_END(struct kverbs_ca_gid, netdev)

/* The beginning of every descriptive structure. */
struct ca_head {
	__u32 version;
	__u32 size;
};

int ca_open_file(struct ca *ca, const char *device, int flags)
{
	char path[sizeof(CA_DIR) + CA_NAME_MAX];

	ca->fd = -1;
	ca->handle = 0;
	if (!*device || *device == '.' || strchr(device, '/') ||
	    strlen(device) >= CA_NAME_MAX)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/%s", CA_DIR, device);
	ca->fd = open(path, flags | O_CLOEXEC);
	return ca->fd < 0 ? -errno : 0;
}

void ca_close_file(struct ca *ca)
{
	if (ca->fd >= 0)
		close(ca->fd);
	ca->fd = -1;
	ca->handle = 0;
}

long ca_request(int fd, __u32 op, struct kverbs_ca_request *req)
{
	long ret;

	if (!req->size)
		req->size = sizeof(*req);
	if (!req->version)
		req->version = KVERBS_CA_VERSION;
	ret = ioctl(fd, KVERBS_CA_IOCTL(op), req);
	return ret < 0 ? -errno : ret;
}

/* The buffer grows until all fits. A little more room than is asked for: what
 * has grown once may grow again.
 */
static long ca_query_all(const struct ca *ca, __u32 op,
			 struct kverbs_ca_request *req, void **reply)
{
	__u32 room = CA_FIRST_ROOM;
	struct ca_head *buf = NULL, *more;
	long ret = -EAGAIN;
	int try;

	req->handle = ca->handle;
	for (try = 0; try < CA_TRIES; try++) {
		more = realloc(buf, room);
		if (!more) {
			ret = -ENOMEM;
			break;
		}
		buf = more;
		req->out = (uintptr_t)buf;
		req->out_len = room;
		ret = ca_request(ca->fd, op, req);
		if (ret != -EOVERFLOW)
			break;
		room = buf->size + buf->size / 8;
		ret = -EAGAIN;
	}
	if (ret < 0) {
		free(buf);
		return ret;
	}
	*reply = buf;
	return ret;
}

static bool ca_fits(__u32 offset, __u64 bytes, __u32 size)
{
	return offset <= size && bytes <= size - offset;
}

static bool ca_port_is_sane(const struct kverbs_ca_port_attr *port, __u32 room)
{
	return room >= CA_PORT_MIN && port->version == KVERBS_CA_VERSION &&
	       port->size <= room && port->attr_size <= port->size &&
	       port->attr_size >= CA_PORT_MIN &&
	       port->gid_size >= CA_GID_MIN &&
	       ca_fits(port->gid_offset,
		       (__u64)port->gid_count * port->gid_size, port->size) &&
	       ca_fits(port->pkey_offset,
		       (__u64)port->pkey_count * sizeof(__u16), port->size);
}

static bool ca_attr_is_sane(const struct kverbs_ca_attr *attr, size_t len)
{
	const struct kverbs_ca_port_attr *port;
	__u32 count = 0;

	if (len < CA_ATTR_MIN || attr->version != KVERBS_CA_VERSION ||
	    attr->size != len || attr->attr_size < CA_ATTR_MIN ||
	    attr->attr_size > attr->size)
		return false;
	ca_for_each_port(attr, port)
		count++;
	return count == attr->port_count;
}

/* Frees an answer that is invalid. */
static long ca_judge(long len, bool sane, void *reply)
{
	if (sane)
		return len;
	free(reply);
	return -EPROTO;
}

long ca_query(const struct ca *ca, __u32 flags, struct kverbs_ca_attr **attr)
{
	struct kverbs_ca_request req = { .flags = flags };
	void *reply;
	long len = ca_query_all(ca, KVERBS_CA_QUERY_CA, &req, &reply);

	if (len < 0)
		return len;
	*attr = reply;
	return ca_judge(len, ca_attr_is_sane(*attr, len), reply);
}

long ca_query_port(const struct ca *ca, __u32 port, __u32 flags,
		   struct kverbs_ca_port_attr **attr)
{
	struct kverbs_ca_request req = { .flags = flags, .port = port };
	void *reply;
	long len = ca_query_all(ca, KVERBS_CA_QUERY_PORT, &req, &reply);

	if (len < 0)
		return len;
	*attr = reply;
	return ca_judge(len, ca_port_is_sane(*attr, len), reply);
}

int ca_query_alone(const struct ca *ca, __u32 flags,
		   struct kverbs_ca_attr *attr)
{
	struct kverbs_ca_request req = {
		.flags = flags,
		.handle = ca->handle,
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};
	long len = ca_request(ca->fd, KVERBS_CA_QUERY_CA, &req);

	/* The ports do not fit, as intended. */
	if (len < 0 && len != -EOVERFLOW)
		return len;
	if (attr->version != KVERBS_CA_VERSION || attr->attr_size < CA_ATTR_MIN)
		return -EPROTO;
	/* An older kernel's structure is shorter, and the first port follows it. */
	if (attr->attr_size < sizeof(*attr))
		memset((char *)attr + attr->attr_size, 0,
		       sizeof(*attr) - attr->attr_size);
	return 0;
}

int ca_query_with_port(const struct ca *ca, __u32 port, __u32 flags,
		       struct kverbs_ca_attr *attr,
		       struct kverbs_ca_port_attr **port_attr)
{
	struct kverbs_ca_attr after;
	int try, ret;
	long len;

	for (try = 0; try < CA_TRIES; try++) {
		ret = ca_query_alone(ca, flags, attr);
		if (ret)
			return ret;
		/* The previous request has already done what flags request. */
		len = ca_query_port(ca, port, 0, port_attr);
		if (len < 0)
			return len;
		ret = ca_query_alone(ca, 0, &after);
		if (!ret && after.generation == attr->generation)
			return 0;
		free(*port_attr);
		if (ret)
			return ret;
	}
	return -EAGAIN;
}

const struct kverbs_ca_port_attr *
ca_next_port(const struct kverbs_ca_attr *attr,
	     const struct kverbs_ca_port_attr *port)
{
	const char *start = (const char *)attr;
	__u32 offset;

	if (port)
		offset = (const char *)port - start + port->size;
	else
		offset = attr->port_offset;
	if (offset >= attr->size || offset % 8)
		return NULL;
	port = (const void *)(start + offset);
	return ca_port_is_sane(port, attr->size - offset) ? port : NULL;
}

const struct kverbs_ca_gid *ca_gid(const struct kverbs_ca_port_attr *port,
				   __u32 index)
{
	return (const void *)((const char *)port + port->gid_offset +
			      (size_t)index * port->gid_size);
}

__u16 ca_pkey(const struct kverbs_ca_port_attr *port, __u32 index)
{
	const __u16 *table = (const void *)((const char *)port +
					    port->pkey_offset);

	return table[index];
}

int ca_open(struct ca *ca, __u32 flags)
{
	struct kverbs_ca_request req = { .flags = flags };
	long ret = ca_request(ca->fd, KVERBS_CA_OPEN, &req);

	if (ret < 0)
		return ret;
	ca->handle = req.handle;
	return 0;
}

/* Makes a request that names an object, without other input or output. */
static int ca_simple(const struct ca *ca, __u32 op, __u64 object)
{
	struct kverbs_ca_request req = {
		.handle = ca->handle,
		.object = object,
	};
	long ret = ca_request(ca->fd, op, &req);

	return ret < 0 ? ret : 0;
}

int ca_close(struct ca *ca)
{
	int ret = ca_simple(ca, KVERBS_CA_CLOSE, 0);

	if (!ret)
		ca->handle = 0;
	return ret;
}

int ca_alloc_pd(const struct ca *ca, __u64 *pd)
{
	struct kverbs_ca_request req = { .handle = ca->handle };
	long ret = ca_request(ca->fd, KVERBS_CA_ALLOC_PD, &req);

	*pd = req.object;
	return ret < 0 ? ret : 0;
}

int ca_dealloc_pd(const struct ca *ca, __u64 pd)
{
	return ca_simple(ca, KVERBS_CA_DEALLOC_PD, pd);
}

int ca_reg_mr(const struct ca *ca, struct kverbs_ca_reg_mr *reg, __u64 *mr,
	      struct kverbs_ca_mr_attr *attr)
{
	struct kverbs_ca_request req = {
		.handle = ca->handle,
		.in = (uintptr_t)reg,
		.in_len = sizeof(*reg),
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};
	long ret;

	memset(attr, 0, sizeof(*attr));

	if (!reg->version)
		reg->version = KVERBS_CA_VERSION;
	if (!reg->size)
		reg->size = sizeof(*reg);
	ret = ca_request(ca->fd, KVERBS_CA_REG_MR, &req);
	*mr = req.object;
	return ret < 0 ? ret : 0;
}

int ca_dereg_mr(const struct ca *ca, __u64 mr)
{
	return ca_simple(ca, KVERBS_CA_DEREG_MR, mr);
}

int ca_query_mr(const struct ca *ca, __u64 mr, struct kverbs_ca_mr_attr *attr)
{
	struct kverbs_ca_request req = {
		.handle = ca->handle,
		.object = mr,
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};
	long ret;

	memset(attr, 0, sizeof(*attr));
	ret = ca_request(ca->fd, KVERBS_CA_QUERY_MR, &req);
	/* A newer kernel has more data than there is room for. */
	return ret < 0 && ret != -EOVERFLOW ? ret : 0;
}

int ca_set_peer(const struct ca *ca, const char *name)
{
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
	};
	struct kverbs_ca_request req = {
		.handle = ca->handle,
		.in = (uintptr_t)&peer,
		.in_len = sizeof(peer),
	};
	size_t len = strlen(name);
	long ret;

	if (len >= sizeof(peer.name))
		return -EINVAL;
	memcpy(peer.name, name, len);
	ret = ca_request(ca->fd, KVERBS_CA_SET_PEER, &req);
	return ret < 0 ? ret : 0;
}
