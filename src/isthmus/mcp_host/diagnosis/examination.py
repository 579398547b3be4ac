"""Evaluation of a connection's trace: steps with their times, the server's description of itself, advice.

Pure. Not here: printing it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from isthmus.mcp_host.config.server_config import HttpEndpoint, ServerConfig, StdioEndpoint
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.trace import TraceEntry, TraceKind
from isthmus.record import record
from isthmus.tools.port.servers import ServerState

_LASTING = ("subscriptions/listen",)
"""Requests that are answered only when they end."""
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@record
class Step:
    """A step of a connection. ``seconds`` is its duration; None if there was no answer."""

    name: str
    seconds: float | None
    is_error: bool = False


@record
class SelfDescription:
    """A server's description of itself in the handshake."""

    protocol: str = ""
    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()


def steps(entries: Sequence[TraceEntry]) -> tuple[Step, ...]:
    """Return the steps in order: opening, and each sent request with its answer."""
    found: list[Step] = []
    for index, entry in enumerate(entries):
        later = entries[index + 1 :]
        if entry.kind is TraceKind.OPENING:
            then = next((other for other in later if other.kind in (TraceKind.OPEN, TraceKind.OPENING)), None)
            is_open = then is not None and then.kind is TraceKind.OPEN
            found.append(Step(entry.text, then.at - entry.at if then is not None and is_open else None))
        elif entry.kind is TraceKind.SENT and entry.id is not None and entry.method not in ("", *_LASTING):
            answer = next((other for other in later if _answers(other, entry)), None)
            seconds = None if answer is None else answer.at - entry.at
            found.append(Step(entry.method, seconds, answer is not None and answer.is_error))
    return tuple(found)


def _answers(entry: TraceEntry, request: TraceEntry) -> bool:
    return entry.kind is TraceKind.RECEIVED and entry.is_answer and entry.id == request.id


def self_description(entries: Sequence[TraceEntry]) -> SelfDescription | None:
    """Return the server's last description of itself; None if it sent none."""
    result = next((entry.result for entry in reversed(entries) if entry.result is not None), None)
    if result is None:
        return None
    server = _object(result.get("serverInfo") or _object(result.get("_meta")).get(_SERVER_INFO))
    versions = result.get("supportedVersions")
    protocol = result.get("protocolVersion") or (", ".join(map(str, versions)) if isinstance(versions, list) else "")  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    return SelfDescription(
        str(protocol)[:100],
        str(server.get("title") or server.get("name") or "")[:200],
        str(server.get("version") or "")[:100],
        tuple(_capability(name, value) for name, value in list(_object(result.get("capabilities")).items())[:30]),
    )


def _capability(name: str, value: object) -> str:
    flags = [key for key, flag in _object(value).items() if flag is True]
    return f"{name} ({', '.join(flags)})" if flags else name


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def ending(entries: Sequence[TraceEntry], log: ServerLog) -> str:
    """Return how a program ended by itself, e.g. `` with exit code 1``; empty if it was stopped or this is unknown."""
    return log.exit_text if any(entry.kind is TraceKind.CLOSED for entry in entries) else ""


def advice(config: ServerConfig, state: ServerState, entries: Sequence[TraceEntry], log: ServerLog) -> str:
    """Return one or two sentences of advice for a server that cannot be used."""
    if state is ServerState.NEEDS_LOGIN:
        return f"Log in: isthmus mcp login {config.name}"
    if isinstance(config.endpoint, HttpEndpoint):
        return _advice_on_url(entries)
    return _advice_on_program(config.endpoint, entries, log)


def _advice_on_url(entries: Sequence[TraceEntry]) -> str:
    refused = {step.name for step in steps(entries) if step.is_error}
    if {"initialize", "server/discover"} <= refused:
        return (
            "The server answers, but refuses both ways to begin MCP: initialize, and server/discover of the "
            "2026-07-28 revision. The URL may belong to another service (the path is often /mcp or /sse), or a proxy "
            "may remove headers; see the server's own log for details."
        )
    if any(entry.kind is TraceKind.RECEIVED for entry in entries):
        return "The server answers. Its answers are above; see its own log for details."
    return (
        "Check that a server speaks MCP at exactly this URL and path (often /mcp or /sse), that --transport is right, "
        "and that it gets the headers it needs: curl -i -X POST URL shows its response."
    )


def _advice_on_program(endpoint: StdioEndpoint, entries: Sequence[TraceEntry], log: ServerLog) -> str:
    if not any(entry.kind is TraceKind.OPEN for entry in entries):
        return (
            f"Check that {endpoint.command} is installed and on the PATH of this terminal, and that its working "
            f"directory {endpoint.cwd} exists."
        )
    if ending(entries, log):
        return (
            "Run the command by hand in its working directory to see why it ends. It gets its own env and the "
            "variables of this shell but what looks like a secret; of a project's file only HOME, LOGNAME, PATH, "
            "SHELL, TERM and USER. Add other variables that it needs to env (--env)."
        )
    if any(entry.kind is TraceKind.RECEIVED for entry in entries):
        return "The server runs and answers. Its answers are above; see its own log for details."
    if (url := log.listening_at) is not None:
        return (
            f"It runs, but seems to serve HTTP at {url}. Start it by hand and give its address as httpUrl (or url, for"
            " SSE) in place of command; the path is often /mcp or /sse. Or start it with its option for stdio."
        )
    return (
        "It runs but sends nothing. It may still be downloading packages (npx and uvx do this the first time: try "
        "again, or with a larger --timeout), expect input other than MCP, or use another transport."
    )
