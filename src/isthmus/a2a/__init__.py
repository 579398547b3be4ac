"""A2A with the development-tool extension: a server for any agent, a client for any server, and what both share.

The names that other programs use are listed here; their modules are loaded when a name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.a2a.client import RemoteAgent
    from isthmus.a2a.hosting import HostedApplication, Hosting, asgi_application, serve

__all__ = ["HostedApplication", "Hosting", "RemoteAgent", "asgi_application", "serve"]

_MODULES = {
    "HostedApplication": "hosting",
    "Hosting": "hosting",
    "RemoteAgent": "client",
    "asgi_application": "hosting",
    "serve": "hosting",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
