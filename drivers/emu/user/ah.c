// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address handles that a process names by number in the requests that it posts.
 *
 * A table maps the number to a copy of the address, which a lookup copies under RCU. That is freed
 * a grace period after it was removed from the table, so neither lookup nor removal waits. All
 * devices and processes share the numbers, so a lookup also checks the protection domain.
 */
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/rdma_user_rxe.h>

#include "../net/net.h"
#include "user.h"

/**
 * struct emu_user_address - the address that a number stands for
 * @pd: domain of the address handle; only compared
 * @av: the address
 * @rcu: for freeing it
 */
struct emu_user_address {
	const struct ib_pd *pd;
	struct emu_av av;
	struct rcu_head rcu;
};

static DEFINE_XARRAY_ALLOC1(emu_user_addresses);

static struct emu_user_ah *to_user_ah(struct ib_ah *ibah)
{
	return container_of(to_eah(ibah), struct emu_user_ah, ah);
}

static int emu_user_publish_address(struct emu_user_ah *ah)
{
	struct emu_user_address *address;
	int err;

	address = kmalloc(sizeof(*address), GFP_KERNEL_ACCOUNT);
	if (!address)
		return -ENOMEM;
	address->pd = ah->ah.ibah.pd;
	address->av = ah->ah.av;
	err = xa_alloc(&emu_user_addresses, &ah->num, address, xa_limit_31b, GFP_KERNEL);
	if (err)
		kfree(address);
	return err;
}

static void emu_user_retract_address(struct emu_user_ah *ah)
{
	struct emu_user_address *address = xa_erase(&emu_user_addresses, ah->num);

	kfree_rcu(address, rcu);
}

int emu_user_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct emu_user_ah *ah = to_user_ah(ibah);
	struct rxe_create_ah_resp resp = {};
	int err;

	err = emu_create_ah(ibah, init, udata);
	if (err)
		return err;
	err = emu_user_publish_address(ah);
	if (err)
		goto destroy;
	resp.ah_num = ah->num;
	err = emu_user_respond(udata, &resp, sizeof(resp));
	if (!err)
		return 0;
	emu_user_retract_address(ah);
destroy:
	emu_destroy_ah(ibah, 0);
	return err;
}

/* Destroys any handle of the device: those of the kernel have no number. */
int emu_user_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct emu_user_ah *ah = to_user_ah(ibah);

	if (ah->num)
		emu_user_retract_address(ah);
	return emu_destroy_ah(ibah, flags);
}

/* Copies the address that @num stands for in @pd. Returns false if there is none. Any context. */
bool emu_user_find_av(u32 num, const struct ib_pd *pd, struct emu_av *av)
{
	struct emu_user_address *address;
	bool found;

	rcu_read_lock();
	address = xa_load(&emu_user_addresses, num);
	found = address && address->pd == pd;
	if (found)
		*av = address->av;
	rcu_read_unlock();
	return found;
}
