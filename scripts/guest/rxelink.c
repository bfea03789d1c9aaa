// SPDX-License-Identifier: GPL-2.0-only
/*
 * rxelink <device> <netdev>: makes an rdma_rxe device on a network device, as
 * "rdma link add <device> type rxe netdev <netdev>" does.
 *
 * Exit status: 0, or 1 after printing the kernel's answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

static struct {
	struct nlmsghdr head;
	char attrs[256];
} request = {
	.head = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
	},
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void add_string(int type, const char *value)
{
	struct nlattr *attr = (void *)((char *)&request + request.head.nlmsg_len);
	size_t len = strlen(value) + 1;

	if (request.head.nlmsg_len + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(request)) {
		fprintf(stderr, "rxelink: %s: too long\n", value);
		exit(1);
	}
	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((char *)attr + NLA_HDRLEN, value, len);
	request.head.nlmsg_len += NLA_ALIGN(attr->nla_len);
}

int main(int argc, char **argv)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char echo[512];
	} answer;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: rxelink <device> <netdev>\n");
		return 1;
	}
	add_string(RDMA_NLDEV_ATTR_DEV_NAME, argv[1]);
	add_string(RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	add_string(RDMA_NLDEV_ATTR_NDEV_NAME, argv[2]);

	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (fd < 0)
		die("rxelink: socket");
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
		die("rxelink: send");
	if (recv(fd, &answer, sizeof(answer), 0) < (ssize_t)(NLMSG_HDRLEN + sizeof(answer.err)))
		die("rxelink: recv");
	close(fd);
	if (answer.head.nlmsg_type != NLMSG_ERROR || answer.err.error) {
		fprintf(stderr, "rxelink: %s\n", strerror(-answer.err.error));
		return 1;
	}
	return 0;
}
