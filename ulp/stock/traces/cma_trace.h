/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ahead of the kernel's own header of this name when tracepoints are made of it: older kernels'
 * __assign_str() must be told what to copy, which in these events is the name of a device.
 */
#ifndef HAVE_ASSIGN_STR_DST
#undef __assign_str
#define __assign_str(dst) memcpy(__get_str(dst), device->name, strlen(device->name) + 1)
#endif
#include_next <cma_trace.h>
