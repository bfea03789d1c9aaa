// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs p2p: which PCI functions reach which memory, as a matrix, in words, or as JSON.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kverbs.h"
#include "p2p.h"

/* For a terminal that does not report its width. */
#define WIDTH_DEFAULT	80
#define GAP		2

struct p2p {
	bool json;
	bool why;
	char **clients;		/* only these; all if empty */
	int nr_clients;
};

/* --- which clients ----------------------------------------------------------------- */

/* Tells whether text names a function: as for lspci, 3b:00.0 stands for 0000:3b:00.0. */
static bool is_name(const char *text, const char *name)
{
	return !strcmp(text, name) ||
	       (!strncmp(name, "0000:", 5) && !strcmp(text, name + 5));
}

static bool is_wanted(const struct p2p *p2p, const char *client)
{
	int i;

	for (i = 0; i < p2p->nr_clients; i++)
		if (is_name(p2p->clients[i], client))
			return true;
	return !p2p->nr_clients;
}

static int say_no_client(const char *client)
{
	return say_error("no client %s\n"
			 "  Clients are PCI functions other than bridges; to list them: lspci -D",
			 client);
}

static int check_clients(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	size_t k;
	int i;

	for (i = 0; i < p2p->nr_clients; i++) {
		for (k = 0; k < matrix->nr_clients; k++)
			if (is_name(p2p->clients[i], matrix->clients[k]))
				break;
		if (k == matrix->nr_clients)
			return say_no_client(p2p->clients[i]);
	}
	return STATUS_OK;
}

/* --- text -------------------------------------------------------------------------- */

static int say_no_provider(void)
{
	return say_error("no provider: no driver offers its device's memory\n"
			 "  To offer that of a PCI function, load kverbs_bar_mem.ko and bind the\n"
			 "  function to it: see Documentation/p2pdma.rst");
}

/* Returns the characters to leave out of names: with only one domain, its number. */
static size_t domain_to_skip(const struct p2p_matrix *matrix)
{
	size_t i;

	for (i = 0; i < matrix->nr_clients; i++)
		if (strncmp(matrix->clients[i], "0000:", 5))
			return 0;
	for (i = 0; i < matrix->nr_providers; i++)
		if (strncmp(matrix->providers[i].name, "0000:", 5))
			return 0;
	return 5;
}

static void print_providers(const struct p2p_matrix *matrix)
{
	char size[TEXT_MAX], available[TEXT_MAX], driver[P2P_WORD];
	const struct p2p_provider *p;

	puts("Providers:");
	for (p = matrix->providers; p < matrix->providers + matrix->nr_providers; p++)
		printf("  %s  %s, %s available, %s, kept by %s, driver %s\n", p->name,
		       text_bytes(p->size, size), text_bytes(p->available, available),
		       p->published ? "published" : "not published",
		       !strcmp(p->keeper, "kernel") ? "the kernel" : p->keeper,
		       p2p_driver(p->name, driver));
}

static const char *cell(const struct p2p_route *route, char buf[TEXT_MAX])
{
	if (!route)
		return "?";
	if (route->distance < 0)
		return "-";
	snprintf(buf, TEXT_MAX, "%d %s%s", route->distance, route->map,
		 p2p_is_by_policy(route) ? "!" : "");
	return buf;
}

/* Returns the number of columns of the terminal; there is no limit for a file. */
static size_t width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return SIZE_MAX;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH_DEFAULT;
	return size.ws_col;
}

/**
 * struct table - how the matrix is laid out
 * @skip: number of characters to leave out of names
 * @client: width of the clients' names
 * @driver: width of their drivers' names
 * @cell: width of a cell
 * @columns: number of providers side by side
 */
struct table {
	size_t skip;
	int client;
	int driver;
	int cell;
	size_t columns;
};

static void widen(int *width, const char *text)
{
	int len = strlen(text);

	if (len > *width)
		*width = len;
}

static struct table lay_out(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	struct table t = {
		.skip = domain_to_skip(matrix),
		.client = strlen("CLIENT"),
		.driver = strlen("DRIVER"),
	};
	char buf[P2P_WORD];
	size_t i, left;

	for (i = 0; i < matrix->nr_clients; i++) {
		if (!is_wanted(p2p, matrix->clients[i]))
			continue;
		widen(&t.client, matrix->clients[i] + t.skip);
		widen(&t.driver, p2p_driver(matrix->clients[i], buf));
	}
	widen(&t.cell, "12 host!");
	for (i = 0; i < matrix->nr_providers; i++)
		widen(&t.cell, matrix->providers[i].name + t.skip);
	left = t.client + t.driver + GAP;
	t.columns = width() > left ? (width() - left) / (t.cell + GAP) : 0;
	t.columns = t.columns ?: 1;
	return t;
}

/* Returns the first provider that does not fit into the block. */
static size_t block_end(const struct table *t, const struct p2p_matrix *matrix, size_t first)
{
	size_t left = matrix->nr_providers - first;

	return first + (left < t->columns ? left : t->columns);
}

static void print_cells(const struct table *t, const struct p2p_matrix *matrix,
			const char *client, size_t first)
{
	size_t i, end = block_end(t, matrix, first);
	const struct p2p_route *route;
	char buf[TEXT_MAX];

	for (i = first; i < end; i++) {
		route = p2p_matrix_route(matrix, client, matrix->providers[i].name);
		printf("%*s%-*s", GAP, "", i < end - 1 ? t->cell : 0, cell(route, buf));
	}
	putchar('\n');
}

/* Prints as many providers as fit side by side, starting with @first. */
static void print_block(const struct p2p *p2p, const struct table *t,
			const struct p2p_matrix *matrix, size_t first)
{
	size_t i, end = block_end(t, matrix, first);
	char driver[P2P_WORD];

	printf("%-*s%*s%-*s", t->client, "CLIENT", GAP, "", t->driver, "DRIVER");
	for (i = first; i < end; i++)
		printf("%*s%-*s", GAP, "", i < end - 1 ? t->cell : 0,
		       matrix->providers[i].name + t->skip);
	putchar('\n');
	for (i = 0; i < matrix->nr_clients; i++) {
		if (!is_wanted(p2p, matrix->clients[i]))
			continue;
		printf("%-*s%*s%-*s", t->client, matrix->clients[i] + t->skip, GAP, "",
		       t->driver, p2p_driver(matrix->clients[i], driver));
		print_cells(t, matrix, matrix->clients[i], first);
	}
}

static void print_legend(void)
{
	puts("Distance in ports from a client to each provider's memory, and the route:\n"
	     "  bus   by bus address, below the host bridge\n"
	     "  host  through the host bridge; host! is not known to work, but allowed\n"
	     "  -     refused; for the reason: kverbs p2p --why <client>");
}

static void print_lists(const struct p2p_matrix *matrix)
{
	const struct p2p_list *l;

	if (!matrix->nr_lists)
		return;
	puts("\nLists of clients, and the provider that each is bound to:");
	for (l = matrix->lists; l < matrix->lists + matrix->nr_lists; l++)
		printf("  %u  %s  %s\n", l->number,
		       !strcmp(l->provider, "-") ? "none yet" : l->provider, l->clients);
}

static void print_matrix(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	struct table table = lay_out(p2p, matrix);
	size_t first;

	print_providers(matrix);
	for (first = 0; first < matrix->nr_providers; first += table.columns) {
		putchar('\n');
		print_block(p2p, &table, matrix, first);
	}
	putchar('\n');
	print_legend();
	print_lists(matrix);
}

static void print_routes(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	bool first = true;
	size_t i;

	for (i = 0; i < matrix->nr_routes; i++) {
		if (!is_wanted(p2p, matrix->routes[i].client))
			continue;
		if (!first)
			putchar('\n');
		first = false;
		p2p_print_why(matrix, &matrix->routes[i]);
	}
}

/* --- JSON -------------------------------------------------------------------------- */

/* Writes null where the text has a hyphen. */
static void json_word(struct json *json, const char *key, const char *word)
{
	if (strcmp(word, "-"))
		json_string(json, key, word);
	else
		json_null(json, key);
}

/* Takes names separated by commas. */
static void json_names(struct json *json, const char *key, const char *names)
{
	char name[P2P_NAME];
	size_t len;

	json_array(json, key);
	for (; *names; names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		json_string(json, NULL, name);
	}
	json_end(json);
}

static void json_providers(struct json *json, const struct p2p_matrix *matrix)
{
	const struct p2p_provider *p;
	char driver[P2P_WORD];

	json_array(json, "providers");
	for (p = matrix->providers; p < matrix->providers + matrix->nr_providers; p++) {
		json_object(json, NULL);
		json_string(json, "name", p->name);
		json_word(json, "driver", p2p_driver(p->name, driver));
		json_number(json, "size", p->size);
		json_number(json, "available", p->available);
		json_bool(json, "published", p->published);
		json_string(json, "keeper", p->keeper);
		json_end(json);
	}
	json_end(json);
}

static void json_route(struct json *json, const struct p2p_route *route)
{
	char driver[P2P_WORD];

	json_object(json, NULL);
	json_string(json, "client", route->client);
	json_word(json, "driver", p2p_driver(route->client, driver));
	json_string(json, "provider", route->provider);
	if (route->distance < 0)
		json_null(json, "distance");
	else
		json_number(json, "distance", route->distance);
	json_number(json, "hops", route->hops);
	json_string(json, "map", route->map);
	json_string(json, "why", route->why);
	json_string(json, "reason", p2p_reason(route));
	json_word(json, "bridge", route->bridge);
	json_names(json, "redirects", route->redirects);
	json_end(json);
}

static void json_lists(struct json *json, const struct p2p_matrix *matrix)
{
	const struct p2p_list *l;

	json_array(json, "lists");
	for (l = matrix->lists; l < matrix->lists + matrix->nr_lists; l++) {
		json_object(json, NULL);
		json_number(json, "number", l->number);
		json_word(json, "provider", l->provider);
		json_names(json, "clients", l->clients);
		json_end(json);
	}
	json_end(json);
}

static void print_json(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	struct json json;
	size_t i;

	json_start(&json, stdout, false);
	json_object(&json, NULL);
	json_providers(&json, matrix);
	json_array(&json, "routes");
	for (i = 0; i < matrix->nr_routes; i++)
		if (is_wanted(p2p, matrix->routes[i].client))
			json_route(&json, &matrix->routes[i]);
	json_end(&json);
	json_lists(&json, matrix);
	json_end(&json);
}

/* --- the command ------------------------------------------------------------------- */

static int show(const struct p2p *p2p, const struct p2p_matrix *matrix)
{
	int status;

	if (!matrix->nr_providers && !p2p->json)
		return say_no_provider();
	status = matrix->nr_providers ? check_clients(p2p, matrix) : STATUS_OK;
	if (status)
		return status;
	if (p2p->json)
		print_json(p2p, matrix);
	else if (p2p->why)
		print_routes(p2p, matrix);
	else
		print_matrix(p2p, matrix);
	return STATUS_OK;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "why", no_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct p2p_matrix matrix;
	struct p2p p2p = {};
	int opt, status;

	while ((opt = getopt_long(argc, argv, "wjh", options, NULL)) != -1) {
		switch (opt) {
		case 'w':
			p2p.why = true;
			break;
		case 'j':
			p2p.json = true;
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	p2p.clients = argv + optind;
	p2p.nr_clients = argc - optind;
	status = p2p_matrix_read(&matrix) ?: show(&p2p, &matrix);
	p2p_matrix_free(&matrix);
	return status;
}

const struct command p2p_command = {
	.name = "p2p",
	.arguments = "[<client>...] [--why] [--json]",
	.summary = "show which PCI functions can reach whose memory",
	.help =
	"Shows which PCI functions (clients) can reach the peer-to-peer memory of which\n"
	"others (providers), and how: a matrix with a row for each client and a column for\n"
	"each provider; or only the rows of the given clients. Requires root.\n"
	"\n"
	"  -w, --why    explain each pair: why, by which bridges, and what can be done\n"
	"  -j, --json   print JSON: an object, see kverbs(1)\n"
	"  -h, --help   print this help\n",
	.run = run,
};
