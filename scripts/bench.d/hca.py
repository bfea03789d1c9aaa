#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench hca"; common.main() has the usage."""

import statistics

import common
import svg

COLUMNS = ["layer", "op", "ctx", "to", "size", "window", "batch", "msgs", "ns", "round",
           "one_per_s", "two_per_s", "per_s", "p50_ns", "p99_ns"]
OPS = {"send": "SEND", "write": "RDMA WRITE", "read": "RDMA READ", "send_srq": "SEND, SRQ",
       "fetch_add": "FETCH_AND_ADD"}
LAYERS = {"kverbs": "software HCA", "mainline": "rdma_rxe", "cpu": "memcpy()",
          "limit": "limit"}
CONTEXTS = ["workqueue", "unbound", "thread", "softirq", "direct"]
SMALL, LARGE = 64, 65536
SINGLE, BATCH = 1, 16

# Instructions of 64 bytes in the worst context: by operation, window, and device of the other end,
# posted one by one; and by operation, in batches. Between two devices the threads of both take
# turns, in the contexts that have some.
MAX_SINGLE = {("send", 64, "same"): 600, ("write", 64, "same"): 435, ("read", 64, "same"): 455,
              ("send_srq", 64, "same"): 605, ("send", 1, "same"): 1150,
              ("send", 64, "other"): 730, ("write", 64, "other"): 435}
MAX_BATCHED = {"send": 465, "write": 330}
MAX_COPY = 1.3                      # times memcpy(), of 64 KiB
MIN_SPEEDUP = 1.8                   # two pairs on two CPUs

ABOUT = """\
What it measures

ulp/pingpong, the same source over both: built with ours it runs over the software HCA,
built with the kernel's own headers over mainline's rdma_rxe, in the same boot. Both ends
are queue pairs (RC), of one device or ("other") of two, and each has its own CQ. A message
is posted, executed, and its completions are handled: that of the sender, and for a SEND
also the receiver's, which posts the receive again. The figure is everything that the CPU
executes from the first post to the last completion, both ends and the ULP's own handlers
(120 of a SEND, 75 of others), divided by the number of messages. Window: messages
outstanding; with 1, the next is posted when the one before is complete.

One request a call: done() of a message builds the next request on its stack and posts it,
as most ULPs do (plain=1, ulp/pingpong/plain.h). The memory is checked after the run.
Batches: requests are built once, and 16 of them are posted by one call.

The limit: a loop that is no device (ulp/bench/limit), under the same handlers. It really
moves the bytes and the completions, with lock-free rings for any number of posters and
pollers, a doorbell with an owner, a gate of the peer and of the region, and an arm word
behind a full barrier; but it knows one transport and one kind of memory, and one CPU calls
both ends in turn, without contexts.

rdma_rxe cuts messages into packets of 1024 bytes, which go through the network stack and
its own tasks, and computes a checksum of each. The software HCA copies them from memory
to memory where they are posted. memcpy() is the same ULP when it has the CPU copy the
same bytes between the same buffers (op=memcpy), with no device involved. Mainline has no
context "thread". Between two devices, the CPU switches between the threads of the two in
the contexts unbound and thread; in workqueue and softirq their lanes take turns.

The run waits until the CPU is idle: while the kernel still tests its ciphers after booting,
softirq and thread would share the CPU with that, and count it.

An end on each CPU: the sender's completions are handled on one CPU, the receiver's on the
other. One pair, one request a call from requests that are built once; a latency is the time
from a post to its completion. Real time, so this depends on the machine, whose processors are
emulated where KVM does not work; medians of the rounds.

Two pairs on two CPUs: each pair is started on a CPU of its own, where its completions are
handled, too; batches of 16. Real time, so this depends on the machine, and on what else it
does: one pair and two pairs take turns, and the median of the ratios counts.

How to reproduce

    scripts/bench hca            # five minutes; writes these files
    scripts/bench hca --quick    # less; keeps nothing
    scripts/bench hca --wall     # time on two processors instead of instructions
    scripts/bench hca --plot     # tables and plots again, from hca.csv
    scripts/bench profile        # where the instructions of a message go
"""


class Results(common.Results):
    """The contents of hca.csv."""

    def __init__(self, path):
        super().__init__(path)
        sent = [row for row in self.rows if row["op"] in OPS]
        self.ops = [op for op in OPS if any(row["op"] == op for row in sent)]
        self.single_ops = [op for op in self.ops if self.pick(op=op, batch=SINGLE)]
        self.batched_ops = [op for op in self.ops if self.pick(op=op, batch=BATCH)]
        self.sizes = sorted({row["size"] for row in sent if row["op"] != "fetch_add"})
        self.windows = sorted({row["window"] for row in sent}, reverse=True)
        self.contexts = [ctx for ctx in CONTEXTS if self.pick(ctx=ctx, layer="kverbs")]
        self.unit = self.about.get("unit", "instructions")

    def each(self, layer, op, size, window, *, batch=SINGLE, ctx="workqueue", to="same"):
        """The cost of a message, or None. The limit knows neither contexts nor batches."""
        if layer == "limit":
            batch, ctx, to = SINGLE, "direct", "same"
        row = self.one(layer=layer, op=op, size=size, window=window, batch=batch, ctx=ctx, to=to)
        return row["ns"] / row["msgs"] if row else None

    def copy(self, size):
        return self.each("cpu", "memcpy", size, 64, batch=BATCH)

    def by_copy(self, op, size, window, **how):
        """Its cost as a multiple of that of memcpy(), or None."""
        return quotient(self.each("kverbs", op, size, window, **how), self.copy(size))

    def ratio(self, op, size, window, **how):
        """The cost with rdma_rxe as a multiple of ours, or None."""
        return quotient(self.each("mainline", op, size, window, **how),
                        self.each("kverbs", op, size, window, **how))

    def worst(self, op, window, batch, **where):
        """The highest cost of 64 bytes in any context, or None."""
        return max((row["ns"] / row["msgs"] for row in
                    self.pick(layer="kverbs", op=op, size=SMALL, window=window, batch=batch,
                              **where)), default=None)

    def speedups(self):
        return [row["two_per_s"] / row["one_per_s"] for row in self.pick(op="cpus")]

    def ends(self, layer, window, column):
        """The median of the rounds with an end on each CPU, or None."""
        values = [row[column] for row in self.pick(op="ends", layer=layer, window=window)]
        return statistics.median(values) if values else None


def quotient(value, by):
    return value / by if value and by else None


# --- for people ---------------------------------------------------------------


def cell(value, digits=0, sign=""):
    return "-" if value is None else f"{value:.{digits}f}{sign}"


def costs(results, op, size, window, **how):
    """Cells: the software HCA, its limit, rdma_rxe, and how many times as much."""
    return [cell(results.each("kverbs", op, size, window, **how)),
            cell(results.each("limit", op, size, window, **how)),
            cell(results.each("mainline", op, size, window, **how)),
            cell(results.ratio(op, size, window, **how), 1, "x")]


def single_table(results):
    yield (f"One request a call: {results.unit} per message, by window; x: rdma_rxe by "
           "software HCA")
    for op in results.single_ops:
        rows = []
        for size in results.sizes:
            for to in ("same", "other"):
                for ctx in results.contexts:
                    if results.pick(op=op, size=size, ctx=ctx, to=to, batch=SINGLE):
                        name = f"{common.size_name(size)} {ctx}"
                        row = [name + (", other" if to == "other" else "")]
                        for window in results.windows:
                            row += costs(results, op, size, window, ctx=ctx, to=to)
                        rows.append(row)
        head = [OPS[op]]
        for window in results.windows:
            head += [f"emu {window}", "limit", f"rxe {window}", ""]
        yield ""
        yield from common.columns(head, rows, 24, 9)
    yield ""


def batch_table(results):
    rows = []
    for op in results.batched_ops:
        for row in results.pick(layer="kverbs", op=op, batch=BATCH):
            how = {"batch": BATCH, "ctx": row["ctx"], "to": row["to"]}
            name = f'{OPS[op]}, {common.size_name(row["size"])} {row["ctx"]}'
            name += ", other" if row["to"] == "other" else ""
            rows.append([name, cell(results.each("kverbs", op, row["size"], 64, **how)),
                         cell(results.each("mainline", op, row["size"], 64, **how)),
                         cell(results.ratio(op, row["size"], 64, **how), 1, "x")])
    yield from common.section(f"Batches of {BATCH}: {results.unit} per message, window 64",
                              ["", "emu", "rxe", ""], rows, 36, 10)


def ends_table(results):
    if not results.pick(op="ends"):
        return
    rows = []
    for window in (64, 1):
        row = [f"window {window}"]
        for layer in ("kverbs", "mainline"):
            row.append(cell(results.ends(layer, window, "per_s")))
            for column in ("p50_ns", "p99_ns"):
                row.append(cell(quotient(results.ends(layer, window, column), 1000), 1))
        row.append(cell(quotient(results.ends("kverbs", window, "per_s"),
                                 results.ends("mainline", window, "per_s")), 1, "x"))
        rows.append(row)
    yield from common.section(
        "An end on each CPU: SEND of 64 bytes, in real time; us: p50 and p99 of the latency",
        ["", "emu a s", "p50 us", "p99 us", "rxe a s", "p50 us", "p99 us", ""], rows, 12, 10)


def copy_table(results):
    if not results.pick(layer="cpu"):
        return
    rows = []
    ops = [op for op in results.single_ops if op != "send_srq"]
    for size in results.sizes:
        row = [common.size_name(size), cell(results.copy(size))]
        for op in ops:
            row += [cell(results.each("kverbs", op, size, 64)),
                    cell(results.by_copy(op, size, 64), 2, "x")]
        rows.append(row)
    head = ["", "memcpy()"]
    for op in ops:
        head += [OPS[op], ""]
    yield from common.section(
        f"Copying: {results.unit} per message, one request a call, and times as much as "
        "memcpy(), window 64", head, rows, 10, 12)


def target(what, value, limit, digits, at_most=True):
    """A line about a limit, or none if it was not measured."""
    if value is None:
        return
    met = value <= limit if at_most else value >= limit
    yield (f"  {what.ljust(72)}{value:.{digits}f}".ljust(84) +
           f"{'at most' if at_most else 'at least'} {limit}{'' if met else '   MISSED'}")


def target_table(results):
    yield f"Targets: {SMALL} bytes in the worst context"
    yield ""
    if results.unit == "instructions":
        for (op, window, to), limit in MAX_SINGLE.items():
            where = "" if to == "same" else ", other device"
            yield from target(f"instructions per {OPS[op]}, one a call, window {window}{where}",
                              results.worst(op, window, SINGLE, to=to), limit, 0)
        for op, limit in MAX_BATCHED.items():
            yield from target(f"instructions per {OPS[op]}, batches of {BATCH}",
                              results.worst(op, 64, BATCH), limit, 0)
        for op in ("send", "write", "read"):
            for window in results.windows:
                yield from target(f"{OPS[op]} of 64 KiB, relative to memcpy(), window {window}",
                                  results.by_copy(op, LARGE, window), MAX_COPY, 2)
    speedups = results.speedups()
    if speedups:
        yield from target("messages per second: two pairs on two CPUs, relative to one pair",
                          statistics.median(speedups), MIN_SPEEDUP, 2, False)
        yield f"    {len(speedups)} rounds, {min(speedups):.2f} to {max(speedups):.2f};"
        yield f'    {results.about.get("cpus", "?")}'
    yield ""


def table(results):
    for part in (target_table, single_table, batch_table, ends_table, copy_table):
        yield from part(results)


# --- as pictures --------------------------------------------------------------

SERIES = {"cpu": 0, "kverbs": 1, "limit": 2, "mainline": 3}
RXE = ("rdma_rxe cuts a message into packets of 1024 bytes, sends each through the network stack "
       "and computes its checksum;", "the software HCA copies memory to memory")
LIMIT = "; the limit is a loop that is no device (hca.txt)"
LINE = ("line: SEND, window 64, one request a call{}; shade: from the least to the most expensive "
        "of all operations, windows, batches{}")


def size_scale(results):
    low, high = min(results.sizes), max(results.sizes)
    return svg.Log(low / 1.5, high * 1.5, results.sizes)


def size_names(results):
    return {size: common.size_name(size) for size in results.sizes}


def shapes(results):
    """How messages are posted: a name, a window and a batch."""
    for window in results.windows:
        yield f"window {window}", window, SINGLE
    if results.batched_ops:
        yield f"batches of {BATCH}", 64, BATCH


def spread(results, layer, size, **wanted):
    """The lowest and the highest cost, whatever is not @wanted; nothing if there is none."""
    found = [row["ns"] / row["msgs"] for row in results.pick(layer=layer, size=size, **wanted)
             if row["msgs"]]
    return (min(found), max(found)) if found else ()


def draw(panel, layer, band, line):
    if len(band) > 1:
        panel.band(SERIES[layer], band)
    panel.line(SERIES[layer], line)


def plot_cost(results, path):
    """By size: a line for each layer, and a band around it."""
    layers = [layer for layer in SERIES if results.pick(layer=layer)]
    bands = {layer: [(size, *spread(results, layer, size)) for size in results.sizes
                     if spread(results, layer, size)] for layer in layers}
    y_scale = svg.Log.around([cost for band in bands.values() for _, *ends in band
                              for cost in ends])
    figure = svg.Figure(760, 400, f"What a message costs: {results.unit}, by size",
                        results.remark(), RXE[0], RXE[1] + LIMIT,
                        LINE.format(", workqueue", " and contexts"))
    figure.legend = [(SERIES[layer], LAYERS[layer]) for layer in layers]
    panel = figure.panel(90, 35, 620, 290, size_scale(results), y_scale)
    panel.axes("bytes of a message", f"{results.unit} per message", "", size_names(results))
    for layer in layers:
        cost = results.copy if layer == "cpu" else (
            lambda size, layer=layer: results.each(layer, "send", size, 64))
        draw(panel, layer, bands[layer], [(size, cost(size)) for size in results.sizes
                                          if cost(size)])
    figure.write(path)


def plot_contexts(results, path):
    """By context: 64 bytes, the software HCA and rdma_rxe."""
    layers = [layer for layer in ("kverbs", "mainline") if results.pick(layer=layer)]
    names = dict(enumerate(results.contexts))
    bands = {layer: [(at, *spread(results, layer, SMALL, ctx=ctx)) for at, ctx in names.items()
                     if spread(results, layer, SMALL, ctx=ctx)] for layer in layers}
    limit = results.each("limit", "send", SMALL, 64)
    figure = svg.Figure(760, 380, f"What 64 bytes cost: {results.unit}, by polling context",
                        results.remark(), LINE.format("", " and devices"),
                        'mainline has no context "thread"')
    figure.legend = [(SERIES[layer], LAYERS[layer]) for layer in layers]
    y_scale = svg.Log.close([cost for band in bands.values() for _, *ends in band
                             for cost in ends] + ([limit] if limit else []))
    panel = figure.panel(90, 35, 560, 270,
                         svg.Linear(-0.5, len(names) - 0.5, list(names)), y_scale)
    panel.axes("polling context", f"{results.unit} per message", "", names)
    for layer in layers:
        line = [(at, results.each(layer, "send", SMALL, 64, ctx=ctx))
                for at, ctx in names.items()]
        draw(panel, layer, bands[layer], [point for point in line if point[1]])
    if limit:
        panel.limit(limit, "limit, a SEND")
    figure.write(path)


def plot_ratio(results, path):
    """A panel for each operation, a line for each way to post."""
    ratios = {(op, shape[0]): [(size, results.ratio(op, size, shape[1], batch=shape[2]))
                               for size in results.sizes
                               if results.ratio(op, size, shape[1], batch=shape[2])]
              for op in results.single_ops for shape in shapes(results)}
    known = [ratio for points in ratios.values() for _, ratio in points]
    if not known:
        return
    ops = [op for op in results.single_ops
           if any(ratios[op, shape[0]] for shape in shapes(results))]
    wide = 200
    figure = svg.Figure(110 + len(ops) * (wide + 34), 300,
                        f"The same message over rdma_rxe: times the {results.unit} "
                        "that it costs over the software HCA", results.remark(), *RXE)
    names = [shape[0] for shape in shapes(results)]
    figure.legend = [(n + 1, name) for n, name in enumerate(names)]
    for column, op in enumerate(ops):
        panel = figure.panel(80 + column * (wide + 34), 50, wide, 190,
                             size_scale(results), svg.Linear(0, max(known) * 1.1))
        panel.axes("bytes of a message", "rdma_rxe / software HCA" if column == 0 else "",
                   OPS[op], size_names(results), column == 0)
        for n, name in enumerate(names):
            if ratios[op, name]:
                panel.line(n + 1, ratios[op, name])
    figure.write(path)


def write_plots(results, directory):
    plot_cost(results, f"{directory}/hca-cost.svg")
    plot_contexts(results, f"{directory}/hca-contexts.svg")
    plot_ratio(results, f"{directory}/hca-ratio.svg")


if __name__ == "__main__":
    common.main("op", COLUMNS, Results, table, ABOUT, write_plots)
