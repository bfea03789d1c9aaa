// SPDX-License-Identifier: GPL-2.0-only
/*
 * Captures: the file capture in /sys/kernel/debug/kverbs_emu/<device>/, and the life of what is
 * behind it. <kverbs/emu_capture.h> says what a reader does.
 *
 * A capture belongs to an open file, and to the device from the start until the file is closed
 * or the device goes, whichever comes first: emu_capture_lock decides. When it ends, for either
 * reason, the device forgets it, the gate is closed, and the owners leave it. It is freed a
 * grace period after the file is closed, so an owner that has found it may look at its gate.
 * emu_capture_lock is taken by process context only, and held while owners leave, which take no
 * lock.
 *
 * Readers take another lock, and find the start and the end by two pairs of accesses:
 *
 *   A  emu_capture_start()	release of @started, pairs with the acquire in
 *				emu_capture_started(): who sees the start sees the buffer
 *   B  emu_capture_detach()	release of @ended, pairs with the acquire in
 *				emu_capture_read(): who sees the end, and then no record,
 *				has had them all
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../lib/fault.h"
#include "capture.h"

/* Bytes of the buffer, and limits of the number of records in it. */
#define EMU_CAPTURE_BYTES	SZ_8M
#define EMU_CAPTURE_MIN		64
#define EMU_CAPTURE_MAX		16384

static DEFINE_MUTEX(emu_capture_lock);

/* What a start asks for; see struct emu_capture. */
struct emu_capture_options {
	u32 snaplen;
	u32 qpn;
};

static void emu_capture_wake(struct irq_work *work)
{
	struct emu_capture *capture = container_of(work, struct emu_capture, wake);

	wake_up_interruptible(&capture->wait);
}

/* No more records are made in it. The reader still gets what is there. */
static void emu_capture_detach(struct emu_capture *capture)
{
	lockdep_assert_held(&emu_capture_lock);
	rcu_assign_pointer(capture->edev->capture, NULL);
	capture->edev = NULL;
	static_branch_dec(&emu_detour);
	emu_gate_drain(&capture->gate);
	/* release: pair B */
	smp_store_release(&capture->ended, true);
	wake_up_interruptible(&capture->wait);
}

/**
 * emu_capture_stop() - end the capture on a device, if there is one
 * @edev: the device, which is being removed
 *
 * Readers are woken, and get no more than what is there, also when the files of the device have
 * been removed.
 *
 * Context: Process.
 */
void emu_capture_stop(struct emu_device *edev)
{
	struct emu_capture *capture;

	mutex_lock(&emu_capture_lock);
	edev->no_capture = true;
	capture = rcu_dereference_protected(edev->capture, lockdep_is_held(&emu_capture_lock));
	if (capture)
		emu_capture_detach(capture);
	mutex_unlock(&emu_capture_lock);
}

static int emu_capture_attach(struct emu_capture *capture, struct emu_device *edev)
{
	lockdep_assert_held(&emu_capture_lock);
	if (edev->no_capture)
		return -ENODEV;
	if (rcu_access_pointer(edev->capture))
		return -EBUSY;
	capture->edev = edev;
	emu_gate_open(&capture->gate);
	rcu_assign_pointer(edev->capture, capture);
	static_branch_inc(&emu_detour);
	return 0;
}

static int emu_capture_start(struct emu_capture *capture, struct emu_device *edev,
			     const struct emu_capture_options *options)
{
	size_t size = sizeof(struct emu_capture_slot) + options->snaplen;
	u32 depth = clamp_t(u32, EMU_CAPTURE_BYTES / size, EMU_CAPTURE_MIN, EMU_CAPTURE_MAX);
	int err;

	lockdep_assert_held(&emu_capture_lock);
	err = emu_ring_init(&capture->ring, rounddown_pow_of_two(depth), size);
	if (err)
		return err;
	capture->snaplen = options->snaplen;
	capture->qpn = options->qpn;
	err = emu_capture_attach(capture, edev);
	if (err) {
		emu_ring_destroy(&capture->ring);
		return err;
	}
	/* release: pair A */
	smp_store_release(&capture->started, true);
	return 0;
}

/* start [snaplen=<bytes>] [qp=<number>] */
static int emu_capture_parse(struct emu_capture_options *options, char *text)
{
	const char *word = strsep(&text, " ");

	if (strcmp(word, "start"))
		return -EINVAL;
	while ((word = strsep(&text, " "))) {
		if (strstarts(word, "snaplen=")) {
			if (kstrtou32(strchr(word, '=') + 1, 0, &options->snaplen))
				return -EINVAL;
		} else if (strstarts(word, "qp=")) {
			if (kstrtou32(strchr(word, '=') + 1, 0, &options->qpn))
				return -EINVAL;
		} else {
			return -EINVAL;
		}
	}
	return options->snaplen > KVERBS_EMU_CAPTURE_MAX_DATA ? -EINVAL : 0;
}

static ssize_t emu_capture_write(struct file *file, const char __user *from, size_t len,
				 loff_t *pos)
{
	struct emu_capture_options options = { .snaplen = KVERBS_EMU_CAPTURE_DATA };
	struct emu_capture *capture = file->private_data;
	struct dentry *dentry = file->f_path.dentry;
	char text[64];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	err = emu_capture_parse(&options, strim(text));
	if (err)
		return err;
	/* The device is there until its files are removed, which waits for the put. */
	if (debugfs_file_get(dentry))
		return -ENODEV;
	mutex_lock(&emu_capture_lock);
	err = capture->started ? -EBUSY :
	      emu_capture_start(capture, file_inode(file)->i_private, &options);
	mutex_unlock(&emu_capture_lock);
	debugfs_file_put(dentry);
	return err ?: len;
}

/* --- reading ------------------------------------------------------------------- */

static bool emu_capture_started(struct emu_capture *capture)
{
	/* acquire: pair A */
	return smp_load_acquire(&capture->started);
}

/* The oldest record that is not to be skipped; NULL if there is none. */
static struct emu_capture_slot *emu_capture_front(struct emu_capture *capture, u32 *pos)
{
	struct emu_capture_slot *slot;

	lockdep_assert_held(&capture->reading);
	while ((slot = emu_ring_front(&capture->ring, pos))) {
		if (!slot->dropped)
			return slot;
		emu_ring_take(&capture->ring, *pos);
	}
	return NULL;
}

/* Returns the bytes copied, 0 if there is nothing, -EINVAL if it does not fit, or -EFAULT. */
static ssize_t emu_capture_copy_slot(struct emu_capture *capture, char __user *to, size_t room)
{
	struct emu_capture_slot *slot;
	u32 size, pos;

	slot = emu_capture_front(capture, &pos);
	if (!slot)
		return 0;
	size = slot->rec.size;
	if (size > room)
		return -EINVAL;
	if (copy_to_user(to, &slot->rec, size))
		return -EFAULT;
	WRITE_ONCE(capture->reported, max(capture->reported, slot->rec.lost));
	emu_ring_take(&capture->ring, pos);
	return size;
}

/* Reports records that were lost since the last one that was read. Returns likewise. */
static ssize_t emu_capture_copy_lost(struct emu_capture *capture, char __user *to, size_t room)
{
	struct kverbs_emu_capture_record rec = {
		.size = sizeof(rec),
		.version = KVERBS_EMU_CAPTURE_VERSION,
		.kind = KVERBS_EMU_CAPTURE_LOST,
		.lost = atomic64_read(&capture->lost),
	};

	if (rec.lost == capture->reported)
		return 0;
	if (rec.size > room)
		return -EINVAL;
	if (copy_to_user(to, &rec, sizeof(rec)))
		return -EFAULT;
	WRITE_ONCE(capture->reported, rec.lost);
	return rec.size;
}

static ssize_t emu_capture_copy(struct emu_capture *capture, char __user *to, size_t room)
{
	ssize_t copied = 0, ret;

	mutex_lock(&capture->reading);
	while ((ret = emu_capture_copy_slot(capture, to + copied, room - copied)) > 0)
		copied += ret;
	if (!ret)
		ret = emu_capture_copy_lost(capture, to + copied, room - copied);
	mutex_unlock(&capture->reading);
	if (ret > 0)
		copied += ret;
	return copied ?: ret;
}

/* Is it worth trying to read? There may be only records to skip. */
static bool emu_capture_has(struct emu_capture *capture)
{
	u32 pos;

	return emu_ring_front(&capture->ring, &pos) ||
	       atomic64_read(&capture->lost) != READ_ONCE(capture->reported);
}

static ssize_t emu_capture_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct emu_capture *capture = file->private_data;
	ssize_t ret;
	bool ended;

	if (!emu_capture_started(capture))
		return -ENODATA;
	for (;;) {
		/* acquire: pair B. Before the look: what comes before the end is not missed. */
		ended = smp_load_acquire(&capture->ended);
		ret = emu_capture_copy(capture, to, room);
		if (ret || ended)
			return ret;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(capture->wait, READ_ONCE(capture->ended) ||
					       emu_capture_has(capture));
		if (ret)
			return ret;
	}
}

static __poll_t emu_capture_poll(struct file *file, poll_table *wait)
{
	struct emu_capture *capture = file->private_data;

	poll_wait(file, &capture->wait, wait);
	if (!emu_capture_started(capture))
		return EPOLLERR;
	if (READ_ONCE(capture->ended))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	return emu_capture_has(capture) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* --- the file ------------------------------------------------------------------ */

static int emu_capture_open(struct inode *inode, struct file *file)
{
	struct emu_capture *capture = kzalloc(sizeof(*capture), GFP_KERNEL);

	if (!capture)
		return -ENOMEM;
	emu_gate_init(&capture->gate);
	init_waitqueue_head(&capture->wait);
	init_irq_work(&capture->wake, emu_capture_wake);
	mutex_init(&capture->reading);
	file->private_data = capture;
	return stream_open(inode, file);
}

/* Also called when the device has gone. */
static int emu_capture_release(struct inode *inode, struct file *file)
{
	struct emu_capture *capture = file->private_data;

	mutex_lock(&emu_capture_lock);
	if (capture->edev)
		emu_capture_detach(capture);
	mutex_unlock(&emu_capture_lock);
	/*
	 * This may miss a run in progress on another CPU, which is over after a grace period. With
	 * PREEMPT_RT, it is a thread that runs, and no RCU reader.
	 */
	irq_work_sync(&capture->wake);
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		synchronize_rcu_tasks();
	emu_ring_destroy(&capture->ring);
	mutex_destroy(&capture->reading);
	kfree_rcu(capture, rcu);
	return 0;
}

static const struct file_operations emu_capture_fops = {
	.owner = THIS_MODULE,
	.open = emu_capture_open,
	.read = emu_capture_read,
	.write = emu_capture_write,
	.poll = emu_capture_poll,
	.release = emu_capture_release,
};

/*
 * Unsafe: readers need the capture and not the device, and go on when the file has been removed.
 * A write asks for the device itself.
 */
void emu_capture_debugfs(struct emu_device *edev, struct dentry *dir)
{
	debugfs_create_file_unsafe("capture", 0600, dir, edev, &emu_capture_fops);
}
