// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator.
 *
 * A port that is set to be the subnet manager's has one, struct emu_sa, until that is undone or
 * its device is removed. The MAD layer first passes each MAD that queue pair 1 of the port receives
 * to emu_process_mad(), in process context, and sends the answer. There is no real subnet manager,
 * and no queue pair 0: ports get their LIDs from configfs.
 *
 * Records belong to the port that has asked for them: its memberships and services, with all
 * administrators, are in port->sa_joins and port->sa_services, at most EMU_SA_MAX_RECORDS. They
 * are freed when the port withdraws them, goes down or is removed, or when the administrator ends.
 * A group is freed with its last member. A port can act for itself only: the GID in a MAD must be
 * that of the port with the LID from which the MAD came, and the fabric fills in that LID. So one
 * port cannot change the records of others, and a MAD looks at each group at most once.
 *
 * Lock protocol: emu_sa_lock, a mutex, guards all of that, and port->sa. It is taken before the
 * locks of ports and of the fabric. A port is removed from the fabric before emu_sa_exit() takes
 * the lock, so whoever holds it may use each port that it finds in the fabric until it releases
 * the lock.
 */
#include <linux/slab.h>

#include "sa.h"

/* 4.096 us * 2^n: about a second, which is what subnet managers report. */
#define EMU_SA_RESP_TIME	18

DEFINE_MUTEX(emu_sa_lock);

/**
 * struct emu_sa_method - a kind of request that an administrator answers
 * @attr: attribute of the MAD
 * @method: its method
 * @size: bytes of the attribute's record
 * @answer: the function, which is called under emu_sa_lock
 */
struct emu_sa_method {
	u16 attr;
	u8 method;
	u8 size;
	enum emu_sa_status (*answer)(struct emu_sa_request *rq);
};

/* Returns the port that has a GID, or NULL. emu_sa_lock keeps the port. */
struct emu_port *emu_sa_port_of_gid(const union ib_gid *gid)
{
	struct emu_port *port;

	lockdep_assert_held(&emu_sa_lock);
	rcu_read_lock();
	port = emu_fabric_find_ib_gid(gid);
	rcu_read_unlock();
	return port;
}

/* Returns the port that has a LID, or NULL. emu_sa_lock keeps the port. */
struct emu_port *emu_sa_port_of_lid(__be16 lid)
{
	struct emu_port *port;

	lockdep_assert_held(&emu_sa_lock);
	rcu_read_lock();
	port = emu_fabric_find_lid(be16_to_cpu(lid));
	rcu_read_unlock();
	return port;
}

/*
 * Returns the port that sent a MAD, or NULL if it does not have @gid, or has gone down meanwhile:
 * in that case its records are about to be dropped, and a new one might be left behind.
 */
struct emu_port *emu_sa_requester(const struct emu_sa_request *rq, const union ib_gid *gid)
{
	struct emu_port *port = emu_sa_port_of_gid(gid);

	return port && READ_ONCE(port->lid) == rq->slid &&
	       READ_ONCE(port->state) == IB_PORT_ACTIVE ? port : NULL;
}

/* Whether a port can communicate with ports that have @pkey. */
bool emu_sa_hears(const struct emu_port *port, u16 pkey)
{
	u32 i;

	for (i = 0; i < EMU_PKEY_TBL_LEN; i++) {
		if (emu_pkeys_match(emu_port_pkey(port, i), pkey))
			return true;
	}
	return false;
}

static enum emu_sa_status emu_sa_get_info(struct emu_sa_request *rq)
{
	struct ib_class_port_info *info = &rq->rec.info;

	memset(info, 0, sizeof(*info));
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = IB_SA_CLASS_VERSION;
	ib_set_cpi_capmask2(info, IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT);
	ib_set_cpi_resp_time(info, EMU_SA_RESP_TIME);
	return EMU_SA_OK;
}

static const struct emu_sa_method emu_sa_methods[] = {
	{ IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, sizeof(struct ib_class_port_info),
	  emu_sa_get_info },
	{ IB_SA_ATTR_PATH_REC, IB_MGMT_METHOD_GET, sizeof(struct emu_sa_path_rec),
	  emu_sa_get_path },
	{ IB_SA_ATTR_MC_MEMBER_REC, IB_MGMT_METHOD_GET, sizeof(struct emu_sa_mcmember_rec),
	  emu_sa_get_group },
	{ IB_SA_ATTR_MC_MEMBER_REC, IB_MGMT_METHOD_SET, sizeof(struct emu_sa_mcmember_rec),
	  emu_sa_join },
	{ IB_SA_ATTR_MC_MEMBER_REC, IB_SA_METHOD_DELETE, sizeof(struct emu_sa_mcmember_rec),
	  emu_sa_leave },
	{ IB_SA_ATTR_SERVICE_REC, IB_MGMT_METHOD_GET, sizeof(struct emu_sa_service_rec),
	  emu_sa_get_service },
	{ IB_SA_ATTR_SERVICE_REC, IB_MGMT_METHOD_SET, sizeof(struct emu_sa_service_rec),
	  emu_sa_add_service },
	{ IB_SA_ATTR_SERVICE_REC, IB_SA_METHOD_DELETE, sizeof(struct emu_sa_service_rec),
	  emu_sa_del_service },
};

static const struct emu_sa_method *emu_sa_find_method(const struct ib_mad_hdr *hdr)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(emu_sa_methods); i++) {
		if (cpu_to_be16(emu_sa_methods[i].attr) == hdr->attr_id &&
		    emu_sa_methods[i].method == hdr->method)
			return &emu_sa_methods[i];
	}
	return NULL;
}

/* Whether the sender waits for an answer: IBTA vol. 1, 13.4.5. */
static bool emu_sa_wants_answer(const struct ib_mad_hdr *hdr)
{
	switch (hdr->method) {
	case IB_MGMT_METHOD_SEND:
	case IB_MGMT_METHOD_TRAP:
	case IB_MGMT_METHOD_REPORT:
	case IB_MGMT_METHOD_TRAP_REPRESS:
		return false;
	default:
		return !(hdr->method & IB_MGMT_METHOD_RESP);
	}
}

/*
 * Checks that a request is well-formed, and of a kind that is answered. Requests of several
 * segments are not: the methods that have these are not supported.
 */
static enum emu_sa_status emu_sa_check_mad(const struct ib_sa_mad *mad)
{
	const struct ib_mad_hdr *hdr = &mad->mad_hdr;

	if (hdr->base_version != IB_MGMT_BASE_VERSION ||
	    hdr->class_version != IB_SA_CLASS_VERSION)
		return EMU_SA_BAD_VERSION;
	if (!emu_sa_find_method(hdr) || (mad->rmpp_hdr.rmpp_rtime_flags & IB_MGMT_RMPP_FLAG_ACTIVE))
		return EMU_SA_UNSUPPORTED;
	return EMU_SA_OK;
}

/* Turns @out, which is a copy of the request @in, into the answer. Under emu_sa_lock. */
static void emu_sa_answer_mad(struct emu_sa *sa, u16 slid, const struct ib_sa_mad *in,
			      struct ib_sa_mad *out)
{
	enum emu_sa_status status = emu_sa_check_mad(in);
	const struct emu_sa_method *method = emu_sa_find_method(&in->mad_hdr);
	struct emu_sa_request rq = {
		.sa = sa, .slid = slid, .mask = in->sa_hdr.comp_mask,
	};

	lockdep_assert_held(&emu_sa_lock);
	if (status == EMU_SA_OK) {
		memcpy(&rq.rec, in->data, method->size);
		status = method->answer(&rq);
	}
	out->mad_hdr.status = cpu_to_be16(status);
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	else
		out->mad_hdr.method |= IB_MGMT_METHOD_RESP;
	if (status != EMU_SA_OK)
		return;
	memset(out->data, 0, sizeof(out->data));
	memcpy(out->data, &rq.rec, method->size);
	out->sa_hdr.attr_offset = cpu_to_be16(DIV_ROUND_UP(method->size, 8));
}

/**
 * emu_process_mad() - answer a MAD that an InfiniBand port has received, if it is for us
 * @ibdev: the device
 * @flags: not used
 * @port_num: the port
 * @wc: completion of the receive; NULL if the MAD comes from this machine's own sysfs
 * @grh: not used
 * @in: the MAD
 * @out: room for the answer
 * @out_size: bytes of @in, and of the answer
 * @pkey_index: not used
 *
 * Context: Process, may sleep.
 * Return: a set of &enum ib_mad_result; SUCCESS alone if the MAD is for others.
 */
int emu_process_mad(struct ib_device *ibdev, int flags, u32 port_num, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *pkey_index)
{
	struct emu_port *port = emu_port(ibdev, port_num);
	int ret = IB_MAD_RESULT_SUCCESS;

	BUILD_BUG_ON(sizeof(struct ib_sa_mad) != sizeof(struct ib_mad));
	if (!wc || *out_size < sizeof(struct ib_mad) ||
	    in->mad_hdr.mgmt_class != IB_MGMT_CLASS_SUBN_ADM)
		return ret;
	/* After a short MAD, the buffer still has data of an earlier one, sent by others. */
	if (wc->byte_len != sizeof(struct ib_grh) + sizeof(*in))
		return ret | IB_MAD_RESULT_CONSUMED;
	mutex_lock(&emu_sa_lock);
	if (port->sa && !(in->mad_hdr.method & IB_MGMT_METHOD_RESP)) {
		ret |= IB_MAD_RESULT_CONSUMED;
		if (emu_sa_wants_answer(&in->mad_hdr)) {
			memcpy(out, in, sizeof(*out));
			emu_sa_answer_mad(port->sa, wc->slid, (const struct ib_sa_mad *)in,
					  (struct ib_sa_mad *)out);
			ret = IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
		}
	}
	mutex_unlock(&emu_sa_lock);
	return ret;
}

/* --- the life of administrators, and of what they keep -------------------------------- */

static void emu_sa_drop_port_records(struct emu_port *port)
{
	lockdep_assert_held(&emu_sa_lock);
	emu_sa_drop_joins(port);
	emu_sa_drop_services_of(port);
}

/*
 * Drops the records of a port that went down, unless it is up again: then it has asked for them
 * again already, or is about to.
 */
static void emu_sa_down_work(struct work_struct *work)
{
	struct emu_port *port = container_of(work, struct emu_port, sa_down);

	mutex_lock(&emu_sa_lock);
	if (READ_ONCE(port->state) != IB_PORT_ACTIVE)
		emu_sa_drop_port_records(port);
	mutex_unlock(&emu_sa_lock);
}

/*
 * Has the records of a port dropped that is not active any more. Any context but NMI. The work is
 * unbound, because the caller may keep its CPU busy.
 */
void emu_sa_port_down(struct emu_port *port)
{
	queue_work(system_unbound_wq, &port->sa_down);
}

/* Must be called before the port is in the fabric. */
void emu_sa_init(struct emu_port *port)
{
	INIT_LIST_HEAD(&port->sa_joins);
	INIT_LIST_HEAD(&port->sa_services);
	INIT_WORK(&port->sa_down, emu_sa_down_work);
}

static void emu_sa_start(struct emu_port *port)
{
	struct emu_sa *sa = kzalloc(sizeof(*sa), GFP_KERNEL);

	lockdep_assert_held(&emu_sa_lock);
	if (!sa)
		return;
	xa_init_flags(&sa->groups, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&sa->services);
	WRITE_ONCE(port->sa, sa);
}

static void emu_sa_stop(struct emu_port *port)
{
	struct emu_sa *sa = port->sa;

	lockdep_assert_held(&emu_sa_lock);
	WRITE_ONCE(port->sa, NULL);
	emu_sa_drop_groups(sa);
	emu_sa_drop_services(sa);
	xa_destroy(&sa->groups);
	kfree(sa);
}

/**
 * emu_sa_set() - start or stop the subnet administrator of a port
 * @port: InfiniBand port
 * @on: whether the port is to have one
 *
 * Context: Process.
 * Return: 1 if that is a change, 0 if not, or -ENOMEM.
 */
int emu_sa_set(struct emu_port *port, bool on)
{
	int ret = 0;

	mutex_lock(&emu_sa_lock);
	if (on && !port->sa) {
		emu_sa_start(port);
		ret = port->sa ? 1 : -ENOMEM;
	} else if (!on && port->sa) {
		emu_sa_stop(port);
		ret = 1;
	}
	mutex_unlock(&emu_sa_lock);
	return ret;
}

/*
 * Must be called after the port was removed from the fabric, and went down for the last time.
 * Process context.
 */
void emu_sa_exit(struct emu_port *port)
{
	cancel_work_sync(&port->sa_down);
	mutex_lock(&emu_sa_lock);
	if (port->sa)
		emu_sa_stop(port);
	emu_sa_drop_port_records(port);
	mutex_unlock(&emu_sa_lock);
}
