// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users of peer memory, the other side of the registry than the clients of rig.c; a
 * check of the locks that the core holds when it calls back; and access to the registry's
 * sysfs files.
 */
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>

#include "peer/rig.h"

#define SYSFS		"/sys/kernel/mm/memory_peers"
#define WAIT_PARAM	"/sys/module/kverbs_peer_mem/parameters/invalidate_wait_ms"

static LIST_HEAD(visits);
static DEFINE_SPINLOCK(visits_lock);

/**
 * peer_visit_begin() - note the locks that a thread holds before it calls the core
 * @v: set up for the thread
 */
void peer_visit_begin(struct peer_visit *v)
{
	v->task = current;
	v->depth = lockdep_depth(current);
	v->preempt = preempt_count();
	spin_lock(&visits_lock);
	list_add(&v->entry, &visits);
	spin_unlock(&visits_lock);
}
EXPORT_SYMBOL_GPL(peer_visit_begin);

/**
 * peer_visit_end() - to be called when the core's function has returned
 * @v: from peer_visit_begin()
 */
void peer_visit_end(struct peer_visit *v)
{
	spin_lock(&visits_lock);
	list_del(&v->entry);
	spin_unlock(&visits_lock);
}
EXPORT_SYMBOL_GPL(peer_visit_end);

/**
 * peer_visit_right() - check the locks held in a function that the core calls
 *
 * Return: true if the thread holds as many locks as when it called the core, with the same
 * preempt count, and interrupts are on.
 */
bool peer_visit_right(void)
{
	int depth = lockdep_depth(current), preempt = preempt_count();
	bool right = false;
	struct peer_visit *v;

	might_sleep();
	spin_lock(&visits_lock);
	list_for_each_entry(v, &visits, entry) {
		if (v->task != current)
			continue;
		right = v->depth == depth && v->preempt == preempt;
		break;
	}
	spin_unlock(&visits_lock);
	return right && !irqs_disabled();
}

static void user_word(struct peer_user *u, const char *word)
{
	if (u->trace)
		kvt_trace_add(u->trace, "%s", word);
}

static void user_revoke(void *arg)
{
	struct peer_user *u = arg;

	if (atomic_inc_return(&u->revokes) != 1 || !(u->any_caller || peer_visit_right()))
		atomic_inc(&u->wrong);
	user_word(u, "revoke");
	spin_lock(&u->lock);
	if (!u->active)
		atomic_inc(&u->wrong);
	u->revoked = true;
	spin_unlock(&u->lock);
	if (u->on_revoke)
		u->on_revoke(u);
}

/**
 * peer_user_init() - set up a user that asks for writable, revocable memory
 * @u: the user
 * @addr: first byte
 * @size: bytes
 */
void peer_user_init(struct peer_user *u, unsigned long addr, size_t size)
{
	/* The core does not use the device; the mocks compare the pointer. */
	static struct device device;

	memset(u, 0, sizeof(*u));
	spin_lock_init(&u->lock);
	u->req = (struct peer_request) {
		.addr = addr,
		.size = size,
		.writable = true,
		.revocable = true,
		.dma_device = &device,
		.user = "kvt0",
	};
}
EXPORT_SYMBOL_GPL(peer_user_init);

static void user_end(void *arg)
{
	struct peer_user *u = arg;

	if (u->region)
		peer_user_put(u);
}

/**
 * peer_user_new() - a user that asks for writable, revocable memory
 * @test: the running case; the user's memory is put when it ends
 * @addr: first byte
 * @size: bytes
 *
 * Return: the user, which lives as long as the case.
 */
struct peer_user *peer_user_new(struct kunit *test, unsigned long addr, size_t size)
{
	struct peer_user *u = kvt_zalloc(test, sizeof(*u));

	peer_user_init(u, addr, size);
	kvt_defer(test, user_end, u);
	return u;
}
EXPORT_SYMBOL_GPL(peer_user_new);

/**
 * peer_user_get() - get the memory
 * @u: the user, which has no memory yet
 *
 * Return: 0, or the error of peer_region_get(); -EINVAL if it returned NULL.
 */
int peer_user_get(struct peer_user *u)
{
	struct peer_region *region;
	struct peer_visit v;

	u->active = false;
	u->revoked = false;
	atomic_set(&u->revokes, 0);
	peer_visit_begin(&v);
	region = peer_region_get(&u->req);
	peer_visit_end(&v);
	if (IS_ERR_OR_NULL(region))
		return region ? PTR_ERR(region) : -EINVAL;
	u->region = region;
	u->pin = peer_mock_made(u->req.addr);
	return 0;
}
EXPORT_SYMBOL_GPL(peer_user_get);

/**
 * peer_user_activate() - begin to use the memory
 * @u: the user
 */
void peer_user_activate(struct peer_user *u)
{
	struct peer_visit v;

	user_word(u, "activate");
	spin_lock(&u->lock);
	u->active = true;
	spin_unlock(&u->lock);
	peer_visit_begin(&v);
	peer_region_activate(u->region, user_revoke, u);
	peer_visit_end(&v);
}
EXPORT_SYMBOL_GPL(peer_user_activate);

/**
 * peer_user_stop() - end the use of the memory
 * @u: the user; the device does not use it any more
 */
void peer_user_stop(struct peer_user *u)
{
	struct peer_visit v;

	user_word(u, "stop");
	spin_lock(&u->lock);
	u->revoked = true;
	spin_unlock(&u->lock);
	peer_visit_begin(&v);
	peer_region_stop(u->region);
	peer_visit_end(&v);
	spin_lock(&u->lock);
	u->active = false;
	spin_unlock(&u->lock);
}
EXPORT_SYMBOL_GPL(peer_user_stop);

/**
 * peer_user_put() - give the memory back
 * @u: the user; the device does not use it any more
 */
void peer_user_put(struct peer_user *u)
{
	struct peer_region *region = u->region;
	struct peer_visit v;

	user_word(u, "put");
	spin_lock(&u->lock);
	u->revoked = true;
	spin_unlock(&u->lock);
	u->region = NULL;
	peer_visit_begin(&v);
	peer_region_put(region);
	peer_visit_end(&v);
	spin_lock(&u->lock);
	u->active = false;
	spin_unlock(&u->lock);
	if (u->pin)
		peer_pin_put(u->pin);
	u->pin = NULL;
}
EXPORT_SYMBOL_GPL(peer_user_put);

/**
 * peer_user_access() - simulate an access by the device, if the device may use the memory
 * @u: the user; an access to memory that is not mapped is counted as wrong
 */
void peer_user_access(struct peer_user *u)
{
	spin_lock(&u->lock);
	if (u->active && !u->revoked && READ_ONCE(u->pin->state) != PEER_MAPPED)
		atomic_inc(&u->wrong);
	spin_unlock(&u->lock);
}
EXPORT_SYMBOL_GPL(peer_user_access);

/**
 * peer_next_round() - for KUNIT_CASE_PARAM(): run a case PEER_ROUNDS times
 * @prev: the previous round; NULL before the first
 * @desc: set to the name of the round
 *
 * Long cases are split into rounds, so that the task that waits for a case to end is not
 * reported as hung.
 *
 * Return: the round; NULL after the last.
 */
const void *peer_next_round(const void *prev, char *desc)
{
	unsigned long round = (unsigned long)prev + 1;

	if (round > PEER_ROUNDS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "round %lu", round);
	return (void *)round;
}
EXPORT_SYMBOL_GPL(peer_next_round);

/**
 * peer_set_wait() - limit the time that an invalidation waits, until the end of the case
 * @test: the running case
 * @ms: milliseconds
 */
void peer_set_wait(struct kunit *test, unsigned int ms)
{
	char text[16];

	scnprintf(text, sizeof(text), "%u", ms);
	kvt_set_file(test, WAIT_PARAM, text);
}
EXPORT_SYMBOL_GPL(peer_set_wait);

/**
 * peer_read() - read a sysfs file of a client
 * @client: the client's name
 * @file: the file's name
 * @buf: gets the text, terminated by NUL and without the last newline
 * @len: size of @buf in bytes
 *
 * Return: the length of the text, or the error of open or read.
 */
int peer_read(const char *client, const char *file, char *buf, size_t len)
{
	char path[160];

	scnprintf(path, sizeof(path), SYSFS "/%s/%s", client, file);
	return kvt_read_file(path, buf, len);
}
EXPORT_SYMBOL_GPL(peer_read);

/**
 * peer_count() - read a counter of a client from sysfs
 * @test: the running case, which fails if there is no such file
 * @client: the client's name
 * @file: the file's name
 *
 * Return: the value of the counter.
 */
u64 peer_count(struct kunit *test, const char *client, const char *file)
{
	char text[32];
	u64 count = 0;

	KUNIT_ASSERT_GT_MSG(test, peer_read(client, file, text, sizeof(text)), 0,
			    "%s/%s", client, file);
	KUNIT_ASSERT_EQ_MSG(test, 0, kstrtou64(text, 10, &count), "%s/%s", client, file);
	return count;
}
EXPORT_SYMBOL_GPL(peer_count);
