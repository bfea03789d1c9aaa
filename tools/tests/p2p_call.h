/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of peer-to-peer memory share: providers, and what a process maps of
 * them. Whatever cannot fail in a test ends the case when it does.
 */
#ifndef KVERBS_P2P_CALL_H
#define KVERBS_P2P_CALL_H

#include "peer_call.h"

#define PCI_DEVICES	"/sys/bus/pci/devices/"
#define P2P_DRIVER	"kverbs_bar_mem"

/* The PCI address in an environment variable; without it, the case is skipped. */
const char *p2p_name(const char *variable);
/* Maps memory of a provider; NULL, with errno, if that cannot be. */
void *p2p_try_map(const char *provider, size_t size);
void *p2p_map(const char *provider, size_t size);
/* A number in p2pmem/. */
long long p2p_count(const char *provider, const char *file);
/* Its driver leaves the device, or gets it. Returns 0 or a negative errno. */
long p2p_unbind(const char *provider);
long p2p_bind(const char *provider);

#endif /* KVERBS_P2P_CALL_H */
