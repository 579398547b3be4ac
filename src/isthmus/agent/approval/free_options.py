"""Finds the options and operands of a command that a lasting permission for its first words does not cover.

They make a program run another program, or write a file that its name does not suggest; or nothing is known of them.
The user is asked about each command that has one, and about each command with a word that may become an option when
bash expands it. Which options are covered is data, see `isthmus.agent.approval.known_programs.rows`; tests check it
against the real programs. Not here: programs whose purpose is to run others, see `shell_command`.
"""

import re
from collections.abc import Sequence

from isthmus.agent.approval.known_programs.rows import Row, known_program
from isthmus.agent.approval.known_programs.scripts import asked_word_of_awk, asked_word_of_sed
from isthmus.agent.approval.shell_syntax import Extent, ShellWord

PACKAGE_RUNNERS = frozenset({"npx", "bunx", "uvx"})
"""Programs whose first operand is a program of a package, with its own arguments."""
WRAPPERS = frozenset({"hatch", "pdm", "pipenv", "pipx", "poetry", "rye", "uv"})
"""Programs whose sub-command `run` runs a command in an environment."""

_PLAIN_ASSIGNMENT = re.compile(r"(?!SHELL|MAKE|\.)[A-Za-z_]\w*[:+?]?=(?:\d*|y|n|yes|no|true|false|on|off)")
_GIT_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--version", "--literal-pathspecs", "--help"})
_GIT_CONFIG_READS = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"})
_SED = frozenset({"sed", "gsed"})
_AWK = frozenset({"awk", "gawk", "mawk", "nawk"})


def has_prefix(words: Sequence[str]) -> bool:
    """Return whether enough is known of a command for a lasting permission for its first words."""
    name = words[0].rpartition("/")[2]
    if name in _SED or name in _AWK:
        return True
    row = _row_of(words)
    return row is not None and "each" not in row.traits


def changes_files(words: Sequence[str]) -> bool:
    """Return whether a command of a known program changes files by purpose."""
    row = _row_of(words)
    return row is not None and "writes" in row.traits


def _row_of(words: Sequence[str]) -> Row | None:
    """Return the row of a command, behind a program that runs it by its name; None if nothing is known of it."""
    name = words[0].rpartition("/")[2]
    if name in PACKAGE_RUNNERS:
        return _row_of(words[1:]) if len(words) > 1 else None
    if name in WRAPPERS and len(words) > 2 and words[1] == "run":
        return _row_of(words[2:])
    found = known_program(words)
    return None if found is None else found.row


def asked_each_time(words: Sequence[ShellWord]) -> str:
    """Return the word for which a command needs an answer despite an allowed prefix, or an empty text."""
    name = words[0].text.rpartition("/")[2]
    arguments = list(words[1:])
    if name in _SED:
        return asked_word_of_sed(arguments)
    if name in _AWK:
        return asked_word_of_awk(arguments)
    if name in PACKAGE_RUNNERS and arguments and not arguments[0].text.startswith("-"):
        return asked_each_time(arguments)
    if name in WRAPPERS and len(words) > 2 and words[1].text == "run":
        return asked_each_time(words[2:])
    if name == "git":
        while arguments and arguments[0].text in _GIT_GLOBALS:
            arguments.pop(0)
        if arguments and (arguments[0].text.startswith("-") or arguments[0].may_be_option):
            return f"git {arguments[0].text}"
        if [word.text for word in arguments[:1]] == ["config"]:
            is_read = len(arguments) > 1 and arguments[1].text in _GIT_CONFIG_READS
            return "" if is_read else " ".join(("git config", *(word.text for word in arguments[1:2] or ())))
    found = known_program([name, *(word.text for word in arguments)])
    if found is None or not arguments:
        return ""
    if found.row is None:
        return found.key
    rest = arguments[found.depth - 1 :]
    if "each" in found.row.traits:
        return " ".join((found.key, *(word.text for word in rest[:1])))
    if "any" in found.row.traits:
        # The sub-command may follow options, whose values cannot be told from it.
        is_behind_option = True
        for word in rest:
            other = known_program([name, word.text])
            if other is not None and other.row is not None and "each" in other.row.traits:
                return other.key
            is_option = word.text.startswith("-")
            if not is_option and (word is rest[0] or not is_behind_option):
                break
            is_behind_option = is_option
    asked = _asked_word(found.row, rest)
    return f"{found.key} {asked}" if asked else ""


def _asked_word(row: Row, words: Sequence[ShellWord]) -> str:
    """Return the first word that needs an answer each time."""
    if "*" in row.traits:
        return ""
    operands = 0
    needs_name = bool(row.operands) and "any" not in row.traits
    are_options, previous = True, ""
    for number, word in enumerate(words):
        text = word.text
        may_be_value = are_options and len(previous) > 1 and previous.startswith("-") and "=" not in previous
        previous = text
        if are_options and text == "--" and word.extent is Extent.EXACT:
            # After an option it may be its value, and what follows an option.
            are_options = may_be_value or "through" in row.traits
            continue
        if _is_asked(row, word, number, are_options=are_options):
            return f"{text} (which may become an option)" if are_options and word.may_be_option else text or "''"
        if are_options and text.startswith("-") and text != "-" and not (operands and row.maximum is not None):
            # Where operands are counted, an option behind one may be one itself.
            operands += 2 if word.extent is Extent.ANY else 0
            continue
        if "args" in row.traits:
            return ""
        if needs_name and text not in row.operands:
            return text or "''"
        needs_name = needs_name and may_be_value
        if word.extent is Extent.ANY:
            operands += 2  # Even the value of an option: all words but the first become operands.
        elif not (may_be_value and _takes_value(row, words[number - 1].text)):
            operands += 1
        if row.maximum is not None and operands > row.maximum:
            return text or "''"
    return ""


def _is_asked(row: Row, word: ShellWord, number: int, *, are_options: bool) -> bool:
    """Return whether a word alone needs an answer; ``number`` is its place after the program, from 0."""
    text = word.text
    if are_options and word.may_be_option and "expand" not in row.traits:
        return True
    if are_options and text.startswith("-") and text != "-":
        return not row.covers(text) or (":" in row.traits and ":" in text)
    if ":" in row.traits and (":" in text or (number == 0 and not row.letters.issuperset(text))):
        return True  # The first word of tar may be a bundle of options without a hyphen.
    if "=" in row.traits and "=" in text:
        return not (word.extent is Extent.EXACT and _PLAIN_ASSIGNMENT.fullmatch(text))
    return "@" in row.traits and text.startswith("@")


def _takes_value(row: Row, option: str) -> bool:
    return len(option) == 2 and option[1] in row.valued
