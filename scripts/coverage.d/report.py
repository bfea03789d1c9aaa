#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reports, for scripts/coverage, what gcov makes of the counters of three sets of suites.

usage: report.py [--lines] <counters> <results>

<counters> has the directories failing, exercising and others, each with the .gcno of all
objects and the .gcda of those that were loaded. What is wrong goes into files in <results>:
unexecuted, unfailed and below.
"""
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Lines executed, in per cent, that each folder must have: a few below what it has, for
# threads do not meet alike each time. The suites load no other driver.
FLOORS = {
    "core": 84,
    "core/ca": 82,
    "core/view": 73,
    "core/verbs": 93,
    "core/port": 91,
    "core/memory": 88,
    "core/contract": 92,
    "cq": 95,
    "peer_mem": 95,
    "p2pdma": 92,
    "drivers/emu": 89,
    "drivers/emu/engine": 89,
    "drivers/emu/queue": 89,
    "drivers/emu/net": 89,
    "drivers/emu/memory": 89,
    "drivers/emu/lib": 89,
    "drivers/edu": 90,
}

EXPORT = re.compile(r"^EXPORT_SYMBOL\w*\((\w+)", re.M)
# A file of ours as the compiler saw it, in the build directory. What is in a trace.h, the
# kernel's macros have made; it is executed by those who trace.
SOURCE = re.compile(rf"^/.*/((?:{'|'.join(FLOORS)})/(?!trace\.h$)[^/]+)$")


class Counts:
    """How often each line and each function was executed: (file, what) -> times."""

    def __init__(self, *others):
        self.lines, self.functions = Counter(), Counter()
        for other in others:
            self.lines.update(other.lines)
            self.functions.update(other.functions)

    def add(self, report):
        source = SOURCE.match(report["file"])
        if not source or not (ROOT / source[1]).exists():
            return
        # update() keeps what was executed 0 times.
        for line in report["lines"]:
            self.lines.update({(source[1], line["line_number"]): line["count"]})
        for function in report["functions"]:
            self.functions.update({(source[1], function["name"]): function["execution_count"]})


def read_counts(directory):
    """Asks gcov, which counts nothing of an object that has notes only."""
    counts = Counts()
    for folder in FLOORS:
        notes = sorted(map(str, (directory / folder).glob("*.gcno")))
        if not notes:
            sys.exit(f"{directory}/{folder} has no notes of the compiler")
        gcov = subprocess.run(["gcov", "--json-format", "--stdout", *notes], check=True,
                              capture_output=True, text=True)
        for line in gcov.stderr.splitlines():
            if not line.endswith("cannot open data file, assuming not executed"):
                print(line, file=sys.stderr)
        for document in map(json.loads, gcov.stdout.splitlines()):
            for report in document["files"]:
                counts.add(report)
    return counts


def exported_functions(counts):
    """What else is exported, keys and constants, has no counter."""
    found = []
    for folder in FLOORS:
        for path in sorted((ROOT / folder).glob("*.c")):
            source = str(path.relative_to(ROOT))
            found += [(source, symbol) for symbol in EXPORT.findall(path.read_text("utf-8"))
                      if (source, symbol) in counts.functions]
    if not found:
        sys.exit("no exported function has a counter")
    return found


def of_folder(counter, folder):
    return {key: times for key, times in counter.items()
            if key[0].rpartition("/")[0] == folder}


def percent(counter):
    return 100 * sum(map(bool, counter.values())) / len(counter)


def print_table(counts):
    print(f"{'':14}{'lines':>8}{'executed':>12}{'functions':>12}{'executed':>12}")
    for folder in FLOORS:
        row = f"{folder:14}"
        for counter, width in ((counts.lines, 8), (counts.functions, 12)):
            mine = of_folder(counter, folder)
            row += f"{len(mine):{width}}{percent(mine):10.1f} %"
        print(row)


def print_functions(what, functions):
    print(f"{what}: {len(functions)}")
    for source, mine in itertools.groupby(functions, key=lambda key: key[0]):
        print(f"  {source}: {' '.join(name for _, name in mine)}")


def print_lines(counts):
    print("Lines never executed:")
    for source, lines in itertools.groupby(sorted(counts.lines), key=lambda key: key[0]):
        spans = []
        # Lines without code do not part others.
        for executed, span in itertools.groupby(lines, key=lambda key: counts.lines[key] > 0):
            first, *_, last = [line for _, line in span] * 2
            if not executed:
                spans.append(str(first) if first == last else f"{first}-{last}")
        if spans:
            print(f"  {source}: {' '.join(spans)}")


def below_floors(counts):
    for folder, floor in FLOORS.items():
        has = percent(of_folder(counts.lines, folder))
        if has < floor:
            yield f"{folder}: {has:.1f} % of its lines were executed, its floor is {floor} %"


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main():
    *options, counted, results = sys.argv[1:]
    failing, exercising, others = (read_counts(Path(counted) / name)
                                   for name in ("failing", "exercising", "others"))
    every = Counts(failing, exercising, others)
    exports = exported_functions(every)

    print_table(every)
    print_functions("Functions never executed",
                    sorted(key for key, times in every.functions.items() if not times))
    print_functions(f"Of {len(exports)} exported functions, not reached by the exerciser",
                    [key for key in exports if not exercising.functions[key]])
    if "--lines" in options:
        print_lines(every)

    for name, counts in (("unexecuted", every), ("unfailed", failing)):
        write(Path(results) / name, [f"{source}: {symbol}()" for source, symbol in exports
                                     if not counts.functions[source, symbol]])
    write(Path(results) / "below", below_floors(every))


main()
