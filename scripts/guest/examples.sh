# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the examples of the documentation, on two devices. The programs
# ca_ioctl and ca_uring are in the path; python.tar is a root directory with Python and
# ca_query.py.

# said <what> <how often>: checks the kernel log.
said() {
	[ "$(dmesg | grep -c "$1")" -eq "$2" ] || fail "not $2 times in the log: $1"
}

# in_log <what>
in_log() {
	dmesg | grep -q "$1"
}

# soon_said <what>: waits a short time for it in the kernel log.
soon_said() {
	retry 200 in_log "$1" || fail "not in the log: $1"
}

# example <module> <what it says on each device>
example() {
	load "$1" || return
	said "$2" 2
	unload "$1"
}

# program <name> <pattern> <lines of its output that match>
program() {
	"$1" emu0 >/tmp/said 2>&1 || fail "$1: exit status $?: $(tail -n 1 /tmp/said)"
	shown=$(grep -cE "$2" /tmp/said)
	[ "$shown" -eq "$3" ] || {
		cat /tmp/said
		fail "$1 shows $shown lines, not $3: $2"
	}
	! grep 'handle=' "$DEBUGFS/kverbs/emu0/ca" ||
		fail "$1 left the channel adapter open"
}

PYTHON=/tmp/python

ca_query() {
	chroot $PYTHON /usr/bin/python3 -I -S /ca_query.py "$@"
}

load kverbs contract=warn
load kverbs_ca
load kverbs_emu
example hello 'hello from emu[01]: success, 42'
example cq_before 'cq_before: 64 messages on emu[01]$'
example cq_after 'cq_after: 64 messages on emu[01]$'
# Between the two.
load rdma_write
said 'rdma_write: emu0 to emu1: "written from afar"$' 1
unload rdma_write

example ca_kernel 'emu[01]: 1 ports, GUID [0-9a-f]\{16\}, [0-9]* bytes to tell all$'
said 'emu[01]: had a PD$' 2
program ca_ioctl \
	'^emu0: GUID [0-9a-f]{16}, 1 ports$|^ port 1: state 4,|^  GID 0: fe80:|^65536 bytes: lkey 0x' 4
program ca_uring '^emu0: 1 ports, 16 regions$' 1
mkdir $PYTHON
tar -C $PYTHON -xf /bin/python.tar
mount -o bind /dev $PYTHON/dev
program ca_query '^emu0: GUID [0-9a-f]{16}, 1 ports$|^ port 1: state 4,|^  GID 0: fe80:' 3
umount $PYTHON/dev
unload kverbs_emu
said 'left its channel adapter open' 0

# The driver among the examples, and the ULPs on it.
load wire
load watch
for ulp in hello cq_before cq_after; do
	load $ulp && unload $ulp
done
! insmod /modules/rdma_write.ko 2>/dev/null || fail "rdma_write runs with one device"
said 'hello from wire0: success, 42' 1
said 'cq_before: 64 messages on wire0$' 1
said 'cq_after: 64 messages on wire0$' 1
said 'cannot drain' 0
echo 0 >/sys/class/infiniband/wire0/up
soon_said 'watch: wire0: port error$'
soon_said 'watch: wire0: port 1 is in state 1$'
! echo maybe >/sys/class/infiniband/wire0/up 2>/dev/null ||
	fail "the port of wire0 can be something else than up or down"
echo 1 >/sys/class/infiniband/wire0/up
soon_said 'watch: wire0: port active$'
soon_said 'watch: wire0: port 1 is in state 4$'
# Events arrive in order: one caused by the refused write would have arrived by
# now.
said 'watch: wire0: port error$' 1
unload watch
unload wire
unload kverbs_ca kverbs
