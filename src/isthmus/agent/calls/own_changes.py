"""Changes that a call makes to files which the model knows: they are its own, and no reason to refuse a later edit.

A file that was as the model knew it before the call, and is not after it, was changed by the call: by its command, a
tool of a server, a subagent, or a hook that formats what was edited. What others change while a call runs cannot be
told apart, and counts as its own, too; not while it waits for an answer. The decision on an edit is in
:mod:`isthmus.agent.session.known_files`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from isthmus.agent.session.session import Session
from isthmus.development_tool import FileDiff, ToolOutput
from isthmus.internal_events import SeenText
from isthmus.tools.port.base import ToolResult, ToolSucceeded
from isthmus.tools.port.seen_text import file_now, text_digest


async def unchanged_files(session: Session) -> Mapping[str, str]:
    """Return the digests of the files that are as the model of the session knows them, by path."""
    known = session.conversation.known_files.digests
    if not known:
        return {}
    now = await asyncio.to_thread(_files_now, known)
    return {item.path: item.digest for item in now if known[item.path] == item.digest}


async def own_changes(before: Mapping[str, str], result: ToolResult) -> tuple[SeenText, ...]:
    """Return the files that a call has changed, as they are now: ``before`` are those that were unchanged before it."""
    known = {**before, **_written(result)}
    if not known:
        return ()
    now = await asyncio.to_thread(_files_now, known)
    return tuple(item for item in now if item.digest != known[item.path])


def _written(result: ToolResult) -> Mapping[str, str]:
    match result:
        case ToolSucceeded(output=ToolOutput(diff=FileDiff(file_path=path, new_content=text))):
            return {path: text_digest(text)}
        case _:
            return {}


def _files_now(paths: Iterable[str]) -> list[SeenText]:
    """Return the states of files, without those that are not there or cannot be read. Blocks."""
    return [state for path in paths if (state := file_now(Path(path))) is not None]
