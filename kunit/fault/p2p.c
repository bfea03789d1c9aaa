// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of the calls of peer-to-peer DMA, and of a registration of such memory,
 * fails in turn. See sweep.c.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/scatterlist.h>
#include <kverbs/p2pdma.h>

#include "../p2pdma/trace.h"
#include "ca/rig.h"
#include "emu/rig.h"
#include "emu/rig_net.h"
#include "fault/sweep.h"
#include "p2p/rig.h"

/* More allocations than any call makes. */
#define NEVER	1000000

/* What the calls work on. */
struct p2p_victim {
	struct pci_dev *pdev;		/* a PCI device that is both provider and client */
	struct list_head clients;	/* list of clients */
	struct pci_dev *found;		/* provider that a call has found */
	struct scatterlist *sgl;	/* scatter list that a call has allocated */
};

UNMAKES(victim_end, p2p_victim, v, pci_p2pdma_client_list_free(&v->clients))

static struct p2p_victim *victim_new(struct kunit *test)
{
	struct p2p_victim *v = kvt_zalloc(test, sizeof(*v));

	v->pdev = p2p_rig_provider(test);
	INIT_LIST_HEAD(&v->clients);
	kvt_defer(test, victim_end, v);
	return v;
}

/*
 * The kernel makes the pages for the memory, and does not survive each failed allocation
 * there. As this is the last step, no allocation fails from here on. If one has failed before
 * and was survived, the state of the injection is left alone, so that the sweep counts it.
 */
static void spare_the_kernel(void *unused, struct pci_dev *pdev, const char *what, int ret)
{
	if (!strcmp(what, "pages") && !kvt_failed_nth())
		kvt_fail_nth(NEVER);
}

static void spare_end(void *unused)
{
	unregister_trace_p2p_provider(spare_the_kernel, NULL);
	tracepoint_synchronize_unregister();
}

static void spare_begin(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, register_trace_p2p_provider(spare_the_kernel, NULL));
	kvt_defer(test, spare_end, NULL);
}

/* References on the PCI device: kmemleak cannot find a leak, as the bus has a pointer, too. */
MAKES(count_references, p2p_victim, v, kref_read(&v->pdev->dev.kobj.kref))
MAKES(make_resource, p2p_victim, v, pci_p2pdma_add_resource(v->pdev, P2P_RIG_BAR, 0, 0))

static void unmake_resource(void *arg)
{
	struct p2p_victim *v = arg;

	p2p_rig_unbind(v->pdev);
	p2p_rig_bind(v->pdev);
}

static const struct victim victim_resource = {
	"pci_p2pdma_add_resource", make_resource, unmake_resource, UNDO_MAKES,
};

static void memory_of_a_device(struct kunit *test)
{
	struct p2p_victim *v = victim_new(test);

	if (!p2p_rig_is_own(v->pdev))
		kunit_skip(test, "it is the kernel's");
	unmake_resource(v);
	spare_begin(test);
	sweep(test, mock_new(test), &victim_resource, v);
}

MAKES(make_part, p2p_victim, v, pci_p2pdma_add_resource(v->pdev, P2P_RIG_BAR, SZ_2M, SZ_2M))

static void unmake_part(void *arg)
{
	struct p2p_victim *v = arg;

	unmake_resource(v);
	pci_p2pdma_add_resource(v->pdev, P2P_RIG_BAR, SZ_2M, 0);
}

static const struct victim victim_part = {
	"pci_p2pdma_add_resource, more", make_part, unmake_part, UNDO_MAKES,
};

static void more_memory_of_a_device(struct kunit *test)
{
	struct p2p_victim *v = victim_new(test);

	if (!p2p_rig_is_own(v->pdev))
		kunit_skip(test, "it is the kernel's");
	unmake_part(v);
	spare_begin(test);
	sweep(test, mock_new(test), &victim_part, v);
}

static int make_sgl(void *arg)
{
	struct p2p_victim *v = arg;
	unsigned int nents;

	v->sgl = pci_p2pmem_alloc_sgl(v->pdev, &nents, 3 * PAGE_SIZE + 1);
	return v->sgl ? 0 : -ENOMEM;
}

UNMAKES(unmake_sgl, p2p_victim, v, pci_p2pmem_free_sgl(v->pdev, v->sgl))

static const struct victim victim_sgl = {
	"pci_p2pmem_alloc_sgl", make_sgl, unmake_sgl, UNDO_QUIET,
	count_references,
};

static void a_scatter_list(struct kunit *test)
{
	sweep(test, mock_new(test), &victim_sgl, victim_new(test));
}

MAKES(make_client, p2p_victim, v, pci_p2pdma_add_client(&v->clients, &v->pdev->dev))
UNMAKES(unmake_client, p2p_victim, v, pci_p2pdma_remove_client(&v->clients, &v->pdev->dev))

static const struct victim victim_client = {
	"pci_p2pdma_add_client", make_client, unmake_client, UNDO_QUIET,
	count_references,
};

static void a_client(struct kunit *test)
{
	struct p2p_victim *v = victim_new(test);

	sweep(test, mock_new(test), &victim_client, v);
	KUNIT_EXPECT_TRUE(test, list_empty(&v->clients));
	/* Once more, with another client on the list. */
	KUNIT_ASSERT_EQ(test, 0, make_client(v));
	sweep(test, mock_new(test), &victim_client, v);
}

MAKES(make_assigned, p2p_victim, v, pci_p2pdma_assign_provider(v->pdev, &v->clients) ? 0 : -ENOMEM)

static void unmake_assigned(void *arg)
{
	struct p2p_victim *v = arg;

	pci_p2pdma_client_list_free(&v->clients);
	pci_p2pdma_add_client(&v->clients, &v->pdev->dev);
}

static int make_found(void *arg)
{
	struct p2p_victim *v = arg;

	v->found = pci_p2pmem_find(&v->clients);
	return v->found ? 0 : -ENOMEM;
}

/* Puts the provider that was found, and unbinds the list from it. */
static void unmake_found(void *arg)
{
	struct p2p_victim *v = arg;

	pci_dev_put(v->found);
	unmake_assigned(v);
}

static int make_found_many(void *arg)
{
	struct p2p_victim *v = arg;

	v->found = pci_p2pmem_find(&v->pdev->dev);
	return v->found ? 0 : -ENOMEM;
}

UNMAKES(unmake_found_many, p2p_victim, v, pci_dev_put(v->found))

static int make_distance_many(void *arg)
{
	struct p2p_victim *v = arg;
	struct device *dev = &v->pdev->dev;

	return pci_p2pdma_distance_many(v->pdev, &dev, 1, true) < 0 ? -ENOMEM : 0;
}

MAKES(make_distance, p2p_victim, v,
	pci_p2pdma_distance(v->pdev, &v->clients, true) < 0 ? -ENOMEM : 0)

static const struct victim victims_of_a_list[] = {
	{ "pci_p2pmem_find", make_found, unmake_found, UNDO_MAKES, .held = count_references },
	{ "pci_p2pmem_find_many", make_found_many, unmake_found_many, UNDO_QUIET,
	  .held = count_references },
	{ "pci_p2pdma_assign_provider", make_assigned, unmake_assigned, UNDO_MAKES,
	  .held = count_references },
	{ "pci_p2pdma_distance", make_distance, kvt_nothing, .held = count_references },
	{ "pci_p2pdma_distance_many", make_distance_many, kvt_nothing,
	  .held = count_references },
};

KUNIT_ARRAY_PARAM_DESC(victim, victims_of_a_list, name);

static void a_search(struct kunit *test)
{
	struct victim call = *(const struct victim *)test->param_value;
	struct p2p_victim *v = victim_new(test);

	KUNIT_ASSERT_EQ(test, 0, make_client(v));
	/* If the kernel keeps the memory, it works without memory to cache the result. */
	if (call.make == make_distance_many)
		call.survives = !p2p_rig_is_own(v->pdev);
	sweep(test, mock_new(test), &call, v);
}

/* Returns whether the memory can be allocated and mapped without allocating system memory. */
static bool use_memory(struct kunit *test, struct p2p_victim *v)
{
	struct sg_table sgt = { .sgl = v->sgl, .nents = 1, .orig_nents = 1 };
	struct device *dev = &v->pdev->dev;
	void *addr;
	int nents, err;
	bool hit;

	kvt_fail_nth(1);
	addr = pci_alloc_p2pmem(v->pdev, 2 * PAGE_SIZE);
	nents = pci_p2pdma_map_sg(dev, v->sgl, 1, DMA_TO_DEVICE);
	if (nents)
		pci_p2pdma_unmap_sg(dev, v->sgl, 1, DMA_TO_DEVICE);
	err = kverbs_p2pdma_map_sgtable(dev, &sgt, DMA_TO_DEVICE, 0);
	if (!err)
		kverbs_p2pdma_unmap_sgtable(dev, &sgt, DMA_TO_DEVICE, 0);
	if (addr)
		pci_free_p2pmem(v->pdev, addr, 2 * PAGE_SIZE);
	hit = kvt_failed_nth();
	return addr && nents == 1 && !err && !hit;
}

static void memory_of_a_device_needs_none_of_the_system(struct kunit *test)
{
	struct p2p_victim *v = victim_new(test);

	if (!p2p_rig_is_own(v->pdev))
		kunit_skip(test, "it is the kernel's");
	KUNIT_ASSERT_EQ(test, 0, make_sgl(v));
	KUNIT_EXPECT_TRUE(test, use_memory(test, v));
	unmake_sgl(v);
}

static void nobody(struct kverbs_p2pdma_user *user)
{
}

static void users_of_a_provider(struct kunit *test)
{
	struct kverbs_p2pdma_user user = { .revoke = nobody };
	struct pci_dev *pdev = p2p_rig_provider(test);

	KUNIT_EXPECT_EQ(test, 0, QUIET(test, kverbs_p2pdma_user_add(&user, pdev)));
	QUIET_VOID(test, kverbs_p2pdma_user_del(&user));
}

/*
 * pci_alloc_p2pmem() is left out: if the kernel keeps the memory, the call allocates system
 * memory to count its users.
 */
static void queries_of_a_provider(struct kunit *test)
{
	struct p2p_victim *v = victim_new(test);
	struct kverbs_p2pdma_route route;
	struct pci_dev *found;
	void *addr;

	KUNIT_EXPECT_TRUE(test, QUIET(test, pci_has_p2pmem(v->pdev)));
	KUNIT_EXPECT_EQ(test, 0, QUIET(test, kverbs_p2pdma_route(v->pdev, &v->pdev->dev, &route)));
	KUNIT_EXPECT_NOT_NULL(test, QUIET(test, kverbs_p2pdma_why_msg(route.why)));
	KUNIT_EXPECT_NOT_NULL(test, QUIET(test, kverbs_p2pdma_map_msg(route.map)));
	QUIET_VOID(test, pci_p2pmem_publish(v->pdev, false));
	QUIET_VOID(test, pci_p2pmem_publish(v->pdev, true));
	addr = KVT_PTR(test, pci_alloc_p2pmem(v->pdev, PAGE_SIZE));
	KUNIT_EXPECT_NE(test, 0, QUIET(test, pci_p2pmem_virt_to_bus(v->pdev, addr)));
	found = QUIET(test, kverbs_p2pdma_page_provider(virt_to_page(addr)));
	KUNIT_EXPECT_PTR_EQ(test, v->pdev, found);
	pci_dev_put(found);
	pci_free_p2pmem(v->pdev, addr, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, 0, make_client(v));
	QUIET_VOID(test, pci_p2pdma_client_list_free(&v->clients));
}

static void choice_of_a_provider(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test), *chosen = NULL;
	char *page = (char *)get_zeroed_page(GFP_KERNEL);
	bool use = false;

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, 0, QUIET(test, pci_p2pdma_enable_store(pci_name(pdev), &chosen,
								     &use)));
	KUNIT_EXPECT_EQ(test, strlen(pci_name(pdev)) + 1,
			QUIET(test, pci_p2pdma_enable_show(page, chosen, use)));
	pci_dev_put(chosen);
	free_page((unsigned long)page);
}

/* --- under the verbs --------------------------------------------------------- */

#define HCA		"kvt_p2p"

/* More pages than the entries in one chunk of a scatter list. */
#define USER_PAGES	200UL

/* Provider memory that a process has mapped, registered with an HCA. */
struct p2p_region {
	struct p2p_victim *v;	/* the provider */
	struct rig_end end;	/* the HCA, a child of the provider, and the PD */
	struct ib_mem mem;	/* the memory to be registered */
	struct ib_mr *mr;	/* the region */
};

/* Maps the last page first, so that no two pages are contiguous in the provider's memory. */
static void map_pages(struct kunit *test, struct file *file, unsigned long addr)
{
	unsigned long i, at;

	for (i = USER_PAGES; i-- > 0;) {
		at = vm_mmap(file, addr + i * PAGE_SIZE, PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, 0);
		KUNIT_ASSERT_EQ(test, addr + i * PAGE_SIZE, at);
	}
}

static void close_file(void *file)
{
	filp_close(file, NULL);
}

static unsigned long map_provider(struct kunit *test, struct pci_dev *provider)
{
	unsigned long addr = kvt_map(test, USER_PAGES * PAGE_SIZE);
	struct file *file;
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/p2pmem/allocate", pci_name(provider));
	file = KVT_PTR(test, filp_open(path, O_RDWR, 0));
	kvt_defer(test, close_file, file);
	map_pages(test, file, addr);
	return addr;
}

static int make_region(void *arg)
{
	struct p2p_region *r = arg;

	r->mr = ib_reg_mem(r->end.pd, &r->mem, r->mem.start, IB_ACCESS_LOCAL_WRITE);
	return PTR_ERR_OR_ZERO(r->mr);
}

UNMAKES(unmake_region, p2p_region, r, WARN_ON(ib_dereg_mr(r->mr)))

/* References on the provider, plus pages pinned by the process, plus users of the PD. */
MAKES(count_region, p2p_region, r,
	count_references(r->v) + kvt_pinned_pages() +
	atomic_read(&r->end.pd->usecnt))

static const struct victim victim_region = {
	"ib_reg_mem, p2p", make_region, unmake_region, .held = count_region,
};

static void memory_that_a_process_has_mapped(struct kunit *test)
{
	struct p2p_region *r = kvt_zalloc(test, sizeof(*r));

	r->v = victim_new(test);
	/* The HCA is a child of the provider, which it can reach on any machine. */
	rig_device_at(test, HCA, pci_name(r->v->pdev));
	rig_end_up(test, &r->end, HCA, 1);
	r->mem = (struct ib_mem) {
		.path = IB_MEM_P2P,
		.start = map_provider(test, r->v->pdev),
		.length = USER_PAGES << PAGE_SHIFT,
	};
	sweep(test, mock_new(test), &victim_region, r);
	KUNIT_EXPECT_EQ(test, IB_MEM_P2P, r->mem.found);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	vm_munmap(r->mem.start, USER_PAGES << PAGE_SHIFT);
}

static struct kunit_case p2p_fail_nth_cases[] = {
	KUNIT_CASE(memory_of_a_device),
	KUNIT_CASE(more_memory_of_a_device),
	KUNIT_CASE(a_scatter_list),
	KUNIT_CASE(a_client),
	KUNIT_CASE_PARAM(a_search, victim_gen_params),
	KUNIT_CASE(memory_of_a_device_needs_none_of_the_system),
	KUNIT_CASE_PARAM(users_of_a_provider, quiet_gen_params),
	KUNIT_CASE_PARAM(queries_of_a_provider, quiet_gen_params),
	KUNIT_CASE_PARAM(choice_of_a_provider, quiet_gen_params),
	KUNIT_CASE_SLOW(memory_that_a_process_has_mapped),
	{}
};
KVT_SUITE(p2p_fail_nth, .init = kvt_need_injection);

MODULE_DESCRIPTION("KUnit: each allocation of peer-to-peer DMA fails in turn");
MODULE_LICENSE("GPL");
