// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of events and completion statuses, rate conversions, and messages
 * that begin with the device they are about. Nothing here has state.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <rdma/ib_verbs.h>

#include "device_priv.h"
#include "export.h"

static const char * const event_names[] = {
	[IB_EVENT_CQ_ERR]		= "CQ error",
	[IB_EVENT_QP_FATAL]		= "QP fatal error",
	[IB_EVENT_QP_REQ_ERR]		= "QP request error",
	[IB_EVENT_QP_ACCESS_ERR]	= "QP access error",
	[IB_EVENT_COMM_EST]		= "communication established",
	[IB_EVENT_SQ_DRAINED]		= "send queue drained",
	[IB_EVENT_PATH_MIG]		= "path migrated",
	[IB_EVENT_PATH_MIG_ERR]		= "path migration error",
	[IB_EVENT_DEVICE_FATAL]		= "device fatal error",
	[IB_EVENT_PORT_ACTIVE]		= "port active",
	[IB_EVENT_PORT_ERR]		= "port error",
	[IB_EVENT_LID_CHANGE]		= "LID change",
	[IB_EVENT_PKEY_CHANGE]		= "P_Key change",
	[IB_EVENT_SM_CHANGE]		= "SM change",
	[IB_EVENT_SRQ_ERR]		= "SRQ error",
	[IB_EVENT_SRQ_LIMIT_REACHED]	= "SRQ limit reached",
	[IB_EVENT_QP_LAST_WQE_REACHED]	= "last WQE reached",
	[IB_EVENT_CLIENT_REREGISTER]	= "client reregister",
	[IB_EVENT_GID_CHANGE]		= "GID change",
	[IB_EVENT_WQ_FATAL]		= "WQ fatal error",
};

static const char * const wc_status_names[] = {
	[IB_WC_SUCCESS]			= "success",
	[IB_WC_LOC_LEN_ERR]		= "local length error",
	[IB_WC_LOC_QP_OP_ERR]		= "local QP operation error",
	[IB_WC_LOC_EEC_OP_ERR]		= "local EE context operation error",
	[IB_WC_LOC_PROT_ERR]		= "local protection error",
	[IB_WC_WR_FLUSH_ERR]		= "WR flushed",
	[IB_WC_MW_BIND_ERR]		= "memory management operation error",
	[IB_WC_BAD_RESP_ERR]		= "bad response error",
	[IB_WC_LOC_ACCESS_ERR]		= "local access error",
	[IB_WC_REM_INV_REQ_ERR]		= "remote invalid request error",
	[IB_WC_REM_ACCESS_ERR]		= "remote access error",
	[IB_WC_REM_OP_ERR]		= "remote operation error",
	[IB_WC_RETRY_EXC_ERR]		= "transport retry counter exceeded",
	[IB_WC_RNR_RETRY_EXC_ERR]	= "RNR retry counter exceeded",
	[IB_WC_LOC_RDD_VIOL_ERR]	= "local RDD violation error",
	[IB_WC_REM_INV_RD_REQ_ERR]	= "remote invalid RD request",
	[IB_WC_REM_ABORT_ERR]		= "operation aborted",
	[IB_WC_INV_EECN_ERR]		= "invalid EE context number",
	[IB_WC_INV_EEC_STATE_ERR]	= "invalid EE context state",
	[IB_WC_FATAL_ERR]		= "fatal error",
	[IB_WC_RESP_TIMEOUT_ERR]	= "response timeout error",
	[IB_WC_GENERAL_ERR]		= "general error",
};

/*
 * By enum ib_rate: multiple of the base rate of 2.5 Gbps, rounded, as old
 * devices express the static rate; and data rate before encoding in Mbps.
 */
static const struct {
	u16 mult;
	u32 mbps;
} rates[] = {
	[IB_RATE_2_5_GBPS]	= {   1,   2500 },
	[IB_RATE_5_GBPS]	= {   2,   5000 },
	[IB_RATE_10_GBPS]	= {   4,  10000 },
	[IB_RATE_20_GBPS]	= {   8,  20000 },
	[IB_RATE_30_GBPS]	= {  12,  30000 },
	[IB_RATE_40_GBPS]	= {  16,  40000 },
	[IB_RATE_60_GBPS]	= {  24,  60000 },
	[IB_RATE_80_GBPS]	= {  32,  80000 },
	[IB_RATE_120_GBPS]	= {  48, 120000 },
	[IB_RATE_14_GBPS]	= {   6,  14062 },
	[IB_RATE_56_GBPS]	= {  22,  56250 },
	[IB_RATE_112_GBPS]	= {  45, 112500 },
	[IB_RATE_168_GBPS]	= {  67, 168750 },
	[IB_RATE_25_GBPS]	= {  10,  25781 },
	[IB_RATE_100_GBPS]	= {  40, 103125 },
	[IB_RATE_200_GBPS]	= {  80, 206250 },
	[IB_RATE_300_GBPS]	= { 120, 309375 },
	[IB_RATE_28_GBPS]	= {  11,  28125 },
	[IB_RATE_50_GBPS]	= {  20,  53125 },
	[IB_RATE_400_GBPS]	= { 160, 425000 },
	[IB_RATE_600_GBPS]	= { 240, 637500 },
	[IB_RATE_800_GBPS]	= { 320, 850000 },
};

/**
 * ib_event_msg() - name of an asynchronous event
 * @event: the event
 *
 * Context: Any.
 * Return: a constant string, even for values that are no event.
 */
const char *__attribute_const__ ib_event_msg(enum ib_event_type event)
{
	size_t index = event;

	return index < ARRAY_SIZE(event_names) ? event_names[index] :
						 "unrecognized event";
}
EXPORT_SYMBOL(ib_event_msg);

/**
 * ib_wc_status_msg() - name of a completion status
 * @status: the status
 *
 * Context: Any.
 * Return: a constant string, even for values that are no status.
 */
const char *__attribute_const__ ib_wc_status_msg(enum ib_wc_status status)
{
	size_t index = status;

	return index < ARRAY_SIZE(wc_status_names) ? wc_status_names[index] :
						     "unrecognized status";
}
EXPORT_SYMBOL(ib_wc_status_msg);

/**
 * ib_rate_to_mult() - rate as a multiple of 2.5 Gbps
 * @rate: the rate
 *
 * Context: Any.
 * Return: the multiple, rounded, or -1 for an unknown rate.
 */
__attribute_const__ int ib_rate_to_mult(enum ib_rate rate)
{
	size_t index = rate;

	if (index >= ARRAY_SIZE(rates) || !rates[index].mult)
		return -1;
	return rates[index].mult;
}
EXPORT_SYMBOL(ib_rate_to_mult);

/**
 * mult_to_ib_rate() - rate that is a multiple of 2.5 Gbps
 * @mult: the multiple, as ib_rate_to_mult() returns it
 *
 * Context: Any.
 * Return: the rate, or %IB_RATE_PORT_CURRENT if there is none.
 */
__attribute_const__ enum ib_rate mult_to_ib_rate(int mult)
{
	size_t index;

	if (mult <= 0)
		return IB_RATE_PORT_CURRENT;
	for (index = 0; index < ARRAY_SIZE(rates); index++)
		if (rates[index].mult == mult)
			return index;
	return IB_RATE_PORT_CURRENT;
}
EXPORT_SYMBOL(mult_to_ib_rate);

/**
 * ib_rate_to_mbps() - rate in Mbps
 * @rate: the rate
 *
 * Context: Any.
 * Return: megabits per second, or -1 for an unknown rate.
 */
__attribute_const__ int ib_rate_to_mbps(enum ib_rate rate)
{
	size_t index = rate;

	if (index >= ARRAY_SIZE(rates) || !rates[index].mbps)
		return -1;
	return rates[index].mbps;
}
EXPORT_SYMBOL(ib_rate_to_mbps);

/* @state: &enum ib_qp_state, or any value that a driver returned as one. */
const char *ib_qp_state_name(unsigned int state)
{
	static const char * const states[] = {
		[IB_QPS_RESET]	= "RESET",
		[IB_QPS_INIT]	= "INIT",
		[IB_QPS_RTR]	= "RTR",
		[IB_QPS_RTS]	= "RTS",
		[IB_QPS_SQD]	= "SQD",
		[IB_QPS_SQE]	= "SQE",
		[IB_QPS_ERR]	= "ERR",
	};

	return state < ARRAY_SIZE(states) ? states[state] : "?";
}

/* Copies the name of a device to @to, which has IB_DEVICE_NAME_MAX bytes. Any context. */
void ib_copy_device_name(char *to, const struct ib_device *dev)
{
	/*
	 * While ib_device_rename() runs, this may copy a part of the old name and a part of
	 * the new one; but dev_name() would be freed meanwhile.
	 */
	data_race(strscpy_pad(to, dev->name, IB_DEVICE_NAME_MAX));
	/* The device is not registered, so it cannot be renamed. */
	if (!*to)
		strscpy_pad(to, dev_name(&dev->dev) ?: "?", IB_DEVICE_NAME_MAX);
}
IB_EXPORT_INTERNAL(ib_copy_device_name);

/**
 * ibdev_printk() - print a message about a device
 * @level: KERN_*
 * @ibdev: the device; NULL is tolerated
 * @format: as in printk()
 *
 * The message names the device, its parent and the parent's driver.
 *
 * Context: Any.
 */
void ibdev_printk(const char *level, const struct ib_device *ibdev,
		  const char *format, ...)
{
	struct device *parent = ibdev ? ibdev->dev.parent : NULL;
	char name[IB_DEVICE_NAME_MAX];
	struct va_format vaf;
	va_list args;

	if (ibdev)
		ib_copy_device_name(name, ibdev);
	va_start(args, format);
	vaf.fmt = format;
	vaf.va = &args;
	if (parent)
		dev_printk_emit(level[1] - '0', parent, "%s %s %s: %pV",
				dev_driver_string(parent), dev_name(parent),
				name, &vaf);
	/* Not as a message of ibdev->dev: printk would keep dev_name(), which a rename frees. */
	else if (ibdev)
		_printk("%s%s: %pV", level, name, &vaf);
	else
		pr_warn("(NULL ib_device): %pV", &vaf);
	va_end(args);
}
EXPORT_SYMBOL(ibdev_printk);
