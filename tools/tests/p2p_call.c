// SPDX-License-Identifier: GPL-2.0-only
/* Providers of peer-to-peer memory. See p2p_call.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "p2p_call.h"

const char *p2p_name(const char *variable)
{
	const char *name = getenv(variable);

	if (!name || !*name)
		test_skip("there is no %s", variable);
	return name;
}

void *p2p_try_map(const char *provider, size_t size)
{
	char path[128];
	void *at;
	int fd;

	snprintf(path, sizeof(path), PCI_DEVICES "%s/p2pmem/allocate", provider);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

void *p2p_map(const char *provider, size_t size)
{
	void *at = p2p_try_map(provider, size);

	if (!at)
		test_fail(__FILE__, __LINE__, "%zu bytes of %s: %s", size, provider,
			  strerror(errno));
	return at;
}

long long p2p_count(const char *provider, const char *file)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), PCI_DEVICES "%s/p2pmem/%s", provider, file);
	if (!file_read(path, text, sizeof(text)))
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return atoll(text);
}

long p2p_unbind(const char *provider)
{
	return file_write("/sys/bus/pci/drivers/" P2P_DRIVER "/unbind", provider) ?
	       0 : -errno;
}

long p2p_bind(const char *provider)
{
	return file_write("/sys/bus/pci/drivers/" P2P_DRIVER "/bind", provider) ?
	       0 : -errno;
}
