"""Completion of the line that is being typed, for prompt_toolkit: slash commands, arguments and references.

Imports prompt_toolkit, so import this module only to prompt. Deliberately does not know the agent: functions answer.
"""

import re
from collections.abc import Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as ToolkitCompletion
from prompt_toolkit.document import Document
from typing_extensions import override

from isthmus.slash_commands.tree import Completion
from isthmus.terminal.prompt.prompting import AskForCompletions, Complete
from isthmus.text.visible import visible_line

MAXIMUM_HINTS = 8
"""Maximum number of files or commands that are shown while a reference or a command is typed."""
REFERENCE = re.compile(r"(^|\s|[(\[])@\S*$")
"""A reference at the end of a line, which the agent can complete."""


class PromptCompleter(Completer):
    """Completer of slash commands, and of one line by the agent's last answer."""

    def __init__(self, complete: Complete, ask: AskForCompletions | None) -> None:
        self._complete = complete
        self._ask = ask
        self._found: tuple[str, Sequence[Completion]] = ("", ())
        """All answers of the agent to a line."""
        self._answered: tuple[str, Sequence[Completion]] = ("", ())
        """Answers among them that go on with the line."""

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[ToolkitCompletion]:
        line = document.text_before_cursor
        found = self._known(line)
        if not found and line == self._answered[0]:
            found = self._answered[1]
        # The replaced text begins at a word, so that the menu shows whole words.
        same = min((_common(line, item.line) for item in found), default=0)
        start = max(line.rfind(" ", 0, same), line.rfind("\n", 0, same)) + 1
        for item in found:
            yield ToolkitCompletion(item.line[start:], start_position=start - len(line))

    def has_to_ask(self, line: str) -> bool:
        """Return whether only the agent can complete the line."""
        is_argument = line.startswith("/") and " " in line
        return self._ask is not None and (is_argument or bool(REFERENCE.search(line))) and not self._known(line)

    async def ask(self, line: str) -> None:
        """Ask the agent to complete the line."""
        if self._ask is not None:
            self._found = (line, await self._ask(line))
            extending = [item for item in self._found[1] if item.line.startswith(line) and not _is_note(item, line)]
            self._answered = (line, extending)

    def best_other(self, line: str) -> str | None:
        """Return the best answer to a line if none only goes on with what was typed; otherwise None."""
        asked, found = self._found
        other = next((item.line for item in found if not _is_note(item, line)), None)
        return other if asked == line and not self._answered[1] else None

    def is_partial(self, line: str) -> bool:
        """Return whether the agent still looks for completions of the line that it was asked about last."""
        asked, found = self._found
        return asked == line and any(_is_note(item, line) for item in found)

    def hints(self, line: str) -> Sequence[str]:
        """Return what a line can become: commands with their descriptions, or the agent's answers to a reference."""
        asked, found = self._found
        if line.startswith("/"):
            known = sorted(self._known(line), key=lambda item: item.line)
            return _described(known or (found if asked == line else ()))
        if asked != line:
            return ()
        start = line.rfind("@")
        notes = [item.description for item in found if _is_note(item, line)]
        others = [item.line[start:] for item in found if not _is_note(item, line)]
        return (*others[: MAXIMUM_HINTS - len(notes)], *notes)

    def _known(self, line: str) -> Sequence[Completion]:
        return self._complete(line) if line.startswith("/") and "\n" not in line else ()


def _is_note(item: Completion, line: str) -> bool:
    """Return whether a completion adds nothing, and only says something, such as that more is being looked for."""
    return item.line == line and bool(item.description) and not line.startswith("/")


def _described(found: Sequence[Completion]) -> Sequence[str]:
    """Return completions, a line each, and how many more there are."""
    shown = found if len(found) <= MAXIMUM_HINTS else found[: MAXIMUM_HINTS - 1]
    names = [visible_line(item.line) for item in shown]
    widest = max(map(len, names), default=0)
    lines = [
        f"{name:<{widest}}  {visible_line(' '.join(item.description.split()))}".rstrip()
        for name, item in zip(names, shown, strict=True)
    ]
    left = len(found) - len(shown)
    return [*lines, *([f"and {left} more; go on typing"] if left else [])]


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
