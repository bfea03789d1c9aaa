#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench scale"; common.main() has the usage."""

import common
import svg

COLUMNS = ["mode", "qps", "cqs", "cpus", "depth", "bytes", "create_ns", "connect_ns",
           "destroy_ns", "only_ns", "random_ns"]
# The runs of each sweep differ in one of these.
KEYS = {"qps": "queue pairs", "cqs": "CQs", "cpus": "CPUs"}
MAX_SLOPE = 1.2     # a message on one of many, by one where there are few
MANY = 1000         # as many queue pairs take memory that was not in use before

ABOUT = """\
What it measures

ulp/bench/scale: queue pairs (RC) of one device, connected in pairs, which take the CQs by
turns. A message is a SEND of 64 bytes: a receive is posted, then the request, and both
completions are polled by hand, one message at a time. Each CPU has pairs and CQs of its own
and takes a pair at random for each message. Everything that all CPUs execute meanwhile,
clock interrupts included, is divided by the messages of all of them: so a figure that stays
the same as CPUs are added means that they do not get in each other's way. It counts
instructions; the time that cache lines take to move between CPUs is not in it
(Documentation/emu.rst counts those).

Before the figure is taken, each queue pair has sent a message: its first one finds out what
later ones need not. Each run is done twice, and the cheaper one counts: what the kernel does
besides, on any CPU, only adds. All runs are of one boot with four processors, which QEMU executes by
turns. "One pair" is the same run while only one pair exists for each CPU.

Bytes: the memory that is gone after the queue pairs were made, divided by their number:
both queues of 64 entries, the queue pair, and what the midlayer keeps of it.

Slopes, and what explains them

  queue pairs   None: the queue pair remembers its peer. Only its first message, and the first
                one after any queue pair or address has come or gone, looks for it in a
                tree, which grows by a level at 64 and at 4,096 numbers.
  CQs           None: a CQ is reached by a pointer in the queue pair.
  CPUs          None: what a message writes belongs to its queue pairs, their CQ, or the
                CPU. Each CPU has its own clock interrupt, which the messages of that CPU pay
                for.
  bytes         None: the memory of a queue pair does not depend on how many there are. Only
                from 1,000 on, since fewer find room in pages that were in use before.

How to reproduce

    scripts/bench scale            # three minutes; writes these files
    scripts/bench scale --quick    # less; keeps nothing
    scripts/bench scale --plot     # table and plot again, from scale.csv
"""


class Results(common.Results):
    """The contents of scale.csv."""

    def sweep(self, key):
        """The runs that differ in @key, by all else: a name, and rows in order.

        Of the same run the cheaper: what the kernel does besides only adds.
        """
        others = [other for other in KEYS if other != key]
        found = {}
        for row in self.rows:
            runs = found.setdefault(tuple(row[other] for other in others), {})
            best = runs.get(row[key])
            if not best or row["random_ns"] < best["random_ns"]:
                runs[row[key]] = row
        for values, runs in sorted(found.items()):
            if len(runs) > 1:
                name = ", ".join(f"{value:,} {KEYS[other] if value > 1 else KEYS[other][:-1]}"
                                 for other, value in zip(others, values))
                yield name, [runs[value] for value in sorted(runs)]


def slope(rows):
    """The highest cost of a message by the lowest."""
    costs = [row["random_ns"] for row in rows]
    return max(costs) / min(costs)


# --- for people ---------------------------------------------------------------


def sweep_table(results, key):
    for name, rows in results.sweep(key):
        yield f"By {KEYS[key]}: {name}"
        yield ""
        yield from common.columns(
            [KEYS[key]] + [f"{row[key]:,}" for row in rows],
            [["instructions per message"] + [f'{row["random_ns"]:,}' for row in rows],
             ["  one pair"] + [f'{row["only_ns"]:,}' for row in rows],
             ["bytes per queue pair"] + [f'{row["bytes"]:,}' if row["qps"] >= MANY else "-"
                                       for row in rows]])
        yield f"  most expensive by least expensive message: {slope(rows):.2f}, at most {MAX_SLOPE}" + \
            ("" if slope(rows) <= MAX_SLOPE else "   MISSED")
        yield ""


def table(results):
    for key in KEYS:
        yield from sweep_table(results, key)


# --- as pictures --------------------------------------------------------------


def draw(figure, results, key, value, place, title):
    """A panel: a line for each sweep of @key."""
    sweeps = list(results.sweep(key))
    ticks = sorted({row[key] for _, rows in sweeps for row in rows})
    top = 1.15 * max(row[value] for row in results.rows)
    panel = figure.panel(*place, svg.Log(min(ticks) / 1.3, max(ticks) * 1.3, ticks),
                         svg.Linear(0, top))
    panel.axes(KEYS[key], "", title, {tick: svg.number(tick) for tick in ticks})
    for n, (name, rows) in enumerate(sweeps):
        points = [(row[key], row[value]) for row in rows
                  if value != "bytes" or row["qps"] >= MANY]
        panel.line(n + 1, points)
        panel.text(place[0] + 8, place[1] + place[3] - 10 - 16 * n, name, "start", "dim")


def write_plots(results, directory):
    figure = svg.Figure(1240, 360, "What many queue pairs, CQs and CPUs cost", results.remark())
    places = [(90 + n * 300, 90, 210, 200) for n in range(4)]
    for key, place in zip(KEYS, places):
        draw(figure, results, key, "random_ns", place, f"instructions per message, by {KEYS[key]}")
    draw(figure, results, "qps", "bytes", places[3], "bytes per queue pair")
    figure.write(f"{directory}/scale.svg")


if __name__ == "__main__":
    common.main("mode", COLUMNS, Results, table, ABOUT, write_plots)
