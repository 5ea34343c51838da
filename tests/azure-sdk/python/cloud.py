#!/usr/bin/env python3
"""A job over a hot partition with Microsoft's own Python SDK, under `--profile cloud`.

    cloud.py HOST PORT ADMIN_HOST:ADMIN_PORT [--cache DIR]

Start the server with

    rangehold dev --in-memory --profile cloud --table-port PORT

Three workers put entities into one partition as fast as they can, with the SDK's default retries and
nothing else, and then read everything back, page by page; a fourth client, that does not retry at all,
works quietly in a partition of its own meanwhile. It must hold that

- the job completes, and every entity is there once, whatever short or empty pages came;
- the hot partition was held at its target, 2,000 entities a second, with 503s;
- the quiet client met no 503, and hardly waited longer than when it was alone.

Exit status: 0 if all of it holds; 1 if not; 2 if the SDK could not be installed.
"""

import argparse
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import run

ENTITIES = 8_000
WORKERS = 3
BATCH = 100
# Documented target of a partition, entities a second.
TARGET = 2_000
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


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
    parser.add_argument("admin", help="where the server's metrics are, as HOST:PORT")
    parser.add_argument("--cache", type=Path, default=run.REPOSITORY / "target" / "azure-sdk")
    return parser.parse_args()


def run_in_environment(options):
    """Runs this file again, with the Python that has the SDK."""
    try:
        python = run.set_up_python(options.cache.resolve())
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the SDK could not be installed: {error}", file=sys.stderr)
        return 2
    return subprocess.run([python, __file__, *sys.argv[1:]]).returncode


def job(options):
    from azure.data.tables import TableServiceClient

    text = (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};"
        f"TableEndpoint=http://{options.host}:{options.port}/devstoreaccount1;"
    )
    TableServiceClient.from_connection_string(text).create_table_if_not_exists("cloudjob")
    quiet = Quiet(text)
    alone = quiet.during(lambda: time.sleep(2))
    busy_before = throttled(options.admin)
    begun = time.monotonic()
    read = []
    beside = quiet.during(lambda: (write_all(text), read.extend(at_once(lambda number: read_all(text)))))
    seconds = time.monotonic() - begun
    busy = throttled(options.admin) - busy_before
    # Written once, and read once by each.
    entities = ENTITIES * (1 + len(read))
    pages = [length for _, lengths in read for length in lengths]
    print(f"{entities} entities in {seconds:.1f} s, {entities / seconds:.0f} a second, {busy} requests not let in")
    print(f"read {len(read)} times, in {len(pages)} pages of {min(pages)} to {max(pages)} entities")
    print(f"quiet neighbour: median {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside the hot partition")
    return judge(
        {
            "every entity is there once": all(rows == [f"{row:06}" for row in range(ENTITIES)] for rows, _ in read),
            "a filter that nothing matches ends": read_all(text, "missing eq 1")[0] == [],
            # One second's worth is there at the beginning, and half of one may be owed at the end.
            "the partition was held at its target": entities <= TARGET * (seconds + 1.5) + 1000,
            "it was used": entities >= TARGET * seconds / 4,
            "requests were not let in": busy > 0,
            "the quiet neighbour was let in": not quiet.refused,
            "it did not wait": beside <= max(4 * alone, 0.05),
        }
    )


def judge(checks):
    for what, holds in checks.items():
        print("holds: " if holds else "FAILS: ", what)
    failed = sum(not holds for holds in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def write_all(text):
    """Puts the entities into one partition, by transactions, with the SDK's default retries."""

    def write(number):
        from azure.data.tables import TableClient

        with TableClient.from_connection_string(text, "cloudjob") as client:
            for begin in range(BATCH * number, ENTITIES, WORKERS * BATCH):
                rows = range(begin, min(begin + BATCH, ENTITIES))
                entities = [{"PartitionKey": "hot", "RowKey": f"{row:06}", "number": row} for row in rows]
                client.submit_transaction([("upsert", entity) for entity in entities])

    at_once(write)


def at_once(act):
    """What several threads return that each do `act` with their number."""
    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(act, range(WORKERS)))


def read_all(text, filter_text=None):
    """The RowKeys of the hot partition in their order, and how many came with each page."""
    from azure.data.tables import TableClient

    with TableClient.from_connection_string(text, "cloudjob") as client:
        wanted = "PartitionKey eq 'hot'" + (f" and {filter_text}" if filter_text else "")
        pages = [[entity["RowKey"] for entity in page] for page in client.query_entities(wanted).by_page()]
    return [row for page in pages for row in page], [len(page) for page in pages]


class Quiet:
    """A client that writes one entity after another, unhurried, and never tries twice."""

    def __init__(self, text):
        from azure.data.tables import TableClient

        self.client = TableClient.from_connection_string(text, "cloudjob", retry_total=0)
        self.refused = []

    def during(self, act):
        """Does `act`, and works meanwhile; the median time that a write took."""
        times, over = [], threading.Event()

        def work():
            while not over.wait(0.02):
                begun = time.monotonic()
                try:
                    self.client.upsert_entity({"PartitionKey": "quiet", "RowKey": "1", "number": len(times)})
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


def throttled(admin):
    """How many requests were not let in, of all causes."""
    text = urllib.request.urlopen(f"http://{admin}/metrics").read().decode()
    lines = [line for line in text.splitlines() if line.startswith("rangehold_throttled_total")]
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


if __name__ == "__main__":
    sys.exit(main())
