#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
compare.py <results> <kernel> [<earlier>]: the tables of scripts/programs, as reStructuredText.

Results are lines "row: <device>|<program>|<outcome>" and "py: <device>|<test>|<outcome>". The
exit status is 1 if the software HCA does worse than rdma_rxe, or, if there are results of it on
kverbs' core, does worse there than on the kernel's; then standard error says where.

With a file of earlier tables, what this run has no results of is kept as it is there. They must
be of the same kernel, and of the same devices: otherwise the exit status is 2.
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
    if ours.startswith(("skipped", "broken")):
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


def reason(of):
    """Why it was skipped, or is broken."""
    ours = of.get(OURS, "")
    why = ours.partition(": ")[2] if ours.startswith(("skipped", "broken")) else ""
    return why.replace("_", "\\_")


def rows_of_programs(rows, columns):
    """A row for each program."""
    return [[f"``{name}``", *(brief(of.get(device)) for device in columns), reason(of)]
            for name, of in rows.items()]


def tests_by_outcome(tests, columns):
    """How many tests ended in which way on all, and why they were skipped."""
    counts = {}
    for of in tests.values():
        key = (*(brief(of.get(device)) for device in columns), reason(of))
        counts[key] = counts.get(key, 0) + 1
    return [[str(n), *key] for key, n in sorted(counts.items(), key=lambda item: -item[1])]


def cells(rule, line):
    """What a line of a table has below each piece of its rule."""
    found, start = [], 0
    for piece in rule.split(" "):
        found.append(line[start:start + len(piece)].strip())
        start += len(piece) + 1
    return found


def read_tables(path):
    """The tables of a file that has been written before: by its first column, head and rows."""
    found, rule, head = {}, None, None
    with open(path, encoding="utf-8") as tables:
        for line in tables.read().split("\n"):
            if not line:
                rule = head = None
            elif rule is None:
                rule = line if set(line) == set("= ") else None
            elif head is None:
                head = cells(rule, line)
                found[head[0]] = (head, [])
            elif line != rule:
                found[head[0]][1].append(cells(rule, line))
    return found


def merge(old, new):
    """The rows of @old, those of @new in their places, and further ones after those before them."""
    merged, place = list(old), 0
    for row in new:
        same = [i for i, other in enumerate(merged) if other[0] == row[0]]
        if same:
            place = same[0]
            merged[place] = row
        else:
            place = place + 1 if row is not new[0] else len(merged)
            merged.insert(place, row)
    return merged


def add_earlier(path, kernel, tables):
    """Adds to @tables what is in a file and not in them. Says why that cannot be done."""
    with open(path, encoding="utf-8") as text:
        if f"kernel {kernel}," not in text.read():
            return f"its kernel is not {kernel}"
    for first, (head, rows) in read_tables(path).items():
        if first not in tables:
            tables[first] = (head, rows)
        elif head != tables[first][0]:
            return (f"its columns are: {', '.join(head[1:])}; those of this run: "
                    f"{', '.join(tables[first][0][1:])}")
        elif first == "program":
            tables[first] = (head, merge(rows, tables[first][1]))
    return None


def show(kernel, tables):
    """Prints the document."""
    print(".. SPDX-License-Identifier: GPL-2.0-only\n")
    print("..", "Made by scripts/programs --write.\n")
    title = "Programs on the software HCA and on rdma_rxe"
    print("=" * len(title), title, "=" * len(title), sep="\n")
    print(f"\nUnmodified packages of Debian 12, on its kernel {kernel}, on both devices in one "
          "guest.\n")
    if "program" in tables:
        print("*Skipped*: the device lacks the feature. *Broken*: the program itself has a bug, "
              "and fails on any\nRoCE device.\n")
        print(table(*tables["program"]))
    if "tests" in tables:
        print("The tests of rdma-core 44 for any device, by ``python3-pyverbs``:\n")
        print(table(*tables["tests"]))


def where_worse(outcomes, columns):
    """A line for each program or test that is worse than elsewhere."""
    worse = [f"worse than rdma_rxe: {name}: {of.get(OURS)}; rdma_rxe: {of.get(OTHER)}"
             for name, of in outcomes if is_worse(of, OURS, OTHER)]
    if OWN in columns:
        worse += [f"worse on kverbs' core: {name}: {of.get(OWN)}; the kernel's: {of.get(OURS)}"
                  for name, of in outcomes if is_worse(of, OWN, OURS)]
    return worse if outcomes else ["no program ran"]


def main():
    """Prints the tables."""
    rows, tests = read(sys.argv[1], "row"), read(sys.argv[1], "py")
    columns = {OURS: "software HCA", OTHER: "rdma_rxe"}
    outcomes = list(rows.items()) + list(tests.items())
    if any(OWN in of for _, of in outcomes):
        columns[OWN] = "on kverbs' core"
    head, tables = [*columns.values(), "why"], {}
    if rows:
        tables["program"] = (["program", *head], rows_of_programs(rows, columns))
    if tests:
        tables["tests"] = (["tests", *head], tests_by_outcome(tests, columns))
    if len(sys.argv) > 3:
        refusal = add_earlier(sys.argv[3], sys.argv[2], tables)
        if refusal:
            print(f"cannot be added to {sys.argv[3]}: {refusal}", file=sys.stderr)
            return 2
    show(sys.argv[2], tables)
    worse = where_worse(outcomes, columns)
    for line in worse:
        print(line, file=sys.stderr)
    return 1 if worse else 0


sys.exit(main())
