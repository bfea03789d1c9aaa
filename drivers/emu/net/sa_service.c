// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator: services, IBTA vol. 1, 15.2.5.14. A service is identified by its ID,
 * its port's GID and its P_Key, and is dropped when its lease has expired.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "sa.h"

/* The fields that identify a service. Others can be asked for as well, but not the data. */
#define EMU_SA_SERVICE_FIELDS						\
	(IB_SA_SERVICE_REC_SERVICE_ID | IB_SA_SERVICE_REC_SERVICE_GID |	\
	 IB_SA_SERVICE_REC_SERVICE_PKEY)

/**
 * struct emu_sa_service - a service
 * @in_sa: in sa->services
 * @in_port: in port->sa_services
 * @port: the port that has registered it
 * @rec: the record
 * @end: when its lease ends, in seconds since the machine started
 */
struct emu_sa_service {
	struct list_head in_sa;
	struct list_head in_port;
	struct emu_port *port;
	struct emu_sa_service_rec rec;
	time64_t end;
};

static void emu_sa_free_service(struct emu_sa_service *service)
{
	lockdep_assert_held(&emu_sa_lock);
	list_del(&service->in_sa);
	list_del(&service->in_port);
	service->port->sa_records--;
	kfree(service);
}

/* Frees all services of an administrator. */
void emu_sa_drop_services(struct emu_sa *sa)
{
	struct emu_sa_service *service, *next;

	list_for_each_entry_safe(service, next, &sa->services, in_sa)
		emu_sa_free_service(service);
}

/* Frees all services that a port has registered. */
void emu_sa_drop_services_of(struct emu_port *port)
{
	struct emu_sa_service *service, *next;

	list_for_each_entry_safe(service, next, &port->sa_services, in_port)
		emu_sa_free_service(service);
}

static void emu_sa_drop_expired(struct emu_sa *sa)
{
	time64_t now = ktime_get_boottime_seconds();
	struct emu_sa_service *service, *next;

	list_for_each_entry_safe(service, next, &sa->services, in_sa) {
		if (service->end <= now)
			emu_sa_free_service(service);
	}
}

static bool emu_sa_service_matches(const struct emu_sa_service *service, ib_sa_comp_mask mask,
				   const struct emu_sa_service_rec *rec)
{
	const struct emu_sa_service_rec *have = &service->rec;

	return !((mask & IB_SA_SERVICE_REC_SERVICE_ID) && have->id != rec->id) &&
	       !((mask & IB_SA_SERVICE_REC_SERVICE_GID) &&
		 memcmp(&have->gid, &rec->gid, sizeof(rec->gid))) &&
	       !((mask & IB_SA_SERVICE_REC_SERVICE_PKEY) && have->pkey != rec->pkey) &&
	       !((mask & IB_SA_SERVICE_REC_SERVICE_KEY) &&
		 memcmp(have->key, rec->key, sizeof(rec->key))) &&
	       !((mask & IB_SA_SERVICE_REC_SERVICE_NAME) &&
		 memcmp(have->name, rec->name, sizeof(rec->name)));
}

/* Returns the first match after @from, or the first one of all if that is NULL; or NULL. */
static struct emu_sa_service *emu_sa_find_service(struct emu_sa *sa, ib_sa_comp_mask mask,
						  const struct emu_sa_service_rec *rec,
						  struct emu_sa_service *from)
{
	struct emu_sa_service *service = from ?: list_entry(&sa->services, typeof(*from), in_sa);

	list_for_each_entry_continue(service, &sa->services, in_sa) {
		if (emu_sa_service_matches(service, mask, rec))
			return service;
	}
	return NULL;
}

/* Checks a request to add or delete a service; *@port is the port that it is for. */
static enum emu_sa_status emu_sa_check_service(struct emu_sa_request *rq, struct emu_port **port)
{
	const struct emu_sa_service_rec *rec = &rq->rec.service;

	if ((rq->mask & EMU_SA_SERVICE_FIELDS) != EMU_SA_SERVICE_FIELDS)
		return EMU_SA_INSUFFICIENT;
	*port = emu_sa_requester(rq, &rec->gid);
	if (!*port)
		return EMU_SA_INVALID_GID;
	if (!emu_sa_hears(*port, be16_to_cpu(rec->pkey) | EMU_PKEY_FULL))
		return EMU_SA_REQ_INVALID;
	emu_sa_drop_expired(rq->sa);
	return EMU_SA_OK;
}

/* Finds the service that the request identifies. */
static struct emu_sa_service *emu_sa_find_exact_service(struct emu_sa_request *rq)
{
	return emu_sa_find_service(rq->sa, EMU_SA_SERVICE_FIELDS, &rq->rec.service, NULL);
}

/* Whether the request has the service's key, without which the service cannot be changed. */
static bool emu_sa_service_has_key(const struct emu_sa_service *service,
				   const struct emu_sa_service_rec *rec)
{
	return !memcmp(service->rec.key, rec->key, sizeof(rec->key));
}

static enum emu_sa_status emu_sa_new_service(struct emu_sa *sa, struct emu_port *port,
					     struct emu_sa_service **made)
{
	struct emu_sa_service *service;

	service = port->sa_records < EMU_SA_MAX_RECORDS ? kzalloc(sizeof(*service), GFP_KERNEL) :
							  NULL;
	if (!service)
		return EMU_SA_NO_RESOURCES;
	service->port = port;
	list_add_tail(&service->in_sa, &sa->services);
	list_add_tail(&service->in_port, &port->sa_services);
	port->sa_records++;
	*made = service;
	return EMU_SA_OK;
}

/* Registers a service, or replaces the record of one that is registered already. */
enum emu_sa_status emu_sa_add_service(struct emu_sa_request *rq)
{
	struct emu_sa_service_rec *rec = &rq->rec.service;
	struct emu_sa_service *service;
	enum emu_sa_status status;
	struct emu_port *port;

	if (!(rq->mask & IB_SA_SERVICE_REC_SERVICE_LEASE))
		rec->lease = cpu_to_be32(IB_DEFAULT_SERVICE_LEASE);
	status = emu_sa_check_service(rq, &port);
	if (status != EMU_SA_OK)
		return status;
	service = emu_sa_find_exact_service(rq);
	/* The GID was another port's before, which has lost it, and cannot delete the service. */
	if (service && service->port != port) {
		emu_sa_free_service(service);
		service = NULL;
	}
	if (service && !emu_sa_service_has_key(service, rec))
		return EMU_SA_REQ_INVALID;
	if (!service)
		status = emu_sa_new_service(rq->sa, port, &service);
	if (status != EMU_SA_OK)
		return status;
	service->rec = *rec;
	service->end = rec->lease == cpu_to_be32(IB_DEFAULT_SERVICE_LEASE) ? TIME64_MAX :
		       ktime_get_boottime_seconds() + be32_to_cpu(rec->lease);
	return EMU_SA_OK;
}

enum emu_sa_status emu_sa_del_service(struct emu_sa_request *rq)
{
	struct emu_sa_service *service;
	enum emu_sa_status status;
	struct emu_port *port;

	status = emu_sa_check_service(rq, &port);
	if (status != EMU_SA_OK)
		return status;
	service = emu_sa_find_exact_service(rq);
	if (!service)
		return EMU_SA_NO_RECORDS;
	if (service->port != port || !emu_sa_service_has_key(service, &rq->rec.service))
		return EMU_SA_REQ_INVALID;
	rq->rec.service = service->rec;
	emu_sa_free_service(service);
	return EMU_SA_OK;
}

/* Answers with the one service that matches the request. Its key is not disclosed. */
enum emu_sa_status emu_sa_get_service(struct emu_sa_request *rq)
{
	struct emu_sa_service *service;
	time64_t left;

	emu_sa_drop_expired(rq->sa);
	service = emu_sa_find_service(rq->sa, rq->mask, &rq->rec.service, NULL);
	if (!service)
		return EMU_SA_NO_RECORDS;
	if (emu_sa_find_service(rq->sa, rq->mask, &rq->rec.service, service))
		return EMU_SA_TOO_MANY;
	rq->rec.service = service->rec;
	memset(rq->rec.service.key, 0, sizeof(rq->rec.service.key));
	if (service->end != TIME64_MAX) {
		left = service->end - ktime_get_boottime_seconds();
		rq->rec.service.lease = cpu_to_be32(max(left, 0LL));
	}
	return EMU_SA_OK;
}
