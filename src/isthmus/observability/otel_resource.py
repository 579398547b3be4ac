"""Describes this program to a collector of OpenTelemetry, and ends what sends to one in time."""

import threading
from collections.abc import Callable

from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from isthmus import __version__

FLUSH_SECONDS = 2.0
"""Maximum time in seconds for sending what is left when the program ends."""


def described() -> Resource:
    """Return this program as the standard variables of the environment name it."""
    name = OTELResourceDetector().detect().attributes.get("service.name") or "isthmus"
    return Resource.create({"service.name": name, "service.version": __version__})


def end(shutdown: Callable[[], object], name: str) -> None:
    """Call the ``shutdown`` of a provider in a thread of this name, and wait a few seconds at most. Blocking."""
    # The SDK would wait for half a minute if the collector does not answer, and so would the end of the program.
    closing = threading.Thread(target=shutdown, name=name, daemon=True)
    closing.start()
    closing.join(FLUSH_SECONDS)
