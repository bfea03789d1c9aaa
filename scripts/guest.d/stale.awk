# SPDX-License-Identifier: GPL-2.0-only
#
# Was a guest late because the emulator executed a breakpoint that it had made of
# older code, and that is in the guest's memory no more? Reads samples, of the place
# where the guest's kernel took most breakpoints:
#
#   int <place>: <byte that was there> <breakpoints taken after that>
#   int,nochain <place>: <byte> <breakpoints>	the same, with all translated anew
#
# It was, if breakpoints were taken all the time although none was there whenever one
# looked, and none when the code was translated anew. A guest that runs into breakpoints
# of its own has them in its memory, and meets them however they are translated.

$3 !~ /^0x[0-9a-f][0-9a-f]$/ || $3 == "0xcc" { wrong++ }
$1 == "int" { old++; wrong += $4 < 10 }
$1 == "int,nochain" { anew++; wrong += $4 != 0 }

END { exit !(old >= 5 && anew && !wrong) }
