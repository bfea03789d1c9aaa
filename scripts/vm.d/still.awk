# SPDX-License-Identifier: GPL-2.0-only
#
# Decides whether a guest was late because the emulator had stopped its processors. Reads
# what they did in three seconds:
#
#   look <1 to 3> <processor> <place> <flags> <1: halted>
#   interrupts <that the processors took>
#   ticks <1/100 s that the emulator computed>
#
# It had, if the emulator was idle and no interrupt arrived although each halted processor
# had interrupts enabled. A waiting kernel has timers; a spinning one keeps the emulator
# busy; and a dead one has its processors halted with interrupts disabled.

# Bit 9 of the flags is the second-lowest of the third digit from the right.
$1 == "look" { looks++; dead += $6 == "1" && $5 !~ /[2367abef]..$/ }
$1 == "interrupts" { told++; taken = $2 }
$1 == "ticks" && $2 != "" { told++; ticks = $2 }

END { exit !(looks >= 3 && told == 2 && !dead && !taken && ticks < 15) }
