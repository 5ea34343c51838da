"""The table of the job: its keys, its ranges, and how the SDK writes and reads it.

    cloudjob/*        away-0, away-1, away-2      a range that moves while it is used
    cloudjob/empty    nothing                     a range without an entity
    cloudjob/full     hot, quiet                  the hot partition and its neighbour
"""

from concurrent.futures import ThreadPoolExecutor

TABLE = "cloudjob"
CUTS = [f"{TABLE}/*", f"{TABLE}/empty", f"{TABLE}/full"]
# A key of the range that moves, as the admin API writes keys.
MOVED = f"{TABLE}/away"
# The keys of the entities, in the order of a listing. The range that moves has more than one page of entities,
# and less than two.
AWAY = [(f"away-{part}", f"{row:06}") for part in range(3) for row in range(400)]
HOT = [("hot", f"{row:06}") for row in range(8_000)]
# Entities in a full page, as documented.
PAGE = 1_000
# Clients that work at the same time, and entities in a transaction.
WORKERS = 3
BATCH = 100
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def connection_string(host, port):
    return (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};"
        f"TableEndpoint=http://{host}:{port}/devstoreaccount1;"
    )


def client(text, **options):
    """A client of the table, with the SDK's defaults for everything that is not given."""
    from azure.data.tables import TableClient

    return TableClient.from_connection_string(text, TABLE, **options)


def make(text, admin):
    """Makes the table, and splits its range while it is empty."""
    from azure.data.tables import TableServiceClient

    TableServiceClient.from_connection_string(text).create_table_if_not_exists(TABLE)
    for cut in CUTS:
        admin.split(cut)


def at_once(act):
    """Runs `act` in several threads, each with its number, and returns the results."""
    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(act, range(WORKERS)))


def write_all(text):
    """Writes the entities of all partitions, in transactions."""
    batches = []
    for keys in [AWAY[:400], AWAY[400:800], AWAY[800:], HOT]:
        batches += [keys[begin : begin + BATCH] for begin in range(0, len(keys), BATCH)]

    def write(number):
        with client(text) as table:
            for batch in batches[number::WORKERS]:
                # Upserts, because the SDK may repeat a request that was done already.
                table.submit_transaction([("upsert", entity(*key)) for key in batch])

    at_once(write)


def entity(partition_key, row_key, turn=0):
    return {"PartitionKey": partition_key, "RowKey": row_key, "number": int(row_key), "turn": turn}


def read_pages(text, wanted=None, **options):
    """The entities of each page of a query, or of the whole table. A page without a token is the last one."""
    with client(text, **options) as table:
        found = table.query_entities(wanted) if wanted else table.list_entities()
        return [list(page) for page in found.by_page()]


def keys(pages):
    return [(row["PartitionKey"], row["RowKey"]) for page in pages for row in page]


def end_with_ranges(pages):
    """Whether the pages of the whole table end where the ranges end: a short page with the range that moves, and
    then an empty page with the range that has no entities, each with a token."""
    ends = [index for index, page in enumerate(pages) if page and keys([page])[-1] == AWAY[-1]]
    if len(ends) != 1:
        return False
    rest = pages[ends[0] + 1 :]
    return len(pages[ends[0]]) < PAGE and len(rest) > 1 and rest[0] == []
