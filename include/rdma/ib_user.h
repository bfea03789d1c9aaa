/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What user-space verbs need from the core and from drivers: the context of a process that has
 * opened a device, the data that drivers and their libraries exchange, and memory that both
 * share. Include <rdma/ib_verbs.h>, which includes this.
 *
 * kverbs itself does not implement user-space verbs; the kernel's own ib_uverbs, which
 * scripts/ulps builds, does.
 */
#ifndef _RDMA_IB_USER_H
#define _RDMA_IB_USER_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>
#include <rdma/restrack.h>

struct ib_device;
struct ib_uverbs_file;
struct rdma_cgroup;
struct uverbs_api_object;

/* Why a process's object is destroyed. */
enum rdma_remove_reason {
	RDMA_REMOVE_DESTROY,		/* the process asks for it; may fail */
	RDMA_REMOVE_CLOSE,		/* the process closes the device */
	RDMA_REMOVE_DRIVER_REMOVE,	/* the device is being unregistered */
	RDMA_REMOVE_ABORT,		/* the process never got it */
	RDMA_REMOVE_DRIVER_FAILURE,	/* the driver has refused before */
};

/**
 * struct ib_rdmacg_object - what an object is charged to
 * @cg: the control group, or NULL
 */
struct ib_rdmacg_object {
	struct rdma_cgroup	*cg;
};

/**
 * struct ib_ucontext - a process that has opened a device
 * @device: the device
 * @ufile: its open file; private to ib_uverbs
 * @cg_obj: what it is charged to; private to ib_uverbs
 * @res: private to the core
 * @mmap_xa: memory that the process may map, by page offset; see rdma_user_mmap_entry_insert()
 * @mmap_next: page offset behind the entry that was inserted last
 */
struct ib_ucontext {
	struct ib_device		*device;
	struct ib_uverbs_file		*ufile;
	struct ib_rdmacg_object		cg_obj;
	struct rdma_restrack_entry	res;
	struct xarray			mmap_xa;
	u64				mmap_next;
};

/**
 * struct ib_uobject - user-space handle of an object
 * @user_handle: the process's own number for it
 * @ufile: the file through which it was created
 * @context: the context in which it was created
 * @object: the object of the verbs
 * @list: link among those of the file
 * @cg_obj: what it is charged to
 * @id: its number in the file
 * @ref: references
 * @usecnt: calls that use it; -1: a call that needs it exclusively
 * @rcu: for freeing it
 * @uapi_object: its type
 *
 * Private to ib_uverbs; drivers test whether an object has one.
 */
struct ib_uobject {
	u64				user_handle;
	struct ib_uverbs_file		*ufile;
	struct ib_ucontext		*context;
	void				*object;
	struct list_head		list;
	struct ib_rdmacg_object		cg_obj;
	int				id;
	struct kref			ref;
	atomic_t			usecnt;
	struct rcu_head			rcu;
	const struct uverbs_api_object	*uapi_object;
};

/**
 * struct ib_udata - data that a driver and its user-space library exchange
 * @inbuf: data from the library
 * @outbuf: buffer for data to the library
 * @inlen: bytes at @inbuf
 * @outlen: bytes at @outbuf
 */
struct ib_udata {
	const void __user	*inbuf;
	void __user		*outbuf;
	size_t			inlen;
	size_t			outlen;
};

/* From a driver's udata to the pointer to its context, in &struct uverbs_attr_bundle. */
#define IB_UDATA_TO_CONTEXT	(2 * sizeof(struct ib_udata) + sizeof(struct ib_uverbs_file *))

/* Context: the process that made the request. Both return 0 or -EFAULT. */
static inline int ib_copy_from_udata(void *dest, struct ib_udata *udata, size_t len)
{
	return copy_from_user(dest, udata->inbuf, len) ? -EFAULT : 0;
}

static inline int ib_copy_to_udata(struct ib_udata *udata, void *src, size_t len)
{
	return copy_to_user(udata->outbuf, src, len) ? -EFAULT : 0;
}

/**
 * ib_is_buffer_cleared() - test whether memory of a process is zero
 * @p: its address
 * @len: bytes
 *
 * Context: That process; may sleep.
 * Return: true if it is; false also if it cannot be read, or is 64 KiB or more.
 */
static inline bool ib_is_buffer_cleared(const void __user *p, size_t len)
{
	char part[64];
	size_t now;

	if (len > U16_MAX)
		return false;
	for (; len; p += now, len -= now) {
		now = min(len, sizeof(part));
		if (copy_from_user(part, p, now) || memchr_inv(part, 0, now))
			return false;
	}
	return true;
}

static inline bool ib_is_udata_cleared(struct ib_udata *udata, size_t offset, size_t len)
{
	return ib_is_buffer_cleared(udata->inbuf + offset, len);
}

/**
 * struct rdma_user_mmap_entry - memory that a process may map
 * @ref: one reference is the driver's, until it removes the entry; mappings may have others
 * @ucontext: context of the process
 * @start_pgoff: offset, in pages, that the process passes to mmap(2)
 * @npages: size, in pages
 * @driver_removed: the driver has removed it
 *
 * Part of a driver's structure, which the driver's mmap_free method frees when the last reference
 * is put.
 */
struct rdma_user_mmap_entry {
	struct kref		ref;
	struct ib_ucontext	*ucontext;
	unsigned long		start_pgoff;
	size_t			npages;
	bool			driver_removed;
};

/* The offset in bytes that the process passes to mmap(2). */
static inline u64 rdma_user_mmap_get_offset(const struct rdma_user_mmap_entry *entry)
{
	return (u64)entry->start_pgoff << PAGE_SHIFT;
}

int rdma_user_mmap_entry_insert_range(struct ib_ucontext *ucontext,
				      struct rdma_user_mmap_entry *entry, size_t length,
				      u32 min_pgoff, u32 max_pgoff);
int rdma_user_mmap_entry_insert(struct ib_ucontext *ucontext, struct rdma_user_mmap_entry *entry,
				size_t length);
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get_pgoff(struct ib_ucontext *ucontext,
							    unsigned long pgoff);
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get(struct ib_ucontext *ucontext,
						      struct vm_area_struct *vma);
void rdma_user_mmap_entry_put(struct rdma_user_mmap_entry *entry);
void rdma_user_mmap_entry_remove(struct rdma_user_mmap_entry *entry);

#endif /* _RDMA_IB_USER_H */
