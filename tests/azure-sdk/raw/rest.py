"""Signed requests to a table service, byte for byte as the caller writes them.

An HTTP library would correct what these tests must send (unusual paths, duplicate headers, wrong
lengths), so requests are written to a socket here. The standard library only parses the replies. Signatures are SharedKey for tables: HMAC-SHA256 over
`VERB\\nContent-MD5\\nContent-Type\\nDate\\n/account/path[?comp=...]`.
"""

import base64
import email.utils
import hashlib
import hmac
import http.client
import io
import json
import os
import re
import socket
import uuid
from urllib.parse import quote, urlsplit

ENDPOINT = os.environ.get("RANGEHOLD_TABLE_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1")
KEY = os.environ.get(
    "RANGEHOLD_KEY", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
HOST, PORT = urlsplit(ENDPOINT).hostname, urlsplit(ENDPOINT).port
ACCOUNT = urlsplit(ENDPOINT).path.strip("/")
VERSION = "2019-02-02"
REPLY_SECONDS_MAX = 60


class Reply:
    """A reply: status, headers (lower-case names), body."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode("utf-8-sig")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        """The code and the text of an error body, JSON or XML. The text is without request id and time."""
        if self.text.lstrip().startswith("{"):
            error = self.json["odata.error"]
            return error["code"], error["message"]["value"].split("\nRequestId:")[0]
        code, text = (re.search(rf"<m:{tag}[^>]*>(.*?)</m:{tag}>", self.text, re.S) for tag in ("code", "message"))
        return code[1], text[1].split("\nRequestId:")[0]

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def send(method, path, query="", body=b"", headers=(), *, prefix=f"/{ACCOUNT}", host=None, signed=True, key=KEY):
    """Sends a request to `{prefix}{path}?{query}` and returns its reply.

    `headers` replaces the usual ones by name; a value of None leaves one out. `host` is for host style, with an
    empty prefix. `signed=False` leaves Authorization out.
    """
    body = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
    usual = {
        "Host": host or f"{HOST}:{PORT}",
        "x-ms-date": email.utils.formatdate(usegmt=True),
        "x-ms-version": VERSION,
        "Accept": "application/json;odata=minimalmetadata",
        "DataServiceVersion": "3.0",
        "Connection": "close",
    }
    if body or method in ("POST", "PUT", "PATCH", "MERGE"):
        usual |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    wanted = {**usual, **dict(headers)}
    if signed and "Authorization" not in wanted:
        wanted["Authorization"] = f"SharedKey {ACCOUNT}:{signature(method, prefix + path, query, wanted, key)}"
    target = prefix + path + (f"?{query}" if query else "")
    head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items() if value is not None)]
    return exchange("\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + body, method)


def signature(method, path, query, headers, key):
    resource = f"/{ACCOUNT}{path}"
    comp = re.search(r"(?:^|&)comp=([^&]*)", query)
    if comp:
        resource += f"?comp={comp[1]}"
    signed = (
        method,
        headers.get("Content-MD5") or "",
        headers.get("Content-Type") or "",
        headers.get("x-ms-date") or "",
        resource,
    )
    return hmac_sha256(key, "\n".join(signed))


def hmac_sha256(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def exchange(request, method="GET"):
    """Sends bytes and returns the parsed reply."""
    with socket.create_connection((HOST, PORT), timeout=REPLY_SECONDS_MAX) as connection:
        try:
            connection.sendall(request)
        except ConnectionError:
            pass  # Refused before all of it was read; the reply says why.
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        return Reply(response)


def exchange_any(request):
    """Sends any bytes. Returns what comes until the server closes the connection or sends no more."""
    with socket.create_connection((HOST, PORT), timeout=REPLY_SECONDS_MAX) as connection:
        answer = io.BytesIO()
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                answer.write(chunk)
        except OSError:
            pass  # Closed by the server, at whatever moment.
        return answer.getvalue()


def new_table():
    """Creates a table with a unique name, and returns the name."""
    name = "raw" + uuid.uuid4().hex
    reply = send("POST", "/Tables", body={"TableName": name})
    assert reply.status == 201, reply
    return name


def drop_table(name):
    send("DELETE", f"/Tables('{name}')")


def entity_path(table, partition, row):
    return f"/{table}(PartitionKey='{key_text(partition)}',RowKey='{key_text(row)}')"


def key_text(key):
    return quote(key.replace("'", "''"), safe="")


def insert(table, partition, row, **properties):
    reply = send("POST", f"/{table}", body={"PartitionKey": partition, "RowKey": row, **properties})
    assert reply.status == 201, reply
    return reply


def batch(table, operations, *, prefix=f"/{ACCOUNT}", host=None):
    """Sends a transaction of `(method, partition, row, properties)`. For POST the keys are in the body."""
    changes = []
    for method, partition, row, properties in operations:
        path = f"/{table}" if method == "POST" else entity_path(table, partition, row)
        body = json.dumps({"PartitionKey": partition, "RowKey": row, **properties}) if method != "DELETE" else ""
        changes.append(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"{method} http://{host or f'{HOST}:{PORT}'}{prefix}{path} HTTP/1.1\r\n"
            "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n"
            "DataServiceVersion: 3.0;\r\n"
            + ("Prefer: return-no-content\r\n" if method == "POST" else "")
            + ("If-Match: *\r\n" if method == "DELETE" else "")
            + f"\r\n{body}\r\n"
        )
    body = (
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
        + "".join(changes)
        + "--changeset_c--\r\n\r\n--batch_b--\r\n"
    )
    return send(
        "POST",
        "/$batch",
        body=body,
        headers={"Content-Type": "multipart/mixed; boundary=batch_b"},
        prefix=prefix,
        host=host,
    )


def statuses(reply):
    """The status of each part of a batch reply."""
    return [int(status) for status in re.findall(r"HTTP/1\.1 (\d+)", reply.text)]
