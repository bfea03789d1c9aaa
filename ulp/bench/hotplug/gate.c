// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second client, which waits in one of its callbacks until it is told to go on. In
 * the meantime, devices and clients can be removed.
 *
 * <debugfs>/kverbs_hotplug/gate takes these words:
 *
 *  add      register the client; its add() waits, and the writer with it
 *  remove   register it; its remove() will wait
 *  event    register it; the work item that its event handler queues will wait
 *  go       let the waiting callback continue
 *  off      unregister it
 *
 * A read returns "waiting in <word>", or "open" when no callback waits. A callback
 * that was let go uses the device before it returns, because a device must stay
 * usable until the last remove() is done. The words add, remove and event take the
 * name of the device on which they act: "add emu0". For a device of provider.c,
 * "unplug" can follow, as in "event hotplug0 unplug": then the callback itself
 * queues the unregistration of the device before it waits.
 *
 * Locks: gate_mutex orders the registration and unregistration of the client, and is
 * held while they run; "go" does not take it. gate_word is set before the client is
 * registered.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "hotplug.h"

enum gate_word {
	GATE_OFF,
	GATE_ADD,
	GATE_REMOVE,
	GATE_EVENT,
	GATE_WORDS,
};

static const char * const gate_words[GATE_WORDS] = { "off", "add", "remove", "event" };

/**
 * struct gate - the client on the device that the user named
 * @dev: the device
 * @handler: handler of the device's events
 * @work: queued by @handler
 */
struct gate {
	struct ib_device *dev;
	struct ib_event_handler handler;
	struct work_struct work;
};

static DEFINE_MUTEX(gate_mutex);
static enum gate_word gate_word;
static char gate_name[IB_DEVICE_NAME_MAX];
static bool gate_unplugs;
static enum gate_word gate_waits;
static struct completion gate_go;

/* The wait has a limit: a gate that nobody opens is reported as an error. */
static void gate_wait(struct ib_device *dev, enum gate_word word)
{
	struct ib_pd *pd;
	struct ib_cq *cq;

	if (gate_unplugs && hp_is_own_device(dev))
		ib_unregister_device_queued(dev);
	WRITE_ONCE(gate_waits, word);
	if (hp_fault != HP_OPEN && !wait_for_completion_timeout(&gate_go, 2 * HP_TIMEOUT))
		pr_err("BUG: gate of %s was not opened in time\n", gate_words[word]);
	pd = ib_alloc_pd(dev, 0);
	cq = ib_alloc_cq(dev, NULL, 1, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(pd) || IS_ERR(cq))
		pr_err("BUG: cannot use the device in %s\n", gate_words[word]);
	if (!IS_ERR(cq))
		ib_free_cq(cq);
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
	WRITE_ONCE(gate_waits, GATE_OFF);
}

static void gate_work(struct work_struct *work)
{
	gate_wait(container_of(work, struct gate, work)->dev, GATE_EVENT);
}

/* A handler must not sleep. */
static void gate_event(struct ib_event_handler *handler, struct ib_event *event)
{
	queue_work(hp_wq, &container_of(handler, struct gate, handler)->work);
}

static int gate_add(struct ib_device *dev);
static void gate_remove(struct ib_device *dev, void *client_data);

static struct ib_client gate_client = {
	.name = "hotplug_gate",
	.add = gate_add,
	.remove = gate_remove,
};

static int gate_add(struct ib_device *dev)
{
	struct gate *gate;

	if (strcmp(dev_name(&dev->dev), gate_name))
		return -EOPNOTSUPP;
	gate = kzalloc(sizeof(*gate), GFP_KERNEL);
	if (!gate)
		return -ENOMEM;
	gate->dev = dev;
	INIT_WORK(&gate->work, gate_work);
	ib_set_client_data(dev, &gate_client, gate);
	if (gate_word == GATE_ADD)
		gate_wait(dev, GATE_ADD);
	INIT_IB_EVENT_HANDLER(&gate->handler, dev, gate_event);
	if (gate_word == GATE_EVENT)
		ib_register_event_handler(&gate->handler);
	return 0;
}

static void gate_remove(struct ib_device *dev, void *client_data)
{
	struct gate *gate = client_data;

	if (gate_word == GATE_REMOVE)
		gate_wait(dev, GATE_REMOVE);
	if (gate_word == GATE_EVENT)
		ib_unregister_event_handler(&gate->handler);
	/* The work may be queued or running, and it uses the device. */
	flush_work(&gate->work);
	kfree(gate);
}

static void gate_off(void)
{
	lockdep_assert_held(&gate_mutex);
	if (gate_word != GATE_OFF)
		ib_unregister_client(&gate_client);
	gate_word = GATE_OFF;
}

/* @text: the name of the device, optionally followed by "unplug" */
static int gate_on(enum gate_word word, char *text)
{
	const char *name = strsep(&text, " ");
	int ret;

	lockdep_assert_held(&gate_mutex);
	if (gate_word != GATE_OFF)
		return -EBUSY;
	if (!name || strscpy(gate_name, name, sizeof(gate_name)) <= 0)
		return -EINVAL;
	if (text && strcmp(text, "unplug"))
		return -EINVAL;
	gate_unplugs = text;
	reinit_completion(&gate_go);
	gate_word = word;
	ret = ib_register_client(&gate_client);
	if (ret)
		gate_word = GATE_OFF;
	return ret;
}

static int gate_command(char *text)
{
	char *verb = strsep(&text, " ");
	int word, ret = 0;

	if (!strcmp(verb, "go")) {
		complete_all(&gate_go);
		return 0;
	}
	word = match_string(gate_words, GATE_WORDS, verb);
	if (word < 0)
		return word;
	mutex_lock(&gate_mutex);
	if (word == GATE_OFF)
		gate_off();
	else
		ret = gate_on(word, text);
	mutex_unlock(&gate_mutex);
	return ret;
}

static ssize_t gate_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char *text;
	int ret;

	if (len > PAGE_SIZE)
		return -EINVAL;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = gate_command(strim(text));
	kfree(text);
	return ret ?: len;
}

static ssize_t gate_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	enum gate_word word = READ_ONCE(gate_waits);
	char text[32];
	int n;

	if (word == GATE_OFF)
		n = snprintf(text, sizeof(text), "open\n");
	else
		n = snprintf(text, sizeof(text), "waiting in %s\n", gate_words[word]);
	return simple_read_from_buffer(buf, len, pos, text, n);
}

static const struct file_operations gate_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = gate_write,
	.read = gate_read,
};

/**
 * hp_gate_init - add the gate's file
 * @dir: debugfs directory
 */
void hp_gate_init(struct dentry *dir)
{
	init_completion(&gate_go);
	debugfs_create_file("gate", 0600, dir, NULL, &gate_fops);
}

/**
 * hp_gate_exit - unregister the client, after its file has been removed
 */
void hp_gate_exit(void)
{
	mutex_lock(&gate_mutex);
	gate_off();
	mutex_unlock(&gate_mutex);
}
