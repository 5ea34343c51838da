"""A client of the admin endpoint, as docs/admin-api.md describes it."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

# How often a change is asked for again if the answer says that nothing was done.
AGAIN_MAX = 10
# Seconds before it is asked for again.
AGAIN_SECONDS = 0.5
# Seconds between two looks at the rehearsals.
POLL_SECONDS = 0.1
# Seconds for an answer. A change waits at most half a minute until its range is ready.
ANSWER_SECONDS_MAX = 120
# Seconds. The effects of a move in the profile end long before.
QUIET_SECONDS_MAX = 60


class Admin:
    """Changes ranges, and reports about them."""

    def __init__(self, address, token_file):
        self.url = f"http://{address}"
        self.headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}

    def split(self, key):
        self._change("split", {"at": key})

    def move(self, key, server):
        """Moves the range that holds a key to a server."""
        self._change("move", {"range": key, "to": server})

    def server_of(self, key):
        """The server of the range that holds a key."""
        [entry] = self._get(f"/v1/map?range={urllib.parse.quote(key, safe='')}")["ranges"]
        return entry["server"]

    def servers(self):
        """The names of all servers."""
        return [server["server"] for server in self._get("/v1/ranges")["servers"]]

    def wait_until_quiet(self):
        """Waits until no range misbehaves any more, because of a rehearsal or of a move."""
        end = time.monotonic() + QUIET_SECONDS_MAX
        while self._get("/v1/rehearsals"):
            if time.monotonic() > end:
                raise TimeoutError(f"a range still misbehaves after {QUIET_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)

    def throttled(self):
        """How many requests were not let in, for any reason."""
        text = self._open(f"{self.url}/metrics").read().decode()
        lines = [line for line in text.splitlines() if line.startswith("rangehold_throttled_total")]
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines)

    def _get(self, path):
        return json.load(self._open(urllib.request.Request(self.url + path, headers=self.headers)))

    def _open(self, request):
        return urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX)

    def _change(self, verb, body):
        request = urllib.request.Request(
            f"{self.url}/v1/map/{verb}", data=json.dumps(body).encode(), headers=self.headers, method="POST"
        )
        for attempt in range(AGAIN_MAX):
            try:
                return self._open(request).read()
            except urllib.error.HTTPError as error:
                text = error.read().decode()
                if error.code != 503 or attempt == AGAIN_MAX - 1:
                    raise RuntimeError(f"{verb} {body} was answered {error.code}: {text}") from error
                time.sleep(AGAIN_SECONDS)
