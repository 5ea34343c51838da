#!/usr/bin/env python3
"""A job over a table of several ranges with Microsoft's own Python SDK, under `--profile cloud`.

    cloud.py HOST PORT ADMIN_HOST:ADMIN_PORT TOKEN_FILE [--cache DIR]

Start the server with

    rangehold dev --data DIR --profile cloud --servers 4 --manager off

so that only this file changes ranges, and give `DIR/admin-token` as TOKEN_FILE. The table is split into three ranges,
one of them empty. Clients with the SDK's default retries write and read it, in two parts:

1. Three workers put entities as fast as they can, most of them into one partition, and then read the whole table
   back, page by page. There each page takes half a second's budget, and the SDK's three retries after a 503 are too
   few for a reader that has no luck: these readers have ten. At the same time a client without retries works slowly
   in a partition beside the hot one.
2. Three workers write, and two read, the entities of a range, while the range moves to other servers.

These checks must pass:

- the job completes, and every entity is there once, as it was written last;
- a page ends with its range, short or empty, with a token;
- 503 answers held the hot partition at its target of 2,000 entities a second;
- the quiet client got no 503;
- the moves caused 503 and 500 answers, and the SDK's retries were enough.

How long the quiet client waited, alone and beside the hot partition, is printed and not judged: it depends on the
machine.

Exit status: 0 if all of it holds; 1 if not; 2 if the SDK could not be installed.
"""

import argparse
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloud_moves
import cloud_table
import run
from admin import Admin
from cloud_table import AWAY, HOT

# The documented target of a partition, in entities per second.
TARGET = 2_000
# How often a reader of the hot partition tries again after a 503.
READERS_RETRIES = 10
# The table of the quiet client.
QUIET = ("quiet", "1")


def main():
    options = parse_arguments()
    try:
        import azure.data.tables  # noqa: F401
    except ImportError:
        return run_in_environment(options)
    return job(options)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("admin", help="where the server's admin API is, as HOST:PORT")
    parser.add_argument("token_file", type=Path, help="the file admin-token of the server's data directory")
    parser.add_argument("--cache", type=Path, default=run.REPOSITORY / "target" / "azure-sdk")
    return parser.parse_args()


def run_in_environment(options):
    """Runs this file again in the Python that has the SDK."""
    try:
        python = run.set_up_python(options.cache.resolve())
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the SDK could not be installed: {error}", file=sys.stderr)
        return 2
    return subprocess.run([python, __file__, *sys.argv[1:]]).returncode


def job(options):
    text, admin = cloud_table.connection_string(options.host, options.port), Admin(options.admin, options.token_file)
    cloud_table.make(text, admin)
    checks = hot_partition(text, admin) | moving_range(text, admin)
    return judge(checks)


def hot_partition(text, admin):
    """Runs the first part, and returns its checks."""
    quiet, read = Quiet(text), []
    alone = quiet.during(lambda: time.sleep(2))
    busy_before, begun = admin.throttled(), time.monotonic()

    def work():
        cloud_table.write_all(text)
        read.extend(cloud_table.at_once(lambda number: cloud_table.read_pages(text, retry_status=READERS_RETRIES)))

    beside = quiet.during(work)
    seconds, busy = time.monotonic() - begun, admin.throttled() - busy_before
    # Everything was written once, and each reader read it once.
    entities = len(HOT) * (1 + len(read))
    print(f"{entities} hot entities in {seconds:.1f} s, {entities / seconds:.0f} a second, {busy} requests not let in")
    for pages in read:
        print("a listing came in pages of", *(len(page) for page in pages))
    print(f"quiet neighbour: median {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside the hot partition")
    unmatched = [len(page) for page in cloud_table.read_pages(text, "missing eq 1")]
    print("a filter that matches nothing came in pages of", *unmatched)
    return {
        "every entity is there once": all(cloud_table.keys(pages) == [*AWAY, *HOT, QUIET] for pages in read),
        "a page ended short with its range, and an empty one with the next": all(
            cloud_table.end_with_ranges(pages) for pages in read
        ),
        "a filter that nothing matches ends, after an empty page for each range": len(unmatched)
        >= len(cloud_table.CUTS)
        and not any(unmatched),
        # At the beginning there is budget for one second, and at the end half a second may be owed.
        "the partition was held at its target": entities <= TARGET * (seconds + 1.5) + 1000,
        # A slow machine may not reach the target.
        "at the target, requests were not let in": busy > 0 or entities <= TARGET * (seconds + 1),
        "the quiet neighbour was let in": not quiet.refused,
    }


def moving_range(text, admin):
    """Runs the second part, and returns its checks."""
    begun, came_from = time.monotonic(), admin.server_of(cloud_table.MOVED)
    moves = cloud_moves.Moves(text, admin)
    moves.run()
    seconds = time.monotonic() - begun
    print(f"moved from {came_from} to {', '.join(moves.moved_to)} in {seconds:.1f} s, among", end=" ")
    print(f"{sum(moves.progress)} writes and listings; answers: {dict(sorted(moves.statuses.items()))}")
    for error in moves.errors:
        # An error has many lines. The first one says what it is.
        print(f"not done: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    pages = cloud_table.read_pages(text)
    turns = {(row["PartitionKey"], row["RowKey"]): row.get("turn") for page in pages for row in page}
    return {
        "a range moved while it was used": bool(moves.moved_to) and moves.moved_to[0] != came_from,
        "its clients were answered with 503, and with 500": moves.met_both(),
        "the SDK's retries were enough": not moves.errors,
        "each listing meanwhile had every entity once": bool(moves.listings)
        and all(listing == AWAY for listing in moves.listings),
        "every entity is as it was written last": all(turns.get(key) == moves.turns.get(key) for key in AWAY),
        "every entity is there once afterwards": cloud_table.keys(pages) == [*AWAY, *HOT, QUIET],
    }


def judge(checks):
    for what, holds in checks.items():
        print("holds: " if holds else "FAILS: ", what)
    failed = sum(not holds for holds in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


class Quiet:
    """A client that writes one entity after another, with pauses and without retries."""

    def __init__(self, text):
        self.client = cloud_table.client(text, retry_total=0)
        self.refused = []

    def during(self, act):
        """Runs `act` while the client writes. Returns the median time of a write."""
        times, over = [], threading.Event()

        def work():
            while not over.wait(0.02):
                begun = time.monotonic()
                try:
                    self.client.upsert_entity(cloud_table.entity(*QUIET, len(times)))
                except Exception as error:
                    self.refused.append(error)
                times.append(time.monotonic() - begun)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            act()
        finally:
            over.set()
            thread.join()
        return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    sys.exit(main())
