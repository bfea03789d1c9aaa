# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A machine with Secure Boot for scripts/check-deb, as a shop sells it: the firmware trusts
# Microsoft's keys, and starts Debian's shim, which starts GRUB, which starts Debian's kernel, each
# signed. Shim's MokManager asks the owner about keys before the next boot; functions here answer
# with keystrokes. What to press is read off the console, where the chosen item of a menu is on
# black.
#
# Variables are shared with scripts/check-deb.
# shellcheck disable=SC2034,SC2154

# Where these programs come from.
SIGNED="shim-signed shim-helpers-amd64-signed grub-efi-amd64-signed"
# What the owner types at both places, key by key.
PASSWORD=(k v e r b s)

# make_esp <directory> <kernel parameters>: its system partition, with the kernel of the root.
make_esp() {
	local esp=$1 programs=$work/signed deb
	for deb in "$root"/debs/signed/*.deb; do
		dpkg -x "$deb" "$programs"
	done
	mkdir -p "$esp/EFI/BOOT" "$esp/EFI/debian"
	cp "$programs/usr/lib/shim/shimx64.efi.signed" "$esp/EFI/BOOT/BOOTX64.EFI"
	cp "$programs/usr/lib/shim/mmx64.efi.signed" "$esp/EFI/BOOT/mmx64.efi"
	cp "$programs/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$esp/EFI/BOOT/grubx64.efi"
	cp "$root/boot/vmlinuz-$release" "$esp/vmlinuz"
	cp "$root/boot/initrd.img-$release" "$esp/initrd"
	printf '%s\n' "linux /vmlinuz $2" "initrd /initrd" boot >"$esp/EFI/debian/grub.cfg"
}

# start_machine <disk> <system partition>: sets machine, its process, and keyboard, for press().
# Emulated processors take turns: side by side, they may execute breakpoints that the kernel has
# patched away.
start_machine() {
	local accel=tcg,thread=single
	! grep -qs " yes$" "$KV_CACHE/kvm-probe" || accel=kvm
	cp /usr/share/OVMF/OVMF_VARS_4M.ms.fd "$work/vars"
	rm -f "$work/keyboard"
	mkfifo "$work/keyboard"
	exec {keyboard}<>"$work/keyboard"
	: >"$console"
	seen=0
	timeout 2400 qemu-system-x86_64 -M q35,smm=on -accel "$accel" -smp 2 -m 2048 -display none \
		-global driver=cfi.pflash01,property=secure,value=on \
		-drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.secboot.fd \
		-drive if=pflash,format=raw,file="$work/vars" \
		-drive file="$1",if=virtio,format=raw \
		-drive file="fat:$2",if=virtio,format=raw,readonly=on -nic none \
		-serial file:"$console" -serial file:"$work/serial" -monitor stdio \
		<"$work/keyboard" >"$work/monitor" 2>>"$work/said" &
	machine=$!
}

is_off() {
	! kill -0 "$machine" 2>/dev/null
}

# until_so command...: fails if the machine is off, or its kernel has died
until_so() {
	until "$@"; do
		! is_off && ! grep -aq 'Kernel panic' "$console" || return
		sleep 0.2
	done
}

# What the console has shown since the last answer.
shown() {
	tail -c "+$((seen + 1))" "$console"
}

shows() {
	shown | grep -aqF "$1"
}

# The chosen item of the menu that is shown, or nothing.
chosen() {
	shown | LC_ALL=C grep -aoP '\e\[37m\e\[40m\e\[\d+;\d+H[^\e]*' | tail -n 1 |
		LC_ALL=C sed 's/.*H//; s/[^a-zA-Z0-9 ]//g; s/^ *//; s/ *$//'
}

is_chosen() {
	[ "$(chosen)" = "$1" ]
}

is_not_chosen() {
	! is_chosen "$1"
}

press() {
	local key
	for key in "$@"; do
		echo "sendkey $key" >&"$keyboard"
	done
}

# answer <key>...: what is shown from now on is another question.
answer() {
	seen=$(stat -c %s "$console")
	press "$@"
}

# choose <item>: it is further down, if it is not chosen.
choose() {
	local other
	until_so is_not_chosen "" || return
	until is_chosen "$1"; do
		other=$(chosen)
		press down
		until_so is_not_chosen "$other" || return
	done
	answer ret
}

# The owner enrols the keys that mokutil has asked for.
enrol_keys() {
	until_so shows "Press any key to perform MOK management" && answer ret &&
		choose "Enroll MOK" && choose "Continue" && choose "Yes" &&
		until_so shows "Password:" && answer "${PASSWORD[@]}" ret &&
		choose "Reboot"
}
