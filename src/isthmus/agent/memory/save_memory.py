"""Adds a fact to the user's own file of instructions, under its heading; every other byte of the file stays.

It is a tool, so that it happens at most once even if the process ends. Not here: reading the files, see
:mod:`isthmus.agent.memory.reading`.
"""

import asyncio
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, GenericDetails, ToolOutput
from isthmus.files.atomic import FileChangedError, exclusive, read_regular, write_if_unchanged
from isthmus.text.text_file import BinaryContentError, UnencodableTextError, decode_text, with_newlines_of
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

HEADING = "## Gemini Added Memories"
"""Heading above the facts, as in Gemini CLI."""
MAXIMUM_FACT = 10_000
"""Maximum length of a fact in characters."""
MAXIMUM_FILE_BYTES = 1024 * 1024
ATTEMPTS = 10
"""Maximum number of attempts to write while another program changes the file."""


def with_fact(text: str, fact: str) -> str:
    """Return the text with one more line under the heading, which is added at the end if it is missing."""
    line = f"- {fact}\n"
    heading = re.search(rf"(?m)^{re.escape(HEADING)}[ \t]*\r?$", text)
    if heading is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return with_newlines_of(text, f"{text}{gap}{HEADING}\n{line}")
    following = re.search(r"(?m)^#{1,2} ", text[heading.end() :])
    end = len(text) if following is None else heading.end() + following.start()
    section = text[heading.end() : end]
    kept = section.rstrip("\r\n")
    gap = section[len(kept) :] if following is not None else ""
    before = text[: heading.end()] + kept
    return with_newlines_of(text, f"{before}\n{line}{gap.lstrip(chr(13)).removeprefix(chr(10))}{text[end:]}")


def one_line(fact: str) -> str:
    """Return a fact as one line of a list, without control characters."""
    plain = "".join(" " if unicodedata.category(character) in ("Cc", "Cs") else character for character in fact)
    return re.sub(r"^(-+\s*)+", "", " ".join(plain.split())).strip()


class SaveMemory:
    """Appends a fact to the file ``path``."""

    name = "save_memory"
    description = "Remembers a fact about the user or how they work, for all sessions."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"fact": {"type": "string", "description": "The fact, as one sentence."}},
        "required": ["fact"],
    }
    kind = ToolKind.OTHER

    def __init__(self, path: Path) -> None:
        self._path = path

    def describe(self, arguments: Arguments) -> str:
        """Return the fact."""
        return f"Remember: {_fact(arguments)}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the fact and the file."""
        return GenericDetails(f"Add to {self._path}: {_fact(arguments)}")

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Add the fact to the file."""
        fact = _fact(arguments)
        await asyncio.to_thread(_append, self._path, fact)
        text = f"Added to {self._path}: {fact}"
        return ToolSucceeded(ToolOutput(text=text), text)


def _fact(arguments: Arguments) -> str:
    given: object = arguments.get("fact")
    fact = one_line(given) if isinstance(given, str) else ""
    if not fact:
        raise ToolFailure("save_memory: fact: expected a non-empty text", "invalid_arguments")
    if len(fact) > MAXIMUM_FACT:
        message = f"save_memory: fact: expected at most {MAXIMUM_FACT} characters, received {len(fact)}"
        raise ToolFailure(message, "invalid_arguments")
    return fact


def _append(path: Path, fact: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The lock admits one process of ours at a time; the comparison notices an editor that saves meanwhile.
        with exclusive(path.parent / f".{path.name}.lock"):
            for _ in range(ATTEMPTS):
                data = _current(path)
                file = decode_text(data or b"")
                try:
                    write_if_unchanged(path, file.form.encode(with_fact(file.text, fact)), data)
                except FileChangedError:
                    continue
                return
    except (OSError, BinaryContentError, UnencodableTextError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else error
        raise ToolFailure(f"The fact cannot be added to {path}: {reason}", "memory_write_failure") from error
    raise ToolFailure(f"{path} kept changing and nothing was added; try again", "memory_write_failure")


def _current(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAXIMUM_FILE_BYTES)
    except FileNotFoundError:
        return None
