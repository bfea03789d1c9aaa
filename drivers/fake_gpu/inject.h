/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FAKE_GPU_INJECT_H
#define FAKE_GPU_INJECT_H

#include <linux/types.h>

struct fake_gpu;

void fake_gpu_inject_init(void);
void fake_gpu_inject_exit(void);
int fake_gpu_inject_add(struct fake_gpu *gpu);
void fake_gpu_inject_remove(struct fake_gpu *gpu);
int fake_gpu_inject_register(struct fake_gpu *gpu);

#endif /* FAKE_GPU_INJECT_H */
