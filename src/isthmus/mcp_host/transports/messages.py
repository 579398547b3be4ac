"""Tolerant parser of a server's JSON-RPC messages: a broken answer must not keep its call waiting.

Pure. Not here: the repair of results, see :mod:`isthmus.mcp_host.results.repair`.
"""

import codecs
import json
import re
from collections.abc import Iterable
from typing import cast

from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from isthmus.encoding.line_splitter import Line, LongLine
from isthmus.mcp_host.diagnosis.server_log import ServerLog

MAXIMUM_MESSAGE_BYTES = 32 * 1024 * 1024
"""Maximum size in bytes of a server's message; a larger answer is refused, and its call fails."""

MAXIMUM_MENDED_BYTES = 4 * 1024 * 1024
"""Maximum size in bytes of a message that is repaired if it is not valid JSON; repair takes ten times as long."""
MAXIMUM_VALUES = 500_000
"""Maximum number of objects and lists in a message: each can be two bytes long, but takes many times that memory."""
MAXIMUM_NESTING = 200
"""Maximum nesting of values in a message: deeper nesting breaks recursive functions."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')


def message_of(line: Line, log: ServerLog) -> SessionMessage | None:
    """Return the message in a line; None if it is not a message. A broken answer becomes an error of its call."""
    if isinstance(line, LongLine):
        log.add(f"[a message of {line.size} bytes was refused]".encode())
        limit = f"{MAXIMUM_MESSAGE_BYTES // 1024**2} MiB"
        return _broken(line.head, line.tail, f"its answer has {line.size} bytes; at most {limit} are accepted")
    text = line.strip().removeprefix(codecs.BOM_UTF8)
    if not text:
        return None
    if text[:1] != b"{":
        log.add(text)
        return None
    if text.count(b"{") + text.count(b"[") > MAXIMUM_VALUES:
        log.add(b"[a message was refused]")
        reason = f"its answer has more than {MAXIMUM_VALUES:,} objects and lists, the maximum"
        return _broken(text[:4096], text[-4096:], reason)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        pass
    reason = "its answer is not a JSON-RPC message"
    try:
        if len(text) > MAXIMUM_MENDED_BYTES:
            raise ValueError
        # Python's parser accepts lone surrogates, which could not be encoded later, and bytes that are not UTF-8 once
        # they are replaced.
        value: object = json.loads(text.decode("utf-8", "replace"))
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if not is_nested_too_deeply(value):
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        reason = "its answer is nested too deeply"
    except RecursionError:
        reason = "its answer is nested too deeply"
    except ValueError:
        pass
    log.add(text)
    return _broken(text[:4096], text[-4096:], reason)


def is_nested_too_deeply(value: object) -> bool:
    """Return whether a JSON value has more levels than the maximum."""
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


def _broken(head: bytes, tail: bytes, reason: str) -> SessionMessage | None:
    """Return an error for the call that a broken answer belongs to; None if its id is not found."""
    found = _ID.search(head) or next(iter(reversed(list(_ID.finditer(tail)))), None)
    if found is None or b'"method"' in head:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=reason)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=error))
