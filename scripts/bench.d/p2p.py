#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench p2p"; common.main() has the usage."""

import common
import svg

COLUMNS = ["kind", "bytes", "region", "host_ns", "p2p_ns", "used", "ns"]
REGIONS = {"fast": "registered by a work request", "user": "of a process's mapping"}
MAX_WRITE, MAX_PAGE = 110, 400      # per cent of host memory's cost; instructions

ABOUT = """\
What it measures

ulp/bench/p2p_write writes by RDMA from system memory to the memory of another PCI device below the
same switch, an ivshmem device of QEMU, and to system memory. The software HCA has a PCI parent
there, but it is the processor that copies: what is compared is the work for a message, not the
speed of a bus. The fastest of several batches counts. Limit: 110 % of system memory's.

ulp/bench/p2p allocates and frees peer-to-peer memory, while little and while nine tenths of the
provider's memory are allocated. Limit: 400 instructions for a page and back.

How to reproduce

    scripts/bench p2p           # one minute; writes these files
    scripts/bench p2p --plot    # table and plot again, from p2p.csv
"""


class Results(common.Results):
    """The contents of p2p.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.writes = self.pick(kind="write")
        self.allocs = self.pick(kind="alloc")
        self.sizes = sorted({row["bytes"] for row in self.writes})


def ratio(row):
    return 100 * row["p2p_ns"] / row["host_ns"]


def table(results):
    rows = [[f'{common.size_name(row["bytes"])}, {row["region"]} region', str(row["host_ns"]),
             str(row["p2p_ns"]), f"{ratio(row):.1f}%"] for row in results.writes]
    yield from common.section(
        "RDMA WRITE: instructions, into system memory and into peer-to-peer memory",
        ["", "system", "peer", ""], rows)
    rows = [[f'{common.size_name(row["bytes"])}, {row["used"]}% allocated', str(row["ns"])]
            for row in results.allocs]
    yield from common.section("Allocating and freeing: instructions", ["", ""], rows)
    yield "Regions: " + "; ".join(f"{name}: {what}" for name, what in REGIONS.items())
    yield ""


def plot_writes(results, panel):
    for n, size in enumerate(results.sizes):
        for i, region in enumerate(REGIONS):
            row = results.one(kind="write", bytes=size, region=region)
            panel.bar(i + 1, n + 0.4 * i - 0.2, 52, ratio(row), f"{ratio(row):.1f}")
    panel.limit(MAX_WRITE, "limit")


def write_plots(results, directory):
    figure = svg.Figure(930, 340, "Peer-to-peer memory: an RDMA WRITE into it, and a page of it",
                        results.remark(), "the software HCA copies by the processor: the work for "
                        "a message, not the speed of a bus")
    figure.legend = [(i + 1, f"region {what}") for i, what in enumerate(REGIONS.values())]
    names = {n: common.size_name(size) for n, size in enumerate(results.sizes)}
    panel = figure.panel(80, 55, 420, 210, svg.Linear(-0.6, len(names) - 0.4, list(names)),
                         svg.Linear(0, 120))
    panel.axes("bytes of a WRITE", "% of a WRITE into system memory", "RDMA WRITE", names)
    plot_writes(results, panel)
    allocs = sorted(results.allocs, key=lambda row: (row["bytes"], row["used"]))
    names = {n: f'{common.size_name(row["bytes"])}, {row["used"]}%'
             for n, row in enumerate(allocs)}
    panel = figure.panel(590, 55, 310, 210, svg.Linear(-0.6, len(names) - 0.4, list(names)),
                         svg.Linear(0, max(row["ns"] for row in allocs) * 1.15))
    panel.axes("size, and how much is allocated", "instructions", "allocating and freeing", names)
    for n, row in enumerate(allocs):
        panel.bar(0, n, 50, row["ns"], str(row["ns"]))
    panel.limit(MAX_PAGE, "", 1.5)
    figure.write(f"{directory}/p2p.svg")


if __name__ == "__main__":
    common.main("kind", COLUMNS, Results, table, ABOUT, write_plots)
