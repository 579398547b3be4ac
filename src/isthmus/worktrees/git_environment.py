"""Environment and configuration of git for repositories that anybody may have written. Pure.

A repository's configuration and attributes can name programs that git runs (hooks, file system monitors, filters) and
places to fetch from. They are switched off by settings in the environment, which win over every file.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import which

from isthmus.record import record

_KEPT = ("HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME")
_KEPT_FOR_NETWORK = (
    *("SSH_AUTH_SOCK", "GIT_ASKPASS", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),  # for credential helpers with a keyring
)
PROTOCOLS = "https:http:ssh:file"
"""Transports that are allowed; ``ext`` and others of git's run commands or have no authentication."""
NO_PROGRAMS: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "safe.bareRepository": "explicit",
    "status.submoduleSummary": "false",
}
"""Settings by which git runs no program that a repository names, except filters."""
QUIET: Mapping[str, str] = {
    **NO_PROGRAMS,
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "i18n.commitEncoding": "utf-8",
    "worktree.useRelativePaths": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
"""NO_PROGRAMS, and nothing that asks, signs, or goes on by itself."""
EXACT: Mapping[str, str] = {
    **QUIET,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "true",
    "core.fileMode": "true",
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
}
"""QUIET, and files that are the same on every machine, whatever its users have configured."""
AUTHOR: Mapping[str, str] = {
    "GIT_AUTHOR_NAME": "Isthmus",
    "GIT_AUTHOR_EMAIL": "isthmus@localhost",
    "GIT_COMMITTER_NAME": "Isthmus",
    "GIT_COMMITTER_EMAIL": "isthmus@localhost",
}


@record
class GitPlace:
    """The git that is used: ``program`` is its absolute path, ``search_path`` the absolute folders of PATH."""

    program: str
    search_path: str


def find_git(environment: Mapping[str, str]) -> GitPlace | None:
    """Return the git of the absolute folders in PATH; None if there is none."""
    path = os.pathsep.join(part for part in environment.get("PATH", "").split(os.pathsep) if Path(part).is_absolute())
    program = which("git", path=path)
    return None if program is None else GitPlace(program, path)


def base_environment(environment: Mapping[str, str], search_path: str, *, uses_network: bool = False) -> dict[str, str]:
    """Return the variables of git: no prompt, no optional lock, and only allowed transports, or none."""
    kept = (*_KEPT, *_KEPT_FOR_NETWORK) if uses_network else _KEPT
    return {
        **{name: environment[name] for name in kept if name in environment},
        "PATH": search_path,
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS if uses_network else "none",
    }


def configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set these settings for one call of git, above every file."""
    pairs = {
        name: text
        for number, (key, value) in enumerate(settings.items())
        for name, text in ((f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", value))
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs}


def without_filters(names: Iterable[str]) -> dict[str, str]:
    """Return settings that switch off the filters which these names of settings configure, by empty commands."""
    filters = {name.rpartition(".")[0] for name in names if name.startswith("filter.") and name.count(".") > 1}
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{one}.{key}": value for one in sorted(filters) for key, value in values.items()}


def names_in_repository(listed: str) -> list[str]:
    """Return the names of settings that a repository's own files set.

    ``listed`` is the output of ``git config --list --show-scope --name-only -z``: a scope and a name in turn.
    """
    fields = listed.split("\0")
    return [name for scope, name in zip(fields[::2], fields[1::2], strict=False) if scope in ("local", "worktree")]


def batch_ssh(command: str) -> str:
    """Return the command of ssh with options to ask nothing and to notice a lost connection, if it is OpenSSH's."""
    words = command.split()
    options = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15"
    return f"{command} {options}" if words and words[0].rpartition("/")[2] == "ssh" else command
