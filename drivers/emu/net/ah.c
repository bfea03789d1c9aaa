// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address handles. All of this runs in any context and takes no lock: a work
 * request copies the address when it is posted.
 */
#include <rdma/ib_cache.h>

#include "../lib/fault.h"
#include "../lib/limits.h"
#include "net.h"

/* A service level has four bits. */
#define EMU_MAX_SL	15

/**
 * emu_av_init() - set up an address vector
 * @av: the vector; left as it is on failure
 * @edev: device
 * @attr: the address, with the source GID looked up if it has a global route
 *
 * Of a flow label, the 20 bits that a packet has are used, as by hardware: UCX sets all 32 to say
 * that it has none.
 *
 * Context: Any.
 * Return: 0, or -EINVAL if there is no such port, if the port's link layer
 * cannot have such an address, or if the service level has more bits than a packet.
 */
int emu_av_init(struct emu_av *av, struct emu_device *edev, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	bool has_grh = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;
	u32 port = rdma_ah_get_port_num(attr);

	if (!port || port > edev->nr_ports)
		return -EINVAL;
	if (edev->ethernet ? !has_grh : !rdma_ah_get_dlid(attr))
		return -EINVAL;
	if (has_grh && !grh->sgid_attr)
		return -EINVAL;
	if (rdma_ah_get_sl(attr) > EMU_MAX_SL)
		return -EINVAL;

	*av = (struct emu_av) {
		.port = &edev->ports[port - 1],
		.dlid = edev->ethernet ? 0 : rdma_ah_get_dlid(attr),
		.sl = rdma_ah_get_sl(attr),
		.grh = has_grh,
	};
	if (has_grh) {
		av->gid_type = grh->sgid_attr->gid_type;
		av->hop_limit = grh->hop_limit;
		av->flow = grh->traffic_class << 20 | (grh->flow_label & IB_GRH_FLOWLABEL_MASK);
		av->sgid = grh->sgid_attr->gid;
		av->dgid = grh->dgid;
	}
	/* Fails if the network device is just being removed; then the GID reaches nobody. */
	av->vlan_id = EMU_NO_VLAN;
	if (edev->ethernet)
		rdma_read_gid_l2_fields(grh->sgid_attr, &av->vlan_id, av->smac);
	return 0;
}

int emu_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct emu_ah *ah = to_eah(ibah);
	int err;

	err = emu_av_init(&ah->av, to_edev(ibah->device), attr);
	if (err)
		return err;
	ah->attr = *attr;
	/* The caller owns the reference to it. */
	ah->attr.grh.sgid_attr = NULL;
	return 0;
}

int emu_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibah->device);
	int err;

	if (emu_fault_alloc(edev))
		return -ENOMEM;
	err = emu_object_get(edev, EMU_OBJECT_AH);
	if (err)
		return err;
	err = emu_modify_ah(ibah, init->ah_attr);
	if (err)
		emu_object_put(edev, EMU_OBJECT_AH);
	return err;
}

int emu_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_eah(ibah)->attr;
	return 0;
}

int emu_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	emu_object_put(to_edev(ibah->device), EMU_OBJECT_AH);
	return 0;
}
