// SPDX-License-Identifier: GPL-2.0-only
/*
 * rdmalink add <device> <type> <netdev>: makes an RDMA device on a network device
 * rdmalink delete <device>: removes it
 * rdmalink monitor: prints what the kernel tells of devices, until it is killed
 *
 * As "rdma link add <device> type <type> netdev <netdev>", "rdma link delete" and "rdma monitor"
 * do. Exit status: 0, or 1 after printing the kernel's answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

/* Of 6.12; Debian's headers are older. */
#define GROUP_NOTIFY	4
#define ATTR_EVENT_TYPE	102
#define EVENTS		4

static struct {
	struct nlmsghdr head;
	char attrs[256];
} request;

static union {
	struct nlmsghdr head;
	char bytes[16384];
} answer;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "rdmalink: %s: %s\n", what, why);
	exit(1);
}

static void begin(int command, int flags)
{
	request.head = (struct nlmsghdr) {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = NLM_F_REQUEST | flags,
	};
}

static void add(int type, const void *value, size_t len)
{
	struct nlattr *attr = (void *)((char *)&request + request.head.nlmsg_len);

	if (request.head.nlmsg_len + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(request))
		fail(value, "too long");
	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((char *)attr + NLA_HDRLEN, value, len);
	request.head.nlmsg_len += NLA_ALIGN(attr->nla_len);
}

static void add_string(int type, const char *value)
{
	add(type, value, strlen(value) + 1);
}

static ssize_t receive(int fd)
{
	ssize_t len = recv(fd, &answer, sizeof(answer), 0);

	if (len < (ssize_t)NLMSG_HDRLEN) {
		perror("rdmalink: recv");
		exit(1);
	}
	return len;
}

static void send_request(int fd)
{
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0) {
		perror("rdmalink: send");
		exit(1);
	}
}

static void send_and_wait(int fd, const char *device)
{
	const struct nlmsgerr *err = NLMSG_DATA(&answer.head);

	send_request(fd);
	receive(fd);
	if (answer.head.nlmsg_type != NLMSG_ERROR)
		fail(device, "no acknowledgment");
	if (err->error)
		fail(device, strerror(-err->error));
}

/* The value of an attribute of a message, or NULL. */
static const void *attr_of(const struct nlmsghdr *message, int type)
{
	const char *at = NLMSG_DATA(message), *end = (const char *)message + message->nlmsg_len;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attr = (const void *)at;

		if (attr->nla_len < NLA_HDRLEN)
			return NULL;
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			return at + NLA_HDRLEN;
		at += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}

/* The kernel lists all devices; the end of the list is a message of its own. */
static unsigned int index_of(int fd, const char *device)
{
	unsigned int index = 0, found = 0;
	const struct nlmsghdr *message;
	ssize_t len;

	begin(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	send_request(fd);
	for (;;) {
		len = receive(fd);
		for (message = &answer.head; NLMSG_OK(message, len);
		     message = NLMSG_NEXT(message, len)) {
			const char *name;

			if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
				if (!found)
					fail(device, "no such device");
				return index;
			}
			name = attr_of(message, RDMA_NLDEV_ATTR_DEV_NAME);
			if (!name || strcmp(name, device))
				continue;
			memcpy(&index, attr_of(message, RDMA_NLDEV_ATTR_DEV_INDEX), sizeof(index));
			found = 1;
		}
	}
}

/* <event> <device> [<network device>] */
static void print_event(const struct nlmsghdr *message)
{
	static const char *const events[EVENTS] = { "register", "unregister", "attach", "detach" };
	const unsigned char *event = attr_of(message, ATTR_EVENT_TYPE);
	const char *device = attr_of(message, RDMA_NLDEV_ATTR_DEV_NAME);
	const char *netdev = attr_of(message, RDMA_NLDEV_ATTR_NDEV_NAME);

	if (!event || *event >= EVENTS)
		return;
	printf("%s %s%s%s\n", events[*event], device ? device : "?", netdev ? " " : "",
	       netdev ? netdev : "");
}

static void monitor(int fd)
{
	const struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK, .nl_groups = 1 << (GROUP_NOTIFY - 1),
	};

	/* One without an address would be taken for the sender. */
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		perror("rdmalink: bind");
		exit(1);
	}
	puts("listening");
	for (;;) {
		fflush(stdout);
		receive(fd);
		print_event(&answer.head);
	}
}

int main(int argc, char **argv)
{
	unsigned int index;
	int fd;

	if (!(argc == 5 && !strcmp(argv[1], "add")) && !(argc == 3 && !strcmp(argv[1], "delete")) &&
	    !(argc == 2 && !strcmp(argv[1], "monitor"))) {
		fprintf(stderr, "usage: rdmalink add <device> <type> <netdev>\n"
			"       rdmalink delete <device>\n"
			"       rdmalink monitor\n");
		return 1;
	}
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (fd < 0) {
		perror("rdmalink: socket");
		return 1;
	}
	if (argc == 2)
		monitor(fd);
	if (argc == 5) {
		begin(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
		add_string(RDMA_NLDEV_ATTR_DEV_NAME, argv[2]);
		add_string(RDMA_NLDEV_ATTR_LINK_TYPE, argv[3]);
		add_string(RDMA_NLDEV_ATTR_NDEV_NAME, argv[4]);
	} else {
		index = index_of(fd, argv[2]);
		begin(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
		add(RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	}
	send_and_wait(fd, argv[2]);
	close(fd);
	return 0;
}
