// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles of the software HCA, as opened by KVERBS_CA_OPEN: each has its own doorbell
 * and a tag, which the debugfs file "ca" lists. And what queries report about its ports
 * after changes for which there is no event.
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sizes.h>
#include <uapi/kverbs/emu.h>

#include "ca/rig.h"
#include "emu/rig_net.h"
#include "lib/objects.h"

#define TEXT_LEN	SZ_16K
/* Number of doorbells, and so of handles that can be open at a time, as documented. */
#define DOORBELLS	1024

static const char *doorbells(struct kunit *test)
{
	char *text = kvt_zalloc(test, TEXT_LEN);

	KUNIT_ASSERT_GE(test, kvt_read_debugfs("/sys/kernel/debug/kverbs_emu/emu0/ca", text,
					       TEXT_LEN), 0);
	return text;
}

static bool shows(struct kunit *test, unsigned int doorbell, u64 handle, const char *tag)
{
	char want[120];

	snprintf(want, sizeof(want), "doorbell=%u handle=%#llx kernel tag=%s\n", doorbell, handle,
		 tag);
	return strstr(doorbells(test), want);
}

static ssize_t open_as(struct ib_device *ibdev, const void *vendor, u32 len, u64 *handle)
{
	struct ib_ca_request req = CA_REQ(OPEN, .in = vendor, .in_len = len);
	ssize_t ret = ib_ca_call(ibdev, &req);

	*handle = req.handle;
	return ret;
}

static struct kverbs_emu_open tagged(const char *tag)
{
	struct kverbs_emu_open open = {
		.version = KVERBS_EMU_VERSION,
		.size = sizeof(open),
	};

	strscpy(open.tag, tag, sizeof(open.tag));
	return open;
}

static void opening_has_a_doorbell(struct kunit *test)
{
	struct ib_device *ibdev = kvt_device(test, "emu0");
	struct kverbs_emu_open open = tagged("a case");
	u64 h[3];

	KUNIT_ASSERT_EQ(test, 0, open_as(ibdev, NULL, 0, &h[0]));
	KUNIT_ASSERT_EQ(test, 0, open_as(ibdev, &open, sizeof(open), &h[1]));
	KUNIT_EXPECT_TRUE(test, shows(test, 1, h[0], ""));
	KUNIT_EXPECT_TRUE(test, shows(test, 2, h[1], "a case"));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, h[0]));
	KUNIT_EXPECT_FALSE(test, shows(test, 1, h[0], ""));
	/* The doorbell of a closed handle is used again. */
	KUNIT_ASSERT_EQ(test, 0, open_as(ibdev, NULL, 0, &h[2]));
	KUNIT_EXPECT_TRUE(test, shows(test, 1, h[2], ""));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, h[1]));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, h[2]));
	KUNIT_EXPECT_STREQ(test, "", doorbells(test));
}

static void expect_bad(struct kunit *test, struct ib_device *ibdev, const void *vendor, u32 len,
		       ssize_t want)
{
	u64 handle;

	KUNIT_EXPECT_EQ(test, want, open_as(ibdev, vendor, len, &handle));
	KUNIT_EXPECT_EQ(test, 0, handle);
}

static void what_is_not_understood_is_refused(struct kunit *test)
{
	struct ib_device *ibdev = kvt_device(test, "emu0");
	struct {
		struct kverbs_emu_open open;
		u32 more[2];
	} in = { .open = tagged("") };
	u64 handle;
	u32 len;

	for (len = 1; len < sizeof(in.open); len++) {
		in.open.size = len;
		expect_bad(test, ibdev, &in, len, -EINVAL);
	}
	in.open.size = sizeof(in.open) + 1;
	expect_bad(test, ibdev, &in, sizeof(in.open), -EINVAL);
	in.open = tagged("");
	in.open.version = KVERBS_EMU_VERSION + 1;
	expect_bad(test, ibdev, &in, sizeof(in.open), -EINVAL);
	in.open = tagged("");
	memset(in.open.tag, 't', sizeof(in.open.tag));
	expect_bad(test, ibdev, &in, sizeof(in.open), -EINVAL);
	in.open = tagged("newer");
	in.open.size = sizeof(in);
	in.more[1] = 1;
	expect_bad(test, ibdev, &in, sizeof(in), -E2BIG);
	KUNIT_EXPECT_STREQ(test, "", doorbells(test));
	in.more[1] = 0;
	KUNIT_ASSERT_EQ(test, 0, open_as(ibdev, &in, sizeof(in), &handle));
	KUNIT_EXPECT_TRUE(test, shows(test, 1, handle, "newer"));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, handle));
}

static void tag_does_not_upset_who_reads_it(struct kunit *test)
{
	struct ib_device *ibdev = kvt_device(test, "emu0");
	struct kverbs_emu_open open = tagged("a\nb\x1b[c\x01");
	u64 handle;

	KUNIT_ASSERT_EQ(test, 0, open_as(ibdev, &open, sizeof(open), &handle));
	KUNIT_EXPECT_TRUE(test, shows(test, 1, handle, "a\\nb\\e[c\\001"));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, handle));
}

static void doorbells_run_out(struct kunit *test)
{
	struct ib_device *ibdev = kvt_device(test, "emu0");
	u64 *h = KVT_PTR(test, kunit_kcalloc(test, DOORBELLS, sizeof(*h), GFP_KERNEL)), more;
	int i;

	for (i = 0; i < DOORBELLS; i++)
		KUNIT_EXPECT_EQ(test, 0, open_as(ibdev, NULL, 0, &h[i]));
	KUNIT_EXPECT_EQ(test, -ENOMEM, open_as(ibdev, NULL, 0, &more));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, h[DOORBELLS / 2]));
	KUNIT_EXPECT_EQ(test, 0, open_as(ibdev, NULL, 0, &h[DOORBELLS / 2]));
	for (i = 0; i < DOORBELLS; i++)
		KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, h[i]));
	KUNIT_EXPECT_STREQ(test, "", doorbells(test));
}

/* A member of port 1's attributes, as made in advance: not what the HCA would answer now. */
static u32 reported(struct ib_device *ibdev, u64 handle, size_t member)
{
	struct kverbs_ca_port_attr attr = {};

	CA_CALL(ibdev, QUERY_PORT, .handle = handle, .port = 1, .out = &attr,
		.out_len = sizeof(attr));
	return *(u32 *)((void *)&attr + member);
}

#define MEMBER(name)	offsetof(struct kverbs_ca_port_attr, name)

/* There is no notification when the work item has rebuilt it. */
static void expect_reported(struct kunit *test, struct ib_device *ibdev, u64 handle,
			    size_t member, u32 value)
{
	kvt_until(reported(ibdev, handle, member) == value);
	KUNIT_EXPECT_EQ(test, value, reported(ibdev, handle, member));
}

static struct ib_device *own(struct kunit *test, const char *name, const char *netdev)
{
	rig_device(test, name, 1, netdev);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write(name, 1, "mtu", "auto"));
	return kvt_device(test, name);
}

static void n2_queries_follow_the_mtu_of_a_network_device(struct kunit *test)
{
	static const struct {
		int mtu;
		u32 active;
	} steps[] = { { 9000, 4096 }, { 1500, 1024 }, { 2300, 2048 }, { 300, 256 } };
	struct net_device *ndev = kvt_netdev(test);
	struct ib_device *ibdev = own(test, "emucamtu", netdev_name(ndev));
	u64 handle = ca_rig_open(test, ibdev);
	int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		rtnl_lock();
		ndev->max_mtu = ETH_MAX_MTU;
		KUNIT_EXPECT_EQ(test, 0, dev_set_mtu(ndev, steps[i].mtu));
		rtnl_unlock();
		expect_reported(test, ibdev, handle, MEMBER(active_mtu), steps[i].active);
	}
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, handle));
}

static void queries_follow_settings_without_event(struct kunit *test)
{
	struct ib_device *ibdev = own(test, "emucaset", NULL);
	u64 handle = ca_rig_open(test, ibdev);

	KUNIT_EXPECT_EQ(test, 0, rig_port_write("emucaset", 1, "mtu", "512"));
	expect_reported(test, ibdev, handle, MEMBER(active_mtu), 512);
	KUNIT_EXPECT_EQ(test, 0, rig_port_write("emucaset", 1, "width", "12x"));
	expect_reported(test, ibdev, handle, MEMBER(width), IB_WIDTH_12X);
	KUNIT_EXPECT_EQ(test, 0, rig_port_write("emucaset", 1, "speed", "ndr"));
	expect_reported(test, ibdev, handle, MEMBER(speed), IB_SPEED_NDR);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(ibdev, handle));
}

static struct kunit_case emu_ca_cases[] = {
	KUNIT_CASE(opening_has_a_doorbell),
	KUNIT_CASE(what_is_not_understood_is_refused),
	KUNIT_CASE(tag_does_not_upset_who_reads_it),
	KUNIT_CASE(doorbells_run_out),
	KUNIT_CASE(n2_queries_follow_the_mtu_of_a_network_device),
	KUNIT_CASE(queries_follow_settings_without_event),
	{}
};
KVT_SUITE(emu_ca);
