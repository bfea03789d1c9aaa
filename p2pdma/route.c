// SPDX-License-Identifier: GPL-2.0-only
/*
 * The route from a client to a provider's memory.
 *
 * A request that need not leave the PCI tree is sent by bus address: it goes up to the
 * nearest bridge that is above both functions, and down again, unless ACS tells a port
 * on the way, or that bridge, to send it upstream. In that case, or if there is no
 * such bridge, the request gets to the host bridge. Only a few host bridges are known
 * to forward it. The rules are those of the kernel (drivers/pci/p2pdma.c of Linux
 * 6.12), because where the kernel manages the memory, it decides.
 *
 * ACS is read anew for each path: setpci may change it at any time.
 *
 * No lock is taken: the tree above a function does not change while there is a reference
 * to that function, which holds its bus, and so the bridge above. Only the way from a virtual
 * function to its physical one is not held so: see p2p_upstream().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/export.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/string.h>
#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

#include "p2pdma.h"

/* The bits that send a request upstream which is meant for a peer. */
#define P2P_ACS_REDIRECT	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

/* AMD's processors have forwarded such requests since this family: Zen. */
#define P2P_ZEN_FAMILY		0x17

/* --- the policy ---------------------------------------------------------------- */

enum p2p_policy {
	P2P_DENY,	/* a host bridge that is not known to work is not used */
	P2P_WARN,	/* it is used, with a warning */
	P2P_FORCE,	/* it is used without a warning */
};

static int p2p_policy = P2P_DENY;

static const char * const p2p_policy_names[] = {
	[P2P_DENY]	= "deny",
	[P2P_WARN]	= "warn",
	[P2P_FORCE]	= "force",
};

/*
 * The pairs for which there was a warning: one bit for each, by hash. A pair that
 * shares its bit with another may get no warning: that is the price of needing no
 * memory and no lock.
 */
#define P2P_WARNED		4096
static DECLARE_BITMAP(p2p_warned, P2P_WARNED);

/* Returns the policy that applies: ours has no effect where the kernel maps. */
static int p2p_policy_now(void)
{
	return p2p_is_own() ? READ_ONCE(p2p_policy) : P2P_DENY;
}

static void p2p_policy_check(void)
{
	if (p2p_policy_now() != p2p_policy)
		pr_warn("policy=%s has no effect: the kernel manages the memory; load with own_provider=1 to change that\n",
			p2p_policy_names[p2p_policy]);
}

static int p2p_policy_set(const char *val, const struct kernel_param *kp)
{
	int policy = sysfs_match_string(p2p_policy_names, val);

	if (policy < 0)
		return policy;
	WRITE_ONCE(p2p_policy, policy);
	bitmap_zero(p2p_warned, P2P_WARNED);
	/* While the module is being loaded, own_provider may not have been set yet. */
	if (THIS_MODULE->state == MODULE_STATE_LIVE)
		p2p_policy_check();
	return 0;
}

static int p2p_policy_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", p2p_policy_names[READ_ONCE(p2p_policy)]);
}

static const struct kernel_param_ops p2p_policy_ops = {
	.set = p2p_policy_set,
	.get = p2p_policy_get,
};

module_param_cb(policy, &p2p_policy_ops, NULL, 0644);
MODULE_PARM_DESC(policy,
		 "Use of paths that are not known to work: deny, warn (allow with a warning) or force (allow) (default: deny)");

/* Warns, when the module is loaded, of parameters that have no effect. */
void p2p_route_init(void)
{
	p2p_policy_check();
}

static void p2p_policy_warn(struct pci_dev *provider, struct pci_dev *client)
{
	u32 pair[] = {
		pci_domain_nr(provider->bus), pci_dev_id(provider),
		pci_domain_nr(client->bus), pci_dev_id(client),
	};

	if (p2p_policy_now() == P2P_WARN &&
	    !test_and_set_bit(jhash2(pair, ARRAY_SIZE(pair), 0) % P2P_WARNED, p2p_warned))
		pci_warn(client, "using peer-to-peer memory of %s because of policy=warn; the path is not known to work and may corrupt data\n",
			 pci_name(provider));
}

/* --- host bridges -------------------------------------------------------------- */

/*
 * All of these are Intel's. The sources: drivers/pci/p2pdma.c, and the datasheets that
 * it is based on.
 */
static const struct p2p_known_host {
	u16 device;
	bool across;	/* to a function below another host bridge as well */
} p2p_known_hosts[] = {
	{ 0x3c00, false },	/* Xeon E5, Core i7 */
	{ 0x3c01, false },
	{ 0x2f00, false },	/* Xeon E7 v3, E5 v3, Core i7 */
	{ 0x2f01, false },
	{ 0x2030, true },	/* Skylake-E */
	{ 0x2031, true },
	{ 0x2032, true },
	{ 0x2033, true },
	{ 0x2020, true },
	{ 0x09a2, true },	/* Ice Lake and later */
};

static const struct p2p_known_host *p2p_host_lookup(const struct p2p_host *host)
{
	unsigned int i;

	if (host->vendor != PCI_VENDOR_ID_INTEL)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(p2p_known_hosts); i++)
		if (p2p_known_hosts[i].device == host->device)
			return &p2p_known_hosts[i];
	return NULL;
}

/*
 * A host bridge has no IDs of its own. Those of the first function on its bus stand
 * for it, if that function is 00.0 or, if there is no 00.0, a root port. No lock is
 * taken, because the lock of the list is one that sleeps. 00.0 is the host bridge's own
 * function, and the only root port, if there is one, has the caller's function below it:
 * neither goes away meanwhile. Where the first of several root ports is not the caller's, whoever
 * removes that one by sysfs at this very moment could free it too soon, here as in the kernel's
 * own P2PDMA.
 */
static void p2p_host_init(struct p2p_host *host, struct pci_dev *pdev)
{
	struct pci_host_bridge *bridge = pci_find_host_bridge(pdev->bus);
	struct pci_dev *first;

	*host = (struct p2p_host){ .bridge = bridge };
	first = list_first_entry_or_null(&bridge->bus->devices, struct pci_dev, bus_list);
	if (!first)
		return;
	if (first->devfn == PCI_DEVFN(0, 0) ||
	    pci_pcie_type(first) == PCI_EXP_TYPE_ROOT_PORT) {
		host->vendor = first->vendor;
		host->device = first->device;
		host->bus = first->bus->number;
		host->devfn = first->devfn;
	}
}

/* Any CPU will do, since the processors of a system are of one family. */
static bool p2p_cpu_is_zen(void)
{
#ifdef CONFIG_X86
	const struct cpuinfo_x86 *cpu = &cpu_data(0);

	return cpu->x86_vendor == X86_VENDOR_AMD && cpu->x86 >= P2P_ZEN_FAMILY;
#else
	return false;
#endif
}

/* Determines whether the host bridges forward a request from one function to the other. */
static enum kverbs_p2pdma_why p2p_host_why(const struct p2p_host *a, const struct p2p_host *b)
{
	const struct p2p_known_host *known_a = p2p_host_lookup(a);
	const struct p2p_known_host *known_b = p2p_host_lookup(b);

	if (p2p_cpu_is_zen())
		return KVERBS_P2PDMA_ZEN;
	if (!known_a || !known_b)
		return KVERBS_P2PDMA_NOT_LISTED;
	if (a->bridge != b->bridge && !(known_a->across && known_b->across))
		return KVERBS_P2PDMA_NOT_SAME_HOST;
	return KVERBS_P2PDMA_LISTED;
}

/* --- paths --------------------------------------------------------------------- */

static bool p2p_redirects(struct pci_dev *pdev)
{
	u16 ctrl = 0;

	if (!pdev->acs_cap)
		return false;
	pci_read_config_word(pdev, pdev->acs_cap + PCI_ACS_CTRL, &ctrl);
	return ctrl & P2P_ACS_REDIRECT;
}

/*
 * As pci_upstream_bridge(). A virtual function refers to its physical one until it is
 * removed: then the path ends here. Who removes both at this very moment could free the physical
 * one too soon, here as in the kernel's own P2PDMA.
 */
static struct pci_dev *p2p_upstream(struct pci_dev *pdev)
{
	return pdev->is_virtfn && !device_is_registered(&pdev->dev) ? NULL :
								       pci_upstream_bridge(pdev);
}

/* Any context. */
void p2p_path_init(struct p2p_path *path, struct pci_dev *pdev)
{
	struct pci_dev *up;

	path->nr = 0;
	for (up = pdev; up && path->nr < P2P_MAX_DEPTH; up = p2p_upstream(up)) {
		path->dev[path->nr] = up;
		path->redirects[path->nr] = p2p_redirects(up);
		path->nr++;
	}
	p2p_host_init(&path->host, pdev);
}

/**
 * struct p2p_fork - where two paths meet
 * @up: ports from the provider to the common bridge
 * @down: ports from the common bridge to the client
 * @common: there is a common bridge
 */
struct p2p_fork {
	int up;
	int down;
	bool common;
};

/* From the root down to the common bridge, the two paths are the same. */
static struct p2p_fork p2p_fork_find(const struct p2p_path *provider,
				     const struct p2p_path *client)
{
	int up = provider->nr, down = client->nr;

	while (up && down && provider->dev[up - 1] == client->dev[down - 1]) {
		up--;
		down--;
	}
	return (struct p2p_fork){ .up = up, .down = down, .common = up < provider->nr };
}

/* As p2p_path_redirecting(), but only stores @max ports. */
static int p2p_fork_redirecting(const struct p2p_fork *fork, const struct p2p_path *provider,
				const struct p2p_path *client, struct pci_dev **ports, int max)
{
	int nr = 0, i;

	if (!fork->common)
		return 0;
	for (i = 0; i <= fork->up; i++)
		if (provider->redirects[i] && nr++ < max)
			ports[nr - 1] = provider->dev[i];
	for (i = fork->down - 1; i >= 0; i--)
		if (client->redirects[i] && nr++ < max)
			ports[nr - 1] = client->dev[i];
	return nr;
}

/*
 * Finds the ports that redirect, in their order from the provider to the client;
 * @ports has room for P2P_MAX_PORTS of them. Returns their number. Without a common
 * bridge it does not matter which ports redirect, and none are returned.
 */
int p2p_path_redirecting(const struct p2p_path *provider, const struct p2p_path *client,
			 struct pci_dev **ports)
{
	struct p2p_fork fork = p2p_fork_find(provider, client);

	return p2p_fork_redirecting(&fork, provider, client, ports, P2P_MAX_PORTS);
}

static void p2p_route_set_bridge(struct kverbs_p2pdma_route *route, const struct pci_dev *pdev)
{
	route->has_bridge = true;
	route->bus = pdev->bus->number;
	route->devfn = pdev->devfn;
}

static void p2p_route_set_host(struct kverbs_p2pdma_route *route, const struct p2p_host *host)
{
	route->has_bridge = host->vendor;
	route->bus = host->bus;
	route->devfn = host->devfn;
}

/* Finally, the policy decides. */
static void p2p_route_by_host(struct kverbs_p2pdma_route *route, const struct p2p_path *provider,
			      const struct p2p_path *client)
{
	enum kverbs_p2pdma_why why = p2p_host_why(&provider->host, &client->host);

	route->why = why;
	if (why == KVERBS_P2PDMA_ZEN || why == KVERBS_P2PDMA_LISTED) {
		route->map = KVERBS_P2PDMA_HOST_BRIDGE;
	} else if (p2p_policy_now() != P2P_DENY) {
		route->map = KVERBS_P2PDMA_HOST_BRIDGE;
		route->why = KVERBS_P2PDMA_BY_POLICY;
	} else if (route->acs_ports) {
		route->why = KVERBS_P2PDMA_ACS;
	}
}

/* Any context. */
void p2p_path_route(const struct p2p_path *provider, const struct p2p_path *client,
		    struct kverbs_p2pdma_route *route)
{
	struct p2p_fork fork = p2p_fork_find(provider, client);
	struct pci_dev *first;

	*route = (struct kverbs_p2pdma_route){
		.map = KVERBS_P2PDMA_REFUSED,
		.hops = fork.up + fork.down,
		.acs_ports = p2p_fork_redirecting(&fork, provider, client, &first, 1),
		.domain = pci_domain_nr(provider->dev[0]->bus),
	};
	if (route->acs_ports)
		p2p_route_set_bridge(route, first);
	else if (fork.common)
		p2p_route_set_bridge(route, provider->dev[fork.up]);
	else
		p2p_route_set_host(route, &provider->host);

	if (fork.common && !route->acs_ports) {
		route->map = KVERBS_P2PDMA_BUS_ADDR;
		route->why = route->hops ? KVERBS_P2PDMA_COMMON_BRIDGE :
					   KVERBS_P2PDMA_SAME_FUNCTION;
		return;
	}
	p2p_route_by_host(route, provider, client);
}

/*
 * Finds the route for a client that is about to use it, and warns if the policy says
 * so. Any context. Returns 0 or -EREMOTEIO.
 */
int p2p_path_use(const struct p2p_path *provider, const struct p2p_path *client,
		 struct kverbs_p2pdma_route *route)
{
	p2p_path_route(provider, client, route);
	if (route->why == KVERBS_P2PDMA_BY_POLICY)
		p2p_policy_warn(provider->dev[0], client->dev[0]);
	return route->map == KVERBS_P2PDMA_REFUSED ? -EREMOTEIO : 0;
}

/* --- the call ------------------------------------------------------------------ */

/* Any context. A parent stays while its child is registered. */
struct pci_dev *p2p_pci_ancestor(struct device *dev)
{
	for (; dev; dev = dev->parent)
		if (dev_is_pci(dev))
			return pci_dev_get(to_pci_dev(dev));
	return NULL;
}

/**
 * kverbs_p2pdma_route() - find the route from a client to a provider's memory
 * @provider: a PCI function; it need not provide memory yet
 * @client: any device; what counts is the PCI function that it is, or the nearest one
 *	above it
 * @route: filled in, also on errors
 *
 * The route is valid for the moment only, because ACS and the policy may change. Where the
 * kernel manages the memory, it is the route that the kernel would use.
 *
 * Context: Any.
 * Return: 0; -EREMOTEIO if there is no route; -ENODEV if @client has no PCI ancestor.
 */
int kverbs_p2pdma_route(struct pci_dev *provider, struct device *client,
			struct kverbs_p2pdma_route *route)
{
	struct pci_dev *pdev = p2p_pci_ancestor(client);
	struct p2p_path from, to;
	int err;

	if (!pdev) {
		*route = (struct kverbs_p2pdma_route){
			.map = KVERBS_P2PDMA_REFUSED,
			.why = KVERBS_P2PDMA_NOT_PCI,
			.hops = -1,
		};
		return -ENODEV;
	}
	p2p_path_init(&from, provider);
	p2p_path_init(&to, pdev);
	err = p2p_path_use(&from, &to, route);
	pci_dev_put(pdev);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_route);
