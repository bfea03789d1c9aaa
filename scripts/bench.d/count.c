// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU (TCG), for scripts/bench profile: counts how often the guest executes
 * each instruction between two marks, which ulp/pingpong/mark.h puts into a ULP.
 *
 * usage: qemu-system-x86_64 -plugin <this>,out=<file> -smp 1
 *
 * For each pair of marks, the file has a line "begin", a line "<address> <times> <kind>"
 * for each instruction that was executed, and a line "end <sum>". The kind is l for a
 * locked read-modify-write (an exchange with memory is locked, too), b for a full barrier
 * (MFENCE, or a locked addition of nothing to the stack), and - for all else. An
 * instruction that repeats itself counts as often as it does, as with -icount.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"

#define PUBLIC	__attribute__((visibility("default")))

PUBLIC int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* --- instructions --- */

/* One instruction at one address; code that changes gets another. */
struct place {
	uint64_t address;
	uint64_t times;
	char kind;
	unsigned char size;
	unsigned char bytes[15];
	struct place *next;		/* with the same hash */
};

enum { HASH = 1 << 18, SLAB = 1 << 12 };

static struct place *hash[HASH];
static struct place *slab;
static size_t slab_left;
static bool counting;
static FILE *out;

static bool is_prefix(unsigned char byte)
{
	return (byte & 0xf0) == 0x40 || byte == 0x66 || byte == 0x67 || byte == 0xf2 ||
	       byte == 0xf3 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 ||
	       byte == 0x64 || byte == 0x65;
}

static char kind_of(const unsigned char *code, size_t size)
{
	bool locked = false;
	size_t i;

	for (i = 0; i < size && (code[i] == 0xf0 || is_prefix(code[i])); i++)
		locked |= code[i] == 0xf0;
	code += i;
	size -= i;
	if (size >= 3 && code[0] == 0x0f && code[1] == 0xae && code[2] == 0xf0)
		return 'b';
	/* add $0, disp(%rsp) */
	if (locked && size >= 3 && code[0] == 0x83 && (code[1] & 0x3f) == 0x04 &&
	    code[2] == 0x24 && code[size - 1] == 0)
		return 'b';
	/* xchg with memory */
	if (size >= 2 && (code[0] == 0x86 || code[0] == 0x87) && code[1] < 0xc0)
		locked = true;
	return locked ? 'l' : '-';
}

static struct place *place_new(void)
{
	if (!slab_left) {
		slab = calloc(SLAB, sizeof(*slab));
		if (!slab)
			abort();
		slab_left = SLAB;
	}
	slab_left--;
	return slab++;
}

static struct place *place_of(uint64_t address, const unsigned char *code, size_t size)
{
	struct place **head = &hash[(address ^ address >> 18) % HASH], *p;

	for (p = *head; p; p = p->next)
		if (p->address == address && p->size == size && !memcmp(p->bytes, code, size))
			return p;
	p = place_new();
	p->address = address;
	p->size = size;
	memcpy(p->bytes, code, size);
	p->kind = kind_of(code, size);
	p->next = *head;
	*head = p;
	return p;
}

/* --- marks --- */

static void forget(void)
{
	struct place *p;
	size_t i;

	for (i = 0; i < HASH; i++)
		for (p = hash[i]; p; p = p->next)
			p->times = 0;
}

static void report(void)
{
	uint64_t sum = 0;
	struct place *p;
	size_t i;

	fprintf(out, "begin\n");
	for (i = 0; i < HASH; i++)
		for (p = hash[i]; p; p = p->next) {
			if (!p->times)
				continue;
			sum += p->times;
			fprintf(out, "%" PRIx64 " %" PRIu64 " %c\n", p->address, p->times,
				p->kind);
		}
	fprintf(out, "end %" PRIu64 "\n", sum);
	fflush(out);
}

static void on_begin(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	forget();
	counting = true;
}

static void on_end(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	if (counting)
		report();
	counting = false;
}

/* nopl disp32(%rax), with the number of the mark. */
static int mark_of(const unsigned char *code, size_t size)
{
	static const unsigned char bytes[] = { 0x0f, 0x1f, 0x80, 0, 0xb0, 0x76, 0x6b };

	if (size != sizeof(bytes) || memcmp(code, bytes, 3) || memcmp(code + 4, bytes + 4, 3))
		return 0;
	return code[3];
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb), size;
	struct qemu_plugin_insn *insn;
	const unsigned char *code;
	struct place *p;
	int mark;

	(void)id;
	for (i = 0; i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		code = qemu_plugin_insn_data(insn);
		size = qemu_plugin_insn_size(insn);
		if (size > sizeof(p->bytes))
			size = sizeof(p->bytes);
		p = place_of(qemu_plugin_insn_vaddr(insn), code, size);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD_U64, &p->times, 1);
		mark = mark_of(code, size);
		if (mark == 1)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, NO_REGISTERS, NULL);
		else if (mark == 2)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, NO_REGISTERS, NULL);
	}
}

PUBLIC int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out) {
		fprintf(stderr, "count: cannot open the file named by out=\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
