/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FAKE_GPU_INJECT_H
#define FAKE_GPU_INJECT_H

#include <linux/types.h>

struct fake_gpu;
struct fake_gpu_mem;

void fake_gpu_inject_init(void);
void fake_gpu_inject_exit(void);
int fake_gpu_inject_add(struct fake_gpu *gpu);
void fake_gpu_inject_remove(struct fake_gpu *gpu);

void fake_gpu_inject_client(struct fake_gpu *gpu);
void fake_gpu_inject_registered(struct fake_gpu *gpu);

void fake_gpu_inject_pages(struct fake_gpu *gpu, const phys_addr_t *page, u32 nr);
void fake_gpu_inject_free(struct fake_gpu_mem *mem);
void fake_gpu_inject_release(struct fake_gpu_mem *mem);

#endif /* FAKE_GPU_INJECT_H */
