// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which RDMA stack is loaded, which is installed, and who uses it: stack.h.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "stack.h"

/* ARPHRD_INFINIBAND and IFF_UP, as sysfs has them. */
#define TYPE_INFINIBAND	32
#define FLAG_UP		1

/* --- modules ------------------------------------------------------------------ */

static int loaded_add(struct loaded_list *list, const char *line)
{
	struct loaded module, *more;

	if (sscanf(line, "%63s %*u %u %1023s", module.name, &module.refs, module.users) != 3)
		return 0;
	/* "-" for none */
	if (!strcmp(module.users, "-"))
		*module.users = '\0';
	more = realloc(list->module, (list->count + 1) * sizeof(module));
	if (!more)
		return -ENOMEM;
	list->module = more;
	list->module[list->count++] = module;
	return 0;
}

int loaded_find(struct loaded_list *list)
{
	FILE *file = open_to_read("/proc/modules");
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	memset(list, 0, sizeof(*list));
	if (!file)
		return say_error("cannot read /proc/modules: %s\n"
				 "  Can this kernel load modules, and is /proc mounted?",
				 strerror(errno));
	while (!ret && getline(&line, &size, file) != -1)
		ret = loaded_add(list, line);
	free(line);
	fclose(file);
	if (!ret)
		return STATUS_OK;
	loaded_free(list);
	return say_error("no memory");
}

void loaded_free(struct loaded_list *list)
{
	free(list->module);
	memset(list, 0, sizeof(*list));
}

const struct loaded *loaded_named(const struct loaded_list *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (!strcmp(list->module[i].name, name))
			return &list->module[i];
	return NULL;
}

unsigned int loaded_users(const struct loaded *module)
{
	unsigned int users = 0;
	const char *at;

	for (at = module->users; *at; at++)
		users += *at == ',';
	return users;
}

bool has_name(const struct name_list *names, const char *name)
{
	size_t i;

	for (i = 0; i < names->count; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

void add_name(struct name_list *names, const char *name)
{
	if (names->count < COUNT(names->name) && !has_name(names, name))
		snprintf(names->name[names->count++], MODULE_NAME_MAX, "%s", name);
}

/* @seen: also those whose users are being added: a file may have a cycle, although no kernel does. */
static void add_users(const struct loaded_list *list, const char *name, struct name_list *seen,
		      struct name_list *order)
{
	const struct loaded *module = loaded_named(list, name);
	char users[sizeof(module->users)], *user, *rest = users;

	if (!module || has_name(order, name) || has_name(seen, name) ||
	    seen->count == COUNT(seen->name))
		return;
	add_name(seen, name);
	memcpy(users, module->users, sizeof(users));
	while ((user = strsep(&rest, ",")))
		if (*user)
			add_users(list, user, seen, order);
	add_name(order, name);
}

void removal_order(const struct loaded_list *list, const char *name, struct name_list *order)
{
	struct name_list seen = {};

	add_users(list, name, &seen, order);
}

/* --- what is installed ---------------------------------------------------------- */

const char *kernel_release(void)
{
	static struct utsname name;
	static char release[128];

	if (has_root() && read_line(release, sizeof(release), "/proc/sys/kernel/osrelease"))
		return release;
	if (uname(&name))
		return "";
	return name.release;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

void own_modules(struct name_list *modules)
{
	DIR *dir = open_dir(OWN_TREE "/%s/updates/kverbs", kernel_release());
	char module[MODULE_NAME_MAX];
	const char *name;

	modules->count = 0;
	while ((name = next_name(dir))) {
		snprintf(module, sizeof(module), "%.*s", (int)strcspn(name, "."), name);
		add_name(modules, module);
	}
	if (dir)
		closedir(dir);
	qsort(modules->name, modules->count, sizeof(modules->name[0]), compare_names);
}

/* --- users ---------------------------------------------------------------------- */

struct search {
	user_fn *tell;
	void *arg;
	unsigned int found;
};

static void __printf(2, 3) found(struct search *search, const char *format, ...)
{
	char line[PATH_MAX + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	search->found++;
	search->tell(search->arg, line);
}

/* Finds the first file of RDMA that a process has open. */
static bool has_open(const char *pid, char file[PATH_MAX])
{
	DIR *dir = open_dir("/proc/%s/fd", pid);
	char path[PATH_MAX];
	const char *fd;
	ssize_t len;
	bool has = false;

	while (!has && (fd = next_name(dir))) {
		len = readlink(in_root(path, "/proc/%s/fd/%s", pid, fd), file, PATH_MAX - 1);
		if (len < 0)
			continue;
		file[len] = '\0';
		has = !strncmp(file, "/dev/infiniband/", strlen("/dev/infiniband/"));
	}
	if (dir)
		closedir(dir);
	return has;
}

static void find_processes(struct search *search)
{
	DIR *dir = open_dir("/proc");
	char file[PATH_MAX], comm[64];
	const char *pid;

	while ((pid = next_name(dir))) {
		if (!isdigit((unsigned char)*pid) || !has_open(pid, file))
			continue;
		read_line(comm, sizeof(comm), "/proc/%s/comm", pid);
		found(search, "process %s (%s) has %s open", pid, comm, file);
	}
	if (dir)
		closedir(dir);
}

static unsigned long read_number(const char *dir, const char *name, const char *file)
{
	char line[64];

	read_line(line, sizeof(line), "%s/%s/%s", dir, name, file);
	return strtoul(line, NULL, 0);
}

static void find_ipoib(struct search *search)
{
	DIR *dir = open_dir("/sys/class/net");
	const char *name;

	while ((name = next_name(dir)))
		if (read_number("/sys/class/net", name, "type") == TYPE_INFINIBAND &&
		    read_number("/sys/class/net", name, "flags") & FLAG_UP)
			found(search, "network device %s is up: ip link set %s down", name, name);
	if (dir)
		closedir(dir);
}

static void find_disks(struct search *search)
{
	DIR *dir = open_dir("/sys/class/nvme");
	const char *name;
	char transport[32];

	while ((name = next_name(dir))) {
		read_line(transport, sizeof(transport), "/sys/class/nvme/%s/transport", name);
		if (!strcmp(transport, "rdma"))
			found(search, "NVMe controller %s is connected: nvme disconnect -d %s",
			      name, name);
	}
	if (dir)
		closedir(dir);
}

static void find_mounts(struct search *search)
{
	FILE *file = open_to_read("/proc/mounts");
	char where[PATH_MAX], options[4096];

	while (file && fscanf(file, "%*s %4095s %*s %4095s %*[^\n]", where, options) == 2)
		if (strstr(options, "proto=rdma") || strstr(options, ",rdma"))
			found(search, "%s is mounted over RDMA: umount %s", where, where);
	if (file)
		fclose(file);
}

/* Finds modules in use, but not those that only other modules use: these are in the order, too. */
static void find_references(struct search *search, const struct loaded_list *list,
			    const struct name_list *order)
{
	const struct loaded *module;
	size_t i;

	for (i = 0; i < order->count; i++) {
		module = loaded_named(list, order->name[i]);
		if (module->refs > loaded_users(module))
			found(search, "module %s is in use (%u)", module->name,
			      module->refs - loaded_users(module));
	}
}

unsigned int find_users(const struct loaded_list *list, const struct name_list *order,
			user_fn *tell, void *arg)
{
	struct search search = { .tell = tell, .arg = arg };

	if (!order->count)
		return 0;
	find_processes(&search);
	find_ipoib(&search);
	find_disks(&search);
	find_mounts(&search);
	find_references(&search, list, order);
	return search.found;
}
