// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which devices exist, and what sysfs says about them.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kverbs.h"

#define SYSFS_IB	"/sys/class/infiniband"

static int devices_add(struct devices *devices, const char *name)
{
	void *more;

	more = realloc(devices->names,
		       (devices->count + 1) * sizeof(devices->names[0]));
	if (!more)
		return -ENOMEM;
	devices->names = more;
	snprintf(devices->names[devices->count++], CA_NAME_MAX, "%s", name);
	return 0;
}

/* Compares numbers by value: emu2 comes before emu10. */
static int compare_names(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static bool is_node(int dir, const char *name)
{
	struct stat st;

	return strlen(name) < CA_NAME_MAX && !fstatat(dir, name, &st, 0) &&
	       S_ISCHR(st.st_mode);
}

int devices_find(struct devices *devices)
{
	DIR *dir = opendir(CA_DIR);
	struct dirent *entry;
	int ret = 0;

	memset(devices, 0, sizeof(*devices));
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (entry = readdir(dir)))
		if (is_node(dirfd(dir), entry->d_name))
			ret = devices_add(devices, entry->d_name);
	closedir(dir);
	if (ret)
		devices_free(devices);
	else if (devices->count)
		qsort(devices->names, devices->count,
		      sizeof(devices->names[0]), compare_names);
	return ret;
}

void devices_free(struct devices *devices)
{
	free(devices->names);
	memset(devices, 0, sizeof(*devices));
}

bool device_in_sysfs(const char *device)
{
	char path[PATH_MAX];

	if (!*device || *device == '.' || strchr(device, '/'))
		return false;
	snprintf(path, sizeof(path), SYSFS_IB "/%s", device);
	return !access(path, F_OK);
}

/* Gets the last component of the target of a link in the device's directory. */
static bool linked_name(const char *device, const char *link, char *name,
			size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t len;

	snprintf(path, sizeof(path), SYSFS_IB "/%s/%s", device, link);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	last = strrchr(target, '/');
	snprintf(name, size, "%s", last ? last + 1 : target);
	return true;
}

/*
 * Gets the name of a device's driver. The parent of a software device has no driver;
 * there, it is the device's name without the number.
 */
void device_driver(const char *device, char *driver, size_t size)
{
	if (linked_name(device, "device/driver/module", driver, size) ||
	    linked_name(device, "device/driver", driver, size))
		return;
	if (linked_name(device, "device", driver, size))
		driver[strcspn(driver, ".")] = '\0';
	else
		*driver = '\0';
}

const char *netdev_name(uint32_t index, char name[32])
{
	char buf[IF_NAMESIZE];

	if (!index)
		*name = '\0';
	else if (if_indextoname(index, buf))
		snprintf(name, 32, "%s", buf);
	else
		snprintf(name, 32, "%u", index);
	return name;
}
