/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chance, for programs that make random calls: numbers that a seed determines, and values at
 * which code tends to go wrong.
 */
#ifndef KVERBS_CHANCE_H
#define KVERBS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

/* The next number of a sequence (xorshift64*), whose state is never 0. */
static inline uint64_t chance_draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* A number below @n, which is not 0. */
static inline uint32_t chance_below(uint64_t *state, uint32_t n)
{
	return (chance_draw(state) >> 33) % n;
}

static inline bool chance_one_in(uint64_t *state, uint32_t n)
{
	return !chance_below(state, n);
}

/*
 * A limit of some type, a size of the interfaces, a power of two, or a neighbour of these. Who
 * needs 32 bits gets the limits of 64 bits as 0 and 0xffffffff.
 */
static inline uint64_t chance_edge(uint64_t *state)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 24, 32, 33, 63, 64, 65, 127, 128, 136, 255, 256,
		392, 393, 4095, 4096, 4097, 65535, 65536, 0x7fffffff, 0x80000000,
		0xfffffff0, 0xfffffff7, 0xffffffff, 0x100000000, 0x1ffffffff,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000,
		0xffffffffffffffff,
	};

	if (chance_one_in(state, 4))
		return 1ULL << chance_below(state, 64);
	return edges[chance_below(state, ARRAY_SIZE(edges))];
}

#endif /* KVERBS_CHANCE_H */
