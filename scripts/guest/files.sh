# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions for guests: files of FILE_MIB MiB that a client writes below /tmp/there, where it has
# mounted what a server has in /tmp/export. Wants hosts.sh, and file_is_right <name> of whoever
# sources it.

FILE_MIB=16

# write_file <name>: by the client. /tmp/pattern has the same.
write_file() {
	dd if=/dev/urandom of=/tmp/pattern bs=1M count=$FILE_MIB 2>/dev/null &&
		dd if=/tmp/pattern of="/tmp/there/$1" bs=1M conv=fsync 2>/dev/null
}

# The client's link, under writes.
link_of_files_goes() {
	flaps_under emu1 write_file late && file_is_right late && rm /tmp/there/late
}
