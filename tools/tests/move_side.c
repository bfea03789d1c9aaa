// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both sides of operations that move data: see move_side.h.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_side.h"

static uint64_t chance = 1;

void side_init(struct side *side, const struct ca *ca, char *at,
	       const struct side_range *range, uint32_t seed, enum kverbs_ca_path path)
{
	side->at = at;
	side->range = range;
	fill(at, range->size, seed);
	side->model = malloc(range->size);
	EXPECT(side->model);
	fill(side->model, range->size, seed);
	side->region = must_reg_all(ca, at + range->before, range->length);
	EXPECT_EQ(side->region.attr.path, path);
}

void side_expect(const struct side *side, const char *op)
{
	size_t size = side->range->size, i;

	for (i = 0; i < size; i++) {
		if (side->at[i] != side->model[i])
			test_fail(__FILE__, __LINE__, "after %s: byte %zu of %zu: %#x, not %#x",
				  op, i, size, side->at[i] & 0xff, side->model[i] & 0xff);
	}
}

void side_drop(struct side *side)
{
	EXPECT_EQ(region_dereg(&side->region), 0);
	EXPECT_EQ(munmap(side->at, side->range->size), 0);
	if (side->mem.handle)
		EXPECT_EQ(gpu_free(&side->mem), 0);
	free(side->model);
}

bool is_atomic(const char *op)
{
	return !strcmp(op, "cas") || !strcmp(op, "fadd");
}

/* Applies the operation to the model of the memory. */
static void model_move(const struct move *m, char *own, char *other)
{
	uint64_t old, now;

	if (!strcmp(m->op, "read")) {
		memcpy(own, other, m->len);
		return;
	}
	if (!is_atomic(m->op)) {
		memcpy(other, own, m->len);
		return;
	}
	memcpy(&old, other, sizeof(old));
	now = *m->op == 'f' ? old + m->a : old == m->a ? m->b : old;
	memcpy(own, &old, sizeof(old));
	memcpy(other, &now, sizeof(now));
}

static void move_some(int mover, const char *op, struct side *own, struct side *other,
		      uint32_t len)
{
	struct move m = {
		.op = op,
		.own = &own->region,
		.other = &other->region,
		.len = len,
		.own_at = chance_below(&chance, own->range->length - len + 1),
		.other_at = chance_below(&chance, other->range->length - len + 1),
	};
	char *at;

	if (is_atomic(op)) {
		m.own_at &= ~7UL;
		m.other_at &= ~7UL;
	}
	at = other->model + other->range->before + m.other_at;
	/* One in two compares equal. */
	m.a = chance_draw(&chance);
	m.b = chance_draw(&chance);
	if (*op == 'c' && m.b % 2)
		memcpy(&m.a, at, sizeof(m.a));
	must_move(mover, &m);
	model_move(&m, own->model + own->range->before + m.own_at, at);
}

/* Once for each length, from the own HCA. */
static void move_between(const char *op, const struct side_kinds *kinds, const struct ca *peer,
			 unsigned int own_kind, unsigned int other_kind)
{
	struct side own, other;
	unsigned int i;
	int mover;

	kinds->make(&own, kinds->ca, own_kind, 1);
	kinds->make(&other, peer, other_kind, 2);
	mover = mover_open(kinds->ca, peer);
	for (i = 0; i < kinds->nr_lens; i++)
		move_some(mover, op, &own, &other, is_atomic(op) ? 8 : kinds->lens[i]);
	side_expect(&own, op);
	side_expect(&other, op);
	close(mover);
	side_drop(&own);
	side_drop(&other);
}

void side_move_all(const char *op, const struct side_kinds *kinds)
{
	unsigned int own, other;

	for (own = 0; own < kinds->count; own++) {
		for (other = 0; other < kinds->count; other++) {
			move_between(op, kinds, kinds->ca, own, other);
			move_between(op, kinds, kinds->peer, own, other);
		}
	}
}

static void *traffic_run(void *arg)
{
	struct traffic *t = arg;

	do {
		t->ret = mover_do(t->mover, &t->move);
		t->rounds++;
	} while (!t->ret && !t->stop);
	return NULL;
}

void traffic_start(struct traffic *t)
{
	t->rounds = 0;
	t->stop = false;
	EXPECT_EQ(pthread_create(&t->thread, NULL, traffic_run, t), 0);
	while (t->rounds < 3)
		sched_yield();
}

long traffic_end(struct traffic *t)
{
	pthread_join(t->thread, NULL);
	return t->ret;
}
