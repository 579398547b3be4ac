"""JSON-RPC messages in the bytes of a server: tolerant, because a broken answer must not keep its call waiting.

Pure. Deliberately not here: the bytes (:mod:`isthmus.mcp_host.transports.stdio`,
:mod:`isthmus.mcp_host.transports.sse`), and the content of results (:mod:`isthmus.mcp_host.results.repair`).
"""

import codecs
import json
import re
from collections.abc import Iterable
from typing import cast

from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.transports.lines import Line, LongLine

MAXIMUM_MESSAGE_BYTES = 32 * 1024 * 1024
"""A larger message of a server is refused; the call that it answers fails."""

MAXIMUM_MENDED_BYTES = 4 * 1024 * 1024
"""Maximum size of a message that is repaired when it is not clean JSON, which takes ten times as long."""
MAXIMUM_VALUES = 500_000
"""Objects and lists in a message; each takes many times the two bytes that it can have."""
MAXIMUM_NESTING = 200
"""Maximum nesting of values in a message: deeper ones break recursive functions."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')


def message_of(line: Line, log: ServerLog) -> SessionMessage | None:
    """Return the message of a line; None for what is none. A broken answer becomes an error for the call it answers."""
    if isinstance(line, LongLine):
        log.add(f"[a message of {line.size} bytes was refused]".encode())
        limit = f"{MAXIMUM_MESSAGE_BYTES // 1024**2} MiB"
        return _broken(line.head, line.tail, f"its answer has {line.size} bytes; more than {limit} are not taken")
    text = line.strip().removeprefix(codecs.BOM_UTF8)
    if not text:
        return None
    if text[:1] != b"{":
        log.add(text)
        return None
    if text.count(b"{") + text.count(b"[") > MAXIMUM_VALUES:
        log.add(b"[a message was refused]")
        why = f"its answer has more than {MAXIMUM_VALUES:,} objects and lists; they are not taken"
        return _broken(text[:4096], text[-4096:], why)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        pass
    why = "its answer is not a JSON-RPC message"
    try:
        if len(text) > MAXIMUM_MENDED_BYTES:
            raise ValueError
        # Python's reader takes lone surrogates, which nothing after it could write, and bytes that are not UTF-8 once
        # they are replaced.
        value: object = json.loads(text.decode("utf-8", "replace"))
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if not is_nested_too_deeply(value):
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        why = "its answer is nested too deeply"
    except RecursionError:
        why = "its answer is nested too deeply"
    except ValueError:
        pass
    log.add(text)
    return _broken(text[:4096], text[-4096:], why)


def is_nested_too_deeply(value: object) -> bool:
    """Return whether a JSON value has more levels than are taken."""
    level: list[object] = [value]
    for _ in range(MAXIMUM_NESTING):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _broken(head: bytes, tail: bytes, why: str) -> SessionMessage | None:
    found = _ID.search(head) or next(iter(reversed(list(_ID.finditer(tail)))), None)
    if found is None or b'"method"' in head:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=why)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=error))
