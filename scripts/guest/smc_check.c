// SPDX-License-Identifier: GPL-2.0-only
/*
 * smc_check serve <address> <KiB>: sends back what one connection sends, until that ends
 * smc_check send <address> <KiB>: sends so much, and compares what comes back
 *
 * By sockets of AF_SMC, which use TCP, in silence, where they cannot use RDMA: whoever calls this
 * looks at the counters of the device. Exit status: 0, or 1 after saying what failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif
#define SMCPROTO_SMC	0
#define PORT		7
#define CHUNK		16384
/* More than a guest takes, and for each MiB. What hangs ends by a signal. */
#define PATIENCE_S	120
#define MIB_PATIENCE_S	4

static unsigned int out[CHUNK / sizeof(unsigned int)], in[CHUNK / sizeof(unsigned int)];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void put(int fd, const void *data, size_t len)
{
	ssize_t n;

	for (; len; data += n, len -= n) {
		n = send(fd, data, len, 0);
		check(n > 0, "send");
	}
}

static size_t get(int fd, void *data, size_t len)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = recv(fd, data + got, len - got, 0);
		check(n >= 0, "recv");
		if (!n)
			break;
		got += n;
	}
	return got;
}

static void serve(int fd, const struct sockaddr_in *addr)
{
	int one = 1, peer;
	size_t n;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(!bind(fd, (const struct sockaddr *)addr, sizeof(*addr)), "bind");
	check(!listen(fd, 1), "listen");
	peer = accept(fd, NULL, NULL);
	check(peer >= 0, "accept");
	while ((n = get(peer, in, CHUNK)))
		put(peer, in, n);
	close(peer);
}

static void send_all(int fd, const struct sockaddr_in *addr, long kib)
{
	unsigned int seed = 1;
	long done;
	size_t i;

	check(!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)), "connect");
	for (done = 0; done < kib * 1024; done += CHUNK) {
		for (i = 0; i < CHUNK / sizeof(out[0]); i++)
			out[i] = seed = seed * 1664525 + 1013904223;
		put(fd, out, CHUNK);
		if (get(fd, in, CHUNK) != CHUNK) {
			fprintf(stderr, "the connection ended after %ld bytes\n", done);
			exit(1);
		}
		if (memcmp(in, out, CHUNK)) {
			fprintf(stderr, "what came back differs, after %ld bytes\n", done);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	long kib;
	int fd;

	if (argc < 4 || inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
		return 1;
	kib = atol(argv[3]);
	alarm(PATIENCE_S + MIB_PATIENCE_S * (kib / 1024));
	fd = socket(AF_SMC, SOCK_STREAM, SMCPROTO_SMC);
	check(fd >= 0, "socket");
	if (!strcmp(argv[1], "serve"))
		serve(fd, &addr);
	else
		send_all(fd, &addr, kib);
	close(fd);
	return 0;
}
