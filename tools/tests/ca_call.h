/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of channel-adapter requests: requests by ioctl, and devices
 * of the software HCA to send them to. A failure of something that a test relies on
 * ends the case.
 */
#ifndef KVERBS_CA_CALL_H
#define KVERBS_CA_CALL_H

#include <kverbs/ca.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test.h"

#define CA_DIR		"/dev/infiniband/ca/"
#define EMU_CONFIG	"/sys/kernel/config/kverbs_emu/"

/* A buffer for any answer of the devices here. */
#define ANSWER_MAX	65536

/* Fill byte for untouched memory: not one of the kernel's patterns. */
#define UNTOUCHED	0xd7

/* Requests. They return the ioctl's result, or -errno. */
long ca_raw(int fd, unsigned int op, void *request);
long ca_do(int fd, unsigned int op, struct kverbs_ca_request *r);
long ca_out(int fd, unsigned int op, uint64_t handle, void *out, uint32_t len);
long ca_query(int fd, uint64_t handle, void *out, uint32_t len);
long ca_query_port(int fd, uint64_t handle, uint32_t port, void *out,
		   uint32_t len);
long ca_open(int fd, uint32_t flags, uint64_t *handle);
long ca_close(int fd, uint64_t handle);
long ca_alloc_pd(int fd, uint64_t handle, uint64_t *pd);
long ca_dealloc_pd(int fd, uint64_t handle, uint64_t pd);
long ca_reg(int fd, uint64_t handle, uint64_t pd, void *start, uint64_t length,
	    uint64_t *mr);
long ca_dereg(int fd, uint64_t handle, uint64_t mr);
long ca_list(int fd, uint64_t handle, void *out, uint32_t len);
void ca_fill_reg(struct kverbs_ca_reg_mr *reg, uint64_t pd, void *start,
		 uint64_t length);

/* Requests that must succeed. */
int node_open(const char *device, int flags);
uint64_t must_open(int fd, uint32_t flags);
uint64_t must_alloc_pd(int fd, uint64_t handle);
uint64_t must_reg(int fd, uint64_t handle, uint64_t pd, void *start,
		  uint64_t length);
struct kverbs_ca_attr *must_query(int fd, uint64_t handle);
uint64_t generation(int fd, uint64_t handle);
void *pages(size_t length);

/* Answers. */
struct kverbs_ca_port_attr *port_of(void *answer, unsigned int n);
struct kverbs_ca_gid *gid_of(struct kverbs_ca_port_attr *port, unsigned int n);
uint16_t pkey_of(struct kverbs_ca_port_attr *port, unsigned int n);

/* Devices. Their names start with "t-", and tidy() removes all of these. */
void emu_make(const char *name, int ports);
void emu_set(const char *path, const char *value);
void emu_enable(const char *name, bool on);
/* Likewise, with one port, as a child of a PCI function. */
void emu_make_at(const char *name, const char *pci);
void emu_drop(const char *name);
void emu_tidy(void);

/* The kernel's text files. */
bool file_write(const char *path, const char *text);
bool file_read(const char *path, char *text, size_t len);
bool file_has(const char *path, const char *text);

/* Number of pinned pages, of all processes. */
long long pinned_pages(void);
void expect_pinned(long long want);

/* Retries a condition for up to ten seconds: for what happens a moment later. */
#define EXPECT_SOON(condition)						\
	do {								\
		int tries_ = 0;						\
		while (!(condition) && tries_++ < 500)			\
			moment();					\
		EXPECT(condition);					\
	} while (0)

void moment(void);

/* For good: the calling process is a user without any rights. */
void become_nobody(void);

#endif /* KVERBS_CA_CALL_H */
