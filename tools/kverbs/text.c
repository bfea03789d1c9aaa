// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names for numeric codes, and numbers in readable units. JSON uses the same
 * names: see the man page before you change one.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "kverbs.h"

static const struct name port_state_names[] = {
	{ KVERBS_CA_PORT_NOP,		"nop" },
	{ KVERBS_CA_PORT_DOWN,		"down" },
	{ KVERBS_CA_PORT_INIT,		"init" },
	{ KVERBS_CA_PORT_ARMED,		"armed" },
	{ KVERBS_CA_PORT_ACTIVE,	"active" },
	{ KVERBS_CA_PORT_ACTIVE_DEFER,	"active_defer" },
	{}
};

/* PortPhysicalState of PortInfo */
static const struct name phys_state_names[] = {
	{ 0, "nop" },
	{ 1, "sleep" },
	{ 2, "polling" },
	{ 3, "disabled" },
	{ 4, "training" },
	{ 5, "link_up" },
	{ 6, "error_recovery" },
	{ 7, "test" },
	{}
};

static const struct name link_layer_names[] = {
	{ KVERBS_CA_LINK_UNSPECIFIED,	"unspecified" },
	{ KVERBS_CA_LINK_INFINIBAND,	"InfiniBand" },
	{ KVERBS_CA_LINK_ETHERNET,	"Ethernet" },
	{}
};

static const struct name gid_type_names[] = {
	{ KVERBS_CA_GID_NONE,		"none" },
	{ KVERBS_CA_GID_IB,		"IB" },
	{ KVERBS_CA_GID_ROCE_V1,	"RoCE v1" },
	{ KVERBS_CA_GID_ROCE_V2,	"RoCE v2" },
	{}
};

static const struct name node_type_names[] = {
	{ 1, "channel adapter" },
	{ 2, "switch" },
	{}
};

static const struct name atomic_names[] = {
	{ KVERBS_CA_ATOMIC_NONE,	"none" },
	{ KVERBS_CA_ATOMIC_HCA,		"hca" },
	{ KVERBS_CA_ATOMIC_GLOB,	"global" },
	{}
};

const struct name path_names[] = {
	{ KVERBS_CA_PATH_ANY,		"any" },
	{ KVERBS_CA_PATH_HOST,		"host" },
	{ KVERBS_CA_PATH_PEER,		"peer" },
	{ KVERBS_CA_PATH_DMABUF,	"dmabuf" },
	{ KVERBS_CA_PATH_P2P,		"p2p" },
	{}
};

const struct name mr_flag_names[] = {
	{ KVERBS_CA_MR_REVOKED,		"revoked" },
	{ KVERBS_CA_MR_PINNED,		"pinned" },
	{}
};

static const struct name event_names[] = {
	{ KVERBS_CA_EVENT_DEVICE_FATAL,		"device_fatal" },
	{ KVERBS_CA_EVENT_PORT_ACTIVE,		"port_active" },
	{ KVERBS_CA_EVENT_PORT_ERR,		"port_error" },
	{ KVERBS_CA_EVENT_LID_CHANGE,		"lid_change" },
	{ KVERBS_CA_EVENT_PKEY_CHANGE,		"pkey_change" },
	{ KVERBS_CA_EVENT_SM_CHANGE,		"sm_change" },
	{ KVERBS_CA_EVENT_CLIENT_REREGISTER,	"client_reregister" },
	{ KVERBS_CA_EVENT_GID_CHANGE,		"gid_change" },
	{ KVERBS_CA_EVENT_REMOVED,		"removed" },
	{ KVERBS_CA_EVENT_OVERFLOW,		"overflow" },
	{}
};

/*
 * Rate of a lane, as the speed's name promises: FDR10 is marketed with the rate
 * of QDR.
 */
static const struct {
	uint32_t speed;
	const char *name;
	unsigned int mbps;
} speeds[] = {
	{ 1,	"SDR",		2500 },
	{ 2,	"DDR",		5000 },
	{ 4,	"QDR",		10000 },
	{ 8,	"FDR10",	10000 },
	{ 16,	"FDR",		14000 },
	{ 32,	"EDR",		25000 },
	{ 64,	"HDR",		50000 },
	{ 128,	"NDR",		100000 },
	{ 256,	"XDR",		200000 },
};

#define CAP(name, text)	{ KVERBS_CA_CAP_##name, text }

const struct name cap_flag_names[] = {
	CAP(RESIZE_MAX_WR,	"resize_max_wr"),
	CAP(BAD_PKEY_CNTR,	"bad_pkey_cntr"),
	CAP(BAD_QKEY_CNTR,	"bad_qkey_cntr"),
	CAP(RAW_MULTI,		"raw_multi"),
	CAP(AUTO_PATH_MIG,	"auto_path_mig"),
	CAP(CHANGE_PHY_PORT,	"change_phy_port"),
	CAP(UD_AV_PORT_ENFORCE,	"ud_av_port_enforce"),
	CAP(CURR_QP_STATE_MOD,	"curr_qp_state_mod"),
	CAP(SHUTDOWN_PORT,	"shutdown_port"),
	CAP(PORT_ACTIVE_EVENT,	"port_active_event"),
	CAP(SYS_IMAGE_GUID,	"sys_image_guid"),
	CAP(RC_RNR_NAK_GEN,	"rc_rnr_nak_gen"),
	CAP(SRQ_RESIZE,		"srq_resize"),
	CAP(N_NOTIFY_CQ,	"n_notify_cq"),
	CAP(MEM_WINDOW,		"mem_window"),
	CAP(UD_IP_CSUM,		"ud_ip_csum"),
	CAP(XRC,		"xrc"),
	CAP(MEM_MGT_EXTENSIONS,	"mem_mgt_extensions"),
	CAP(MEM_WINDOW_TYPE_2A,	"mem_window_type_2a"),
	CAP(MEM_WINDOW_TYPE_2B,	"mem_window_type_2b"),
	{}
};

const struct name port_flag_names[] = {
	{ KVERBS_CA_PORT_IP_GIDS,	"ip_gids" },
	{ KVERBS_CA_PORT_GRH_REQUIRED,	"grh_required" },
	{}
};

/* CapabilityMask of PortInfo, by the names that the IBTA gives its bits. */
const struct name port_cap_names[] = {
	{ 1U << 1,	"sm" },
	{ 1U << 2,	"notice" },
	{ 1U << 3,	"trap" },
	{ 1U << 4,	"optional_ipd" },
	{ 1U << 5,	"automatic_migration" },
	{ 1U << 6,	"sl_mapping" },
	{ 1U << 7,	"mkey_nvram" },
	{ 1U << 8,	"pkey_nvram" },
	{ 1U << 9,	"led_info" },
	{ 1U << 10,	"sm_disabled" },
	{ 1U << 11,	"system_image_guid" },
	{ 1U << 12,	"pkey_switch_external_port_trap" },
	{ 1U << 14,	"extended_speeds" },
	{ 1U << 15,	"capability_mask2" },
	{ 1U << 16,	"communication_management" },
	{ 1U << 17,	"snmp_tunneling" },
	{ 1U << 18,	"reinit" },
	{ 1U << 19,	"device_management" },
	{ 1U << 20,	"vendor_class" },
	{ 1U << 21,	"dr_notice" },
	{ 1U << 22,	"capability_mask_notice" },
	{ 1U << 23,	"boot_management" },
	{ 1U << 24,	"link_round_trip_latency" },
	{ 1U << 25,	"client_reregistration" },
	{ 1U << 26,	"other_local_changes_notice" },
	{ 1U << 27,	"link_speed_width_pairs_table" },
	{ 1U << 28,	"vendor_specific_mads_table" },
	{ 1U << 29,	"multicast_pkey_trap_suppression" },
	{ 1U << 30,	"multicast_fdb_top" },
	{ 1U << 31,	"hierarchy_info" },
	{}
};

const struct name port_cap2_names[] = {
	{ 1U << 0,	"set_node_description" },
	{ 1U << 1,	"extended_port_info" },
	{ 1U << 2,	"virtualization" },
	{ 1U << 3,	"switch_port_state_table" },
	{ 1U << 4,	"link_width_2x" },
	{ 1U << 5,	"link_speed_hdr" },
	{ 1U << 10,	"link_speed_ndr" },
	{ 1U << 11,	"extended_speeds2" },
	{ 1U << 12,	"link_speed_xdr" },
	{}
};

const struct name access_names[] = {
	{ KVERBS_CA_ACCESS_LOCAL_WRITE,		"lw" },
	{ KVERBS_CA_ACCESS_REMOTE_WRITE,	"rw" },
	{ KVERBS_CA_ACCESS_REMOTE_READ,		"rr" },
	{ KVERBS_CA_ACCESS_REMOTE_ATOMIC,	"ra" },
	{ KVERBS_CA_ACCESS_MW_BIND,		"mw" },
	{ KVERBS_CA_ACCESS_RELAXED_ORDERING,	"ro" },
	{}
};

static const char *find_name(const struct name *names, uint64_t value,
			     char *buf)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	snprintf(buf, TEXT_MAX, "unknown_%" PRIu64, value);
	return buf;
}

bool parse_name(const struct name *names, const char *text, size_t len,
		uint64_t *value)
{
	for (; names->name; names++) {
		if (strlen(names->name) == len && !memcmp(names->name, text, len)) {
			*value = names->value;
			return true;
		}
	}
	return false;
}

const char *next_flag(const struct name *names, uint64_t *flags, char *buf)
{
	uint64_t flag = *flags & -*flags;

	if (!flag)
		return NULL;
	*flags -= flag;
	for (; names->name; names++)
		if (names->value == flag)
			return names->name;
	snprintf(buf, TEXT_MAX, "bit_%d", __builtin_ctzll(flag));
	return buf;
}

const char *text_port_state(uint32_t state, char *buf)
{
	return find_name(port_state_names, state, buf);
}

const char *text_phys_state(uint32_t state, char *buf)
{
	return find_name(phys_state_names, state, buf);
}

const char *text_link_layer(uint32_t layer, char *buf)
{
	return find_name(link_layer_names, layer, buf);
}

const char *text_gid_type(uint32_t type, char *buf)
{
	return find_name(gid_type_names, type, buf);
}

const char *text_node_type(uint32_t type, char *buf)
{
	return find_name(node_type_names, type, buf);
}

const char *text_atomic(uint32_t cap, char *buf)
{
	return find_name(atomic_names, cap, buf);
}

const char *text_path(uint32_t path, char *buf)
{
	return find_name(path_names, path, buf);
}

const char *text_path_error(uint32_t path, int error)
{
	static const struct {
		uint32_t path;
		int error;
		const char *text;
	} known[] = {
		{ KVERBS_CA_PATH_HOST, EFAULT,
		  "there is no memory of the system that may be used so" },
		{ KVERBS_CA_PATH_HOST, ENOMEM,
		  "this process may not lock as much, or no memory is left" },
		{ KVERBS_CA_PATH_HOST, EPERM, "this process may lock no memory" },
		{ KVERBS_CA_PATH_HOST, EREMOTEIO,
		  "some of it is peer-to-peer memory of a PCI device" },
		{ KVERBS_CA_PATH_P2P, ENODEV,
		  "it is not peer-to-peer memory of a PCI device" },
		{ KVERBS_CA_PATH_P2P, EINVAL,
		  "not all of it is peer-to-peer memory of one PCI device" },
		{ KVERBS_CA_PATH_P2P, EREMOTEIO,
		  "the device has no safe way to it: see kverbs p2p" },
		{ KVERBS_CA_PATH_P2P, EOPNOTSUPP,
		  "the device cannot use memory that may be taken back" },
		{ KVERBS_CA_PATH_PEER, ENODEV, "no driver of peer memory has it" },
		{ KVERBS_CA_PATH_PEER, ENOENT,
		  "no driver of peer memory has this name" },
		{ KVERBS_CA_PATH_PEER, EOPNOTSUPP,
		  "the device cannot use memory that may be taken back" },
		{ KVERBS_CA_PATH_PEER, ECANCELED,
		  "its driver has just taken it back" },
		{ KVERBS_CA_PATH_DMABUF, EBADF, "there is no such file" },
		{ KVERBS_CA_PATH_DMABUF, EINVAL,
		  "the file is no dma-buf, or does not have this range" },
		{ KVERBS_CA_PATH_DMABUF, EOPNOTSUPP,
		  "the device cannot use dma-bufs" },
	};
	size_t i;

	for (i = 0; i < COUNT(known); i++) {
		if (known[i].path == path && known[i].error == -error)
			return known[i].text;
	}
	return strerror(-error);
}

const char *text_event(uint32_t type, char *buf)
{
	return find_name(event_names, type, buf);
}

unsigned int link_lanes(uint32_t width)
{
	switch (width) {
	case 1: return 1;
	case 2: return 4;
	case 4: return 8;
	case 8: return 12;
	case 16: return 2;
	default: return 0;
	}
}

const char *text_speed(uint32_t speed, char *buf)
{
	size_t i;

	for (i = 0; i < COUNT(speeds); i++)
		if (speeds[i].speed == speed)
			return speeds[i].name;
	snprintf(buf, TEXT_MAX, "unknown_%" PRIu32, speed);
	return buf;
}

unsigned int link_mbps(uint32_t width, uint32_t speed)
{
	size_t i;

	for (i = 0; i < COUNT(speeds); i++)
		if (speeds[i].speed == speed)
			return speeds[i].mbps * link_lanes(width);
	return 0;
}

const char *text_link(uint32_t width, uint32_t speed, char *buf)
{
	unsigned int mbps = link_mbps(width, speed);

	if (mbps)
		snprintf(buf, TEXT_MAX, "%uX %s, %u%s Gb/s", link_lanes(width),
			 text_speed(speed, buf), mbps / 1000,
			 mbps % 1000 ? ".5" : "");
	else
		snprintf(buf, TEXT_MAX,
			 "width %" PRIu32 ", speed %" PRIu32 ", unknown",
			 width, speed);
	return buf;
}

const char *text_guid(__be64 guid, char *buf)
{
	uint64_t g = be64toh(guid);

	snprintf(buf, TEXT_MAX, "%04x:%04x:%04x:%04x",
		 (unsigned int)(g >> 48), (unsigned int)(g >> 32) & 0xffff,
		 (unsigned int)(g >> 16) & 0xffff, (unsigned int)g & 0xffff);
	return buf;
}

const char *text_gid(const uint8_t gid[16], char *buf)
{
	return inet_ntop(AF_INET6, gid, buf, TEXT_MAX) ?: "?";
}

const char *text_bytes(uint64_t bytes, char *buf)
{
	static const char * const units[] = { "bytes", "KiB", "MiB", "GiB",
					      "TiB", "PiB", "EiB" };
	unsigned int i = 0;

	while (bytes && bytes % 1024 == 0 && i < 6) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, TEXT_MAX, "%" PRIu64 " %s", bytes, units[i]);
	return buf;
}

/* Three digits are enough for readers: 67.1 ms, 4.29 s. */
const char *text_ns(uint64_t ns, char *buf)
{
	static const char * const units[] = { "ns", "us", "ms", "s" };
	double value = ns;
	unsigned int i = 0;

	while (value >= 1000 && i < 3) {
		value /= 1000;
		i++;
	}
	snprintf(buf, TEXT_MAX, "%.*f %s",
		 !i || value >= 100 ? 0 : value >= 10 ? 1 : 2, value, units[i]);
	return buf;
}

const char *text_timeout(unsigned int n, char *buf)
{
	return text_ns(n < 48 ? 4096ULL << n : UINT64_MAX, buf);
}

void print_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
}
