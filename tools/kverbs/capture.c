// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs capture: writes the messages of a software HCA to a file, as the frames of RoCE v2
 * that they would be on a wire. The driver records them: <kverbs/emu_capture.h>.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "emulated.h"

/* Room for at least one record of any size. */
#define BUFFER_SIZE	(4 * KVERBS_EMU_CAPTURE_MAX_DATA)
/* Bytes to read after a signal. The driver's buffer holds no more; traffic may go on for ever. */
#define LAST_BYTES	(8 << 20)
/* The largest path MTU for which a packet fits into struct frame. */
#define MTU_MAX		4096

/**
 * struct capture - a capture under way
 * @device: the device
 * @fd: its file
 * @out: where the frames go
 * @count: messages to stop after; 0 for never
 * @messages: messages written
 * @frames: their frames
 * @lost: messages that the driver could not keep: the greatest number in any record
 */
struct capture {
	const char *device;
	int fd;
	FILE *out;
	uint64_t count;
	uint64_t messages;
	uint64_t frames;
	uint64_t lost;
};

/* --- messages about errors ----------------------------------------------------- */

static int say_no_capture(const char *device, int error)
{
	if (say_no_emulation(error))
		return STATUS_FAILED;
	return say_error("cannot capture on %s: %s\n"
			 "  Emulated devices, whose messages can be captured: ls %s",
			 device, error == ENOENT ? "no such emulated device" : strerror(error),
			 EMULATED_DIR);
}

static int say_not_started(const char *device, int error)
{
	if (error == EBUSY)
		return say_error("somebody captures on %s already", device);
	return say_error("cannot start to capture on %s: %s", device, strerror(error));
}

static int say_not_created(const char *path, int error)
{
	if (error == EMLINK)
		return say_error("cannot write %s: it has other names (hard links), so it may be a\n"
				 "  file that matters. Remove it, or write to a new one", path);
	return say_error("cannot write %s: %s", path, strerror(error));
}

/* --- writing ------------------------------------------------------------------- */

/* Return: whether this can be a record. */
static bool is_record(const struct kverbs_emu_capture_record *rec, size_t size)
{
	return size >= sizeof(*rec) && rec->version == KVERBS_EMU_CAPTURE_VERSION &&
	       rec->size <= size && rec->size == sizeof(*rec) + rec->data_size &&
	       (rec->kind != KVERBS_EMU_CAPTURE_MESSAGE ||
		(rec->mtu && rec->mtu <= MTU_MAX && rec->data_size <= rec->length));
}

static bool is_complete(const struct capture *cap)
{
	return cap->count && cap->messages == cap->count;
}

static int write_records(struct capture *cap, const uint8_t *bytes, size_t size)
{
	struct kverbs_emu_capture_record rec;

	for (; size; bytes += rec.size, size -= rec.size) {
		/* Records are not aligned. */
		memset(&rec, 0, sizeof(rec));
		memcpy(&rec, bytes, size < sizeof(rec) ? size : sizeof(rec));
		if (!is_record(&rec, size))
			return say_error("the records of %s are not of version %d: this command and\n"
					 "  the module kverbs_emu must have the same version",
					 cap->device, KVERBS_EMU_CAPTURE_VERSION);
		if (rec.lost > cap->lost)
			cap->lost = rec.lost;
		if (rec.kind != KVERBS_EMU_CAPTURE_MESSAGE)
			continue;
		if (is_complete(cap))
			break;
		cap->frames += frames_of(&rec, bytes + sizeof(rec), cap->out);
		cap->messages++;
	}
	return STATUS_OK;
}

/* --- the loop ------------------------------------------------------------------ */

/*
 * Writes some of what there is. Return: STATUS_OK or STATUS_FAILED; got: bytes of it; ended:
 * whether the device is gone, and all has been read.
 */
static int read_some(struct capture *cap, uint8_t *buffer, size_t *got, bool *ended)
{
	ssize_t size = read(cap->fd, buffer, BUFFER_SIZE);
	int status;

	*got = size > 0 ? size : 0;
	*ended = !size;
	if (size < 0 && errno != EAGAIN && errno != EINTR)
		return say_error("cannot read the messages of %s: %s", cap->device,
				 strerror(errno));
	if (size <= 0)
		return STATUS_OK;
	status = write_records(cap, buffer, size);
	/* So that whoever reads the file meanwhile sees each message soon. */
	if (fflush(cap->out))
		status = say_error("cannot write the frames: %s", strerror(errno));
	return status;
}

static int capture_loop(struct capture *cap, uint8_t *buffer)
{
	struct pollfd fds = { .fd = cap->fd, .events = POLLIN };
	size_t got, left = LAST_BYTES;
	bool last, ended;
	int status;

	do {
		last = signal_caught();
		poll_or_signal(&fds, 1);
		status = read_some(cap, buffer, &got, &ended);
		if (!last)
			continue;
		if (!got || got >= left)
			break;
		left -= got;
	} while (status == STATUS_OK && !is_complete(cap) && !ended);
	return status;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int capture_until(struct capture *cap, uint8_t *buffer)
{
	int status;

	pcapng_start(cap->out, cap->device);
	fflush(cap->out);
	fprintf(stderr, "capturing on %s\n", cap->device);
	status = capture_loop(cap, buffer);
	pcapng_end(cap->out, now(), cap->frames, cap->lost);
	fprintf(stderr, "%llu messages, %llu frames, %llu messages lost\n",
		(unsigned long long)cap->messages, (unsigned long long)cap->frames,
		(unsigned long long)cap->lost);
	return status;
}

static int capture_to(struct capture *cap)
{
	uint8_t *buffer = malloc(BUFFER_SIZE);
	int status;

	if (!buffer)
		return say_error("no memory");
	status = catch_signals(fileno(cap->out));
	if (status == STATUS_OK)
		status = capture_until(cap, buffer);
	free(buffer);
	return status;
}

/* Whether it leads to a file that is open already, whoever made that. */
static bool is_open_already(const char *path)
{
	return !strncmp(path, "/dev/std", 8) || !strncmp(path, "/dev/fd/", 8) ||
	       !strncmp(path, "/proc/", 6);
}

/*
 * Creates a file that only its owner can read, because it gets messages of all processes; it keeps
 * who may read it if it is open already. Whatever else is there must be ours, and until that is
 * known, it is left as it is. That it is ours is not enough: another user may have given this name
 * to any of our files.
 */
static FILE *create_private(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
	bool given = is_open_already(path);
	int fd = open(path, given ? flags : flags | O_NOFOLLOW, 0600);
	FILE *file = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || fcntl(fd, F_SETFL, 0))
		goto out;
	if (given)
		file = fdopen(fd, "w");
	else if (st.st_uid != geteuid())
		errno = EPERM;
	else if (S_ISREG(st.st_mode) && st.st_nlink != 1)
		errno = EMLINK;
	else if (!S_ISREG(st.st_mode) || (!fchmod(fd, 0600) && !ftruncate(fd, 0)))
		file = fdopen(fd, "w");
out:
	if (!file && fd >= 0)
		close(fd);
	return file;
}

static int capture_file(struct capture *cap, const char *path)
{
	bool to_stdout = !strcmp(path, "-");
	int status;

	cap->out = to_stdout ? stdout : create_private(path);
	if (!cap->out)
		return say_not_created(path, errno);
	status = capture_to(cap);
	if (to_stdout)
		fflush(stdout);
	else if (fclose(cap->out) && status == STATUS_OK)
		status = say_error("cannot write %s: %s", path, strerror(errno));
	if (output_given_up())
		status = say_error("%s lacks the last frames: nobody reads it",
				   to_stdout ? "standard output" : path);
	return status;
}

static int open_and_capture(struct capture *cap, const char *path, uint64_t snaplen, uint64_t qpn)
{
	char command[64];
	int status;

	cap->fd = open_emulated(cap->device, "capture", O_RDWR | O_NONBLOCK);
	if (cap->fd < 0)
		return say_no_capture(cap->device, errno);
	snprintf(command, sizeof(command), "start snaplen=%u qp=%u", (unsigned int)snaplen,
		 (unsigned int)qpn);
	if (write(cap->fd, command, strlen(command)) < 0)
		status = say_not_started(cap->device, errno);
	else
		status = capture_file(cap, path);
	close(cap->fd);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "write", required_argument, NULL, 'w' },
		{ "snaplen", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "qp", required_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	uint64_t snaplen = KVERBS_EMU_CAPTURE_DATA, qpn = 0;
	struct capture cap = {};
	const char *path = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "w:s:c:q:h", options, NULL)) != -1) {
		switch (opt) {
		case 'w':
			path = optarg;
			break;
		case 's':
			if (!parse_number(optarg, 0, KVERBS_EMU_CAPTURE_MAX_DATA, &snaplen))
				return usage_error(cmd, "--snaplen: %s is not 0 to %d", optarg,
						   KVERBS_EMU_CAPTURE_MAX_DATA);
			break;
		case 'c':
			if (!parse_number(optarg, 1, UINT64_MAX, &cap.count))
				return usage_error(cmd, "--count: %s is not a number from 1", optarg);
			break;
		case 'q':
			if (!parse_number(optarg, 1, 0xffffff, &qpn))
				return usage_error(cmd, "--qp: %s is not the number of a queue pair",
						   optarg);
			break;
		case 'h':
			return command_help(cmd);
		default:
			return option_error(cmd);
		}
	}
	if (optind + 1 != argc)
		return usage_error(cmd, "no device given");
	if (!path)
		return usage_error(cmd, "no output file given; -w - writes to standard output");
	cap.device = argv[optind];
	return open_and_capture(&cap, path, snaplen, qpn);
}

const struct command capture_command = {
	.name = "capture",
	.arguments = "<device> -w <file> [--snaplen <bytes>] [--count <n>] [--qp <number>]",
	.summary = "capture the messages of an emulated device in a pcapng file",
	.help =
	"Writes the messages that an emulated device sends and receives to a pcapng file, until\n"
	"interrupted: as the RoCE v2 frames that would be on the wire, including acknowledgments\n"
	"and responses. Requires root.\n"
	"\n"
	"  -w, --write <file>     output file; - for standard output\n"
	"  -s, --snaplen <bytes>  maximum data to keep of a message: 0 to 65536 (default: 256)\n"
	"  -c, --count <n>        stop after n messages\n"
	"  -q, --qp <number>      only messages of this queue pair, at either end\n"
	"  -h, --help             print this help\n"
	"\n"
	"Examples:\n"
	"  kverbs capture emu0 -w /tmp/emu0.pcapng --count 100\n"
	"  kverbs capture emu0 -w - | tshark -r -\n",
	.run = run,
};
