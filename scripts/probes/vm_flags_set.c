// SPDX-License-Identifier: GPL-2.0-only
/* vma->vm_flags is set through functions (6.3). */
#include <linux/mm.h>

static void __used probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
