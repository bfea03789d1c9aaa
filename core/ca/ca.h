/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Channel-adapter requests: what the files share.
 *
 *	device.c	the state of a device, from registration to removal
 *	image.c	the answer to queries, kept ready
 *	request.c	requests: checked, carried out at once or later
 *	handle.c	open channel adapters
 *	numbers.c	the numbers of both
 *	object.c	PDs and regions under a handle
 *	file.c	the character device
 *	event.c	events for readers of the file
 */
#ifndef KVERBS_CA_PRIV_H
#define KVERBS_CA_PRIV_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sockptr.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kverbs/ca.h>
#include <rdma/ib_verbs.h>

#include "../contract/device_priv.h"
#include "../contract/refs.h"

struct ca_image;
struct ca_mm;
struct dentry;
struct ib_mr;
struct ib_pd;
struct iov_iter;
struct net;
struct poll_table_struct;
struct seq_file;

/**
 * struct ca_numbers - numbers of handles or of objects, and what they stand for
 * @entries: by the low half of a number, which is a place here. A reserved entry
 *	is taken, but not found.
 * @next: where the search for a free place starts
 * @count: places that are taken
 * @sequence: high half of the last number, so that an old number is not taken for the one
 *	which has its place now
 *
 * Lock: see numbers.c.
 */
struct ca_numbers {
	struct xarray entries;
	u32 next;
	u32 count;
	u32 sequence;
};

/* A power of two. */
#define CA_RECENT	8

/**
 * struct ca_space - where handles are valid: a file, or the kernel
 * @handles: open CAs
 * @recent: the handles that were opened last, by their low bits: looking there first halves
 *	the cost of a kernel caller's query
 * @lock: guards opening and closing; does not nest inside any other lock of ours
 * @user: it is a file's: handles belong to a process, and limits apply
 */
struct ca_space {
	struct ca_numbers handles;
	struct ca_handle __rcu *recent[CA_RECENT];
	struct mutex lock;
	bool user;
};

/* A power of two; 4 KiB of events. */
#define CA_EVENTS_MAX	128

/**
 * struct ca_events - events that wait for the reader of a file, or to be told to all files
 * @lock: spinlock, in process context only; guards the following
 * @wait: waiting readers
 * @head: index of the next event to add, not reduced to the size of @ring
 * @tail: index of the next event to read, likewise
 * @overflow: what a reader finds behind @ring, if its member lost is not 0
 * @removed: the last event, behind @overflow; its size is 0 until the device is
 *	removed
 * @removed_read: @removed has been read
 * @ring: the events
 */
struct ca_events {
	spinlock_t lock;
	wait_queue_head_t wait;
	u32 head;
	u32 tail;
	struct kverbs_ca_event overflow;
	struct kverbs_ca_event removed;
	bool removed_read;
	struct kverbs_ca_event ring[CA_EVENTS_MAX];
};

/**
 * struct ca_device - channel-adapter requests of one device
 * @rcu: freed after a grace period, for queries of kernel callers
 * @ref: one of the device while it is registered, and one of each open file
 * @device: held by a reference on ib_device.dev; still registered while there are @uses
 * @uses: one until the removal begins, and one of each request
 * @unused: completed when @uses is 0
 * @minor: number of the node
 * @node: the node in sysfs and /dev; under ca_node_lock (file.c)
 * @node_due: the node was removed because the device has a new name; likewise
 * @debugfs: the file that tells who has it open
 * @port_notifier: refreshes the image
 * @event_handler: puts events into @queue
 * @queue: events that @events_work has yet to tell the files of
 * @events_work: tells them
 * @kernel: handles of kernel callers
 * @image: the answer to queries; read under RCU, replaced under @image_lock
 * @image_lock: serialises the making of images; driver methods run under it
 * @image_stale: the last attempt to replace @image has failed
 * @files: open files, under @files_lock
 * @files_lock: mutex, not held while driver code runs
 * @readers: for each user, how many handles are open through files that do not allow
 *	writing; under @files_lock
 * @nr_readers: how many that are in all; likewise
 * @closers: number of threads that close handles, each from ca_closing_begin()
 *	to ca_closing_end(); under @files_lock
 * @removed: the device is being removed, which closes all open handles; under
 *	@files_lock
 * @closed: completed when that is done
 * @borrowed: PDs that modules have borrowed
 */
struct ca_device {
	struct rcu_head rcu;
	struct kref ref;
	struct ib_device *device;
	refcount_t uses;
	struct completion unused;
	u32 minor;
	struct device *node;
	bool node_due;
	struct dentry *debugfs;
	struct notifier_block port_notifier;
	struct ib_event_handler event_handler;
	struct ca_events queue;
	struct work_struct events_work;
	struct ca_space kernel;
	struct ca_image __rcu *image;
	struct mutex image_lock;
	bool image_stale;
	struct list_head files;
	struct mutex files_lock;
	struct xarray readers;
	unsigned long nr_readers;
	unsigned int closers;
	bool removed;
	struct completion closed;
	struct ib_ref_log borrowed;
};

/**
 * struct ca_file - an open file of /dev/infiniband/ca
 * @ref: one of the open file, and one of each handle
 * @ca: held
 * @space: its handles
 * @net: network namespace of the process that opened it, held
 * @events: for read(2)
 * @node: in ca_device.files
 * @closing: handles of processes that have ended, not closed yet
 */
struct ca_file {
	struct kref ref;
	struct ca_device *ca;
	struct ca_space space;
	struct net *net;
	struct ca_events events;
	struct list_head node;
	atomic_t closing;
};

/**
 * struct ca_handle - an open CA
 * @id: the handle
 * @ca: the driver's part
 * @reader: the user in &ca_device.readers that it counts for, and 1; 0 if for none
 * @rcu: freed after a grace period
 * @users: one until it is closed, and one of each request that uses it
 * @unused: completed when @users is 0
 * @space: where it is valid
 * @lock: guards what follows; no driver method runs under it
 * @objects: PDs and regions; places of those being made or freed are reserved
 * @pds: PDs among them
 * @mrs: regions among them
 * @bytes: bytes in those regions
 * @peer: as set by SET_PEER
 * @closed: it is being closed; no new objects are made
 * @owner: module of a kernel caller, or the process's name
 * @site: where it opened the handle; 0 for a process
 * @mm: memory of the owning process, only compared, because it may be freed during a
 *	lookup; NULL: any process that has the file may use the handle
 * @of: the same, held; NULL likewise
 * @of_mm: link in ca_mm.handles, until the memory goes
 * @close: work that closes it then
 * @pid: of the process that opened it, held
 */
struct ca_handle {
	u64 id;
	struct ib_ca *ca;
	unsigned long reader;
	struct rcu_head rcu;
	refcount_t users;
	struct completion unused;
	struct ca_space *space;
	struct mutex lock;
	struct ca_numbers objects;
	u32 pds;
	u32 mrs;
	u64 bytes;
	struct kverbs_ca_peer peer;
	bool closed;
	char owner[64];
	unsigned long site;
	struct mm_struct *mm;
	struct ca_mm *of;
	struct list_head of_mm;
	struct work_struct close;
	struct pid *pid;
};

/**
 * struct ca_call - a request that is being carried out
 * @ca: the device's channel adapter; the caller holds a use of the device
 * @space: where the handle must be valid
 * @net: namespace whose GIDs may be seen; NULL: all
 * @writable: may make and free objects
 * @may_sleep: process context
 * @owner: module of a kernel caller, or NULL
 * @site: where it made the request; 0 for a process
 * @op: as in &struct kverbs_ca_request; so are the following
 * @version: as above
 * @flags: as above
 * @port: as above
 * @handle: as above, also result
 * @object: as above, also result
 * @in: kernel's or user's memory; the kernel's after ca_call_begin()
 * @out: kernel's or user's memory
 * @in_len: bytes
 * @out_len: bytes
 * @of: for OPEN by a process: its memory, held, for the handle
 * @fetched: a copy of user memory, to which @in points
 * @image: the image that holds the answer
 * @list: the answer
 * @mr: the answer, if its size is not 0
 *
 * An answer is copied out only when nothing is held any more: a process may make the kernel
 * wait for its memory for as long as it likes.
 */
struct ca_call {
	struct ca_device *ca;
	struct ca_space *space;
	struct net *net;
	bool writable;
	bool may_sleep;
	const char *owner;
	unsigned long site;
	u32 op;
	u32 version;
	u32 flags;
	u32 port;
	u64 handle;
	u64 object;
	sockptr_t in;
	sockptr_t out;
	u32 in_len;
	u32 out_len;
	struct ca_mm *of;
	void *fetched;
	struct ca_image *image;
	struct kverbs_ca_list *list;
	struct kverbs_ca_mr_attr mr;
};

/* device.c */
struct ca_device *ca_use_begin(struct ib_device *dev);
void ca_use_end(struct ca_device *ca);
void ca_device_put(struct ca_device *ca);
bool ca_closing_begin(struct ca_device *ca);
void ca_closing_end(struct ca_device *ca);

/* image.c */
int ca_image_create(struct ca_device *ca);
void ca_image_free(struct ca_device *ca);
int ca_image_refresh(struct ca_device *ca);
u64 ca_image_generation(struct ca_device *ca);
struct ca_image *ca_image_get(struct ca_device *ca);
void ca_image_put(struct ca_image *image);
ssize_t ca_image_copy(const struct ca_image *image, const struct net *net,
		      const u32 *port, sockptr_t out, u32 out_len);
ssize_t ca_image_query(struct ca_device *ca, u64 handle, const u32 *port,
		       void *out, u32 out_len);

/* request.c */
int ca_request_init(void);
void ca_request_exit(void);
bool ca_call_is_quick(const struct ca_call *call);
int ca_call_begin(struct ca_call *call);
int ca_call_run(struct ca_call *call);
ssize_t ca_call_end(struct ca_call *call, int ret);

/* numbers.c */
void ca_numbers_init(struct ca_numbers *n);
int ca_number_reserve(struct ca_numbers *n, u64 *id);
void ca_number_release(struct ca_numbers *n, u64 id);
void ca_number_publish(struct ca_numbers *n, u64 id, void *entry);
void ca_number_withdraw(struct ca_numbers *n, u64 id);

/* handle.c */
void ca_space_init(struct ca_space *space, bool user);
void ca_space_close(struct ca_space *space);
int ca_mm_get(struct ca_call *call);
void ca_mm_put(struct ca_mm *m);
int ca_handle_init(void);
void ca_handle_exit(void);
void ca_handle_flush(struct ca_file *f);
int ca_handle_check(struct ca_space *space, u64 handle);
struct ca_handle *ca_handle_get(struct ca_space *space, u64 handle);
struct ca_handle *ca_handle_find(struct ca_space *space, u64 handle);
void ca_handle_put(struct ca_handle *h);
int ca_open(struct ca_call *call);
int ca_close(struct ca_call *call);
void ca_space_show(struct ca_space *space, struct seq_file *s);
extern struct ib_ref_source ca_open_source;

/* object.c */
int ca_alloc_pd(struct ca_call *call, struct ca_handle *h);
int ca_dealloc_pd(struct ca_call *call, struct ca_handle *h);
int ca_reg_mr(struct ca_call *call, struct ca_handle *h);
int ca_dereg_mr(struct ca_call *call, struct ca_handle *h);
int ca_query_mr(struct ca_call *call, struct ca_handle *h);
int ca_list(struct ca_call *call, struct ca_handle *h);
int ca_set_peer(struct ca_call *call, struct ca_handle *h);
struct ib_ca_pd *ca_borrow_pd(struct ca_device *ca, struct ca_handle *h, u64 id,
			      unsigned long site);
void ca_objects_release(struct ca_handle *h);
extern struct ib_ref_source ca_pd_source;

/* file.c */
int ca_file_init(void);
int ca_file_begin(void);
void ca_file_end(void);
void ca_file_exit(void);
void ca_file_put(struct ca_file *f);
int ca_node_add(struct ca_device *ca);
void ca_nodes_renamed(void);
void ca_node_remove(struct ca_device *ca);

/* event.c */
void ca_events_init(struct ca_events *events);
void ca_events_start(struct ca_device *ca);
void ca_events_queue(struct ca_device *ca, u32 type, u32 port);
void ca_events_end(struct ca_device *ca);
void ca_events_show(struct ca_events *events, struct seq_file *s);
ssize_t ca_events_read(struct ca_events *events, struct iov_iter *to,
		       bool nonblock);
__poll_t ca_events_poll(struct ca_events *events, struct file *file,
			struct poll_table_struct *wait);

/* The ca_device of a registered device, or NULL. Under RCU. Any context. */
static inline struct ca_device *ca_of(const struct ib_device *dev)
{
	return rcu_dereference(ib_priv(dev)->ca);
}

/* Takes a use of a ca_device that cannot be freed meanwhile, unless it is being removed. */
static inline bool ca_use_try(struct ca_device *ca)
{
	return refcount_inc_not_zero(&ca->uses);
}

/* The entry at the place of @id, which may have another number. */
static inline void *ca_number_lookup(struct ca_numbers *n, u64 id)
{
	return xa_load(&n->entries, lower_32_bits(id));
}

static inline struct ca_handle __rcu **ca_recent(struct ca_space *space, u64 id)
{
	return &space->recent[id % CA_RECENT];
}

/* Whether @id is an open handle of a kernel caller. Under RCU. */
static inline bool ca_handle_is_open(struct ca_space *space, u64 id)
{
	struct ca_handle *h = rcu_dereference(*ca_recent(space, id));

	return likely(h && h->id == id) || ca_handle_find(space, id);
}

#endif /* KVERBS_CA_PRIV_H */
