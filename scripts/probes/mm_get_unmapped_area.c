// SPDX-License-Identifier: GPL-2.0-only
/* mm_get_unmapped_area() in place of a function of the mm_struct (6.10). */
#include <linux/sched/mm.h>

static unsigned long __used probe(struct file *file)
{
	return mm_get_unmapped_area(current->mm, file, 0, PAGE_SIZE, 0, 0);
}
