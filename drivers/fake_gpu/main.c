// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where devices come from: BAR 2 of each ivshmem device of QEMU; if there is none, memory
 * of the system, to which the module parameters devices and size_mb apply.
 *
 * Lock: gpu_numbers_lock guards fake_gpus[], because PCI devices are probed and removed in
 * parallel, and is held for nothing else. Two may do without it: the functions of a device's
 * client, for the device's own entry, which stays until the client is unregistered; and
 * gpu_exit(), when nothing is probed or removed any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "fake_gpu.h"

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "Emulated devices to create if there is no ivshmem device, 1 to 4 (default: 1)");

static unsigned int size_mb = 64;
module_param(size_mb, uint, 0444);
MODULE_PARM_DESC(size_mb, "Memory of each emulated device in MiB, 1 to 32768 (default: 64)");

#define GPU_BAR		2
/* As much as a list of free pages that kmalloc() gives on every machine has room for. */
#define GPU_MAX_MB	32768U

/* Time after which a removal logs what it waits for. */
#define GPU_PATIENCE	(10 * HZ)

static DEFINE_MUTEX(gpu_numbers_lock);

static void gpu_destroy(struct fake_gpu *gpu)
{
	phys_addr_t page;

	while (!gpu->bar && fake_gpu_pages_get(gpu, &page, 1))
		free_pages((unsigned long)phys_to_virt(page), get_order(FAKE_GPU_PAGE));
	kfifo_free(&gpu->free);
	kfree(gpu->inject);
	kfree(gpu);
}

/*
 * Allocates a device, to which the caller adds memory: of a larger BAR, the first GPU_MAX_MB.
 * Returns NULL if out of memory.
 */
static struct fake_gpu *gpu_create(u64 size)
{
	struct fake_gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);

	if (!gpu)
		return NULL;
	spin_lock_init(&gpu->lock);
	refcount_set(&gpu->users, 1);
	init_completion(&gpu->unused);
	gpu->nr_pages = min_t(u64, size, (u64)GPU_MAX_MB << 20) / FAKE_GPU_PAGE;
	if (!kfifo_alloc(&gpu->free, gpu->nr_pages, GFP_KERNEL))
		return gpu;
	kfree(gpu);
	return NULL;
}

/* Returns 0, or -ENOSPC if all numbers are taken. */
static int gpu_number_get(struct fake_gpu *gpu)
{
	unsigned int i = 0;

	mutex_lock(&gpu_numbers_lock);
	while (i < FAKE_GPU_MAX && fake_gpus[i])
		i++;
	if (i < FAKE_GPU_MAX) {
		gpu->index = i;
		fake_gpus[i] = gpu;
	}
	mutex_unlock(&gpu_numbers_lock);
	return i < FAKE_GPU_MAX ? 0 : -ENOSPC;
}

/* The next device may have the number, and so the names that are made of it. */
static void gpu_number_put(struct fake_gpu *gpu)
{
	mutex_lock(&gpu_numbers_lock);
	fake_gpus[gpu->index] = NULL;
	mutex_unlock(&gpu_numbers_lock);
}

static bool gpu_number_taken(unsigned int i)
{
	bool taken;

	mutex_lock(&gpu_numbers_lock);
	taken = fake_gpus[i];
	mutex_unlock(&gpu_numbers_lock);
	return taken;
}

/* Registers the device node last: see fake_gpu_peer_register(). */
static int gpu_register(struct fake_gpu *gpu)
{
	char *name = gpu->client.client.name;
	int ret = gpu_number_get(gpu);

	if (ret)
		return ret;
	snprintf(name, IB_PEER_MEMORY_NAME_MAX, "fake_gpu%u", gpu->index);
	gpu->misc.name = name;
	gpu->misc.minor = MISC_DYNAMIC_MINOR;
	gpu->misc.mode = 0666;
	gpu->misc.fops = &fake_gpu_fops;
	ret = fake_gpu_inject_add(gpu);
	if (ret)
		goto err_number;
	ret = fake_gpu_inject_register(gpu);
	if (!ret)
		ret = misc_register(&gpu->misc);
	if (ret)
		goto err_inject;
	return 0;

err_inject:
	fake_gpu_inject_remove(gpu);
	if (gpu->peer)
		fake_gpu_peer_unregister(gpu);
err_number:
	gpu_number_put(gpu);
	return ret;
}

static void gpu_remove(struct fake_gpu *gpu)
{
	/* Nobody can open it after that. */
	misc_deregister(&gpu->misc);
	fake_gpu_put(gpu);
	while (!wait_for_completion_timeout(&gpu->unused, GPU_PATIENCE))
		pr_warn("%s: removal waiting for processes that use its file or memory; end them\n",
			gpu->misc.name);
	fake_gpu_inject_remove(gpu);
	if (gpu->peer)
		fake_gpu_peer_unregister(gpu);
	gpu_number_put(gpu);
	gpu_destroy(gpu);
}

static void gpu_free_page(struct fake_gpu *gpu, phys_addr_t page)
{
	fake_gpu_pages_fill(gpu, &page, 1, FAKE_GPU_POISON);
	fake_gpu_pages_put(gpu, &page, 1);
}

/* Makes the BAR the memory of the device. */
static int gpu_map_bar(struct fake_gpu *gpu, struct pci_dev *pdev)
{
	u32 i;

	gpu->bar = pci_resource_start(pdev, GPU_BAR);
	/* It is memory, so neither the order nor the width of accesses matters. */
	gpu->vram = devm_memremap(&pdev->dev, gpu->bar, pci_resource_len(pdev, GPU_BAR),
				  MEMREMAP_WC);
	if (IS_ERR(gpu->vram))
		return PTR_ERR(gpu->vram);
	for (i = 0; i < gpu->nr_pages; i++)
		gpu_free_page(gpu, gpu->bar + (phys_addr_t)i * FAKE_GPU_PAGE);
	return 0;
}

static int gpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct fake_gpu *gpu;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = pci_request_region(pdev, GPU_BAR, KBUILD_MODNAME);
	if (ret)
		return ret;
	gpu = gpu_create(pci_resource_len(pdev, GPU_BAR));
	if (!gpu)
		return -ENOMEM;
	ret = gpu_map_bar(gpu, pdev);
	if (!ret)
		ret = gpu_register(gpu);
	if (ret)
		gpu_destroy(gpu);
	else
		pci_set_drvdata(pdev, gpu);
	return ret;
}

static void gpu_pci_remove(struct pci_dev *pdev)
{
	gpu_remove(pci_get_drvdata(pdev));
}

static const struct pci_device_id gpu_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, gpu_ids);

static struct pci_driver gpu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = gpu_ids,
	.probe = gpu_probe,
	.remove = gpu_pci_remove,
};

/* Creates a device whose memory is pages of the system. */
static int gpu_create_emulated(void)
{
	struct fake_gpu *gpu = gpu_create((u64)size_mb * SZ_1M);
	unsigned long addr;
	int ret = 0;
	u32 i;

	if (!gpu)
		return -ENOMEM;
	for (i = 0; !ret && i < gpu->nr_pages; i++) {
		addr = __get_free_pages(GFP_KERNEL, get_order(FAKE_GPU_PAGE));
		if (addr)
			gpu_free_page(gpu, virt_to_phys((void *)addr));
		else
			ret = -ENOMEM;
	}
	if (!ret)
		ret = gpu_register(gpu);
	if (ret)
		gpu_destroy(gpu);
	return ret;
}

static void gpu_exit(void)
{
	unsigned int i;

	pci_unregister_driver(&gpu_driver);
	for (i = 0; i < FAKE_GPU_MAX; i++) {
		if (fake_gpus[i])
			gpu_remove(fake_gpus[i]);
	}
	fake_gpu_inject_exit();
}
module_exit(gpu_exit);

static int __init gpu_init(void)
{
	unsigned int i;
	int ret;

	if (!devices || devices > FAKE_GPU_MAX || !size_mb || size_mb > GPU_MAX_MB) {
		pr_err("devices must be 1 to %u, size_mb 1 to %u\n", FAKE_GPU_MAX, GPU_MAX_MB);
		return -EINVAL;
	}
	fake_gpu_inject_init();
	ret = pci_register_driver(&gpu_driver);
	if (ret) {
		fake_gpu_inject_exit();
		return ret;
	}
	if (gpu_number_taken(0))
		return 0;
	for (i = 0; !ret && i < devices; i++)
		ret = gpu_create_emulated();
	if (ret)
		gpu_exit();
	return ret;
}
module_init(gpu_init);

MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fake GPU: a source of device memory for RDMA");
MODULE_IMPORT_NS(DMA_BUF);
