"""Files that a shell command names: those that well-known programs read or change, and its redirections.

Only a best effort, as in Claude Code: a script reads what it likes, and only a sandbox prevents that. Wildcards in
the last name of a path are expanded, which reads its folder.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from isthmus.agent.approval.shell_command import ShellAnalysis
from isthmus.files.path_rules import expand_home, followed
from isthmus.record import record

MAXIMUM_EXPANDED = 200
"""Maximum number of entries of a folder with which a word with wildcards is compared."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAXIMUM_PATHS = 500
"""Maximum number of paths that are looked at."""
_READERS = _names(
    """
    awk base64 bat bzcat cat cmp comm cp csplit curl cut dd diff egrep expand fgrep file fold gawk grep gzip head
    hexdump install jq less ln md5sum mawk more mv nl od openssl paste perl pr python python3 rg rsync ruby
    scp sed sha1sum sha256sum shuf sort source split strings sum tac tail tar tee tr uniq vi view vim wc xxd
    xzcat yq zcat zip . node
    """
)
_WRITERS = _names("cp dd install ln mv perl rm rmdir rsync sed shred tee touch truncate unlink vi vim")
_MOVING = frozenset({"cd", "pushd"})
_BETWEEN = re.compile(r"[\s;|&<>()`'\"=$,:{}]+")
_WILDCARDS = re.compile(r"[*?\[]")
_REDIRECTED = re.compile(r"[<>]&?\s*(['\"]?)([^\s'\"<>|&;()]+)\1")


@record
class CommandPaths:
    """Whole paths of a command that it may read, and that it may change, also as links lead to them.

    ``are_all`` is False if it names too many.
    """

    read: tuple[str, ...]
    changed: tuple[str, ...]
    are_all: bool = True


def command_paths(command: str, analysis: ShellAnalysis | None, folder: Path) -> CommandPaths:
    """Return the files that a command names, which runs in ``folder``; of one that is not understood, all its words."""
    folders = [folder]
    redirected = [found[2] for found in _REDIRECTED.finditer(command)]
    if analysis is None:
        words = list(_BETWEEN.split(command))
        paths, are_all = _whole([*words, *redirected], folders)
        return CommandPaths(paths, paths, are_all)
    for simple in analysis.commands:
        if simple.words[0] in _MOVING:
            folders += [place / expand_home(word) for place in tuple(folders)[:8] for word in simple.words[1:2]]
    read, changed = list(redirected), list(redirected)
    for simple in analysis.commands:
        name = Path(simple.words[0]).name
        words = [word.rpartition("=")[2] for word in simple.words[1:]]
        words += [word[1:] for word in words if word.startswith("@")]  # curl reads what such a word names
        read += words if name in _READERS else []
        changed += words if name in _WRITERS else []
    (reads, are_all_reads), (changes, are_all_changes) = _whole(read, folders), _whole(changed, folders)
    return CommandPaths(reads, changes, are_all_reads and are_all_changes)


def _whole(words: Iterable[str], folders: Iterable[Path]) -> tuple[tuple[str, ...], bool]:
    """Return the paths that words may mean, each once, and whether these are all."""
    named = (folder / expand_home(word) for word in words if word and "\0" not in word for folder in folders)
    paths = (each for path in named for each in (path, *_expanded(path)))
    found = list(islice(paths, MAXIMUM_PATHS + 1))
    spelled = (spelling for path in found[:MAXIMUM_PATHS] for spelling in followed(path))
    return tuple(dict.fromkeys(spelled)), len(found) <= MAXIMUM_PATHS


def _expanded(path: Path) -> Iterator[Path]:
    """Yield the files that a path with wildcards in its last name means."""
    if not _WILDCARDS.search(path.name) or _WILDCARDS.search(str(path.parent)):
        return
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, MAXIMUM_EXPANDED)]
    except OSError:
        return
    yield from (path.parent / name for name in names if fnmatch.fnmatchcase(name, path.name))
