#!/usr/bin/env python3
"""Run the tests of Microsoft's own Python SDK live against a table service.

    run.py HOST PORT [--style path|host] [--least N] [-k EXPRESSION] [--cache DIR] [--out DIR]

The source distribution of azure-data-tables on PyPI contains the SDK's tests. They were written and
recorded against the real service, so they are the best evidence that a client finds no difference between
this service and the cloud. `live/` replaces Microsoft's internal test package and its recording proxy. The
tests themselves are not changed, except for the expiry of one policy, which is in the past by now (see EDITS).

Two styles of address:

  path   http://HOST:PORT/devstoreaccount1, the form for emulators. Tests that need https or the
         cloud's host name are left out.
  host   https://devstoreaccount1.table.core.windows.net, the form of the cloud. In this process the
         name leads to HOST:PORT, where the server must use TLS with any certificate. These runs
         include the tests with bearer tokens. The tokens have plausible claims but no valid
         signature, so the server must check only claims:
         rangehold dev --tls self-signed --oauth claims-only

Ends with the line `N passed, N failed`. Exit status: 0 if every failing test is named in
expected-failures.txt, every test named there does fail, and at least N tests passed; 1 if not;
2 if the suite could not be set up or did not finish.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
SDK = "azure_data_tables-12.7.0"
SDK_SHA256 = "b14fc94a3223a2835ff5688e17d8e107b27c7cd7c4114138f2ac81373723705d"
# Two tests use a stored access policy that expired in October 2025. A correct server refuses it today.
EDITS = {
    "test_table_entity.py": ("datetime(2025, 10, 12)", "datetime(2099, 10, 12)"),
    "test_table_entity_async.py": ("datetime(2025, 10, 12)", "datetime(2099, 10, 12)"),
}
# The release has 479 tests. Path style leaves out 142 and host style 106; live/ has the list and the reasons.
LEAST = {"path": 335, "host": 371}
SUITE_SECONDS_MAX = 1500
TEST_SECONDS_MAX = 60


def main():
    options = parse_arguments()
    cache, out = options.cache.resolve(), (options.out or options.cache / f"results-{options.style}").resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        python = set_up_python(cache)
        tests = set_up_tests(cache, python)
        results = run_suite(options, python, tests, out)
    except (OSError, subprocess.SubprocessError, SetUpError) as error:
        print(f"the suite did not run: {error}", file=sys.stderr)
        return 2
    return judge(options, results, out)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--style", choices=("path", "host"), default="path", help="how the account is addressed")
    parser.add_argument("--least", type=int, help="fewest tests that must pass (default: 335 path, 371 host)")
    parser.add_argument("-k", help="run the tests that match this pytest expression only; lifts --least")
    parser.add_argument(
        "--cache",
        type=Path,
        default=REPOSITORY / "target" / "azure-sdk",
        help="holds the virtual environment and the SDK's tests between runs",
    )
    parser.add_argument("--out", type=Path, help="results: results.json, failed.txt, pytest.log")
    options = parser.parse_args()
    if options.least is None:
        options.least = 0 if options.k else LEAST[options.style]
    return options


class SetUpError(Exception):
    """The tests could not be installed. The text says why."""


def set_up_python(cache):
    """The Python of the virtual environment, which is made on the first run and when requirements.txt changes."""
    wanted = (HERE / "requirements.txt").read_text()
    python, stamp = cache / "venv" / "bin" / "python", cache / "venv" / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing the SDK into", cache / "venv", flush=True)
        venv.create(cache / "venv", clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
        stamp.write_text(wanted)
    return python


def set_up_tests(cache, python):
    """The folder with the SDK's tests, unpacked from its source distribution."""
    unpacked = cache / SDK
    if not (unpacked / "unpacked").exists():
        name, version = SDK.rsplit("-", 1)
        download = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", cache]
        subprocess.run([*download, f"{name.replace('_', '-')}=={version}"], check=True)
        archive = cache / f"{SDK}.tar.gz"
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != SDK_SHA256:
            raise SetUpError(f"{archive} has the SHA-256 {digest}, not {SDK_SHA256}: remove it and try again")
        with tarfile.open(archive) as tar:
            tar.extractall(cache)
        for file, (before, after) in EDITS.items():
            path = unpacked / "tests" / file
            text = path.read_text()
            if before not in text:
                raise SetUpError(f"{path} no longer holds {before}: look at EDITS in run.py")
            path.write_text(text.replace(before, after))
        (unpacked / "unpacked").touch()
    return unpacked / "tests"


def run_suite(options, python, tests, out):
    """Runs pytest, and returns one record for each test: id, outcome, seconds, message."""
    results = out / "results.json"
    results.unlink(missing_ok=True)
    scheme, path = ("http", "/devstoreaccount1") if options.style == "path" else ("https", "")
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE / "live"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LIVE_STYLE": options.style,
        "LIVE_ENDPOINT": f"{scheme}://{options.host}:{options.port}{path}",
        "LIVE_RESULTS": str(results),
    }
    command = [
        python,
        "-m",
        "pytest",
        "-p",
        "live_service",
        "-p",
        "no:cacheprovider",
        "-o",
        "asyncio_mode=auto",
        "--timeout",
        str(TEST_SECONDS_MAX),
        "--tb=short",
        "-q",
        "--ignore-glob=*cosmos*",
        *(["-k", options.k] if options.k else []),
        ".",
    ]
    with open(out / "pytest.log", "w") as log:
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log, timeout=SUITE_SECONDS_MAX)
    if not results.exists():
        raise SetUpError(f"pytest wrote no results: see {out / 'pytest.log'}")
    return {record["id"].split("/")[-1]: record for record in json.loads(results.read_text())}


def judge(options, results, out):
    """Prints the counts and every unexpected result. Returns the exit status."""
    failed = {name: record for name, record in results.items() if record["outcome"] != "passed"}
    expected = expected_failures(options.style)
    passed = len(results) - len(failed)
    with open(out / "failed.txt", "w") as file:
        for name, record in sorted(failed.items()):
            file.write(f"{name}\n    {record['message']}\n")
    surprises = [f"failed: {name}\n    {failed[name]['message'][:300]}" for name in sorted(failed.keys() - expected)]
    surprises += [
        f"passes, but is named in expected-failures.txt: {name}"
        for name in sorted((expected & results.keys()) - failed.keys())
    ]
    if passed < options.least:
        surprises.append(f"{passed} tests passed, fewer than the {options.least} asked for")
    print(*surprises, sep="\n" if surprises else "", end="\n" if surprises else "")
    print(f"azure-data-tables 12.7.0, {options.style} style, {len(results)} tests; details in {out}")
    print(f"failures that expected-failures.txt explains: {len(failed.keys() & expected)}")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 1 if surprises else 0


def expected_failures(style):
    """The tests in expected-failures.txt for a style. Each line is `style test: reason`."""
    expected = set()
    for line in (HERE / "expected-failures.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        where, test, reason = (line.replace(": ", " ", 1).split(" ", 2) + ["", ""])[:3]
        if where not in LEAST or not reason:
            raise SystemExit(f"expected-failures.txt: write `path test: reason` or `host test: reason`, not {line!r}")
        if where == style:
            expected.add(test)
    return expected


if __name__ == "__main__":
    sys.exit(main())
