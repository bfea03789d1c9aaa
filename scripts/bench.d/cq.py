#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench cq".

usage: cq.py csv <rows of the guest> <provenance>    the results, as CSV
       cq.py table <csv>                             the same as a table
       cq.py plots <csv> <directory>                 and as SVG
"""

import sys

import common
import svg

COLUMNS = ["layer", "mode", "ctx", "cqs", "count", "load", "rate", "window", "done", "ns",
           "each_ps", "per_s", "wake_ns", "bursts", "schedules", "p50", "p99", "p999", "max",
           "cqe_p50", "cqe_p99", "cqe_p999", "cqe_max", "stalls"]
CONTEXTS = ["direct", "softirq", "thread", "workqueue", "unbound"]
LAYERS = {"kverbs": "kverbs, emulated HCA", "mainline": "mainline 6.12, rdma_rxe"}
RANKS = {"p50": "median", "p99": "99th percentile", "p999": "99.9th percentile"}
MAX_COST = 25   # instructions a completion

ABOUT = """\
What it measures

Messages are RDMA WRITEs of no bytes: nothing is copied, and what is left is posting,
completing and the CQ layer. Each CQ has a queue pair that is connected to itself.
kverbs runs over its emulated HCA, which executes a message where it is posted.
Mainline's CQ layer runs over rdma_rxe, in the same boot, measured by the same source
(ulp/bench/cq); a message takes ten times as long there, so rates and delays are the two
stacks', while the cost of a completion is the CQ layers' alone.

Cost: all completions of a burst are in the CQ before the first one is polled. They are
polled by a plain loop of ib_poll_cq(), 16 at a time, and through the CQ layer; the time
from the first to the last of them is taken, and the difference of the two divided by
their number. So this is what the CQ layer adds between the return of ib_poll_cq() and
the entry of done(), call and return included. Fastest of 8 bursts, one CQ with 4096
completions, or 64 CQs with 64 each. Limit: 25 instructions with one CQ, and one
scheduling of the context for a burst. (Mainline's ib_process_cq_direct() polls 8.)

Rate: closed loop. done() posts the next message; 1024 are outstanding in all.

Delay: open loop. Messages arrive at random (exponential gaps, random queue pair). A
timer posts them in hard interrupt, at most every 16 microseconds, as a device moderates
its interrupts. Load 100% is the rate that is reached when all messages are due at once.
The delay is from post to done(); it includes the HCA's part, and waiting for messages
posted by the same interrupt. A consumer of DIRECT polls all CQs in turn; it keeps
rdma_rxe's own tasks from the only processor for a scheduler's slice, hence the
milliseconds there. cq.csv also has, for kverbs, the delay from the completion to done().

How to reproduce

    scripts/bench cq            # five to ten minutes; writes these files
    scripts/bench cq --quick    # one minute; keeps nothing
    scripts/bench cq --wall     # time on two processors instead of instructions
    scripts/bench cq --plot     # tables and plots again, from cq.csv
"""


def make_csv(rows_path, provenance_path):
    common.write_csv(common.read_rows(rows_path, "mode"), COLUMNS, provenance_path)


class Results(common.Results):
    """The contents of cq.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.layers = [layer for layer in LAYERS if self.pick(layer=layer)]
        self.cqs = sorted({row["cqs"] for row in self.pick(mode="load")})
        self.loads = sorted({row["load"] for row in self.rows
                             if row["mode"] == "load" and row["rate"]} - {100})

    def contexts(self, layer):
        return [ctx for ctx in CONTEXTS if self.pick(layer=layer, ctx=ctx)]

    def cost(self, layer, ctx, cqs):
        """Thousandths of an instruction beyond the plain loop, or None."""
        bare = self.one(layer=layer, mode="burst", ctx="bare", cqs=cqs)
        row = self.one(layer=layer, mode="burst", ctx=ctx, cqs=cqs)
        return row["each_ps"] - bare["each_ps"] if row and bare else None


# --- for people ---------------------------------------------------------------


def cost_table(results):
    rows = []
    for layer in results.layers:
        for cqs in sorted({row["cqs"] for row in results.pick(mode="burst")}):
            bare = results.one(layer=layer, mode="burst", ctx="bare", cqs=cqs)
            if not bare:
                continue
            costs = [results.cost(layer, ctx, cqs) for ctx in CONTEXTS]
            rows.append([f"{layer}, {cqs} CQ{'s' if cqs > 1 else ''}",
                         f'{bare["each_ps"] / 1000:.1f}'] +
                        ["-" if cost is None else f"{cost / 1000:+.1f}" for cost in costs])
    if rows:
        yield "Cost: instructions a completion, of the plain loop, and beyond it"
        yield ""
        yield from common.columns(["", "plain loop"] + CONTEXTS, rows)
        yield ""


def burst_table(results, title, value):
    rows = []
    for layer in results.layers:
        found = [results.one(layer=layer, mode="burst", ctx=ctx, cqs=1) for ctx in CONTEXTS]
        if any(found):
            rows.append([layer] + [value(row) if row else "-" for row in found])
    if rows:
        yield title
        yield ""
        yield from common.columns([""] + CONTEXTS, rows)
        yield ""


def rate_table(results):
    yield "Rate: thousands of messages a second, closed loop, by number of CQs"
    yield ""
    rows = []
    for layer in results.layers:
        for ctx in results.contexts(layer):
            found = [results.one(layer=layer, mode="load", rate=0, ctx=ctx, cqs=cqs)
                     for cqs in results.cqs]
            rows.append([f"{layer}, {ctx}"] +
                        [f'{row["per_s"] / 1000:.1f}' if row else "-" for row in found])
    yield from common.columns(["CQs"] + [str(cqs) for cqs in results.cqs], rows)
    yield ""


def micro(ns):
    return f"{ns / 1000:.1f}" if ns < 100000 else f"{ns / 1000:.0f}"


def delay_tables(results):
    yield "Delay: microseconds, 50th / 99th / 99.9th percentile, by load"
    for layer in results.layers:
        for cqs in results.cqs:
            rows = []
            for ctx in results.contexts(layer):
                found = [results.one(layer=layer, mode="load", ctx=ctx, cqs=cqs, load=load)
                         for load in results.loads]
                rows.append([ctx] + ["/".join(micro(row[rank]) for rank in RANKS)
                                     if row else "-" for row in found])
            yield ""
            yield from common.columns([f"{layer}, {cqs} CQ{'s' if cqs > 1 else ''}"] +
                                      [f"{load}%" for load in results.loads], rows, 20, 21)
    yield ""


def per_burst(row):
    return f'{row["schedules"] / row["bursts"]:g}'


def write_table(results):
    for line in results.heading("cq"):
        print(line)
    if results.about.get("quick") == "true":
        print("--quick: few messages; percentiles are rough")
    print()
    for lines in (cost_table(results),
                  burst_table(results, "Schedulings of the context for a burst of 4096, one CQ",
                              per_burst),
                  burst_table(results, "Instructions from the notification to the first done()",
                              lambda row: str(row["wake_ns"])),
                  rate_table(results), delay_tables(results)):
        for line in lines:
            print(line.rstrip())
    print(ABOUT, end="")


# --- as pictures --------------------------------------------------------------


def add_legend(figure, results, layers):
    figure.legend = [(i, ctx) for i, ctx in enumerate(CONTEXTS)
                     if any(ctx in results.contexts(layer) for layer in layers)]


def plot_cost(results, directory):
    costs = {(layer, ctx): results.cost(layer, ctx, 1)
             for layer in results.layers for ctx in CONTEXTS}
    known = [cost / 1000 for cost in costs.values() if cost is not None]
    if not known:
        return
    figure = svg.Figure(900, 340, "What the CQ layer adds to a completion",
                        results.remark())
    top = max(known + [MAX_COST]) * 1.2
    width = (900 - 110) / len(results.layers) - 40
    for i, layer in enumerate(results.layers):
        names = {n: ctx for n, ctx in enumerate(CONTEXTS) if costs[layer, ctx] is not None}
        panel = figure.panel(80 + i * (width + 60), 90, width, 200,
                             svg.Linear(-0.7, max(names) + 0.7, list(names)),
                             svg.Linear(0, top))
        panel.axes("polling context", "instructions a completion" if i == 0 else "",
                   LAYERS[layer], names, i == 0)
        for n, ctx in names.items():
            cost = costs[layer, ctx] / 1000
            panel.bar(n, n, width / 9, cost, f"{cost:.1f}")
        if layer == "kverbs":
            panel.limit(MAX_COST, f"limit {MAX_COST}")
    figure.write(f"{directory}/cq-cost.svg")


def plot_rate(results, directory):
    rows = results.pick(mode="load", rate=0)
    figure = svg.Figure(900, 400, "Messages a second, closed loop, by number of CQs",
                        results.remark())
    add_legend(figure, results, results.layers)
    width = (900 - 110) / len(results.layers) - 40
    low, high = min(results.cqs), max(results.cqs)
    for i, layer in enumerate(results.layers):
        top = max(row["per_s"] for row in rows if row["layer"] == layer) * 1.15
        panel = figure.panel(80 + i * (width + 60), 120, width, 220,
                             svg.Log(low / 1.2, high * 1.2, results.cqs), svg.Linear(0, top))
        panel.axes("completion queues", "messages a second" if i == 0 else "", LAYERS[layer])
        for n, ctx in enumerate(CONTEXTS):
            points = [(row["cqs"], row["per_s"]) for row in rows
                      if row["layer"] == layer and row["ctx"] == ctx]
            if points:
                panel.line(n, sorted(points))
    figure.write(f"{directory}/cq-rate.svg")


def plot_delay(results, layer, name):
    rows = [row for row in results.pick(layer=layer, mode="load")
            if row["load"] in results.loads]
    x_scale = svg.Linear(0, max(row["per_s"] for row in rows) * 1.05)
    y_scale = svg.Log.around([row[rank] / 1000 for row in rows for rank in RANKS])
    points_at = ", ".join(str(load) for load in results.loads)
    wide, high = 210, 165
    figure = svg.Figure(90 + len(results.cqs) * (wide + 34),
                        120 + len(RANKS) * (high + 62),
                        f"Delay of a message from post to done(): {LAYERS[layer]}",
                        f"{results.remark()}; "
                        f"points at {points_at}% load")
    add_legend(figure, results, [layer])
    for column, cqs in enumerate(results.cqs):
        for line, (rank, rank_name) in enumerate(RANKS.items()):
            panel = figure.panel(76 + column * (wide + 34), 118 + line * (high + 62), wide, high,
                                 x_scale, y_scale)
            panel.axes("messages a second" if line == len(RANKS) - 1 else "",
                       "microseconds" if column == 0 else "",
                       f"{rank_name}, {cqs} CQ{'s' if cqs > 1 else ''}",
                       y_ticks=column == 0)
            for n, ctx in enumerate(CONTEXTS):
                points = [(row["per_s"], row[rank] / 1000) for row in rows
                          if row["ctx"] == ctx and row["cqs"] == cqs]
                if points:
                    panel.line(n, sorted(points))
    figure.write(name)


def write_plots(results, directory):
    plot_cost(results, directory)
    plot_rate(results, directory)
    for layer in results.layers:
        suffix = "" if layer == "kverbs" else f"-{layer}"
        plot_delay(results, layer, f"{directory}/cq-delay{suffix}.svg")


if __name__ == "__main__":
    common.main(sys.argv[1:], __doc__, make_csv, write_table, write_plots, Results)
