"""A pytest plugin that points the tests of azure-data-tables at a live table service.

It reads the environment, which run.py sets:

  LIVE_ENDPOINT   http://HOST:PORT/ACCOUNT (path style) or https://HOST:PORT (host style)
  LIVE_STYLE      path or host. With host, every test uses https://ACCOUNT.table.core.windows.net, and
                  this name leads to HOST:PORT, so that nothing leaves this machine
  LIVE_RESULTS    the file for one JSON record per test

Before each test all tables are deleted, because the tests assume an account of their own. The tests and the
SDK's retries sleep as long as the cloud needs; here sleeps are shortened to SLEEP_SECONDS_MAX.
"""

import asyncio
import base64
import json
import os
import socket
import time
import warnings
from urllib.parse import urlsplit

import pytest

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ENDPOINT = os.environ["LIVE_ENDPOINT"].rstrip("/")
HOST_STYLE = os.environ["LIVE_STYLE"] == "host"
CLOUD_SUFFIX = ".table.core.windows.net"
ACCOUNT_URL = f"https://{ACCOUNT}{CLOUD_SUFFIX}" if HOST_STYLE else ENDPOINT
SLEEP_SECONDS_MAX = 0.05
MESSAGE_CHARACTERS_MAX = 600

# These tests contain https or the cloud's host name, or need a bearer token.
NEEDS_HOST_STYLE = (
    "test_table_client_with_named_key_credential",
    "test_table_service_client_with_named_key_credential",
    "test_table_client_with_sas_token_credential",
    "test_table_service_client_with_sas_token_credential",
    "test_table_client_with_token_credential",
    "test_table_service_client_with_token_credential",
)
# These tests use only Azure's login service, or a mock of it, and not the service under test.
NO_SERVER = ("test_list_tables_with_invalid_credential", "test_error_handling")
# Expects a time-out in the client, but a near server may answer sooner: it passes or fails by chance.
CHANCE = ("test_retry_on_socket_timeout_async",)


def runs(item):
    """Whether a collected test tests the service under test."""
    name, test_class = item.name.split("[")[0], item.cls.__name__ if item.cls else ""
    bearer = "AAD" in test_class or "aad" in item.nodeid.lower().split("::")[-1]
    return not (
        "UnitTest" in test_class
        or "challenge_auth" in item.nodeid
        or name in NO_SERVER + CHANCE
        or item.get_closest_marker("playback_test_only")
        or (not HOST_STYLE and (bearer or name in NEEDS_HOST_STYLE))
    )


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if runs(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_configure(config):
    config.addinivalue_line("markers", "live_test_only: runs live")
    config.addinivalue_line("markers", "playback_test_only: never runs here")
    import azure.identity
    import azure.identity.aio

    # This must happen before the tests' base class is imported, because that takes its credential from here.
    azure.identity.DefaultAzureCredential = BearerCredential
    azure.identity.aio.DefaultAzureCredential = AsyncBearerCredential
    from _shared.testcase import TableTestCase

    cloud_url = TableTestCase.account_url

    def account_url(case, account, endpoint_type):
        ours = str(account) == ACCOUNT and endpoint_type == "table"
        return ACCOUNT_URL if ours else cloud_url(case, account, endpoint_type)

    TableTestCase.account_url = account_url
    cut_sleeps()
    if HOST_STYLE:
        look_up_here()
        trust_any_certificate()


def cut_sleeps():
    sleep, sleep_async = time.sleep, asyncio.sleep

    async def cut_async(delay, result=None):
        return await sleep_async(min(delay, SLEEP_SECONDS_MAX), result)

    time.sleep = lambda seconds=0: sleep(min(seconds, SLEEP_SECONDS_MAX))
    asyncio.sleep = cut_async


def look_up_here():
    """In this process, every host name of the cloud's table service leads to the server under test."""
    server, look_up = urlsplit(ENDPOINT), socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name.endswith(CLOUD_SUFFIX):
            host, port = server.hostname, server.port
        return look_up(host, port, *args, **kwargs)

    socket.getaddrinfo = getaddrinfo


def trust_any_certificate():
    import aiohttp
    import requests

    warnings.simplefilter("ignore")
    send, request = requests.Session.send, aiohttp.ClientSession._request
    requests.Session.send = lambda session, prepared, **kwargs: send(session, prepared, **{**kwargs, "verify": False})

    async def request_unverified(session, *args, **kwargs):
        return await request(session, *args, **{**kwargs, "ssl": False})

    aiohttp.ClientSession._request = request_unverified


def bearer_token():
    """A token in the form of Azure's login service, without a valid signature; and its expiry."""

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    now, tenant = int(time.time()), "ab1f708d-50f6-404c-a006-d71b2ac7a606"
    claims = {
        "aud": "https://storage.azure.com",
        "iss": f"https://sts.windows.net/{tenant}/",
        "iat": now - 60,
        "nbf": now - 60,
        "exp": now + 7200,
        "tid": tenant,
        "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
        "ver": "1.0",
    }
    return f'{part({"typ": "JWT", "alg": "RS256", "kid": "none"})}.{part(claims)}.c2ln', claims["exp"]


class BearerCredential:
    """Replaces azure.identity.DefaultAzureCredential, which would ask Azure."""

    def __init__(self, *args, **kwargs):
        pass

    def get_token(self, *scopes, **kwargs):
        from azure.core.credentials import AccessToken

        return AccessToken(*bearer_token())

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


class AsyncBearerCredential:
    """Replaces azure.identity.aio.DefaultAzureCredential."""

    def __init__(self, *args, **kwargs):
        pass

    async def get_token(self, *scopes, **kwargs):
        return BearerCredential().get_token(*scopes)

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *args):
        pass


@pytest.fixture(scope="session")
def sweeper():
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.data.tables import TableServiceClient

    with TableServiceClient(ACCOUNT_URL, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as client:
        yield client


@pytest.fixture(autouse=True)
def no_tables(sweeper):
    for table in list(sweeper.list_tables()):
        sweeper.delete_table(table.name)


records = {}


def pytest_runtest_logreport(report):
    """Keeps the first failure of a test, or the outcome of its call."""
    earlier = records.get(report.nodeid)
    if (report.when != "call" and report.passed) or (earlier and earlier["outcome"] == "failed"):
        return
    message = ""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = (crash.message if crash else str(report.longrepr)).replace("\n", " // ")
    elif report.skipped:
        message = str(report.longrepr)
    records[report.nodeid] = {
        "id": report.nodeid,
        "outcome": report.outcome,
        "seconds": round(report.duration, 3),
        "message": message[:MESSAGE_CHARACTERS_MAX],
    }


def pytest_sessionfinish(session):
    with open(os.environ["LIVE_RESULTS"], "w") as file:
        json.dump(list(records.values()), file, indent=1)
