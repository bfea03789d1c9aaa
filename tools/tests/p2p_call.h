/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of peer-to-peer memory: providers, and mappings of their
 * memory. A failure of something that a test relies on ends the case.
 */
#ifndef KVERBS_P2P_CALL_H
#define KVERBS_P2P_CALL_H

#include "peer_call.h"

#define PCI_DEVICES	"/sys/bus/pci/devices/"
#define P2P_DRIVER	"kverbs_bar_mem"

/* The PCI address in an environment variable; without it, the case is skipped. */
const char *p2p_name(const char *variable);
/* Maps memory of a provider; returns NULL, with errno, if that fails. */
void *p2p_try_map(const char *provider, size_t size);
void *p2p_map(const char *provider, size_t size);
/* Reads a number from a file in p2pmem/. */
long long p2p_count(const char *provider, const char *file);
/* Unbinds the driver from the device, or binds it. Returns 0 or a negative errno. */
long p2p_unbind(const char *provider);
long p2p_bind(const char *provider);

#endif /* KVERBS_P2P_CALL_H */
