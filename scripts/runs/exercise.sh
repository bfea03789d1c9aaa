# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the randomised exerciser alone. PARAMS are those of its module, with
# commas between them. CONTRACT is what the contract checker does.

load kverbs contract="${CONTRACT:-warn}"
load kverbs_emu
load kverbs_kunit
contract_begins
# shellcheck disable=SC2046
load kunit_exercise $(echo "$PARAMS" | tr , ' ')
# What it said; a sequence is a line for each operation there.
dmesg | sed -n 's/.*random_calls_do_what_the_model_says: //p' | awk '
	function replay() { if (text != "") print "exercise: " with " --replay " text; text = "" }
	/^replay with: / { replay(); sub(/^replay with: /, ""); with = $0; next }
	/^replay: / { text = text $2; next }
	{ replay() }
	!/FAILED/ { print "exercise: " $0 }
	END { replay() }' >"$RESULTS"
# It destroys what is in use, posts in any state, and uses devices as no client of theirs.
contract_kept kunit_exercise 7 8 11 12
