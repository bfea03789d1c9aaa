// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_gpu <device> moves|pinned [peer]: RDMA to the memory of the fake GPU, which a process
 * registers as a dma-buf: what arrives, from the GPU's side; memory that moves and memory that is
 * freed under traffic; a process that is killed as it sends. "pinned" is for kernels without
 * CONFIG_DMABUF_MOVE_NOTIFY, where importers pin: the memory cannot move, and is the region's
 * until that goes. "peer": the core has peer memory, and so finds the GPU by an address, too.
 * Prints a line for each case; the exit status is 0 if all are right.
 */
#include "uverbs_case.h"
#include "uverbs_dmabuf.h"

#include <fcntl.h>
#include <kverbs/fake_gpu.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU_BYTES	(4 * 65536)
#define MESSAGE		4000
#define MOVES		100
#define KILLS		5
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const char *device;
static bool pinned;
static int gpu;

/* Memory of the GPU, and its region. */
struct gpu_mem {
	struct fake_gpu_alloc alloc;
	unsigned char *mem;
	int dmabuf;
	struct dmabuf_mr mr;
};

/* WRITEs, one after another, until one fails or stop is set. */
struct traffic {
	struct pair *pair;
	const struct gpu_mem *to;
	unsigned long done;
	bool stop;
	enum ibv_wc_status status;
};

static uint64_t used(void)
{
	struct fake_gpu_info info = {};

	if (ioctl(gpu, FAKE_GPU_INFO, &info))
		die("INFO");
	return info.used;
}

static bool get_mem(struct pair *p, int node, struct gpu_mem *gm)
{
	*gm = (struct gpu_mem) { .alloc.size = GPU_BYTES };
	NEED(!ioctl(node, FAKE_GPU_ALLOC, &gm->alloc));
	gm->mem = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, node, gm->alloc.offset);
	NEED(gm->mem != MAP_FAILED);
	gm->dmabuf = ioctl(node, FAKE_GPU_EXPORT, gm->alloc.handle);
	NEED(gm->dmabuf >= 0 && !reg_dmabuf(p, gm->dmabuf, GPU_BYTES, ACCESS, &gm->mr));
	return true;
}

/* Freed or not, nothing is left of it. */
static bool put_mem(struct pair *p, struct gpu_mem *gm, bool freed)
{
	NEED(!dereg_dmabuf(p, &gm->mr) && !munmap(gm->mem, GPU_BYTES) && !close(gm->dmabuf));
	NEED(freed || !ioctl(gpu, FAKE_GPU_FREE, gm->alloc.handle));
	NEED(used() == 0);
	return true;
}

static enum ibv_wc_status transfer(struct pair *p, const struct gpu_mem *to,
				   enum ibv_wr_opcode opcode, uint64_t at)
{
	struct ibv_sge sge = sge_of(p, 0, MESSAGE);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = at, .rkey = to->mr.rkey },
	}, *bad;
	struct ibv_wc wc = {};

	if (ibv_post_send(p->qp[0], &wr, &bad) || !poll_wc(p->cq, &wc))
		die("no completion");
	return wc.status;
}

/* Over the end of a page of the GPU. */
static bool writes_and_reads(struct pair *p)
{
	const uint64_t at = 65536 - MESSAGE / 2;
	struct gpu_mem gm;

	NEED(get_mem(p, gpu, &gm));
	memset(p->buf, 0x11, MESSAGE);
	NEED(transfer(p, &gm, IBV_WR_RDMA_WRITE, at) == IBV_WC_SUCCESS);
	NEED(is_filled(gm.mem + at, 0x11, MESSAGE) && !gm.mem[at - 1] && !gm.mem[at + MESSAGE]);
	memset(gm.mem + at, 0x22, MESSAGE);
	NEED(transfer(p, &gm, IBV_WR_RDMA_READ, at) == IBV_WC_SUCCESS &&
	     is_filled(p->buf, 0x22, MESSAGE));
	return put_mem(p, &gm, false);
}

static void *send_traffic(void *arg)
{
	struct traffic *t = arg;

	do {
		t->status = transfer(t->pair, t->to, IBV_WR_RDMA_WRITE, 0);
		__atomic_fetch_add(&t->done, 1, __ATOMIC_RELAXED);
	} while (t->status == IBV_WC_SUCCESS && !__atomic_load_n(&t->stop, __ATOMIC_RELAXED));
	return NULL;
}

/* Returns once some of it has arrived since. */
static void wait_traffic(struct traffic *t)
{
	unsigned long end = __atomic_load_n(&t->done, __ATOMIC_RELAXED) + 3;

	while (__atomic_load_n(&t->done, __ATOMIC_RELAXED) < end &&
	       __atomic_load_n(&t->status, __ATOMIC_RELAXED) == IBV_WC_SUCCESS)
		sched_yield();
}

/* Of its memory, a page of the GPU: nobody else writes there. */
static bool others_are_untouched(struct traffic *t)
{
	struct fake_gpu_alloc other = { .size = GPU_BYTES };
	unsigned char *mem;

	NEED(!ioctl(gpu, FAKE_GPU_ALLOC, &other));
	mem = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, other.offset);
	NEED(mem != MAP_FAILED);
	wait_traffic(t);
	NEED(is_filled(mem, 0, MESSAGE));
	NEED(!munmap(mem, GPU_BYTES) && !ioctl(gpu, FAKE_GPU_FREE, other.handle));
	return true;
}

/* Nothing fails, and what is written after a move is in the new place. */
static bool moves(struct pair *p)
{
	struct gpu_mem gm;
	struct traffic t = { .pair = p, .to = &gm };
	pthread_t thread;
	int i;

	NEED(get_mem(p, gpu, &gm));
	memset(p->buf, 0x33, MESSAGE);
	NEED(!pthread_create(&thread, NULL, send_traffic, &t));
	for (i = 0; i < MOVES && pinned; i++)
		NEED(ioctl(gpu, FAKE_GPU_MOVE, gm.alloc.handle) && errno == EBUSY);
	for (i = 0; i < MOVES && !pinned; i++) {
		NEED(!ioctl(gpu, FAKE_GPU_MOVE, gm.alloc.handle));
		memset(gm.mem, 0x44, MESSAGE);
		wait_traffic(&t);
		NEED(is_filled(gm.mem, 0x33, MESSAGE));
	}
	__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
	NEED(!pthread_join(thread, NULL) && t.status == IBV_WC_SUCCESS);
	return put_mem(p, &gm, false);
}

/* The traffic ends in an error; or it goes on where nobody else gets the memory. */
static bool is_freed(struct pair *p)
{
	struct gpu_mem gm;
	struct traffic t = { .pair = p, .to = &gm };
	pthread_t thread;

	NEED(get_mem(p, gpu, &gm) && !pthread_create(&thread, NULL, send_traffic, &t));
	wait_traffic(&t);
	NEED(!ioctl(gpu, FAKE_GPU_FREE, gm.alloc.handle) && others_are_untouched(&t));
	__atomic_store_n(&t.stop, pinned, __ATOMIC_RELAXED);
	NEED(!pthread_join(thread, NULL) &&
	     t.status == (pinned ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
	NEED(used() == GPU_BYTES && put_mem(p, &gm, true));
	return true;
}

/* What the process had is gone with it. */
static bool is_killed(struct pair *unused)
{
	int i, ready[2], status;
	struct gpu_mem gm;
	struct traffic t = { .to = &gm };
	pid_t child;
	time_t end;
	char byte;

	(void)unused;
	for (i = 0; i < KILLS; i++) {
		NEED(!pipe(ready));
		child = fork();
		if (!child) {
			int node = open("/dev/fake_gpu0", O_RDWR);

			t.pair = make_pair(open_device(device), 16, false);
			if (node < 0 || connect_pair(t.pair) || !get_mem(t.pair, node, &gm) ||
			    transfer(t.pair, &gm, IBV_WR_RDMA_WRITE, 0) != IBV_WC_SUCCESS ||
			    write(ready[1], "", 1) != 1)
				_exit(1);
			send_traffic(&t);
			_exit(1);
		}
		close(ready[1]);
		NEED(child > 0 && read(ready[0], &byte, 1) == 1);
		NEED(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child &&
		     WIFSIGNALED(status));
		close(ready[0]);
		for (end = time(NULL) + PATIENCE; used() && time(NULL) < end;)
			sched_yield();
		NEED(used() == 0);
	}
	return true;
}

/* By ibv_reg_mr(), as any memory; and revoked as it is freed, as the GPU's driver wants it back. */
static bool by_address(struct pair *p)
{
	struct fake_gpu_alloc alloc = { .size = GPU_BYTES };
	struct gpu_mem gm = {};
	struct ibv_mr *mr;
	uint64_t at;

	NEED(!ioctl(gpu, FAKE_GPU_ALLOC, &alloc));
	gm.mem = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, alloc.offset);
	NEED(gm.mem != MAP_FAILED);
	mr = ibv_reg_mr(p->pd, gm.mem, GPU_BYTES, ACCESS);
	NEED(mr);
	gm.mr.rkey = mr->rkey;
	at = 65536 - MESSAGE / 2;
	memset(p->buf, 0x55, MESSAGE);
	NEED(transfer(p, &gm, IBV_WR_RDMA_WRITE, (uintptr_t)gm.mem + at) == IBV_WC_SUCCESS);
	NEED(is_filled(gm.mem + at, 0x55, MESSAGE) && !gm.mem[at - 1] && !gm.mem[at + MESSAGE]);
	memset(gm.mem + at, 0x66, MESSAGE);
	NEED(transfer(p, &gm, IBV_WR_RDMA_READ, (uintptr_t)gm.mem + at) == IBV_WC_SUCCESS &&
	     is_filled(p->buf, 0x66, MESSAGE));
	NEED(!ioctl(gpu, FAKE_GPU_FREE, alloc.handle));
	NEED(transfer(p, &gm, IBV_WR_RDMA_WRITE, (uintptr_t)gm.mem + at) == IBV_WC_REM_ACCESS_ERR);
	NEED(!ibv_dereg_mr(mr) && !munmap(gm.mem, GPU_BYTES) && used() == 0);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct pair *p);
	bool peer;
} cases[] = {
	{ "writes_and_reads", writes_and_reads, false },
	{ "moves", moves, false },
	{ "is_freed", is_freed, false },
	{ "is_killed", is_killed, false },
	{ "by_address", by_address, true },
};

int main(int argc, char **argv)
{
	struct pair *p;
	bool right, all = true, peer;
	size_t i;

	if (argc < 3)
		return 2;
	peer = argc > 3 && !strcmp(argv[3], "peer");
	device = argv[1];
	pinned = !strcmp(argv[2], "pinned");
	gpu = open("/dev/fake_gpu0", O_RDWR);
	if (gpu < 0)
		die("/dev/fake_gpu0");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].peer && !peer)
			continue;
		p = make_pair(open_device(device), 16, false);
		right = !connect_pair(p) && cases[i].run(p);
		printf("%s %s\n", right ? "ok     " : "FAILED ", cases[i].name);
		fflush(stdout);
		all = all && right;
		if (right)
			free_pair(p);
	}
	return !all;
}
