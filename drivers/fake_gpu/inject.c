// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: files in /sys/kernel/debug/kverbs_fake_gpu/<device>/
 *
 * Rates, per million; 1000000 means always. For functions that the registry calls:
 *
 *   sleep		they begin with a sleep of at most delay_us microseconds
 *   busy		they begin with a busy wait of the same length, but of at most 1000
 *			microseconds
 *   fail_acquire	acquire() fails
 *   fail_get_pages	get_pages() fails
 *   fail_dma_map	dma_map() fails
 *   fail_dma_unmap	dma_unmap() does its work, and says that it failed
 *   wrong_nmap		dma_map() returns an impossible number of entries
 *   short_table	dma_map() returns a table that ends before the range does
 *   wrong_page_size	get_page_size() returns a value that is not a page size
 *   invalidate_in_get_pages, invalidate_in_dma_map, invalidate_in_dma_unmap,
 *   invalidate_in_put_pages
 *			the function invalidates its own region at its end
 * For invalidations:
 *
 *   hold_lock		the client holds its lock meanwhile; as long as this is not 0,
 *			it also takes that lock in get_pages(), dma_map(), dma_unmap()
 *			and put_pages()
 *   twice		another thread invalidates the same region at the same time,
 *			and this one once more afterwards
 * Other files:
 *
 *   delay_us		1 to 10000000
 *   seed		determines the choices; writing it restarts all sequences and
 *			counts
 *   injected		reading shows, for each kind, its name, how often it could have gone
 *			wrong, and how often it did
 *   registered		0 unregisters the client, which waits for its regions; 1
 *			registers it again
 *
 * A value out of range fails with -EINVAL. A choice is a hash of the seed, the kind, and
 * the number of earlier occasions of that kind while its rate was not 0.
 *
 * The module parameter mode says what kind of client a device is: it "unmaps" the
 * regions that it has invalidated by itself, leaves that to the "core", or "never"
 * invalidates.
 *
 * The functions in this file take the places of the template's functions in the client
 * before it is registered, and call those. Each region of ours is wrapped around one of
 * the template's.
 *
 * Lock protocol: fake_gpu_inject.lock is the lock of the client that hold_lock is about,
 * and is taken before all others of the driver; inject_register_lock serialises writers
 * of "registered".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "fake_gpu.h"

#define INJECT_MILLION		1000000
#define INJECT_MAX_DELAY	(10 * USEC_PER_SEC)
/* The longest time to wait without sleeping. */
#define INJECT_MAX_BUSY		USEC_PER_MSEC

enum inject_kind {
	INJECT_SLEEP,
	INJECT_BUSY,
	INJECT_FAIL_ACQUIRE,
	INJECT_FAIL_GET_PAGES,
	INJECT_FAIL_DMA_MAP,
	INJECT_FAIL_DMA_UNMAP,
	INJECT_WRONG_NMAP,
	INJECT_SHORT_TABLE,
	INJECT_WRONG_PAGE_SIZE,
	INJECT_IN_GET_PAGES,
	INJECT_IN_DMA_MAP,
	INJECT_IN_DMA_UNMAP,
	INJECT_IN_PUT_PAGES,
	INJECT_HOLD_LOCK,
	INJECT_TWICE,
	INJECT_NR_KINDS,
	/* Not a rate, but set in the same way. */
	INJECT_DELAY_US = INJECT_NR_KINDS,
	INJECT_NR_SETTINGS
};

static const char * const inject_names[INJECT_NR_SETTINGS] = {
	[INJECT_SLEEP] = "sleep",
	[INJECT_BUSY] = "busy",
	[INJECT_FAIL_ACQUIRE] = "fail_acquire",
	[INJECT_FAIL_GET_PAGES] = "fail_get_pages",
	[INJECT_FAIL_DMA_MAP] = "fail_dma_map",
	[INJECT_FAIL_DMA_UNMAP] = "fail_dma_unmap",
	[INJECT_WRONG_NMAP] = "wrong_nmap",
	[INJECT_SHORT_TABLE] = "short_table",
	[INJECT_WRONG_PAGE_SIZE] = "wrong_page_size",
	[INJECT_IN_GET_PAGES] = "invalidate_in_get_pages",
	[INJECT_IN_DMA_MAP] = "invalidate_in_dma_map",
	[INJECT_IN_DMA_UNMAP] = "invalidate_in_dma_unmap",
	[INJECT_IN_PUT_PAGES] = "invalidate_in_put_pages",
	[INJECT_HOLD_LOCK] = "hold_lock",
	[INJECT_TWICE] = "twice",
	[INJECT_DELAY_US] = "delay_us",
};

static char *mode[FAKE_GPU_MAX];
module_param_array(mode, charp, NULL, 0444);
MODULE_PARM_DESC(mode, "Who unmaps invalidated memory, per device: unmaps (the driver), core, or never (default: unmaps)");

enum inject_mode { INJECT_UNMAPS, INJECT_CORE, INJECT_NEVER };

static const char * const inject_modes[] = {
	[INJECT_UNMAPS] = "unmaps",
	[INJECT_CORE] = "core",
	[INJECT_NEVER] = "never",
};

/**
 * struct inject_knob - a setting that has a file of its own
 * @inject: the faults that it belongs to
 * @setting: enum inject_kind
 */
struct inject_knob {
	struct fake_gpu_inject *inject;
	unsigned int setting;
};

/**
 * struct fake_gpu_inject - the faults of a device
 * @gpu: the device
 * @mode: enum inject_mode
 * @real: the template's functions
 * @invalidate: the registry's function
 * @registered: acquire() may find memory
 * @lock: held wherever the client holds a lock of its own
 * @holder: thread that holds @lock while it invalidates; functions that are called back
 *	in this thread do not take @lock
 * @dir: directory of the files
 * @seed: determines the choices
 * @value: values of the settings
 * @asked: number of occasions of each kind
 * @injected: number of those that went wrong
 * @knobs: for the files
 */
struct fake_gpu_inject {
	struct fake_gpu *gpu;
	int mode;
	struct peer_memory_client real;
	invalidate_peer_memory invalidate;
	bool registered;
	struct mutex lock;
	struct task_struct *holder;
	struct dentry *dir;
	u64 seed;
	u32 value[INJECT_NR_SETTINGS];
	atomic64_t asked[INJECT_NR_KINDS];
	atomic64_t injected[INJECT_NR_KINDS];
	struct inject_knob knobs[INJECT_NR_SETTINGS];
};

/**
 * struct inject_region - wrapped around a region of the template's
 * @inject: the faults of its device
 * @context: the template's region
 * @core_context: the name of the region for the registry
 */
struct inject_region {
	struct fake_gpu_inject *inject;
	void *context;
	u64 core_context;
};

static struct dentry *inject_root;
static DEFINE_MUTEX(inject_register_lock);

/* The mixing steps of splitmix64: each bit of the result depends on all of @x. */
static u64 inject_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/*
 * Decides whether to inject the fault now. If so, @how is set to a random number that can
 * select the variant.
 */
static bool inject_hits(struct fake_gpu_inject *inject, enum inject_kind kind, u32 *how)
{
	u32 rate = READ_ONCE(inject->value[kind]);
	u64 hash;

	if (!rate)
		return false;
	hash = atomic64_fetch_inc(&inject->asked[kind]);
	hash ^= inject_mix(READ_ONCE(inject->seed)) ^ inject_mix(kind + 1);
	hash = inject_mix(hash);
	if (((hash >> 32) * INJECT_MILLION) >> 32 >= rate)
		return false;
	atomic64_inc(&inject->injected[kind]);
	*how = hash;
	return true;
}

static void inject_delay(struct fake_gpu_inject *inject)
{
	u32 max = READ_ONCE(inject->value[INJECT_DELAY_US]), how;

	if (inject_hits(inject, INJECT_SLEEP, &how))
		fsleep(1 + how % max);
	if (inject_hits(inject, INJECT_BUSY, &how))
		udelay(1 + how % min_t(u32, max, INJECT_MAX_BUSY));
}

/*
 * Called at the beginning of each function that the registry calls; inject_leave() is
 * called at its end. Returns whether it took the lock.
 */
static bool inject_enter(struct fake_gpu_inject *inject)
{
	bool lock = READ_ONCE(inject->value[INJECT_HOLD_LOCK]) &&
		    READ_ONCE(inject->holder) != current;

	if (lock)
		mutex_lock(&inject->lock);
	inject_delay(inject);
	return lock;
}

static void inject_leave(struct fake_gpu_inject *inject, bool locked)
{
	if (locked)
		mutex_unlock(&inject->lock);
}

/*
 * Invalidates a region from within a function that was called for it. The registry must
 * not return 0 then, because the region is not left to the client. The template's FREE is
 * not involved.
 */
static void inject_invalidate_within(struct inject_region *region, enum inject_kind kind)
{
	struct fake_gpu *gpu = region->inject->gpu;
	u32 how;

	if (!gpu->revocable || !inject_hits(region->inject, kind, &how))
		return;
	WARN(!region->inject->invalidate(gpu->peer, region->core_context),
	     "%s: invalidate from %s unexpectedly returned 0", gpu->misc.name, inject_names[kind]);
}

static int inject_acquire(struct fake_gpu *gpu, unsigned long addr, size_t size, void **context)
{
	struct fake_gpu_inject *inject = gpu->inject;
	struct inject_region *region;
	u32 how;

	/* acquire: pairs with inject_registered() */
	if (!smp_load_acquire(&inject->registered))
		return 0;
	inject_delay(inject);
	if (inject_hits(inject, INJECT_FAIL_ACQUIRE, &how))
		return how & 1 ? -ENOMEM : 0;
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return 0;
	region->inject = inject;
	if (fake_gpu_peer_acquire(gpu, addr, size, &region->context) == 1) {
		*context = region;
		return 1;
	}
	kfree(region);
	return 0;
}

/*
 * A call of acquire() does not say which client is asked. A real driver has only one
 * client; here, each client needs a function of its own.
 */
#define INJECT_ACQUIRE(n)								\
static int inject_acquire_##n(unsigned long addr, size_t size, void *private_data,	\
			      char *name, void **context)				\
{											\
	return inject_acquire(fake_gpus[n], addr, size, context);			\
}
INJECT_ACQUIRE(0)
INJECT_ACQUIRE(1)
INJECT_ACQUIRE(2)
INJECT_ACQUIRE(3)

static int (*const inject_acquires[])(unsigned long, size_t, void *, char *, void **) = {
	inject_acquire_0, inject_acquire_1, inject_acquire_2, inject_acquire_3,
};
static_assert(ARRAY_SIZE(inject_acquires) == FAKE_GPU_MAX);

static int inject_get_pages(unsigned long addr, size_t size, int write, int force,
			    struct sg_table *sgt, void *context, peer_core_context_t core_context)
{
	struct inject_region *region = context;
	struct fake_gpu_inject *inject = region->inject;
	bool locked = inject_enter(inject);
	int ret = -ENOMEM;
	u32 how;

	region->core_context = core_context;
	if (!inject_hits(inject, INJECT_FAIL_GET_PAGES, &how))
		ret = inject->real.get_pages(addr, size, write, force, sgt, region->context,
					     core_context);
	if (!ret)
		inject_invalidate_within(region, INJECT_IN_GET_PAGES);
	inject_leave(inject, locked);
	return ret;
}

/*
 * Spoils the copy of the table that the registry gets. It shares its entries with the
 * template's table, but only a length is changed, which the template does not use.
 */
static void inject_spoil_table(struct fake_gpu_inject *inject, struct sg_table *sgt, int *nmap)
{
	const int wrong[] = { 0, -1, INT_MIN, INT_MAX, *nmap + 1 };
	u32 how;

	if (inject_hits(inject, INJECT_SHORT_TABLE, &how)) {
		if (*nmap > 1 && how & 1)
			--*nmap;
		else
			sg_dma_len(sg_last(sgt->sgl, sgt->nents)) = 0;
	}
	if (inject_hits(inject, INJECT_WRONG_NMAP, &how))
		*nmap = wrong[how % ARRAY_SIZE(wrong)];
}

static int inject_dma_map(struct sg_table *sgt, void *context, struct device *dev, int dmasync,
			  int *nmap)
{
	struct inject_region *region = context;
	struct fake_gpu_inject *inject = region->inject;
	bool locked = inject_enter(inject);
	int ret = -EIO;
	u32 how;

	if (!inject_hits(inject, INJECT_FAIL_DMA_MAP, &how))
		ret = inject->real.dma_map(sgt, region->context, dev, dmasync, nmap);
	if (!ret) {
		inject_spoil_table(inject, sgt, nmap);
		inject_invalidate_within(region, INJECT_IN_DMA_MAP);
	}
	inject_leave(inject, locked);
	return ret;
}

static int inject_dma_unmap(struct sg_table *sgt, void *context, struct device *dev)
{
	struct inject_region *region = context;
	struct fake_gpu_inject *inject = region->inject;
	bool locked = inject_enter(inject);
	u32 how;

	inject->real.dma_unmap(sgt, region->context, dev);
	inject_invalidate_within(region, INJECT_IN_DMA_UNMAP);
	inject_leave(inject, locked);
	return inject_hits(inject, INJECT_FAIL_DMA_UNMAP, &how) ? -EIO : 0;
}

static void inject_put_pages(struct sg_table *sgt, void *context)
{
	struct inject_region *region = context;
	struct fake_gpu_inject *inject = region->inject;
	bool locked = inject_enter(inject);

	inject->real.put_pages(sgt, region->context);
	inject_invalidate_within(region, INJECT_IN_PUT_PAGES);
	inject_leave(inject, locked);
}

static unsigned long inject_get_page_size(void *context)
{
	static const unsigned long wrong[] = { 0, 1, PAGE_SIZE / 2, PAGE_SIZE + 1,
					       3 * PAGE_SIZE, ULONG_MAX };
	struct inject_region *region = context;
	u32 how;

	if (inject_hits(region->inject, INJECT_WRONG_PAGE_SIZE, &how))
		return wrong[how % ARRAY_SIZE(wrong)];
	return region->inject->real.get_page_size(region->context);
}

/*
 * Does not take the lock, because its holder may be about to invalidate, and the
 * template's release() waits for that.
 */
static void inject_release(void *context)
{
	struct inject_region *region = context;

	inject_delay(region->inject);
	region->inject->real.release(region->context);
	kfree(region);
}

/**
 * struct inject_second - an invalidation by another thread
 * @work: runs in the other thread
 * @inject: the faults of the device
 * @core_context: the region
 * @ret: what it returned
 */
struct inject_second {
	struct work_struct work;
	struct fake_gpu_inject *inject;
	u64 core_context;
	int ret;
};

static void inject_second_work(struct work_struct *work)
{
	struct inject_second *second = container_of(work, struct inject_second, work);

	second->ret = second->inject->invalidate(second->inject->gpu->peer, second->core_context);
}

static int inject_once(struct fake_gpu_inject *inject, u64 core_context)
{
	bool lock;
	u32 how;
	int ret;

	lock = inject_hits(inject, INJECT_HOLD_LOCK, &how);
	if (lock) {
		mutex_lock(&inject->lock);
		WRITE_ONCE(inject->holder, current);
	}
	ret = inject->invalidate(inject->gpu->peer, core_context);
	if (lock) {
		WRITE_ONCE(inject->holder, NULL);
		mutex_unlock(&inject->lock);
	}
	return ret;
}

/*
 * Returns 0 if one of the two simultaneous calls did: then the client must do its part,
 * if it has one.
 */
static int inject_twice(struct fake_gpu_inject *inject, u64 core_context)
{
	struct inject_second second = { .inject = inject, .core_context = core_context };
	int ret;

	INIT_WORK_ONSTACK(&second.work, inject_second_work);
	queue_work(system_unbound_wq, &second.work);
	ret = inject_once(inject, core_context);
	flush_work(&second.work);
	destroy_work_on_stack(&second.work);
	inject_once(inject, core_context);
	return second.ret ? ret : 0;
}

static int inject_invalidate(struct fake_gpu *gpu, peer_core_context_t core_context)
{
	struct fake_gpu_inject *inject = gpu->inject;
	u32 how;

	if (inject_hits(inject, INJECT_TWICE, &how))
		return inject_twice(inject, core_context);
	return inject_once(inject, core_context);
}

/*
 * What the template takes for the registry's function. Each device has one of its own, and looks
 * at no other device, which may be going; its own stays as long as the region does.
 */
#define INJECT_INVALIDATE(n)								\
static int inject_invalidate_##n(void *handle, peer_core_context_t core_context)	\
{											\
	return inject_invalidate(fake_gpus[n], core_context);				\
}
INJECT_INVALIDATE(0)
INJECT_INVALIDATE(1)
INJECT_INVALIDATE(2)
INJECT_INVALIDATE(3)

static const invalidate_peer_memory inject_invalidates[] = {
	inject_invalidate_0, inject_invalidate_1, inject_invalidate_2, inject_invalidate_3,
};
static_assert(ARRAY_SIZE(inject_invalidates) == FAKE_GPU_MAX);

/* Takes the place of the template's client, which is complete, before it is registered. */
static void inject_client(struct fake_gpu *gpu)
{
	struct peer_memory_client *client = &gpu->client.client;
	struct fake_gpu_inject *inject = gpu->inject;

	inject->real = *client;
	client->acquire = inject_acquires[gpu->index];
	client->get_pages = inject_get_pages;
	client->dma_map = inject_dma_map;
	client->dma_unmap = inject_dma_unmap;
	client->put_pages = inject_put_pages;
	client->get_page_size = inject_get_page_size;
	client->release = inject_release;

	gpu->revocable = inject->mode != INJECT_NEVER;
	if (inject->mode != INJECT_UNMAPS)
		client->version[IB_PEER_MEMORY_VER_MAX - 1] = '\0';
}

/* By now, the client may have been asked already, and have refused. */
static void inject_registered(struct fake_gpu *gpu)
{
	struct fake_gpu_inject *inject = gpu->inject;

	inject->invalidate = gpu->invalidate;
	gpu->invalidate = inject_invalidates[gpu->index];
	/* release: whoever sees this also sees what is needed to invalidate */
	smp_store_release(&inject->registered, true);
}

/* Returns 0, or an error of fake_gpu_peer_register(). */
static int inject_register(struct fake_gpu *gpu)
{
	int ret;

	if (!fake_gpu_peer_client(gpu))
		return 0;
	inject_client(gpu);
	ret = fake_gpu_peer_register(gpu);
	if (!ret)
		inject_registered(gpu);
	return ret;
}

static int inject_knob_get(void *data, u64 *value)
{
	struct inject_knob *knob = data;

	*value = READ_ONCE(knob->inject->value[knob->setting]);
	return 0;
}

static int inject_knob_set(void *data, u64 value)
{
	struct inject_knob *knob = data;
	bool delay = knob->setting == INJECT_DELAY_US;

	if (value > (delay ? INJECT_MAX_DELAY : INJECT_MILLION) || (delay && !value))
		return -EINVAL;
	WRITE_ONCE(knob->inject->value[knob->setting], value);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(inject_knob_fops, inject_knob_get, inject_knob_set, "%llu\n");

static int inject_seed_get(void *data, u64 *value)
{
	struct fake_gpu_inject *inject = data;

	*value = READ_ONCE(inject->seed);
	return 0;
}

static int inject_seed_set(void *data, u64 value)
{
	struct fake_gpu_inject *inject = data;
	unsigned int i;

	WRITE_ONCE(inject->seed, value);
	for (i = 0; i < INJECT_NR_KINDS; i++) {
		atomic64_set(&inject->asked[i], 0);
		atomic64_set(&inject->injected[i], 0);
	}
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(inject_seed_fops, inject_seed_get, inject_seed_set, "%llu\n");

static int inject_injected_show(struct seq_file *s, void *unused)
{
	struct fake_gpu_inject *inject = s->private;
	unsigned int i;

	for (i = 0; i < INJECT_NR_KINDS; i++)
		seq_printf(s, "%s %lld %lld\n", inject_names[i],
			   (s64)atomic64_read(&inject->asked[i]),
			   (s64)atomic64_read(&inject->injected[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(inject_injected);

static int inject_registered_get(void *data, u64 *value)
{
	struct fake_gpu_inject *inject = data;

	*value = READ_ONCE(inject->registered);
	return 0;
}

static int inject_registered_set(void *data, u64 value)
{
	struct fake_gpu_inject *inject = data;
	int ret = 0;

	if (value > 1)
		return -EINVAL;
	mutex_lock(&inject_register_lock);
	if (value && !inject->gpu->peer) {
		ret = inject_register(inject->gpu);
	} else if (!value && inject->gpu->peer) {
		WRITE_ONCE(inject->registered, false);
		fake_gpu_peer_unregister(inject->gpu);
	}
	mutex_unlock(&inject_register_lock);
	return ret;
}
DEFINE_DEBUGFS_ATTRIBUTE(inject_registered_fops, inject_registered_get, inject_registered_set,
			 "%llu\n");

/*
 * Registers the client, with the faults. Only then is there a file by which others can do it, too:
 * the client cannot be registered twice. Returns 0, or an error of fake_gpu_peer_register().
 */
int fake_gpu_inject_register(struct fake_gpu *gpu)
{
	int ret = inject_register(gpu);

	if (!ret)
		debugfs_create_file("registered", 0600, gpu->inject->dir, gpu->inject,
				    &inject_registered_fops);
	return ret;
}

static void inject_make_files(struct fake_gpu_inject *inject)
{
	unsigned int i;

	inject->dir = debugfs_create_dir(inject->gpu->misc.name, inject_root);
	debugfs_create_file_unsafe("seed", 0600, inject->dir, inject, &inject_seed_fops);
	debugfs_create_file("injected", 0400, inject->dir, inject, &inject_injected_fops);
	for (i = 0; i < INJECT_NR_SETTINGS; i++) {
		inject->knobs[i] = (struct inject_knob){ inject, i };
		debugfs_create_file_unsafe(inject_names[i], 0600, inject->dir, &inject->knobs[i],
					   &inject_knob_fops);
	}
}

/*
 * The device frees @gpu->inject later. Returns 0; -ENOMEM; -EINVAL for a mode that does
 * not exist.
 */
int fake_gpu_inject_add(struct fake_gpu *gpu)
{
	const char *name = mode[gpu->index] ?: inject_modes[INJECT_UNMAPS];
	int which = match_string(inject_modes, ARRAY_SIZE(inject_modes), name);
	struct fake_gpu_inject *inject;

	if (which < 0) {
		pr_err("mode=%s: must be unmaps, core or never\n", name);
		return -EINVAL;
	}
	inject = kzalloc(sizeof(*inject), GFP_KERNEL);
	if (!inject)
		return -ENOMEM;
	inject->gpu = gpu;
	inject->mode = which;
	mutex_init(&inject->lock);
	inject->value[INJECT_DELAY_US] = 100;
	gpu->inject = inject;
	inject_make_files(inject);
	return 0;
}

/* Removes the files, so that nobody can register or unregister the client by one any more. */
void fake_gpu_inject_remove(struct fake_gpu *gpu)
{
	debugfs_remove(gpu->inject->dir);
}

void fake_gpu_inject_init(void)
{
	inject_root = debugfs_create_dir("kverbs_fake_gpu", NULL);
}

void fake_gpu_inject_exit(void)
{
	debugfs_remove(inject_root);
}
