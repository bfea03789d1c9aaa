/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to a channel adapter from user space: the small layer above
 * <kverbs/ca.h> that every caller needs. Nothing here keeps state or prints.
 * Functions that can fail return a negative errno.
 */
#ifndef KVERBS_TOOLS_CA_H
#define KVERBS_TOOLS_CA_H

#include <kverbs/ca.h>

#define CA_DIR		"/dev/infiniband/ca"
#define CA_NAME_MAX	64	/* of a device's name, with the terminator */

/**
 * struct ca - a channel adapter that this process has opened
 * @fd: descriptor of its file, or -1
 * @handle: the handle, or 0 if only the file is open
 */
struct ca {
	int fd;
	__u64 handle;
};

/*
 * Opens the file of a device. flags: those of open(2); O_RDWR to create objects.
 * Return: 0, -EINVAL for an invalid name, or the error of open(2).
 */
int ca_open_file(struct ca *ca, const char *device, int flags);

/*
 * Opens the channel adapter of an open file. flags: KVERBS_CA_SHARED or 0.
 * Return: 0 or the kernel's error.
 */
int ca_open(struct ca *ca, __u32 flags);

/* Closes the handle. Return: 0 or the kernel's error: -EBUSY. */
int ca_close(struct ca *ca);

/* Closes everything that is open; the kernel frees what is left under the handle. */
void ca_close_file(struct ca *ca);

/*
 * Makes a request by ioctl(2). Sets size and version if they are 0. Return: the
 * number of bytes written to req->out, or the kernel's error.
 */
long ca_request(int fd, __u32 op, struct kverbs_ca_request *req);

/*
 * Returns a consistent snapshot of a CA, or of a port, in memory for free(3). flags:
 * KVERBS_CA_FRESH or 0. Return: its size in bytes, -ENOMEM, -EPROTO if it is
 * invalid, -EAGAIN if it grows faster than it can be read, or the kernel's error.
 */
long ca_query(const struct ca *ca, __u32 flags, struct kverbs_ca_attr **attr);
long ca_query_port(const struct ca *ca, __u32 port, __u32 flags,
		   struct kverbs_ca_port_attr **attr);

/* The attributes of the CA alone, without its ports. Return: 0 or as above. */
int ca_query_alone(const struct ca *ca, __u32 flags,
		   struct kverbs_ca_attr *attr);

/*
 * The attributes of the CA alone, and all of one of its ports: queries one after the
 * other until nothing has changed in between. Return: 0 or as above.
 */
int ca_query_with_port(const struct ca *ca, __u32 port, __u32 flags,
		       struct kverbs_ca_attr *attr,
		       struct kverbs_ca_port_attr **port_attr);

/* The ports in an answer of ca_query(); NULL after the last one. */
const struct kverbs_ca_port_attr *
ca_next_port(const struct kverbs_ca_attr *attr,
	     const struct kverbs_ca_port_attr *port);

#define ca_for_each_port(attr, port)				\
	for ((port) = ca_next_port((attr), NULL); (port);	\
	     (port) = ca_next_port((attr), (port)))

/* An entry of a table; index is below gid_count, pkey_count. */
const struct kverbs_ca_gid *ca_gid(const struct kverbs_ca_port_attr *port,
				   __u32 index);
__u16 ca_pkey(const struct kverbs_ca_port_attr *port, __u32 index);

/* Objects. Return: 0 or the kernel's error. */
int ca_alloc_pd(const struct ca *ca, __u64 *pd);
int ca_dealloc_pd(const struct ca *ca, __u64 pd);
/*
 * Sets version and size of reg, if they are 0. attr: the region, or why there is
 * none; its size is 0 if the kernel reports nothing. Members that an older kernel
 * does not know are 0.
 */
int ca_reg_mr(const struct ca *ca, struct kverbs_ca_reg_mr *reg, __u64 *mr,
	      struct kverbs_ca_mr_attr *attr);
int ca_dereg_mr(const struct ca *ca, __u64 mr);
int ca_query_mr(const struct ca *ca, __u64 mr, struct kverbs_ca_mr_attr *attr);
/* name: the only client to ask for memory of peers; "" for all. */
int ca_set_peer(const struct ca *ca, const char *name);

#endif /* KVERBS_TOOLS_CA_H */
