/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer memory client and a user of its memory, for the invalidation cases.
 */
#ifndef KVT_PEER_SCENE_H
#define KVT_PEER_SCENE_H

#include "peer/rig.h"

/* A client, a user of its memory, and the trace of their calls. */
struct scene {
	struct peer_mock *m;	/* the client */
	struct peer_user *u;
	struct kvt_trace *tr;	/* trace of the calls on both sides */
	struct kvt_gate hold;	/* blocks a call of the client, or the user's revoke callback */
};

const void *scene_kinds(const void *prev, char *desc);
bool scene_unmaps(struct kunit *test);
struct scene *scene_up(struct kunit *test);
struct scene *scene_active(struct kunit *test);
void scene_expect(struct kunit *test, struct scene *s, const char *unmaps, const char *core);
void scene_expect_waits(struct kunit *test, int waits, int timeouts);

int scene_get(void *arg);
int scene_stop(void *arg);
int scene_put(void *arg);
int scene_invalidate(void *arg);

void scene_hold_revoke(struct peer_user *u);
struct kvt_thread *scene_held_in(struct kunit *test, struct scene *s, enum peer_call call,
				 int (*fn)(void *arg));
int scene_let_go(struct kunit *test, struct scene *s, struct kvt_thread *t);
void scene_until_waiting(struct kunit *test, u64 waits);
void scene_until_word(struct kunit *test, struct scene *s, const char *word);

#endif
