"""Finds the folders in which each command of a shell line may run, as far as ``cd`` with a constant name says.

Where a folder is not certain, more are returned than there can be, or None for any. Folders are relative to the one in
which the line is run, or absolute. Nothing is looked up. Not here: reading the line, see
:mod:`isthmus.agent.approval.shell_command`.
"""

from collections.abc import Iterable, Mapping, Sequence
from posixpath import isabs, join, normpath
from typing import TYPE_CHECKING, TypeAlias

from isthmus.agent.approval.shell_syntax import Extent, ShellWord, word_of
from isthmus.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

Folders: TypeAlias = frozenset[str | None]
"""Possible folders of a command; None stands for any."""
HERE: Folders = frozenset({"."})
ANYWHERE: Folders = frozenset({None})
MAXIMUM_FOLDERS = 8
"""Maximum number of folders that are told apart; more are any."""
CHANGERS = frozenset({"cd", "pushd", "popd"})
"""Commands that change the folder of the commands after them."""

_SHELLS_OF_THEIR_OWN = frozenset({"subshell", "command_substitution", "process_substitution"})
_LOOPS = frozenset({"while_statement", "for_statement"})
_BRANCHES = frozenset({"if_statement", "elif_clause", "else_clause", "case_statement", "case_item"})
_SEQUENCES = frozenset({"program", "compound_statement", "do_group"})


@record
class _Outcome:
    """Folders after something has succeeded, and after it has failed."""

    success: Folders
    failure: Folders

    @property
    def either(self) -> Folders:
        return _limited(self.success | self.failure)


def folders_of(root: "Node") -> Mapping[int, Folders]:
    """Return the possible folders of each node of the type ``command``, by its id."""
    found: dict[int, Folders] = {}
    _walk(root, HERE, found)
    return found


def _walk(node: "Node", before: Folders, found: dict[int, Folders]) -> _Outcome:
    unchanged = _Outcome(before, before)
    kind, children = node.type, node.children
    if kind == "command":
        found[node.id] = _limited(found.get(node.id, frozenset()) | before)
        _walk_all(children, before, found)
        return _after_command(node, before)
    if kind in _SHELLS_OF_THEIR_OWN:
        _sequence(children, before, found)
        return unchanged
    if kind == "list":
        return _list(children, before, found)
    if kind in _SEQUENCES:
        after = _sequence(children, before, found)
        return _Outcome(after, after)
    if kind in _LOOPS or kind in _BRANCHES:
        return _repeated(children, before, found)
    if kind == "negated_command":
        outcome = _last(children, before, found)
        return _Outcome(outcome.failure, outcome.success)
    if kind == "redirected_statement":
        _walk_all(children[1:], before, found)
        return _walk(children[0], before, found) if children else unchanged
    _walk_all(children, before, found)  # also a pipeline, whose parts are shells of their own
    return unchanged


def _walk_all(nodes: Iterable["Node"], before: Folders, found: dict[int, Folders]) -> None:
    for node in nodes:
        _walk(node, before, found)


def _sequence(nodes: Iterable["Node"], before: Folders, found: dict[int, Folders]) -> Folders:
    for node in nodes:
        before = _walk(node, before, found).either
    return before


def _last(nodes: Sequence["Node"], before: Folders, found: dict[int, Folders]) -> _Outcome:
    """Return the outcome of the last of some nodes, which is the command behind a `!`."""
    outcome = _Outcome(before, before)
    for node in nodes:
        outcome = _walk(node, before, found)
    return outcome


def _list(nodes: Sequence["Node"], before: Folders, found: dict[int, Folders]) -> _Outcome:
    """Return the outcome of commands joined by ``&&`` and ``||``."""
    outcome = _Outcome(before, before)
    operator = ""
    for node in nodes:
        if node.type in ("&&", "||"):
            operator = node.type
        elif operator == "&&":
            right = _walk(node, outcome.success, found)
            outcome = _Outcome(right.success, _limited(outcome.failure | right.failure))
        elif operator == "||":
            right = _walk(node, outcome.failure, found)
            outcome = _Outcome(_limited(outcome.success | right.success), right.failure)
        else:
            outcome = _walk(node, before, found)
    return outcome


def _repeated(nodes: Sequence["Node"], before: Folders, found: dict[int, Folders]) -> _Outcome:
    """Return the outcome of nodes of which each may run or not, and again: if one changes the folder, it is any."""
    after = before
    for node in nodes:
        after = _limited(after | _walk(node, after, found).either)
    if after != before:
        after = ANYWHERE
        _walk_all(nodes, after, found)
    return _Outcome(after, after)


def _after_command(node: "Node", before: Folders) -> _Outcome:
    words = [_word(child) for child in node.children if child.type not in _REDIRECTIONS]
    name = words[0].text if words else ""
    if name not in CHANGERS:
        return _Outcome(before, before)
    target = words[1] if len(words) == 2 else None
    if name == "popd" or target is None or target.extent is not Extent.EXACT or target.text.startswith(("-", "+", "~")):
        return _Outcome(ANYWHERE, _limited(before | ANYWHERE))
    return _Outcome(frozenset(_joined(folder, target.text) for folder in before), before)


_REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})


def _word(node: "Node") -> ShellWord:
    inner = node.children[0] if node.type == "command_name" and node.children else node
    return word_of(inner)


def _joined(folder: str | None, target: str) -> str | None:
    if isabs(target):
        return normpath(target)
    if folder is None or not target:
        return None
    return normpath(join(folder, target))


def _limited(folders: Folders) -> Folders:
    return ANYWHERE if None in folders or len(folders) > MAXIMUM_FOLDERS else folders
