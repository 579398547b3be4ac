"""Patches in commands of the shell: ``apply_patch <<'EOF'`` and its like, which Codex understands. Pure.

A command is understood only if it does nothing else, and the shell would not change the text of its patch.
"""

import re
from collections.abc import Sequence
from typing import cast

from isthmus.tools.edits.patch_text import BEGIN, END

_NAME = r"(?:apply_patch|applypatch)"
_FOLDER = r"""(?:cd\s+(?:'(?P<quoted>[^'\n]+)'|(?P<plain>[\w./@+~-]+))\s*&&\s*)?"""
_MARK = r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)"
_BODY = r"[ \t]*\n(?P<body>.*?)\n\t*(?P=mark)"
_FORMS = (
    re.compile(rf"\s*{_FOLDER}{_NAME}\s*{_MARK}{_BODY}\s*", re.DOTALL),
    re.compile(rf"\s*{_FOLDER}cat\s+{_MARK}[ \t]*\|[ \t]*{_NAME}{_BODY}\s*", re.DOTALL),
    re.compile(rf"""\s*{_FOLDER}{_NAME}\s+"\$\(cat\s+{_MARK}{_BODY}\s*\)"\s*""", re.DOTALL),
    re.compile(rf"\s*{_FOLDER}{_NAME}\s+'(?P<single>[^']*)'\s*", re.DOTALL),
    re.compile(rf'\s*{_FOLDER}{_NAME}\s+"(?P<double>(?:[^"\\$`]|\\.)*)"\s*', re.DOTALL),
)
_BEGINNING = re.compile(
    rf"\s*(?:cd\s+[^;&|\n]+&&\s*|cd\s+[^;&|\n]+;\s*)?{_NAME}(?=\s|$)|\s*cat\s+<<[^\n]*\|\s*{_NAME}\b"
)
_CHANGED_BY_SHELL = re.compile(r"[$`]|\\[\\\n]")
_ESCAPE = re.compile(r'\\(["\\$`\n])')
_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})
_LONGEST = 5_000_000


def is_patch_command(command: object) -> bool:
    """Return whether a command of a model, a line or a list of words, begins with the program for patches."""
    line = _line(command)
    return line is not None and _BEGINNING.match(line) is not None


def patch_of_command(command: object) -> tuple[str, str] | None:
    """Return the folder, empty if it names none, and the patch of a command that does nothing but apply it.

    None for any other command, and where the shell would change the text.
    """
    match _words(command):
        case [name, patch] if re.fullmatch(_NAME, name) and _is_patch(patch):
            return "", patch
        case _:
            pass
    line = _line(command)
    if line is None or len(line) > _LONGEST or (_BEGINNING.match(line) is None and "$(cat" not in line):
        return None
    found = next(filter(None, (form.fullmatch(line) for form in _FORMS)), None)
    patch = None if found is None else _patch(found)
    if found is None or patch is None or not _is_patch(patch):
        return None
    return found["quoted"] or found["plain"] or "", patch


def _patch(found: re.Match[str]) -> str | None:
    """Return the text that the shell hands over; None if it would change it."""
    parts = found.groupdict()
    if (single := parts.get("single")) is not None:
        return single
    if (double := parts.get("double")) is not None:
        return _ESCAPE.sub(lambda escape: "" if escape[1] == "\n" else escape[1], double)
    body = parts["body"]
    if not parts["quote"] and _CHANGED_BY_SHELL.search(body):
        return None
    if any(line.lstrip("\t") == parts["mark"] for line in body.split("\n")):
        return None  # It ends before, and something comes behind it.
    return re.sub(r"(?m)^\t+", "", body) if parts["dash"] else body


def _is_patch(text: str) -> bool:
    lines = text.strip().split("\n")
    return lines[0].strip() == BEGIN and lines[-1].strip() == END


def _line(command: object) -> str | None:
    """Return a command as a line for a shell; None if it is neither a line nor a list of words."""
    if isinstance(command, str):
        return command
    match _words(command):
        case [shell, option, line] if shell in _SHELLS and option in ("-c", "-lc"):
            return line
        case [name, *_] if re.fullmatch(_NAME, name):
            return name
        case _:
            return None


def _words(command: object) -> Sequence[str]:
    if not isinstance(command, list):
        return ()
    words = [word for word in cast("list[object]", command) if isinstance(word, str)]
    return words if len(words) == len(cast("list[object]", command)) else ()
