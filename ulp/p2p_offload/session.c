// SPDX-License-Identifier: GPL-2.0-only
/*
 * The participants of a session, and the memory between them. This file does what an
 * orchestrator of peer-to-peer DMA does:
 *
 *  1. It knows the clients: the RDMA device and the engine.
 *  2. It looks for a provider that both can reach, or takes a given one; that binds the
 *     list of clients to the provider.
 *  3. It allocates memory of the provider and registers it for the peer.
 *  4. It registers for the notification that the provider goes, and then releases
 *     everything.
 *
 * All of this runs under the session's lock. The removal of the provider calls
 * offload_revoke(), which takes that lock too, so a holder of the lock must not wait
 * for it: kverbs_p2pdma_user_del() is called at the end of the session, without the
 * lock.
 */
#include <linux/slab.h>

#include "offload.h"

/* --- participants ----------------------------------------------------------------- */

/* Returns the device with a reference, or NULL. */
static struct pci_dev *offload_pci_get(const char *address)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
}

static int offload_get_sides(struct offload_session *session)
{
	const struct offload_params *params = &session->params;
	struct offload_side *side = session->side;

	side[OFFLOAD_TARGET].dev = ib_device_get_by_name(params->hca, RDMA_DRIVER_UNKNOWN);
	side[OFFLOAD_PEER].dev = ib_device_get_by_name(params->peer, RDMA_DRIVER_UNKNOWN);
	return side[OFFLOAD_TARGET].dev && side[OFFLOAD_PEER].dev ? 0 : -ENODEV;
}

static void offload_put_sides(struct offload_session *session)
{
	struct offload_side *side;
	int i;

	for (i = 0; i < OFFLOAD_SIDES; i++) {
		side = &session->side[i];
		if (side->pd)
			ib_dealloc_pd(side->pd);
		if (side->dev)
			ib_device_put(side->dev);
		side->pd = NULL;
		WRITE_ONCE(side->dev, NULL);
	}
}

static int offload_get_engine(struct offload_session *session)
{
	session->engine_dev = offload_pci_get(session->params.engine);
	if (session->engine_dev)
		session->engine = edu_engine_get(session->engine_dev);
	return session->engine ? 0 : -ENODEV;
}

static int offload_add_clients(struct offload_session *session)
{
	int ret;

	ret = pci_p2pdma_add_client(&session->clients,
				    &session->side[OFFLOAD_TARGET].dev->dev);
	if (ret)
		return ret;
	return pci_p2pdma_add_client(&session->clients, &session->engine_dev->dev);
}

/* --- the provider and its memory -------------------------------------------------- */

static int offload_assign(struct offload_session *session)
{
	struct pci_dev *provider = offload_pci_get(session->params.provider);

	if (!provider)
		return -ENODEV;
	if (!pci_p2pdma_assign_provider(provider, &session->clients)) {
		pci_dev_put(provider);
		return -EXDEV;
	}
	session->provider = provider;
	return 0;
}

static int offload_find(struct offload_session *session)
{
	if (session->params.provider[0])
		return offload_assign(session);
	session->provider = pci_p2pmem_find(&session->clients);
	return session->provider ? 0 : -EXDEV;
}

static int offload_copy_list(struct sg_table *to, struct sg_table *from)
{
	struct scatterlist *sg, *copy;
	unsigned int i;

	if (sg_alloc_table(to, from->orig_nents, GFP_KERNEL))
		return -ENOMEM;
	copy = to->sgl;
	for_each_sgtable_sg(from, sg, i) {
		sg_set_page(copy, sg_page(sg), sg->length, sg->offset);
		copy = sg_next(copy);
	}
	return 0;
}

static int offload_alloc_piece(struct offload_session *session,
			       struct offload_piece *piece)
{
	struct sg_table *sgt = &piece->sgt;

	sgt->sgl = pci_p2pmem_alloc_sgl(session->provider, &sgt->orig_nents,
					session->params.bytes);
	if (!sgt->sgl)
		return -ENOMEM;
	sgt->nents = sgt->orig_nents;
	return offload_copy_list(&piece->for_engine, sgt);
}

static int offload_alloc(struct offload_session *session)
{
	int i, ret = 0;

	for (i = 0; !ret && i < OFFLOAD_PIECES; i++)
		ret = offload_alloc_piece(session, &session->piece[i]);
	return ret;
}

static void offload_free(struct offload_session *session)
{
	struct offload_piece *piece;
	int i;

	for (i = 0; i < OFFLOAD_PIECES; i++) {
		piece = &session->piece[i];
		sg_free_table(&piece->for_engine);
		if (piece->sgt.sgl)
			pci_p2pmem_free_sgl(session->provider, piece->sgt.sgl);
		piece->sgt = (struct sg_table) { };
	}
}

/* --- the peer's own memory -------------------------------------------------------- */

static int offload_alloc_buf(struct offload_session *session)
{
	struct ib_device *dev = session->side[OFFLOAD_PEER].dev;
	size_t size = 2 * session->params.bytes;

	session->buf = kmalloc(size, GFP_KERNEL);
	if (!session->buf)
		return -ENOMEM;
	session->buf_dma = ib_dma_map_single(dev, session->buf, size, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(dev, session->buf_dma))
		return 0;
	kfree(session->buf);
	session->buf = NULL;
	return -ENOMEM;
}

static void offload_free_buf(struct offload_session *session)
{
	if (!session->buf)
		return;
	ib_dma_unmap_single(session->side[OFFLOAD_PEER].dev, session->buf_dma,
			    2 * session->params.bytes, DMA_BIDIRECTIONAL);
	kfree(session->buf);
	session->buf = NULL;
}

/* --- registrations ---------------------------------------------------------------- */

/* The RDMA core recognises the kind of memory by itself. */
static int offload_map(struct offload_session *session)
{
	struct ib_device *dev = session->side[OFFLOAD_TARGET].dev;
	struct offload_piece *piece;
	int i, ret = 0;

	for (i = 0; !ret && i < OFFLOAD_PIECES; i++) {
		piece = &session->piece[i];
		ret = ib_dma_map_sgtable_attrs(dev, &piece->sgt, DMA_BIDIRECTIONAL, 0);
		piece->mapped = !ret;
		if (!ret)
			ret = offload_register(session, piece);
	}
	return ret;
}

static void offload_unmap(struct offload_session *session)
{
	struct ib_device *dev = session->side[OFFLOAD_TARGET].dev;
	struct offload_piece *piece;
	int i;

	for (i = 0; i < OFFLOAD_PIECES; i++) {
		piece = &session->piece[i];
		if (piece->mr)
			ib_dereg_mr(piece->mr);
		if (piece->mapped)
			ib_dma_unmap_sgtable_attrs(dev, &piece->sgt, DMA_BIDIRECTIONAL, 0);
		piece->mr = NULL;
		piece->mapped = false;
	}
}

/* --- all of it -------------------------------------------------------------------- */

/**
 * offload_teardown() - release everything that a session has
 * @session: the session, in any state; the caller holds its lock
 *
 * Context: may sleep. Afterwards nothing of the session is in flight or mapped.
 */
void offload_teardown(struct offload_session *session)
{
	lockdep_assert_held(&session->lock);
	session->ready = false;
	offload_disconnect(session);
	offload_unmap(session);
	offload_free_buf(session);
	offload_free(session);
	pci_p2pdma_client_list_free(&session->clients);
	pci_dev_put(session->provider);
	session->provider = NULL;
	if (session->engine)
		edu_engine_put(session->engine);
	session->engine = NULL;
	pci_dev_put(session->engine_dev);
	session->engine_dev = NULL;
	offload_put_sides(session);
}

static void offload_revoke(struct kverbs_p2pdma_user *user)
{
	struct offload_session *session = container_of(user, struct offload_session, user);

	atomic_inc(&session->stopping);
	mutex_lock(&session->lock);
	offload_teardown(session);
	atomic_dec(&session->stopping);
	mutex_unlock(&session->lock);
}

/* Called last: from then on, revoke() may be waiting for the lock. */
static int offload_watch(struct offload_session *session)
{
	int ret;

	if (session->params.keep)
		return 0;
	session->user.revoke = offload_revoke;
	ret = kverbs_p2pdma_user_add(&session->user, session->provider);
	session->user_added = !ret;
	return ret;
}

static const struct {
	const char *name;
	int (*step)(struct offload_session *session);
} offload_steps[] = {
	{ "devices", offload_get_sides },
	{ "engine", offload_get_engine },
	{ "clients", offload_add_clients },
	{ "find", offload_find },
	{ "alloc", offload_alloc },
	{ "connect", offload_connect },
	{ "map", offload_map },
	{ "buffer", offload_alloc_buf },
	{ "watch", offload_watch },
};

/**
 * offload_setup() - set up a session according to its parameters
 * @session: the session, still empty; the caller holds its lock
 * @step: set to the step that failed
 *
 * Context: may sleep.
 * Return: 0; -ENODEV: a device does not exist, is of the wrong kind, or the provider
 * goes; -EXDEV: no provider that both clients reach; -ENOMEM, also for the provider's
 * memory; or the error of an RDMA device's driver.
 */
int offload_setup(struct offload_session *session, const char **step)
{
	int i, ret = 0;

	lockdep_assert_held(&session->lock);
	for (i = 0; i < ARRAY_SIZE(offload_steps); i++) {
		*step = offload_steps[i].name;
		ret = offload_steps[i].step(session);
		if (ret) {
			offload_teardown(session);
			return ret;
		}
	}
	session->ready = true;
	return 0;
}
