// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the software HCA has for kverbs' own core only: FMRs, channel adapters that are
 * opened, and regions of memory that the core gets, moves and takes away.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/seq_file.h>

#include "ca.h"
#include "core.h"
#include "device.h"
#include "lib/limits.h"
#include "memory/fmr.h"

static const struct ib_device_ops emu_core_ops = {
	.alloc_fmr = emu_alloc_fmr,
	.close_ca = emu_close_ca,
	.create_cq = emu_device_create_cq,
	.dealloc_fmr = emu_dealloc_fmr,
	.map_phys_fmr = emu_map_phys_fmr,
	.open_ca = emu_open_ca,
	.open_mr = emu_open_mr,
	.pause_mr = emu_pause_mr,
	.reg_umem_mr = emu_reg_umem_mr,
	.resume_mr = emu_resume_mr,
	.revoke_mr = emu_revoke_mr,
	.unmap_fmr = emu_unmap_fmr,

	INIT_RDMA_OBJ_SIZE(ib_ca, emu_ca, ibca),
};

int emu_core_start(void)
{
	return 0;
}

void emu_core_stop(void)
{
}

void emu_core_release(struct emu_device *edev)
{
}

void emu_core_setup(struct ib_device *ibdev)
{
	ib_set_device_ops(ibdev, &emu_core_ops);
}

int emu_core_init(void)
{
	return 0;
}

void emu_core_exit(void)
{
}

void emu_core_query_device(const struct emu_device *edev, struct ib_device_attr *attr)
{
	attr->max_fmr = EMU_MAX_MR;
	attr->max_map_per_fmr = EMU_MAX_FMR_MAPS;
}

int emu_core_register(struct emu_device *edev, const char *name)
{
	return ib_register_device(&edev->ibdev, name, &edev->pdev->dev);
}

void emu_core_unregister(struct emu_device *edev)
{
	ib_unregister_device(&edev->ibdev);
}

bool emu_core_can_rebind(struct emu_device *edev)
{
	return true;
}

static int emu_opens_show(struct seq_file *s, void *unused)
{
	emu_ca_show(s->private, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(emu_opens);

void emu_core_debugfs(struct emu_device *edev, struct dentry *dir)
{
	debugfs_create_file("ca", 0400, dir, edev, &emu_opens_fops);
}

/* With kverbs on, modprobe's configuration has another meaning of kverbs_emu: "kverbs switch". */
MODULE_ALIAS("kverbs_hca_own");
