# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: runs only the randomised exerciser. PARAMS holds its module's parameters,
# separated by commas. CONTRACT is the mode of the contract checker.

load kverbs contract="${CONTRACT:-warn}"
load kverbs_ca
load kverbs_emu
load kverbs_kunit
contract_begins
# shellcheck disable=SC2046
load kunit_exercise $(echo "$PARAMS" | tr , ' ')
# Its messages; a sequence has one line there for each operation.
dmesg | sed -n 's/.*random_calls_do_what_the_model_says: //p' | awk '
	function replay() { if (text != "") print "exercise: " with " --replay " text; text = "" }
	/^replay with: / { replay(); sub(/^replay with: /, ""); with = $0; next }
	/^replay: / { text = text $2; next }
	{ replay() }
	!/FAILED/ { print "exercise: " $0 }
	END { replay() }' >"$RESULTS"
# It destroys objects in use, posts in any state, and uses devices without being their
# client.
contract_kept kunit_exercise 7 8 11 12
