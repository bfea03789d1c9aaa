// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rounds of a run. In each, a pattern goes from the peer into a piece of
 * peer-to-peer memory, by RDMA WRITE; the engine copies it to another piece; the peer
 * reads that, by RDMA READ. The CPU fills all memory with other bytes beforehand and
 * checks it after each step, so that every byte of every step is checked.
 */
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "offload.h"

/* Writes the complement of each byte that is to arrive. */
static void offload_spoil(struct offload_session *session, u8 *to)
{
	const u8 *sent = offload_sent(session);
	u32 i;

	for (i = 0; i < session->params.bytes; i++)
		to[i] = ~sent[i];
}

static void offload_spoil_piece(struct offload_session *session,
				const struct offload_piece *piece)
{
	u8 *got = offload_got(session);

	offload_spoil(session, got);
	sg_copy_from_buffer(piece->sgt.sgl, piece->sgt.orig_nents, got, session->params.bytes);
}

static int offload_check(struct offload_session *session)
{
	return memcmp(offload_sent(session), offload_got(session), session->params.bytes) ?
	       -EBADMSG : 0;
}

static int offload_check_piece(struct offload_session *session,
			       const struct offload_piece *piece)
{
	sg_copy_to_buffer(piece->sgt.sgl, piece->sgt.orig_nents, offload_got(session),
			  session->params.bytes);
	return offload_check(session);
}

static int offload_prepare(struct offload_session *session)
{
	int i;

	for (i = 0; i < OFFLOAD_PIECES; i++)
		offload_spoil_piece(session, &session->piece[i]);
	return 0;
}

/* --- steps ------------------------------------------------------------------------ */

static int offload_write(struct offload_session *session)
{
	ib_dma_sync_single_for_device(session->side[OFFLOAD_PEER].dev, session->buf_dma,
				      session->params.bytes, DMA_BIDIRECTIONAL);
	return offload_rdma(session, IB_WR_RDMA_WRITE, 0, &session->piece[OFFLOAD_IN]);
}

static int offload_check_written(struct offload_session *session)
{
	return offload_check_piece(session, &session->piece[OFFLOAD_IN]);
}

static int offload_copy(struct offload_session *session)
{
	return edu_copy(session->engine, &session->piece[OFFLOAD_IN].for_engine,
			&session->piece[OFFLOAD_OUT].for_engine, session->params.bytes);
}

static int offload_check_copied(struct offload_session *session)
{
	return offload_check_piece(session, &session->piece[OFFLOAD_OUT]);
}

static int offload_read(struct offload_session *session)
{
	struct ib_device *dev = session->side[OFFLOAD_PEER].dev;
	u32 bytes = session->params.bytes;
	u64 addr = session->buf_dma + bytes;
	int ret;

	offload_spoil(session, offload_got(session));
	ib_dma_sync_single_for_device(dev, addr, bytes, DMA_BIDIRECTIONAL);
	ret = offload_rdma(session, IB_WR_RDMA_READ, bytes, &session->piece[OFFLOAD_OUT]);
	ib_dma_sync_single_for_cpu(dev, addr, bytes, DMA_BIDIRECTIONAL);
	return ret;
}

static const struct {
	const char *name;
	int (*step)(struct offload_session *session);
} offload_round_steps[] = {
	{ "prepare", offload_prepare },
	{ "write", offload_write },
	{ "written", offload_check_written },
	{ "copy", offload_copy },
	{ "copied", offload_check_copied },
	{ "read", offload_read },
	{ "got", offload_check },
};

static int offload_round(struct offload_session *session, const char **step)
{
	int i, ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(offload_round_steps); i++) {
		if (atomic_read(&session->stopping))
			return -ENODEV;
		*step = offload_round_steps[i].name;
		ret = offload_round_steps[i].step(session);
	}
	return ret;
}

/**
 * offload_run() - move and check patterns
 * @session: the session, set up; the caller holds its lock
 * @rounds: number of rounds
 * @seed: seed of the patterns
 * @step: set to the last step
 *
 * Context: may sleep: the engine takes 0.2 s for each 4 KiB.
 * Return: 0; -EBADMSG: a byte is wrong; -ENODEV: a device goes; -EIO: a device did not
 * carry out a request; or the error of mapping for the engine.
 */
int offload_run(struct offload_session *session, u32 rounds, u64 seed, const char **step)
{
	struct rnd_state rnd;
	int ret = 0;

	lockdep_assert_held(&session->lock);
	prandom_seed_state(&rnd, seed);
	while (!ret && rounds--) {
		prandom_bytes_state(&rnd, offload_sent(session), session->params.bytes);
		ret = offload_round(session, step);
	}
	return ret;
}
