"""Replaces `devtools_testutils`, the package that the SDK's tests import and that Microsoft does not publish.

It was written from the names that the tests import, and contains no code of the original. The original
records and replays conversations with the real service. Here every test runs live, against the service
that `live_service` gives; names, keys and credentials come from there too.
"""

import asyncio
import hashlib
import inspect
import os
import time

import pytest

from live_service import ACCOUNT, KEY, AsyncBearerCredential, BearerCredential

# Names of resources differ in each run, as in the live mode of the original package.
RUN = format(int(time.time() * 1000) & 0xFFFFFF, "06x")


def is_live():
    return True


def is_live_and_not_recording():
    return True


def take_accepted(function, arguments):
    """The arguments for which the function has parameters."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def recorded_by_proxy(test):
    def live(*args, **kwargs):
        kwargs.setdefault("variables", {})
        return test(*args, **take_accepted(test, kwargs))

    live.__name__, live.__doc__ = test.__name__, test.__doc__
    return live


class EnvironmentVariableLoader:
    """A decorator that gives a test the account's name and key under the names of its parameters."""

    def __init__(self, directory, **defaults):
        self.defaults = defaults

    def values(self):
        def value(name):
            return KEY if name.endswith("_key") else ACCOUNT if "account_name" in name else self.defaults[name]

        return {name: value(name) for name in self.defaults}

    def __call__(self, test):
        if inspect.iscoroutinefunction(test):

            async def prepared(case):
                await test(case, **self.values())

        else:

            def prepared(case):
                test(case, **self.values())

        prepared.__name__ = getattr(test, "__name__", "prepared")
        return prepared


PowerShellPreparer = EnvironmentVariableLoader


class AzureRecordedTestCase:
    """The base class of the SDK's test classes."""

    is_live = True
    in_recording = False

    def is_playback(self):
        return False

    @property
    def qualified_test_name(self):
        return os.environ.get("PYTEST_CURRENT_TEST", "x").split(" ")[0]

    def get_resource_name(self, name):
        return name + hashlib.md5((RUN + self.qualified_test_name).encode()).hexdigest()[:8]

    create_random_name = get_preparer_resource_name = get_resource_name

    def get_credential(self, client_class=None, **kwargs):
        return get_credential(**kwargs)

    def sleep(self, seconds):
        time.sleep(seconds)

    def generate_sas(self, function, *args, **kwargs):
        return function(*args, **kwargs)


AzureTestCase = AzureRecordedTestCase


def get_credential(is_async=False, **kwargs):
    return AsyncBearerCredential() if is_async else BearerCredential()


class ResponseCallback:
    """Changes the status of responses. Tests use it to make the SDK retry."""

    def __init__(self, status=None, new_status=None):
        self.status, self.new_status, self.first, self.count = status, new_status, True, 0

    def override_first_status(self, response):
        if self.first and response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
            self.first = False
        self.count += 1

    def override_status(self, response):
        if response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
        self.count += 1


class RetryCounter:
    def __init__(self):
        self.count = 0

    def simple_count(self, retry_context):
        self.count += 1


def nothing(*args, **kwargs):
    """Replaces a function that controls the recording proxy. There is no proxy here."""


set_custom_default_matcher = set_bodiless_matcher = set_function_recording_options = nothing
add_general_regex_sanitizer = add_body_key_sanitizer = add_oauth_response_sanitizer = nothing
add_general_string_sanitizer = add_header_regex_sanitizer = add_uri_regex_sanitizer = nothing
remove_batch_sanitizers = add_sanitizer = nothing


@pytest.fixture(scope="session")
def test_proxy():
    yield None


test_proxy.__test__ = False
