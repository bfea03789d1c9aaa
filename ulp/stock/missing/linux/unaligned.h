/* SPDX-License-Identifier: GPL-2.0-only */
/* Where kernels before 6.12 have this. */
#include <asm/unaligned.h>
