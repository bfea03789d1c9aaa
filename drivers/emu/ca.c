// SPDX-License-Identifier: GPL-2.0-only
/*
 * The opens of a channel adapter.
 *
 * Each open gets a doorbell of its own, just as hardware maps a page of
 * doorbells for each process; here, nothing is rung with them. The device's
 * table holds the opens by doorbell number, from 1 on. The table's own lock
 * guards them: emu_ca_show() holds it, and emu_close_ca(), after which the
 * midlayer frees the memory, takes it too.
 */
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "ca.h"
#include "lib/fault.h"

/* Number of doorbells of a device: as many pages as fit into 4 MiB of a BAR. */
#define EMU_MAX_DOORBELLS	1024

/*
 * The first doorbells are reserved for the kernel, because processes may open
 * the device as often as they like.
 */
#define EMU_KERNEL_DOORBELLS	64

static struct emu_ca *to_eca(struct ib_ca *ibca)
{
	return container_of(ibca, struct emu_ca, ibca);
}

static int emu_ca_set_tag(struct emu_ca *ca, const void *vendor, size_t len)
{
	const struct kverbs_emu_open *open = vendor;

	if (!open)
		return 0;
	if (len < sizeof(*open) || open->version != KVERBS_EMU_VERSION || open->size != len)
		return -EINVAL;
	if (memchr_inv(open + 1, 0, len - sizeof(*open)))
		return -E2BIG;
	if (!memchr(open->tag, 0, sizeof(open->tag)))
		return -EINVAL;
	strscpy(ca->tag, open->tag, sizeof(ca->tag));
	return 0;
}

/* Also returns -ENOMEM if no doorbell is left. */
int emu_open_ca(struct ib_ca *ibca, const void *vendor, size_t len)
{
	struct emu_device *edev = to_edev(ibca->device);
	struct emu_ca *ca = to_eca(ibca);
	int err;

	err = emu_ca_set_tag(ca, vendor, len);
	if (err)
		return err;
	if (emu_fault_alloc(edev))
		return -ENOMEM;
	err = xa_alloc(&edev->cas, &ca->doorbell, ca,
		       XA_LIMIT(ibca->user ? EMU_KERNEL_DOORBELLS + 1 : 1, EMU_MAX_DOORBELLS),
		       GFP_KERNEL);
	return err ? -ENOMEM : 0;
}

void emu_close_ca(struct ib_ca *ibca)
{
	xa_erase(&to_edev(ibca->device)->cas, to_eca(ibca)->doorbell);
}

/* Bytes of a tag that are not text are shown as \ooo. */
void emu_ca_show(struct emu_device *edev, struct seq_file *s)
{
	unsigned long number;
	struct emu_ca *ca;

	xa_lock(&edev->cas);
	xa_for_each(&edev->cas, number, ca)
		seq_printf(s, "doorbell=%lu handle=%#llx %s tag=%*pE\n", number, ca->ibca.handle,
			   ca->ibca.user ? "user" : "kernel", (int)strlen(ca->tag), ca->tag);
	xa_unlock(&edev->cas);
}
