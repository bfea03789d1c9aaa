// SPDX-License-Identifier: GPL-2.0-only
/* __assign_str() takes only the destination (6.10). */
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#define probe_args(x) probe_##x
#undef TRACE_SYSTEM
#define TRACE_SYSTEM probe
#include <trace/stages/stage6_event_callback.h>

struct probe_offsets { u32 name; const void *name_ptr_; };
struct probe_entry { u32 __data_loc_name; };

static void __used probe(struct probe_entry *__entry, struct probe_offsets *o)
{
	struct probe_offsets __data_offsets = *o;

	__assign_str(name);
}
