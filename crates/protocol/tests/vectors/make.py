"""Makes sdk.json: requests and tokens signed, and batches written, by Microsoft's own Python SDKs.

    pip install azure-data-tables==12.7.0 azure-storage-blob aiohttp
    python make.py > sdk.json

Requests go through the SDK's real pipeline to a transport that keeps them. What no current SDK
makes (SharedKeyLite, old versions of table SAS) is computed here from Azure's documentation.
"""
import asyncio, base64, hashlib, hmac, json, uuid
from urllib.parse import quote, urlsplit

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.pipeline.transport import AsyncHttpTransport, HttpTransport
from azure.data.tables import (ResourceTypes, AccountSasPermissions, TableSasPermissions, TableServiceClient,
                               _base_client, _policies, generate_account_sas, generate_table_sas)
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient, _base_client_async
from azure.storage.blob import generate_account_sas as generate_new_account_sas
from yarl import URL

DATE = "Sat, 21 Nov 2026 08:00:00 GMT"
KEY = base64.b64encode(bytes(range(64))).decode()
_policies.format_date_time = lambda _: DATE
_base_client.uuid4 = _base_client_async.uuid4 = lambda: uuid.UUID(int=7)
credential = AzureNamedKeyCredential("acct", KEY)
requests, kept = [], []


class Kept(Exception):
    pass


def keep(request):
    kept.append(request)
    raise Kept


class Keeper(HttpTransport):
    def send(self, request, **_): keep(request)
    def open(self): pass
    def close(self): pass
    def __exit__(self, *_): pass


class AsyncKeeper(AsyncHttpTransport):
    async def send(self, request, **_): keep(request)
    async def open(self): pass
    async def close(self): pass
    async def __aexit__(self, *_): pass


def record(name, request, sent):
    url = urlsplit(sent)
    headers = {k.lower(): v for k, v in request.headers.items()}
    wanted = ("authorization", "date", "x-ms-date", "content-type", "content-md5")
    requests.append({"name": name, "method": request.method, "path": url.path, "query": url.query,
                     **{h.replace("-", "_"): headers[h] for h in wanted if h in headers}})


KEYS = [("p", "r"), ("it's", "100%"), ("", ""), ("啊 b", "a+b=c&d"), ("PK''@*$!%", "(,);:~"), ("a%27b", "𐀀")]


def calls(service):
    """Name, and a function that makes the call."""
    table = service.get_table_client("people")
    yield "create table", lambda: service.create_table("people")
    yield "delete table", lambda: service.delete_table("people")
    yield "get properties", lambda: service.get_service_properties()
    yield "get stats on the secondary", lambda: service.get_service_stats()
    yield "get acl", lambda: table.get_table_access_policy()
    yield "set acl", lambda: table.set_table_access_policy({})
    for pk, rk in KEYS:
        entity = {"PartitionKey": pk, "RowKey": rk}
        yield f"get {pk!r} {rk!r}", lambda pk=pk, rk=rk: table.get_entity(pk, rk)
        yield f"upsert {pk!r} {rk!r}", lambda e=entity: table.upsert_entity(e)
        yield f"delete {pk!r} {rk!r}", lambda pk=pk, rk=rk: table.delete_entity(pk, rk)
    yield "insert", lambda: table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    yield "batch", lambda: table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "r"})])


def sync_requests(style, endpoint):
    service = TableServiceClient(endpoint, credential=credential, transport=Keeper(), retry_total=0)
    for name, call in calls(service):
        try:
            call()
        except Kept:
            record(f"{style} style: {name}", kept[-1], kept[-1].url)


async def async_requests(style, endpoint):
    service = AsyncTableServiceClient(endpoint, credential=credential, transport=AsyncKeeper(), retry_total=0)
    for name, call in calls(service):
        try:
            await call()
        except Kept:
            # aiohttp sends the path as yarl writes it.
            record(f"{style} style, async: {name}", kept[-1], str(URL(kept[-1].url)))


def batches():
    """Content type and body of batches, with the methods and keys that are in them."""
    table = TableServiceClient("http://127.0.0.1:10002/acct", credential=credential, transport=Keeper(),
                               retry_total=0).get_table_client("people")
    entities = [{"PartitionKey": "p", "RowKey": rk, "text": "--changeset_\r\n\r\n 啊"} for _, rk in KEYS]
    for operations in [[], [("create", entities[0])],
                       [("create", entities[0]), ("update", entities[1]), ("delete", entities[2]),
                        ("upsert", entities[3], {"mode": "replace"}), ("upsert", entities[5])]]:
        try:
            table.submit_transaction(operations)
        except Kept:
            body = kept[-1].content
            yield {"content_type": kept[-1].headers["Content-Type"],
                   "body": body if isinstance(body, str) else body.decode(),
                   "row_keys": [operation[1]["RowKey"] for operation in operations]}


def sign(text):
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def lite_requests():
    for path, query in [("/Tables", ""), ("/acct/people()", "comp=acl"), ("/people(PartitionKey='a',RowKey='%25')", "")]:
        text = f"{DATE}\n/acct{path}" + ("?comp=acl" if query else "")
        requests.append({"name": f"lite: {path}", "method": "GET", "path": path, "query": query, "date": DATE,
                         "authorization": "SharedKeyLite acct:" + sign(text)})


def tokens():
    yield "table", generate_table_sas(credential, "People", permission="raud", expiry="2040-01-01T00:00:00Z")
    yield "table", generate_table_sas(credential, "People", policy_id="pö licy")
    yield "table", generate_table_sas(
        credential, "people", permission=TableSasPermissions(read=True), expiry="2040-01-01", start="2020-01-01",
        ip_address_or_range="127.0.0.1-127.0.0.9", protocol="https,http", start_pk="it's", start_rk="100%+",
        end_pk="啊", end_rk="𐀀&")
    for types, permission in [("s", "r"), ("sco", "rwdlacu"), ("o", "rau")]:
        yield "account", generate_account_sas(
            credential, ResourceTypes.from_string(types), AccountSasPermissions.from_string(permission),
            "2040-01-01T00:00:00Z", start="2020-01-01T00:00:00Z", protocol="https,http")
    # From 2020-12-06 on one more field is signed.
    import azure.storage.blob as blob
    for permission in ["rwdlacu"]:
        token = generate_new_account_sas(
            "acct", KEY, resource_types=blob.ResourceTypes(service=True, container=True, object=True),
            permission=permission, expiry="2040-01-01T00:00:00Z", services=blob.Services(blob=True), sts_hook=None)
        yield "account, not for tables", token
    fields = {"sv": "2099-12-31", "ss": "t", "srt": "sco", "sp": "rl", "se": "2040-01-01T00:00:00Z"}
    text = "acct\nrl\nt\nsco\n\n2040-01-01T00:00:00Z\n\n\n2099-12-31\n\n"
    yield "account", encode(fields | {"sig": sign(text)})
    for version, resource in [("2012-02-12", "/acct/people"), ("2015-02-21", "/table/acct/people")]:
        fields = {"sv": version, "tn": "People", "sp": "r", "se": "2040-01-01T00:00:00Z", "spk": "a", "epk": "b"}
        text = f"r\n\n2040-01-01T00:00:00Z\n{resource}\n\n{version}\na\n\nb\n"
        yield "table", encode(fields | {"sig": sign(text)})


def encode(fields):
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


for style, endpoint in [("path", "http://127.0.0.1:10002/acct"), ("host", "https://acct.table.core.windows.net")]:
    sync_requests(style, endpoint)
    asyncio.run(async_requests(style, endpoint))
lite_requests()
document = {"account": "acct", "key": KEY, "now": "2026-11-21T08:00:00Z", "requests": requests,
            "batches": list(batches()),
            "tokens": [{"kind": kind, "token": token} for kind, token in tokens()]}
print(json.dumps(document, indent=1, ensure_ascii=False))
