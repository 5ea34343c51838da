"""Loads a running server until it splits a range, and draws what happened.

    pip install azure-data-tables
    rangehold dev --servers 2
    python3 docs/split/load.py

It needs the program `rangehold` on the path, and the data directory of the server: start both in one place. It writes
40,000 orders of 40 shops, asks 60 times a second for the open orders of one shop, for four minutes, and
writes `split.svg`: the load of each server over time. A new range counts its load from zero, which
is the gap after the split; queries are answered all the while.
"""

import json
import random
import subprocess
import threading
import time

from azure.data.tables import TableServiceClient

SHOPS = [f"shop-{number:02}" for number in range(40)]
ORDERS = 1_000
QUERIES_PER_S, THREADS = 60, 6
SECONDS = 240
BATCH = 100

began = time.monotonic()
failed, waits = [], []


def write(orders) -> None:
    """Writes the orders; two of each shop are open."""
    for shop in SHOPS:
        for first in range(0, ORDERS, BATCH):
            orders.submit_transaction([
                ("upsert", {"PartitionKey": shop, "RowKey": f"{number:04}", "open": number % 500 == 0})
                for number in range(first, first + BATCH)
            ])


def ask(orders, chance: random.Random) -> None:
    """Asks for the open orders of shops chosen by chance."""
    due = time.monotonic()
    while due < began + SECONDS:
        due += chance.expovariate(QUERIES_PER_S / THREADS)
        time.sleep(max(0.0, due - time.monotonic()))
        sent = time.monotonic()
        try:
            found = list(orders.query_entities(f"PartitionKey eq '{chance.choice(SHOPS)}' and open eq true"))
            assert len(found) == 2, found
        except Exception as error:
            failed.append(error)
        waits.append(time.monotonic() - sent)


def rangehold(*words: str) -> list:
    """What a command of the program answers, one JSON value a line or one for all."""
    output = subprocess.run(["rangehold", *words, "--output", "json"], check=True, capture_output=True, text=True).stdout
    try:
        return [json.loads(output)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in output.splitlines()]


def watch(samples: list) -> None:
    """Notes the load of each server every two seconds, and when the map changed."""
    while time.monotonic() < began + SECONDS:
        [seen] = rangehold("ranges")
        load = {server["server"]: server["cost_per_s"] for server in seen["servers"]}
        samples.append((time.monotonic() - began, load, sorted((r["range"], r["server"]) for r in seen["ranges"])))
        time.sleep(2)


def svg(samples: list) -> str:
    """The load of the servers, one upon the other, and a line where ranges changed."""
    width, height, left, right, bottom = 735, 220, 50, 25, 30
    top = max(sum(load.values()) for _, load, _ in samples) * 1.1
    x = lambda at: left + at / SECONDS * (width - left - right)
    y = lambda load: height - bottom - load / top * (height - bottom - 24)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="11"><rect width="{width}" height="{height}" fill="white"/>']
    floor = [0.0] * len(samples)
    for server, colour in zip(sorted(samples[0][1]), ["#3b6fb6", "#e08a2e"]):
        ceiling = [low + load[server] for low, (_, load, _) in zip(floor, samples)]
        edge = [f"{x(at):.1f},{y(load):.1f}" for (at, _, _), load in zip(samples, ceiling)]
        back = [f"{x(at):.1f},{y(load):.1f}" for (at, _, _), load in zip(samples, floor)][::-1]
        parts.append(f'<polygon points="{" ".join(edge + back)}" fill="{colour}"/>')
        middle = y((floor[-1] + ceiling[-1]) / 2)
        parts.append(f'<text x="{width - 85}" y="{middle:.0f}" fill="white">server {server}</text>')
        floor = ceiling
    for (_, _, before), (at, _, after) in zip(samples, samples[1:]):
        if before != after:
            what = "split" if len(after) > len(before) else "move"
            parts.append(f'<path d="M{x(at):.1f} 20V{height - bottom}" stroke="black" stroke-dasharray="3"/>'
                         f'<text x="{x(at):.1f}" y="{14 if what == "split" else 26}" dx="3">{what}</text>')
    for load in range(0, int(top), 1000):
        parts.append(f'<text x="{left - 6}" y="{y(load) + 4:.0f}" text-anchor="end">{load:,}</text>')
    for at in range(0, SECONDS + 1, 60):
        parts.append(f'<text x="{x(at):.0f}" y="{height - 12}" text-anchor="middle">{at} s</text>')
    parts.append(f'<text x="{left}" y="14">load: entities looked at, in units of 20, each second</text></svg>\n')
    return "\n".join(parts)


def main() -> None:
    service = TableServiceClient.from_connection_string("UseDevelopmentStorage=true")
    orders = service.create_table_if_not_exists("orders")
    write(orders)
    samples = []
    threads = [threading.Thread(target=ask, args=(orders, random.Random(seed))) for seed in range(THREADS)]
    threads.append(threading.Thread(target=watch, args=(samples,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open("split.svg", "w") as file:
        file.write(svg(samples))
    waits.sort()
    print(f"{len(waits)} queries, {len(failed)} failed; half took {waits[len(waits) // 2] * 1e3:.0f} ms, "
          f"the slowest {waits[-1] * 1e3:.0f} ms")


main()
