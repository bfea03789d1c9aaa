/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suites that share a module with another one.
 */
#ifndef KVT_SUITES_H
#define KVT_SUITES_H

struct kunit_suite;

extern struct kunit_suite core_device_bad_suite;
extern struct kunit_suite core_objects_qp_suite;
extern struct kunit_suite cq_destroy_suite;
extern struct kunit_suite cq_drain_suite;
extern struct kunit_suite cq_moderation_suite;
extern struct kunit_suite cq_notify_suite;
extern struct kunit_suite emu_cq_suite;
extern struct kunit_suite emu_error_suite;
extern struct kunit_suite emu_post_suite;

#endif
