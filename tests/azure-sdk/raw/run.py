#!/usr/bin/env python3
"""Run the raw REST tests against a table service: run.py HOST PORT [test names as for unittest].

Needs only Python. Ends with the line `N passed, N failed`; the exit status is 0 if none failed.
Requests that are well formed are in crates/server/tests/recorded.
"""

import os
import sys
import unittest

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    host, port, *names = sys.argv[1:]
    os.environ["RANGEHOLD_TABLE_ENDPOINT"] = f"http://{host}:{port}/devstoreaccount1"
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    sys.dont_write_bytecode = True
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(here)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    # A failure in a subTest counts as a failure of its test.
    failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed", flush=True)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
