/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Devices, clients and events: what the files of this folder share, and the modules on top.
 */
#ifndef KVERBS_DEVICE_H
#define KVERBS_DEVICE_H

#include <rdma/ib_verbs.h>

struct ib_ref_source;
struct notifier_block;
struct seq_file;
struct workqueue_struct;

/* main.c */
extern struct workqueue_struct *ib_core_wq;
extern struct workqueue_struct *ib_unregister_wq;

/* device.c */
void ib_device_get_name(char *to, const struct ib_device *dev);
bool ib_device_is_going(const struct ib_device *dev);
void ib_device_exit(void);

/* name.c */
struct ib_device *ib_name_find(const char *name);
int ib_name_choose(char *name, const char *pattern);
void ib_name_enter(struct ib_device *dev, const char *name);
void ib_name_leave(struct ib_device *dev);

/* defunct.c */
void ib_device_make_defunct(struct ib_device *dev);
void ib_device_keep_defunct(struct ib_device *dev);
void ib_defunct_init(void);
void ib_defunct_exit(void);

/* client.c */
int ib_clients_add(struct ib_device *dev);
void ib_clients_remove(struct ib_device *dev);
void ib_clients_wait(struct ib_device *dev);
void ib_clients_renamed(struct ib_device *dev);
void ib_clients_might_be_called(void);
bool ib_in_client_callback(struct ib_device *dev);
void ib_clients_show(struct ib_device *dev, struct seq_file *s);
void ib_register_client_notifier(struct notifier_block *nb);
void ib_unregister_client_notifier(struct notifier_block *nb);
void ib_client_exit(void);

/* event.c */
extern struct ib_ref_source ib_event_handler_source;
void ib_event_gids_changed(struct ib_device *dev, u32 port);
void ib_events_init(struct ib_device *dev);
void ib_events_start(struct ib_device *dev);
void ib_events_stop(struct ib_device *dev);

#endif
