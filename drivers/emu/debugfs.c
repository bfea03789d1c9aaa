// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kverbs_emu/<device>/
 *
 *   event	writing raises an event that did not happen. Consumers are told, and nothing
 *		else changes; use faults/ and configfs for real failures. Two events always
 *		get a real cause, since ib_drain_qp() relies on them: cq_err puts the CQ in
 *		error; last_wqe puts the QP, which must have an SRQ, in error. Reading shows
 *		what can be written:
 *
 *		<port event> <port>	port_err 1
 *		device_fatal
 *		<QP event> <QP number>	qp_fatal 17
 *		cq_err <number>		as in /sys/kernel/debug/kverbs/<device>/cq
 *		<SRQ event> <number>	as in /sys/kernel/debug/kverbs/<device>/srq
 *
 *		-EINVAL: no such event, too few or too many numbers after it, or
 *		last_wqe of a QP that has no SRQ or is not connected; -ENOENT: no such
 *		port or object; QP 1 cannot be named
 *   ca		reading shows who has the device open: the number of the doorbell, the
 *		handle, whether it is a user process or the kernel, the opener's tag
 *   faults/	what goes wrong, see fault.c
 *   capture	whoever has started to capture here reads messages, see engine/capture_file.c
 *
 * The directory has the name that the device had when the directory was made, and
 * is not renamed with the device.
 *
 * Objects: a queue pair is found in the device's table under RCU, which keeps its
 * memory; an event of a queue pair that is being destroyed is dropped. CQs and
 * SRQs are held by their restrack entry, which delays their destruction; under
 * older mainline cores only that of their memory, and their events are dropped.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <kverbs/completion.h>
#include <rdma/restrack.h>

#include "core.h"
#include "device.h"
#include "engine/capture.h"
#include "lib/fault.h"
#include "net/net.h"
#include "queue/doorbell.h"

/* What an event is about. */
enum emu_event_object {
	EMU_EVENT_OF_DEVICE,
	EMU_EVENT_OF_PORT,
	EMU_EVENT_OF_QP,
	EMU_EVENT_OF_CQ,
	EMU_EVENT_OF_SRQ,
};

static const struct emu_event {
	const char *name;
	enum emu_event_object object;
	enum ib_event_type type;
} emu_events[] = {
	{ "cq_err", EMU_EVENT_OF_CQ, IB_EVENT_CQ_ERR },
	{ "qp_fatal", EMU_EVENT_OF_QP, IB_EVENT_QP_FATAL },
	{ "qp_req_err", EMU_EVENT_OF_QP, IB_EVENT_QP_REQ_ERR },
	{ "qp_access_err", EMU_EVENT_OF_QP, IB_EVENT_QP_ACCESS_ERR },
	{ "comm_est", EMU_EVENT_OF_QP, IB_EVENT_COMM_EST },
	{ "sq_drained", EMU_EVENT_OF_QP, IB_EVENT_SQ_DRAINED },
	{ "path_mig", EMU_EVENT_OF_QP, IB_EVENT_PATH_MIG },
	{ "path_mig_err", EMU_EVENT_OF_QP, IB_EVENT_PATH_MIG_ERR },
	{ "last_wqe", EMU_EVENT_OF_QP, IB_EVENT_QP_LAST_WQE_REACHED },
	{ "device_fatal", EMU_EVENT_OF_DEVICE, IB_EVENT_DEVICE_FATAL },
	{ "port_active", EMU_EVENT_OF_PORT, IB_EVENT_PORT_ACTIVE },
	{ "port_err", EMU_EVENT_OF_PORT, IB_EVENT_PORT_ERR },
	{ "lid_change", EMU_EVENT_OF_PORT, IB_EVENT_LID_CHANGE },
	{ "pkey_change", EMU_EVENT_OF_PORT, IB_EVENT_PKEY_CHANGE },
	{ "gid_change", EMU_EVENT_OF_PORT, IB_EVENT_GID_CHANGE },
	{ "sm_change", EMU_EVENT_OF_PORT, IB_EVENT_SM_CHANGE },
	{ "client_reregister", EMU_EVENT_OF_PORT, IB_EVENT_CLIENT_REREGISTER },
	{ "srq_err", EMU_EVENT_OF_SRQ, IB_EVENT_SRQ_ERR },
	{ "srq_limit", EMU_EVENT_OF_SRQ, IB_EVENT_SRQ_LIMIT_REACHED },
};

static const char * const emu_event_objects[] = {
	[EMU_EVENT_OF_DEVICE] = "",
	[EMU_EVENT_OF_PORT] = " <port>",
	[EMU_EVENT_OF_QP] = " <qp>",
	[EMU_EVENT_OF_CQ] = " <cq>",
	[EMU_EVENT_OF_SRQ] = " <srq>",
};

static struct dentry *emu_debugfs_root;

static int emu_event_of_port(struct emu_device *edev, enum ib_event_type type, u32 number)
{
	if (!number || number > edev->nr_ports)
		return -ENOENT;
	emu_port_dispatch(&edev->ports[number - 1], type);
	return 0;
}

static int emu_event_of_device(struct emu_device *edev, enum ib_event_type type)
{
	struct ib_event event = { .device = &edev->ibdev, .event = type };

	ib_dispatch_event(&event);
	return 0;
}

/* Whoever drains the queue pair relies on this event, so it gets a real cause. */
static int emu_event_last_wqe(struct emu_qp *qp)
{
	if (!qp->srq || !emu_gate_enter(&qp->gate))
		return -EINVAL;
	emu_qp_fail(qp);
	emu_qp_leave(qp);
	return 0;
}

static int emu_event_of_qp(struct emu_device *edev, enum ib_event_type type, u32 number)
{
	struct emu_qp *qp;

	int err = 0;

	rcu_read_lock();
	qp = xa_load(&edev->qps, number);
	if (!qp)
		err = -ENOENT;
	else if (type == IB_EVENT_QP_LAST_WQE_REACHED)
		err = emu_event_last_wqe(qp);
	else
		ib_qp_notify_event(&qp->ibqp, type);
	rcu_read_unlock();
	return err;
}

static int emu_event_of_cq(struct emu_device *edev, enum ib_event_type type, u32 number)
{
	struct rdma_restrack_entry *res;

	res = rdma_restrack_get_byid(&edev->ibdev, RDMA_RESTRACK_CQ, number);
	if (IS_ERR(res))
		return PTR_ERR(res);
	/* Likewise; and a queue that has been in error once stays in error. */
	emu_cq_fail(to_ecq(container_of(res, struct ib_cq, res)));
	rdma_restrack_put(res);
	return 0;
}

static int emu_event_of_srq(struct emu_device *edev, enum ib_event_type type, u32 number)
{
	struct rdma_restrack_entry *res;

	res = rdma_restrack_get_byid(&edev->ibdev, RDMA_RESTRACK_SRQ, number);
	if (IS_ERR(res))
		return PTR_ERR(res);
	ib_srq_notify_event(container_of(res, struct ib_srq, res), type);
	rdma_restrack_put(res);
	return 0;
}

static int emu_event_raise(struct emu_device *edev, const struct emu_event *event, u32 number)
{
	switch (event->object) {
	case EMU_EVENT_OF_PORT:
		return emu_event_of_port(edev, event->type, number);
	case EMU_EVENT_OF_QP:
		return emu_event_of_qp(edev, event->type, number);
	case EMU_EVENT_OF_CQ:
		return emu_event_of_cq(edev, event->type, number);
	case EMU_EVENT_OF_SRQ:
		return emu_event_of_srq(edev, event->type, number);
	default:
		return emu_event_of_device(edev, event->type);
	}
}

static int emu_event_parse(struct emu_device *edev, char *text)
{
	const char *name = strsep(&text, " \t");
	unsigned int i;
	u32 number = 0;

	for (i = 0; i < ARRAY_SIZE(emu_events); i++) {
		if (!strcmp(name, emu_events[i].name))
			break;
	}
	if (i == ARRAY_SIZE(emu_events))
		return -EINVAL;
	if (emu_events[i].object == EMU_EVENT_OF_DEVICE ? !!text : !text)
		return -EINVAL;
	if (text && kstrtou32(strim(text), 0, &number))
		return -EINVAL;
	return emu_event_raise(edev, &emu_events[i], number);
}

static ssize_t emu_event_write(struct file *file, const char __user *from, size_t len,
			       loff_t *pos)
{
	char text[48];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	err = emu_event_parse(file_inode(file)->i_private, strim(text));
	return err ?: len;
}

static int emu_event_show(struct seq_file *s, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(emu_events); i++)
		seq_printf(s, "%s%s\n", emu_events[i].name,
			   emu_event_objects[emu_events[i].object]);
	return 0;
}

static int emu_event_open(struct inode *inode, struct file *file)
{
	return single_open(file, emu_event_show, inode->i_private);
}

static const struct file_operations emu_event_fops = {
	.owner = THIS_MODULE,
	.open = emu_event_open,
	.read = seq_read,
	.write = emu_event_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* The device is registered already. It also works if its files cannot be created. */
void emu_debugfs_add(struct emu_device *edev)
{
	struct dentry *dir;

	/* Not dev_name(), which a rename frees. */
	dir = debugfs_create_dir(edev->ibdev.name, emu_debugfs_root);
	if (IS_ERR(dir)) {
		if (PTR_ERR(dir) == -EEXIST)
			ibdev_warn(&edev->ibdev,
				   "no debugfs directory, as a renamed device has one of this name: no events, faults or captures\n");
		return;
	}
	edev->debugfs = dir;
	debugfs_create_file("event", 0600, dir, edev, &emu_event_fops);
	emu_core_debugfs(edev, dir);
	emu_faults_debugfs(edev, debugfs_create_dir("faults", dir));
	emu_capture_debugfs(edev, dir);
}

/*
 * Waits for those who are reading or writing the files, except for readers of captured
 * messages, who still get what is there.
 */
void emu_debugfs_remove(struct emu_device *edev)
{
	emu_capture_stop(edev);
	debugfs_remove(edev->debugfs);
}

void emu_debugfs_init(void)
{
	emu_debugfs_root = debugfs_create_dir("kverbs_emu", NULL);
}

void emu_debugfs_exit(void)
{
	debugfs_remove(emu_debugfs_root);
}
