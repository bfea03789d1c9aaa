// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints of peer-to-peer DMA.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(p2p_provider);
