"""Commands that may be tried in a copy of their folder before a user is asked about them.

Not tried, and asked about at once, is a command that names something outside of the folder, a file that is asked about
each time, or a program whose purpose is to reach the network, services or other processes: it would only take time. A
command that does so unsaid finds nothing in the copy. Symbolic links are followed, which blocks for a moment.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from isthmus.agent.approval.command_paths import command_paths
from isthmus.agent.approval.policy import is_guarded
from isthmus.agent.approval.shell_command import ShellAnalysis, analyse
from isthmus.files.path_rules import expand_home
from isthmus.files.private_files import is_private
from isthmus.tools.port.workspace import Workspace

MAXIMUM_LENGTH = 20_000
"""Maximum length in characters of a command that is tried."""
_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom", "/dev/random"})
_BETWEEN = re.compile(r"[\s;|&<>()`'\"=$,{}]+")
_PROGRAMS = re.compile(r"(?:/usr(?:/local)?|/opt)?(?:/s?bin)/[\w.+-]+")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELSEWHERE = _names(
    """
    ansible ansible-playbook apk apt apt-get at aws az batch brew bwrap chroot crontab curl dnf doas docker
    docker-compose flatpak ftp gcloud gh glab halt helm journalctl kill killall kubectl machinectl mount nc ncat
    nerdctl nixos-rebuild nohup nsenter open pacman ping pip-sync pkexec pkill podman poweroff psql mysql redis-cli
    reboot rsync run0 runuser scp service setsid sftp shutdown snap ssh su sudo systemctl systemd-run telnet terraform
    tmux screen umount unshare wget xdg-open yum
    """
)
"""Programs whose purpose is to reach the network, services, other processes or the user's screen."""
_FETCHING = {
    "git": None,
    "bun": _names("add install i update publish"),
    "bundle": _names("install update"),
    "cargo": _names("add fetch install login publish search update"),
    "composer": _names("install require update"),
    "conda": _names("create install update"),
    "gem": _names("install push update"),
    "go": _names("get install"),
    "npm": _names("add ci i install login publish update audit outdated view"),
    "pip": _names("download install"),
    "pip3": _names("download install"),
    "pnpm": _names("add i install publish update"),
    "poetry": _names("add install lock publish update"),
    "uv": _names("add lock pip publish sync tool"),
    "yarn": _names("add install publish upgrade"),
}
"""Sub-commands that fetch; None: all that are not in `_READING_GIT`."""
_READING_GIT = _names("blame cat-file describe diff grep log ls-files ls-tree rev-list rev-parse shortlog show status")


def may_be_tried(command: str, folder: Path, workspace: Workspace, context_files: Iterable[str] = ()) -> bool:
    """Return whether a command that runs in `folder`, an absolute path without links, may be tried."""
    if not command.strip() or len(command) > MAXIMUM_LENGTH or "\0" in command or "://" in command:
        return False
    if any("\ud800" <= character <= "\udfff" for character in command):
        return False  # No program can be given it.
    if not folder.is_relative_to(workspace.root):
        return False
    analysis = analyse(command)
    words = list(_BETWEEN.split(command))
    return (
        not _reaches_elsewhere(analysis, words)
        and not any(_leaves(word, folder, workspace.root) or _is_hidden(word, folder, workspace) for word in words)
        and not _changes_guarded(command, analysis, folder, tuple(context_files))
    )


def _reaches_elsewhere(analysis: ShellAnalysis | None, words: list[str]) -> bool:
    named = words if analysis is None else [each.words[0] for each in analysis.commands]
    if any(name.rpartition("/")[2] in _ELSEWHERE for name in named):
        return True
    lines = [words] if analysis is None else [list(each.words) for each in analysis.commands]
    return any(_fetches(line[number:]) for line in lines for number in range(len(line)))


def _fetches(words: list[str]) -> bool:
    name = words[0].rpartition("/")[2]
    if name not in _FETCHING:
        return False
    wanted, rest = _FETCHING[name], [word for word in words[1:] if word and not word.startswith("-")]
    if wanted is None:
        return not rest or rest[0] not in _READING_GIT
    return bool(rest) and rest[0] in wanted


def _leaves(word: str, folder: Path, workspace: Path) -> bool:
    """Return whether a word of a command may name a path outside of the workspace."""
    if word in _DEVICES or _PROGRAMS.fullmatch(word):
        return False
    if word.startswith("~"):
        return True
    if not word.startswith("/") and ".." not in word:
        return False
    try:
        path = os.path.normpath(folder / expand_home(word))
        return not Path(path).is_relative_to(workspace) or not Path(path).resolve().is_relative_to(workspace)
    except (OSError, ValueError, RuntimeError):
        return True


def _is_hidden(word: str, folder: Path, workspace: Workspace) -> bool:
    """Return whether a word names a file or folder that is not in a copy, since the user is asked before it is read."""
    path = Path(os.path.normpath(folder / word))
    if not word or not os.path.lexists(path):
        return False
    return is_private((str(path),)) or (path != workspace.root and workspace.ignored_folder(path) is not None)


def _changes_guarded(
    command: str, analysis: ShellAnalysis | None, folder: Path, context_files: tuple[str, ...]
) -> bool:
    found = command_paths(command, analysis, folder)
    if not found.are_all:
        return True
    return any(is_guarded(Path(path), context_files) for path in found.changed)
