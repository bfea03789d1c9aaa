# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, which was booted with swiotlb=force: the software HCA refuses memory of processes
# that it would get a copy of. The kernel's own core maps it for any device.

# shellcheck source=cores.sh
. /bin/cores.sh

insert_hca "$@" || exit 1
check "no region of a process is a copy" timeout 100 uverbs_copy emu0
check "the log says why" sh -c \
	"dmesg | grep -q 'emu0: cannot register memory: DMA would use bounce buffers'"
remove_hca
