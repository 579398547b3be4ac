"""The prompt of a custom command: a text with ``{{args}}``, ``!{shell command}`` and ``@{file}``. Pure.

Inserted text is not searched for further placeholders. Not here: running the commands and reading the files, see
`isthmus.agent.commands.custom.custom`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from isthmus.agent.approval.shell_quoting import with_text
from isthmus.errors import IsthmusError
from isthmus.record import record

ARGS = "{{args}}"


class TemplateError(IsthmusError):
    """Failure to parse a prompt: a placeholder without its closing brace."""


@record
class Literal:
    """Literal text; ``{{args}}`` in it is replaced by the arguments."""

    text: str


@record
class Shell:
    """Placeholder ``!{command}`` for the output of a shell command, in which ``{{args}}`` is quoted for the shell."""

    command: str


@record
class FileReference:
    """Placeholder ``@{path}`` for the content of a file of the workspace, or the listing of a folder."""

    path: str


Segment: TypeAlias = Literal | Shell | FileReference


@record
class Template:
    """A parsed prompt."""

    segments: tuple[Segment, ...]
    takes_args: bool

    def shell_commands(self, args: str) -> tuple[str, ...]:
        """Return the commands to run, with the arguments inserted, each as often as it occurs.

        Raises:
            UnquotableError: the arguments are in a place where they cannot be quoted.
        """
        return tuple(with_text(item.command, ARGS, args) for item in self.segments if isinstance(item, Shell))

    @property
    def shell_texts(self) -> tuple[str, ...]:
        """The commands as written, without arguments."""
        return tuple(item.command for item in self.segments if isinstance(item, Shell))

    def files(self, args: str) -> tuple[str, ...]:
        """Return the paths to read, with the arguments inserted."""
        return tuple(_insert_args(item.path, args) for item in self.segments if isinstance(item, FileReference))

    def render(self, args: str, invocation: str, outputs: Sequence[str], contents: Mapping[str, str]) -> str:
        """Return the whole prompt.

        ``outputs`` are the outputs of :meth:`shell_commands`, ``contents`` the contents of :meth:`files`. If the prompt
        has no place for arguments, ``invocation`` (``/git:commit all of it``) is appended to it, as in Gemini CLI.
        """
        text = "".join(self._pieces(args, iter(outputs), contents))
        return text if self.takes_args or not args else f"{text}\n\n{invocation}"

    def _pieces(self, args: str, outputs: Iterator[str], contents: Mapping[str, str]) -> Iterator[str]:
        for item in self.segments:
            match item:
                case Literal(text):
                    yield _insert_args(text, args)
                case Shell():
                    yield next(outputs)
                case FileReference(path):
                    yield contents[_insert_args(path, args)]
                case _:
                    assert_never(item)


def parse(text: str) -> Template:
    """Parse a prompt.

    Raises:
        TemplateError: ``!{`` or ``@{`` has no closing brace.
    """
    segments: list[Segment] = []
    end = at = 0
    while (at := _next_mark(text, at)) >= 0:
        stop = _closing_brace(text, at + 2)
        inner = text[at + 2 : stop].strip()
        if inner:
            segments.append(Literal(text[end:at]))
            segments.append(Shell(inner) if text[at] == "!" else FileReference(inner))
            end = stop + 1
        at = stop + 1
    segments.append(Literal(text[end:]))
    return Template(tuple(item for item in segments if item != Literal("")), ARGS in text)


def _insert_args(text: str, args: str) -> str:
    return text.replace(ARGS, args)


def _next_mark(text: str, start: int) -> int:
    found = [at for mark in ("!{", "@{") if (at := text.find(mark, start)) >= 0]
    return min(found, default=-1)


def _closing_brace(text: str, start: int) -> int:
    """Return the offset of the brace that closes the one at ``start``; braces inside are balanced."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    line = text.count("\n", 0, start) + 1
    raise TemplateError(f"line {line} of the prompt: {text[start - 2 : start + 30]!r} has no closing brace")
