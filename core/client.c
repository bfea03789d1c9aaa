// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: modules that want to use every device.
 *
 * Lock protocol: ib_registry_lock guards the clients, the devices' states and
 * the list of presences. A presence is one client on one device; it goes
 *
 *	ADDING -> PRESENT -> CALLING -> PRESENT ... -> REMOVING -> gone
 *	   \-> gone (add() failed)
 *
 * In all states but PRESENT one thread is inside the client's callback, or
 * about to be, and no other thread touches the presence: others wait until the
 * registry changes. The lock is not held while a callback runs or while
 * waiting, so a callback may sleep and call any public function.
 *
 * The thread that adds a client to a device:
 *  - while the device is ENABLING, the thread that registers it, which goes
 *    through the clients in the order of their registration until it finds no
 *    more. A client that registers meanwhile leaves that device to it, without
 *    waiting: that thread may be waiting for the client's own registration.
 *  - afterwards, the one that calls ib_register_client(). If the client's add()
 *    for another device takes long, it may reach a device later than a client
 *    that was registered after it.
 * Either way add() is called once.
 *
 * A rename waits until no callback runs for the device, and marks every presence of it. Then it
 * calls rename() of each client; for one whose get_net_dev_by_params() or ib_call_client() has
 * begun meanwhile, the thread that returns from there does. So each client learns every name.
 *
 * A device loses its clients in the reverse order of their registration; a
 * client leaves its devices in the order in which it was added to them. Both
 * wait for presences that another thread is busy with. A presence keeps its
 * client and its device from going: ib_unregister_client() and
 * ib_clients_remove() return when none is left. A callback that unregisters its
 * own client, or its own device, would wait for itself; that is refused with a
 * warning.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <kverbs/upper.h>

#include "contract/contract.h"
#include "contract/device_priv.h"
#include "contract/export.h"
#include "contract/refs.h"
#include "contract/registry.h"
#include "contract/trace.h"
#include "device.h"

#define CLIENT_REGISTERED	XA_MARK_1

enum presence_state {
	CLIENT_ADDING,
	CLIENT_PRESENT,
	CLIENT_CALLING,
	CLIENT_REMOVING,
};

/**
 * struct presence - one client on one device
 * @list: link among all, in the order in which add() was called
 * @on_device: link among those on the same device, in the order of client registration
 * @device: the device
 * @client: the client
 * @state: tells which thread may touch it
 * @rename_due: the device has a new name, which the client has yet to be told
 * @call: link in the list of callbacks in progress
 * @task: the thread that runs the callback
 * @until: ib_ref_log_seq() when the callback began
 * @waited: since when, in jiffies, a thread that removes the client waits for the callback;
 *	0: none does
 * @reported: that wait has been logged
 */
struct presence {
	struct list_head list;
	struct list_head on_device;
	struct ib_device *device;
	struct ib_client *client;
	enum presence_state state;
	bool rename_due;
	struct list_head call;
	struct task_struct *task;
	u64 until;
	unsigned long waited;
	bool reported;
};

/* By client_id, which grows in the order of registration. */
static DEFINE_XARRAY(clients);
static u32 next_client_id;

/* In the order in which add() was called. */
static LIST_HEAD(presences);

/* Those whose callback runs, or is about to. */
static LIST_HEAD(calls);

static BLOCKING_NOTIFIER_HEAD(removed_notifiers);

static struct presence *find_presence(struct ib_device *dev,
				      struct ib_client *client)
{
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(p, &ib_priv(dev)->presences, on_device)
		if (p->client == client)
			return p;
	return NULL;
}

static struct presence *first_presence(struct ib_client *client)
{
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(p, &presences, list)
		if (p->client == client)
			return p;
	return NULL;
}

/*
 * Keeps the device's list in the order of client registration. The search starts at the end,
 * because a new client usually goes there; for exceptions see the rules for adding above.
 */
static void presence_link(struct presence *p)
{
	struct presence *before;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry_reverse(before, &ib_priv(p->device)->presences, on_device)
		if (before->client->client_id < p->client->client_id)
			break;
	list_add(&p->on_device, &before->on_device);
}

/* Whether the current thread is in a callback of this client, or for this device. */
static bool in_callback_of(struct ib_device *dev, struct ib_client *client)
{
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(p, &calls, call)
		if (p->task == current &&
		    ((dev && p->device == dev) ||
		     (client && p->client == client)))
			return true;
	return false;
}

bool ib_in_client_callback(struct ib_device *dev)
{
	return in_callback_of(dev, NULL);
}

static void free_presence(struct presence *p)
{
	lockdep_assert_held(&ib_registry_lock);
	xa_erase(&p->device->client_data, p->client->client_id);
	list_del(&p->on_device);
	list_del(&p->list);
	kfree(p);
	ib_registry_changed();
}

/*
 * For lockdep: a thread that waits for a client's method must not hold a lock that the
 * method takes. A method may itself call functions that wait for methods of other clients,
 * so methods hold this map as readers.
 */
#ifdef CONFIG_LOCKDEP
static struct lockdep_map client_method_map =
	STATIC_LOCKDEP_MAP_INIT("kverbs_client_method", &client_method_map);
#endif

static bool in_any_callback(void)
{
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(p, &calls, call)
		if (p->task == current)
			return true;
	return false;
}

/* The caller may wait for methods of clients. Process context. */
void ib_clients_might_be_called(void)
{
	bool nested;

	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	mutex_lock(&ib_registry_lock);
	nested = in_any_callback();
	mutex_unlock(&ib_registry_lock);
	if (nested)
		return;
	lock_map_acquire(&client_method_map);
	lock_map_release(&client_method_map);
}

/* Drops the lock for a callback. */
static void begin_callback(struct presence *p, enum presence_state state)
{
	p->state = state;
	p->task = current;
	p->until = ib_ref_log_seq();
	list_add(&p->call, &calls);
	/* Requests that hold back for a rename go on now: see next_callable(). */
	if (state != CLIENT_CALLING && ib_priv(p->device)->renamers)
		ib_registry_changed();
	mutex_unlock(&ib_registry_lock);
	lock_map_acquire_read(&client_method_map);
}

static void end_callback(struct presence *p)
{
	lock_map_release(&client_method_map);
	mutex_lock(&ib_registry_lock);
	list_del(&p->call);
	p->state = CLIENT_PRESENT;
	ib_registry_changed();
}

/* The presence stays while this thread has the lock or is in the callback. */
static void call_due_renames(struct presence *p)
{
	struct ib_client *client = p->client;
	struct ib_device *dev = p->device;

	lockdep_assert_held(&ib_registry_lock);
	while (p->rename_due && client->rename) {
		p->rename_due = false;
		begin_callback(p, CLIENT_CALLING);
		IB_CALL_BACK(dev, NULL, "rename()", IB_FRAME_CALLBACK_TASK, client->rename,
			     client->rename(dev, ib_get_client_data(dev, client)));
		end_callback(p);
	}
}

/* An address in the client's module, by which the contract checker knows it. */
static unsigned long client_text(const struct ib_client *client)
{
	return (unsigned long)(client->add ?: (void *)client->remove);
}

/*
 * Has the contract checker look for what the client has left on the device; but not if another
 * client of the same module is still present there, as the objects may be that one's.
 */
static void check_departed(struct presence *p, const char *how, bool declined)
{
	unsigned long code = client_text(p->client);
	struct presence *other;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(other, &ib_priv(p->device)->presences, on_device)
		if (other != p && ib_same_module(code, client_text(other->client)))
			return;
	ib_contract_client_left(p->device, code, how, declined, p->until);
}

/*
 * Returns an error only if the presence could not be set up. A client that
 * does not want the device, or cannot have it, is merely not present there.
 */
static int add_presence(struct ib_device *dev, struct ib_client *client)
{
	struct presence *p;
	int ret;

	lockdep_assert_held(&ib_registry_lock);
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	/* A slot for the client's data, so that setting it never allocates. */
	ret = xa_err(xa_store(&dev->client_data, client->client_id, NULL,
			      GFP_KERNEL));
	if (ret) {
		kfree(p);
		return ret;
	}
	p->device = dev;
	p->client = client;
	list_add_tail(&p->list, &presences);
	presence_link(p);
	ib_contract_client_back(dev, client_text(client));

	begin_callback(p, CLIENT_ADDING);
	if (client->add)
		IB_CALL_BACK(dev, NULL, "add()", IB_FRAME_CALLBACK_TASK, client->add,
			     ret = client->add(dev));
	trace_ib_client_add(dev, client, ret);
	end_callback(p);
	if (ret) {
		check_departed(p, "add() failed", ret == -EOPNOTSUPP);
		free_presence(p);
	}
	return 0;
}

/* The callback that runs in each state, for the log. */
static const char * const callback_names[] = {
	[CLIENT_ADDING]		= "add()",
	[CLIENT_PRESENT]	= "callback",
	[CLIENT_CALLING]	= "rename(), get_net_dev_by_params() or get_nl_info()",
	[CLIENT_REMOVING]	= "remove()",
};

/* Waits while another thread is in the presence's callback, and logs if that takes long. */
static void wait_for_callback(struct presence *p)
{
	unsigned long patience = ib_wait_warn_timeout(), waited;

	lockdep_assert_held(&ib_registry_lock);
	if (!p->waited)
		p->waited = jiffies ?: 1;
	waited = jiffies - p->waited;
	if (p->reported || patience == MAX_SCHEDULE_TIMEOUT) {
		ib_registry_wait();
	} else if (waited < patience) {
		/* Changes of other presences end this wait early. */
		ib_registry_wait_for(patience - waited);
	} else {
		p->reported = true;
		ibdev_warn(p->device, "removing client %s: waiting for its %s to return\n",
			   p->client->name, callback_names[p->state]);
	}
}

/**
 * struct removal - a remove() in progress
 * @timer: logs that it takes long
 * @presence: the presence
 * @begin: when it was called, in jiffies
 */
struct removal {
	struct timer_list timer;
	const struct presence *presence;
	unsigned long begin;
};

static void report_slow_remove(struct timer_list *timer)
{
	struct removal *r = from_timer(r, timer, timer);
	unsigned long patience = ib_wait_warn_timeout();

	ibdev_warn(r->presence->device, "client %s: remove() has run for %u s\n",
		   r->presence->client->name, jiffies_to_msecs(jiffies - r->begin) / 1000);
	if (patience != MAX_SCHEDULE_TIMEOUT)
		mod_timer(timer, jiffies + patience);
}

/* A remove() that hangs blocks the removal of the device: log whose it is. */
static void call_remove(struct presence *p)
{
	struct removal r = { .presence = p, .begin = jiffies };
	struct ib_client *client = p->client;
	struct ib_device *dev = p->device;
	unsigned long patience = ib_wait_warn_timeout();

	if (!client->remove)
		return;
	timer_setup_on_stack(&r.timer, report_slow_remove, 0);
	if (patience != MAX_SCHEDULE_TIMEOUT)
		mod_timer(&r.timer, r.begin + patience);
	IB_CALL_BACK(dev, NULL, "remove()", IB_FRAME_CALLBACK_TASK, client->remove,
		     client->remove(dev, ib_get_client_data(dev, client)));
	timer_shutdown_sync(&r.timer);
	destroy_timer_on_stack(&r.timer);
}

/* Removes the presence, or waits while another thread is busy with it. */
static void remove_presence(struct presence *p)
{
	struct ib_client *client = p->client;
	struct ib_device *dev = p->device;

	lockdep_assert_held(&ib_registry_lock);
	if (p->state != CLIENT_PRESENT) {
		wait_for_callback(p);
		return;
	}
	begin_callback(p, CLIENT_REMOVING);
	call_remove(p);
	trace_ib_client_remove(dev, client);
	end_callback(p);
	check_departed(p, "remove() returned", false);
	free_presence(p);
}

static void remove_client(struct ib_client *client)
{
	struct presence *p;

	while ((p = first_presence(client)))
		remove_presence(p);
}

/*
 * The device has become visible: add every client to it. If this returns 0, no
 * client is left that this thread has to add.
 */
int ib_clients_add(struct ib_device *dev)
{
	struct ib_client *client;
	unsigned long id;
	int ret;

	lockdep_assert_held(&ib_registry_lock);
	for (id = 0; (client = xa_find(&clients, &id, ULONG_MAX,
				       CLIENT_REGISTERED)); id++) {
		ret = add_presence(dev, client);
		if (ret)
			return ret;
	}
	return 0;
}

/* No thread adds clients to the device any more: remove those that it has. */
void ib_clients_remove(struct ib_device *dev)
{
	struct list_head *presences = &ib_priv(dev)->presences;

	lockdep_assert_held(&ib_registry_lock);
	while (!list_empty(presences))
		remove_presence(list_last_entry(presences, struct presence, on_device));
}

static struct presence *busy_presence(struct ib_device *dev)
{
	struct presence *p;

	list_for_each_entry(p, &ib_priv(dev)->presences, on_device)
		if (p->state != CLIENT_PRESENT)
			return p;
	return NULL;
}

/*
 * Waits until no method of a client runs for the device, as long as it is registered; logs if that
 * takes long. None begins while the caller holds the lock.
 */
void ib_clients_wait(struct ib_device *dev)
{
	unsigned long patience = ib_wait_warn_timeout(), begin = jiffies, waited;
	struct ib_device_priv *priv = ib_priv(dev);
	bool reported = patience == MAX_SCHEDULE_TIMEOUT;
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
	priv->renamers++;
	while (priv->state == IB_DEV_REGISTERED && (p = busy_presence(dev))) {
		waited = jiffies - begin;
		if (reported) {
			ib_registry_wait();
		} else if (waited < patience) {
			ib_registry_wait_for(patience - waited);
		} else {
			reported = true;
			ibdev_warn(dev, "renaming: waiting for the %s of client %s to return\n",
				   callback_names[p->state], p->client->name);
		}
	}
	priv->renamers--;
	ib_registry_changed();
}

/* Tell the clients that the device has a new name. */
void ib_clients_renamed(struct ib_device *dev)
{
	struct ib_client *client;
	struct presence *p;
	unsigned long id;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry(p, &ib_priv(dev)->presences, on_device)
		p->rename_due = true;
	for (id = 0; (client = xa_find(&clients, &id, ULONG_MAX,
				       CLIENT_REGISTERED)); id++) {
		p = find_presence(dev, client);
		/* Others, whose callback has begun since the change, are told when that returns. */
		if (p && p->state == CLIENT_PRESENT)
			call_due_renames(p);
	}
}

static bool client_has_netdevs(const struct ib_client *client, const char *name)
{
	return client->get_net_dev_by_params;
}

static bool client_has_name(const struct ib_client *client, const char *name)
{
	return !strcmp(client->name, name);
}

/* Whether an add() or remove() runs for the device. */
static bool client_comes_or_goes(struct ib_device *dev)
{
	struct presence *p;

	list_for_each_entry(p, &ib_priv(dev)->presences, on_device)
		if (p->state == CLIENT_ADDING || p->state == CLIENT_REMOVING)
			return true;
	return false;
}

/*
 * Returns the first client of the device, from number @id on, for which @wanted is true and
 * none of whose callbacks is running; or NULL. Waits while another thread is in one of them.
 * @name is passed to @wanted.
 */
static struct presence *next_callable(struct ib_device *dev, u32 id,
				      bool (*wanted)(const struct ib_client *client,
						     const char *name),
				      const char *name)
{
	struct presence *p;

	lockdep_assert_held(&ib_registry_lock);
again:
	/*
	 * Requests, however many, must not delay a rename, which waits for all callbacks: but for
	 * that of this thread. While it waits for an add() or remove(), they go on: that may itself
	 * wait for a request, as the one that destroys a listener of the connection manager.
	 */
	while (ib_priv(dev)->renamers && !ib_in_client_callback(dev) && !client_comes_or_goes(dev))
		ib_registry_wait();
	list_for_each_entry(p, &ib_priv(dev)->presences, on_device) {
		if (p->client->client_id < id || !wanted(p->client, name))
			continue;
		/* A thread waits to remove it: requests, however many, must not delay that. */
		if (p->waited)
			continue;
		if (p->state == CLIENT_PRESENT)
			return p;
		if (p->state == CLIENT_CALLING) {
			ib_registry_wait();
			goto again;
		}
	}
	return NULL;
}

/**
 * ib_get_net_dev_by_params() - find the network device that a connection request is for
 * @dev: the device that received the request, registered
 * @port: port that received it
 * @pkey: P_Key that it came with
 * @gid: GID that it was sent to; or %NULL
 * @addr: IP address that it was sent to
 *
 * Asks the clients of the device that have network devices on top of it, as IPoIB has, in the
 * order of their registration; not one whose removal waits.
 * Waits for a pending rename of the device, unless that waits for an add() or remove() itself.
 *
 * Context: Process, may sleep; not in a callback of such a client for @dev.
 * Return: the network device, with a reference that the caller drops by dev_put(); %NULL if
 * none matches, as on RoCE ports.
 */
struct net_device *ib_get_net_dev_by_params(struct ib_device *dev, u32 port, u16 pkey,
					    const union ib_gid *gid,
					    const struct sockaddr *addr)
{
	struct net_device *ndev = NULL;
	struct ib_client *client;
	struct presence *p;
	u32 id = 0;

	if (!rdma_protocol_ib(dev, port))
		return NULL;
	mutex_lock(&ib_registry_lock);
	while (!ndev && (p = next_callable(dev, id, client_has_netdevs, NULL))) {
		client = p->client;
		id = client->client_id + 1;
		begin_callback(p, CLIENT_CALLING);
		IB_CALL_BACK(dev, NULL, "get_net_dev_by_params()", IB_FRAME_CALLBACK_TASK,
			     client->get_net_dev_by_params,
			     ndev = client->get_net_dev_by_params(dev, port, pkey, gid, addr,
								  ib_get_client_data(dev, client)));
		end_callback(p);
		/* ib_clients_renamed() leaves a busy presence to the thread that is in it. */
		call_due_renames(p);
	}
	mutex_unlock(&ib_registry_lock);
	return ndev;
}
EXPORT_SYMBOL(ib_get_net_dev_by_params);

static struct ib_client *find_client(const char *name)
{
	struct ib_client *client;
	unsigned long id;

	lockdep_assert_held(&ib_registry_lock);
	xa_for_each(&clients, id, client)
		if (client_has_name(client, name))
			return client;
	return NULL;
}

/**
 * ib_call_client() - call a function on behalf of a client
 * @dev: a registered device; or %NULL
 * @name: name of the client
 * @call: the function; its arguments are the client, @dev, what the client has stored for @dev,
 *	and @arg. Without a device, the table of clients and devices is locked meanwhile: then it
 *	must not sleep, nor call the midlayer
 * @arg: passed to it
 *
 * Neither the client nor the device goes while the function runs.
 *
 * Context: Process, may sleep; not in a callback of the client for @dev.
 * Return: what the function returned; -ENOENT if the client is not present on the device, or,
 * without a device, is not registered.
 */
int ib_call_client(struct ib_device *dev, const char *name,
		   int (*call)(struct ib_client *client, struct ib_device *dev,
			       void *client_data, void *arg),
		   void *arg)
{
	struct ib_client *client;
	struct presence *p;
	int ret = -ENOENT;

	mutex_lock(&ib_registry_lock);
	if (!dev) {
		client = find_client(name);
		if (client)
			ret = call(client, NULL, NULL, arg);
		goto unlock;
	}
	p = next_callable(dev, 0, client_has_name, name);
	if (p) {
		begin_callback(p, CLIENT_CALLING);
		ret = call(p->client, dev, ib_get_client_data(dev, p->client), arg);
		end_callback(p);
		/* As in ib_get_net_dev_by_params(). */
		call_due_renames(p);
	}
unlock:
	mutex_unlock(&ib_registry_lock);
	return ret;
}
IB_EXPORT_INTERNAL(ib_call_client);

/* A line with the names of the clients, for debugfs. */
void ib_clients_show(struct ib_device *dev, struct seq_file *s)
{
	struct presence *p;

	mutex_lock(&ib_registry_lock);
	list_for_each_entry(p, &ib_priv(dev)->presences, on_device)
		seq_printf(s, " %s", p->client->name);
	mutex_unlock(&ib_registry_lock);
}

/*
 * Add a new client to the devices that were registered before it. The
 * registration of later devices, perhaps while the lock is dropped here, finds
 * the client itself.
 */
static int add_to_devices(struct ib_client *client)
{
	u64 now = ib_registry_now();
	unsigned long index;
	struct ib_device *dev;
	int ret;

	lockdep_assert_held(&ib_registry_lock);
	for (index = 0; (dev = xa_find(&ib_devices, &index, ULONG_MAX,
				       IB_DEVICE_REGISTERED)); index++) {
		if (ib_priv(dev)->state != IB_DEV_REGISTERED ||
		    ib_priv(dev)->registered_at > now)
			continue;
		ret = add_presence(dev, client);
		if (ret)
			return ret;
	}
	return 0;
}

static void client_free_id(struct ib_client *client)
{
	lockdep_assert_held(&ib_registry_lock);
	xa_erase(&clients, client->client_id);
	/* Reusing numbers at the end only keeps them in the order of registration. */
	while (next_client_id && !xa_load(&clients, next_client_id - 1))
		next_client_id--;
}

/**
 * ib_register_client() - use every device
 * @client: name and methods; must stay until ib_unregister_client() returns
 *
 * The core calls add() for each registered device, and later for each new one.
 * It is called once for each device, before this function returns if the
 * device's own registration has finished. A new device is offered to the
 * clients in the order of their registration. When a device is unregistered,
 * its clients are removed in the reverse order of their registration, even if
 * add() was called in a different order. When add() returns an error, the
 * client is not present on that device: none of its other methods is called for
 * it. That is not an error of this function.
 *
 * Context: Process, may sleep; also from add() and remove() of other clients.
 * Return: 0; -EINVAL without a name, in atomic context, or in an event handler; -EEXIST
 *	   if there is a client of that name; -ENOMEM.
 */
int ib_register_client(struct ib_client *client)
{
	const void *caller = __builtin_return_address(0);
	struct ib_client *other;
	int ret;

	if (ib_called_atomic(NULL, "registers a client", caller))
		return -EINVAL;
	if (!client->name) {
		pr_warn("cannot register the client of %pS: it has no name\n", caller);
		return -EINVAL;
	}

	ib_clients_might_be_called();
	mutex_lock(&ib_registry_lock);
	other = find_client(client->name);
	if (other) {
		ret = -EEXIST;
		goto out;
	}
	client->client_id = next_client_id;
	ret = xa_insert(&clients, client->client_id, client, GFP_KERNEL);
	if (ret)
		goto out;
	next_client_id++;
	xa_set_mark(&clients, client->client_id, CLIENT_REGISTERED);
	ret = add_to_devices(client);
	if (ret) {
		xa_clear_mark(&clients, client->client_id, CLIENT_REGISTERED);
		remove_client(client);
		client_free_id(client);
	}
out:
	mutex_unlock(&ib_registry_lock);
	/* As in ib_unregister_client(). */
	if (ret)
		blocking_notifier_call_chain(&removed_notifiers, 0, client);
	if (ret == -EEXIST)
		pr_warn("cannot register client %s of %pS: already registered\n",
			client->name, caller);
	return ret;
}
EXPORT_SYMBOL(ib_register_client);

/*
 * @nb is called, in process context, after a client has left all devices: whoever calls
 * functions of clients waits there for calls in progress.
 */
void ib_register_client_notifier(struct notifier_block *nb)
{
	blocking_notifier_chain_register(&removed_notifiers, nb);
}
IB_EXPORT_INTERNAL(ib_register_client_notifier);

void ib_unregister_client_notifier(struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&removed_notifiers, nb);
}
IB_EXPORT_INTERNAL(ib_unregister_client_notifier);

/**
 * ib_unregister_client() - stop using devices
 * @client: a registered client
 *
 * The core calls remove() for each device on which add() succeeded. When this function
 * returns, no method of the client is running or will be called, and each done() of a
 * channel-adapter request that had been called before has returned.
 *
 * Context: Process, may sleep; not from the client's own methods.
 */
void ib_unregister_client(struct ib_client *client)
{
	if (ib_called_atomic(NULL, "unregisters a client",
			     __builtin_return_address(0)))
		return;
	ib_clients_might_be_called();
	mutex_lock(&ib_registry_lock);
	if (WARN_ONCE(xa_load(&clients, client->client_id) != client,
		      "cannot unregister client %s: not registered\n", client->name))
		goto out;
	if (WARN_ONCE(in_callback_of(NULL, client),
		      "client %s unregisters itself from its own callback\n",
		      client->name))
		goto out;
	xa_clear_mark(&clients, client->client_id, CLIENT_REGISTERED);
	remove_client(client);
	client_free_id(client);
out:
	mutex_unlock(&ib_registry_lock);
	/* Wait for those who call functions of the client that are not among its methods. */
	blocking_notifier_call_chain(&removed_notifiers, 0, client);
}
EXPORT_SYMBOL(ib_unregister_client);

/**
 * ib_set_client_data() - store a client's pointer for a device
 * @device: the device
 * @client: the client; from the start of its add() to the end of its remove() for @device
 * @data: what ib_get_client_data() is to return
 *
 * Context: Process or spinlock held.
 */
void ib_set_client_data(struct ib_device *device, struct ib_client *client,
			void *data)
{
	void *old;

	if (WARN_ON(IS_ERR(data)))
		data = NULL;
	/* add_presence() has made the slot, so nothing is allocated. */
	old = xa_store(&device->client_data, client->client_id, data,
		       GFP_ATOMIC);
	WARN_ONCE(xa_is_err(old), "%s: cannot set data of client %s: not added to this device\n",
		  dev_name(&device->dev), client->name);
}
EXPORT_SYMBOL(ib_set_client_data);

void ib_client_exit(void)
{
	WARN_ON(!xa_empty(&clients));
	WARN_ON(!list_empty(&presences));
}
