// SPDX-License-Identifier: GPL-2.0-only
/* The library of dynamic interrupt moderation serves RDMA, and is built. */
#include <linux/dim.h>

#if !IS_ENABLED(CONFIG_DIMLIB)
#error no CONFIG_DIMLIB
#endif

static void __used probe(struct dim *dim)
{
	dim->profile_ix = RDMA_DIM_START_PROFILE;
	rdma_dim(dim, RDMA_DIM_PARAMS_NUM_PROFILES);
}
