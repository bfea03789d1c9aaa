#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench hca".

usage: hca.py csv <rows of the guest> <provenance>    the results, as CSV
       hca.py table <csv>                             the same as a table
       hca.py plots <csv> <directory>                 and as SVG
"""

import statistics
import sys

import common
import svg

COLUMNS = ["layer", "op", "size", "window", "msgs", "ns", "round", "one_per_s", "two_per_s"]
OPS = {"send": "SEND", "write": "RDMA WRITE", "read": "RDMA READ",
       "fetch_add": "FETCH_AND_ADD"}
LAYERS = {"kverbs": "emulated HCA", "mainline": "rdma_rxe", "cpu": "memcpy()"}
SMALL, LARGE = 64, 65536

MAX_SMALL = {64: 620, 1: 3500}      # instructions of a SEND of 64 bytes, by window
MAX_COPY = 1.3                      # times memcpy(), of 64 KiB
MIN_SPEEDUP = 1.8                   # two pairs on two CPUs

ABOUT = """\
What it measures

ulp/pingpong, the same source over both: built with ours it runs over the emulated HCA,
built with the kernel's own headers over mainline's rdma_rxe, in the same boot. Both ends
are queue pairs (RC) of one device. A message is posted, executed, and its completions are
handled, in WORKQUEUE context: that of the sender, and for a SEND also the receiver's,
which posts the receive again. Nothing looks at the bytes, and no time is taken. The time
is from the first post to the last completion, divided by the number of messages. Window:
messages outstanding; a quarter of them are posted at once, up to 16, and with 1 each
message waits for the one before.

rdma_rxe cuts messages into packets of 1024 bytes, which go through the network stack and
its own tasks, and computes a checksum of each. The emulated HCA copies them from memory
to memory where they are posted. memcpy() is the same ULP when it has the CPU copy the
same bytes between the same buffers (op=memcpy), with no device involved.

Two pairs on two CPUs: each pair is started on a CPU of its own, where its completions are
handled, too. Real time, so this depends on the machine, and on what else it does: one
pair and two pairs take turns, and the median of the ratios counts.

How to reproduce

    scripts/bench hca            # two minutes; writes these files
    scripts/bench hca --quick    # less; keeps nothing
    scripts/bench hca --wall     # time on two processors instead of instructions
    scripts/bench hca --plot     # tables and plots again, from hca.csv
"""


def make_csv(rows_path, provenance_path):
    common.write_csv(common.read_rows(rows_path, "op"), COLUMNS, provenance_path)


class Results(common.Results):
    """The contents of hca.csv."""

    def __init__(self, path):
        super().__init__(path)
        sent = [row for row in self.rows if row["op"] in OPS]
        self.layers = [layer for layer in ("kverbs", "mainline")
                       if any(row["layer"] == layer for row in sent)]
        self.ops = [op for op in OPS if any(row["op"] == op for row in sent)]
        self.sizes = sorted({row["size"] for row in sent})
        self.windows = sorted({row["window"] for row in sent})
        self.unit = self.about.get("unit", "instructions")

    def each(self, layer, op, size, window):
        """The cost of a message, or None."""
        row = self.one(layer=layer, op=op, size=size, window=window)
        return row["ns"] / row["msgs"] if row else None

    def copy(self, size, window):
        return self.each("cpu", "memcpy", size, window)

    def by_copy(self, op, size, window):
        """Its cost as a multiple of that of memcpy(), or None."""
        each, copy = self.each("kverbs", op, size, window), self.copy(size, window)
        return each / copy if each and copy else None

    def ratio(self, op, size, window):
        """The cost with rdma_rxe as a multiple of ours, or None."""
        ours, theirs = (self.each(layer, op, size, window) for layer in ("kverbs", "mainline"))
        return theirs / ours if ours and theirs else None

    def speedups(self):
        return [row["two_per_s"] / row["one_per_s"] for row in self.pick(op="cpus")]


# --- for people ---------------------------------------------------------------


def size_name(size):
    return f"{size // 1024} KiB" if size >= 1024 else f"{size} B"


def cell(value, digits=0, sign=""):
    return "-" if value is None else f"{value:.{digits}f}{sign}"


def cost_table(results):
    yield f"Cost: {results.unit} a message, by messages outstanding; x: rdma_rxe by emulated HCA"
    for op in results.ops:
        rows = []
        for size in results.sizes:
            if not results.pick(op=op, size=size):
                continue
            row = [size_name(size)]
            for window in results.windows:
                row += [cell(results.each(layer, op, size, window)) for layer in results.layers]
                if len(results.layers) == 2:
                    row.append(cell(results.ratio(op, size, window), 1, "x"))
            rows.append(row)
        head = [OPS[op]]
        for window in results.windows:
            head += [f"{'emu' if layer == 'kverbs' else 'rxe'} {window}"
                     for layer in results.layers]
            if len(results.layers) == 2:
                head.append("")
        yield ""
        yield from common.columns(head, rows, 16, 10)
    yield ""


def copy_table(results):
    if not results.pick(layer="cpu"):
        return
    window = max(results.windows)
    yield f"Copying: {results.unit} a message, and times as much as memcpy(), window {window}"
    yield ""
    rows = []
    for size in results.sizes:
        row = [size_name(size), cell(results.copy(size, window))]
        for op in results.ops:
            row += [cell(results.each("kverbs", op, size, window)),
                    cell(results.by_copy(op, size, window), 2, "x")]
        rows.append(row)
    head = ["", "memcpy()"]
    for op in results.ops:
        head += [OPS[op], ""]
    yield from common.columns(head, rows, 10, 14)
    yield ""


def target(what, value, limit, digits, at_most=True):
    """A line about a limit, or none if it was not measured."""
    if value is None:
        return
    met = value <= limit if at_most else value >= limit
    yield (f"  {what.ljust(58)}{value:.{digits}f}".ljust(70) +
           f"{'at most' if at_most else 'at least'} {limit}{'' if met else '   MISSED'}")


def target_table(results):
    yield "Targets"
    yield ""
    if results.unit == "instructions":
        for window, limit in MAX_SMALL.items():
            yield from target(f"instructions of a SEND of {SMALL} bytes, window {window}",
                              results.each("kverbs", "send", SMALL, window), limit, 0)
        for op in ("send", "write", "read"):
            for window in results.windows:
                yield from target(f"{OPS[op]} of 64 KiB by memcpy(), window {window}",
                                  results.by_copy(op, LARGE, window), MAX_COPY, 2)
    speedups = results.speedups()
    if speedups:
        yield from target("messages a second of two pairs on two CPUs by one pair",
                          statistics.median(speedups), MIN_SPEEDUP, 2, False)
        yield f"    {len(speedups)} rounds, {min(speedups):.2f} to {max(speedups):.2f};"
        yield f'    {results.about.get("cpus", "?")}'
    yield ""


def write_table(results):
    for lines in (results.heading("hca"), [""], target_table(results), cost_table(results),
                  copy_table(results)):
        for line in lines:
            print(line.rstrip())
    print(ABOUT, end="")


# --- as pictures --------------------------------------------------------------

WIDE, HIGH = 200, 170
SERIES = {"cpu": 0, "kverbs": 1, "mainline": 3}


def size_scale(results):
    low, high = min(results.sizes), max(results.sizes)
    return svg.Log(low / 1.5, high * 1.5, results.sizes)


def size_names(results):
    return {size: size_name(size) for size in results.sizes}


def cost_points(results, layer, op, window):
    points = [(size, results.each(layer, "memcpy" if layer == "cpu" else op, size, window))
              for size in results.sizes]
    return [(size, each) for size, each in points
            if each and results.pick(op=op, size=size)]


def plot_cost(results, path):
    """A row of panels for each window, a column for each operation."""
    layers = [layer for layer in SERIES if results.pick(layer=layer)]
    y_scale = svg.Log.around([row["ns"] / row["msgs"] for row in results.rows if row["msgs"]])
    figure = svg.Figure(110 + len(results.ops) * (WIDE + 34),
                        130 + len(results.windows) * (HIGH + 62),
                        f"What a message costs: {results.unit}", results.remark())
    figure.legend = [(SERIES[layer], LAYERS[layer]) for layer in layers]
    for column, op in enumerate(results.ops):
        for line, window in enumerate(results.windows):
            panel = figure.panel(80 + column * (WIDE + 34), 118 + line * (HIGH + 62), WIDE, HIGH,
                                 size_scale(results), y_scale)
            panel.axes("bytes" if line == len(results.windows) - 1 else "",
                       results.unit if column == 0 else "",
                       f"{OPS[op]}, window {window}", size_names(results), column == 0)
            for layer in layers:
                points = cost_points(results, layer, op, window)
                if points:
                    panel.line(SERIES[layer], points)
    figure.write(path)


def plot_ratio(results, path):
    """A panel for each operation, a line for each window."""
    ratios = {(op, window): [(size, results.ratio(op, size, window)) for size in results.sizes
                             if results.ratio(op, size, window)]
              for op in results.ops for window in results.windows}
    known = [ratio for points in ratios.values() for _, ratio in points]
    if not known:
        return
    figure = svg.Figure(110 + len(results.ops) * (WIDE + 34), 380,
                        "How many times as much a message costs over rdma_rxe",
                        results.remark())
    figure.legend = [(n + 1, f"window {window}") for n, window in enumerate(results.windows)]
    for column, op in enumerate(results.ops):
        panel = figure.panel(80 + column * (WIDE + 34), 118, WIDE, HIGH + 20,
                             size_scale(results), svg.Linear(0, max(known) * 1.1))
        panel.axes("bytes", "times" if column == 0 else "", OPS[op], size_names(results),
                   column == 0)
        for n, window in enumerate(results.windows):
            if ratios[op, window]:
                panel.line(n + 1, ratios[op, window])
    figure.write(path)


def write_plots(results, directory):
    plot_cost(results, f"{directory}/hca-cost.svg")
    plot_ratio(results, f"{directory}/hca-ratio.svg")


if __name__ == "__main__":
    common.main(sys.argv[1:], __doc__, make_csv, write_table, write_plots, Results)
