"""Words in front of a command that only measure, limit or label it: a permission for the command sees through them.

These are ``timeout``, ``nice``, ``time``, and assignments to variables that change output alone. Pure. Not here:
programs whose arguments are commands in another way, about which the user is asked, see `shell_command`.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isthmus.agent.approval.command_folders import CHANGERS
from isthmus.agent.approval.shell_syntax import Extent, ShellWord

if TYPE_CHECKING:
    from tree_sitter import Node


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_SIGNAL = re.compile(r"(?:SIG)?[A-Z]{2,6}\d?|\d{1,2}")
_NUMBER = re.compile(r"[-+]?\d{1,2}")
_FLAGS = frozenset({"--foreground", "--preserve-status", "-v", "--verbose"})
_PROGRAM = re.compile(r"[\w./@%+][\w./@%+-]*")
_NOT_BEHIND = CHANGERS | _names(
    """
    alias bg bind break builtin caller case command compgen complete compopt continue coproc declare dirs disown do
    done elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in jobs kill
    let local logout mapfile printf read readarray readonly return select set shift shopt source suspend test then
    time times trap type typeset ulimit umask unalias unset until wait while .
    """
)
"""Words of the shell itself: behind `time` they change the shell, behind a program they are another program."""

_HARMLESS_VARIABLES = re.compile(
    r"(?:CI|CLICOLOR|CLICOLOR_FORCE|CARGO_INCREMENTAL|CARGO_TERM_COLOR|COLUMNS|DEBUG|DJANGO_DEBUG|FLASK_DEBUG|FORCE_COLOR|"
    r"GOMAXPROCS|LANG|LANGUAGE|LC_[A-Z]+|LINES|MIX_ENV|NODE_ENV|NO_COLOR|OMP_NUM_THREADS|PYTHONASYNCIODEBUG|"
    r"PYTHONDEVMODE|PYTHONDONTWRITEBYTECODE|PYTHONFAULTHANDLER|PYTHONHASHSEED|PYTHONUNBUFFERED|PYTHONUTF8|RACK_ENV|"
    r"RAILS_ENV|RUST_BACKTRACE|RUST_LOG|SOURCE_DATE_EPOCH|TZ|VERBOSE)=[\w.,:-]*"
)
"""An assignment that changes what is printed or how much of the machine is used; its value names no path."""

_ACTIVATION = re.compile(r"(?:(?!\.\./)[\w.+-]+/)+bin/activate")


def is_activation(words: Sequence[ShellWord]) -> bool:
    """Return whether `source` runs the script that activates a virtual environment below the folder.

    It has a permission of its own, for exactly this script: it may change what later names mean.
    """
    return len(words) == 2 and words[1].extent is Extent.EXACT and _ACTIVATION.fullmatch(words[1].text) is not None


def is_harmless(text: str) -> bool:
    """Return whether an assignment in front of a command, as written, changes neither what runs nor where."""
    return _HARMLESS_VARIABLES.fullmatch(text) is not None


def begins_pipeline(node: "Node") -> bool:
    """Return whether a command stands where `time` is a word of the shell: elsewhere it is a program."""
    while node.parent is not None and node.parent.type in ("redirected_statement", "negated_command"):
        node = node.parent
    return node.parent is None or node.parent.type != "pipeline" or node.parent.children[0] == node


def inner_command(words: Sequence[ShellWord], written: str) -> Sequence[ShellWord] | None:
    """Return the command that a command with a wrapper runs; None without a wrapper that is understood for certain.

    ``written`` is the name as the source has it: `time` is a word of the shell only without quotes.
    """
    match words[0].text:
        case "timeout":
            rest = _after_timeout(words[1:])
        case "nice":
            rest = _after_nice(words[1:])
        case "time" if written == "time":
            rest = words[1:]
        case _:
            return None
    if not rest or rest[0].extent is not Extent.EXACT or not _PROGRAM.fullmatch(rest[0].text):
        return None
    return None if rest[0].text in _NOT_BEHIND else rest


def _after_timeout(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    number = 0
    while number < len(words) and words[number].extent is Extent.EXACT:
        text = words[number].text
        value = words[number + 1].text if number + 1 < len(words) else ""
        if text in _FLAGS or text.startswith(("--kill-after=", "--signal=")):
            named = text.partition("=")[2]
            if named and not (_DURATION.fullmatch(named) or _SIGNAL.fullmatch(named)):
                return ()
            number += 1
        elif (text == "-k" and _DURATION.fullmatch(value)) or (text == "-s" and _SIGNAL.fullmatch(value)):
            number += 2
        else:
            return words[number + 1 :] if _DURATION.fullmatch(text) else ()
    return ()


def _after_nice(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    match [word.text if word.extent is Extent.EXACT else "" for word in words[:2]]:
        case ["-n", value] if _NUMBER.fullmatch(value):
            return words[2:]
        case [option, *_] if re.fullmatch(r"--adjustment=[-+]?\d{1,2}|-\d{1,2}|-n[-+]?\d{1,2}", option):
            return words[1:]
        case [option, *_] if option and not option.startswith("-"):
            return words
        case _:
            return ()
