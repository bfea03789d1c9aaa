# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the benches: the guest's rows, the CSV made from them, and tables of
text.
"""

import csv
import pathlib
import sys


def read_rows(path, key):
    """Return the guest's key=value lines that have a certain key, as dictionaries."""
    with open(path, encoding="utf-8") as lines:
        rows = [dict(pair.split("=", 1) for pair in line.split()) for line in lines]
    return [row for row in rows if key in row]


def write_csv(rows, columns, provenance_path):
    print("# SPDX-License-Identifier: GPL-2.0-only")
    with open(provenance_path, encoding="utf-8") as lines:
        for line in lines:
            print("#", line.rstrip())
    if not rows:
        sys.exit("bench: the guest measured nothing")
    out = csv.DictWriter(sys.stdout, columns, restval="", extrasaction="ignore",
                         lineterminator="\n")
    out.writeheader()
    out.writerows(rows)


class Results:
    """The contents of a CSV file."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            text = [line for line in lines if line.strip()]
        self.about = dict(line[2:].rstrip().split(" ", 1) for line in text
                          if line.startswith("# ") and "SPDX" not in line)
        self.rows = [{key: int(value) if value.isdigit() else value
                      for key, value in row.items()}
                     for row in csv.DictReader(line for line in text
                                               if not line.startswith("#"))]

    def pick(self, **wanted):
        return [row for row in self.rows
                if all(row[key] == value for key, value in wanted.items())]

    def one(self, **wanted):
        found = self.pick(**wanted)
        return found[0] if found else None

    def remark(self):
        return f'Linux {self.about.get("kernel", "?")}; {self.about.get("how", "?")}'

    def heading(self, bench):
        """The first lines of a table."""
        yield "SPDX-License-Identifier: GPL-2.0-only"
        yield ""
        yield f"Results of scripts/bench {bench}"
        yield self.remark()
        yield f'QEMU {self.about.get("qemu", "?")}, gcc {self.about.get("gcc", "?")}'


def size_name(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def columns(head, rows, first=26, width=11):
    """Lines of a table whose first column is text."""
    for row in [head] + rows:
        yield "  " + row[0].ljust(first) + "".join(cell.rjust(width) for cell in row[1:])


def section(title, head, rows, *widths):
    """A table with its title; nothing if it is empty."""
    if rows:
        yield from [title, "", *columns(head, rows, *widths), ""]


def main(key, columns_of_csv, load, table, about, write_plots):
    """What scripts/bench requests from a bench, which is a program of its name:

    csv <rows of the guest> <provenance>    the results, as CSV: those of the rows that have @key
    table <csv>                             the same as a table, and what it is @about
    plots <csv> <directory>                 and as SVG
    """
    match sys.argv[1:]:
        case ["csv", rows, provenance]:
            write_csv(read_rows(rows, key), columns_of_csv, provenance)
        case ["table", csv]:
            results = load(csv)
            for line in [*results.heading(pathlib.Path(sys.argv[0]).stem), "", *table(results)]:
                print(line.rstrip())
            print(about, end="")
        case ["plots", csv, directory]:
            write_plots(load(csv), directory)
        case _:
            sys.exit(main.__doc__)
