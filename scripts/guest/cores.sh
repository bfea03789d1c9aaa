# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the software HCA for processes, on the core that there is. The kernel's own modules
# have been inserted already; kverbs' core, and what scripts/ulps has built for it, are among the
# modules to be tested.

own_core() {
	[ -e /modules/kverbs.ko ]
}

# insert_hca <parameters>: one device.
insert_hca() {
	! own_core || {
		load kverbs contract=warn && load ib_umad && load rdma_ucm && contract_begins
	} || return 1
	load kverbs_emu devices=1 "$@"
}

# Whatever processes do, they must not make a client of the core break its rules.
remove_hca() {
	! own_core || contract_kept "what processes did"
	unload_all
}
