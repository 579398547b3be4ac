"""Changes that a call makes to files which the model has seen: they are its own, and no reason to refuse a later edit.

A file that was as the model knew it before the call, and is not after it, was changed by the call: by its command, a
tool of a server, a subagent, or a hook that formats what was edited. Changes of others during a call cannot be told
apart. Not here: the decision on an edit, see :mod:`isthmus.agent.known_files`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from isthmus.agent.session import Session
from isthmus.development_tool import FileDiff, ToolOutput
from isthmus.internal_events import SeenText
from isthmus.tools.base import ToolResult, ToolSucceeded
from isthmus.tools.seen_text import file_digest, text_digest


async def unchanged_files(session: Session) -> Mapping[str, str]:
    """Return the digests of the files that are as the model of the session knows them, by path."""
    known = session.known_files.digests
    if not known:
        return {}
    now = await asyncio.to_thread(_digests, known)
    return {path: digest for path, digest in known.items() if now.get(path) == digest}


async def own_changes(session: Session, before: Mapping[str, str], result: ToolResult | None) -> tuple[SeenText, ...]:
    """Return what the model knows of files after a call: ``before`` are those that were unchanged before it."""
    known = {**before, **_written(result)}
    if not known:
        return ()
    now = await asyncio.to_thread(_digests, known)
    return tuple(
        session.known_files.after_own_change(path, digest)
        for path, digest in now.items()
        if digest is not None and digest != known[path]
    )


def _written(result: ToolResult | None) -> Mapping[str, str]:
    match result:
        case ToolSucceeded(output=ToolOutput(diff=FileDiff(file_path=path, new_content=text))):
            return {path: text_digest(Path(path), text)}
        case _:
            return {}


def _digests(paths: Iterable[str]) -> Mapping[str, str | None]:
    """Return the digests of files as they are now; None for one that is not there or cannot be read. Blocks."""
    return {path: file_digest(Path(path)) for path in paths}
