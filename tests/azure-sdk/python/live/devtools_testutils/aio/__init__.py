"""The asynchronous part of the stand-in."""

from .. import take_accepted


def recorded_by_proxy_async(test):
    async def live(*args, **kwargs):
        kwargs.setdefault("variables", {})
        return await test(*args, **take_accepted(test, kwargs))

    live.__name__, live.__doc__ = test.__name__, test.__doc__
    return live
