#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench cq"; common.main() has the usage."""

import common
import svg

COLUMNS = ["layer", "mode", "ctx", "cqs", "count", "load", "rate", "window", "done", "ns",
           "each_ps", "per_s", "wake_ns", "bursts", "schedules", "p50", "p99", "p999", "max",
           "cqe_p50", "cqe_p99", "cqe_p999", "cqe_max", "stalls"]
CONTEXTS = ["direct", "softirq", "thread", "workqueue", "unbound"]
LAYERS = {"kverbs": "kverbs, software HCA", "mainline": "mainline 6.12, rdma_rxe"}
RANKS = {"p50": "median", "p99": "99th percentile", "p999": "99.9th percentile"}
MAX_COST = 14   # instructions per completion, one CQ

# Why mainline's layer is cheaper.
CHEAPER = ("mainline polls and calls done(), in a budget, and does nothing else; kverbs serves the "
           "CQs of a vector in turn, by share and time, counts what it does,",
           "and lets another runner take over from a done() that sleeps (cq.txt)")

ABOUT = """\
What it measures

Messages are RDMA WRITEs of no bytes: nothing is copied, and what is left is posting,
completing and the CQ layer. Each CQ has a queue pair that is connected to itself.
kverbs runs over its software HCA, which executes a message where it is posted.
Mainline's CQ layer runs over rdma_rxe, in the same boot, measured by the same source
(ulp/bench/cq); a message takes ten times as long there, so rates and delays are the two
stacks', while the cost of a completion is the CQ layers' alone.

Cost: all completions of a burst are in the CQ before the first one is polled. They are
polled by a plain loop of ib_poll_cq(), 16 at a time, and through the CQ layer; the time
from the first to the last of them is taken, and the difference of the two divided by
their number. So this is what the CQ layer adds between the return of ib_poll_cq() and
the entry of done(), call and return included. Fastest of 8 bursts, one CQ with 4096
completions, or 64 CQs with 64 each. Limit: 14 instructions with one CQ, 16 with 64, and
one scheduling of the context for a burst. (Mainline's ib_process_cq_direct() polls 8.)
Ten of them are the call of done(): looking for the function, its arguments, and which
completion is handed out. The others are spent once for each share of 16: the CQ's place
among the others, the clock, counters, and that another runner can take over the rest of
the batch when a done() sleeps. A CQ that is alone is polled for 64 at a time, which saves
some three instructions per completion in the driver: that is in the figures.

Rate: closed loop. done() posts the next message; 1024 are outstanding in all.

Delay: open loop. Messages arrive at random (exponential gaps, random queue pair). A
timer posts them in hard interrupt, at most every 16 microseconds, as a device moderates
its interrupts. Load 100% is the rate that is reached when all messages are due at once.
The delay is from post to done(); it includes the HCA's part, and waiting for messages
posted by the same interrupt. A consumer of DIRECT polls all CQs in turn; it keeps
rdma_rxe's own tasks from the only processor for a scheduler's slice, hence the
milliseconds there. cq.csv also has, for kverbs, the delay from the completion to done().
A run has 20,000 messages over kverbs, so one pause of the processor can make a high
percentile. An earlier measurement had such a one: thread, 512 CQs, 50% load, 127 at the 99th
percentile and 388 at most, where the other contexts had 37; that is the trace of a single
pause of 388,000 instructions. It did not come back in 18 repetitions. What had the processor
then is not known: the thread has the highest nice value, as the work queues have.

How to reproduce

    scripts/bench cq            # five to ten minutes; writes these files
    scripts/bench cq --quick    # one minute; keeps nothing
    scripts/bench cq --wall     # time on two processors instead of instructions
    scripts/bench cq --plot     # tables and plots again, from cq.csv
"""


class Results(common.Results):
    """The contents of cq.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.layers = [layer for layer in LAYERS if self.pick(layer=layer)]
        self.unit = self.about.get("unit", "instructions")
        self.kilo = "microseconds" if self.unit == "nanoseconds" else f"thousands of {self.unit}"
        self.cqs = sorted({row["cqs"] for row in self.pick(mode="load")})
        self.loads = sorted({row["load"] for row in self.rows
                             if row["mode"] == "load" and row["rate"]} - {100})

    def heading(self, bench):
        yield from super().heading(bench)
        if self.about.get("quick") == "true":
            yield "--quick: few messages; percentiles are rough"

    def second(self):
        """What a second is."""
        if self.unit == "instructions":
            return "a second is a thousand million instructions"
        return "in real time"

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
    yield from common.section("Cost: instructions per completion, of the plain loop, and beyond it",
                              ["", "plain loop"] + CONTEXTS, rows)


def burst_table(results, title, value):
    rows = []
    for layer in results.layers:
        found = [results.one(layer=layer, mode="burst", ctx=ctx, cqs=1) for ctx in CONTEXTS]
        if any(found):
            rows.append([layer] + [value(row) if row else "-" for row in found])
    yield from common.section(title, [""] + CONTEXTS, rows)


def rate_table(results):
    rows = []
    for layer in results.layers:
        for ctx in results.contexts(layer):
            found = [results.one(layer=layer, mode="load", rate=0, ctx=ctx, cqs=cqs)
                     for cqs in results.cqs]
            rows.append([f"{layer}, {ctx}"] +
                        [f'{row["per_s"] / 1000:.1f}' if row else "-" for row in found])
    yield "Rate: thousands of messages per second, closed loop, by number of CQs;"
    yield from common.section(results.second(), ["CQs"] + [str(cqs) for cqs in results.cqs], rows)


def micro(ns):
    return f"{ns / 1000:.1f}" if ns < 100000 else f"{ns / 1000:.0f}"


def delay_tables(results):
    yield f"Delay: {results.kilo}, 50th / 99th / 99.9th percentile, by load"
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


def table(results):
    yield from cost_table(results)
    yield from burst_table(results, "Schedulings of the context for a burst of 4096, one CQ",
                           per_burst)
    yield from burst_table(results, "Instructions from the notification to the first done()",
                           lambda row: str(row["wake_ns"]))
    yield from rate_table(results)
    yield from delay_tables(results)


# --- as pictures --------------------------------------------------------------

SERIES = {"kverbs": 1, "mainline": 3}
# What the CQ layer runs by itself; a consumer of DIRECT polls when it likes.
OWN = [ctx for ctx in CONTEXTS if ctx != "direct"]


def plot_cost(results, directory):
    """Bars side by side, a pair for each context."""
    costs = {(layer, ctx): results.cost(layer, ctx, 1)
             for layer in results.layers for ctx in CONTEXTS}
    known = [cost / 1000 for cost in costs.values() if cost is not None]
    if not known:
        return
    names = dict(enumerate(CONTEXTS))
    figure = svg.Figure(780, 330, "What the CQ layer adds to a completion, beyond a plain loop "
                        "of ib_poll_cq()", results.remark(), *CHEAPER)
    figure.legend = [(SERIES[layer], LAYERS[layer]) for layer in results.layers]
    panel = figure.panel(80, 35, 630, 220, svg.Linear(-0.6, len(CONTEXTS) - 0.4, list(names)),
                         svg.Linear(0, max(known + [MAX_COST]) * 1.1))
    panel.axes("polling context", f"{results.unit} a completion", "", names)
    for n, ctx in names.items():
        for i, layer in enumerate(results.layers):
            if costs[layer, ctx] is not None:
                panel.bar(SERIES[layer], n + 0.4 * i - 0.2, 46, costs[layer, ctx] / 1000,
                          f"{costs[layer, ctx] / 1000:.1f}")
    panel.limit(MAX_COST, "kverbs' limit")
    figure.write(f"{directory}/cq-cost.svg")


def plot_rate(results, directory):
    """One axis for both layers: a factor of ten is to be seen."""
    rows = results.pick(mode="load", rate=0)
    figure = svg.Figure(760, 410, "Messages in a second, closed loop, by number of CQs",
                        results.remark(), results.second(),
                        "most of the factor between the two groups is the HCA's: "
                        "rdma_rxe sends each message through the network stack")
    figure.legend = [(i, ctx) for i, ctx in enumerate(CONTEXTS)]
    panel = figure.panel(90, 35, 480, 300,
                         svg.Log(min(results.cqs) / 1.2, max(results.cqs) * 1.2, results.cqs),
                         svg.Log.close([row["per_s"] for row in rows]))
    panel.axes("completion queues", "messages per second")
    for layer in results.layers:
        for n, ctx in enumerate(CONTEXTS):
            points = sorted((row["cqs"], row["per_s"]) for row in rows
                            if row["layer"] == layer and row["ctx"] == ctx)
            if points:
                panel.line(n, points)
        last = [row["per_s"] for row in rows
                if row["layer"] == layer and row["cqs"] == max(results.cqs)]
        panel.text(panel.x + panel.width + 8, panel.py(max(last)) + 4, LAYERS[layer], "start")
    figure.write(f"{directory}/cq-rate.svg")


def plot_delay(results, directory):
    """A panel for each percentile: both layers, with the fewest CQs and with the most."""
    rows = [row for row in results.pick(mode="load")
            if row["load"] in results.loads and row["ctx"] in OWN]
    x_scale = svg.Log.close([row["per_s"] for row in rows])
    x_scale.ticks = [tick for tick in x_scale.ticks if f"{tick:.0f}"[0] == "1"]
    y_scale = svg.Log.around([row[rank] / 1000 for row in rows for rank in RANKS])
    wide, ends = 270, [min(results.cqs), max(results.cqs)]
    curves = [(layer, cqs) for layer in results.layers for cqs in ends]
    figure = svg.Figure(90 + len(RANKS) * (wide + 34), 380,
                        "Delay of a message from post to done(), by the rate of messages",
                        results.remark(),
                        f"{'; '.join(LAYERS[layer] for layer in results.layers)}; "
                        f"{results.second()}",
                        "line: workqueue; shade: from the best to the worst of "
                        f"{', '.join(OWN)}; points at "
                        f"{', '.join(str(load) for load in results.loads)}% load",
                        "other numbers of CQs, and DIRECT, which is polled when its consumer "
                        "likes: cq.txt, which also says what stands out")
    figure.legend = [(DELAY_SERIES[layer][cqs == ends[1]],
                      f"{layer}, {cqs} CQ{'s' if cqs > 1 else ''}")
                     for layer, cqs in curves]
    for column, (rank, rank_name) in enumerate(RANKS.items()):
        panel = figure.panel(76 + column * (wide + 34), 50, wide, 260, x_scale, y_scale)
        panel.axes("messages per second", results.kilo if column == 0 else "", rank_name,
                   y_ticks=column == 0)
        for layer, cqs in curves:
            series = DELAY_SERIES[layer][cqs == ends[1]]
            spread, line = delay_curve(results, layer, cqs, rank)
            panel.band(series, spread)
            panel.line(series, line)
    figure.write(f"{directory}/cq-delay.svg")


# By layer: the fewest CQs, the most.
DELAY_SERIES = {"kverbs": (1, 2), "mainline": (3, 4)}


def delay_curve(results, layer, cqs, rank):
    """Its band over the contexts, and its line."""
    spread, line = [], []
    for load in results.loads:
        found = [row for row in results.pick(layer=layer, mode="load", cqs=cqs, load=load)
                 if row["ctx"] in OWN]
        middle = [row for row in found if row["ctx"] == "workqueue"]
        if middle:
            delays = [row[rank] / 1000 for row in found]
            spread.append((middle[0]["per_s"], min(delays), max(delays)))
            line.append((middle[0]["per_s"], middle[0][rank] / 1000))
    return spread, line


def write_plots(results, directory):
    plot_cost(results, directory)
    plot_rate(results, directory)
    plot_delay(results, directory)


if __name__ == "__main__":
    common.main("mode", COLUMNS, Results, table, ABOUT, write_plots)
