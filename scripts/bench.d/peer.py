#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench peer"; common.main() has the usage."""

import common
import svg

COLUMNS = ["live", "bytes", "pages", "reg_ns", "dereg_ns", "client_reg_ns", "client_dereg_ns"]
WAYS = {"reg": "registering", "dereg": "deregistering"}

ABOUT = """\
What it measures

ulp/bench/peer registers and deregisters memory of a client of its own, whose functions do
nothing but make a table of non-contiguous pages of 64 KiB. What they take is measured apart
and subtracted, so that the figures are the registry's, the core's and the software HCA's.
The fastest of several batches counts. The other regions are of the same client and device,
and stay registered.

How to reproduce

    scripts/bench peer           # one minute; writes these files
    scripts/bench peer --plot    # table and plot again, from peer.csv
"""


class Results(common.Results):
    """The contents of peer.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.live = sorted({row["live"] for row in self.rows})
        self.sizes = sorted({row["bytes"] for row in self.rows})

    def cost(self, way, live, size):
        """Instructions beyond the client's own."""
        row = self.one(live=live, bytes=size)
        return row[f"{way}_ns"] - row[f"client_{way}_ns"]


def table(results):
    for way, name in WAYS.items():
        rows = [[common.size_name(size)] + [str(results.cost(way, live, size))
                                            for live in results.live] for size in results.sizes]
        yield from common.section(
            f"{name.capitalize()}: instructions, by the number of other regions",
            [""] + [str(live) for live in results.live], rows, 10, 12)


def write_plots(results, directory):
    few, small = min(results.live), min(results.sizes)
    values = [results.cost(way, live, size) for way in WAYS for live in results.live
              for size in results.sizes]
    y_scale = svg.Log.around(values)
    figure = svg.Figure(800, 350, "What a region of peer memory costs", results.remark(),
                        "without the functions of the driver that owns the memory;",
                        "the memory consists of non-contiguous pages of 64 KiB, the most work")
    figure.legend = [(n + 1, name) for n, name in enumerate(WAYS.values())]
    sizes = {size: common.size_name(size) for size in results.sizes}
    left = figure.panel(80, 55, 320, 220,
                        svg.Log(small / 2, max(results.sizes) * 2, results.sizes), y_scale)
    left.axes("size of the region", "instructions", f"{few} other regions", sizes)
    right = figure.panel(430, 55, 320, 220,
                         svg.Log(few / 2, max(results.live) * 2, results.live), y_scale)
    right.axes("other regions", "", f"a region of {sizes[small]}", None, False)
    for n, way in enumerate(WAYS):
        left.line(n + 1, [(size, results.cost(way, few, size)) for size in results.sizes])
        right.line(n + 1, [(live, results.cost(way, live, small)) for live in results.live])
    figure.write(f"{directory}/peer.svg")


if __name__ == "__main__":
    common.main("live", COLUMNS, Results, table, ABOUT, write_plots)
