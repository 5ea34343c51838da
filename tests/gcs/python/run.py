#!/usr/bin/env python3
"""Run our tests with Google's Python client against an object service.

    run.py HOST PORT [--cache DIR] [TEST...]
    run.py --only-install [--cache DIR]

The client comes from PyPI, into a virtual environment that is made on the first run and when requirements.txt changes.
Exit status: 0 if all tests passed.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
SUITE_SECONDS_MAX = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host", nargs="?")
    parser.add_argument("port", nargs="?", type=int)
    parser.add_argument("tests", nargs="*", help="names of tests, as unittest takes them")
    parser.add_argument("--cache", type=Path, default=REPOSITORY / "target" / "gcs", help="holds the environment")
    parser.add_argument("--scaled-rates", action="store_true", help="the server has a hundredth of the rates of the cloud")
    parser.add_argument("--only-install", action="store_true", help="make the environment, and run nothing")
    options = parser.parse_intermixed_args()  # an option may stand before the names of tests
    if not options.only_install and options.port is None:
        parser.error("name the host and the port of the service")
    python = set_up(options.cache.resolve())
    if options.only_install:
        return 0
    environment = {
        **os.environ,
        "STORAGE_EMULATOR_HOST": f"http://{options.host}:{options.port}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if options.scaled_rates:
        environment["RANGEHOLD_SCALED_RATES"] = "1"
    command = [python, "-m", "unittest", *(options.tests or ["discover"])]
    return subprocess.run(command, cwd=HERE, env=environment, timeout=SUITE_SECONDS_MAX).returncode


def set_up(cache):
    """The Python of the environment."""
    wanted = (HERE / "requirements.txt").read_text()
    python, stamp = cache / "venv" / "bin" / "python", cache / "venv" / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing Google's client into", cache / "venv", flush=True)
        venv.create(cache / "venv", clear=True, with_pip=True)
        install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", HERE / "requirements.txt"]
        subprocess.run([python, *install], check=True)
        stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    sys.exit(main())
