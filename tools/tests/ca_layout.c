// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout of the interface, for callers of 32 and of 64 bits: existing binaries
 * depend on it. Members may be added, at the end; no line may change. The test is
 * that it compiles both ways.
 */
#include <kverbs/ca.h>
#include <stddef.h>

#define SIZE(name, bytes)						\
	_Static_assert(sizeof(struct name) == (bytes),			\
		       "size of " #name)
#define AT(name, member, bytes)						\
	_Static_assert(offsetof(struct name, member) == (bytes),	\
		       "place of " #name "." #member)

SIZE(kverbs_ca_request, 64);
AT(kverbs_ca_request, size, 0);
AT(kverbs_ca_request, version, 4);
AT(kverbs_ca_request, flags, 8);
AT(kverbs_ca_request, port, 12);
AT(kverbs_ca_request, handle, 16);
AT(kverbs_ca_request, object, 24);
AT(kverbs_ca_request, in, 32);
AT(kverbs_ca_request, out, 40);
AT(kverbs_ca_request, in_len, 48);
AT(kverbs_ca_request, out_len, 52);
AT(kverbs_ca_request, reserved, 56);

SIZE(kverbs_ca_uring_cmd, 16);
AT(kverbs_ca_uring_cmd, request, 0);
AT(kverbs_ca_uring_cmd, reserved, 8);

SIZE(kverbs_ca_attr, 392);
AT(kverbs_ca_attr, version, 0);
AT(kverbs_ca_attr, size, 4);
AT(kverbs_ca_attr, attr_size, 8);
AT(kverbs_ca_attr, port_offset, 12);
AT(kverbs_ca_attr, port_count, 16);
AT(kverbs_ca_attr, first_port, 20);
AT(kverbs_ca_attr, generation, 24);
AT(kverbs_ca_attr, node_guid, 32);
AT(kverbs_ca_attr, sys_image_guid, 40);
AT(kverbs_ca_attr, fw_ver, 48);
AT(kverbs_ca_attr, page_sizes, 56);
AT(kverbs_ca_attr, cap_flags, 64);
AT(kverbs_ca_attr, max_mr_size, 72);
AT(kverbs_ca_attr, vendor_id, 80);
AT(kverbs_ca_attr, device_id, 84);
AT(kverbs_ca_attr, hw_rev, 88);
AT(kverbs_ca_attr, node_type, 92);
AT(kverbs_ca_attr, comp_vectors, 96);
AT(kverbs_ca_attr, atomic_cap, 100);
AT(kverbs_ca_attr, masked_atomic_cap, 104);
AT(kverbs_ca_attr, ack_delay, 108);
AT(kverbs_ca_attr, max_qp, 112);
AT(kverbs_ca_attr, max_qp_wr, 116);
AT(kverbs_ca_attr, max_send_sge, 120);
AT(kverbs_ca_attr, max_recv_sge, 124);
AT(kverbs_ca_attr, max_sge_rd, 128);
AT(kverbs_ca_attr, max_cq, 132);
AT(kverbs_ca_attr, max_cqe, 136);
AT(kverbs_ca_attr, max_mr, 140);
AT(kverbs_ca_attr, max_pd, 144);
AT(kverbs_ca_attr, max_qp_rd_atom, 148);
AT(kverbs_ca_attr, max_res_rd_atom, 152);
AT(kverbs_ca_attr, max_qp_init_rd_atom, 156);
AT(kverbs_ca_attr, max_ee, 160);
AT(kverbs_ca_attr, max_rdd, 164);
AT(kverbs_ca_attr, max_ee_rd_atom, 168);
AT(kverbs_ca_attr, max_ee_init_rd_atom, 172);
AT(kverbs_ca_attr, max_raw_ipv6_qp, 176);
AT(kverbs_ca_attr, max_raw_ethy_qp, 180);
AT(kverbs_ca_attr, max_mw, 184);
AT(kverbs_ca_attr, max_fmr, 188);
AT(kverbs_ca_attr, max_map_per_fmr, 192);
AT(kverbs_ca_attr, max_mcast_grp, 196);
AT(kverbs_ca_attr, max_mcast_qp_attach, 200);
AT(kverbs_ca_attr, max_total_mcast_qp_attach, 204);
AT(kverbs_ca_attr, max_ah, 208);
AT(kverbs_ca_attr, max_srq, 212);
AT(kverbs_ca_attr, max_srq_wr, 216);
AT(kverbs_ca_attr, max_srq_sge, 220);
AT(kverbs_ca_attr, max_fast_reg_pages, 224);
AT(kverbs_ca_attr, max_pkeys, 228);
AT(kverbs_ca_attr, name, 232);
AT(kverbs_ca_attr, fw_str, 296);
AT(kverbs_ca_attr, node_desc, 328);

SIZE(kverbs_ca_port_attr, 136);
AT(kverbs_ca_port_attr, version, 0);
AT(kverbs_ca_port_attr, size, 4);
AT(kverbs_ca_port_attr, attr_size, 8);
AT(kverbs_ca_port_attr, port, 12);
AT(kverbs_ca_port_attr, generation, 16);
AT(kverbs_ca_port_attr, guid, 24);
AT(kverbs_ca_port_attr, subnet_prefix, 32);
AT(kverbs_ca_port_attr, state, 40);
AT(kverbs_ca_port_attr, phys_state, 44);
AT(kverbs_ca_port_attr, link_layer, 48);
AT(kverbs_ca_port_attr, flags, 52);
AT(kverbs_ca_port_attr, cap_flags, 56);
AT(kverbs_ca_port_attr, cap_flags2, 60);
AT(kverbs_ca_port_attr, width, 64);
AT(kverbs_ca_port_attr, speed, 68);
AT(kverbs_ca_port_attr, max_mtu, 72);
AT(kverbs_ca_port_attr, active_mtu, 76);
AT(kverbs_ca_port_attr, phys_mtu, 80);
AT(kverbs_ca_port_attr, max_msg_size, 84);
AT(kverbs_ca_port_attr, lid, 88);
AT(kverbs_ca_port_attr, sm_lid, 92);
AT(kverbs_ca_port_attr, lmc, 96);
AT(kverbs_ca_port_attr, sm_sl, 97);
AT(kverbs_ca_port_attr, max_vls, 98);
AT(kverbs_ca_port_attr, subnet_timeout, 99);
AT(kverbs_ca_port_attr, init_type_reply, 100);
AT(kverbs_ca_port_attr, reserved, 101);
AT(kverbs_ca_port_attr, bad_pkeys, 104);
AT(kverbs_ca_port_attr, bad_qkeys, 108);
AT(kverbs_ca_port_attr, netdev, 112);
AT(kverbs_ca_port_attr, gid_offset, 116);
AT(kverbs_ca_port_attr, gid_count, 120);
AT(kverbs_ca_port_attr, gid_size, 124);
AT(kverbs_ca_port_attr, pkey_offset, 128);
AT(kverbs_ca_port_attr, pkey_count, 132);

SIZE(kverbs_ca_gid, 24);
AT(kverbs_ca_gid, gid, 0);
AT(kverbs_ca_gid, type, 16);
AT(kverbs_ca_gid, netdev, 20);

SIZE(kverbs_ca_reg_mr, 64);
AT(kverbs_ca_reg_mr, version, 0);
AT(kverbs_ca_reg_mr, size, 4);
AT(kverbs_ca_reg_mr, pd, 8);
AT(kverbs_ca_reg_mr, start, 16);
AT(kverbs_ca_reg_mr, length, 24);
AT(kverbs_ca_reg_mr, iova, 32);
AT(kverbs_ca_reg_mr, access, 40);
AT(kverbs_ca_reg_mr, path, 44);
AT(kverbs_ca_reg_mr, flags, 48);
AT(kverbs_ca_reg_mr, fd, 52);
AT(kverbs_ca_reg_mr, offset, 56);

SIZE(kverbs_ca_mr_attr, 152);
AT(kverbs_ca_mr_attr, version, 0);
AT(kverbs_ca_mr_attr, size, 4);
AT(kverbs_ca_mr_attr, object, 8);
AT(kverbs_ca_mr_attr, pd, 16);
AT(kverbs_ca_mr_attr, start, 24);
AT(kverbs_ca_mr_attr, length, 32);
AT(kverbs_ca_mr_attr, iova, 40);
AT(kverbs_ca_mr_attr, access, 48);
AT(kverbs_ca_mr_attr, path, 52);
AT(kverbs_ca_mr_attr, lkey, 56);
AT(kverbs_ca_mr_attr, rkey, 60);
AT(kverbs_ca_mr_attr, flags, 64);
AT(kverbs_ca_mr_attr, host_error, 68);
AT(kverbs_ca_mr_attr, peer_error, 72);
AT(kverbs_ca_mr_attr, dmabuf_error, 76);
AT(kverbs_ca_mr_attr, peer, 80);
AT(kverbs_ca_mr_attr, p2p_error, 144);
AT(kverbs_ca_mr_attr, reserved, 148);

SIZE(kverbs_ca_peer, 136);
AT(kverbs_ca_peer, version, 0);
AT(kverbs_ca_peer, size, 4);
AT(kverbs_ca_peer, name, 8);
AT(kverbs_ca_peer, data, 72);

SIZE(kverbs_ca_object, 32);
AT(kverbs_ca_object, object, 0);
AT(kverbs_ca_object, parent, 8);
AT(kverbs_ca_object, length, 16);
AT(kverbs_ca_object, type, 24);
AT(kverbs_ca_object, users, 28);

SIZE(kverbs_ca_list, 24);
AT(kverbs_ca_list, version, 0);
AT(kverbs_ca_list, size, 4);
AT(kverbs_ca_list, attr_size, 8);
AT(kverbs_ca_list, entry_offset, 12);
AT(kverbs_ca_list, entry_size, 16);
AT(kverbs_ca_list, count, 20);

SIZE(kverbs_ca_event, 32);
AT(kverbs_ca_event, size, 0);
AT(kverbs_ca_event, type, 4);
AT(kverbs_ca_event, port, 8);
AT(kverbs_ca_event, lost, 12);
AT(kverbs_ca_event, generation, 16);
AT(kverbs_ca_event, time_ns, 24);

_Static_assert(KVERBS_CA_REQUEST_SIZE_MIN == 64, "the first version's requests");
_Static_assert(KVERBS_CA_IOCTL(KVERBS_CA_OPEN) == 0xcac1, "the first command");
_Static_assert(KVERBS_CA_IOCTL(KVERBS_CA_LIST) == 0xcaca, "the first version's last");
_Static_assert(KVERBS_CA_IOCTL(KVERBS_CA_SET_PEER) == 0xcacb, "the last command");
_Static_assert(KVERBS_CA_REG_MR_SIZE_MIN == 48, "the first version's regions");
