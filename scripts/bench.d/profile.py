#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Where the instructions of a message go, for "scripts/bench profile".

usage: profile.py <rows of the guest> <counts> <kallsyms> <modules> <provenance>

Rows: one for each case, in the order in which they were measured. Counts: what count.c has
written, two pairs of marks for each case, the first of which warmed up. Kallsyms: the
guest's /proc/kallsyms. Modules: the directory with the modules that ran there, and their
debugging information.

The exit status is 1 if the counts do not agree with the clock.
"""

import bisect
import collections
import itertools
import os
import pathlib
import re
import subprocess
import sys

import common

# How far the sum may be from what the clock says: it is read outside the marks.
TOLERANCE = 0.005
FUNCTIONS = 40      # functions to print for a case
NAMES = {"send": "SEND", "send_srq": "SEND, SRQ", "write": "WRITE", "read": "READ"}
ROOT = pathlib.Path(__file__).resolve().parents[2]

# A layer, and what belongs to it, as "<file>:<function>" where the code is ours (inlined
# functions count where they were written) and "kernel:<function>" elsewhere. The first that
# fits counts. What fits nothing is a layer of its own.
LAYERS = [(name, re.compile(pattern)) for name, pattern in [
    ("ULP: handlers, requests", r"plain\.h:|pingpong/|@ulp:|limit/main\.c:lim_(over|wrong)"),
    ("post receive", r"/(post|recv)\.[ch]:\w*(recv|srq)|queue\.c:lim_(rq_post|post_recv|post_srq)"),
    ("post send", r"post\.c:|queue\.c:lim_(post_|wr_good|is_rdma|queue)"),
    ("receives of an SRQ", r"srq\.c:"),
    ("rings", r"ring\.h:"),
    ("copy", r":(emu|lim)_copy|kernel:(__)?mem(cpy|move)"),
    ("memory, keys, gate of the region",
     r"/(memory|region|target|place|backing|mr|mw)\.[ch]:"
     r"|:emu_(open_|short_span|check_copy|remote_sge)|queue\.c:lim_rdma"),
    ("peer, its gate, port, counters",
     r"fabric\.|/net\.h:|/in_memory\.[ch]:emu_(?!complete)|gate\.h:"
     r"|:emu_(is_connected|port_pkey|pkeys_match|count|leave)$|queue\.c:lim_gate"),
    ("xarray", r"kernel:(xa_|xas_)"),
    ("RCU", r"kernel:(__)?rcu_"),
    ("arm, notify, wake",
     r":emu_(req_notify|cq_wake|cq_has_entries|cq_published|fault_notify)"
     r"|:ib_(req_notify|cq_arm|cq_wake|cq_notify|cq_put_up|cq_line_up|cq_take_woken)"
     r"|:lim_(req_notify|arm|cq_empty)|:trace_ib_cq_(rearm|schedule)|kernel:llist_"),
    ("poll", r"/cq\.c:emu_|:ib_poll_cq|:lim_(poll_cq|take_run)"),
    ("completions", r"/cq\.h:emu_|:(__)?emu_complete_|:emu_(cqe_|recv_begin|cq_|fault_over)"
                    r"|:ib_cq_timing|:lim_complete"),
    ("doorbell, ownership", r"/doorbell\.[ch]:|:emu_may_(send|execute)"
                            r"|queue\.c:lim_(release|go_on)"),
    ("execution", r"/(engine|exec|direct|fastpath|connected|datagram|fault)\.[ch]:|outcome\.h:"
                  r"|queue\.c:lim_(send|execute|run)|/emu\.h:|/qp\.[ch]:"),
    ("CQ layer: rounds, calls of done()", r"^cq/|completion\.h:|limit/main\.c:|:trace_ib_cq"),
    ("calls by pointer", r"kernel:__x86_(indirect|return)"),
    ("scheduler, timers, lists, interrupts", r"kernel:"),
]]


class Symbols:
    """The guest's functions, and the source lines of those of our modules."""

    def __init__(self, kallsyms, modules):
        self.modules = pathlib.Path(modules).resolve()
        table = []
        with open(kallsyms, encoding="utf-8") as lines:
            for line in lines:
                word = line.split()
                if word[1] in "tTwW":
                    table.append((int(word[0], 16), word[2],
                                  word[3][1:-1] if len(word) > 3 else ""))
        self.table = sorted(table)
        self.starts = [start for start, _, _ in self.table]

    def at(self, address):
        """The start, name and module of the function at an address."""
        return self.table[bisect.bisect(self.starts, address) - 1]

    def _sections(self, module):
        """Where the functions of a module are: section and offset, by name."""
        out = subprocess.run(["objdump", "-t", module], check=True, capture_output=True,
                             text=True).stdout
        found = {}
        for line in out.splitlines():
            match = re.match(r"([0-9a-f]{16}) .{7} (\.\S+)\s+[0-9a-f]+ (?:\.\S+ )?(\S+)$", line)
            if match:
                found[match[3]] = (match[2], int(match[1], 16))
        return found

    def _frames(self, module, section, offsets):
        """What addr2line says of offsets: lists of (function, file), innermost first."""
        out = subprocess.run(["addr2line", "-e", module, "-j", section, "-i", "-f", "-a"],
                             check=True, capture_output=True, text=True,
                             input="\n".join(hex(offset) for offset in offsets)).stdout
        frames = []
        lines = iter(out.splitlines())
        for line in lines:
            if re.fullmatch(r"0x[0-9a-f]+", line):
                frames.append([])
            else:
                frames[-1].append((line, next(lines)))
        return frames

    def origins(self, addresses):
        """Where the code at addresses was written, as LAYERS has it."""
        origin, wanted = {}, collections.defaultdict(list)
        for address in addresses:
            start, name, module = self.at(address)
            origin[address] = f"kernel:{name}"
            if module.startswith("kverbs"):
                wanted[module].append((address, start, name))
        for module, places in wanted.items():
            path = self.modules / f"{module}.ko"
            where, by_section = self._sections(path), collections.defaultdict(list)
            for address, start, name in places:
                if name in where:
                    section, offset = where[name]
                    by_section[section].append((address, offset + address - start, name))
            for section, some in by_section.items():
                frames = self._frames(path, section, [offset for _, offset, _ in some])
                for (address, _, name), frame in zip(some, frames):
                    origin[address] = origin_of(frame, name, (self.modules, ROOT))
        return origin


def file_of_ours(path, roots):
    """The path of a file in our tree, or None: "/x/build/6.12/a/b/../c.h:7" is "a/c.h"."""
    for root in roots:
        if path.startswith(f"{root}/"):
            return os.path.normpath(path[len(f"{root}/"):].split(":")[0])
    return None


def origin_of(frames, outermost, roots):
    """The innermost function of ours, as the kernel's inline functions count as their callers.

    A verb's inline function counts as the caller, as it is the ULP's code.
    """
    for function, path in frames:
        file = file_of_ours(path, roots)
        if not file:
            continue
        if re.fullmatch(r"ib_post_(send|recv|srq_recv)", function):
            return f"@ulp:{function}"
        return f"{file}:{function}"
    return f"kernel:{outermost}"


def layer_of(origin):
    for name, pattern in LAYERS:
        if pattern.search(origin):
            return name
    return origin.split(":")[0]


class Case:
    """A case, and its instructions per message."""

    def __init__(self, row, counts, symbols):
        self.row, self.msgs = row, int(row["msgs"])
        self.sum = sum(times for _, times, _ in counts) / self.msgs
        self.clock = int(row["ns"]) / self.msgs
        self.locked = self._of_kind(counts, "l")
        self.barriers = self._of_kind(counts, "b")
        self.layers, self.atomics = collections.Counter(), collections.Counter()
        self.functions, self.calls = collections.Counter(), collections.Counter()
        self.written = collections.Counter()
        origins = symbols.origins([address for address, _, _ in counts])
        for address, times, kind in counts:
            start, name, _ = symbols.at(address)
            layer = layer_of(origins[address])
            self.layers[layer] += times / self.msgs
            self.functions[name] += times / self.msgs
            self.written[origins[address].split(":")[1]] += times / self.msgs
            if address == start:
                self.calls[name] += times / self.msgs
            if kind != "-":
                self.atomics[layer, kind] += times / self.msgs

    def _of_kind(self, counts, wanted):
        return sum(times for _, times, kind in counts if kind == wanted) / self.msgs

    def name(self):
        name = f'{NAMES[self.row["op"]]} w{self.row["window"]}'
        return "limit" if self.row["layer"] == "limit" else name

    def title(self):
        row = self.row
        if row["layer"] == "limit":
            how = "the limit: no device"
        else:
            to = "same device" if row["to"] == "same" else "other device"
            posts = "one request a call" if row["batch"] == "1" else f'batches of {row["batch"]}'
            how = f'{row["ctx"]}, {to}, {posts}'
        return f'{NAMES[row["op"]]}, {row["size"]} B, window {row["window"]}, {how}'

    def agrees(self):
        return abs(self.sum - self.clock) <= TOLERANCE * self.clock


def read_counts(path):
    """The counts of each pair of marks: lists of (address, times, kind)."""
    pairs = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            word = line.split()
            if word[0] == "begin":
                some = []
            elif word[0] == "end":
                pairs.append(some)
            else:
                some.append((int(word[0], 16), int(word[1]), word[2]))
    return pairs


def with_limits(cases):
    """The cases, each with its limit behind it."""
    limits = {tuple(case.row[key] for key in ("op", "size", "window")): case
              for case in cases if case.row["layer"] == "limit"}
    for case in cases:
        if case.row["layer"] != "limit":
            yield case
            yield limits[tuple(case.row[key] for key in ("op", "size", "window"))]


def number(value, digits=0):
    return f"{value:.{digits}f}" if value >= 0.5 * 10 ** -digits else "-"


def layer_table(cases):
    order = [name for name, _ in LAYERS]
    found = {layer for case in cases for layer in case.layers}
    layers = [name for name in order if name in found] + sorted(found - set(order))
    rows = [[layer] + [number(case.layers[layer]) for case in cases] for layer in layers
            if any(case.layers[layer] >= 0.5 for case in cases)]
    rows.append(["all", *(number(case.sum) for case in cases)])
    rows.append(["as the clock says", *(number(case.clock) for case in cases)])
    rows.append(["locked instructions", *(number(case.locked, 1) for case in cases)])
    rows.append(["full barriers", *(number(case.barriers, 1) for case in cases)])
    return common.section("Instructions a message, by layer; beside each case its limit",
                          ["", *(case.name() for case in cases)], rows, 38, 14)


def top_of(case, counter):
    """The first functions of a counter, and the sum of all others, to print."""
    top = [(name, each) for name, each in counter.most_common(FUNCTIONS) if each >= 0.5]
    return top + [("all others", case.sum - sum(each for _, each in top))]


def function_table(case):
    yield case.title()
    form = "  {:34}{:>9}{:>8}    {:34}{:>9}"
    yield form.format("as compiled, with what is inlined", "a message", "calls",
                      "as written", "a message")
    for (name, each), (inner, own) in itertools.zip_longest(
            top_of(case, case.functions), top_of(case, case.written), fillvalue=("", 0)):
        yield form.format(name, number(each) if name else "",
                          number(case.calls[name], 2) if case.calls[name] else "",
                          inner, number(own) if inner else "")
    atomics = [f"{layer} {number(each, 1)}" + (" barriers" if kind == "b" else "")
               for (layer, kind), each in case.atomics.most_common() if each >= 0.05]
    yield "  locked: " + "; ".join(atomics)
    yield ""


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    rows = common.read_rows(sys.argv[1], "op")
    pairs = read_counts(sys.argv[2])[1::2]
    if not rows or len(pairs) != len(rows):
        sys.exit(f"bench: {len(rows)} cases, and {len(pairs)} that were counted")
    symbols = Symbols(sys.argv[3], sys.argv[4])
    cases = [Case(row, counts, symbols) for row, counts in zip(rows, pairs)]
    with open(sys.argv[5], encoding="utf-8") as lines:
        about = dict(line.rstrip().split(" ", 1) for line in lines)
    print("SPDX-License-Identifier: GPL-2.0-only\n")
    print("Results of scripts/bench profile")
    print(f'Linux {about["kernel"]}; QEMU {about["qemu"]}, gcc {about["gcc"]}; each executed '
          "instruction is counted\n")
    for line in layer_table(list(with_limits(cases))):
        print(line.rstrip())
    for case in cases:
        for line in function_table(case):
            print(line.rstrip())
    wrong = [case for case in cases if not case.agrees()]
    for case in wrong:
        print(f"bench: {case.title()}: {case.sum:.1f} instructions were counted, but the clock "
              f"says {case.clock:.1f}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
