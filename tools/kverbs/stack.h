/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two RDMA stacks that a machine can run, mainline's and kverbs', of which only one
 * can be loaded: what is loaded, what is installed, and who uses mainline's.
 */
#ifndef KVERBS_STACK_H
#define KVERBS_STACK_H

#include "files.h"

#define MAINLINE_CORE	"ib_core"
#define OWN_CORE	"kverbs"

/* Where modprobe looks for the modules of kverbs: scripts/install-modules. */
#define OWN_MODULES	"/usr/lib/kverbs"
#define OWN_TREE	OWN_MODULES "/lib/modules"
/* While this is there, kverbs is on, also after a reboot. */
#define SWITCH_FILE	"/etc/modprobe.d/kverbs-switch.conf"
/* The same until a reboot, while it is being switched. */
#define SWITCH_TRIAL	"/run/modprobe.d/kverbs-switch.conf"

#define MODULE_NAME_MAX	64

/**
 * struct loaded - a module that is loaded, by /proc/modules
 * @name: its name
 * @users: modules that use it, each with a comma behind it
 * @refs: references, including one of each module that uses it
 */
struct loaded {
	char name[MODULE_NAME_MAX];
	char users[1024];
	unsigned int refs;
};

struct loaded_list {
	size_t count;
	struct loaded *module;
};

/* Return: STATUS_OK, or STATUS_FAILED with the reason on stderr. */
int loaded_find(struct loaded_list *list);
void loaded_free(struct loaded_list *list);
const struct loaded *loaded_named(const struct loaded_list *list, const char *name);
/* Modules that use it, and that nobody can remove therefore. */
unsigned int loaded_users(const struct loaded *module);

/**
 * struct name_list - names of modules, in an order
 * @count: how many
 * @name: the names; more than there is room for are left out
 */
struct name_list {
	size_t count;
	char name[128][MODULE_NAME_MAX];
};

bool has_name(const struct name_list *names, const char *name);
/* Once: what is there is not added again. */
void add_name(struct name_list *names, const char *name);
/* Adds the modules that use a module, before it: the order for removing them. */
void removal_order(const struct loaded_list *list, const char *name, struct name_list *order);

/* The release of the running kernel, or of the one that the root of --root has. */
const char *kernel_release(void);
/* Modules of kverbs that are installed for that kernel. */
void own_modules(struct name_list *modules);

/* Called for each user, with a line about it. */
typedef void user_fn(void *arg, const char *line);

/*
 * Finds who uses devices of a stack, given the order to remove its modules in. Return: how many.
 */
unsigned int find_users(const struct loaded_list *list, const struct name_list *order,
			user_fn *tell, void *arg);

#endif /* KVERBS_STACK_H */
