"""Choosing some hunks of a proposed edit by their numbers. Pure: asking happens elsewhere."""

from collections.abc import Iterator

from isthmus.development_tool import FileDiff
from isthmus.notebooks.view import is_notebook
from isthmus.text.diff import split_lines
from isthmus.text.hunks import NoSuchHunkError, TextHunk, hunks_between, numbers_in, with_hunks
from isthmus.text.visible import visible_line, with_ellipsis

LONGEST_LINE = 60
"""Maximum length in characters of a changed line by which a hunk is recognized."""


def can_choose(diff: FileDiff) -> bool:
    """Return whether some hunks of an edit can be accepted: it has two at least, and is not of a notebook."""
    return not is_notebook(diff.file_name) and len(hunks_between(diff.old_content, diff.new_content)) > 1


def hunk_lines(diff: FileDiff) -> tuple[str, ...]:
    """Return a line for each hunk, with its number and its first line before and after, and how to choose."""
    old, new = split_lines(diff.old_content or ""), split_lines(diff.new_content)
    hunks = hunks_between(diff.old_content, diff.new_content)
    return (
        *(_line(hunk, old, new) for hunk in hunks),
        "Which hunks do you accept (1,3 or 2-4)? The others stay as they are. An empty line goes back.",
    )


def with_chosen(diff: FileDiff, typed: str) -> str:
    """Return the text with the hunks whose numbers were typed.

    Raises:
        ValueError: no list of numbers was typed.
        NoSuchHunkError: no hunk has this number.
    """
    return with_hunks(diff.old_content, diff.new_content, numbers_in(typed))


def problem_with(diff: FileDiff, typed: str) -> str | None:
    """Return the reason why no hunks can be chosen by what was typed; None if they can."""
    try:
        with_chosen(diff, typed)
    except ValueError:
        return f"expected numbers as in 1,3 or 2-4, received {typed}"
    except NoSuchHunkError as error:
        return str(error)
    return None


def _line(hunk: TextHunk, old: list[str], new: list[str]) -> str:
    pieces = "   ".join(_pieces(hunk, old, new))
    return f"{hunk.number}  line {min(hunk.new_start + 1, max(len(new), 1))}   {pieces}"


def _pieces(hunk: TextHunk, old: list[str], new: list[str]) -> Iterator[str]:
    for sign, lines in (("-", old[hunk.old_start : hunk.old_end]), ("+", new[hunk.new_start : hunk.new_end])):
        if lines:
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            yield f"{sign} {with_ellipsis(visible_line(lines[0].strip()), LONGEST_LINE)}{more}"
