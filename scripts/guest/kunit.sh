# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: loads every KUnit module in turn, which runs its suites as it loads. SUITES
# names modules, separated by commas, that are loaded instead; a pattern of suites and cases
# may follow one: kunit_emu_ring:emu_ring.wraps*. SCALE multiplies the stress counts, SEED is
# their seed. CONTRACT is the mode of the contract checker. UNWATCHED lists modules, separated
# by colons, for which the checker is off: posts and polls then go straight to the driver, as
# in production.

# breaks <module>: prints the rules that its cases break on purpose: they destroy objects in
# use, post in any state, use a device without being its client, and so on.
breaks() {
	case $1 in
	kunit_ca_async) echo 5 8 ;;
	kunit_ca_open) echo 7 8 ;;
	kunit_core_device) echo 10 ;;
	kunit_core_memory) echo 11 12 ;;
	kunit_core_objects | kunit_core_reg_mem | kunit_emu_conform | kunit_emu_datagram | \
	kunit_emu_peer | kunit_emu_region | kunit_emu_srq) echo 11 ;;
	kunit_cq_life) echo 9 11 ;;
	kunit_cq_pool) echo 8 ;;
	kunit_emu_ops | kunit_fail_nth) echo 12 ;;
	kunit_exercise) echo 7 8 11 12 ;;
	esac
}

# contract <mode>: sets the mode of the checker
contract() {
	echo "$1" >/sys/module/kverbs/parameters/contract
	grep -qx "$1" /sys/module/kverbs/parameters/contract || fail "the checker is not $1"
}

load kverbs contract="${CONTRACT:-warn}"
load kverbs_ca
load kverbs_emu
load kverbs_kunit scale="${SCALE:-1}" seed="${SEED:-0}" patience="$KV_PATIENCE"

run_module() {
	name=$1
	contract_begins
	case :${UNWATCHED:-}: in
	*:"$name":*)
		contract off
		load "$name" && unload "$name"
		contract "${CONTRACT:-warn}" ;;
	*)
		load "$name" && unload "$name" ;;
	esac
	[ "$name" = kunit_contract ] || contract_kept "$name" "$(breaks "$name")"
}

for_each_suite run_module "${SUITES:-}"
