// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs switch: moves a machine from mainline's RDMA stack to kverbs', and back.
 *
 * kverbs is on while SWITCH_FILE exists, a file for modprobe, which is renamed into place
 * last, and removed first. While modules are exchanged, a file with the same contents is in
 * /run; while mainline's are loaded again, one that only names them. So if the command is
 * interrupted, the machine boots with mainline's stack, or with kverbs' if all was done, and the
 * command can be repeated.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack.h"

#define SWITCH_LOCK	"/run/kverbs-switch.lock"

/* Precedes the names of the modules to load when kverbs is switched off. */
#define MAINLINE_MARK	"# mainline:"

/*
 * The modules of kverbs that do not need its core, and do not conflict with mainline's: drivers of
 * GPUs and providers of peer-to-peer memory use them beside either stack.
 */
static const char * const own_helpers[] = { "kverbs_peer_mem", "kverbs_p2pdma" };
/* The modules to load, the same as for "make load". */
static const char * const own_wanted[] = { "kverbs_ca", "kverbs_emu" };

struct machine {
	struct loaded_list loaded;
	struct name_list installed;	/* of kverbs */
	struct name_list mainline;	/* loaded, in the order to remove them in */
	struct name_list before;	/* mainline's that are or were loaded, in that order */
	struct name_list own;
	bool trial;			/* something was interrupted */
	bool on;
};

/* Reads which modules of mainline's stack were loaded when kverbs was switched on. */
static void read_before(struct name_list *names)
{
	FILE *file = open_to_read(SWITCH_FILE);
	char *line = NULL, *rest, *name;
	size_t size = 0;

	names->count = 0;
	if (!file)
		file = open_to_read(SWITCH_TRIAL);
	while (file && getline(&line, &size, file) != -1) {
		if (strncmp(line, MAINLINE_MARK, strlen(MAINLINE_MARK)))
			continue;
		rest = line + strlen(MAINLINE_MARK);
		while ((name = strsep(&rest, "\n ")))
			if (*name)
				add_name(names, name);
	}
	free(line);
	if (file)
		fclose(file);
}

/* Whether none but idle modules of kverbs use a helper. */
static bool is_spare(const struct machine *machine, const char *helper)
{
	const struct loaded *module;
	struct name_list users = {};
	size_t i;

	removal_order(&machine->loaded, helper, &users);
	for (i = 0; i < users.count; i++) {
		if (has_name(&machine->own, users.name[i]))
			continue;
		if (strcmp(users.name[i], helper) && !has_name(&machine->installed, users.name[i]))
			return false;
		/* Also by who has found it with symbol_get(). */
		module = loaded_named(&machine->loaded, users.name[i]);
		if (module->refs > loaded_users(module))
			return false;
	}
	return true;
}

static int look(struct machine *machine)
{
	size_t i;

	memset(machine, 0, sizeof(*machine));
	if (loaded_find(&machine->loaded))
		return STATUS_FAILED;
	own_modules(&machine->installed);
	removal_order(&machine->loaded, OWN_CORE, &machine->own);
	for (i = 0; i < COUNT(own_helpers); i++)
		if (is_spare(machine, own_helpers[i]))
			removal_order(&machine->loaded, own_helpers[i], &machine->own);
	removal_order(&machine->loaded, MAINLINE_CORE, &machine->mainline);
	read_before(&machine->before);
	for (i = machine->mainline.count; i--;)
		add_name(&machine->before, machine->mainline.name[i]);
	machine->trial = file_exists(SWITCH_TRIAL);
	machine->on = file_exists(SWITCH_FILE);
	return STATUS_OK;
}

/* --- the file ------------------------------------------------------------------- */

#define HCA		"kverbs_emu"
#define MODPROBE_OWN	"/sbin/modprobe -d " OWN_MODULES
/*
 * If the modules of kverbs are not installed for the running kernel, modprobe does what it
 * does without this file. An empty modules.dep may be left by a power failure.
 */
#define IF_INSTALLED	"if [ -s " OWN_TREE "/$(uname -r)/modules.dep ]; then "

/*
 * Each stack has such a module, by the same name. Before modprobe looks for an install command,
 * it loads the dependencies of mainline's module. So the name is made an alias of another name,
 * and each module is found by an alias of its own.
 */
static void write_hca_rules(FILE *file)
{
	fputs("alias " HCA " kverbs_hca\n"
	      "install kverbs_hca " IF_INSTALLED "exec " MODPROBE_OWN " kverbs_hca_own $CMDLINE_OPTS;"
	      " else exec /sbin/modprobe kverbs_hca_mainline $CMDLINE_OPTS; fi\n"
	      "remove kverbs_hca rmmod " HCA "\n", file);
}

static void write_mainline(FILE *file, const struct machine *machine)
{
	size_t i;

	fprintf(file, "# Made by \"kverbs switch on\"; \"kverbs switch off\" removes it.\n"
		MAINLINE_MARK);
	for (i = 0; i < machine->before.count; i++)
		fprintf(file, " %s", machine->before.name[i]);
	fputc('\n', file);
}

static void write_rules(FILE *file, const struct machine *machine)
{
	size_t i;

	fprintf(file, "install " MAINLINE_CORE " " IF_INSTALLED
		"echo \"" MAINLINE_CORE ": kverbs is on, and excludes it: kverbs switch off\" >&2; exit 1;"
		" else exec /sbin/modprobe -i " MAINLINE_CORE " $CMDLINE_OPTS; fi\n");
	write_hca_rules(file);
	for (i = 0; i < machine->installed.count; i++)
		if (strcmp(machine->installed.name[i], HCA))
			fprintf(file, "install %s exec " MODPROBE_OWN " -i %s $CMDLINE_OPTS\n",
				machine->installed.name[i], machine->installed.name[i]);
}

static int say_file_error(const char *what, const char *path)
{
	return say_error("cannot %s %s: %s", what, path, strerror(errno));
}

static int sync_dir(const char *path)
{
	char dir[PATH_MAX];
	int fd, ret;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return say_file_error("open", dir);
	ret = fsync(fd);
	close(fd);
	return ret && errno != EINVAL ? say_file_error("write", dir) : STATUS_OK;
}

static int finish_file(FILE *file, const char *path)
{
	bool ok = !fflush(file) && !ferror(file) && (!fsync(fileno(file)) || errno == EINVAL);

	return fclose(file) || !ok ? say_file_error("write", path) : STATUS_OK;
}

/* Writes the file such that it exists with all of its contents, or not at all. */
static int put_file(const struct machine *machine, const char *path, bool rules)
{
	char new[PATH_MAX];
	FILE *file;

	/* modprobe only reads files whose name ends with .conf. */
	snprintf(new, sizeof(new), "%s.new", path);
	file = fopen(new, "we");
	if (!file)
		return say_file_error("write", new);
	write_mainline(file, machine);
	if (rules)
		write_rules(file, machine);
	if (finish_file(file, new))
		goto fail;
	if (rename(new, path)) {
		say_file_error("write", path);
		goto fail;
	}
	return sync_dir(path);

fail:
	unlink(new);
	return STATUS_FAILED;
}

/* A file that is not there is gone also where nothing can be written. */
static int drop_file(const char *path)
{
	int err = unlink(path) ? errno : 0;

	if (err && !access(path, F_OK)) {
		errno = err;
		return say_file_error("remove", path);
	}
	return STATUS_OK;
}

/* Can the file be written? */
static int try_file(const char *path)
{
	char new[PATH_MAX];
	int fd;

	snprintf(new, sizeof(new), "%s.new", path);
	fd = open(new, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return say_file_error("write", new);
	close(fd);
	return drop_file(new);
}

/* --- modules -------------------------------------------------------------------- */

/* Path of modprobe, set by find_modprobe(). */
static char modprobe[PATH_MAX];

/*
 * Finds modprobe, before anything is removed. Also looks in /sbin, which is not in root's PATH
 * after a plain su.
 */
static int find_modprobe(void)
{
	const char *const paths[] = { getenv("PATH") ?: "", "/sbin:/usr/sbin" };
	char dirs[2 * PATH_MAX], *dir, *rest;
	size_t i;

	for (i = 0; i < COUNT(paths); i++) {
		snprintf(dirs, sizeof(dirs), "%s", paths[i]);
		rest = dirs;
		while ((dir = strsep(&rest, ":")))
			if (*dir == '/' && !access(in_root(modprobe, "%s/modprobe", dir), X_OK))
				return STATUS_OK;
	}
	return say_error("modprobe is neither in /sbin nor in /usr/sbin\n"
			 "  Install it: apt install kmod");
}

/* Return: STATUS_OK; STATUS_NONE if modprobe fails, which may have said why. */
static int run_modprobe(char *const argv[])
{
	int status;
	pid_t pid;

	errno = posix_spawn(&pid, modprobe, NULL, NULL, argv, environ);
	if (errno)
		return say_error("cannot run %s: %s", modprobe, strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return say_error("cannot wait for modprobe: %s", strerror(errno));
	return WIFEXITED(status) && !WEXITSTATUS(status) ? STATUS_OK : STATUS_NONE;
}

static int load_module(const char *name)
{
	char *const argv[] = { "modprobe", (char *)name, NULL };
	int status = run_modprobe(argv);

	if (status != STATUS_NONE)
		return status;
	return say_error("cannot load %s\n  For the kernel's messages: dmesg | tail", name);
}

/* Some may have been loaded by insmod, or not be there for the kernel that was booted since. */
static bool is_missing(const char *name)
{
	char *const argv[] = { "modprobe", "-nq", (char *)name, NULL };

	return run_modprobe(argv) == STATUS_NONE;
}

static int remove_modules(const struct name_list *order)
{
	const char *name;
	size_t i;

	for (i = 0; i < order->count; i++) {
		name = order->name[i];
		if (syscall(SYS_delete_module, name, O_NONBLOCK) && errno != ENOENT)
			return say_error("cannot remove %s: %s", name, strerror(errno));
	}
	return STATUS_OK;
}

/*
 * names: in the order in which they were loaded. lost: how many are not installed, as if by insmod.
 * The core is the distribution's: without it, something is wrong that can be mended.
 */
static int load_mainline(const struct name_list *names, unsigned int *lost)
{
	int status = STATUS_OK;
	const char *name;
	size_t i;

	*lost = 0;
	for (i = 0; i < names->count; i++) {
		name = names->name[i];
		if (strcmp(name, MAINLINE_CORE) && is_missing(name)) {
			say_error("%s is not installed for kernel %s: load it as it was loaded before",
				  name, kernel_release());
			(*lost)++;
		} else if (load_module(name)) {
			status = STATUS_FAILED;
		}
	}
	return status;
}

/* Loads mainline's modules again. The file that names them stays until all that can be are loaded. */
static int restore_mainline(const struct machine *machine, unsigned int *lost)
{
	if (put_file(machine, SWITCH_TRIAL, false) || load_mainline(&machine->before, lost))
		return STATUS_FAILED;
	return drop_file(SWITCH_TRIAL);
}

static int load_own(void)
{
	size_t i;

	for (i = 0; i < COUNT(own_wanted); i++)
		if (load_module(own_wanted[i]))
			return STATUS_FAILED;
	return STATUS_OK;
}

static int remove_own(void)
{
	static struct machine machine;
	int status;

	if (look(&machine))
		return STATUS_FAILED;
	status = remove_modules(&machine.own);
	loaded_free(&machine.loaded);
	return status;
}

/* --- on and off ------------------------------------------------------------------- */

static void tell_user(void *arg, const char *line)
{
	if (!*(bool *)arg)
		say_error("the devices are in use. First stop their users:");
	*(bool *)arg = true;
	fputs("  ", stderr);
	print_text(stderr, line);
	fputc('\n', stderr);
}

static int refuse_users(const struct machine *machine, const struct name_list *order)
{
	bool told = false;

	return find_users(&machine->loaded, order, tell_user, &told) ? STATUS_FAILED : STATUS_OK;
}

static int undo_on(const struct machine *machine)
{
	unsigned int lost;

	/* It may have been on, or have just been switched on. */
	if (drop_file(SWITCH_FILE)) {
		if (load_own())
			return say_error("kverbs stays on, but is not completely loaded\n"
					 "  Fix the error above, then repeat: kverbs switch on");
		drop_file(SWITCH_TRIAL);
		return say_error("kverbs stays on\n"
				 "  Fix the error above, then repeat: kverbs switch on");
	}
	if (remove_own() || restore_mainline(machine, &lost))
		return say_error("kverbs is off, but mainline's stack is not completely loaded\n"
				 "  Fix the error above, then repeat: kverbs switch off. Or reboot.");
	if (lost)
		return say_error("kverbs is off, and what is installed of mainline's stack is loaded");
	return say_error(machine->on ? "kverbs is off now, and mainline's stack is loaded" :
			 "kverbs stays off: nothing has changed");
}

static int turn_on(const struct machine *machine)
{
	/* Before anything is removed. If kverbs is on, what is missing of it is loaded at least. */
	if (!machine->on && try_file(SWITCH_FILE))
		return say_error("nothing has changed");
	if (put_file(machine, SWITCH_TRIAL, true))
		return STATUS_FAILED;
	if (remove_modules(&machine->mainline) || load_own() ||
	    put_file(machine, SWITCH_FILE, true))
		return undo_on(machine);
	drop_file(SWITCH_TRIAL);
	puts("kverbs is on, and will be after a reboot");
	return STATUS_OK;
}

static int may_turn_on(const struct machine *machine)
{
	if (!machine->installed.count)
		return say_error("no modules of kverbs are installed for kernel %s\n"
				 "  Install them, in the source tree of kverbs: make modules_install,\n"
				 "  or make deb and apt install ./build/deb/kverbs-dkms_*.deb", kernel_release());
	return refuse_users(machine, &machine->mainline);
}

static int may_turn_off(const struct machine *machine)
{
	return refuse_users(machine, &machine->own);
}

static int undo_off(const struct machine *machine)
{
	bool back;

	back = !put_file(machine, SWITCH_FILE, true);
	back = !load_own() && back;
	drop_file(SWITCH_TRIAL);
	return say_error(back ? "kverbs stays on: nothing has changed" :
			 "kverbs is only partly switched off; a reboot completes it");
}

static int turn_off(const struct machine *machine)
{
	unsigned int lost;

	if (machine->on && (put_file(machine, SWITCH_TRIAL, true) || drop_file(SWITCH_FILE))) {
		drop_file(SWITCH_TRIAL);
		return say_error("kverbs stays on: nothing has changed");
	}
	if (remove_modules(&machine->own))
		return machine->on ? undo_off(machine) : STATUS_FAILED;
	if (restore_mainline(machine, &lost))
		return say_error("kverbs is off, but mainline's stack is not completely loaded\n"
				 "  Fix the error above, then repeat: kverbs switch off. Or reboot.");
	puts("kverbs is off, and will be after a reboot");
	return lost ? STATUS_FAILED : STATUS_OK;
}

/* --- status ----------------------------------------------------------------------- */

static const char *loaded_stack(const struct machine *machine)
{
	if (loaded_named(&machine->loaded, MAINLINE_CORE))
		return "mainline";
	return loaded_named(&machine->loaded, OWN_CORE) ? "kverbs" : "none";
}

/* Returns what is inconsistent, and what to do; or NULL. */
static const char *fault_of(const struct machine *machine)
{
	if (machine->trial)
		return "a switch was interrupted: repeat it\n"
		       "  kverbs switch on, or kverbs switch off";
	if (!machine->on)
		return NULL;
	if (!machine->installed.count)
		return "kverbs is on, but not installed for this kernel, which uses its own stack";
	if (loaded_named(&machine->loaded, MAINLINE_CORE))
		return "kverbs is on, but the kernel has loaded its own stack\n"
		       "  If the initramfs loads it: update-initramfs -u. Then: kverbs switch on";
	if (!loaded_named(&machine->loaded, OWN_CORE))
		return "kverbs is on, but not loaded\n"
		       "  Run: kverbs switch on; at boot, kverbs.service does this";
	return NULL;
}

static int show_status(const struct machine *machine)
{
	const char *fault = fault_of(machine);

	printf("switch     %s\nloaded     %s\ninstalled  %s for kernel %s\n",
	       machine->on ? "on" : "off", loaded_stack(machine),
	       machine->installed.count ? "yes," : "no, not", kernel_release());
	return fault ? say_error("%s", fault) : STATUS_OK;
}

static int show_status_json(const struct machine *machine)
{
	struct json json;

	json_start(&json, stdout, false);
	json_object(&json, NULL);
	json_bool(&json, "on", machine->on);
	json_bool(&json, "interrupted", machine->trial);
	json_string(&json, "loaded", loaded_stack(machine));
	json_string(&json, "kernel", kernel_release());
	json_bool(&json, "installed", machine->installed.count);
	json_end(&json);
	return fault_of(machine) ? STATUS_FAILED : STATUS_OK;
}

/* --- one at a time ---------------------------------------------------------------- */

/* Held until the process ends. The file stays, as one that is removed would be no lock. */
static int be_alone(void)
{
	int fd = open(SWITCH_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return say_file_error("open", SWITCH_LOCK);
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ?
		       say_error("another kverbs switch is running\n  Try again when it has ended.") :
		       say_file_error("lock", SWITCH_LOCK);
	return STATUS_OK;
}

/* --- the command ------------------------------------------------------------------ */

static void print_names(const char *what, const struct name_list *names)
{
	size_t i;

	printf("would %s:%s", what, names->count ? "" : " nothing");
	for (i = 0; i < names->count; i++)
		printf(" %s", names->name[i]);
	putchar('\n');
}

static int dry_run(const struct machine *machine, bool on)
{
	print_names("remove", on ? &machine->mainline : &machine->own);
	if (on) {
		printf("would load: %s %s\nwould write: " SWITCH_FILE "\n", own_wanted[0],
		       own_wanted[1]);
		write_mainline(stdout, machine);
		write_rules(stdout, machine);
		return STATUS_OK;
	}
	print_names("load", &machine->before);
	puts("would remove the file: " SWITCH_FILE);
	return STATUS_OK;
}

static int turn(const struct command *cmd, const struct machine *machine, bool on, bool dry)
{
	sigset_t all;

	if (has_root() && !dry)
		return usage_error(cmd, "--root requires --dry-run: modules can only be loaded on this machine");
	if ((on ? may_turn_on(machine) : may_turn_off(machine)) || find_modprobe())
		return STATUS_FAILED;
	if (dry)
		return dry_run(machine, on);
	if (geteuid())
		return say_error("only root may load and remove modules\n  Try: sudo kverbs switch %s",
				 on ? "on" : "off");
	/* Blocks all signals, because a machine that is switched halfway is of no use. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	umask(022);
	if (mkdir("/run/modprobe.d", 0755) && errno != EEXIST)
		return say_file_error("make", "/run/modprobe.d");
	return on ? turn_on(machine) : turn_off(machine);
}

static int act(const struct command *cmd, const char *what, bool json, bool dry)
{
	bool on = !strcmp(what, "on"), ask = !strcmp(what, "status");
	static struct machine machine;
	int status;

	if (!on && !ask && strcmp(what, "off"))
		return usage_error(cmd, "%s: must be on, off or status", what);
	if (json && !ask)
		return usage_error(cmd, "--json is only for status");
	/* Before it looks: another one may be about to change what there is to see. */
	if (!ask && !dry && !has_root() && !geteuid() && be_alone())
		return STATUS_FAILED;
	if (look(&machine))
		return STATUS_FAILED;
	if (ask)
		status = json ? show_status_json(&machine) : show_status(&machine);
	else
		status = turn(cmd, &machine, on, dry);
	loaded_free(&machine.loaded);
	return status;
}

static int switch_run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "dry-run", no_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool json = false, dry = false;
	int option, status;

	while ((option = getopt_long(argc, argv, "njr:h", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			dry = true;
			break;
		case 'j':
			json = true;
			break;
		default:
			status = machine_option(cmd, option);
			if (status != STATUS_NONE)
				return status;
		}
	}
	if (optind != argc - 1)
		return usage_error(cmd, "takes one argument: on, off or status");
	return act(cmd, argv[optind], json, dry);
}

const struct command switch_command = {
	.name		= "switch",
	.arguments	= "on|off|status [--dry-run] [--json] [--root DIR]",
	.summary	= "switch between kverbs' RDMA stack and mainline's",
	.help		=
	"Switches this machine between mainline's RDMA stack and kverbs', only one of which can be\n"
	"loaded. Refuses while a device is in use, and names its users. A failed switch is undone.\n"
	"\n"
	"  on       remove mainline's modules, load kverbs', and do so after each boot\n"
	"  off      the opposite\n"
	"  status   show which stack is loaded, and which will be after a reboot\n"
	"\n"
	"  -n, --dry-run    only check whether it is possible, and print what would be done\n"
	"  -j, --json       print the status as JSON\n"
	ROOT_HELP("   ")
	"  -h, --help       print this help\n",
	.run		= switch_run,
};
