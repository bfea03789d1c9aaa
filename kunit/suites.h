/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suites that are registered by the module of another suite.
 */
#ifndef KVT_SUITES_H
#define KVT_SUITES_H

struct kunit_suite;

extern struct kunit_suite ca_change_suite;
extern struct kunit_suite ca_objects_suite;
extern struct kunit_suite ca_peer_suite;
extern struct kunit_suite ca_stress_suite;
extern struct kunit_suite contract_client_suite;
extern struct kunit_suite contract_consumer_suite;
extern struct kunit_suite contract_context_suite;
extern struct kunit_suite contract_gids_suite;
extern struct kunit_suite contract_output_suite;
extern struct kunit_suite contract_switch_suite;
extern struct kunit_suite contract_tail_suite;
extern struct kunit_suite contract_traffic_suite;
extern struct kunit_suite core_device_bad_suite;
extern struct kunit_suite core_device_wait_suite;
extern struct kunit_suite core_dmabuf_suite;
extern struct kunit_suite core_nmi_suite;
extern struct kunit_suite core_objects_qp_suite;
extern struct kunit_suite core_srq_event_suite;
extern struct kunit_suite core_umem_suite;
extern struct kunit_suite cq_destroy_suite;
extern struct kunit_suite cq_drain_suite;
extern struct kunit_suite cq_moderation_suite;
extern struct kunit_suite cq_notify_suite;
extern struct kunit_suite cq_standstill_suite;
extern struct kunit_suite emu_conform_gsi_suite;
extern struct kunit_suite emu_conform_mcast_suite;
extern struct kunit_suite emu_conform_mr_suite;
extern struct kunit_suite emu_conform_port_suite;
extern struct kunit_suite emu_conform_uc_suite;
extern struct kunit_suite emu_conform_qp_suite;
extern struct kunit_suite emu_conform_retry_suite;
extern struct kunit_suite emu_conform_wire_suite;
extern struct kunit_suite emu_alloc_suite;
extern struct kunit_suite emu_ca_suite;
extern struct kunit_suite emu_cq_suite;
extern struct kunit_suite emu_error_suite;
extern struct kunit_suite emu_gone_suite;
extern struct kunit_suite emu_races_suite;
extern struct kunit_suite emu_latency_queues_suite;
extern struct kunit_suite emu_mapping_suite;
extern struct kunit_suite emu_move_suite;
extern struct kunit_suite emu_post_suite;
extern struct kunit_suite emu_qp_state_suite;
extern struct kunit_suite fail_nth_ca_suite;
extern struct kunit_suite fail_nth_mem_suite;
extern struct kunit_suite fail_nth_objects_suite;
extern struct kunit_suite fail_nth_none_suite;
extern struct kunit_suite fail_nth_red_suite;
extern struct kunit_suite fail_nth_work_suite;
extern struct kunit_suite p2p_kernel_suite;
extern struct kunit_suite p2p_list_suite;
extern struct kunit_suite p2p_map_suite;
extern struct kunit_suite p2p_memory_suite;
extern struct kunit_suite p2p_standstill_suite;
extern struct kunit_suite p2p_user_suite;
extern struct kunit_suite peer_fail_nth_suite;
extern struct kunit_suite peer_invalidate_suite;
extern struct kunit_suite peer_model_suite;
extern struct kunit_suite peer_revoke_suite;
extern struct kunit_suite peer_shapes_suite;
extern struct kunit_suite peer_standstill_suite;
extern struct kunit_suite peer_table_suite;

#endif
