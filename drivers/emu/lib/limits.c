// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits the number of objects of each kind on a device, as hardware does.
 */
#include "limits.h"

static const struct {
	const char *name;
	int max;
} emu_limits[EMU_NR_OBJECTS] = {
	[EMU_OBJECT_PD] = { "PDs", EMU_MAX_PD },
	[EMU_OBJECT_CQ] = { "CQs", EMU_MAX_CQ },
	[EMU_OBJECT_QP] = { "QPs", EMU_MAX_QP },
	[EMU_OBJECT_SRQ] = { "SRQs", EMU_MAX_SRQ },
	[EMU_OBJECT_AH] = { "address handles", EMU_MAX_AH },
	[EMU_OBJECT_MR] = { "memory regions", EMU_MAX_MR },
	[EMU_OBJECT_MW] = { "memory windows", EMU_MAX_MW },
	[EMU_OBJECT_MCAST_GROUP] = { "multicast groups", EMU_MAX_MCAST_GROUPS },
};

/**
 * emu_object_get() - count an object that is being made
 * @edev: the device
 * @object: its kind
 *
 * Context: Any.
 * Return: 0; -ENOMEM if the device has as many as it can.
 */
int emu_object_get(struct emu_device *edev, enum emu_object object)
{
	if (atomic_add_unless(&edev->objects[object], 1, emu_limits[object].max))
		return 0;
	ibdev_warn_ratelimited(&edev->ibdev, "cannot create more %s: limit is %d\n",
			       emu_limits[object].name, emu_limits[object].max);
	return -ENOMEM;
}

/* Undoes emu_object_get(). Any context. */
void emu_object_put(struct emu_device *edev, enum emu_object object)
{
	atomic_dec(&edev->objects[object]);
}
