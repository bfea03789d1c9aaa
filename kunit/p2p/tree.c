// SPDX-License-Identifier: GPL-2.0-only
/*
 * Emulated PCI config space, made from a table of functions: see tree.h.
 *
 * Bus numbers of bridges and addresses of BARs are set before the scan, as firmware would
 * do; the addresses are in an unused part of the address space. Writes to BARs, bus numbers
 * and ACS control take effect, since the PCI core reads them back; others are ignored.
 *
 * Functions are scanned but not added (pci_bus_add_devices()), so that no driver binds to
 * the ports.
 *
 * Config space is written by one thread at a time: first by the scan, then by the case.
 */
#include <linux/ioport.h>
#include <linux/xarray.h>
#include <asm/processor.h>

#include <kverbs/p2pdma.h>
#include "lib/lib.h"
#include "p2p/tree.h"

#define CONFIG_SIZE	0x200
#define PCIE_CAP	0x40
#define ACS_CAP		0x100

/* Bus numbers of each host bridge, and address range that is searched for room for BARs. */
#define HOST_BUSES	0x80
#define BAR_FIRST	(64ULL * SZ_1G)
#define BAR_FLAGS	(PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH)
#define BAR_LAST	(512ULL * SZ_1G)

/* Config space of a function. */
struct p2p_config {
	struct p2p_fn fn;	/* row of the function in the table */
	u8 bus;			/* number of the bus that the function is on */
	u8 space[CONFIG_SIZE];	/* contents, little endian */
};

/* A host bridge of a tree. */
struct p2p_tree_host {
	struct pci_bus *bus;		/* the root bus; NULL if there are no functions on it */
	struct pci_sysdata sysdata;	/* the architecture's data of the host bridge */
	struct p2p_tree *tree;		/* the tree it belongs to */
	struct resource buses;		/* range of bus numbers */
};

/* Resources assigned so far while config space is made. */
struct p2p_layout {
	struct p2p_tree *tree;
	u8 next_bus;	/* the last bus number assigned, under the current host bridge */
	u64 next_bar;	/* address of the next BAR */
};

static bool is_bridge(const struct p2p_fn *fn)
{
	return fn->kind == P2P_ROOT_PORT || fn->kind == P2P_UPSTREAM ||
	       fn->kind == P2P_DOWNSTREAM;
}

static void put16(struct p2p_config *cfg, int where, u16 value)
{
	cfg->space[where] = value;
	cfg->space[where + 1] = value >> 8;
}

static void put32(struct p2p_config *cfg, int where, u32 value)
{
	put16(cfg, where, value);
	put16(cfg, where + 2, value >> 16);
}

/* --- config space accesses of the PCI core ------------------------------------- */

static struct p2p_config *config_at(struct pci_bus *bus, unsigned int devfn)
{
	struct p2p_tree_host *host = container_of(to_pci_sysdata(bus), struct p2p_tree_host,
						  sysdata);

	return xa_load(&host->tree->places, PCI_DEVID(bus->number, devfn));
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct p2p_config *cfg = config_at(bus, devfn);
	int i;

	*value = cfg ? 0 : ~0U;
	if (!cfg || where + size > CONFIG_SIZE)
		return PCIBIOS_SUCCESSFUL;
	for (i = 0; i < size; i++)
		*value |= (u32)cfg->space[where + i] << 8 * i;
	return PCIBIOS_SUCCESSFUL;
}

/* The low bits of BAR 0 read as 0 after a write of ones, which tells the size of the BAR. */
static void write_bar(struct p2p_config *cfg, int where, u32 value)
{
	if (where == PCI_BASE_ADDRESS_0)
		put32(cfg, where, (value & ~(P2P_TREE_BAR - 1)) | BAR_FLAGS);
	else if (where == PCI_BASE_ADDRESS_1)
		put32(cfg, where, value);
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct p2p_config *cfg = config_at(bus, devfn);

	if (!cfg)
		return PCIBIOS_SUCCESSFUL;
	if (cfg->fn.kind == P2P_ENDPOINT && size == 4)
		write_bar(cfg, where, value);
	if (is_bridge(&cfg->fn) && where == PCI_PRIMARY_BUS && size == 4)
		put32(cfg, where, value);
	if (where == ACS_CAP + PCI_ACS_CTRL && size == 2 && cfg->fn.acs != P2P_NO_ACS)
		put16(cfg, where, value);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read = config_read,
	.write = config_write,
};

/* --- making config space of the table ------------------------------------------ */

static u16 pcie_flags(enum p2p_kind kind)
{
	static const u8 types[] = {
		[P2P_ROOT_PORT]		= PCI_EXP_TYPE_ROOT_PORT,
		[P2P_UPSTREAM]		= PCI_EXP_TYPE_UPSTREAM,
		[P2P_DOWNSTREAM]	= PCI_EXP_TYPE_DOWNSTREAM,
		[P2P_ENDPOINT]		= PCI_EXP_TYPE_ENDPOINT,
	};

	return 2 | types[kind] << 4;
}

static void make_caps(struct p2p_config *cfg)
{
	if (cfg->fn.kind != P2P_INTEGRATED) {
		put16(cfg, PCI_STATUS, PCI_STATUS_CAP_LIST);
		cfg->space[PCI_CAPABILITY_LIST] = PCIE_CAP;
		cfg->space[PCIE_CAP] = PCI_CAP_ID_EXP;
		put16(cfg, PCIE_CAP + PCI_EXP_FLAGS, pcie_flags(cfg->fn.kind));
		if (cfg->fn.acs != P2P_NO_ACS)
			put32(cfg, ACS_CAP, PCI_EXT_CAP_ID_ACS | 1 << 16);
	}
}

/* Are there other functions in the same slot? Then all get the multi-function bit. */
static bool has_siblings(const struct p2p_tree *tree, const struct p2p_fn *fn)
{
	const struct p2p_fn *other;
	int i;

	for (i = 0; i < tree->nr; i++) {
		other = &tree->config[i].fn;
		if (other != fn && other->up == fn->up &&
		    PCI_SLOT(other->devfn) == PCI_SLOT(fn->devfn))
			return true;
	}
	return false;
}

static void make_header(struct p2p_tree *tree, struct p2p_config *cfg)
{
	const struct p2p_fn *fn = &cfg->fn;
	bool bridge = is_bridge(fn);

	put16(cfg, PCI_VENDOR_ID, fn->vendor ?: P2P_TREE_VENDOR);
	put16(cfg, PCI_DEVICE_ID, fn->device ?: P2P_TREE_DEVICE);
	put16(cfg, PCI_CLASS_DEVICE, bridge ? PCI_CLASS_BRIDGE_PCI : PCI_CLASS_MEMORY_OTHER);
	cfg->space[PCI_HEADER_TYPE] = bridge ? PCI_HEADER_TYPE_BRIDGE : PCI_HEADER_TYPE_NORMAL;
	if (has_siblings(tree, fn))
		cfg->space[PCI_HEADER_TYPE] |= 0x80;
	make_caps(cfg);
}

static int make_bus(struct p2p_layout *layout, int up, u8 bus);

static int make_fn(struct p2p_layout *layout, int row, u8 bus)
{
	struct p2p_config *cfg = &layout->tree->config[row];
	int err = 0;

	cfg->bus = bus;
	make_header(layout->tree, cfg);
	if (cfg->fn.kind == P2P_ENDPOINT) {
		put32(cfg, PCI_BASE_ADDRESS_0, lower_32_bits(layout->next_bar) | BAR_FLAGS);
		put32(cfg, PCI_BASE_ADDRESS_1, upper_32_bits(layout->next_bar));
		layout->next_bar += P2P_TREE_BAR;
	} else if (is_bridge(&cfg->fn)) {
		cfg->space[PCI_PRIMARY_BUS] = bus;
		cfg->space[PCI_SECONDARY_BUS] = ++layout->next_bus;
		put16(cfg, PCI_MEMORY_BASE, 0xfff0);
		err = make_bus(layout, row, layout->next_bus);
		cfg->space[PCI_SUBORDINATE_BUS] = layout->next_bus;
	}
	return err ?: xa_err(xa_store(&layout->tree->places, PCI_DEVID(bus, cfg->fn.devfn), cfg,
				      GFP_KERNEL));
}

/* Makes config space of all functions of a bus, and of those below them. */
static int make_bus(struct p2p_layout *layout, int up, u8 bus)
{
	int err = 0, row;

	for (row = 0; row < layout->tree->nr && !err; row++)
		if (layout->tree->config[row].fn.up == up)
			err = make_fn(layout, row, bus);
	return err;
}

/* Finds unused addresses for @nr BARs; returns 0 if there are none. */
static u64 find_bars(int nr)
{
	u64 size = (u64)nr * P2P_TREE_BAR, start;

	for (start = BAR_FIRST; start < BAR_LAST; start += SZ_1G)
		if (region_intersects(start, size, 0, IORES_DESC_NONE) == REGION_DISJOINT)
			return start;
	return 0;
}

static int make_config(struct p2p_tree *tree)
{
	struct p2p_layout layout = { .tree = tree, .next_bar = find_bars(tree->nr) };
	int err = layout.next_bar ? 0 : -EBUSY;
	int i;

	for (i = 0; i < P2P_TREE_HOSTS && !err; i++) {
		layout.next_bus = i * HOST_BUSES;
		err = make_bus(&layout, P2P_HOST(i), layout.next_bus);
		tree->host[i].buses = (struct resource){
			.name = "kvt",
			.start = i * HOST_BUSES,
			.end = layout.next_bus,
			.flags = IORESOURCE_BUS,
		};
	}
	return err;
}

/* --- creating and removing trees ----------------------------------------------- */

static bool host_is_used(const struct p2p_tree *tree, int nr)
{
	int row;

	for (row = 0; row < tree->nr; row++)
		if (tree->config[row].fn.up == P2P_HOST(nr))
			return true;
	return false;
}

static int scan_host(struct p2p_tree *tree, int nr)
{
	struct p2p_tree_host *host = &tree->host[nr];
	LIST_HEAD(resources);

	if (!host_is_used(tree, nr))
		return 0;
	host->tree = tree;
	host->sysdata.domain = P2P_TREE_DOMAIN;
	host->sysdata.node = NUMA_NO_NODE;
	pci_add_resource(&resources, &host->buses);
	host->bus = pci_create_root_bus(NULL, host->buses.start, &config_ops, &host->sysdata,
					&resources);
	if (!host->bus) {
		pci_free_resource_list(&resources);
		return -ENOMEM;
	}
	pci_scan_child_bus(host->bus);
	return 0;
}

static void remove_host(struct pci_bus *bus)
{
	struct pci_host_bridge *bridge = to_pci_host_bridge(bus->bridge);

	pci_stop_root_bus(bus);
	pci_remove_root_bus(bus);
	/* Drops the reference that pci_create_root_bus() took. */
	pci_free_host_bridge(bridge);
}

static void remove_hosts(struct p2p_tree *tree)
{
	int i;

	pci_lock_rescan_remove();
	for (i = 0; tree->host && i < P2P_TREE_HOSTS; i++)
		if (tree->host[i].bus)
			remove_host(tree->host[i].bus);
	pci_unlock_rescan_remove();
}

static void tree_free(void *arg)
{
	struct p2p_tree *tree = arg;
	int row;

	remove_hosts(tree);
	for (row = 0; row < tree->nr; row++)
		pci_dev_put(tree->pdev[row]);
	xa_destroy(&tree->places);
	kfree(tree->host);
	kvfree(tree->config);
	kfree(tree);
}

/**
 * p2p_tree_free() - remove a tree before the case ends
 * @test: the case
 * @tree: the tree, from p2p_tree_new()
 *
 * Context: Process.
 */
void p2p_tree_free(struct kunit *test, struct p2p_tree *tree)
{
	kunit_release_action(test, tree_free, tree);
}
EXPORT_SYMBOL_GPL(p2p_tree_free);

static int scan(struct p2p_tree *tree)
{
	int err = 0, i;

	pci_lock_rescan_remove();
	for (i = 0; i < P2P_TREE_HOSTS && !err; i++)
		err = scan_host(tree, i);
	pci_unlock_rescan_remove();
	return err;
}

/**
 * p2p_tree_new() - create a tree of emulated PCI functions
 * @test: the case, at the end of which the tree is removed
 * @fns: the table; bridges come before the functions below them
 * @nr: number of rows, at most P2P_TREE_FNS
 *
 * Context: Process.
 * Return: the tree; the case is aborted if it cannot be created.
 */
struct p2p_tree *p2p_tree_new(struct kunit *test, const struct p2p_fn *fns, int nr)
{
	struct p2p_tree *tree = KVT_PTR(test, kzalloc(sizeof(*tree), GFP_KERNEL));
	const struct p2p_config *cfg;
	int row;

	KUNIT_ASSERT_LE(test, nr, P2P_TREE_FNS);
	xa_init(&tree->places);
	kvt_defer(test, tree_free, tree);
	tree->host = KVT_PTR(test, kcalloc(P2P_TREE_HOSTS, sizeof(*tree->host), GFP_KERNEL));
	tree->config = KVT_PTR(test, kvcalloc(nr, sizeof(*tree->config), GFP_KERNEL));
	tree->nr = nr;
	for (row = 0; row < nr; row++)
		tree->config[row].fn = fns[row];
	KUNIT_ASSERT_EQ(test, 0, make_config(tree));
	KUNIT_ASSERT_EQ(test, 0, scan(tree));
	for (row = 0; row < nr; row++) {
		cfg = &tree->config[row];
		tree->pdev[row] = pci_get_domain_bus_and_slot(P2P_TREE_DOMAIN, cfg->bus,
							      cfg->fn.devfn);
		KUNIT_ASSERT_NOT_NULL(test, tree->pdev[row]);
		p2p_tree_set_acs(tree, row, cfg->fn.acs);
	}
	return tree;
}
EXPORT_SYMBOL_GPL(p2p_tree_new);

/**
 * p2p_tree_pull() - remove a function, and those below it
 * @tree: the tree
 * @row: row of the function
 *
 * Context: Process.
 */
void p2p_tree_pull(struct p2p_tree *tree, int row)
{
	pci_stop_and_remove_bus_device_locked(tree->pdev[row]);
	pci_dev_put(tree->pdev[row]);
	tree->pdev[row] = NULL;
}
EXPORT_SYMBOL_GPL(p2p_tree_pull);

/**
 * p2p_tree_set_acs() - write a function's ACS control
 * @tree: the tree
 * @row: row of the function; nothing is done if it has no ACS
 * @acs: bits, PCI_ACS_*
 *
 * Context: Process.
 */
void p2p_tree_set_acs(struct p2p_tree *tree, int row, u16 acs)
{
	struct pci_dev *pdev = tree->pdev[row];

	if (pdev->acs_cap)
		pci_write_config_word(pdev, pdev->acs_cap + PCI_ACS_CTRL, acs);
}
EXPORT_SYMBOL_GPL(p2p_tree_set_acs);

/**
 * p2p_tree_provide() - make a function a provider of the memory of its BAR 0
 * @test: the case
 * @tree: the tree
 * @row: row of the function
 * @publish: publish the memory
 *
 * Context: Process.
 */
void p2p_tree_provide(struct kunit *test, struct p2p_tree *tree, int row, bool publish)
{
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(tree->pdev[row], 0, 0, 0));
	if (publish)
		pci_p2pmem_publish(tree->pdev[row], true);
}
EXPORT_SYMBOL_GPL(p2p_tree_provide);

/* --- provider and processor ---------------------------------------------------- */

/**
 * p2p_tree_own() - whether kverbs_p2pdma manages providers' memory itself
 *
 * Context: Process.
 * Return: true if it does, false if the kernel's p2pdma code does.
 */
bool p2p_tree_own(void)
{
	char text[8] = "";

	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		return true;
	kvt_read_file("/sys/module/kverbs_p2pdma/parameters/own_provider", text, sizeof(text));
	return text[0] == 'Y';
}
EXPORT_SYMBOL_GPL(p2p_tree_own);

/* Vendor and family of CPU 0, saved while p2p_tree_amd() overrides them. */
static struct {
	bool saved;
	u8 vendor;
	u8 family;
} real_cpu;

static void restore_cpu(void *unused)
{
	cpu_data(0).x86_vendor = real_cpu.vendor;
	cpu_data(0).x86 = real_cpu.family;
	real_cpu.saved = false;
}

/**
 * p2p_tree_amd() - override vendor and family of CPU 0
 * @test: the case, at the end of which they are restored
 * @family: AMD processor family; 0 for an Intel processor
 *
 * Context: Process.
 */
void p2p_tree_amd(struct kunit *test, u8 family)
{
	struct cpuinfo_x86 *cpu = &cpu_data(0);

	if (!real_cpu.saved) {
		real_cpu.saved = true;
		real_cpu.vendor = cpu->x86_vendor;
		real_cpu.family = cpu->x86;
		kvt_defer(test, restore_cpu, NULL);
	}
	cpu->x86_vendor = family ? X86_VENDOR_AMD : X86_VENDOR_INTEL;
	cpu->x86 = family;
}
EXPORT_SYMBOL_GPL(p2p_tree_amd);
