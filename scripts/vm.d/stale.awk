# SPDX-License-Identifier: GPL-2.0-only
#
# Decides whether a guest was late because the emulator kept executing a breakpoint from
# an outdated translation, which is no longer in the guest's memory. Reads samples of
# the place where the guest's kernel took most breakpoints:
#
#   int <place>: <byte that was there> <breakpoints taken after that>
#   int,nochain <place>: <byte> <breakpoints>	the same, with all translated anew
#
# This was the reason if breakpoints were taken all the time although no sample found
# one in memory, and none were taken when the code was translated anew. A guest that
# runs into breakpoints of its own has them in its memory, and takes them however they
# are translated.

$3 !~ /^0x[0-9a-f][0-9a-f]$/ || $3 == "0xcc" { wrong++ }
$1 == "int" { old++; wrong += $4 < 10 }
$1 == "int,nochain" { anew++; wrong += $4 != 0 }

END { exit !(old >= 5 && anew && !wrong) }
