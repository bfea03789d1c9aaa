/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory regions, memory windows and fast memory regions (FMRs). Include
 * <rdma/ib_verbs.h>, which includes this.
 */
#ifndef _RDMA_IB_MR_H
#define _RDMA_IB_MR_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <rdma/ib_types.h>
#include <rdma/restrack.h>
#include <rdma/signature.h>

struct ib_device;
struct ib_dm;
struct ib_pd;
struct ib_umem;
struct ib_uobject;

/* Memory regions */

enum ib_mr_type {
	IB_MR_TYPE_MEM_REG,	/* pages: a scatter list without gaps */
	IB_MR_TYPE_SG_GAPS,	/* any scatter list */
	IB_MR_TYPE_DM,		/* device memory */
	IB_MR_TYPE_USER,	/* memory of a process, pinned */
	IB_MR_TYPE_DMA,		/* all of memory, by DMA address */
	IB_MR_TYPE_INTEGRITY,	/* data and its protection information */
};

enum ib_mr_status_check {
	IB_MR_CHECK_SIG_STATUS	= 1,
};

/**
 * struct ib_mr_status - result of ib_check_mr_status()
 * @fail_status: &enum ib_mr_status_check of the checks that failed
 * @sig_err: details when %IB_MR_CHECK_SIG_STATUS failed
 */
struct ib_mr_status {
	u32			fail_status;
	struct ib_sig_err	sig_err;
};

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE		= BIT(0),
	IB_ACCESS_REMOTE_WRITE		= BIT(1),
	IB_ACCESS_REMOTE_READ		= BIT(2),
	IB_ACCESS_REMOTE_ATOMIC		= BIT(3),
	IB_ACCESS_MW_BIND		= BIT(4),
	IB_ZERO_BASED			= BIT(5),
	IB_ACCESS_ON_DEMAND		= BIT(6),
	IB_ACCESS_HUGETLB		= BIT(7),
	IB_ACCESS_FLUSH_GLOBAL		= BIT(8),
	IB_ACCESS_FLUSH_PERSISTENT	= BIT(9),

	/* Hints: a device may ignore those that it does not know. */
	IB_ACCESS_RELAXED_ORDERING	= BIT(20),
	IB_ACCESS_OPTIONAL		= GENMASK(29, 20),

	IB_ACCESS_SUPPORTED		= GENMASK(9, 0) | IB_ACCESS_OPTIONAL,
};

enum ib_mr_rereg_flags {
	IB_MR_REREG_TRANS		= BIT(0),
	IB_MR_REREG_PD			= BIT(1),
	IB_MR_REREG_ACCESS		= BIT(2),
	IB_MR_REREG_SUPPORTED		= GENMASK(2, 0)
};

/* Where the memory of a region is, or where ib_reg_mem() is to look for it. */
enum ib_mem_path {
	IB_MEM_ANY,		/* try the dma-buf if there is one, host, P2P, peers */
	IB_MEM_HOST,		/* a process's memory, in pages of the system */
	IB_MEM_PEER,		/* another device's memory, by its driver: peer_mem.h */
	IB_MEM_DMABUF,		/* memory of a dma-buf */
	IB_MEM_P2P,		/* a PCI device's peer-to-peer memory: p2pdma.h */
	IB_MEM_PATHS
};

/**
 * struct ib_mem - memory to make a region of, see ib_reg_mem()
 * @path: where to look for it
 * @start: address of the first byte in the calling process; not used with
 *	%IB_MEM_DMABUF
 * @length: bytes
 * @has_fd: @fd and @fd_offset are set
 * @fd: file descriptor of a dma-buf, in the calling process
 * @fd_offset: offset of the first byte in the dma-buf
 * @peer_name: name of the only peer-memory client to ask; NULL: ask all
 * @peer_data: IB_PEER_MEMORY_DATA_MAX bytes for that client, or NULL
 * @for_process: the calling process asks for it, not a ULP: a refusal is logged as a process's
 * @found: filled in: where the memory was found
 * @error: filled in, by path: the errno of each path that was tried and failed, else
 *	0. %IB_MEM_PEER has -ENODEV if no client has the memory. %IB_MEM_HOST has
 *	-EREMOTEIO if some of it is peer-to-peer memory; only then does %IB_MEM_ANY try
 *	%IB_MEM_P2P.
 */
struct ib_mem {
	enum ib_mem_path path;
	u64 start;
	u64 length;
	bool has_fd;
	int fd;
	u64 fd_offset;
	const char *peer_name;
	const void *peer_data;
	bool for_process;
	enum ib_mem_path found;
	int error[IB_MEM_PATHS];
};

/**
 * struct ib_mr - memory region
 * @device: device of the region
 * @pd: its PD
 * @lkey: key for local access
 * @rkey: key for remote access
 * @iova: address by which remote peers and SGEs refer to its first byte
 * @length: bytes
 * @page_size: bytes in a page of its page list
 * @type: kind of region
 * @need_inval: for the consumer's use: its key must be invalidated before the next
 *	registration
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @qp_entry: link in a QP's pool
 * @sig_attrs: what to do with protection information, for %IB_MR_TYPE_INTEGRITY
 * @dm: memory of the device that a process has registered; else NULL
 * @res: private to the core
 * @umem: memory of the region, if the core obtained it; else NULL
 */
struct ib_mr {
	struct ib_device	*device;
	struct ib_pd		*pd;
	u32			lkey;
	u32			rkey;
	u64			iova;
	u64			length;
	unsigned int		page_size;
	enum ib_mr_type		type;
	bool			need_inval;
	union {
		struct ib_uobject	*uobject;
		struct list_head	qp_entry;
	};
	struct ib_sig_attrs	*sig_attrs;
	struct ib_dm		*dm;

	/* Private to the core. */
	struct rdma_restrack_entry res;
	struct ib_umem		*umem;
};

/* Memory windows, IBTA vol. 1, 10.6.7 */

enum ib_mw_type {
	IB_MW_TYPE_1	= 1,	/* bound by ib_bind_mw(), usable through all QPs of the PD */
	IB_MW_TYPE_2	= 2	/* bound by %IB_WR_BIND_MW, to one QP */
};

/**
 * struct ib_mw - memory window
 * @device: device of the window
 * @pd: its PD
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @rkey: key for remote access. For type 1 the current key, set by ib_bind_mw();
 *	for type 2 the first key, whose low byte the consumer may choose
 * @type: kind of window
 * @res: private to the core
 * @rcu: the core frees the window a grace period after the driver's dealloc_mw,
 *	so that a driver can look windows up under RCU
 */
struct ib_mw {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct ib_uobject	*uobject;
	u32			rkey;
	enum ib_mw_type		type;

	/* Private to the core. */
	struct rdma_restrack_entry res;
	struct rcu_head		rcu;
};

/**
 * struct ib_mw_bind_info - what a window is bound to
 * @mr: the region, made with %IB_ACCESS_MW_BIND; may be NULL if @length is 0
 * @addr: address of the first byte, in terms of the region's addresses
 * @length: bytes; 0 to unbind a window of type 1
 * @mw_access_flags: &enum ib_access_flags that peers are granted: remote ones, and
 *	%IB_ZERO_BASED for type 2
 */
struct ib_mw_bind_info {
	struct ib_mr	*mr;
	u64		addr;
	u64		length;
	int		mw_access_flags;
};

/**
 * struct ib_mw_bind - a request to ib_bind_mw()
 * @wr_id: returned in the completion
 * @wr_cqe: same, for CQs of ib_alloc_cq()
 * @send_flags: &enum ib_send_flags
 * @bind_info: what to bind to
 */
struct ib_mw_bind {
	union {
		u64			wr_id;
		struct ib_cqe		*wr_cqe;
	};
	int			send_flags;
	struct ib_mw_bind_info	bind_info;
};

/* Fast memory regions; Linux had them until 5.7 */

/**
 * struct ib_fmr_attr - how to make an FMR
 * @max_pages: number of pages it can hold
 * @max_maps: number of times it can be mapped before it must be unmapped
 * @page_shift: log2 of the bytes in a page
 */
struct ib_fmr_attr {
	int	max_pages;
	int	max_maps;
	u8	page_shift;
};

/**
 * struct ib_fmr - region that ib_map_phys_fmr() maps without a work request
 * @device: device of the region
 * @pd: its PD
 * @list: link in the consumer's list for ib_unmap_fmr()
 * @lkey: key for local access, changed by each ib_map_phys_fmr()
 * @rkey: same for remote access
 * @res: private to the core
 */
struct ib_fmr {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct list_head	list;
	u32			lkey;
	u32			rkey;

	/* Private to the core. */
	struct rdma_restrack_entry res;
};

#endif /* _RDMA_IB_MR_H */
