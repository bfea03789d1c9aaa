// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_copy <device>: where the DMA layer gives devices copies of memory, no region is made of
 * any, whatever its access, and the memory stays as it is. Prints a line for each case; the exit
 * status is 0 if all are right.
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "uverbs_dmabuf.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

static const int accesses[] = {
	0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE,
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static bool own_memory_is_refused(struct pair *p)
{
	unsigned char *buf = aligned_alloc(4096, BUF_BYTES);
	bool right = buf;
	size_t i;

	for (i = 0; right && i < ARRAY_SIZE(accesses); i++) {
		struct ibv_mr *mr;

		memset(buf, 0x5a, BUF_BYTES);
		errno = 0;
		mr = ibv_reg_mr(p->pd, buf, BUF_BYTES, accesses[i]);
		if (mr || errno != EIO) {
			printf("    access 0x%x: %s\n", accesses[i],
			       mr ? "success" : strerror(errno));
			right = false;
		}
		/* What was written after a registration must not be rolled back at its end. */
		memset(buf, 0xa5, BUF_BYTES);
		if (mr)
			ibv_dereg_mr(mr);
		right = right && is_filled(buf, 0xa5, BUF_BYTES);
	}
	free(buf);
	return right;
}

/* Makes a dma-buf of pages of the system. Returns its file, or -1. */
static int make_dmabuf(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = BUF_BYTES };
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), file;

	file = memfd_create("uverbs_copy", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (maker < 0 || file < 0 || ftruncate(file, BUF_BYTES) ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	create.memfd = file;
	return ioctl(maker, UDMABUF_CREATE, &create);
}

static bool dmabuf_is_refused(struct pair *p)
{
	struct dmabuf_mr mr;
	int file;

	if (access("/dev/udmabuf", F_OK)) {
		printf("    there is no udmabuf\n");
		return true;
	}
	file = make_dmabuf();
	if (file < 0)
		die("udmabuf");
	if (!reg_dmabuf(p, file, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE, &mr)) {
		printf("    success\n");
		dereg_dmabuf(p, &mr);
		return false;
	}
	if (errno != EIO)
		printf("    %s\n", strerror(errno));
	return errno == EIO;
}

int main(int argc, char **argv)
{
	struct {
		const char *name;
		bool (*run)(struct pair *p);
	} cases[] = {
		{ "own_memory_is_refused", own_memory_is_refused },
		{ "dmabuf_is_refused", dmabuf_is_refused },
	};
	struct pair p = {};
	bool all = true;
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s <device>\n", argv[0]);
		return 2;
	}
	p.ctx = open_device(argv[1]);
	p.pd = ibv_alloc_pd(p.ctx);
	if (!p.pd)
		die("cannot make a PD");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool right = cases[i].run(&p);

		printf("%s %s\n", right ? "ok     " : "FAILED ", cases[i].name);
		all = all && right;
	}
	if (ibv_dealloc_pd(p.pd) || ibv_close_device(p.ctx))
		die("cannot close the device");
	return !all;
}
