"""Chooses the wire for a request: a dialect that claims it, otherwise the version that has its method.

No method name is in both 0.3 and 1.0, so both versions are served at one URL. ``A2A-Version`` may be absent; if it is
present, that version must have the method.
"""

from typing import Self

from isthmus.a2a.coder_agent.dialect import CoderAgentDialect
from isthmus.a2a.dialect import Dialect
from isthmus.a2a.openings import Openings
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension_requests import METHODS as METHODS_OF_BOTH
from isthmus.a2a.v03.wire import ProtoWireV03, WireV03
from isthmus.a2a.v1.operations import METHODS as V1_METHODS
from isthmus.a2a.v1.wire import WireV1, is_version, version_not_supported
from isthmus.a2a.wire import Call, Wire
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError

FOLLOWING = ("tasks/resubscribe", "SubscribeToTask")
"""Methods that resume after an event.

All others ignore ``Last-Event-ID``: some clients send it with whatever request comes next on a stream's connection.
"""


class Wires:
    """The versions and dialects that a server speaks; a new one is added here.

    A server uses one object for all its answers and push notifications.
    """

    def __init__(self, *, strict_extension: bool = False, progress_text: bool = False) -> None:
        self.openings = Openings()
        """Memory of the form in which each task was opened."""
        self._dialects: tuple[Dialect, ...] = (CoderAgentDialect(),)
        # A server that requires the extension refuses messages of dialects that replace it.
        self._claiming = () if strict_extension else self._dialects
        self._v03: Wire = WireV03(strict_extension=strict_extension, progress_text=progress_text)
        self.v1: Wire = WireV1(strict_extension=strict_extension, progress_text=progress_text)
        """A2A 1.0, for requests whose path identifies it (REST)."""
        self.v03_rest: Wire = ProtoWireV03(strict_extension=strict_extension, progress_text=progress_text)
        """A2A 0.3 over HTTP and JSON."""
        served = (self._v03, self.v1, *(each.wire for each in self._claiming))
        self._by_name: dict[str, Wire] = {wire.name: wire for wire in served}

    @classmethod
    def of(cls, options: ServerOptions) -> Self:
        """Return the wires of a server with these options."""
        return cls(strict_extension=options.strict_extension, progress_text=options.progress_text)

    def choose(self, call: Call) -> Wire:
        """Return the wire that reads the request and writes its answer.

        Raises:
            RpcError: the stated version is not served, or does not have the method.
        """
        for dialect in self._claiming:
            if dialect.claims(call):
                return dialect.wire
        method, version = call.method, call.version
        if version is None or is_version(version, "0.3"):
            return self.v1 if method in V1_METHODS else self._v03
        if not is_version(version, "1.0"):
            raise version_not_supported(f"A2A-Version {version[:40]!r} is not served; this server speaks 1.0 and 0.3")
        if method not in V1_METHODS and method not in METHODS_OF_BOTH:
            raise RpcError(METHOD_NOT_FOUND, f"A2A {version} has no method {method[:100]!r}")
        return self.v1

    def is_dialect(self, wire: Wire) -> bool:
        """Return whether a wire is a dialect's, which has a form of its own and not the extension's."""
        return any(wire is dialect.wire for dialect in self._dialects)

    def dialect_with(self, path: str) -> Dialect | None:
        """Return the dialect that has an HTTP path beside JSON-RPC, or None."""
        return next((dialect for dialect in self._dialects if dialect.methods_of(path)), None)

    def of_version(self, version: str | None) -> Wire:
        """Return the wire that reports errors of a request for which none could be chosen."""
        return self._v03 if version is None or is_version(version, "0.3") else self.v1

    def named(self, name: str) -> Wire:
        """Return the wire with which a push target was set; the one of A2A 0.3 if the name is no longer known."""
        return self._by_name.get(name, self._v03)
