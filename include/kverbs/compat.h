/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, in one place. Included ahead of every source
 * file. Compile probes (scripts/probes/) generate config.h: each difference takes one probe
 * there and one block here.
 */
#ifndef KVERBS_COMPAT_H
#define KVERBS_COMPAT_H

#include <kverbs/config.h>

/* Newer driver cores pass const pointers to the callbacks of a class. */
#ifdef HAVE_CLASS_CONST_UEVENT
#define kv_class_const const
#else
#define kv_class_const
#endif

/* On older kernels, __assign_str() takes the source as well. */
#ifdef HAVE_ASSIGN_STR_DST
#define kv_assign_str(dst, ...) __assign_str(dst)
#else
#define kv_assign_str(dst, ...) __assign_str(dst, __VA_ARGS__)
#endif

/*
 * Flags to pin pages of a private mapping for reading, so that the process keeps these pages.
 * Older kernels must be asked for write access: otherwise they pin a page that the process
 * shares with others, and its next write goes to a copy.
 */
#ifdef HAVE_GUP_UNSHARES
#define kv_foll_read 0
#else
#define kv_foll_read (FOLL_WRITE | FOLL_FORCE)
#endif

/* Flag to pin peer-to-peer memory of PCI devices. */
#ifdef HAVE_FOLL_PCI_P2PDMA
#define kv_foll_p2p FOLL_PCI_P2PDMA
#else
#define kv_foll_p2p 0
#endif

/* Makes a device coherent, on architectures where not all devices are. */
#ifdef HAVE_DMA_COHERENT
#define kv_set_dma_coherent(dev) ((void)((dev)->dma_coherent = true))
#else
#define kv_set_dma_coherent(dev) ((void)(dev))
#endif

/* The test whether a scatter list entry is marked as mapped by bus address. */
#ifdef HAVE_SG_DMA_IS_BUS_ADDRESS
#define kv_sg_is_bus_address(sg) sg_dma_is_bus_address(sg)
#else
#define kv_sg_is_bus_address(sg) sg_is_dma_bus_address(sg)
#endif

/* Older kernels have no function to set the flags of a mapping. */
#ifdef HAVE_VM_FLAGS_SET
#define kv_vm_flags_set(vma, flags) vm_flags_set(vma, flags)
#else
#define kv_vm_flags_set(vma, flags) ((vma)->vm_flags |= (flags))
#endif

/* Older kernels have a method of the mm that finds addresses for a mapping. */
#ifdef HAVE_MM_GET_UNMAPPED_AREA
#define kv_mm_get_unmapped_area(mm, ...) mm_get_unmapped_area(mm, __VA_ARGS__)
#else
#define kv_mm_get_unmapped_area(mm, ...) (mm)->get_unmapped_area(__VA_ARGS__)
#endif

/* The header that has struct io_uring_cmd, and the way to the bytes of the command. */
#ifdef HAVE_IO_URING_CMD_H
#define kv_io_uring_cmd_h "linux/io_uring/cmd.h"
#else
#define kv_io_uring_cmd_h "linux/io_uring.h"
#endif
#ifdef HAVE_IO_URING_SQE_CMD
#define kv_io_uring_data(ioucmd) io_uring_sqe_cmd((ioucmd)->sqe)
#else
#define kv_io_uring_data(ioucmd) ((ioucmd)->cmd)
#endif

/* Type of the argument by which mainline's create_cq method gets a process's data. */
#ifdef HAVE_CREATE_CQ_ATTRS
#define kv_create_cq_user uverbs_attr_bundle
#define kv_create_cq_udata(user) (&(user)->driver_udata)
#else
#define kv_create_cq_user ib_udata
#define kv_create_cq_udata(user) (user)
#endif

/* The same for mainline's reg_user_mr_dmabuf method. */
#ifdef HAVE_REG_DMABUF_ATTRS
#define kv_reg_dmabuf_user uverbs_attr_bundle
#else
#define kv_reg_dmabuf_user ib_udata
#endif

#endif /* KVERBS_COMPAT_H */
