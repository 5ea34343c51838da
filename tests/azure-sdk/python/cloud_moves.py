"""A job that continues while a range moves: are the SDK's default retries enough?

For some seconds after a move, the profile answers some requests with 503 `ServerBusy` or a late 500
`OperationTimedOut`. The SDK sends a request again three times: at once, 1.6 s later, and 3.2 s after that. So these
answers must end within 4.8 s, or a request from the beginning of a move may be refused four times.

- Writers put single entities. A write that was answered with 500 may have been done, and the SDK sends it again. So
  each write is an upsert, which may be done twice. Transactions cannot be used here: their errors, except for 503,
  are inside an answer with status 202, and the SDK looks only at that status when it decides about a retry.
- Readers read the range page by page, and continue with the next ranges.

If two moves follow each other closely, a request can meet both and be refused more than four times. The manager
waits some minutes after a move before it moves the same range again. Here the next move waits until every client
succeeded once, and none was refused meanwhile.
"""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import cloud_table

READERS = 2
# How many times the range moves at most, until both kinds of answers came: one answer in twenty is a 500.
MOVES_MAX = 5
POLL_SECONDS = 0.05
# Seconds for every client to succeed once. The SDK's retries take 5 s, and each late answer 2 s.
PROGRESS_SECONDS_MAX = 60


class Moves:
    """The job, and its results."""

    def __init__(self, text, admin):
        self.text, self.admin = text, admin
        # The status of every attempt, retries included.
        self.statuses = Counter()
        self.errors = []
        self.moved_to = []
        # How many entities or listings each client has done, and the errors.
        self.progress = [0] * (cloud_table.WORKERS + READERS)
        self.turns = {}
        self.listings = []
        self.over = threading.Event()

    def run(self):
        """Works until the range has moved often enough."""
        with ThreadPoolExecutor(len(self.progress)) as threads:
            work = [threads.submit(self._write, number) for number in range(cloud_table.WORKERS)]
            work += [threads.submit(self._read, cloud_table.WORKERS + number) for number in range(READERS)]
            try:
                self._move(work)
            finally:
                self.over.set()
        self.errors = [task.exception() for task in work if task.exception()]

    def met_both(self):
        return self.statuses[503] > 0 and self.statuses[500] > 0

    def _move(self, work):
        servers = self.admin.servers()
        while len(self.moved_to) < MOVES_MAX and not self.met_both():
            if not self._all_are_well(work):
                return
            at = servers.index(self.admin.server_of(cloud_table.MOVED))
            self.admin.move(cloud_table.MOVED, servers[(at + 1) % len(servers)])
            self.moved_to.append(self.admin.server_of(cloud_table.MOVED))
            self.admin.wait_until_quiet()

    def _all_are_well(self, work):
        """Waits until every client has done something more without a refusal. False if a client has ended.

        The request that a client is sending then began after the last refusal, so all its attempts are left.
        """
        refused = None
        while refused != self._refused():
            refused = self._refused()
            if not self._all_got_through(work):
                return False
        return True

    def _refused(self):
        return self.statuses[503] + self.statuses[500]

    def _all_got_through(self, work):
        """Waits until every client has done something more. False if a client has ended."""
        before, end = list(self.progress), time.monotonic() + PROGRESS_SECONDS_MAX
        while not all(now > then for now, then in zip(self.progress, before)):
            if any(task.done() for task in work):
                return False
            if time.monotonic() > end:
                raise TimeoutError(f"not every client got through in {PROGRESS_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)
        return True

    def _write(self, number):
        """Writes its share of the entities again and again. It always completes the first turn."""
        mine, turn = cloud_table.AWAY[number :: cloud_table.WORKERS], 0
        with cloud_table.client(self.text, raw_response_hook=self._count) as table:
            while turn == 0 or not self.over.is_set():
                turn += 1
                for key in mine:
                    if turn > 1 and self.over.is_set():
                        break
                    table.upsert_entity(cloud_table.entity(*key, turn))
                    self.turns[key] = turn
                    self.progress[number] += 1

    def _read(self, number):
        while not self.over.is_set():
            pages = cloud_table.read_pages(self.text, "PartitionKey lt 'hot'", raw_response_hook=self._count)
            self.listings.append(cloud_table.keys(pages))
            self.progress[number] += 1

    def _count(self, response):
        # The SDK calls this once for each answer, below its retries.
        self.statuses[response.http_response.status_code] += 1
