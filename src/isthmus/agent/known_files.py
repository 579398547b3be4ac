"""The files that the model of a session has read or written, as they were then: guards what it would overwrite. Pure.

A call that replaces text without naming it needs to know that text. It does if the file is still as the model last read
or left it, or if a later part of the conversation has the file's whole text. Commands of the agent itself may change
what it has seen, see :mod:`isthmus.agent.calls.own_changes`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from isthmus.development_tool import FileDiff
from isthmus.internal_events import SeenText
from isthmus.models.base import Message, ModelToolResult, Text
from isthmus.record import record
from isthmus.text.diff import split_lines, unified_diff
from isthmus.tools.base import Overwriting
from isthmus.tools.seen_text import comparable_text, text_digest, whole_text

NOT_READ = "file_not_read"
"""Category of a call that would replace text which the model has not read."""
CHANGED_SINCE_READ = "file_changed_since_read"
"""Category of a call that would replace text which has changed since the model read it."""
MAXIMUM_TEXT = 100_000
"""Maximum number of characters of a written text that is kept, to show what changed since."""
MAXIMUM_SHOWN_CHANGE = 20_000
"""Maximum number of characters of a change that is shown to the model."""


@record
class _Seen:
    """A file as the model last saw it; ``ranges`` are its lines that were shown, sorted, 1-based and inclusive.

    ``messages`` is the number of messages when it was seen. ``text`` is None if it is not kept.
    """

    digest: str
    ranges: tuple[tuple[int, int], ...]
    total: int
    messages: int
    text: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.total == 0 or self.ranges == ((1, self.total),)


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
    """The files that the model of a session has seen, by their absolute paths, after the events applied so far."""

    _files: dict[str, _Seen] = field(default_factory=dict[str, _Seen])
    _log: list[tuple[str, _Seen | None]] = field(default_factory=list[tuple[str, _Seen | None]])
    """Each change with the former entry, so that a restored session has what it knew before."""

    @property
    def length(self) -> int:
        """Number of changes, for :meth:`go_back`."""
        return len(self._log)

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the files whose state is known, by path."""
        return {path: seen.digest for path, seen in self._files.items()}

    def add(self, seen: Iterable[SeenText], messages: int) -> None:
        """Note what was shown, when the conversation had this many messages."""
        for item in seen:
            before = self._files.get(item.path)
            ranges = [(item.first, item.last)] if item.first <= item.last else []
            text = None
            if before is not None and before.digest == item.digest:
                ranges, text = [*before.ranges, *ranges], before.text
            self._set(item.path, _Seen(item.digest, _merged(ranges), item.total, messages, text))

    def add_edit(self, change: FileDiff, messages: int) -> None:
        """Note a change that was made for the model, which knows the whole file from now on if it knew it before.

        The call that creates a file, or replaces all of it, names its text; others leave the ranges as they were.
        """
        path = PurePath(change.file_path)
        before = self._files.get(change.file_path)
        knew = change.old_content is None or (
            before is not None and before.is_whole and before.digest == text_digest(path, change.old_content)
        )
        lines = len(split_lines(change.new_content))
        text = change.new_content if len(change.new_content) <= MAXIMUM_TEXT else None
        ranges = ((1, lines),) if knew and lines else ()
        self._set(
            change.file_path,
            _Seen(text_digest(path, change.new_content), ranges, lines, messages, text if knew else None),
        )

    def after_own_change(self, path: str, digest: str) -> SeenText:
        """Return what the model knows of a file after a call of its own has changed it, as much as it did before."""
        seen = self._files.get(path)
        is_whole = seen is None or seen.is_whole
        return SeenText(path, digest, 1, 1 if is_whole else 0, 1)

    def move(self, messages: int) -> None:
        """Note that the conversation was cut: it has this many messages now, and what was seen came before these."""
        for path, seen in list(self._files.items()):
            self._set(path, replace(seen, messages=messages))

    def clear(self) -> None:
        """Forget all files: the conversation was replaced by another one."""
        for path in list(self._files):
            self._log.append((path, self._files.pop(path)))

    def go_back(self, length: int) -> None:
        """Undo all changes but the first ``length``."""
        while len(self._log) > length:
            path, before = self._log.pop()
            if before is None:
                self._files.pop(path, None)
            else:
                self._files[path] = before

    def refusal(
        self, change: FileDiff, shown: str, overwriting: Overwriting, messages: Sequence[Message]
    ) -> OverwriteRefusal | None:
        """Return why a change may not be made; None if the model knows what it replaces. ``shown`` names the file."""
        if overwriting is Overwriting.NOTHING or change.old_content is None or not change.old_content.strip():
            return None
        path, old = PurePath(change.file_path), change.old_content
        seen = self._files.get(change.file_path)
        is_same = seen is not None and seen.digest == text_digest(path, old)
        if seen is not None and is_same and (seen.is_whole or overwriting is Overwriting.PART):
            return None
        later = messages if seen is None else messages[seen.messages + 1 :]
        if any(comparable_text(path, old).strip() in text for text in _texts(later)):
            return None
        if seen is None:
            message = f"{shown} exists, and was not read in this conversation, so it was not changed"
            return OverwriteRefusal(message, f"{message}. Read it, then repeat the call if it is still right", NOT_READ)
        if is_same:
            message = f"only a part of {shown} was read in this conversation, so it was not replaced as a whole"
            advice = "Read the rest of it, or use a tool that changes only the part that you name"
            return OverwriteRefusal(message, f"{message}. {advice}", NOT_READ)
        return _changed_since(shown, path, self._known_text(path, seen, messages), old)

    def _known_text(self, path: PurePath, seen: _Seen, messages: Sequence[Message]) -> str | None:
        """Return the text that the model knows, if it is kept or in the conversation."""
        if seen.text is not None:
            return seen.text
        return next((text for text in _texts(reversed(messages)) if text_digest(path, text) == seen.digest), None)

    def _set(self, path: str, seen: _Seen) -> None:
        self._log.append((path, self._files.get(path)))
        self._files[path] = seen


def _changed_since(shown: str, path: PurePath, known: str | None, now: str) -> OverwriteRefusal:
    message = f"{shown} has changed since it was last read or written in this conversation, so it was not overwritten"
    change = "" if known is None else unified_diff(known.replace("\r\n", "\n"), now.replace("\r\n", "\n"), shown)
    if not change or len(change) > MAXIMUM_SHOWN_CHANGE:
        advice = "Another program or the user changed it. Read it again, and keep that change"
        return OverwriteRefusal(message, f"{message}. {advice}", CHANGED_SINCE_READ)
    advice = f"Another program or the user made this change:\n{change}\nKeep it, and repeat the call"
    return OverwriteRefusal(message, f"{message}. {advice}", CHANGED_SINCE_READ, whole_text(path, now))


def _texts(messages: Iterable[Message]) -> Iterable[str]:
    """Yield the texts that the model was given, those of its own messages left out."""
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
