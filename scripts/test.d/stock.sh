# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part stock of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

part_stock() {
	local kernel kernels=("${stock_kernels[@]}")
	! quick || kernels=(uml)
	for kernel in "${kernels[@]}"; do
		need_stock "$kernel"
		spawn_guest "load, run, unload, $STOCK_NAME" "stock-$STOCK_NAME" \
			--kernel "$kernel" --need dummy --env "SCALE=$scale" \
			--limit $((240 * scale)) \
			--modules "$(run_modules "$MODULES_DIR")" \
			--file "$KV_SCRIPTS/guest/pingpong.sh" \
			--run "$KV_SCRIPTS/guest/stock.sh"
		spawn_guest "links, ports and faults, $STOCK_NAME" "control-$STOCK_NAME" \
			--kernel "$kernel" --need dummy --limit 300 \
			--modules "$(run_modules "$MODULES_DIR")" \
			--file "$KV_SCRIPTS/guest/pingpong.sh" \
			--run "$KV_SCRIPTS/guest/control.sh"
		quick || spawn_guest "GIDs of what is on top of network devices, $STOCK_NAME" \
			"uppers-$STOCK_NAME" --kernel "$kernel" \
			--need "dummy 8021q macvlan bridge bonding" --limit 300 \
			--modules "$(run_modules "$MODULES_DIR")" \
			--run "$KV_SCRIPTS/guest/uppers.sh"
	done
}
