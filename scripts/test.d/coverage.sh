# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part coverage of scripts/test.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

part_coverage() {
	need_build gcov
	spawn "what the KUnit suites execute" told_by "$KV_SCRIPTS/coverage"
}
