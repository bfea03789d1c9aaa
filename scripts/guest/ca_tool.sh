# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the command kverbs (tools/kverbs), which is in /bin, with devices of
# the software HCA. Each JSON document goes to the host as one line of results that begins
# with "json: "; the host checks that it is valid.

CONFIG=/sys/kernel/config/kverbs_emu
EMU=$DEBUGFS/kverbs_emu
CLASS=/sys/class/infiniband
NODES=/dev/infiniband/ca
PARAMETERS=/sys/module/kverbs_ca/parameters
RAIL=$CONFIG/rail0
COMMANDS="list show monitor reg p2p fault capture version switch doctor stats top"

# shellcheck source=tool_lib.sh
. /bin/tool_lib.sh

# json_has pattern...: ignores blanks.
json_has() {
	json
	sed -i 's/: */:/g; s/, */,/g; s/\([[{]\) */\1/g; s/ *\([]}]\)/\1/g' /tmp/line
	has /tmp/line "$@"
}

# count_is <n> <file> <pattern>
count_is() {
	found=$(grep -c -e "$3" "$2")
	[ "$found" -eq "$1" ] || {
		echo "$found lines, not $1, have '$3':"
		cat "$2"
		return 1
	}
}

# until_out <pattern> command...: repeats the command until its output has the pattern. The
# core reads a device's tables again, and then makes a new image, when it gets to the event
# of the change.
until_out() {
	pattern=$1 tries=0
	shift
	until "$@" | grep -q -e "$pattern"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || {
			echo "no '$pattern' in what $* prints:"
			"$@"
			return 1
		}
		usleep 50000
	done
}

# until_seen <pattern> <file>
until_seen() {
	until_out "$1" cat "$2"
}

# Runs a command as an unprivileged user.
as_user() {
	su user -s /bin/sh -c "$*"
}

# --- without devices ---------------------------------------------------------------

# told_to_load <what is missing>
told_to_load() {
	gives 1 kverbs list && err "$1" "make load" &&
		gives 1 kverbs show emu0 && err "$1" "make load" &&
		gives 1 kverbs monitor && err "$1" "make load" &&
		gives 1 kverbs reg emu0 && err "$1" "make load" &&
		gives 0 kverbs list --json && json && has /tmp/line '^\[]$'
}

has_faults() {
	gives 0 kverbs fault add emu0 qp=17 op=write,send nth=100 status=rem_access_err &&
		gives 0 kverbs fault add emu0 every=2 delay=5 && gives 0 kverbs fault emu0 &&
		out "^emu0 [0-9]* qp=17 op=send,write nth=100 count=1 status=REM_ACCESS_ERR seen=0 hits=0$" \
			"^emu0 [0-9]* nth=2 every=2 delay=5 seen=0 hits=0$" &&
		gives 0 kverbs fault --json && json &&
		has /tmp/line '"device": *"emu0"' '"qp": *17' '"op": *"send,write"' \
			'"status": *"REM_ACCESS_ERR"' '"delay": *5' '"hits": *0' &&
		gives 0 kverbs fault seed emu0 7 && gives 0 kverbs fault del emu0 all &&
		gives 0 kverbs fault --json && json && has /tmp/line '^\[]$'
}

says_what_is_no_fault() {
	gives 1 kverbs fault add emu0 op=fly drop && err "does not understand 'add op=fly drop'" &&
		gives 1 kverbs fault add nowhere drop && err "nowhere: no such emulated device" &&
		gives 1 kverbs fault del emu0 9999 && err "emu0 has no rule of this number"
}

helps() {
	gives 0 kverbs --version && out '^kverbs [0-9]' && gives 0 kverbs --help || return 1
	for cmd in $COMMANDS; do
		out "^  $cmd " || return 1
	done
	for cmd in $COMMANDS; do
		gives 0 kverbs "$cmd" --help && out "^Usage: kverbs $cmd" || return 1
		case $cmd in
		capture | top) ;;
		*) out --json || return 1 ;;
		esac
		gives 0 kverbs --help
	done
}

usage() {
	for args in "" "fly" "list emu0" "show" "show emu0 emu1" "show emu0 --port x" \
		"show emu0 --port -1" "show --fly" "monitor --count 0" "reg" \
		"reg emu0 --size 0" "reg emu0 --size 2X" "reg emu0 --size 99999999T" \
		"reg emu0 --access lw,zz" "reg emu0 --path moon" "reg emu0 --touch it" \
		"reg emu0 --memory" "reg emu0 --peer" \
		"reg emu0 --count 0" "fault emu0 emu1" "fault add emu0" "fault del emu0" \
		"fault del emu0 x" "fault seed emu0 -1" "fault --fly"; do
		# shellcheck disable=SC2086
		gives 2 kverbs $args && err "^kverbs" || return 1
	done
}

counts() {
	gives 0 kverbs stats && out '^kverbs_port_active{device="emu0",port="2"} 1$' \
		'^kverbs_objects{device="emu1",kind="qp"} [0-9]' &&
		gives 0 kverbs stats --prometheus && out '^# TYPE kverbs_port_active gauge$' \
			'^kverbs_port_active{device="emu1",port="1"} 1$' &&
		gives 0 kverbs stats --json && json && has /tmp/line '"device": *"emu1"' &&
		gives 0 kverbs top --count 1 && out '^DEVICE ' '^emu0 *1 active ' '^emu1 *1 active '
}

# It has no complaint but that what insmod has loaded is not installed, nor are headers.
is_examined() {
	gives 0 kverbs doctor && out '^ok  *stack  *kverbs is off; loaded: kverbs$' \
		'^ok  *devices  *emu0: ' '^warn  *modules  *none are installed' &&
		gives 0 kverbs doctor --json && json && has /tmp/line '"ok": *true' &&
		gives 0 kverbs version && out '^module  *kverbs_emu [0-9]'
}

# --- list, show --------------------------------------------------------------------

lists() {
	gives 0 kverbs list && count_is 3 /tmp/out . &&
		out '^DEVICE .*NETDEV$' \
			"^emu0  *2  *active  *4X EDR, 100 Gb/s  *$(cat $CLASS/emu0/node_guid) \
 *$(cat $CLASS/emu0/fw_ver)  *kverbs_emu  *-\$" \
			'^emu1  *1  *active .*kverbs_emu  *dummy0$' &&
		echo down >$CONFIG/emu0/port2/state &&
		until_out '^emu0  *2  *1 active; 1 down ' kverbs list &&
		echo active >$CONFIG/emu0/port2/state &&
		until_out '^emu0  *2  *active ' kverbs list
}

lists_json() {
	gives 0 kverbs list --json &&
		json_has "^\[{\"name\":\"emu0\",\"node_guid\":\"$(cat $CLASS/emu0/node_guid)\"" \
			'"fw_str":"1.0.0","driver":"kverbs_emu","ports":\[{"port":1,' \
			'{"port":2,"state":"active","link_layer":"InfiniBand"' \
			'"rate_mbps":100000,"netdev":null}]},{"name":"emu1"' \
			'"link_layer":"Ethernet","rate_mbps":2500,"netdev":"dummy0"}]}]$'
}

shows() {
	gives 0 kverbs show emu0 &&
		out '^emu0: channel adapter with 2 ports$' \
			"node GUID  *$(cat $CLASS/emu0/node_guid)\$" \
			"firmware  *$(cat $CLASS/emu0/fw_ver)\$" \
			'page sizes  *4 KiB to 2 GiB' 'mem_mgt_extensions' '^  port 2$' \
			'state  *active$' 'link  *4X EDR, 100 Gb/s$' 'LID  *1 (0x1)$' \
			'subnet prefix  *fe80:0000:0000:0000$' 'MTU  *4 KiB$' \
			'0  fe80::[0-9a-f:]*  *IB$' '0  0xffff full member' &&
		count_is 2 /tmp/out '0xffff full member' &&
		count_is 0 /tmp/out 'EE contexts' &&
		gives 0 kverbs show emu0 --all &&
		out 'EE contexts  *0$' '63  ::  *none' '15  0x0000 none member' &&
		gives 0 kverbs show emu1 &&
		out 'with 1 port$' 'network device  *dummy0$' '::ffff:10.0.0.1  *RoCE v1, dummy0$' \
			'::ffff:10.0.0.1  *RoCE v2, dummy0$' 'ip_gids'
}

shows_changes() {
	echo 300 >$CONFIG/emu0/port1/lid
	echo "1 0x0001" >$CONFIG/emu0/port1/pkeys
	echo "2 0x8005" >$CONFIG/emu0/port1/pkeys
	echo "5 fe80::1234" >$CONFIG/emu0/port1/gids
	echo 1x >$CONFIG/emu0/port1/width
	echo sdr >$CONFIG/emu0/port1/speed
	echo 1024 >$CONFIG/emu0/port1/mtu
	until_out ' 1  0x0001 ' kverbs show emu0 --port 1 &&
		until_out ' 2  0x8005 ' kverbs show emu0 --port 1 &&
		until_out ' 5  fe80::1234 ' kverbs show emu0 --port 1 &&
		gives 0 kverbs show emu0 --port 1 &&
		out '^emu0$' 'LID  *300 (0x12c)$' '1  0x0001 limited member' \
			'2  0x8005 full member' '5  fe80::1234  *IB' \
			'link  *1X SDR, 2.5 Gb/s$' 'MTU  *1 KiB$' &&
		count_is 0 /tmp/out 'port 2'
	ok=$?
	echo 4x >$CONFIG/emu0/port1/width
	echo edr >$CONFIG/emu0/port1/speed
	return $ok
}

shows_json() {
	gives 0 kverbs show emu0 --json &&
		json_has '^{"name":"emu0","node_type":"channel adapter",' \
			"\"sys_image_guid\":\"$(cat $CLASS/emu0/sys_image_guid)\"" \
			'"max_mr_size":18446744073709551615,' '"page_sizes":\[4096,8192,' \
			'"cap_flags":\["bad_pkey_cntr",' '"atomic_cap":"hca"' \
			'"ports":\[{"port":1,"state":"active","phys_state":"link_up"' \
			'"width":4,"speed":"EDR","rate_mbps":100000' '"lid":300,' \
			'{"index":5,"gid":"fe80::1234","type":"IB","netdev":null}],' \
			'{"index":1,"pkey":1,"member":"limited"},' \
			'{"index":2,"pkey":32773,"member":"full"}]},{"port":2,' &&
		gives 0 kverbs show emu0 --json --port 2 --all &&
		json_has '"ports":\[{"port":2,' '{"index":63,"gid":"::","type":"none"' \
			'{"index":15,"pkey":0,"member":"none"}]}]}$' &&
		count_is 0 /tmp/line '"port":1,' &&
		gives 0 kverbs show emu1 --json &&
		json_has '"netdev":"dummy0"' '"gid":"::ffff:10.0.0.1","type":"RoCE v2"'
}

# The output must not contain control characters for the terminal.
bears_odd_names() {
	gives 1 kverbs show "$(printf 'a\033[2Jb')" && err 'no device a?\[2Jb. There are' &&
		gives 1 kverbs show "" && err 'no device \. There are' &&
		gives 1 kverbs reg "$(printf '%0100d' 0)" && err 'no device 0000'
}

shows_violations() {
	load kverbs_pingpong run=0 || return 1
	before=$(violations)
	echo "0 0x8001" >$CONFIG/rail0/port1/pkeys
	echo "initiator=emu0 target=rail0 timeout=5" >"$DEBUGFS/kverbs_pingpong/run"
	# Before the next event, after which the kernel would query the port by itself.
	after=$(violations)
	echo "0 0xffff" >$CONFIG/rail0/port1/pkeys
	unload kverbs_pingpong
	echo "P_Key violations: $before, then $after"
	[ "$before" -eq 0 ] && [ "$after" -gt 0 ]
}

violations() {
	kverbs show rail0 | sed -n 's/.*P_Key violations *//p'
}

refuses_names() {
	gives 1 kverbs show emu9 && err 'no device emu9. There are: emu0 emu1 rail0$' &&
		gives 1 kverbs reg ../emu0 && err 'no device ../emu0. There are: emu0' &&
		gives 1 kverbs monitor emu9 && err 'no device emu9' &&
		gives 1 kverbs show emu0 --port 3 && err 'no port 3. It has ports 1 to 2$' &&
		gives 1 kverbs show emu1 --port 7 && err 'no port 7, only port 1$'
}

# A file that belongs to no device; the devices are still listed.
bears_strangers() {
	mknod $NODES/alien c 1 3
	gives 1 kverbs list
	ok=$?
	rm $NODES/alien
	[ $ok -eq 0 ] && out '^emu0 ' '^emu1 ' &&
		has /tmp/err 'does not know this request' 'as new as this command'
}

tells_full_disk() {
	for cmd in "list" "show emu0" "show emu0 --json" "reg emu0" "--help"; do
		# shellcheck disable=SC2086
		if kverbs $cmd >/dev/full 2>/tmp/err; then
			echo "kverbs $cmd: no error"
			return 1
		fi
		has /tmp/err 'No space left' || return 1
	done
}

# --- monitor -----------------------------------------------------------------------

# monitors argument...: starts it in the background, with a time limit, and waits until it
# watches.
monitors() {
	: >/tmp/watching
	timeout -s KILL 60 kverbs monitor "$@" >/tmp/monitor 2>/tmp/watching &
	monitor=$!
	until_seen '^watching' /tmp/watching
}

# ends [signal]: checks that it ends with success, by the signal or by itself.
ends() {
	[ $# -eq 0 ] || kill "-$1" $monitor
	status=0
	wait $monitor || status=$?
	[ $status -eq 0 ] || {
		echo "kverbs monitor: exit status $status"
		cat /tmp/monitor /tmp/watching
		return 1
	}
}

monitors_link() {
	monitors && has /tmp/watching '^watching emu0 emu1 rail0$' || return 1
	echo down >$CONFIG/emu0/port1/state
	until_seen '^[0-9:.]*  emu0/1  *port_error  *now down, 4X EDR' /tmp/monitor
	down=$?
	echo active >$CONFIG/emu0/port1/state
	until_seen '  emu0/1  *port_active  *now active, 4X EDR' /tmp/monitor
	active=$?
	ends INT && [ $down -eq 0 ] && [ $active -eq 0 ]
}

monitors_tables() {
	monitors emu0 && has /tmp/watching '^watching emu0$' || return 1
	echo 301 >$CONFIG/emu0/port1/lid
	echo 7 >$CONFIG/emu0/port1/sm_lid
	echo "3 0x8009" >$CONFIG/emu0/port1/pkeys
	echo "6 fe80::6" >$CONFIG/emu0/port1/gids
	echo device_fatal >"$EMU/emu0/event"
	echo down >$CONFIG/rail0/port1/state
	until_seen 'emu0  *device_fatal' /tmp/monitor
	echo active >$CONFIG/rail0/port1/state
	ends TERM &&
		has /tmp/monitor 'emu0/1  *lid_change  *now LID 301$' \
			'emu0/1  *sm_change  *now LID of the SM 7$' \
			'emu0/1  *pkey_change  *now 4 P_Keys$' 'emu0/1  *gid_change  *now 3 GIDs$' &&
		count_is 0 /tmp/monitor rail0
}

monitors_json() {
	monitors --json --count 2 emu1 emu0 || return 1
	echo down >$CONFIG/emu0/port2/state
	echo active >$CONFIG/emu0/port2/state
	ends && count_is 2 /tmp/monitor . || return 1
	while read -r line; do
		result "json: $line"
	done </tmp/monitor
	has /tmp/monitor '^{"time": "20[-0-9]*T[0-9:.]*Z", "time_ns": [0-9]*, "device": "emu0"' \
		'"port": 2, "event": "port_error", "lost": 0, "generation": [0-9]*,' \
		'"event": "port_active", .*"state": "active"}$'
}

# Of 201 events, 128 are queued for a reader that does not read; the others are counted as
# lost. It reads again after all of them have been sent.
monitors_overflow() {
	monitors emu0 || return 1
	kill -STOP $monitor
	until_seen '^State:.T' /proc/$monitor/status || return 1
	for _ in $(seq 200); do
		echo "client_reregister 1" >"$EMU/emu0/event"
	done
	echo down >$CONFIG/emu0/port2/state
	until_seen '^file events=128 lost=73$' "$DEBUGFS/kverbs/emu0/ca"
	kill -CONT $monitor
	until_seen overflow /tmp/monitor
	echo active >$CONFIG/emu0/port2/state
	until_seen 'emu0/2  *port_active' /tmp/monitor
	ends INT || return 1
	lost=$(sed -n 's/.*emu0  *overflow  *\([0-9]*\) events were lost here/\1/p' /tmp/monitor)
	seen=$(grep -c -e client_reregister -e port_error /tmp/monitor)
	echo "seen: $seen, lost: ${lost:-none}"
	[ "$lost" -eq 73 ] && [ "$seen" -eq 128 ]
}

rail1_comes() {
	mkdir $CONFIG/rail1
	echo 1 >$CONFIG/rail1/enable
	until_seen 'rail1  *added' /tmp/monitor
}

rail1_goes() {
	rmdir $CONFIG/rail1
	until_seen 'rail1  *removed' /tmp/monitor
}

monitors_coming_and_going() {
	monitors || return 1
	rail1_comes
	echo down >$CONFIG/rail1/port1/state
	until_seen 'rail1/1  *port_error' /tmp/monitor
	rail1_goes
	ends INT && has /tmp/monitor 'rail1  *added' 'rail1  *removed' \
		'rail1/1  *port_error' && count_is 3 /tmp/monitor .
}

# The only watched device goes, so the command ends; with other devices it carries on.
monitors_removal() {
	monitors rail0 || return 1
	echo 0 >$RAIL/enable
	ends && has /tmp/monitor 'rail0  *removed' && echo 1 >$RAIL/enable
}

# What the kernel does when the only device is renamed: the directory goes with the old file. The
# new name is known as soon as the next device is.
monitors_new_directory() {
	monitors || return 1
	dev=$(cat /sys/class/kverbs_ca/emu0/dev)
	rm $NODES/emu0
	rmdir $NODES /dev/infiniband || return 1
	mkdir -p $NODES
	mknod $NODES/renamed c "${dev%:*}" "${dev#*:}"
	rail1_comes
	echo down >$CONFIG/emu0/port1/state
	until_seen 'renamed/1  *port_error' /tmp/monitor
	rail1_goes
	ends INT && has /tmp/monitor 'rail1  *added' 'renamed/1  *port_error' 'rail1  *removed'
}

# The user may open only one of three files, and that of a device that has gone.
monitors_what_it_may() {
	mknod $NODES/gone c 4095 1
	chmod 600 $NODES/emu1 $NODES/rail0
	: >/tmp/watching
	as_user timeout -s KILL 60 kverbs monitor --count 1 >/tmp/monitor 2>/tmp/watching &
	monitor=$!
	until_seen '^watching' /tmp/watching
	echo down >$CONFIG/emu0/port1/state
	echo active >$CONFIG/emu0/port1/state
	ends && count_is 1 /tmp/monitor 'emu0/1  *port_error' &&
		has /tmp/watching '^watching emu0$' "cannot read $NODES/emu1: Permission" \
			"cannot read $NODES/rail0: Permission" && count_is 0 /tmp/watching gone
	ok=$?
	chmod 600 $NODES/emu0
	[ $ok -eq 0 ] && gives 1 as_user kverbs monitor && err "cannot read $NODES/emu0" \
		"cannot read $NODES/rail0"
	ok=$?
	chmod 644 $NODES/*
	rm $NODES/gone
	return $ok
}

# The line of the event does not fit into the pipe.
monitors_unread() {
	mkfifo /tmp/pipe
	exec 5<>/tmp/pipe
	dd if=/dev/zero of=/tmp/pipe bs=4096 count=16 2>/dev/null
	: >/tmp/watching
	timeout -s KILL 60 kverbs monitor emu0 >/tmp/pipe 2>/tmp/watching &
	monitor=$!
	until_seen '^watching' /tmp/watching && echo down >$CONFIG/emu0/port1/state &&
		until_seen pipe_write /proc/$monitor/wchan
	sleeps=$?
	echo active >$CONFIG/emu0/port1/state
	ends TERM && [ $sleeps -eq 0 ]
	ok=$?
	exec 5>&-
	return $ok
}

# --- reg ---------------------------------------------------------------------------

registers() {
	gives 0 kverbs reg emu0 &&
		out '^emu0: registered 2 MiB$' 'path  *host: ' 'access  *lr,lw,rw,rr$' \
			'lkey  *0x[0-9a-f]*[1-9a-f]' 'rkey  *0x[0-9a-f]*[1-9a-f]' \
			'  register  *[0-9.]* [mun]*s$' 'deregister  *[0-9.]* [mun]*s$' &&
		gives 0 kverbs reg emu1 --size 64K --access lr --path host --touch none &&
		out 'registered 64 KiB' 'access  *lr$' &&
		gives 0 kverbs reg emu0 --size 12345 --touch read --count 3 &&
		out 'registered 12345 bytes' '  register .*on average, .* 3 times$' &&
		gives 0 kverbs reg emu0 --count 4 --access lw,ra,mw --size 1MiB --json &&
		json_has '^{"device":"emu0","length":1048576,"path":"host","peer":null' \
			'"flags":\["pinned"],"dmabuf_error":null,"host_error":null,' \
			'"access":\["lw","ra","mw"],"touched":"write","lkey":[1-9]' \
			'"count":4,"register_ns":{"min":[1-9][0-9]*,"mean":[1-9]' '}}$'
}

# Also with memory of a dma-buf, and with the name of a driver that does not exist.
registers_by_path() {
	gives 0 kverbs reg emu0 --peer nobody && out 'path  *host: ' &&
		gives 1 kverbs reg emu0 --path peer && err 'cannot reach this memory by any path' \
		'peer: no driver of peer memory has it' &&
		gives 1 kverbs reg emu0 --path peer --peer nobody &&
		err 'peer: no driver of peer memory has this name' &&
		gives 1 kverbs reg emu0 --peer "$(printf '%064d' 0)" && err 'no client has such a name' &&
		gives 1 kverbs reg emu0 --path dmabuf && err 'system has no dma-buf' &&
		gives 1 kverbs reg emu0 --memory /dev/none && err 'cannot open /dev/none: No such' &&
		gives 1 kverbs reg emu0 --memory /dev/zero && err '/dev/zero is not a fake GPU'
}

# Not every kernel has /dev/udmabuf: Debian's 6.1 has not.
registers_udmabuf() {
	gives 0 kverbs reg emu0 --memory udmabuf --size 64K &&
		out 'registered 64 KiB' 'path  *dmabuf: memory of a dma-buf$' 'memory  *is pinned' &&
		gives 0 kverbs reg emu0 --memory udmabuf --path host &&
		out 'path  *host: ' && count_is 0 /tmp/out 'not ' &&
		gives 0 kverbs reg emu0 --memory udmabuf --path dmabuf --json &&
		json_has '"path":"dmabuf","peer":null' '"peer_error":null'
}

tells_of_no_udmabuf() {
	gives 1 kverbs reg emu0 --memory udmabuf && err 'udmabuf'
}

# The same with a device whose memory is not system memory.
registers_gpu() {
	gives 0 kverbs reg emu0 --memory /dev/fake_gpu0 --path peer &&
		out 'path  *peer: memory of another device, through its driver fake_gpu0$' \
			'memory  *may be revoked$' &&
		gives 0 kverbs reg emu0 --memory /dev/fake_gpu0 --path peer --peer fake_gpu0 --json &&
		json_has '"path":"peer","peer":"fake_gpu0","flags":\[]' &&
		gives 0 kverbs reg emu0 --memory /dev/fake_gpu0 && out 'path  *dmabuf: ' &&
		gives 1 kverbs reg emu0 --memory /dev/fake_gpu0 --path host &&
		err 'the device may not use this memory'
}

leaves_nothing() {
	cat "$EMU/emu0/ca" "$EMU/emu1/ca" "$DEBUGFS/kverbs/emu0/ca" >/tmp/open
	count_is 0 /tmp/open handle=
}

says_why_not() {
	gives 1 kverbs reg emu9 && err 'no device emu9. There are: emu0' &&
		gives 1 kverbs reg emu0 --access rw && err 'Add lw to --access' &&
		gives 1 kverbs reg emu0 --access ra,rr && err 'Add lw to --access' &&
		gives 1 kverbs reg emu0 --size 1000T && err 'cannot get 1000 TiB of memory'
}

says_why_users_may_not() {
	gives 0 as_user kverbs list && out '^emu0 ' &&
		gives 0 as_user kverbs show emu0 &&
		gives 1 as_user kverbs reg emu0 &&
		err "cannot write to $NODES/emu0: Permission denied" 'chmod g+w' || return 1
	chmod 666 $NODES/emu0
	gives 0 as_user kverbs reg emu0 --size 64K &&
		gives 1 as_user "ulimit -l 64; kverbs reg emu0" &&
		err 'cannot register 2 MiB: this process may lock 64 KiB (RLIMIT_MEMLOCK)' \
			'ulimit -l unlimited' &&
		gives 1 as_user "ulimit -l 0; kverbs reg emu0" && err 'RLIMIT_MEMLOCK' &&
		says_limits
	ok=$?
	chmod 600 $NODES/emu0
	[ $ok -eq 0 ] && gives 1 as_user kverbs show emu0 &&
		err "cannot read $NODES/emu0" 'chmod a+r'
	ok=$?
	chmod 644 $NODES/emu0
	return $ok
}

says_limits() {
	echo 1 >$PARAMETERS/ca_max_objects
	gives 1 as_user kverbs reg emu0 --size 64K && err 'ca_max_objects'
	ok=$?
	echo 16384 >$PARAMETERS/ca_max_objects
	echo 0 >$PARAMETERS/ca_max_handles
	[ $ok -eq 0 ] && gives 1 as_user kverbs show emu0 && err 'ca_max_handles'
	ok=$?
	echo 64 >$PARAMETERS/ca_max_handles
	return $ok
}

# -----------------------------------------------------------------------------------

echo "root:x:0:0::/:/bin/sh" >/etc/passwd
echo "user:x:1000:1000::/:/bin/sh" >>/etc/passwd
chmod 755 / /bin /dev
add_dummy dummy0 10.0.0.1/24

check "without the module it says what to do" told_to_load "kverbs is not loaded"
check "each command has its help" helps
check "wrong arguments are told, with exit status 2" usage
load kverbs contract=warn || exit 1
check "without the interface it says what to do" told_to_load "kverbs_ca is not loaded"
load kverbs_ca || exit 1
check "without a driver it says what to do" told_to_load "modprobe kverbs_emu"
load kverbs_emu devices=2 ports=2 netdev=,dummy0 || exit 1

check "list has a line for each device" lists
check "list --json has what list has" lists_json
check "show has what the device and its ports are" shows
check "stats and top have each device" counts
check "doctor and version look at what is loaded" is_examined
mkdir $RAIL
echo 1 >$RAIL/enable
check "show shows what has changed" shows_changes
check "show --json has what show has" shows_json
check "odd names do no harm" bears_odd_names
check "show has the counters of now" shows_violations
check "unknown devices and ports are told, with those there are" refuses_names
check "a device of another interface does no harm to the others" bears_strangers
check "output that cannot be written is told" tells_full_disk

check "monitor shows a link that goes down and comes up" monitors_link
check "monitor shows tables that change" monitors_tables
check "monitor --json has a document in each line, and --count ends it" monitors_json
check "monitor tells how many events were lost" monitors_overflow
check "monitor watches devices that come" monitors_coming_and_going
check "monitor ends with its device" monitors_removal
check "monitor watches what it may, and tells the rest" monitors_what_it_may
check "monitor ends by a signal though nobody reads what it writes" monitors_unread

check "reg tells keys, time and path" registers
check "reg has memory of the path that is wanted" registers_by_path
if [ -e /dev/udmabuf ]; then
	check "reg has memory of a dma-buf" registers_udmabuf
else
	check "reg says that there is no udmabuf" tells_of_no_udmabuf
fi
if [ -e /modules/kverbs_fake_gpu.ko ]; then
	load kverbs_fake_gpu
	check "reg has memory of another device" registers_gpu
	unload kverbs_fake_gpu
fi
check "reg says why not" says_why_not
check "users are told what they may not, and why" says_why_users_may_not
check "nothing is left open" leaves_nothing
check "fault adds, lists and removes rules" has_faults
check "fault says what is wrong with a rule" says_what_is_no_fault

rmdir $RAIL
monitors || fail "no monitor"
unload kverbs_emu
check "monitor ends when all devices are gone" ends
load kverbs_emu devices=1
check "monitor sees what comes to a new directory" monitors_new_directory
rm -r /dev/infiniband
unload_all
check "no file is left" [ ! -e $NODES ]
