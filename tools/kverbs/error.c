// SPDX-License-Identifier: GPL-2.0-only
/*
 * Error messages: what went wrong, and what to do about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "kverbs.h"

#define SYSFS_CLASS	"/sys/class/kverbs_ca"

int say_error(const char *format, ...)
{
	va_list args;

	/* So that earlier output comes first. */
	fflush(stdout);
	fputs("kverbs: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return STATUS_FAILED;
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

int say_no_device(void)
{
	if (!exists("/sys/module"))
		return say_error("no device, and /sys is not there to find out why\n"
				 "  Mount it: mount -t sysfs sys /sys");
	if (exists("/sys/module/ib_core"))
		return say_error("no device: the kernel's own ib_core is loaded, not kverbs\n"
				 "  They exclude each other. Run: kverbs switch on, or make load in the\n"
				 "  source tree of kverbs. Both say what to remove first");
	if (!exists("/sys/module/kverbs"))
		return say_error("no device: the module kverbs is not loaded\n"
				 "  Run: kverbs switch on, or make load in the source tree of kverbs");
	if (!exists(SYSFS_CLASS))
		return say_error("no device: the module kverbs_ca is not loaded\n"
				 "  Run: modprobe kverbs_ca, or make load in the source tree of kverbs");
	if (!exists("/sys/module/kverbs_emu"))
		return say_error("no device: kverbs is loaded, but no driver has found a device\n"
				 "  For a software device, run: modprobe kverbs_emu, or make load in the\n"
				 "  source tree of kverbs");
	return say_error("no device has a file in %s\n"
			 "  If there are devices in %s, then /dev is not\n"
			 "  a devtmpfs, or this is a container: pass the files to it.", CA_DIR,
			 SYSFS_CLASS);
}

static int say_unknown(const char *device)
{
	struct devices devices;
	size_t i;

	if (devices_find(&devices) || !devices.count)
		return say_no_device();
	fflush(stdout);
	fprintf(stderr, "kverbs: no device ");
	print_text(stderr, device);
	fprintf(stderr, ". There %s:", devices.count == 1 ? "is" : "are");
	for (i = 0; i < devices.count; i++)
		fprintf(stderr, " %s", devices.names[i]);
	fputc('\n', stderr);
	if (device_in_sysfs(device))
		fprintf(stderr, "  It is in /sys, but has no file in %s\n",
			CA_DIR);
	devices_free(&devices);
	return STATUS_FAILED;
}

static int say_may_not(const char *device, int error, bool write)
{
	const char *why = strerror(-error);

	if (!write)
		return say_error("cannot read %s/%s: %s\n"
				 "  Run this as root, or have root grant permission:\n"
				 "  chmod a+r %s/%s", CA_DIR, device, why, CA_DIR,
				 device);
	return say_error("cannot write to %s/%s: %s\n"
			 "  Creating objects on a device requires permission to write to its file.\n"
			 "  Run this as root, or have root grant it to one of your groups:\n"
			 "  chgrp <group> %s/%s && chmod g+w %s/%s", CA_DIR, device, why,
			 CA_DIR, device, CA_DIR, device);
}

int say_open_error(const char *device, int error, bool write)
{
	switch (error) {
	case -ENOENT:
	case -EINVAL:
	case -ENOTDIR:
		return say_unknown(device);
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return say_may_not(device, error, write);
	case -ENODEV:
	case -ENXIO:
		return say_error("%s has just been removed", device);
	default:
		return say_error("cannot open %s/%s: %s", CA_DIR, device,
				 strerror(-error));
	}
}

int say_open_ca_error(const char *device, int error)
{
	switch (error) {
	case -EMFILE:
		return say_error("cannot open %s: its file has reached the limit of handles\n"
				 "  See /sys/module/kverbs_ca/parameters/ca_max_handles", device);
	case -ENOMEM:
		return say_error("cannot open %s: out of memory, or the device cannot be opened more\n"
				 "  often. Its users: /sys/kernel/debug/kverbs/%s/ca", device,
				 device);
	default:
		return say_request_error(device, "open the channel adapter",
					 error);
	}
}

int open_ca(struct ca *ca, const char *device, int flags)
{
	int ret = ca_open_file(ca, device, flags);

	if (ret)
		return say_open_error(device, ret, flags & O_ACCMODE);
	ret = ca_open(ca, 0);
	if (!ret)
		return STATUS_OK;
	ca_close_file(ca);
	return say_open_ca_error(device, ret);
}

int say_request_error(const char *device, const char *what, int error)
{
	switch (error) {
	case -ENODEV:
		return say_error("cannot %s: %s has been removed", what, device);
	case -ENOTTY:
	case -E2BIG:
	case -EOPNOTSUPP:
		return say_error("cannot %s: the kernel does not know this request\n"
				 "  Load a kverbs module that is as new as this command.", what);
	case -EPROTO:
		return say_error("cannot %s: this command does not understand the kernel's answer\n"
				 "  Use a command that is as new as the kverbs module.", what);
	case -EAGAIN:
		return say_error("cannot %s: %s changes faster than it can be read\n"
				 "  Try again. To see the changes: kverbs monitor %s", what, device,
				 device);
	default:
		return say_error("cannot %s: %s: %s", what, device,
				 strerror(-error));
	}
}

int finish_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* The reader of a pipe has closed it, as head(1) does: no error. */
	if (errno == EPIPE)
		return STATUS_FAILED;
	return say_error("cannot write the output: %s", strerror(errno));
}
