// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the debugfs files of the module kverbs_p2pdma. Lines are key=value pairs;
 * unknown keys are ignored, so that the kernel may add more.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kverbs.h"
#include "p2p.h"

#define PAIRS_MAX	16
#define BLANKS		"\n "

/* A line, split in place. */
struct pairs {
	size_t count;
	char *key[PAIRS_MAX];
	char *value[PAIRS_MAX];
};

static void split(char *line, struct pairs *pairs)
{
	char *word, *save = NULL, *equals;

	pairs->count = 0;
	for (word = strtok_r(line, BLANKS, &save); word && pairs->count < PAIRS_MAX;
	     word = strtok_r(NULL, BLANKS, &save)) {
		equals = strchr(word, '=');
		if (!equals)
			continue;
		*equals = '\0';
		pairs->key[pairs->count] = word;
		pairs->value[pairs->count++] = equals + 1;
	}
}

/* Returns the value of a key, or "" if the line has no such key. */
static const char *value_of(const struct pairs *pairs, const char *key)
{
	size_t i;

	for (i = 0; i < pairs->count; i++)
		if (!strcmp(pairs->key[i], key))
			return pairs->value[i];
	return "";
}

static void copy(char *to, size_t size, const struct pairs *pairs, const char *key)
{
	snprintf(to, size, "%s", value_of(pairs, key));
}

/* --- a line of each file --------------------------------------------------------- */

static bool take_provider(struct p2p_matrix *matrix, const struct pairs *pairs)
{
	struct p2p_provider *p = reallocarray(matrix->providers, matrix->nr_providers + 1, sizeof(*p));

	if (!p)
		return false;
	matrix->providers = p;
	p += matrix->nr_providers++;
	copy(p->name, sizeof(p->name), pairs, "provider");
	copy(p->keeper, sizeof(p->keeper), pairs, "keeper");
	p->size = strtoull(value_of(pairs, "size"), NULL, 10);
	p->available = strtoull(value_of(pairs, "available"), NULL, 10);
	p->published = !strcmp(value_of(pairs, "published"), "1");
	return true;
}

static bool take_route(struct p2p_matrix *matrix, const struct pairs *pairs)
{
	struct p2p_route *r = reallocarray(matrix->routes, matrix->nr_routes + 1, sizeof(*r));

	if (!r)
		return false;
	matrix->routes = r;
	r += matrix->nr_routes++;
	copy(r->provider, sizeof(r->provider), pairs, "provider");
	copy(r->client, sizeof(r->client), pairs, "client");
	copy(r->map, sizeof(r->map), pairs, "map");
	copy(r->why, sizeof(r->why), pairs, "why");
	copy(r->bridge, sizeof(r->bridge), pairs, "bridge");
	r->distance = atoi(value_of(pairs, "distance"));
	r->hops = atoi(value_of(pairs, "hops"));
	r->redirects = strdup(value_of(pairs, "redirects"));
	return r->redirects;
}

static bool take_list(struct p2p_matrix *matrix, const struct pairs *pairs)
{
	struct p2p_list *l = reallocarray(matrix->lists, matrix->nr_lists + 1, sizeof(*l));

	if (!l)
		return false;
	matrix->lists = l;
	l += matrix->nr_lists++;
	copy(l->provider, sizeof(l->provider), pairs, "provider");
	l->number = strtoul(value_of(pairs, "list"), NULL, 10);
	l->clients = strdup(value_of(pairs, "clients"));
	return l->clients;
}

/* --- files ------------------------------------------------------------------------- */

static int say_no_file(const char *name, int error)
{
	if (access(P2P_MODULE, F_OK))
		return say_error("no information about peer-to-peer DMA: the module kverbs_p2pdma is not loaded\n"
				 "  Run: modprobe kverbs_p2pdma, or make load in the source tree of kverbs");
	if (error == EACCES || error == EPERM)
		return say_error("cannot read %s/%s: %s\n"
				 "  Run this as root.", P2P_DIR, name, strerror(error));
	if (error == ENOENT)
		return say_error("no %s/%s\n"
				 "  Is debugfs mounted? As root: mount -t debugfs none /sys/kernel/debug",
				 P2P_DIR, name);
	return say_error("cannot read %s/%s: %s", P2P_DIR, name, strerror(error));
}

static int read_file(struct p2p_matrix *matrix, const char *name,
		     bool (*take)(struct p2p_matrix *matrix, const struct pairs *pairs))
{
	struct pairs pairs;
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	bool ok = true;
	FILE *file;
	int error;

	snprintf(path, sizeof(path), P2P_DIR "/%s", name);
	file = fopen(path, "re");
	if (!file)
		return say_no_file(name, errno);
	errno = 0;
	while (ok && getline(&line, &size, file) > 0) {
		split(line, &pairs);
		ok = take(matrix, &pairs);
	}
	error = ferror(file) ? errno : 0;
	free(line);
	fclose(file);
	if (error)
		return say_no_file(name, error);
	return ok ? STATUS_OK : say_error("no memory");
}

/* --- order ------------------------------------------------------------------------- */

/* Names consist of hexadecimal digits of fixed widths, except for domains beyond ffff. */
static int compare_names(const char *a, const char *b)
{
	size_t len_a = strlen(a), len_b = strlen(b);

	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return strcmp(a, b);
}

static int compare_providers(const void *a, const void *b)
{
	return compare_names(((const struct p2p_provider *)a)->name,
			     ((const struct p2p_provider *)b)->name);
}

static int compare_routes(const void *a, const void *b)
{
	const struct p2p_route *x = a, *y = b;

	return compare_names(x->client, y->client) ?:
	       compare_names(x->provider, y->provider);
}

/* Collects each client once, from the sorted routes. */
static int take_clients(struct p2p_matrix *matrix)
{
	const char *last = "";
	size_t i;

	/* At least one: an allocation of size 0 may be NULL. */
	matrix->clients = calloc(matrix->nr_routes + 1, sizeof(matrix->clients[0]));
	if (!matrix->clients)
		return say_error("no memory");
	for (i = 0; i < matrix->nr_routes; i++) {
		if (!strcmp(last, matrix->routes[i].client))
			continue;
		last = matrix->routes[i].client;
		memcpy(matrix->clients[matrix->nr_clients++], last, P2P_NAME);
	}
	return STATUS_OK;
}

static void sort(void *array, size_t count, size_t size,
		 int (*compare)(const void *a, const void *b))
{
	if (count)
		qsort(array, count, size, compare);
}

int p2p_matrix_read(struct p2p_matrix *matrix)
{
	int status;

	memset(matrix, 0, sizeof(*matrix));
	status = read_file(matrix, "providers", take_provider);
	if (!status)
		status = read_file(matrix, "matrix", take_route);
	if (!status)
		status = read_file(matrix, "lists", take_list);
	if (status)
		return status;
	sort(matrix->providers, matrix->nr_providers, sizeof(matrix->providers[0]),
	     compare_providers);
	sort(matrix->routes, matrix->nr_routes, sizeof(matrix->routes[0]), compare_routes);
	return take_clients(matrix);
}

void p2p_matrix_free(struct p2p_matrix *matrix)
{
	size_t i;

	for (i = 0; i < matrix->nr_routes; i++)
		free(matrix->routes[i].redirects);
	for (i = 0; i < matrix->nr_lists; i++)
		free(matrix->lists[i].clients);
	free(matrix->providers);
	free(matrix->clients);
	free(matrix->routes);
	free(matrix->lists);
	memset(matrix, 0, sizeof(*matrix));
}

const struct p2p_route *p2p_matrix_route(const struct p2p_matrix *matrix,
					 const char *client, const char *provider)
{
	struct p2p_route key = {};

	snprintf(key.client, sizeof(key.client), "%s", client);
	snprintf(key.provider, sizeof(key.provider), "%s", provider);
	if (!matrix->nr_routes)
		return NULL;
	return bsearch(&key, matrix->routes, matrix->nr_routes, sizeof(key), compare_routes);
}

const char *p2p_driver(const char *name, char driver[P2P_WORD])
{
	char path[PATH_MAX], target[PATH_MAX], *last;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", name);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return "-";
	target[len] = '\0';
	last = strrchr(target, '/');
	snprintf(driver, P2P_WORD, "%.*s", P2P_WORD - 1, last ? last + 1 : target);
	return driver;
}
