// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of PCI devices with memory; see rig.h. There is only one rig at a time,
 * from p2p_rig_new() to the end of the case.
 */
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

#define IVSHMEM		0x1110

static struct p2p_rig *the_rig;

static int rig_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int err = pcim_enable_device(pdev);

	if (err)
		return err;
	if (pci_resource_len(pdev, P2P_RIG_BAR) < P2P_RIG_SIZE)
		return -ENODEV;
	return the_rig->on_probe ? the_rig->on_probe(the_rig, pdev) : 0;
}

static void rig_remove(struct pci_dev *pdev)
{
	if (the_rig->on_remove)
		the_rig->on_remove(the_rig, pdev);
}

static const struct pci_device_id rig_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, IVSHMEM) },
	{ }
};

static struct pci_driver rig_driver = {
	.name = "kvt_p2p",
	.id_table = rig_ids,
	.probe = rig_probe,
	.remove = rig_remove,
};

static void rig_end(void *arg)
{
	struct p2p_rig *rig = arg;

	pci_unregister_driver(&rig_driver);
	while (rig->nr)
		pci_dev_put(rig->pdev[--rig->nr]);
	the_rig = NULL;
}

static void rig_collect(struct p2p_rig *rig)
{
	struct pci_dev *pdev = NULL;

	while ((pdev = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, IVSHMEM, pdev))) {
		if (rig->nr < P2P_RIG_MAX && pdev->dev.driver == &rig_driver.driver)
			rig->pdev[rig->nr++] = pci_dev_get(pdev);
	}
}

/**
 * p2p_rig_new() - register the driver and collect its devices
 * @test: the running case
 * @nr: how many devices it needs
 *
 * The devices have no memory published yet. The callbacks of the rig are not set while its
 * devices are probed here.
 *
 * Return: the rig; the case is skipped if the machine has fewer devices.
 */
struct p2p_rig *p2p_rig_new(struct kunit *test, int nr)
{
	struct p2p_rig *rig = kvt_zalloc(test, sizeof(*rig));

	KUNIT_ASSERT_NULL(test, the_rig);
	the_rig = rig;
	if (pci_register_driver(&rig_driver)) {
		the_rig = NULL;
		KUNIT_FAIL_AND_ABORT(test, "the driver is not registered");
	}
	kvt_defer(test, rig_end, rig);
	rig_collect(rig);
	if (rig->nr < nr)
		kunit_skip(test, "it needs %d ivshmem devices", nr);
	return rig;
}
EXPORT_SYMBOL_GPL(p2p_rig_new);

/**
 * p2p_rig_up() - make a rig whose devices have all published all of their memory
 * @test: the running case
 * @nr: how many devices it needs
 *
 * Return: the rig; the case is skipped if the machine has fewer devices.
 */
struct p2p_rig *p2p_rig_up(struct kunit *test, int nr)
{
	struct p2p_rig *rig = p2p_rig_new(test, nr);
	int i;

	for (i = 0; i < rig->nr; i++) {
		KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(rig->pdev[i], P2P_RIG_BAR, 0, 0));
		pci_p2pmem_publish(rig->pdev[i], true);
	}
	return rig;
}
EXPORT_SYMBOL_GPL(p2p_rig_up);

/**
 * p2p_rig_provider() - make a rig and get a device that has published all of its memory
 * @test: the running case
 *
 * Return: the device; the case is skipped if the machine has none.
 */
struct pci_dev *p2p_rig_provider(struct kunit *test)
{
	return p2p_rig_up(test, 1)->pdev[0];
}
EXPORT_SYMBOL_GPL(p2p_rig_provider);

/**
 * p2p_rig_unbind() - unbind a device from its driver
 * @pdev: the device
 */
void p2p_rig_unbind(struct pci_dev *pdev)
{
	device_release_driver(&pdev->dev);
}
EXPORT_SYMBOL_GPL(p2p_rig_unbind);

/**
 * p2p_rig_bind() - bind a device to the driver again
 * @pdev: the device
 *
 * Return: true if a driver was bound.
 */
bool p2p_rig_bind(struct pci_dev *pdev)
{
	return device_attach(&pdev->dev) == 1;
}
EXPORT_SYMBOL_GPL(p2p_rig_bind);

/**
 * p2p_rig_is_own() - whether kverbs_p2pdma manages the memory of a device
 * @provider: a device with memory
 *
 * Return: true if it does; false if the kernel does, or if no memory could be allocated.
 */
bool p2p_rig_is_own(struct pci_dev *provider)
{
	void *addr = pci_alloc_p2pmem(provider, PAGE_SIZE);
	bool own = addr && virt_to_page(addr)->pgmap->owner == KVERBS_P2PDMA_OWNER;

	if (addr)
		pci_free_p2pmem(provider, addr, PAGE_SIZE);
	return own;
}
EXPORT_SYMBOL_GPL(p2p_rig_is_own);

/**
 * p2p_rig_can_alloc() - whether memory of a device can be allocated
 * @pdev: the device
 * @size: bytes, in one piece
 *
 * The memory is freed again at once, because removing the device waits for it.
 *
 * Return: true if it could be allocated.
 */
bool p2p_rig_can_alloc(struct pci_dev *pdev, size_t size)
{
	void *addr = pci_alloc_p2pmem(pdev, size);

	if (addr)
		pci_free_p2pmem(pdev, addr, size);
	return addr;
}
EXPORT_SYMBOL_GPL(p2p_rig_can_alloc);
