// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs doctor: looks whether a machine can run RDMA by kverbs, and says what to do
 * where it cannot.
 *
 * A check is a function in the table. It reports at least one line; if it cannot find out
 * something, it does not report that as a fault.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stack.h"

/* kverbs is tested on the oldest and the newest series; DKMS builds it for those between, too. */
#define SERIES(major, minor)	((major) * 1000 + (minor))
#define OLDEST		SERIES(6, 1)
#define NEWEST		SERIES(6, 12)
/* UDP port of RoCE v2. */
#define ROCE_PORT	"4791"
/* The MTU of a network device for an RDMA MTU of 1024 and the headers of RoCE v2 over IPv6. */
#define MTU_ENOUGH	1144
/* What programs register to begin with: perftest, for one, takes about this. */
#define MEMLOCK_ENOUGH	(64UL << 20)
#define CAP_IPC_LOCK	14

enum verdict { GOOD, ODD, BAD };

static const char * const verdicts[] = { "ok", "warn", "fail" };

struct report {
	struct json *json;		/* or NULL for text */
	struct loaded_list loaded;
	const char *check;
	unsigned int bad;
};

/* todo: what to do, or NULL. */
static void __printf(4, 5) report(struct report *rep, enum verdict verdict, const char *todo,
				  const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rep->bad += verdict == BAD;
	if (!rep->json) {
		printf("%-5s %-12s ", verdicts[verdict], rep->check);
		print_text(stdout, text);
		printf("\n%s%s%s", todo ? "      -> " : "", todo ?: "", todo ? "\n" : "");
		return;
	}
	json_object(rep->json, NULL);
	json_string(rep->json, "check", rep->check);
	json_string(rep->json, "verdict", verdicts[verdict]);
	json_string(rep->json, "text", text);
	if (todo)
		json_string(rep->json, "todo", todo);
	else
		json_null(rep->json, "todo");
	json_end(rep->json);
}

static bool is_loaded(struct report *rep, const char *name)
{
	return loaded_named(&rep->loaded, name);
}

static void check_kernel(struct report *rep)
{
	const char *release = kernel_release();
	unsigned int major = 0, minor = 0;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		report(rep, ODD, NULL, "cannot read the release '%s'", release);
	else if (SERIES(major, minor) < OLDEST)
		report(rep, BAD, "install a kernel of 6.1 to 6.12", "%s is older than 6.1", release);
	else if (SERIES(major, minor) > NEWEST)
		report(rep, ODD, "install a kernel of 6.1 to 6.12, or build kverbs from its sources",
		       "%s is newer than 6.12, on which it is tested, and packages leave it out", release);
	else
		report(rep, GOOD, NULL, "%s", release);
	if (!file_exists("/proc/modules"))
		report(rep, BAD, "boot a kernel with CONFIG_MODULES",
		       "it cannot load modules, or /proc is not mounted");
}

static void check_headers(struct report *rep)
{
	const char *release = kernel_release();
	char todo[256];

	snprintf(todo, sizeof(todo), "apt install linux-headers-%s", release);
	if (file_exists("/lib/modules/%s/build/Makefile", release) ||
	    file_exists("/usr/src/linux-headers-%s/Makefile", release))
		report(rep, GOOD, NULL, "those of %s are installed", release);
	else
		report(rep, ODD, todo, "none are installed for %s, so modules cannot be built for it",
		       release);
}

static bool has_stock_hca(void)
{
	/* Of make modules_install, and of DKMS on Debian and elsewhere. */
	static const char * const places[] = { "updates/kverbs", "updates/dkms", "extra" };
	static const char * const endings[] = { "", ".xz", ".zst", ".gz" };
	size_t i, k;

	for (i = 0; i < COUNT(places); i++)
		for (k = 0; k < COUNT(endings); k++)
			if (file_exists("/lib/modules/%s/%s/kverbs_emu.ko%s",
					kernel_release(), places[i], endings[k]))
				return true;
	return false;
}

/* Gets the first line of a file that reports an error, or "". */
static void first_error(char *line, size_t size, const char *path)
{
	FILE *file = open_to_read("%s", path);

	*line = '\0';
	while (file && fgets(line, size, file) && !strstr(line, "rror"))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* DKMS leaves the log of a build in that directory only if the build failed. */
static void check_dkms(struct report *rep)
{
	static const char * const packages[] = { "kverbs-emu", "kverbs" };
	char path[PATH_MAX], line[256], todo[PATH_MAX + 8];
	const char *version;
	size_t i;
	DIR *dir;

	for (i = 0; i < COUNT(packages); i++) {
		dir = open_dir("/var/lib/dkms/%s", packages[i]);
		while ((version = next_name(dir))) {
			snprintf(path, sizeof(path), "/var/lib/dkms/%s/%s/build/make.log",
				 packages[i], version);
			if (!file_exists("%s", path))
				continue;
			first_error(line, sizeof(line), path);
			snprintf(todo, sizeof(todo), "see %s", path);
			report(rep, ODD, todo, "DKMS could not build %s %s: %s", packages[i],
			       version, line);
		}
		if (dir)
			closedir(dir);
	}
}

static void check_modules(struct report *rep)
{
	bool stock = has_stock_hca();
	struct name_list own;

	own_modules(&own);
	if (own.count)
		report(rep, GOOD, NULL, "%zu modules of kverbs are installed", own.count);
	if (stock)
		report(rep, GOOD, NULL, "kverbs_emu for the kernel's own core is installed");
	/* A developer's, by insmod, are enough until the machine boots again. */
	if (!own.count && !stock)
		report(rep, is_loaded(rep, OWN_CORE) || is_loaded(rep, "kverbs_emu") ? ODD : BAD,
		       "in the source tree of kverbs: make modules_install, or install what make deb makes",
		       "none are installed for %s", kernel_release());
	check_dkms(rep);
}

static void check_signatures(struct report *rep)
{
	char enforce[16], lockdown[128];

	read_line(enforce, sizeof(enforce), "/sys/module/module/parameters/sig_enforce");
	read_line(lockdown, sizeof(lockdown), "/sys/kernel/security/lockdown");
	if (*enforce == 'Y' || strstr(lockdown, "[integrity]") || strstr(lockdown, "[confidentiality]"))
		report(rep, ODD, "sign them: mokutil --import /var/lib/dkms/mok.pub, and reboot",
		       "this kernel only loads modules signed with a key that it trusts");
	else
		report(rep, GOOD, NULL, "not required by this kernel");
}

static bool has_own_modules(void)
{
	struct name_list own;

	own_modules(&own);
	return own.count;
}

static void check_stack(struct report *rep)
{
	bool on = file_exists(SWITCH_FILE), core = is_loaded(rep, MAINLINE_CORE);

	if (file_exists(SWITCH_TRIAL))
		report(rep, BAD, "repeat the switch: kverbs switch on, or kverbs switch off",
		       "a switch between the stacks was interrupted");
	else if (on && core)
		report(rep, BAD, "update-initramfs -u, if the initramfs loads it; then kverbs switch on",
		       "kverbs is on, but the kernel has loaded its own stack");
	else if (on && has_own_modules() && !is_loaded(rep, OWN_CORE))
		report(rep, BAD, "kverbs switch on; at boot, kverbs.service does this",
		       "kverbs is on, but not loaded");
	else
		report(rep, GOOD, NULL, "kverbs is %s; loaded: %s", on ? "on" : "off",
		       core ? "the kernel's own" : is_loaded(rep, OWN_CORE) ? "kverbs" : "none");
	if (is_loaded(rep, "rdma_rxe"))
		report(rep, BAD, "modprobe -r rdma_rxe",
		       "rdma_rxe is loaded, which excludes kverbs_emu under the kernel's own core");
}

static void check_devices(struct report *rep)
{
	DIR *dir = open_dir("/sys/class/infiniband");
	unsigned int count = 0;
	const char *name;
	char state[64];

	while ((name = next_name(dir))) {
		count++;
		read_line(state, sizeof(state), "/sys/class/infiniband/%s/ports/1/state", name);
		if (!strncmp(state, "4:", 2))
			report(rep, GOOD, NULL, "%s: port 1 is active", name);
		else
			report(rep, ODD, "ip link set <its network device> up",
			       "%s: port 1 is %s", name, *state ? state : "in an unknown state");
	}
	if (dir)
		closedir(dir);
	if (!count)
		report(rep, ODD, "modprobe kverbs_emu", "there is none");
}

/* Files that this user could open, or not. */
static void check_files(struct report *rep, const char *dir_name, int mode, const char *todo)
{
	DIR *dir = open_dir("%s", dir_name);
	char path[PATH_MAX];
	const char *name;

	while ((name = next_name(dir))) {
		/* Management is for root, whatever else a user may do. */
		if (!strcmp(name, "ca") || !strncmp(name, "by-", 3) ||
		    !strncmp(name, "umad", 4) || !strncmp(name, "issm", 4))
			continue;
		in_root(path, "%s/%s", dir_name, name);
		if (access(path, mode))
			report(rep, BAD, todo, "%s/%s: %s", dir_name, name, strerror(errno));
		else
			report(rep, GOOD, NULL, "this user may use %s/%s", dir_name, name);
	}
	if (dir)
		closedir(dir);
}

static void check_permissions(struct report *rep)
{
	check_files(rep, "/dev/infiniband/ca", R_OK,
		    "run this as root, or: chmod a+r /dev/infiniband/ca/*");
	check_files(rep, "/dev/infiniband", R_OK | W_OK,
		    "adduser <you> rdma, and log in again; or chmod a+rw the file");
	if (!file_exists("/dev/infiniband"))
		report(rep, GOOD, NULL, "no device has a file yet");
}

static void check_mtu(struct report *rep)
{
	DIR *dir = open_dir("/sys/class/infiniband");
	char netdev[64], line[64];
	const char *name;
	unsigned long mtu;
	bool ethernet = false;

	while ((name = next_name(dir))) {
		read_line(netdev, sizeof(netdev),
			  "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", name);
		if (!*netdev || !read_line(line, sizeof(line), "/sys/class/net/%s/mtu", netdev))
			continue;
		ethernet = true;
		mtu = strtoul(line, NULL, 10);
		if (mtu < MTU_ENOUGH)
			report(rep, ODD, "ip link set <it> mtu 1500, or 4200 for an RDMA MTU of 4096",
			       "%s, of %s: %lu bytes hold less than an RDMA MTU of 1024", netdev,
			       name, mtu);
		else
			report(rep, GOOD, NULL, "%s, of %s: %lu bytes", netdev, name, mtu);
	}
	if (dir)
		closedir(dir);
	if (!ethernet)
		report(rep, GOOD, NULL, "no device has an Ethernet port");
}

static bool file_has(const char *path, const char *word)
{
	FILE *file = open_to_read("%s", path);
	char *line = NULL;
	size_t size = 0;
	bool has = false;

	while (file && !has && getline(&line, &size, file) != -1)
		has = *line != '#' && strstr(line, word);
	free(line);
	if (file)
		fclose(file);
	return has;
}

/* Reports files of firewall rules that drop packets, and do not name the port. */
static void check_firewall(struct report *rep)
{
	static const struct {
		const char *rules, *path, *closed, *todo;
	} firewalls[] = {
		{ "/etc/nftables.conf", "/etc/nftables.conf", "drop",
		  "add to the chain input: udp dport 4791 accept" },
		{ "/etc/ufw/user.rules", "/etc/ufw/ufw.conf", "ENABLED=yes", "ufw allow 4791/udp" },
		{ "/etc/iptables/rules.v4", "/etc/iptables/rules.v4", "DROP",
		  "iptables -I INPUT -p udp --dport 4791 -j ACCEPT, and netfilter-persistent save" },
	};
	bool closed = false;
	size_t i;

	for (i = 0; i < COUNT(firewalls); i++) {
		if (!file_has(firewalls[i].path, firewalls[i].closed) ||
		    file_has(firewalls[i].rules, ROCE_PORT))
			continue;
		closed = true;
		report(rep, ODD, firewalls[i].todo,
		       "%s does not accept UDP port " ROCE_PORT ", which other machines connect to",
		       firewalls[i].path);
	}
	if (!closed)
		report(rep, GOOD, NULL, "no configured firewall blocks UDP port " ROCE_PORT);
}

/* Gets the first number that format finds in a line of a file. Return: whether there is one. */
static bool find_number(const char *path, const char *format, unsigned long long *number)
{
	FILE *file = open_to_read("%s", path);
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) != -1)
		found = sscanf(line, format, number) == 1;
	free(line);
	if (file)
		fclose(file);
	return found;
}

static bool may_lock_all(void)
{
	unsigned long long caps;

	return find_number("/proc/self/status", "CapEff: %llx", &caps) &&
	       caps & (1ULL << CAP_IPC_LOCK);
}

static void check_memlock(struct report *rep)
{
	unsigned long long bytes = 0;
	bool found = find_number("/proc/self/limits", "Max locked memory %llu", &bytes);

	if (may_lock_all())
		report(rep, GOOD, NULL, "this user may lock all memory");
	else if (!found || bytes >= MEMLOCK_ENOUGH)
		report(rep, GOOD, NULL, found ? "%llu MiB may be locked" : "no limit", bytes >> 20);
	else
		report(rep, ODD,
		       "in /etc/security/limits.d/rdma.conf: '@rdma - memlock unlimited', and log in again",
		       "only %llu KiB may be locked, so registrations of more memory fail", bytes >> 10);
}

static const struct {
	const char *name;
	void (*run)(struct report *rep);
} checks[] = {
	{ "kernel",		check_kernel },
	{ "headers",		check_headers },
	{ "modules",		check_modules },
	{ "signatures",		check_signatures },
	{ "stack",		check_stack },
	{ "devices",		check_devices },
	{ "permissions",	check_permissions },
	{ "mtu",		check_mtu },
	{ "firewall",		check_firewall },
	{ "memlock",		check_memlock },
};

static int examine(struct json *json)
{
	struct report rep = { .json = json };
	size_t i;

	/* If the kernel has no modules, the first check has reported that. */
	if (file_exists("/proc/modules") && loaded_find(&rep.loaded))
		return STATUS_FAILED;
	if (json) {
		json_object(json, NULL);
		json_array(json, "checks");
	}
	for (i = 0; i < COUNT(checks); i++) {
		rep.check = checks[i].name;
		checks[i].run(&rep);
	}
	if (json) {
		json_end(json);
		json_bool(json, "ok", !rep.bad);
		json_end(json);
	}
	loaded_free(&rep.loaded);
	return rep.bad ? STATUS_FAILED : STATUS_OK;
}

static int doctor_run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct json document, *json = NULL;
	int option, status;

	while ((option = getopt_long(argc, argv, "jr:h", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json_start(&document, stdout, false);
			json = &document;
			break;
		default:
			status = machine_option(cmd, option);
			if (status != STATUS_NONE)
				return status;
		}
	}
	if (optind < argc)
		return usage_error(cmd, "takes no arguments");
	return examine(json);
}

const struct command doctor_command = {
	.name		= "doctor",
	.arguments	= "[--json] [--root DIR]",
	.summary	= "check whether this machine is set up for RDMA, with remedies",
	.help		=
	"Checks the kernel, its headers, modules, signatures, permissions, MTU, firewall and the limit\n"
	"of locked memory, and prints a line for each, followed by the remedy. Fails if a line begins\n"
	"with fail; warn is for what only some uses need.\n"
	"\n"
	"  -j, --json       print JSON\n"
	ROOT_HELP("   ")
	"  -h, --help       print this help\n",
	.run		= doctor_run,
};
