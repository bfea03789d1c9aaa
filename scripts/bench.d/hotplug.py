#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench hotplug"; common.main() has the usage."""

import common
import svg

COLUMNS = ["kind", "clients", "client", "cycle", "come_ns", "go_ns",
           "come_cpu_ns", "go_cpu_ns"]
WAYS = {"come": "device added", "go": "device removed"}
CLIENTS = {"none": "without a client", "hotplug": "19 queue pairs, 18 of them busy"}

ABOUT = """\
What it measures

By clients: 100 devices of the software HCA are made through configfs, one after the other, and
removed again, with so many clients of ulp/bench/scale, which are told of each and do nothing. The
processor time of the process that does this, by device; waiting for grace periods is not in it.

Plug: one device comes and goes, and the time that this takes is measured from the outside,
waiting included: without a client, and with ulp/bench/hotplug, which has 19 queue pairs and seven
completion queues on it, and requests in progress on 18 of the queue pairs. It drains and
destroys them all in its remove(), and accounts for each request: none was lost, doubled or
late. Its sessions vary what they do, so that times come in groups (Documentation/hotplug.rst).
An instruction takes a nanosecond of the guest's time; while its one processor waits, for
a grace period or for a timer, that time goes on. Documentation/hotplug.rst has the bounds that
the tests want on two processors, in real time.

How to reproduce

    scripts/bench hotplug           # two minutes; writes these files
    scripts/bench hotplug --plot    # table and plot again, from hotplug.csv
"""


class Results(common.Results):
    """The contents of hotplug.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.by_clients = sorted(self.pick(kind="clients"), key=lambda row: row["clients"])

    def times(self, client, way):
        """Milliseconds of each cycle, the shortest first; with @way "go_cpu" of the processor."""
        return sorted(row[f"{way}_ns"] / 1e6 for row in self.pick(kind="plug", client=client))


def rank(times, percent):
    return times[min(len(times) * percent // 100, len(times) - 1)]


def table(results):
    rows = [[str(row["clients"]), f'{row["come_ns"] / 1000:.1f}', f'{row["go_ns"] / 1000:.1f}']
            for row in results.by_clients]
    yield from common.section("By clients: thousands of instructions for a device",
                              ["clients", "added", "removed"], rows, 10)
    rows = []
    for client, name in CLIENTS.items():
        cells = [results.times(client, way) for way in WAYS]
        rows.append([f"{name}, {len(cells[0])} cycles"] +
                    [f"{rank(times, 50):.2f} / {rank(times, 90):.2f} / {times[-1]:.2f}"
                     for times in cells])
    yield from common.section(
        "Plug: milliseconds of the guest's time, median / 90th percentile / longest",
        [""] + list(WAYS.values()), rows, 46, 26)
    busy, gone = (rank(results.times("hotplug", way), 50) for way in ("go_cpu", "go"))
    yield "Where requests were in progress, the process that removed the device ran for"
    yield f"{busy:.2f} of the {gone:.2f} milliseconds; it waited for the others."
    yield ""


def write_plots(results, directory):
    figure = svg.Figure(850, 360, "Adding and removing a device", results.remark(),
                        "right, solid: with requests in progress on 18 of 19 queue pairs; dashed: "
                        "without a client; waiting for grace periods and timers is included")
    figure.legend = [(n + 1, name) for n, name in enumerate(WAYS.values())]
    clients = [row["clients"] for row in results.by_clients]
    left = figure.panel(80, 55, 310, 230, svg.Log(min(clients) / 1.5, max(clients) * 1.5, clients),
                        svg.Linear(0, max(row["come_ns"] for row in results.by_clients) / 9e5))
    left.axes("registered clients", "millions of instructions", "processor time per device")
    for n, way in enumerate(WAYS):
        left.line(n + 1, [(row["clients"], row[f"{way}_ns"] / 1e6) for row in results.by_clients])
    everything = [time for client in CLIENTS for way in WAYS for time in results.times(client, way)]
    right = figure.panel(480, 55, 310, 230, svg.Log.close(everything), svg.Linear(0, 100))
    right.axes("milliseconds of guest time", "% of cycles within that time", "time to add or "
               "remove")
    for client, name in CLIENTS.items():
        for n, way in enumerate(WAYS):
            times = results.times(client, way)
            right.curve(n + 1, [(time, 100 * (i + 1) / len(times))
                                for i, time in enumerate(times)], client != "none")
    figure.write(f"{directory}/hotplug.svg")


if __name__ == "__main__":
    common.main("kind", COLUMNS, Results, table, ABOUT, write_plots)
