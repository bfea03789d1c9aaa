// SPDX-License-Identifier: GPL-2.0-only
/*
 * Providers that users choose, by files of sysfs and configfs.
 */
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

/* What is written into the file, and what follows from it. */
struct choice {
	const char *text;	/* what is written */
	bool use;		/* memory is wanted */
};

static const struct choice truth_values[] = {
	{ "1", true }, { "1\n", true }, { "y\n", true }, { "on\n", true },
	{ "0", false }, { "0\n", false }, { "N", false }, { "off\n", false },
};

KUNIT_ARRAY_PARAM_DESC(truth_value, truth_values, text);

static void a_truth_value_leaves_the_provider_open(struct kunit *test)
{
	const struct choice *c = test->param_value;
	struct pci_dev *chosen = NULL;
	bool use = !c->use;

	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_enable_store(c->text, &chosen, &use));
	KUNIT_EXPECT_EQ(test, c->use, use);
	KUNIT_EXPECT_NULL(test, chosen);
}

static const struct choice no_choices[] = {
	{ "" }, { "\n" }, { "2\n" }, { "01\n" }, { "10" }, { "x\n" },
	{ "0000:ff:1f.7\n" }, { "1111:ff:1f.7" },
};

KUNIT_ARRAY_PARAM_DESC(no_choice, no_choices, text);

static void what_names_nothing_is_refused(struct kunit *test)
{
	const struct choice *c = test->param_value;
	struct pci_dev *chosen = NULL;
	bool use;

	KUNIT_EXPECT_EQ(test, -ENODEV, pci_p2pdma_enable_store(c->text, &chosen, &use));
	KUNIT_EXPECT_NULL(test, chosen);
}

static void an_address_names_a_provider(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test), *chosen = NULL;
	char *text = kvt_zalloc(test, PAGE_SIZE);
	unsigned int refs = kref_read(&pdev->dev.kobj.kref);
	bool use = false;

	sprintf(text, "%s\n", pci_name(pdev));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_enable_store(text, &chosen, &use));
	KUNIT_EXPECT_PTR_EQ(test, pdev, chosen);
	KUNIT_EXPECT_TRUE(test, use);
	KUNIT_EXPECT_EQ(test, refs + 1, kref_read(&pdev->dev.kobj.kref));
	pci_dev_put(chosen);
}

static void a_device_that_provides_nothing_is_refused(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test), *chosen;
	unsigned int refs = kref_read(&pdev->dev.kobj.kref);
	bool use;

	pci_p2pmem_publish(pdev, false);
	KUNIT_EXPECT_EQ(test, -ENODEV, pci_p2pdma_enable_store(pci_name(pdev), &chosen, &use));
	KUNIT_EXPECT_EQ(test, refs, kref_read(&pdev->dev.kobj.kref));
}

static void what_was_chosen_is_shown(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	/* Printing into a file wants a whole page. */
	char *page = (char *)get_zeroed_page(GFP_KERNEL);
	char expected[32];

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, 2, pci_p2pdma_enable_show(page, NULL, false));
	KUNIT_EXPECT_STREQ(test, "0\n", page);
	KUNIT_EXPECT_EQ(test, 2, pci_p2pdma_enable_show(page, NULL, true));
	KUNIT_EXPECT_STREQ(test, "1\n", page);
	KUNIT_EXPECT_EQ(test, 2, pci_p2pdma_enable_show(page, pdev, false));
	KUNIT_EXPECT_STREQ(test, "0\n", page);
	snprintf(expected, sizeof(expected), "%s\n", pci_name(pdev));
	KUNIT_EXPECT_EQ(test, strlen(expected), pci_p2pdma_enable_show(page, pdev, true));
	KUNIT_EXPECT_STREQ(test, expected, page);
	free_page((unsigned long)page);
}

static struct kunit_case p2p_choice_cases[] = {
	KUNIT_CASE_PARAM(a_truth_value_leaves_the_provider_open, truth_value_gen_params),
	KUNIT_CASE_PARAM(what_names_nothing_is_refused, no_choice_gen_params),
	KUNIT_CASE(an_address_names_a_provider),
	KUNIT_CASE(a_device_that_provides_nothing_is_refused),
	KUNIT_CASE(what_was_chosen_is_shown),
	{}
};
KVT_SUITE(p2p_choice);
