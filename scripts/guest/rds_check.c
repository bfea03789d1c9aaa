// SPDX-License-Identifier: GPL-2.0-only
/*
 * rds_check serve <address> <interface>: sends messages back to whoever sent them
 * rds_check send <from> <interface> <to> <interface> <messages>: sends so many, and compares what
 * comes back
 *
 * By sockets of AF_RDS, at link-local IPv6 addresses. Exit status: 0, or 1 after saying what
 * failed; the server ends by a signal.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_RDS
#define AF_RDS	21
#endif
#define PORT	4000
/* Several fragments of RDS, and a part of one. */
#define BYTES	50000
/* More than a guest takes. What hangs ends by a signal. */
#define PATIENCE_S	120

static uint32_t out[BYTES / 4], in[BYTES / 4];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct sockaddr_in6 address(const char *text, const char *interface, int port)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	check(inet_pton(AF_INET6, text, &addr.sin6_addr) == 1, text);
	addr.sin6_scope_id = if_nametoindex(interface);
	check(addr.sin6_scope_id, interface);
	return addr;
}

static int bound(const char *text, const char *interface, int port)
{
	struct sockaddr_in6 addr = address(text, interface, port);
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0);

	check(fd >= 0, "socket");
	check(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)), "bind");
	return fd;
}

static void put(int fd, const void *data, const struct sockaddr_in6 *to)
{
	check(sendto(fd, data, BYTES, 0, (const struct sockaddr *)to, sizeof(*to)) == BYTES,
	      "sendto");
}

static void serve(int fd)
{
	struct sockaddr_in6 from;
	socklen_t len;

	for (;;) {
		len = sizeof(from);
		check(recvfrom(fd, in, BYTES, 0, (struct sockaddr *)&from, &len) == BYTES,
		      "recvfrom");
		put(fd, in, &from);
	}
}

static void send_all(int fd, const struct sockaddr_in6 *to, uint32_t messages)
{
	uint32_t message, i;

	for (message = 0; message < messages; message++) {
		for (i = 0; i < BYTES / 4; i++)
			out[i] = message * BYTES + i;
		memset(in, 0, BYTES);
		put(fd, out, to);
		check(recv(fd, in, BYTES, 0) == BYTES, "recv");
		if (!memcmp(in, out, BYTES))
			continue;
		fprintf(stderr, "message %u came back with other data\n", message);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 to;

	alarm(PATIENCE_S);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(bound(argv[2], argv[3], PORT));
	if (argc != 7 || strcmp(argv[1], "send")) {
		fputs("usage: rds_check serve|send <address> <interface> ...\n", stderr);
		return 1;
	}
	to = address(argv[4], argv[5], PORT);
	send_all(bound(argv[2], argv[3], PORT + 1), &to, strtoul(argv[6], NULL, 0));
	return 0;
}
