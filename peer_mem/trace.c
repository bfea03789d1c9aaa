// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints of the registry.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
