#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads the KTAP that KUnit writes to a console.

usage: ktap.py [--show] CONSOLE

Without an option, prints one line for each case ("ok|not ok|skip suite.case", with the reason
of a skip behind it; after one that is not ok, "said <line>" for the first lines of its output),
then "suites <n>" for the suites that are complete, and "broken <why>" for each that is not: its
plan is not fulfilled, or its closing line is missing.

With --show, prints suites and cases as tools/testing/kunit/kunit.py does, with all that a failed
case said, and exits with 1 if a case failed or a suite is not complete.
"""
import re
import sys

MOST_SAID = 12

# Printed by printk() before each line: level, time, and the thread or CPU.
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ")
CASE = re.compile(r"^    (not )?ok \d+ (\S+)(?: # SKIP ?(.*))?")
PARAMETER = re.compile(r"^     +(not )?ok \d+ ")
SUITE_END = re.compile(r"^(not )?ok \d+ (\S+)")


class Case:
    def __init__(self, name, verdict, why, said):
        self.name, self.verdict, self.why, self.said = name, verdict, why, said


class Suite:
    def __init__(self, name):
        self.name, self.plan, self.cases, self.broken = name, 0, [], None
        self.complete = False

    def end(self, bad):
        if len(self.cases) != self.plan:
            self.stop()
        elif bad and not any(case.verdict == "not ok" for case in self.cases):
            self.broken = "failed outside of its cases"
        else:
            self.complete = True

    def stop(self):
        self.broken = f"ended after {len(self.cases)} of {self.plan} cases"


def read(lines):
    """Returns the suites. The output of a case is kept, with parameters that of the first one
    that failed and of those after it."""
    suites, suite, said, failed = [], None, [], False
    for line in lines:
        line = STAMP.sub("", line.rstrip("\r\n"))
        if line.startswith("    # Subtest: "):
            if suite:
                suite.stop()
            suite = Suite(line.split()[2])
            suites.append(suite)
            said, failed = [], False
        elif suite is None:
            continue
        elif re.match(r"^    1\.\.\d+$", line):
            suite.plan = int(line[7:])
        elif match := CASE.match(line):
            bad, name, why = match.groups()
            verdict = "not ok" if bad else "ok" if why is None else "skip"
            suite.cases.append(Case(name, verdict, why or "", said))
            said, failed = [], False
        elif match := PARAMETER.match(line):
            failed = failed or bool(match.group(1))
            if not failed:
                said = []
        elif match := SUITE_END.match(line):
            if match.group(2) == suite.name:
                suite.end(bool(match.group(1)))
                suite = None
        elif line.startswith("    "):
            said.append(line.strip())
    if suite:
        suite.stop()
    return suites


def list_cases(suites):
    for suite in suites:
        for case in suite.cases:
            print(f"{case.verdict} {suite.name}.{case.name} {case.why}".rstrip())
            if case.verdict == "not ok":
                for line in case.said[:MOST_SAID]:
                    print("said", line)
        if suite.broken:
            print(f"broken suite {suite.name}: {suite.broken}")
    print("suites", sum(suite.complete for suite in suites))


def banner(text):
    print(f" {text} ".center(60, "="))


# The modules are built below build/<release>/; the checkout has the same files.
def in_checkout(line):
    return re.sub(r"\S*/build/[^/ ]+/(?=\w+/)", "", line)


def show(suites):
    count = {"ok": 0, "not ok": 0, "skip": 0}
    word = {"ok": "PASSED", "not ok": "FAILED", "skip": "SKIPPED"}
    for suite in suites:
        banner(f"{suite.name} ({suite.plan} subtests)")
        for case in suite.cases:
            count[case.verdict] += 1
            if case.verdict == "not ok":
                for line in case.said:
                    print("   ", in_checkout(line))
            print(f"[{word[case.verdict]}] {case.name}" + (f": {case.why}" if case.why else ""))
        if suite.broken:
            print(f"[CRASHED] {suite.name}: {suite.broken}")
        else:
            banner(f"[{'PASSED' if all(c.verdict != 'not ok' for c in suite.cases) else 'FAILED'}]"
                   f" {suite.name}")
    crashed = sum(1 for suite in suites if suite.broken)
    print("=" * 60)
    print(f"Testing complete. Ran {sum(count.values())} tests: passed: {count['ok']}"
          + (f", failed: {count['not ok']}" if count["not ok"] else "")
          + (f", skipped: {count['skip']}" if count["skip"] else "")
          + (f", crashed suites: {crashed}" if crashed else ""))
    return 1 if count["not ok"] or crashed or not suites else 0


def main():
    args = sys.argv[1:]
    if args and args[0] in ("--help", "-h"):
        print(__doc__.strip())
        return 0
    showing = bool(args) and args[0] == "--show"
    with open(args[-1], encoding="utf-8", errors="replace") as console:
        suites = read(console)
    if showing:
        return show(suites)
    list_cases(suites)
    return 0


sys.exit(main())
