// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes of channel adapters and ports, each a line of a table: its
 * place, its label in text, its name in JSON, and its format. Attributes beyond
 * the end of the kernel's structure are ignored.
 */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "kverbs.h"

/* Width in columns of a label, and of a line before it is broken. */
#define LABEL_WIDTH	27
#define LINE_WIDTH	78

enum kind {
	HEADING,	/* heading of a group */
	NUMBER,
	LIMIT,		/* a number; 0 is left out */
	HEX,
	LID,		/* a number, also in hexadecimal */
	GUID,
	BYTES,
	BITMAP,		/* of sizes in bytes */
	TIMEOUT,
	STRING,		/* left out if it is empty */
	ENUM,
	FLAGS,
	LINK,		/* width and speed of a port */
	NETDEV,
};

/**
 * struct field - describes an attribute
 * @kind: its format
 * @label: label in text; NULL: in JSON only
 * @name: name in JSON, the same as in the structure
 * @offset: offset in the structure
 * @size: size in bytes
 * @text: ENUM: function that returns the name of a value
 * @flags: FLAGS: names of the flags
 */
struct field {
	enum kind kind;
	const char *label;
	const char *name;
	size_t offset;
	size_t size;
	const char *(*text)(uint32_t value, char *buf);
	const struct name *flags;
};

#define MEMBER(type, member)						\
	.name = #member, .offset = offsetof(type, member),		\
	.size = sizeof(((type *)NULL)->member)
#define CA(k, l, member, ...)						\
	{ .kind = k, .label = l, MEMBER(struct kverbs_ca_attr, member),	\
	  ##__VA_ARGS__ }
#define PORT(k, l, member, ...)						\
	{ .kind = k, .label = l,					\
	  MEMBER(struct kverbs_ca_port_attr, member), ##__VA_ARGS__ }
#define GROUP(l)	{ .kind = HEADING, .label = l }

static const struct field ca_fields[] = {
	CA(STRING,	NULL, name),
	GROUP("identity"),
	CA(ENUM,	"node type", node_type, .text = text_node_type),
	CA(GUID,	"node GUID", node_guid),
	CA(GUID,	"system image GUID", sys_image_guid),
	CA(STRING,	"description", node_desc),
	CA(STRING,	"firmware", fw_str),
	CA(HEX,		"firmware version", fw_ver),
	CA(HEX,		"vendor", vendor_id),
	CA(HEX,		"part", device_id),
	CA(HEX,		"revision", hw_rev),
	CA(NUMBER,	NULL, port_count),
	CA(NUMBER,	NULL, first_port),
	CA(NUMBER,	"generation", generation),
	GROUP("capabilities"),
	CA(FLAGS,	"flags", cap_flags, .flags = cap_flag_names),
	CA(ENUM,	"atomics among", atomic_cap, .text = text_atomic),
	CA(ENUM,	"masked atomics among", masked_atomic_cap,
	   .text = text_atomic),
	CA(TIMEOUT,	"ACK delay", ack_delay),
	CA(NUMBER,	"completion vectors", comp_vectors),
	GROUP("memory"),
	CA(BITMAP,	"page sizes", page_sizes),
	CA(BYTES,	"largest region", max_mr_size),
	CA(LIMIT,	"regions", max_mr),
	CA(LIMIT,	"PDs", max_pd),
	CA(LIMIT,	"windows", max_mw),
	CA(LIMIT,	"pages of a fast reg.", max_fast_reg_pages),
	CA(LIMIT,	"FMRs", max_fmr),
	CA(LIMIT,	"mappings of an FMR", max_map_per_fmr),
	GROUP("queues"),
	CA(LIMIT,	"QPs", max_qp),
	CA(LIMIT,	"requests in a queue", max_qp_wr),
	CA(LIMIT,	"segments to send", max_send_sge),
	CA(LIMIT,	"segments to receive", max_recv_sge),
	CA(LIMIT,	"segments of a READ", max_sge_rd),
	CA(LIMIT,	"CQs", max_cq),
	CA(LIMIT,	"entries of a CQ", max_cqe),
	CA(LIMIT,	"SRQs", max_srq),
	CA(LIMIT,	"requests in an SRQ", max_srq_wr),
	CA(LIMIT,	"segments in an SRQ", max_srq_sge),
	CA(LIMIT,	"address handles", max_ah),
	GROUP("READs and atomics at a time"),
	CA(LIMIT,	"taken by a QP", max_qp_rd_atom),
	CA(LIMIT,	"started by a QP", max_qp_init_rd_atom),
	CA(LIMIT,	"taken by all", max_res_rd_atom),
	GROUP("multicast and partitions"),
	CA(LIMIT,	"multicast groups", max_mcast_grp),
	CA(LIMIT,	"QPs in a group", max_mcast_qp_attach),
	CA(LIMIT,	"QPs in all groups", max_total_mcast_qp_attach),
	CA(LIMIT,	"P_Keys of a port", max_pkeys),
	GROUP("raw and reliable datagrams"),
	CA(LIMIT,	"raw IPv6 QPs", max_raw_ipv6_qp),
	CA(LIMIT,	"raw Ethertype QPs", max_raw_ethy_qp),
	CA(LIMIT,	"EE contexts", max_ee),
	CA(LIMIT,	"RD domains", max_rdd),
	CA(LIMIT,	"taken by an EE", max_ee_rd_atom),
	CA(LIMIT,	"started by an EE", max_ee_init_rd_atom),
	{}
};

static const struct field port_fields[] = {
	PORT(NUMBER,	NULL, port),
	PORT(ENUM,	"state", state, .text = text_port_state),
	PORT(ENUM,	"physical state", phys_state, .text = text_phys_state),
	PORT(LINK,	"link", width),
	PORT(ENUM,	"link layer", link_layer, .text = text_link_layer),
	PORT(NETDEV,	"network device", netdev),
	PORT(GUID,	"GUID", guid),
	PORT(GUID,	"subnet prefix", subnet_prefix),
	PORT(LID,	"LID", lid),
	PORT(NUMBER,	"LMC", lmc),
	PORT(LID,	"LID of the SM", sm_lid),
	PORT(NUMBER,	"SL of the SM", sm_sl),
	PORT(BYTES,	"MTU", active_mtu),
	PORT(BYTES,	"largest MTU", max_mtu),
	PORT(BYTES,	"physical MTU", phys_mtu),
	PORT(BYTES,	"largest message", max_msg_size),
	PORT(NUMBER,	"VLCap", max_vls),
	PORT(TIMEOUT,	"subnet timeout", subnet_timeout),
	PORT(NUMBER,	"InitTypeReply", init_type_reply),
	PORT(FLAGS,	"flags", flags, .flags = port_flag_names),
	PORT(FLAGS,	"capabilities", cap_flags, .flags = port_cap_names),
	PORT(FLAGS,	"capabilities 2", cap_flags2, .flags = port_cap2_names),
	PORT(NUMBER,	"P_Key violations", bad_pkeys),
	PORT(NUMBER,	"Q_Key violations", bad_qkeys),
	PORT(NUMBER,	"generation", generation),
	{}
};

static uint64_t field_value(const struct field *field, const void *attr)
{
	const char *place = (const char *)attr + field->offset;
	uint64_t value64;
	uint32_t value32;

	switch (field->size) {
	case 1:
		return *(const uint8_t *)place;
	case 4:
		memcpy(&value32, place, sizeof(value32));
		return value32;
	default:
		memcpy(&value64, place, sizeof(value64));
		return value64;
	}
}

static bool field_is_there(const struct field *field, uint32_t attr_size)
{
	return field->offset + field->size <= attr_size;
}

/* --- text ------------------------------------------------------------------ */

static void print_label(int indent, const char *label)
{
	printf("%*s%-*s", indent, "", LABEL_WIDTH - indent, label);
}

/* Prints a word of a list, which is broken where a line gets too long. */
static void print_word(unsigned int *column, const char *word)
{
	if (*column > LABEL_WIDTH && *column + strlen(word) > LINE_WIDTH) {
		printf("\n%*s", LABEL_WIDTH, "");
		*column = LABEL_WIDTH;
	}
	*column += printf("%s%s", *column > LABEL_WIDTH ? " " : "", word);
}

static void print_flags(const struct name *names, uint64_t flags)
{
	unsigned int column = LABEL_WIDTH;
	char buf[TEXT_MAX];
	const char *name;

	if (!flags)
		printf("none");
	while ((name = next_flag(names, &flags, buf)))
		print_word(&column, name);
}

/* Returns the last size of a run that starts at @size and doubles at each step. */
static uint64_t last_of_run(uint64_t sizes, uint64_t size)
{
	while (size << 1 & sizes)
		size <<= 1;
	return size;
}

static void print_bitmap(uint64_t sizes)
{
	char first[TEXT_MAX], last[TEXT_MAX], word[2 * TEXT_MAX + 8];
	unsigned int column = LABEL_WIDTH;
	uint64_t size, end;

	while (sizes) {
		size = sizes & -sizes;
		end = last_of_run(sizes, size);
		/* The mask is 0 if @end is the greatest possible size. */
		sizes &= -(end << 1);
		if (end > size << 1)
			snprintf(word, sizeof(word), "%s to %s%s",
				 text_bytes(size, first), text_bytes(end, last),
				 sizes ? "," : "");
		else
			snprintf(word, sizeof(word), "%s%s%s%s",
				 text_bytes(size, first),
				 end > size ? ", " : "",
				 end > size ? text_bytes(end, last) : "",
				 sizes ? "," : "");
		print_word(&column, word);
	}
}

static void print_bytes(uint64_t bytes)
{
	char buf[TEXT_MAX];

	if (bytes == UINT64_MAX)
		printf("any size");
	else
		printf("%s", text_bytes(bytes, buf));
}

static void print_value(const struct field *field, const void *attr)
{
	const struct kverbs_ca_port_attr *port = attr;
	uint64_t value;
	char buf[TEXT_MAX];

	if (field->kind == STRING) {
		print_text(stdout, (const char *)attr + field->offset);
		return;
	}
	value = field_value(field, attr);
	switch (field->kind) {
	case HEX:
		printf("0x%" PRIx64, value);
		break;
	case LID:
		printf("%" PRIu64 " (0x%" PRIx64 ")", value, value);
		break;
	case GUID:
		printf("%s", text_guid(value, buf));
		break;
	case BYTES:
		print_bytes(value);
		break;
	case BITMAP:
		print_bitmap(value);
		break;
	case TIMEOUT:
		printf("%s", text_timeout(value, buf));
		break;
	case ENUM:
		printf("%s", field->text(value, buf));
		break;
	case FLAGS:
		print_flags(field->flags, value);
		break;
	case LINK:
		printf("%s", text_link(port->width, port->speed, buf));
		break;
	case NETDEV:
		printf("%s", netdev_name(value, buf));
		break;
	default:
		printf("%" PRIu64, value);
	}
}

/*
 * Tells whether an attribute is of no interest: the limit of a feature that the device
 * does not have, or a number of InfiniBand on Ethernet.
 */
static bool field_is_empty(const struct field *field, const void *attr)
{
	switch (field->kind) {
	case STRING:
		return !((const char *)attr)[field->offset];
	case LIMIT:
	case HEX:
	case LID:
	case GUID:
	case BYTES:
	case BITMAP:
	case FLAGS:
	case NETDEV:
		return !field_value(field, attr);
	default:
		return false;
	}
}

/* The heading of a group is printed with its first printed attribute. */
static void print_fields(const struct field *field, const void *attr,
			 uint32_t attr_size, int indent, bool all)
{
	const char *group = NULL;

	for (; field->label || field->name; field++) {
		if (field->kind == HEADING) {
			group = field->label;
			continue;
		}
		if (!field->label || !field_is_there(field, attr_size) ||
		    (!all && field_is_empty(field, attr)))
			continue;
		if (group)
			printf("  %s\n", group);
		group = NULL;
		print_label(indent, field->label);
		print_value(field, attr);
		putchar('\n');
	}
}

void print_ca(const struct kverbs_ca_attr *attr, bool all)
{
	char buf[TEXT_MAX];

	printf("%s: %s with %" PRIu32 " port%s\n", attr->name,
	       text_node_type(attr->node_type, buf), attr->port_count,
	       attr->port_count == 1 ? "" : "s");
	print_fields(ca_fields, attr, attr->attr_size, 4, all);
}

static void print_gid(uint32_t index, const struct kverbs_ca_gid *gid)
{
	char text[TEXT_MAX], type[TEXT_MAX], netdev[32];

	printf("%4" PRIu32 "  %-40s %s", index, text_gid(gid->gid, text),
	       text_gid_type(gid->type, type));
	if (gid->netdev)
		printf(", %s", netdev_name(gid->netdev, netdev));
	putchar('\n');
}

static void print_gids(const struct kverbs_ca_port_attr *port, bool all)
{
	const struct kverbs_ca_gid *gid;
	uint32_t i;

	print_label(4, "GID table");
	printf("%" PRIu32 " entries\n", port->gid_count);
	for (i = 0; i < port->gid_count; i++) {
		gid = ca_gid(port, i);
		if (!all && gid->type == KVERBS_CA_GID_NONE)
			continue;
		printf("    ");
		print_gid(i, gid);
	}
}

/* Bit 15 distinguishes members of a partition: limited ones can only talk to full ones. */
static const char *membership(uint16_t pkey)
{
	if (!(pkey & 0x7fff))
		return "none";
	return pkey & 0x8000 ? "full" : "limited";
}

static void print_pkeys(const struct kverbs_ca_port_attr *port, bool all)
{
	uint16_t pkey;
	uint32_t i;

	print_label(4, "P_Key table");
	printf("%" PRIu32 " entries\n", port->pkey_count);
	for (i = 0; i < port->pkey_count; i++) {
		pkey = ca_pkey(port, i);
		if (!all && !(pkey & 0x7fff))
			continue;
		printf("    %4" PRIu32 "  0x%04x %s member\n", i, pkey,
		       membership(pkey));
	}
}

void print_port(const struct kverbs_ca_port_attr *port, bool all)
{
	printf("  port %" PRIu32 "\n", port->port);
	print_fields(port_fields, port, port->attr_size, 4, all);
	print_gids(port, all);
	print_pkeys(port, all);
}

/* --- JSON ------------------------------------------------------------------ */

static void json_bitmap(struct json *json, const char *key, uint64_t sizes)
{
	json_array(json, key);
	for (; sizes; sizes &= sizes - 1)
		json_number(json, NULL, sizes & -sizes);
	json_end(json);
}

static void json_link(struct json *json, const struct kverbs_ca_port_attr *port)
{
	char buf[TEXT_MAX];

	json_number(json, "width", link_lanes(port->width));
	json_string(json, "speed", text_speed(port->speed, buf));
	json_number(json, "rate_mbps", link_mbps(port->width, port->speed));
}

static void json_netdev(struct json *json, uint32_t index)
{
	char name[32];

	if (index)
		json_string(json, "netdev", netdev_name(index, name));
	else
		json_null(json, "netdev");
}

static void json_field(struct json *json, const struct field *field,
		       const void *attr)
{
	uint64_t value = field->kind == STRING ? 0 : field_value(field, attr);
	char buf[TEXT_MAX];

	switch (field->kind) {
	case STRING:
		json_string(json, field->name,
			    (const char *)attr + field->offset);
		break;
	case GUID:
		json_string(json, field->name, text_guid(value, buf));
		break;
	case BITMAP:
		json_bitmap(json, field->name, value);
		break;
	case ENUM:
		json_string(json, field->name, field->text(value, buf));
		break;
	case FLAGS:
		json_flags(json, field->name, field->flags, value);
		break;
	case LINK:
		json_link(json, attr);
		break;
	case NETDEV:
		json_netdev(json, value);
		break;
	default:
		json_number(json, field->name, value);
	}
}

static void json_fields(struct json *json, const struct field *field,
			const void *attr, uint32_t attr_size)
{
	for (; field->label || field->name; field++)
		if (field->kind != HEADING && field_is_there(field, attr_size))
			json_field(json, field, attr);
}

void json_ca(struct json *json, const struct kverbs_ca_attr *attr)
{
	json_fields(json, ca_fields, attr, attr->attr_size);
}

static void json_gids(struct json *json, const struct kverbs_ca_port_attr *port,
		      bool all)
{
	const struct kverbs_ca_gid *gid;
	char buf[TEXT_MAX];
	uint32_t i;

	json_number(json, "gid_count", port->gid_count);
	json_array(json, "gids");
	for (i = 0; i < port->gid_count; i++) {
		gid = ca_gid(port, i);
		if (!all && gid->type == KVERBS_CA_GID_NONE)
			continue;
		json_object(json, NULL);
		json_number(json, "index", i);
		json_string(json, "gid", text_gid(gid->gid, buf));
		json_string(json, "type", text_gid_type(gid->type, buf));
		json_netdev(json, gid->netdev);
		json_end(json);
	}
	json_end(json);
}

static void json_pkeys(struct json *json, const struct kverbs_ca_port_attr *port,
		       bool all)
{
	uint16_t pkey;
	uint32_t i;

	json_number(json, "pkey_count", port->pkey_count);
	json_array(json, "pkeys");
	for (i = 0; i < port->pkey_count; i++) {
		pkey = ca_pkey(port, i);
		if (!all && !(pkey & 0x7fff))
			continue;
		json_object(json, NULL);
		json_number(json, "index", i);
		json_number(json, "pkey", pkey);
		json_string(json, "member", membership(pkey));
		json_end(json);
	}
	json_end(json);
}

void json_port(struct json *json, const struct kverbs_ca_port_attr *port,
	       bool all)
{
	json_fields(json, port_fields, port, port->attr_size);
	json_gids(json, port, all);
	json_pkeys(json, port, all);
}
