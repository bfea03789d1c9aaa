// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock device: life cycle, log, ports and tables.
 *
 * Locking: mock->lock guards the log and the failures. It is taken with interrupts off,
 * because methods are called in any context, and is innermost. It also guards the
 * attributes of a port, which a method may change. The tables in mock->port are written
 * only by the case, while no method reads them or where a reader may see either value.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>

#include "../core/contract/device_priv.h"
#include "lib/mock.h"

#define MOCK_OP_NAME(op)	#op,
/* In the order of enum mock_op. */
static const char *const mock_op_names[] = { MOCK_OPS(MOCK_OP_NAME) };

/**
 * mock_op_name() - name of a method
 * @op: the method
 *
 * Return: the name.
 */
const char *mock_op_name(enum mock_op op)
{
	return mock_op_names[op];
}
EXPORT_SYMBOL_GPL(mock_op_name);

/* Logs a call. Returns the errno that the method is to fail with, or 0. */
int mock_enter(struct mock *m, enum mock_op op, const void *obj, u64 arg, u64 arg2)
{
	unsigned long flags;
	int ret = 0;

	raw_spin_lock_irqsave(&m->lock, flags);
	if (m->ncalls < MOCK_LOG) {
		struct mock_call *call = &m->calls[m->ncalls++];

		call->op = op;
		call->obj = obj;
		call->arg = arg;
		call->arg2 = arg2;
	}
	m->count[op]++;
	if (m->fail[op].ret) {
		if (m->fail[op].after) {
			m->fail[op].after--;
		} else {
			ret = m->fail[op].ret;
			if (m->fail[op].once)
				m->fail[op].ret = 0;
		}
	}
	raw_spin_unlock_irqrestore(&m->lock, flags);
	if (READ_ONCE(m->held) == op)
		kvt_gate_sleep(&m->hold);
	return ret;
}

/**
 * mock_fail() - make a method fail until mock_fail_none()
 * @m: the mock
 * @op: the method
 * @ret: a negative errno
 */
void mock_fail(struct mock *m, enum mock_op op, int ret)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	m->fail[op].ret = ret;
	m->fail[op].after = 0;
	m->fail[op].once = false;
	raw_spin_unlock_irqrestore(&m->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_fail);

/**
 * mock_fail_nth() - make one call of a method fail
 * @m: the mock
 * @op: the method
 * @n: which call from now, the first is 1
 * @ret: a negative errno
 */
void mock_fail_nth(struct mock *m, enum mock_op op, unsigned int n, int ret)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	m->fail[op].ret = ret;
	m->fail[op].after = n - 1;
	m->fail[op].once = true;
	raw_spin_unlock_irqrestore(&m->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_fail_nth);

/**
 * mock_fail_none() - end all failures set by mock_fail() and mock_fail_nth()
 * @m: the mock
 */
void mock_fail_none(struct mock *m)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	memset(m->fail, 0, sizeof(m->fail));
	raw_spin_unlock_irqrestore(&m->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_fail_none);

/**
 * mock_hold() - block all callers of a method, after the call was logged
 * @m: the mock
 * @op: the method, one that may sleep
 *
 * To be used once for each mock. The end of the device lets the callers go.
 */
void mock_hold(struct mock *m, enum mock_op op)
{
	WRITE_ONCE(m->held, op);
}
EXPORT_SYMBOL_GPL(mock_hold);

/**
 * mock_hold_end() - let the callers held by mock_hold() go, and hold no more
 * @m: the mock
 */
void mock_hold_end(struct mock *m)
{
	kvt_gate_open(&m->hold);
}
EXPORT_SYMBOL_GPL(mock_hold_end);

/**
 * mock_log_reset() - empty the log and the counts
 * @m: the mock
 */
void mock_log_reset(struct mock *m)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	m->ncalls = 0;
	memset(m->count, 0, sizeof(m->count));
	raw_spin_unlock_irqrestore(&m->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_log_reset);

/**
 * mock_calls() - number of calls of a method
 * @m: the mock
 * @op: the method
 *
 * Return: calls since mock_log_reset().
 */
unsigned int mock_calls(struct mock *m, enum mock_op op)
{
	return READ_ONCE(m->count[op]);
}
EXPORT_SYMBOL_GPL(mock_calls);

/**
 * mock_log_find() - find a call of a method in the log
 * @m: the mock
 * @op: the method
 * @from: number of the first entry to look at
 *
 * Return: the number of the first such entry, -1 if there is none.
 */
int mock_log_find(struct mock *m, enum mock_op op, unsigned int from)
{
	unsigned long flags;
	int found = -1;
	unsigned int i;

	raw_spin_lock_irqsave(&m->lock, flags);
	for (i = from; i < m->ncalls && found < 0; i++)
		if (m->calls[i].op == op)
			found = i;
	raw_spin_unlock_irqrestore(&m->lock, flags);
	return found;
}
EXPORT_SYMBOL_GPL(mock_log_find);

/**
 * mock_last() - get the last logged call of a method
 * @m: the mock
 * @op: the method
 * @call: where to copy the entry of the log
 *
 * Return: true if there was one.
 */
bool mock_last(struct mock *m, enum mock_op op, struct mock_call *call)
{
	unsigned long flags;
	bool found = false;
	unsigned int i;

	raw_spin_lock_irqsave(&m->lock, flags);
	for (i = m->ncalls; i && !found; i--) {
		if (m->calls[i - 1].op == op) {
			*call = m->calls[i - 1];
			found = true;
		}
	}
	raw_spin_unlock_irqrestore(&m->lock, flags);
	return found;
}
EXPORT_SYMBOL_GPL(mock_last);

/**
 * mock_event() - report an event, as the driver does
 * @m: the mock
 * @port: the port
 * @type: the event
 *
 * Context: any.
 */
void mock_event(struct mock *m, u32 port, enum ib_event_type type)
{
	struct ib_event event = { .device = m->ibdev, .element.port_num = port, .event = type };

	ib_dispatch_event(&event);
}
EXPORT_SYMBOL_GPL(mock_event);

/**
 * mock_events_flush() - wait until the core has handled the events of a device
 * @m: the mock
 *
 * Events that were queued before have been delivered on return, or put off for lack of
 * memory.
 *
 * Context: process.
 */
void mock_events_flush(struct mock *m)
{
	flush_work(&ib_priv(m->ibdev)->event_work);
}
EXPORT_SYMBOL_GPL(mock_events_flush);

/**
 * mock_event_is_taken() - whether the core has accepted an event of a port
 * @m: the mock; its log was reset before the event was dispatched
 *
 * For events that the core must not accept: if it did, the device's work item is pending
 * or running, or has called query_pkey.
 *
 * Context: process.
 * Return: true if the core is handling an event of the device, or has done so.
 */
bool mock_event_is_taken(struct mock *m)
{
	struct ib_device_priv *priv = ib_priv(m->ibdev);

	irq_work_sync(&priv->event_irq);
	return work_busy(&priv->event_work) || mock_calls(m, MOCK_query_pkey);
}
EXPORT_SYMBOL_GPL(mock_event_is_taken);

/**
 * mock_event_has_waited() - as if DEVICE_FATAL had been dispatched many times without memory
 * @m: the mock, for which it has been, and still waits
 * @times: how often
 */
void mock_event_has_waited(struct mock *m, int times)
{
	atomic_set(&ib_priv(m->ibdev)->fatal_reserve.waiting, times);
}
EXPORT_SYMBOL_GPL(mock_event_has_waited);

/**
 * mock_live() - count the objects that exist
 * @m: the mock
 *
 * Return: number of objects of all kinds that were created and not destroyed.
 */
int mock_live(struct mock *m)
{
	int i, n = 0;

	for (i = 0; i < MOCK_OBJ_NR; i++)
		n += atomic_read(&m->live[i]);
	return n;
}
EXPORT_SYMBOL_GPL(mock_live);

static struct mock *to_mock(const struct ib_device *ibdev)
{
	return container_of(ibdev, struct mock_ibdev, ibdev)->mock;
}

static int mock_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct mock *m = to_mock(ibdev);
	int ret = mock_enter(m, MOCK_query_device, ibdev, 0, 0);

	if (ret)
		return ret;
	attr->max_mr_size = SZ_1G;
	attr->page_size_cap = PAGE_SIZE;
	attr->vendor_id = 0x4d4f;
	attr->max_qp = 64;
	attr->max_qp_wr = MOCK_MAX_QP_WR;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS |
				 IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (!m->no_local_lkey)
		attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_send_sge = MOCK_MAX_SGE;
	attr->max_recv_sge = MOCK_MAX_SGE;
	attr->max_sge_rd = MOCK_MAX_SGE;
	attr->max_cq = 64;
	attr->max_cqe = MOCK_MAX_CQE;
	attr->max_mr = 64;
	attr->max_mw = 64;
	attr->max_fmr = 64;
	attr->max_map_per_fmr = MOCK_MAX_MAPS;
	attr->max_pd = 64;
	attr->max_qp_rd_atom = 8;
	attr->max_qp_init_rd_atom = 7;
	attr->max_ah = 64;
	attr->max_srq = 16;
	attr->max_srq_wr = MOCK_MAX_SRQ_WR;
	attr->max_srq_sge = MOCK_MAX_SRQ_SGE;
	attr->max_fast_reg_page_list_len = MOCK_MAX_PAGES;
	attr->max_pkeys = MOCK_PKEYS;
	if (m->fill)
		m->fill(attr);
	return 0;
}

static int mock_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct mock *m = to_mock(ibdev);
	int ret = mock_enter(m, MOCK_query_port, ibdev, port, 0);
	unsigned long flags;

	if (ret)
		return ret;
	if (m->is_switch ? port : port < 1 || port > m->nports)
		return -EINVAL;
	raw_spin_lock_irqsave(&m->lock, flags);
	*attr = m->port[port].attr;
	raw_spin_unlock_irqrestore(&m->lock, flags);
	return 0;
}

static int mock_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	struct mock *m = to_mock(ibdev);
	int ret = mock_enter(m, MOCK_get_port_immutable, ibdev, port, 0);

	if (ret)
		return ret;
	imm->pkey_tbl_len = m->port[port].attr.pkey_tbl_len;
	imm->gid_tbl_len = m->port[port].attr.gid_tbl_len;
	imm->core_cap_flags = m->eth ? RDMA_CORE_PORT_IBA_ROCE |
				       RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP :
				       RDMA_CORE_PORT_IBA_IB;
	imm->max_mad_size = MOCK_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer mock_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return to_mock(ibdev)->eth ? IB_LINK_LAYER_ETHERNET :
				     IB_LINK_LAYER_INFINIBAND;
}

static struct net_device *mock_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *ndev;

	/* If the netdev is taken from the port and unregistered, RCU keeps it for dev_hold(). */
	rcu_read_lock();
	ndev = READ_ONCE(to_mock(ibdev)->port[port].ndev);
	dev_hold(ndev);
	rcu_read_unlock();
	return ndev;
}

static int mock_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	struct mock *m = to_mock(ibdev);
	int ret = mock_enter(m, MOCK_query_gid, ibdev, port, index);

	if (ret)
		return ret;
	if (index < 0 || index >= m->port[port].attr.gid_tbl_len)
		return -EINVAL;
	*gid = m->port[port].gids[index];
	return 0;
}

static int mock_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	struct mock *m = to_mock(ibdev);
	int ret = mock_enter(m, MOCK_query_pkey, ibdev, port, index);

	if (ret)
		return ret;
	if (index >= m->port[port].attr.pkey_tbl_len)
		return -EINVAL;
	*pkey = m->port[port].pkeys[index];
	return 0;
}

static int mock_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct mock *m = to_mock(attr->device);
	struct mock_port *p = &m->port[attr->port_num];
	int ret = mock_enter(m, MOCK_add_gid, attr->device, attr->port_num, attr->index);

	if (ret)
		return ret;
	if (attr->index >= MOCK_GIDS || test_bit(attr->index, &p->valid))
		return -EINVAL;
	if (READ_ONCE(m->refusing) && attr->gid_type == IB_GID_TYPE_ROCE &&
	    !memcmp(&m->refused, &attr->gid, sizeof(attr->gid)))
		return -EXFULL;
	p->added[attr->index] = attr->gid;
	p->added_type[attr->index] = attr->gid_type;
	set_bit(attr->index, &p->valid);
	*context = p;
	return 0;
}

static int mock_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct mock *m = to_mock(attr->device);
	struct mock_port *p = &m->port[attr->port_num];
	int ret = mock_enter(m, MOCK_del_gid, attr->device, attr->port_num, attr->index);

	if (ret)
		return ret;
	if (attr->index >= MOCK_GIDS || !test_and_clear_bit(attr->index, &p->valid))
		return -EINVAL;
	*context = NULL;
	return 0;
}

/**
 * mock_eth_methods() - set the methods of a device with Ethernet ports
 * @ops: methods of the device, whose mock.eth must be set, too
 * @get_netdev: the device has get_netdev, which returns mock_port.ndev; else the ports get
 *	their network devices by ib_device_set_netdev()
 */
void mock_eth_methods(struct ib_device_ops *ops, bool get_netdev)
{
	ops->add_gid = mock_add_gid;
	ops->del_gid = mock_del_gid;
	ops->get_netdev = get_netdev ? mock_get_netdev : NULL;
}
EXPORT_SYMBOL_GPL(mock_eth_methods);

static int mock_iwarp_port_immutable(struct ib_device *ibdev, u32 port,
				     struct ib_port_immutable *imm)
{
	imm->gid_tbl_len = 1;
	imm->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

/**
 * mock_iwarp_methods() - set the methods of a device with iWARP ports
 * @ops: methods of the device, whose mock.eth must not be set
 * @get_netdev: as in mock_eth_methods()
 */
void mock_iwarp_methods(struct ib_device_ops *ops, bool get_netdev)
{
	ops->get_port_immutable = mock_iwarp_port_immutable;
	ops->get_netdev = get_netdev ? mock_get_netdev : NULL;
}
EXPORT_SYMBOL_GPL(mock_iwarp_methods);

static int mock_enable_driver(struct ib_device *ibdev)
{
	return mock_enter(to_mock(ibdev), MOCK_enable_driver, ibdev, 0, 0);
}

/* The core frees the device after this, so the mock must not unregister or free it. */
static void mock_dealloc_driver(struct ib_device *ibdev)
{
	struct mock *m = to_mock(ibdev);

	mock_enter(m, MOCK_dealloc_driver, ibdev, 0, 0);
	m->ibdev = NULL;
	m->registered = false;
}

/**
 * mock_dealloc_by_core() - choose whether the core or the mock frees the device
 * @m: the mock, before mock_alloc()
 * @yes: the driver has a dealloc_driver method, so that unregistering frees the device
 */
void mock_dealloc_by_core(struct mock *m, bool yes)
{
	m->ops.dealloc_driver = yes ? mock_dealloc_driver : NULL;
}
EXPORT_SYMBOL_GPL(mock_dealloc_by_core);

static void mock_device_methods(struct ib_device_ops *ops)
{
	ops->owner = THIS_MODULE;
	ops->driver_id = RDMA_DRIVER_UNKNOWN;
	ops->query_device = mock_query_device;
	ops->query_port = mock_query_port;
	ops->get_port_immutable = mock_get_port_immutable;
	ops->get_link_layer = mock_get_link_layer;
	ops->query_gid = mock_query_gid;
	ops->query_pkey = mock_query_pkey;
	ops->enable_driver = mock_enable_driver;
}

/* The first GIDs and P_Keys differ by port and index, so that a mix-up shows. */
static void mock_port_init(struct mock *m, u32 port)
{
	struct mock_port *p = &m->port[port];
	int i;

	p->attr.state = IB_PORT_ACTIVE;
	p->attr.phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	p->attr.max_mtu = IB_MTU_4096;
	p->attr.active_mtu = IB_MTU_2048;
	p->attr.gid_tbl_len = MOCK_GIDS;
	p->attr.pkey_tbl_len = MOCK_PKEYS;
	p->attr.max_msg_sz = SZ_2G;
	p->attr.lid = 0x10 + port;
	p->attr.sm_lid = 1;
	p->attr.active_width = IB_WIDTH_4X;
	p->attr.active_speed = IB_SPEED_EDR;
	p->attr.subnet_prefix = 0xfe80000000000000ULL;
	for (i = 0; i < 2; i++) {
		p->gids[i].global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
		p->gids[i].global.interface_id =
			cpu_to_be64(0x0200000000000000ULL + (port << 8) + i);
	}
	p->pkeys[0] = 0xffff;
	p->pkeys[1] = 0x8000 + port;
}

/**
 * mock_new() - make a mock whose device does not exist yet
 * @test: the running case
 *
 * The case may change the mock's ops, nports and the like before mock_alloc().
 *
 * Return: the mock; it and its device are freed when the case ends.
 */
struct mock *mock_new(struct kunit *test)
{
	struct mock *m = kvt_zalloc(test, sizeof(*m));
	u32 port;

	raw_spin_lock_init(&m->lock);
	m->held = MOCK_OP_NR;
	kvt_gate_init(&m->hold);
	atomic_set(&m->next_key, 0x100);
	m->nports = 1;
	for (port = 0; port <= MOCK_MAX_PORTS; port++)
		mock_port_init(m, port);
	mock_object_methods(&m->ops);
	mock_memory_methods(&m->ops);
	mock_device_methods(&m->ops);
	mock_cq_methods(&m->ops);
	mock_ca_methods(&m->ops);
	return m;
}
EXPORT_SYMBOL_GPL(mock_new);

/**
 * mock_unregister() - unregister the device
 * @m: the mock
 *
 * With a dealloc_driver method the device is freed, too.
 */
void mock_unregister(struct mock *m)
{
	if (!m->registered)
		return;
	m->registered = false;
	if (m->ibdev)
		ib_unregister_device(m->ibdev);
}
EXPORT_SYMBOL_GPL(mock_unregister);

/**
 * mock_dealloc() - free the device
 * @m: the mock, not registered
 */
void mock_dealloc(struct mock *m)
{
	struct ib_device *ibdev = m->ibdev;

	m->ibdev = NULL;
	if (ibdev)
		ib_dealloc_device(ibdev);
}
EXPORT_SYMBOL_GPL(mock_dealloc);

static void mock_end(void *arg)
{
	struct mock *m = arg;

	mock_hold_end(m);
	mock_unregister(m);
	mock_dealloc(m);
	platform_device_unregister(m->pdev);
}

static void mock_make_dma_device(struct kunit *test, struct mock *m)
{
	const struct platform_device_info info = {
		.name = "kvt_mock",
		.id = PLATFORM_DEVID_AUTO,
		.dma_mask = DMA_BIT_MASK(64),
	};

	m->pdev = platform_device_register_full(&info);
	if (IS_ERR(m->pdev))
		m->pdev = NULL;
	KUNIT_EXPECT_NOT_NULL(test, m->pdev);
	if (!m->pdev)
		return;
	/* What plays the device is a CPU. */
	device_lock(&m->pdev->dev);
	kv_set_dma_coherent(&m->pdev->dev);
	device_unlock(&m->pdev->dev);
}

/**
 * mock_free() - free the device and the mock before the case ends
 * @test: the running case
 * @m: the mock
 */
void mock_free(struct kunit *test, struct mock *m)
{
	kunit_release_action(test, mock_end, m);
	kunit_kfree(test, m);
}
EXPORT_SYMBOL_GPL(mock_free);

/**
 * mock_alloc() - allocate the device
 * @test: the running case
 * @m: the mock, from mock_new()
 */
void mock_alloc(struct kunit *test, struct mock *m)
{
	struct mock_ibdev *mib = KVT_PTR(test, ib_alloc_device(mock_ibdev, ibdev));

	if (m->dma)
		mock_make_dma_device(test, m);
	mib->mock = m;
	m->ibdev = &mib->ibdev;
	if (m->eth)
		mock_eth_methods(&m->ops, true);
	ib_set_device_ops(&mib->ibdev, &m->ops);
	mib->ibdev.node_type = m->is_switch ? RDMA_NODE_IB_SWITCH :
					      RDMA_NODE_IB_CA;
	mib->ibdev.is_switch = m->is_switch;
	mib->ibdev.phys_port_cnt = m->nports;
	mib->ibdev.num_comp_vectors = num_online_cpus();
	mib->ibdev.node_guid = cpu_to_be64(0x02004d4f434b0000ULL);
	if (!m->no_local_lkey)
		mib->ibdev.local_dma_lkey = MOCK_LKEY;
	kvt_defer(test, mock_end, m);
}
EXPORT_SYMBOL_GPL(mock_alloc);

/**
 * mock_register() - register the device with the core
 * @m: the mock
 * @name: a name or a pattern with %d
 *
 * Return: what ib_register_device() returned.
 */
int mock_register(struct mock *m, const char *name)
{
	int ret = ib_register_device(m->ibdev, name, m->pdev ? &m->pdev->dev : NULL);

	m->registered = !ret;
	return ret;
}
EXPORT_SYMBOL_GPL(mock_register);

/**
 * mock_up() - make and register a device with one InfiniBand port
 * @test: the running case
 * @name: a name or a pattern with %d
 *
 * Return: the mock, with an empty log.
 */
struct mock *mock_up(struct kunit *test, const char *name)
{
	struct mock *m = mock_new(test);

	mock_start(test, m, name);
	mock_log_reset(m);
	return m;
}
EXPORT_SYMBOL_GPL(mock_up);

/**
 * mock_up_umem() - make and register a device that has the methods of mock_by_umem()
 * @test: the running case
 * @name: a name or a pattern with %d
 *
 * Return: the mock, with an empty log.
 */
struct mock *mock_up_umem(struct kunit *test, const char *name)
{
	struct mock *m = mock_new(test);

	mock_by_umem(m);
	mock_start(test, m, name);
	mock_log_reset(m);
	return m;
}
EXPORT_SYMBOL_GPL(mock_up_umem);

/**
 * mock_up_eth() - make and register a device with one Ethernet port
 * @test: the running case
 * @name: a name or a pattern with %d
 * @ndev: the port's network device or NULL
 *
 * Return: the mock; its log holds the calls of registration, with the GIDs added.
 */
struct mock *mock_up_eth(struct kunit *test, const char *name, struct net_device *ndev)
{
	struct mock *m = mock_new(test);

	m->eth = true;
	m->port[1].ndev = ndev;
	mock_start(test, m, name);
	return m;
}
EXPORT_SYMBOL_GPL(mock_up_eth);

/**
 * mock_exists() - whether the core finds a device by its name
 * @name: the name
 *
 * Return: true if it does.
 */
bool mock_exists(const char *name)
{
	struct ib_device *ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);

	if (ibdev)
		ib_device_put(ibdev);
	return ibdev;
}
EXPORT_SYMBOL_GPL(mock_exists);

/**
 * mock_of() - get the mock of a device
 * @ibdev: any device
 *
 * Return: the mock, NULL if the device is not a mock's.
 */
struct mock *mock_of(const struct ib_device *ibdev)
{
	if (ibdev->ops.query_device != mock_query_device)
		return NULL;
	return to_mock(ibdev);
}
EXPORT_SYMBOL_GPL(mock_of);
