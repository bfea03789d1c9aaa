#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
compare.py <results> <kernel>: the tables of scripts/programs, as reStructuredText.

Results are lines "row: <device>|<program>|<outcome>" and "py: <device>|<test>|<outcome>". The
exit status is 1 if the software HCA does worse than rdma_rxe, or, if there are results of it on
kverbs' core, does worse there than on the kernel's; then standard error says where.
"""
import sys

OURS, OTHER, OWN = "emu0", "rxe0", "own0"


def read(path, kind):
    """The outcomes by name and device, in the order of the run."""
    outcomes = {}
    with open(path, encoding="utf-8", errors="replace") as results:
        for line in results:
            if line.startswith(kind + ": "):
                device, name, outcome = line[len(kind) + 2:].rstrip("\n").split("|")[:3]
                outcomes.setdefault(name, {})[device] = outcome.replace(device, "the device")
    return outcomes


def is_worse(of, one, two):
    """Does @one fail where @two does not, or is it skipped for a reason of its own?"""
    ours, other = of.get(one, "failed: it did not run"), of.get(two)
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


def tests_by_outcome(tests, columns):
    """How many tests ended in which way on all, and why they were skipped."""
    counts = {}
    for of in tests.values():
        why = of.get(OURS, "") if of.get(OURS, "").startswith("skipped") else ""
        key = (*(brief(of.get(device)) for device in columns), why.partition(": ")[2])
        counts[key] = counts.get(key, 0) + 1
    return [[str(n), *key[:-1], key[-1].replace("_", "\\_")]
            for key, n in sorted(counts.items(), key=lambda item: -item[1])]


def main():
    """Prints the tables."""
    rows, tests = read(sys.argv[1], "row"), read(sys.argv[1], "py")
    print(".. SPDX-License-Identifier: GPL-2.0-only\n")
    print("..", "Made by scripts/programs --write.\n")
    columns = {OURS: "software HCA", OTHER: "rdma_rxe"}
    if any(OWN in of for of in list(rows.values()) + list(tests.values())):
        columns[OWN] = "on kverbs' core"
    title = "Programs on the software HCA and on rdma_rxe"
    print("=" * len(title), title, "=" * len(title), sep="\n")
    print(f"\nUnmodified packages of Debian 12, on its kernel {sys.argv[2]}, on both devices in one "
          "guest.\n")
    if rows:
        print(table(["program", *columns.values()],
                    [[f"``{name}``", *(brief(of.get(device)) for device in columns)]
                     for name, of in rows.items()]))
    if tests:
        print("The tests of rdma-core 44 for any device, by ``python3-pyverbs``:\n")
        print(table(["tests", *columns.values(), "why"], tests_by_outcome(tests, columns)))
    outcomes = list(rows.items()) + list(tests.items())
    worse = [f"worse than rdma_rxe: {name}: {of.get(OURS)}; rdma_rxe: {of.get(OTHER)}"
             for name, of in outcomes if is_worse(of, OURS, OTHER)]
    if OWN in columns:
        worse += [f"worse on kverbs' core: {name}: {of.get(OWN)}; the kernel's: {of.get(OURS)}"
                  for name, of in outcomes if is_worse(of, OWN, OURS)]
    for line in worse:
        print(line, file=sys.stderr)
    if not rows and not tests:
        worse.append("nothing ran")
        print("no program ran", file=sys.stderr)
    return 1 if worse else 0


sys.exit(main())
