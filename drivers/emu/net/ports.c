// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports: what the adapter reports about them, and what can change at run time.
 *
 * Each change becomes visible first, and then raises its event (IBTA vol. 1, 11.6.3). Before
 * the device is registered, the midlayer does not pass events on, so nobody is told of a change.
 *
 * Locks, outermost first:
 *
 *   RTNL		and emu_ports_lock: the binding of ports to network devices
 *   emu_ports_lock	all tables and addresses. Not held across a call of the
 *			midlayer that may sleep. emu_fabric_lock is taken inside.
 *   emu_state_lock	the state of the link, and what it follows from. Taken with
 *			interrupts off: a fault can take a port down in any context.
 *
 * To read any of these, the engine takes no lock; emu_fabric_changed() makes it look again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hashtable.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <kverbs/completion.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "net.h"

/* fe80::/64, the subnet prefix of a fabric without a subnet manager. */
#define EMU_SUBNET_PREFIX	0xfe80000000000000ULL
/* The LID at which the subnet manager would be. */
#define EMU_SM_LID		1
/*
 * What PortInfo would contain, including the speeds and the width that not every port
 * supports.
 */
#define EMU_PORT_CAPS							\
	(IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_EXTENDED_SPEEDS_SUP |	\
	 IB_PORT_CAP_MASK2_SUP | IB_PORT_CLIENT_REG_SUP)
#define EMU_PORT_CAPS2							\
	(IB_PORT_LINK_WIDTH_2X_SUP | IB_PORT_LINK_SPEED_HDR_SUP |	\
	 IB_PORT_LINK_SPEED_NDR_SUP)
/* There are as many ports as devices, or a few times more. */
#define EMU_BOUND_HASH_BITS	8

static DEFINE_MUTEX(emu_ports_lock);
/* Raw, because an engine takes it when a fault takes a port down. */
static DEFINE_RAW_SPINLOCK(emu_state_lock);
/*
 * Ports that are bound to a network device, hashed by the address of its struct.
 * Under emu_ports_lock.
 */
static DEFINE_HASHTABLE(emu_bound, EMU_BOUND_HASH_BITS);

/* Sets the default settings of a port. */
void emu_port_config_init(struct emu_port_config *config)
{
	*config = (struct emu_port_config) {
		.state = IB_PORT_ACTIVE,
		.sm_lid = EMU_SM_LID,
		.pkeys = { EMU_DEFAULT_PKEY },
	};
}

/*
 * Gets the active width and speed: those that were set, else those of the network device, or 4X
 * EDR if there is none. Takes RTNL, so a device must not be unregistered with RTNL held.
 */
static void emu_port_query_rate(struct emu_port *port, u8 *width, u16 *speed)
{
	u16 wanted_speed = READ_ONCE(port->wanted_speed);
	u8 wanted_width = READ_ONCE(port->wanted_width);

	*width = IB_WIDTH_4X;
	*speed = IB_SPEED_EDR;
	/* Fails without a network device, and leaves both as they are. */
	if (port->edev->ethernet && (!wanted_width || !wanted_speed))
		ib_get_eth_speed(&port->edev->ibdev, port->num, speed, width);
	if (wanted_width)
		*width = wanted_width;
	if (wanted_speed)
		*speed = wanted_speed;
}

int emu_query_port(struct ib_device *ibdev, u32 port_num, struct ib_port_attr *attr)
{
	struct emu_port *port = emu_port(ibdev, port_num);

	/* The midlayer has cleared *attr and filled in what it knows. */
	attr->state = READ_ONCE(port->state);
	attr->phys_state = attr->state == IB_PORT_DOWN ? IB_PORT_PHYS_STATE_DISABLED :
							 IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = READ_ONCE(port->mtu);
	attr->gid_tbl_len = EMU_GID_TBL_LEN;
	attr->pkey_tbl_len = emu_pkey_tbl_len(port->edev);
	attr->max_msg_sz = EMU_MAX_MSG_SIZE;
	attr->bad_pkey_cntr = emu_read_counter(port, EMU_CNT_PKEY);
	attr->qkey_viol_cntr = emu_read_counter(port, EMU_CNT_QKEY);
	attr->lid = READ_ONCE(port->lid);
	attr->max_vl_num = 1;
	emu_port_query_rate(port, &attr->active_width, &attr->active_speed);
	if (port->edev->ethernet) {
		attr->ip_gids = true;
		return 0;
	}
	attr->port_cap_flags = EMU_PORT_CAPS | READ_ONCE(port->caps) |
			       (READ_ONCE(port->sa) ? IB_PORT_SM : 0);
	attr->port_cap_flags2 = EMU_PORT_CAPS2;
	attr->sm_lid = READ_ONCE(port->sm_lid);
	attr->subnet_timeout = EMU_DELAY;
	return 0;
}

/*
 * Changes the capabilities by which consumers announce the managers of a port, such as connection
 * or device management. Returns 0; -EINVAL for that of the subnet manager, which is set by
 * emu_port_set_sm(), and for those that a port always has; or -EOPNOTSUPP for other changes.
 */
int emu_modify_port(struct ib_device *ibdev, u32 port_num, int mask, struct ib_port_modify *change)
{
	struct emu_port *port = emu_port(ibdev, port_num);

	if (mask)
		return -EOPNOTSUPP;
	if ((change->set_port_cap_mask | change->clr_port_cap_mask) & (EMU_PORT_CAPS | IB_PORT_SM))
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	WRITE_ONCE(port->caps, (port->caps | change->set_port_cap_mask) &
			       ~change->clr_port_cap_mask);
	mutex_unlock(&emu_ports_lock);
	return 0;
}

int emu_query_gid(struct ib_device *ibdev, u32 port_num, int index, union ib_gid *gid)
{
	struct emu_port *port = emu_port(ibdev, port_num);

	if (index < 0 || index >= EMU_GID_TBL_LEN)
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	*gid = port->gids[index];
	mutex_unlock(&emu_ports_lock);
	return 0;
}

int emu_query_pkey(struct ib_device *ibdev, u32 port_num, u16 index, u16 *pkey)
{
	struct emu_port *port = emu_port(ibdev, port_num);

	if (index >= emu_pkey_tbl_len(port->edev))
		return -EINVAL;
	*pkey = emu_port_pkey(port, index);
	return 0;
}

/* Tells the consumers of the device of an event of @port. Any context but NMI. */
void emu_port_dispatch(struct emu_port *port, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &port->edev->ibdev,
		.element.port_num = port->num,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/* Reports a change for which there is no event. Any context but NMI. */
static void emu_port_attr_changed(struct emu_port *port)
{
	ib_port_attr_changed(&port->edev->ibdev, port->num);
}

/*
 * Derives the state of the link anew after a change. Reports to consumers if the port has become
 * active, or is not active any more.
 */
static void emu_port_update_state(struct emu_port *port)
{
	enum ib_port_state old = port->state;
	enum ib_port_state state = port->wanted;

	lockdep_assert_held(&emu_state_lock);
	if (!port->link_up || port->flapping)
		state = IB_PORT_DOWN;
	if (state == old)
		return;
	WRITE_ONCE(port->state, state);
	emu_fabric_changed();
	if (state == IB_PORT_ACTIVE) {
		emu_port_dispatch(port, IB_EVENT_PORT_ACTIVE);
	} else if (old == IB_PORT_ACTIVE) {
		emu_sa_port_down(port);
		emu_port_dispatch(port, IB_EVENT_PORT_ERR);
		emu_port_count(port, EMU_CNT_LINK_DOWNED, 1);
	}
}

static void emu_port_set_link(struct emu_port *port, bool up)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&emu_state_lock, flags);
	port->link_up = up;
	emu_port_update_state(port);
	raw_spin_unlock_irqrestore(&emu_state_lock, flags);
}

/* Takes the port down, whatever else is set, or lets it come up again. Any context but NMI. */
static void emu_port_set_flapping(struct emu_port *port, bool down)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&emu_state_lock, flags);
	port->flapping = down;
	emu_port_update_state(port);
	raw_spin_unlock_irqrestore(&emu_state_lock, flags);
}

static enum hrtimer_restart emu_port_flap_end(struct hrtimer *timer)
{
	struct emu_port *port = container_of(timer, struct emu_port, flap_timer);

	emu_port_set_flapping(port, false);
	/* release: the next flap begins only after the port is up again */
	atomic_set_release(&port->flap, 0);
	return HRTIMER_NORESTART;
}

/**
 * emu_port_flap() - take a port down for a while, whatever else is set
 * @port: the port
 * @ms: for how many milliseconds
 *
 * Does nothing if the last call still keeps it down.
 *
 * Context: Any but NMI.
 */
void emu_port_flap(struct emu_port *port, u32 ms)
{
	if (atomic_xchg(&port->flap, 1))
		return;
	emu_port_set_flapping(port, true);
	hrtimer_start(&port->flap_timer, ms_to_ktime(ms), HRTIMER_MODE_REL_HARD);
}

/**
 * emu_port_set_state() - set the state of a link
 * @port: the port
 * @state: %IB_PORT_DOWN to %IB_PORT_ACTIVE; for an Ethernet port, one of these two
 *
 * Context: Any but NMI.
 * Return: 0, or -EINVAL.
 */
int emu_port_set_state(struct emu_port *port, enum ib_port_state state)
{
	unsigned long flags;

	if (state < IB_PORT_DOWN || state > IB_PORT_ACTIVE)
		return -EINVAL;
	if (port->edev->ethernet && state != IB_PORT_DOWN && state != IB_PORT_ACTIVE)
		return -EINVAL;
	raw_spin_lock_irqsave(&emu_state_lock, flags);
	port->wanted = state;
	emu_port_update_state(port);
	raw_spin_unlock_irqrestore(&emu_state_lock, flags);
	return 0;
}

/**
 * emu_port_set_lid() - set the LID of a port
 * @port: the port
 * @lid: 1 to EMU_MAX_LID; 0 for the smallest free one
 *
 * Context: Process context.
 * Return: 0; -EINVAL for any other value, or for an Ethernet port; -EBUSY if another
 * port has it; -ENOMEM.
 */
int emu_port_set_lid(struct emu_port *port, u16 lid)
{
	u16 old;
	int err;

	if (port->edev->ethernet || lid > EMU_MAX_LID)
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	old = port->lid;
	err = emu_fabric_add_lid(port, lid);
	if (!err && port->lid != old)
		emu_port_dispatch(port, IB_EVENT_LID_CHANGE);
	mutex_unlock(&emu_ports_lock);
	return err;
}

/**
 * emu_port_set_sm_lid() - set the LID of the subnet manager
 * @port: the port
 * @lid: its LID, or 0
 *
 * Context: Process context.
 * Return: 0, or -EINVAL for any other value, or for an Ethernet port.
 */
int emu_port_set_sm_lid(struct emu_port *port, u16 lid)
{
	if (port->edev->ethernet || lid > EMU_MAX_LID)
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	if (port->sm_lid != lid) {
		WRITE_ONCE(port->sm_lid, lid);
		emu_port_dispatch(port, IB_EVENT_SM_CHANGE);
	}
	mutex_unlock(&emu_ports_lock);
	return 0;
}

/* Makes the clients of a port register again, if the port uses @data as its subnet manager. */
static void emu_port_reregister_clients(struct emu_port *port, void *data)
{
	const struct emu_port *sm = data;

	if (READ_ONCE(port->sm_lid) == READ_ONCE(sm->lid))
		emu_port_dispatch(port, IB_EVENT_CLIENT_REREGISTER);
}

/* If this port is a subnet manager's, tells all ports that use it that it has just begun. */
void emu_port_announce_sm(struct emu_port *port)
{
	if (READ_ONCE(port->sa))
		emu_fabric_each_ib_port(emu_port_reregister_clients, port);
}

/**
 * emu_port_set_sm() - make a port the subnet manager's, or undo that
 * @port: the port
 * @on: whether it is to be the subnet manager's
 *
 * Context: Process context.
 * Return: 0; -EINVAL for an Ethernet port; -ENOMEM.
 */
int emu_port_set_sm(struct emu_port *port, bool on)
{
	int ret;

	if (port->edev->ethernet)
		return on ? -EINVAL : 0;
	ret = emu_sa_set(port, on);
	if (ret <= 0)
		return ret;
	emu_port_attr_changed(port);
	emu_port_announce_sm(port);
	return 0;
}

static bool emu_gid_is_set(const union ib_gid *gid)
{
	return memchr_inv(gid, 0, sizeof(*gid));
}

/* Changes an entry. A GID that is in the table twice is also in the fabric twice. */
static int emu_port_replace_gid(struct emu_port *port, unsigned int index,
				const union ib_gid *gid)
{
	struct emu_gid *entry = NULL;

	lockdep_assert_held(&emu_ports_lock);
	if (emu_gid_is_set(gid)) {
		entry = emu_fabric_add_gid(port, gid, IB_GID_TYPE_IB, NULL, NULL);
		if (IS_ERR(entry))
			return PTR_ERR(entry);
	}
	if (port->fabric_gids[index])
		emu_fabric_del_gid(port->fabric_gids[index]);
	port->fabric_gids[index] = entry;
	port->gids[index] = *gid;
	return 0;
}

static void emu_port_default_gid(const struct emu_port *port, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(EMU_SUBNET_PREFIX);
	gid->global.interface_id = cpu_to_be64(be64_to_cpu(port->edev->ibdev.node_guid) |
					       port->num);
}

/**
 * emu_port_set_gid() - set an entry of the GID table of an InfiniBand port
 * @port: the port
 * @index: index of the entry
 * @gid: GID; zero clears the entry, and at index 0 sets the default GID
 *
 * Context: Process context.
 * Return: 0; -EINVAL for an index out of range, or for an Ethernet port, whose table
 * follows its network device; -ENOMEM.
 */
int emu_port_set_gid(struct emu_port *port, unsigned int index, const union ib_gid *gid)
{
	union ib_gid new = *gid;
	int err = 0;

	if (port->edev->ethernet || index >= EMU_GID_TBL_LEN)
		return -EINVAL;
	if (!index && !emu_gid_is_set(gid))
		emu_port_default_gid(port, &new);
	mutex_lock(&emu_ports_lock);
	if (memcmp(&port->gids[index], &new, sizeof(new))) {
		err = emu_port_replace_gid(port, index, &new);
		if (!err)
			emu_port_dispatch(port, IB_EVENT_GID_CHANGE);
	}
	mutex_unlock(&emu_ports_lock);
	return err;
}

/**
 * emu_port_set_pkey() - set an entry of the P_Key table of an InfiniBand port
 * @port: the port
 * @index: index of the entry
 * @pkey: P_Key; 0 clears the entry
 *
 * Context: Process context.
 * Return: 0, or -EINVAL for an index out of range, or for an Ethernet port.
 */
int emu_port_set_pkey(struct emu_port *port, unsigned int index, u16 pkey)
{
	if (port->edev->ethernet || index >= EMU_PKEY_TBL_LEN)
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	if (port->pkeys[index] != pkey) {
		WRITE_ONCE(port->pkeys[index], pkey);
		emu_fabric_changed();
		emu_port_dispatch(port, IB_EVENT_PKEY_CHANGE);
	}
	mutex_unlock(&emu_ports_lock);
	return 0;
}

/* Derives the active MTU anew. There is no event for that, so consumers see it when they ask. */
static void emu_port_update_mtu(struct emu_port *port)
{
	lockdep_assert_held(&emu_ports_lock);
	WRITE_ONCE(port->mtu, port->wanted_mtu ?: port->netdev_mtu ?: IB_MTU_4096);
	emu_port_attr_changed(port);
}

/* Sets the active MTU, or lets it follow the network device if @mtu is 0. Returns 0, or -EINVAL. */
int emu_port_set_mtu(struct emu_port *port, enum ib_mtu mtu)
{
	if (mtu && ib_mtu_enum_to_int(mtu) < 0)
		return -EINVAL;
	mutex_lock(&emu_ports_lock);
	port->wanted_mtu = mtu;
	emu_port_update_mtu(port);
	mutex_unlock(&emu_ports_lock);
	return 0;
}

/* Records the largest MTU for which the network device has room, headers included. */
static void emu_port_set_netdev_mtu(struct emu_port *port, const struct net_device *netdev)
{
	port->netdev_mtu = netdev ? iboe_get_mtu(READ_ONCE(netdev->mtu)) ?: IB_MTU_256 : 0;
	emu_port_update_mtu(port);
}

/*
 * Sets the active width, or lets it follow the network device if @width is 0. Returns 0, or
 * -EINVAL.
 */
int emu_port_set_width(struct emu_port *port, enum ib_port_width width)
{
	if (width && ib_width_enum_to_int(width) < 0)
		return -EINVAL;
	WRITE_ONCE(port->wanted_width, width);
	emu_port_attr_changed(port);
	return 0;
}

/*
 * Sets the active speed of a lane, or lets it follow the network device if @speed is 0. Returns 0,
 * or -EINVAL.
 */
int emu_port_set_speed(struct emu_port *port, enum ib_port_speed speed)
{
	if (hweight16(speed) > 1 || speed > IB_SPEED_XDR)
		return -EINVAL;
	WRITE_ONCE(port->wanted_speed, speed);
	emu_port_attr_changed(port);
	return 0;
}

static bool emu_netdev_is_up(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev);
}

/*
 * Records to which network device the port is bound, or to none. Under RTNL, so that the network
 * device cannot be unregistered before the notifier can find the binding.
 */
static void emu_port_record_netdev(struct emu_port *port, const struct net_device *netdev)
{
	ASSERT_RTNL();
	mutex_lock(&emu_ports_lock);
	if (port->netdev)
		hash_del(&port->bound);
	WRITE_ONCE(port->netdev, netdev);
	strscpy(port->netdev_name, netdev ? netdev_name(netdev) : "", IFNAMSIZ);
	if (netdev)
		hash_add(emu_bound, &port->bound, (unsigned long)netdev);
	emu_port_set_netdev_mtu(port, netdev);
	mutex_unlock(&emu_ports_lock);
	/* If two ports have an address, their network devices decide which one is found. */
	emu_fabric_changed();
	emu_port_set_link(port, netdev && emu_netdev_is_up(netdev));
}

/* Returns the port that is bound to a network device, or NULL. Under RTNL. */
static struct emu_port *emu_port_find_by_netdev(const struct net_device *netdev)
{
	struct emu_port *port, *found = NULL;

	mutex_lock(&emu_ports_lock);
	hash_for_each_possible(emu_bound, port, bound, (unsigned long)netdev) {
		if (port->netdev == netdev)
			found = port;
	}
	mutex_unlock(&emu_ports_lock);
	return found;
}

/*
 * Refuses a network device that another port is bound to: both ports would have the same GIDs, and
 * one of them would get the messages for both.
 */
static int emu_port_check_netdev(struct emu_port *port, const struct net_device *netdev)
{
	struct emu_port *other = emu_port_find_by_netdev(netdev);

	if (!other || other == port)
		return 0;
	pr_warn("network device '%s' is already used by port %u of %s; give each port its own\n",
		netdev_name(netdev), other->num, other->edev->ibdev.name);
	return -EBUSY;
}

/* Binds the port to a network device, or to none. Under RTNL. */
static int emu_port_bind(struct emu_port *port, struct net_device *netdev)
{
	int err = netdev ? emu_port_check_netdev(port, netdev) : 0;

	if (!err)
		err = ib_device_set_netdev(&port->edev->ibdev, netdev, port->num);
	if (!err)
		emu_port_record_netdev(port, netdev);
	return err;
}

/**
 * emu_port_bind_netdev() - bind an Ethernet port to a network device that the caller holds
 * @port: the port
 * @netdev: the network device
 *
 * Context: Process context.
 * Return: 0; -ENODEV if the network device is being unregistered; -EBUSY if another port is bound
 * to it; or what ib_device_set_netdev() returned.
 */
int emu_port_bind_netdev(struct emu_port *port, struct net_device *netdev)
{
	int err = -ENODEV;

	rtnl_lock();
	if (netdev->reg_state == NETREG_REGISTERED)
		err = emu_port_bind(port, netdev);
	rtnl_unlock();
	return err;
}

/**
 * emu_port_set_netdev() - bind an Ethernet port to a network device
 * @port: the port
 * @net: the network namespace to find it in
 * @name: name of the network device; empty for none, which takes the port down
 *
 * Context: Process context.
 * Return: 0; -EINVAL for an InfiniBand port; -ENODEV if there is no such network
 * device in @net; -EBUSY if another port is bound to it; or what
 * ib_device_set_netdev() returned.
 */
int emu_port_set_netdev(struct emu_port *port, struct net *net, const char *name)
{
	struct net_device *netdev = NULL;
	int err = 0;

	if (!port->edev->ethernet)
		return -EINVAL;
	rtnl_lock();
	if (*name) {
		netdev = __dev_get_by_name(net, name);
		err = netdev ? 0 : -ENODEV;
	}
	if (!err)
		err = emu_port_bind(port, netdev);
	rtnl_unlock();
	/* The device has no name before it is registered. */
	if (err)
		pr_warn("port %u of %s: cannot bind to network device '%s'%s (%d)\n", port->num,
			dev_name(&port->edev->pdev->dev), name,
			err == -ENODEV && !netdev ? ", which is not in this network namespace" : "",
			err);
	return err;
}

/**
 * emu_port_netdev_name() - get the name of a port's network device
 * @port: the port
 * @name: receives the name, IFNAMSIZ bytes: the current one, or the last one if the network
 *	device has gone; unchanged if the port was bound to none
 *
 * Context: Process context; takes RTNL for an Ethernet port.
 * Return: true if the port is bound to a network device now.
 */
bool emu_port_netdev_name(struct emu_port *port, char *name)
{
	bool bound;

	if (!port->edev->ethernet)
		return false;
	/* If it is being renamed, this waits for the new name. */
	rtnl_lock();
	bound = port->netdev;
	if (*port->netdev_name)
		strscpy(name, port->netdev_name, IFNAMSIZ);
	rtnl_unlock();
	return bound;
}

static void emu_port_netdev_event(struct emu_port *port, struct net_device *netdev,
				  unsigned long event)
{
	switch (event) {
	case NETDEV_REGISTER:
		/* It has come from another network namespace, and may have another name now. */
		strscpy(port->netdev_name, netdev_name(netdev), IFNAMSIZ);
		break;
	case NETDEV_UNREGISTER:
		/* It may only be on its way to another network namespace. */
		if (READ_ONCE(netdev->reg_state) == NETREG_REGISTERED)
			break;
		/* The midlayer releases it, too. */
		hash_del(&port->bound);
		WRITE_ONCE(port->netdev, NULL);
		emu_port_set_netdev_mtu(port, NULL);
		emu_port_set_link(port, false);
		break;
	case NETDEV_CHANGEMTU:
		emu_port_set_netdev_mtu(port, netdev);
		break;
	case NETDEV_CHANGENAME:
		strscpy(port->netdev_name, netdev_name(netdev), IFNAMSIZ);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		emu_port_set_link(port, emu_netdev_is_up(netdev));
		/* The speed may have changed, for which there is no event. */
		emu_port_attr_changed(port);
		break;
	}
}

/* Called from the network device notifier, under the RTNL. */
void emu_netdev_event(struct net_device *netdev, unsigned long event)
{
	struct hlist_node *next;
	struct emu_port *port;

	mutex_lock(&emu_ports_lock);
	hash_for_each_possible_safe(emu_bound, port, next, bound, (unsigned long)netdev) {
		if (port->netdev == netdev)
			emu_port_netdev_event(port, netdev, event);
	}
	mutex_unlock(&emu_ports_lock);
}

static int emu_port_init_addresses(struct emu_port *port, const struct emu_port_config *config)
{
	unsigned int i;
	int err;

	err = emu_port_set_lid(port, config->lid);
	for (i = 0; !err && i < EMU_GID_TBL_LEN; i++)
		err = emu_port_set_gid(port, i, &config->gids[i]);
	for (i = 0; !err && i < EMU_PKEY_TBL_LEN; i++)
		err = emu_port_set_pkey(port, i, config->pkeys[i]);
	return err;
}

/**
 * emu_port_init() - set a port up, before its device is registered
 * @port: the port, whose device, number and node GUID are set
 * @config: its settings; but emu_port_set_netdev() binds its network device
 *
 * Context: Process context.
 * Return: 0; -ENOMEM; or what emu_port_set_lid() and the like returned. Even after an error,
 * the caller must call emu_port_exit().
 */
int emu_port_init(struct emu_port *port, const struct emu_port_config *config)
{
	int err;

	/* Hard, because a soft interrupt may wait long for a busy CPU: see queue/doorbell.c. */
	hrtimer_init(&port->flap_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	port->flap_timer.function = emu_port_flap_end;
	emu_sa_init(port);
	port->counters = alloc_percpu(struct emu_counters);
	if (!port->counters)
		return -ENOMEM;
	port->link_up = !port->edev->ethernet;
	port->state = IB_PORT_DOWN;
	port->sm_lid = config->sm_lid;
	err = emu_port_set_state(port, config->state);
	if (!err)
		err = emu_port_set_mtu(port, config->mtu);
	if (!err)
		err = emu_port_set_width(port, config->width);
	if (!err)
		err = emu_port_set_speed(port, config->speed);
	if (!err && !port->edev->ethernet)
		err = emu_port_init_addresses(port, config);
	/* The caller announces it as soon as it can answer. */
	if (!err && config->sm)
		err = port->edev->ethernet ? -EINVAL : min(emu_sa_set(port, true), 0);
	return err;
}

/*
 * Takes a port out of the fabric. Its device is unregistered and has no queue pairs, so nothing
 * makes the port flap any more. Engines of other devices may still read the port for a grace
 * period; after that, the caller frees its counters by free_percpu().
 */
void emu_port_exit(struct emu_port *port)
{
	static const union ib_gid none;
	unsigned int i;

	hrtimer_cancel(&port->flap_timer);
	if (port->edev->ethernet) {
		rtnl_lock();
		emu_port_record_netdev(port, NULL);
		rtnl_unlock();
	}
	mutex_lock(&emu_ports_lock);
	for (i = 0; i < EMU_GID_TBL_LEN; i++)
		emu_port_replace_gid(port, i, &none);
	mutex_unlock(&emu_ports_lock);
	if (port->lid)
		emu_fabric_del_lid(port);
	emu_sa_exit(port);
}
