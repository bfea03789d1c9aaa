#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results of "scripts/bench ulps"; common.main() has the usage."""

import common
import svg

COLUMNS = ["how", "ulp", "device", "way", "bytes", "ns"]
NAMES = {"nvme": "NVMe (nvme-rdma, nvmet-rdma)", "srp": "SRP (ib_srp, ib_srpt)",
         "nfs": "NFS (rpcrdma)"}
WAYS = ["write", "read"]
DEVICES = {"emu0": "software HCA", "rxe0": "rdma_rxe"}

ABOUT = """\
What it measures

The kernel's own ULPs, unmodified, on its own core: dd writes and reads 256 MiB, 1 MiB a
call, by the page cache of its end, from a device to itself. The other end keeps a file of
64 MiB in memory. So a figure contains all that the ULP, the block layer or the file system,
the file and dd do, which is much the same over both devices.

Instructions a byte: of both ends, on one processor that executes one a nanosecond, without
the time in which there was nothing to do. MiB a second: in real time, in another boot with
two processors, of one run. x: rdma_rxe by software HCA, or the other way about for MiB a
second.

How to reproduce

    scripts/bench ulps           # six minutes; writes these files
    scripts/bench ulps --plot    # table and plot again, from ulps.csv
"""


class Results(common.Results):
    """The contents of ulps.csv."""

    def __init__(self, path):
        super().__init__(path)
        self.ulps = [ulp for ulp in NAMES if self.pick(ulp=ulp)]

    def heading(self, bench):
        yield from super().heading(bench)
        if "time" in self.about:
            yield f'MiB a second: {self.about["time"]}'

    def per_byte(self, ulp, way, device):
        row = self.one(how="count", ulp=ulp, way=way, device=device)
        return row["ns"] / row["bytes"]

    def speed(self, ulp, way, device):
        """MiB a second, or None."""
        row = self.one(how="time", ulp=ulp, way=way, device=device)
        return row and row["bytes"] / 2**20 / (row["ns"] / 1e9)


def table_rows(results):
    for ulp in results.ulps:
        for way in WAYS:
            cost = [results.per_byte(ulp, way, device) for device in DEVICES]
            speed = [results.speed(ulp, way, device) for device in DEVICES]
            cells = [f"{value:.2f}" for value in cost] + [f"{cost[1] / cost[0]:.1f}x"]
            if None in speed:
                cells += ["-"] * 3
            else:
                cells += [f"{value:.0f}" for value in speed] + [f"{speed[0] / speed[1]:.1f}x"]
            yield [f"{NAMES[ulp]}, {way}"] + cells


def table(results):
    yield from common.section("Instructions a byte, and MiB a second",
                              ["", "emu", "rxe", "", "emu MiB/s", "rxe MiB/s", ""],
                              list(table_rows(results)), 38)


def write_plots(results, directory):
    cases = [(ulp, way) for ulp in results.ulps for way in WAYS]
    values = [results.per_byte(ulp, way, device) for ulp, way in cases for device in DEVICES]
    figure = svg.Figure(800, 330, "What a byte costs that a ULP moves", results.remark(),
                        "both ends, with all that the ULP and its disk or file do")
    figure.legend = [(n + 1, name) for n, name in enumerate(DEVICES.values())]
    names = {n: f"{ulp} {way}" for n, (ulp, way) in enumerate(cases)}
    panel = figure.panel(80, 55, 690, 200, svg.Linear(-0.6, len(cases) - 0.4, list(names)),
                         svg.Linear(0, max(values) * 1.1))
    panel.axes("", "instructions a byte", "", names)
    for n, case in enumerate(cases):
        for i, device in enumerate(DEVICES):
            cost = results.per_byte(*case, device)
            panel.bar(i + 1, n + 0.4 * i - 0.2, 42, cost, f"{cost:.1f}")
    figure.write(f"{directory}/ulps.svg")


if __name__ == "__main__":
    common.main("ulp", COLUMNS, Results, table, ABOUT, write_plots)
