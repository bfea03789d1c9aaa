#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
compare.py <results> <kernel>: the tables of scripts/programs, as reStructuredText.

Results are lines "row: <device>|<program>|<outcome>" and "py: <device>|<test>|<outcome>". The
exit status is 1 if the software HCA does worse than rdma_rxe; then standard error says where.
"""
import sys

OURS, OTHER = "emu0", "rxe0"


def read(path, kind):
    """The outcomes by name and device, in the order of the run."""
    outcomes = {}
    with open(path, encoding="utf-8", errors="replace") as results:
        for line in results:
            if line.startswith(kind + ": "):
                device, name, outcome = line[len(kind) + 2:].rstrip("\n").split("|")[:3]
                outcomes.setdefault(name, {})[device] = outcome.replace(device, "the device")
    return outcomes


def is_worse(of):
    """Does it fail where the other does not, or is it skipped for a reason of its own?"""
    ours, other = of.get(OURS, "failed: it did not run"), of.get(OTHER)
    if ours == "ok":
        return False
    if ours.startswith("skipped"):
        return other is not None and ours != other
    return other is None or not other.startswith("failed")


def table(head, rows):
    """A table with columns as wide as they must be."""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in [head] + rows]
    return "\n".join([rule, lines[0], rule] + lines[1:] + [rule]) + "\n"


def brief(outcome):
    """How it ended, without what the program said."""
    return {None: "not run"}.get(outcome, outcome and outcome.split(":")[0])


def tests_by_outcome(tests):
    """How many tests ended in which way on both, and why they were skipped."""
    counts = {}
    for of in tests.values():
        why = of.get(OURS, "") if of.get(OURS, "").startswith("skipped") else ""
        key = (brief(of.get(OURS)), brief(of.get(OTHER)), why.partition(": ")[2])
        counts[key] = counts.get(key, 0) + 1
    return [[str(n), ours, other, why.replace("_", "\\_")]
            for (ours, other, why), n in sorted(counts.items(), key=lambda item: -item[1])]


def main():
    """Prints the tables."""
    rows, tests = read(sys.argv[1], "row"), read(sys.argv[1], "py")
    print(".. SPDX-License-Identifier: GPL-2.0-only\n")
    print("..", "Made by scripts/programs --write.\n")
    title = "Programs on the software HCA and on rdma_rxe"
    print("=" * len(title), title, "=" * len(title), sep="\n")
    print(f"\nUnmodified packages of Debian 12, on its kernel {sys.argv[2]}, on both devices in one "
          "guest.\n")
    if rows:
        print(table(["program", "software HCA", "rdma_rxe"],
                    [[f"``{name}``", brief(of.get(OURS)), brief(of.get(OTHER))]
                     for name, of in rows.items()]))
    if tests:
        print("The tests of rdma-core 44 for any device, by ``python3-pyverbs``:\n")
        print(table(["tests", "software HCA", "rdma_rxe", "why"], tests_by_outcome(tests)))
    worse = [f"{name}: {of.get(OURS)}; rdma_rxe: {of.get(OTHER)}"
             for name, of in list(rows.items()) + list(tests.items()) if is_worse(of)]
    for line in worse:
        print("worse than rdma_rxe:", line, file=sys.stderr)
    if not rows and not tests:
        worse.append("nothing ran")
        print("no program ran", file=sys.stderr)
    return 1 if worse else 0


sys.exit(main())
