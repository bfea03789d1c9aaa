/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What has been counted, as stats prints it and top compares it.
 */
#ifndef KVERBS_STATS_H
#define KVERBS_STATS_H

#include "files.h"

#define LABELS_MAX	3
/* debugfs of kverbs: a directory for each device. */
#define STATS_DEBUGFS	"/sys/kernel/debug/kverbs"

/* name=value, the value as the kernel has it */
struct label {
	const char *name;
	char value[96];
};

/**
 * struct sample - a value
 * @name: what it is, as Prometheus has it
 * @counts: whether it only grows while the device is there
 * @order: its place among those that were found
 * @labels: how many labels it has
 * @label: of what it is
 * @value: the value
 */
struct sample {
	char name[96];
	bool counts;
	size_t order;
	size_t labels;
	struct label label[LABELS_MAX];
	uint64_t value;
};

struct samples {
	size_t count;
	struct sample *sample;
	bool no_memory;
};

/* Collects all there are, those of a name together. Return: STATUS_OK or STATUS_FAILED. */
int samples_get(struct samples *samples);
void samples_put(struct samples *samples);

#endif /* KVERBS_STATS_H */
