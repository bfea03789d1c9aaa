// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory to register: system memory, a dma-buf that the kernel makes from it,
 * peer-to-peer memory of a PCI device, or memory of a fake GPU (drivers/fake_gpu), whose
 * requests stand for those of a real one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kverbs/fake_gpu.h>

#include "kverbs.h"

#define UDMABUF_NODE	"/dev/udmabuf"
/* File in the directory of a provider of peer-to-peer memory. */
#define P2P_FILE	"/p2pmem/allocate"

static int say_no_memory(const struct memory *mem, int error)
{
	char buf[TEXT_MAX];

	return say_error("cannot get %s of memory: %s. Try less with --size",
			 text_bytes(mem->size, buf), strerror(error));
}

static int say_no_udmabuf(const struct memory *mem, int error)
{
	char buf[TEXT_MAX];

	return say_error("cannot make a dma-buf of %s: %s\n"
			 "  Its limit: /sys/module/udmabuf/parameters/size_limit_mb",
			 text_bytes(mem->size, buf), strerror(error));
}

/* memory_put() undoes whatever was done before an error. */
static bool map(struct memory *mem, int fd, int flags, off_t offset)
{
	void *start = mmap(NULL, mem->size, PROT_READ | PROT_WRITE, flags, fd,
			   offset);

	if (start == MAP_FAILED)
		return false;
	mem->start = start;
	return true;
}

static int get_system(struct memory *mem)
{
	if (map(mem, -1, MAP_PRIVATE | MAP_ANONYMOUS, 0))
		return STATUS_OK;
	return say_no_memory(mem, errno);
}

static void round_up(struct memory *mem, uint64_t page)
{
	mem->size = (mem->size + page - 1) / page * page;
}

static int get_udmabuf(struct memory *mem)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC };

	round_up(mem, sysconf(_SC_PAGESIZE));
	mem->owner = open(UDMABUF_NODE, O_RDWR | O_CLOEXEC);
	if (mem->owner < 0)
		return say_error("cannot open %s: %s\n"
				 "  This requires a kernel with CONFIG_UDMABUF, and permission to write to the file.",
				 UDMABUF_NODE, strerror(errno));
	mem->file = memfd_create("kverbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mem->file < 0 || ftruncate(mem->file, mem->size) ||
	    fcntl(mem->file, F_ADD_SEALS, F_SEAL_SHRINK) ||
	    !map(mem, mem->file, MAP_SHARED, 0))
		return say_no_memory(mem, errno);
	create.memfd = mem->file;
	create.size = mem->size;
	mem->dmabuf = ioctl(mem->owner, UDMABUF_CREATE, &create);
	return mem->dmabuf < 0 ? say_no_udmabuf(mem, errno) : STATUS_OK;
}

static int get_p2p(struct memory *mem, const char *file)
{
	round_up(mem, sysconf(_SC_PAGESIZE));
	mem->owner = open(file, O_RDWR | O_CLOEXEC);
	if (mem->owner < 0)
		return say_error("cannot open %s: %s\n"
				 "  To list the providers of such memory: kverbs p2p",
				 file, strerror(errno));
	if (!map(mem, mem->owner, MAP_SHARED, 0))
		return say_no_memory(mem, errno);
	return STATUS_OK;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

static int get_fake_gpu(struct memory *mem, const char *node)
{
	struct fake_gpu_alloc alloc = { 0 };
	struct fake_gpu_info info;

	mem->owner = open(node, O_RDWR | O_CLOEXEC);
	if (mem->owner < 0)
		return say_error("cannot open %s: %s", node, strerror(errno));
	if (ioctl(mem->owner, FAKE_GPU_INFO, &info) || !info.page_size)
		return say_error("%s is not a fake GPU\n"
				 "  --memory takes system, udmabuf, the file of a fake GPU: /dev/fake_gpu0,\n"
				 "  or that of a PCI device with peer-to-peer memory: .../p2pmem/allocate",
				 node);
	round_up(mem, info.page_size);
	alloc.size = mem->size;
	if (ioctl(mem->owner, FAKE_GPU_ALLOC, &alloc) ||
	    !map(mem, mem->owner, MAP_SHARED, alloc.offset))
		return say_no_memory(mem, errno);
	mem->dmabuf = ioctl(mem->owner, FAKE_GPU_EXPORT,
			    (unsigned long)alloc.handle);
	return STATUS_OK;
}

int memory_get(struct memory *mem, const char *source, uint64_t size)
{
	int status;

	*mem = (struct memory) {
		.size = size, .owner = -1, .file = -1, .dmabuf = -1,
	};
	if (!strcmp(source, MEMORY_SYSTEM))
		status = get_system(mem);
	else if (!strcmp(source, MEMORY_UDMABUF))
		status = get_udmabuf(mem);
	else if (ends_with(source, P2P_FILE))
		status = get_p2p(mem, source);
	else
		status = get_fake_gpu(mem, source);
	if (status != STATUS_OK)
		memory_put(mem);
	return status;
}

void memory_put(struct memory *mem)
{
	if (mem->start)
		munmap(mem->start, mem->size);
	if (mem->dmabuf >= 0)
		close(mem->dmabuf);
	if (mem->file >= 0)
		close(mem->file);
	if (mem->owner >= 0)
		close(mem->owner);
}
