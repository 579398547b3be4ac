"""The files that the model of a session knows, as it last read or left them: guards what it would overwrite. Pure.

A call that replaces text without naming it needs to know that text. It does if the file is still as the model last read
or left it, or if a later part of the conversation has the file's whole text. What a call shows counts from the model's
next message on: the calls of one message were written before any of their results. Changes that commands of the agent
itself make are noted by :mod:`isthmus.agent.calls.own_changes`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TypeAlias

from isthmus.development_tool import FileDiff
from isthmus.internal_events import FilesSeen, SeenText
from isthmus.models.port.base import Message, ModelToolResult, Text
from isthmus.record import record
from isthmus.text.diff import split_lines, unified_diff
from isthmus.tools.port.base import Overwriting
from isthmus.tools.port.seen_text import cells_digest, comparable_text, text_digest, whole_text, without_line_numbers

NOT_READ = "file_not_read"
"""Category of a call that would replace text which the model has not read."""
CHANGED_SINCE_READ = "file_changed_since_read"
"""Category of a call that would replace text which has changed since the model read it."""
MAXIMUM_TEXT = 100_000
"""Maximum number of characters of a written text that is kept, to show what changed since."""
MAXIMUM_SHOWN_CHANGE = 20_000
"""Maximum number of characters of a change that is shown to the model."""
TELLING_LINES, TELLING_CHARACTERS = 3, 40
"""A text of fewer lines and fewer characters is found anywhere: that the conversation has it says nothing of a file."""


@record
class _Known:
    """A file as the model last saw it; ``ranges`` are its lines that were shown, sorted, 1-based and inclusive.

    ``cells`` is the digest of a notebook's cells without their outputs, empty for other files. ``messages`` is the
    number of messages when it was seen. ``text`` is None if it is not kept.
    """

    digest: str
    cells: str
    ranges: tuple[tuple[int, int], ...]
    total: int
    messages: int
    text: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.total == 0 or self.ranges == ((1, self.total),)


FilesSnapshot: TypeAlias = Mapping[str, _Known]
"""The files that are known at one time, see :meth:`KnownFiles.snapshot`."""


@record
class OverwriteRefusal:
    """The reason why a call may not overwrite a file: ``message`` for the user, ``for_model`` for the model.

    ``shown`` is what the model has seen of the file once it has read the reason; None if nothing new.
    """

    message: str
    for_model: str
    category: str
    shown: SeenText | None = None


@dataclass(slots=True)
class KnownFiles:
    """The files that the model of a session knows, by their absolute paths, after the events applied so far."""

    _files: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _is_shared: bool = False
    """Whether a snapshot is the same dictionary, which then never changes."""
    _pending: list[FilesSeen | FileDiff] = field(default_factory=list[FilesSeen | FileDiff])
    """The events since the model's last message that show files, and all that follow them."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the files whose state is known, by path."""
        return {path: known.digest for path, known in self._files.items()}

    @property
    def latest(self) -> Sequence[str]:
        """The paths of the files, those that were read or written last first."""
        return tuple(reversed(self._files))

    def snapshot(self) -> "FilesSnapshot":
        """Return what is known now, for :meth:`restore`."""
        self._is_shared = True
        return self._files

    def restore(self, snapshot: "FilesSnapshot") -> None:
        """Know again what was known when ``snapshot`` was taken."""
        self._files, self._is_shared = dict(snapshot), False
        self._pending = []

    def take(self, event: FilesSeen, messages: int) -> None:
        """Note what was shown, or changed by a call of the agent, when the conversation had this many messages."""
        if not event.is_own:
            self._pending.append(event)
            return
        self._take_own(event, messages)
        if self._pending:
            self._pending.append(event)

    def take_edit(self, change: FileDiff, messages: int) -> None:
        """Note a change that a call of the agent has made."""
        self._take_edit(change, messages)
        if self._pending:
            self._pending.append(change)

    def model_spoke(self, messages: int) -> None:
        """Let what was shown since the model's last message count: it has read it now."""
        pending, self._pending = self._pending, []
        for event in pending:
            match event:
                case FileDiff():
                    self._take_edit(event, messages)
                case FilesSeen(is_own=True):
                    self._take_own(event, messages)
                case FilesSeen(files):
                    for item in files:
                        self._take_shown(item, messages)

    def cut(self, messages: int) -> None:
        """Note that the conversation was cut: it has this many messages now, and what was seen came before these."""
        for path, known in list(self._files.items()):
            self._set(path, replace(known, messages=messages))

    def clear(self) -> None:
        """Forget all files: the conversation was replaced by another one."""
        self._files, self._is_shared, self._pending = {}, False, []

    def refusal(
        self, change: FileDiff, shown: str, overwriting: Overwriting, messages: Sequence[Message]
    ) -> OverwriteRefusal | None:
        """Return why a change may not be made; None if the model knows what it replaces. ``shown`` names the file."""
        if overwriting is Overwriting.NOTHING or change.old_content is None or not change.old_content.strip():
            return None
        path, old = PurePath(change.file_path), change.old_content
        digest = text_digest(old)
        known = self._files.get(change.file_path)
        is_same = known is not None and known.digest == digest
        if known is not None and overwriting is Overwriting.PART and known.cells:
            is_same = known.cells == cells_digest(path, old)
        if known is not None and is_same and known.is_whole:
            return None
        later = messages if known is None else messages[known.messages + 1 :]
        if _has_text(later, comparable_text(old)):
            return None
        if known is None:
            if any(other.is_whole and other.digest == digest for other in self._files.values()):
                return None  # a file that was read, under another name
            message = f"{shown} exists, and was not read in this conversation, so it was not changed"
            return OverwriteRefusal(message, f"{message}. Read it, then repeat the call if it is still right", NOT_READ)
        if is_same:
            message = f"only a part of {shown} was read in this conversation, so it was not replaced"
            advice = (
                "Read the rest of it (lines that were cut by a command, such as cat), or use a tool that changes only"
                " the part that you name"
            )
            return OverwriteRefusal(message, f"{message}. {advice}", NOT_READ)
        return _changed_since(shown, path, _known_text(known, messages), old)

    def _take_shown(self, item: SeenText, messages: int) -> None:
        before = self._files.get(item.path)
        ranges, text = [(item.first, item.last)] if item.first <= item.last else [], None
        if before is not None and before.digest == item.digest:
            ranges, text = [*before.ranges, *ranges], before.text
        self._set(item.path, _Known(item.digest, item.cells, _merged(ranges), item.total, messages, text))

    def _take_own(self, event: FilesSeen, messages: int) -> None:
        for item in event.files:
            before = self._files.get(item.path)
            is_whole = item.first <= item.last or item.total == 0  # The call named all of the text.
            if not is_whole and before is None:
                continue
            is_whole = is_whole or (before is not None and before.is_whole)
            text = before.text if before is not None and before.digest == item.digest else None
            ranges = ((1, item.total),) if is_whole and item.total else ()
            self._set(item.path, _Known(item.digest, item.cells, ranges, item.total, messages, text))

    def _take_edit(self, change: FileDiff, messages: int) -> None:
        path = PurePath(change.file_path)
        before = self._files.get(change.file_path)
        if change.old_content is not None and (before is None or before.digest != text_digest(change.old_content)):
            return  # The call named what it replaced; the rest is as unknown as it was.
        is_whole = before is None or change.old_content is None or before.is_whole
        lines = len(split_lines(change.new_content))
        text = change.new_content if is_whole and len(change.new_content) <= MAXIMUM_TEXT else None
        ranges = ((1, lines),) if is_whole and lines else ()
        cells = cells_digest(path, change.new_content)
        self._set(change.file_path, _Known(text_digest(change.new_content), cells, ranges, lines, messages, text))

    def _set(self, path: str, known: _Known) -> None:
        if self._is_shared:
            self._files, self._is_shared = dict(self._files), False
        self._files.pop(path, None)
        self._files[path] = known


def _known_text(known: _Known, messages: Sequence[Message]) -> str | None:
    """Return the text that the model knows, if it is kept or in the conversation."""
    if known.text is not None:
        return known.text
    return next((text for text in _texts(reversed(messages)) if text_digest(text) == known.digest), None)


def _changed_since(shown: str, path: PurePath, known: str | None, now: str) -> OverwriteRefusal:
    message = f"{shown} has changed since it was last read or written in this conversation, so it was not overwritten"
    change = "" if known is None else unified_diff(known.replace("\r\n", "\n"), now.replace("\r\n", "\n"), shown)
    if not change or len(change) > MAXIMUM_SHOWN_CHANGE:
        advice = "Another program or the user changed it. Read it again, and keep that change"
        return OverwriteRefusal(message, f"{message}. {advice}", CHANGED_SINCE_READ)
    advice = f"Another program or the user made this change:\n{change}\nKeep it, and repeat the call"
    return OverwriteRefusal(message, f"{message}. {advice}", CHANGED_SINCE_READ, whole_text(path, now))


def _has_text(messages: Iterable[Message], wanted: str) -> bool:
    """Return whether the model was given a text in whole lines; the first one may follow a colon (``Output: ``)."""
    if wanted.count("\n") + 1 < TELLING_LINES and len(wanted) < TELLING_CHARACTERS:
        return False
    for text in _texts(messages):
        plain = text.replace("\r\n", "\n")
        at = plain.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            begins = at == 0 or plain[at - 1] == "\n" or plain[max(0, at - 2) : at] == ": "
            if begins and (end == len(plain) or plain[end] == "\n"):
                return True
            at = plain.find(wanted, at + 1)
    return False


def _texts(messages: Iterable[Message]) -> Iterable[str]:
    """Yield the texts that the model was given, but for its own, each also without the numbers of lines."""
    for text in _given_texts(messages):
        yield text
        if (plain := without_line_numbers(text)) != text:
            yield plain


def _given_texts(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        if message.role != "user":
            continue
        for part in message.parts:
            match part:
                case Text(text):
                    yield text
                case ModelToolResult(content=content):
                    yield content
                case _:
                    pass


def _merged(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges of lines in order, with those that touch each other joined."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)
