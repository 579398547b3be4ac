"""A2A with the development-tool extension: a server for any agent, a client for any server, and what both share.

The names that other programs use are listed here; their modules are loaded when a name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.a2a.client import RemoteAgent
    from isthmus.a2a.hosting import HostedApplication, asgi_application, serve
    from isthmus.a2a.hosting_options import Hosting
    from isthmus.a2a.options import ServerOptions, Skill
    from isthmus.a2a.server.users.users import Caps
    from isthmus.a2a.serving.names import ServingError
    from isthmus.a2a.serving.telemetry import TelemetryOptions
    from isthmus.a2a.serving.users import SignIn

__all__ = [
    "Caps",
    "HostedApplication",
    "Hosting",
    "RemoteAgent",
    "ServerOptions",
    "ServingError",
    "SignIn",
    "Skill",
    "TelemetryOptions",
    "asgi_application",
    "serve",
]

_MODULES = {
    "Caps": "server.users.users",
    "HostedApplication": "hosting",
    "Hosting": "hosting_options",
    "RemoteAgent": "client",
    "ServerOptions": "options",
    "ServingError": "serving.names",
    "SignIn": "serving.users",
    "Skill": "options",
    "TelemetryOptions": "serving.telemetry",
    "asgi_application": "hosting",
    "serve": "hosting",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
