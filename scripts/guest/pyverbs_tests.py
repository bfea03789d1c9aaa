# SPDX-License-Identifier: GPL-2.0-only
"""
pyverbs_tests.py <file> --dev <device> [--port <port>] [<pattern>...]

Runs rdma-core's own tests of pyverbs, as the package has them, in the directory where they are,
and writes a line for each into a file: "<test>|ok", "<test>|skipped: <reason>" or
"<test>|failed: <reason>". Those of other drivers' own interfaces are left out. A pattern is
part of a name.
"""
import importlib.util
import os
import sys
import unittest

OTHERS = ("test_mlx5", "test_efa")


class Lines(unittest.TextTestResult):
    """Writes the lines."""

    def tell(self, test, outcome, why=""):
        name = ".".join(test.id().split(".")[1:])
        why = " ".join(str(why).split()).replace("|", "/")
        print(name, outcome + (": " + why if why else ""), sep="|", file=OUT, flush=True)

    def startTest(self, test):
        print("running", test.id(), flush=True)
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, "failed", err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, "failed", err[1])


def generic_tests(patterns):
    """Those that are for any device."""
    found = unittest.TestSuite()
    for name in sorted(os.listdir(".")):
        if not name.startswith("test_") or name.startswith(OTHERS):
            continue
        loaded = unittest.defaultTestLoader.loadTestsFromName("tests." + name[:-3])
        for test in each_of(loaded):
            if not patterns or any(pattern in test.id() for pattern in patterns):
                found.addTest(test)
    return found


def each_of(suite):
    """The cases of a suite of suites."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_of(test)
        else:
            yield test


OUT = open(sys.argv.pop(1), "w", encoding="utf-8")
sys.path.insert(0, os.getcwd())
spec = importlib.util.spec_from_file_location("tests", "__init__.py",
                                              submodule_search_locations=[os.getcwd()])
sys.modules["tests"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["tests"])
from args_parser import parser  # noqa: E402

parser.parse_args()
outcome = unittest.TextTestRunner(stream=sys.stdout, resultclass=Lines).run(
    generic_tests(sys.argv[1:]))
sys.exit(not outcome.wasSuccessful())
