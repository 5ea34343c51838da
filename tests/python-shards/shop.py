"""A shop whose tenants live in several PostgreSQL databases: routed and fenced by SQL functions alone.

    shop.py CONNINFO-OF-THE-GLOBAL-MAP USER   reads tenants from stdin, writes an order for each
"""
import sys
import time

import psycopg

GLOBAL, USER = sys.argv[1:]
AGAIN = {"RH001", "RH002", "RH003", "RH005", "40001"}  # moved, offline, changing, conflict: begin again
places = {}  # what we remember of the global map


def locate(tenant):
    with psycopg.connect(GLOBAL) as connection:
        question = "SELECT server, port, database FROM __shard_management.locate('tenants', %s::bigint)"
        found = connection.execute(question, [tenant]).fetchone()
    if found is None:
        raise LookupError(f"tenant {tenant} has no shard")
    return found


def transaction(tenant, work):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        server, port, database = places.get(tenant) or places.setdefault(tenant, locate(tenant))
        try:  # the block commits at its end, or undoes
            with psycopg.connect(host=server, port=port, dbname=database, user=USER) as connection:
                connection.execute("SELECT __shard_management.enter('tenants', %s::bigint)", [tenant])
                return work(connection), database
        except psycopg.Error as error:
            if error.sqlstate not in AGAIN:
                raise
            del places[tenant]
            time.sleep(0.02)
    raise TimeoutError(f"tenant {tenant} stays offline")


for line in sys.stdin:
    tenant = int(line)
    order = "INSERT INTO orders VALUES (%s, now()) RETURNING tenant"
    try:
        print(tenant, *transaction(tenant, lambda shard: shard.execute(order, [tenant]).rowcount), flush=True)
    except LookupError as error:
        print(error, flush=True)
