# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Completion of kverbs(1) for bash: commands, options and their values, devices, ports,
# PCI functions.
# KVERBS_CA_DIR, KVERBS_SYSFS, KVERBS_PEERS and KVERBS_PCI are for the tests of this file.

# The names in a directory that begin with what was typed.
_kverbs_names() {
	local path
	for path in "$1"/*; do
		path=${path##*/}
		[[ $path = '*' || $path != "$2"* ]] || COMPREPLY+=("$path")
	done
}

_kverbs_devices() {
	_kverbs_names "${KVERBS_CA_DIR:-/dev/infiniband/ca}" "$1"
}

# Ports of the devices on the command line.
_kverbs_ports() {
	local word sysfs=${KVERBS_SYSFS:-/sys/class/infiniband}
	for word in "${COMP_WORDS[@]:2}"; do
		[[ -z $word || ! -d $sysfs/$word/ports ]] ||
			_kverbs_names "$sysfs/$word/ports" "$1"
	done
}

# A list with commas: the last word of it, from those that are not in it yet.
_kverbs_access() {
	local have='' word
	[[ $1 != *,* ]] || have=${1%,*},
	for word in lr lw rr rw ra mw ro; do
		[[ ,$have = *",$word,"* || $have$word != "$1"* ]] ||
			COMPREPLY+=("$have$word")
	done
	# More may follow.
	[ ${#COMPREPLY[@]} -eq 0 ] || compopt -o nospace 2>/dev/null
}

# _kverbs_value <command>:<option> <what was typed>: fails if it takes no value. The same letter
# may be another option of another command.
_kverbs_value() {
	case $1 in
	show:--port | show:-p) _kverbs_ports "$2" ;;
	capture:--write | capture:-w) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	capture:--snaplen | capture:-s | capture:--qp | capture:-q) ;;
	reg:--path | reg:-P) _kverbs_words "any host p2p peer dmabuf" "$2" ;;
	reg:--memory | reg:-m) _kverbs_words "system udmabuf $(compgen -G '/dev/fake_gpu[0-9]*'
		compgen -G '/sys/bus/pci/devices/*/p2pmem/allocate')" "$2" ;;
	reg:--peer | reg:-p) _kverbs_names "${KVERBS_PEERS:-/sys/kernel/mm/memory_peers}" "$2" ;;
	reg:--touch | reg:-t) _kverbs_words "none read write" "$2" ;;
	reg:--size | reg:-s) _kverbs_words "4K 64K 2M 1G" "$2" ;;
	reg:--access | reg:-a) _kverbs_access "$2" ;;
	*:--count | *:-c | top:--interval | top:-i) ;;
	*:--root | *:-r) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	*) return 1 ;;
	esac
}

_kverbs_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_kverbs_options() {
	case $1 in
	list) echo "--json --help" ;;
	p2p) echo "--why --json --help" ;;
	fault) echo "--json --help" ;;
	capture) echo "--write --snaplen --count --qp --help" ;;
	show) echo "--port --json --all --help" ;;
	monitor) echo "--json --count --help" ;;
	stats) echo "--prometheus --json --root --help" ;;
	top) echo "--interval --count --root --help" ;;
	version | doctor) echo "--json --root --help" ;;
	switch) echo "--dry-run --json --root --help" ;;
	reg) echo "--size --access --path --memory --peer --touch --count --json --help" ;;
	esac
}

# Whether the command line has a device, for commands that take one.
_kverbs_has_device() {
	local i dir=${KVERBS_CA_DIR:-/dev/infiniband/ca}
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ -z ${COMP_WORDS[i]} || ! -e $dir/${COMP_WORDS[i]} ]] || return 0
	done
	return 1
}

_kverbs_emulated() {
	(cd "${KVERBS_FAULTS:-/sys/kernel/debug/kverbs_emu}" 2>/dev/null && shopt -s nullglob && echo *)
}

# add, del or seed, then a device, then what a rule is made of.
_kverbs_fault() {
	local devices
	devices=$(_kverbs_emulated)
	case $COMP_CWORD:${COMP_WORDS[2]} in
	2:*) _kverbs_words "add del seed $devices" "$1" ;;
	3:*) _kverbs_words "$devices" "$1" ;;
	4:del) _kverbs_words "all" "$1" ;;
	*:add) _kverbs_words "qp= op= nth= every= rate= count= status= delay= drop rnr flap=
		overflow" "$1" ;;
	esac
}

_kverbs() {
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} previous
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_kverbs_words "list show monitor reg p2p fault capture version switch doctor stats top --help --version" "$word"
		return
	fi
	previous=${COMP_WORDS[COMP_CWORD - 1]}
	if _kverbs_value "$command:$previous" "$word"; then
		return
	fi
	if [[ $word = -* ]]; then
		_kverbs_words "$(_kverbs_options "$command")" "$word"
		return
	fi
	case $command in
	show | reg) _kverbs_has_device || _kverbs_devices "$word" ;;
	monitor) _kverbs_devices "$word" ;;
	p2p) _kverbs_names "${KVERBS_PCI:-/sys/bus/pci/devices}" "$word" ;;
	fault) _kverbs_fault "$word" ;;
	capture) _kverbs_words "$(_kverbs_emulated)" "$word" ;;
	switch) _kverbs_words "on off status" "$word" ;;
	esac
}

complete -F _kverbs kverbs
