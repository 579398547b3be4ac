"""Files of a workspace on which other programs act without being asked: one table for edits and for the sandbox.

Each edit of one of these files needs an approval (:mod:`isthmus.agent.approval.policy`), and a confined command cannot
write it; those that start programs it cannot create either (:mod:`isthmus.sandbox.mounts`). Names count in any folder
and in any case, because some file systems ignore case. Does not contain build files (Makefile, package.json,
conftest.py): they are the work itself, and run only when a user builds.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TypeAlias


class Effect(Enum):
    """Kind of program that acts on a file."""

    AGENT = auto()
    """Coding agents: the file says what they may do or see, or is part of their prompt."""
    EDITOR = auto()
    """Editors, which run the file or programs that it names when the folder is opened."""
    VERSION_CONTROL = auto()
    """git and its hook runners, which run the file or programs that it names."""
    CONTINUOUS_INTEGRATION = auto()
    """Other machines, which run the file with their secrets once it is pushed."""
    ENVIRONMENT = auto()
    """Shells, package managers, debuggers and logins, which take programs to start, keys and registries from it."""


_LOCAL_LEFTHOOK = tuple(
    f"{name}.{form}" for name in (".lefthook-local", "lefthook-local") for form in ("json", "toml", "yaml", "yml", "*")
)

STARTING: Mapping[Effect, Mapping[str, tuple[str, ...]]] = {
    Effect.AGENT: {
        "Aider": (".aider.conf.yml",),
        "Amazon Q": (".amazonq/",),
        "Augment": (".augment/",),
        "Claude Code": (".claude/", ".mcp.json"),
        "Codex": (".codex/",),
        "Continue": (".continue/",),
        "Crush": (".crush.json", "crush.json"),
        "Cursor": (".cursor/",),
        "Gemini CLI": (".gemini/",),
        "Junie": (".junie/",),
        "Kilo Code": (".kilocode/",),
        "Kiro": (".kiro/",),
        "opencode": (".opencode/", "opencode.json", "opencode.jsonc"),
        "Qwen Code": (".qwen/",),
        "Roo Code": (".roo/",),
        "several agents": (".agents/",),
        "Trae": (".trae/",),
        "Windsurf": (".windsurf/",),
    },
    Effect.EDITOR: {
        "Dev Containers": (".devcontainer.json", ".devcontainer/"),
        "Emacs": (".dir-locals-2.el", ".dir-locals.el"),
        "Fleet": (".fleet/",),
        "Helix": (".helix/",),
        "JetBrains": (".idea/",),
        "Neovim": (".lazy.lua", ".neoconf.json", ".nvim.lua", ".nvimrc"),
        "Sublime Text": ("*.sublime-project",),
        "Vim": (".exrc", ".gvimrc", ".local.vimrc", ".lvimrc", ".vim/", ".vimrc", ".vimspector.json"),
        "VS Code": ("*.code-workspace", ".vscode/"),
        "Zed": (".zed/",),
    },
    Effect.VERSION_CONTROL: {
        "git": (".git/", ".githooks/"),
        "Husky": (".husky/",),
        "Jujutsu": (".jj/",),
        "Lefthook": (*_LOCAL_LEFTHOOK, ".lefthook-local/", ".lefthook/"),
        "Mercurial": (".hg/",),
        "Subversion": (".svn/",),
    },
    Effect.ENVIRONMENT: {
        "Bazel": (".bazelrc",),
        "Bundler": (".bundle/",),
        "Cargo": (".cargo/",),
        "debuggers": (".gdbinit", ".lldbinit", ".pdbrc"),
        "direnv": (".envrc",),
        "mise": (".mise.*", ".mise.local.toml", ".mise.toml", ".mise/", "mise.local.toml", "mise.toml"),
        "npm, pnpm and Yarn": (
            ".npmrc",
            ".pnpmfile.cjs",
            ".pnpmfile.mjs",
            ".yarn/plugins/",
            ".yarn/releases/",
            ".yarnrc",
            ".yarnrc.*",
            ".yarnrc.yml",
        ),
    },
}
"""Paths in lower case of a workspace's files with which programs start others, by effect and by their consumer.

A path that ends in a slash is a folder with all of its content, or a file of that name; ``*`` matches any text in the
name of a file. Their consumers act when a folder is opened, entered or committed; none of them was asked for.
"""

AT_HOME: Mapping[Effect, Mapping[str, tuple[str, ...]]] = {
    Effect.VERSION_CONTROL: {"git": (".config/git/", ".gitconfig")},
    Effect.ENVIRONMENT: {
        "logins": (
            ".config/autostart/",
            ".config/systemd/",
            ".pam_environment",
            ".ssh/",
            ".xinitrc",
            ".xprofile",
            ".xsession",
            ".xsessionrc",
            "authorized_keys",
        ),
        "shells": (
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".config/fish/",
            ".inputrc",
            ".local/bin/",
            ".profile",
            ".zlogin",
            ".zlogout",
            ".zprofile",
            ".zshenv",
            ".zshrc",
        ),
    },
}
"""Paths of files that start programs in a home folder, in the form of `STARTING`."""

_OTHERS: Mapping[Effect, tuple[str, ...]] = {
    Effect.AGENT: (
        ".aiderignore",
        ".aiexclude",
        ".claude.json",
        ".clinerules/",
        ".cursorignore",
        ".cursorrules",
        ".geminiignore",
        ".github/agents/",
        ".github/chatmodes/",
        ".github/copilot-instructions.md",
        ".github/instructions/",
        ".github/prompts/",
        ".goosehints",
        ".qwenignore",
        ".windsurfrules",
        "agents.local.md",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "gemini.md",
        "isthmus/agreements/",
        "qwen.md",
    ),
    Effect.EDITOR: ("_exrc", "_gvimrc", "_vimrc"),
    Effect.VERSION_CONTROL: (
        ".gitattributes",
        ".gitmodules",
        ".huskyrc*",
        ".lefthook.*",
        ".lintstagedrc*",
        ".overcommit.yml",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        "lefthook.*",
    ),
    Effect.CONTINUOUS_INTEGRATION: (
        ".appveyor.yml",
        ".buildkite/",
        ".circleci/",
        ".drone.yml",
        ".forgejo/workflows/",
        ".gitea/workflows/",
        ".github/actions/",
        ".github/workflows/",
        ".gitlab-ci.yml",
        ".gitlab/",
        ".travis.yml",
        ".woodpecker.yml",
        ".woodpecker/",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "jenkinsfile",
    ),
    Effect.ENVIRONMENT: (
        ".aws/",
        ".docker/config.json",
        ".env",
        ".env.*",
        ".gnupg/",
        ".kube/",
        ".netrc",
        ".pypirc",
        ".tool-versions",
        "pip.conf",
    ),
}
"""Paths of the other files, which instruct, restrict or run elsewhere."""


def _together() -> Iterator[tuple[Effect, tuple[str, ...]]]:
    for effect in Effect:
        by_consumer = (*STARTING.get(effect, {}).values(), *AT_HOME.get(effect, {}).values())
        yield effect, tuple(sorted((*(path for paths in by_consumer for path in paths), *_OTHERS.get(effect, ()))))


GUARDED: Mapping[Effect, tuple[str, ...]] = dict(_together())
"""All guarded paths, by effect, in the form of `STARTING`."""

_IGNORABLE = dict.fromkeys([0x00AD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF])
"""Characters that some file systems (HFS+) ignore in names."""


def effect_of(path: PurePath, context_files: Iterable[str] = ()) -> Effect | None:
    """Return the kind of program that acts on a file by itself; None if only users and builds do.

    `context_files` are further names of files that are part of an agent's prompt.
    """
    parts = [_folded(part) for part in path.parts]
    if not parts:
        return None
    if parts[-1] in {_folded(Path(name).name) for name in context_files}:
        return Effect.AGENT
    return next((effect for effect, compiled in _TABLE.items() if _matches(parts, compiled)), None)


def starting_files(effects: Iterable[Effect] = Effect) -> Iterator[tuple[PurePath, bool]]:
    """Yield the paths of a workspace's files that start programs, and whether each is a folder; not the patterns."""
    for effect in effects:
        for paths in STARTING.get(effect, {}).values():
            yield from _plain(paths)


def starting_files_at_home() -> Iterator[tuple[PurePath, bool]]:
    """Yield the paths of a home folder's files that start programs, and whether each is a folder."""
    for by_consumer in AT_HOME.values():
        for paths in by_consumer.values():
            yield from _plain(paths)


def _plain(paths: Iterable[str]) -> Iterator[tuple[PurePath, bool]]:
    return ((PurePath(path), path.endswith("/")) for path in paths if "*" not in path)


def starts_program(path: PurePath) -> bool:
    """Return whether a file starts programs, or names programs to start, by itself."""
    parts = [_folded(part) for part in path.parts]
    return bool(parts) and _matches(parts, _STARTING_TABLE)


def _matches(parts: list[str], compiled: "_Compiled") -> bool:
    folders, files, patterns = compiled
    return (
        parts[-1] in files
        or any(fnmatchcase(parts[-1], pattern) for pattern in patterns)
        or any(_has(parts, folder) for folder in folders)
    )


def _has(parts: list[str], wanted: tuple[str, ...]) -> bool:
    """Return whether the names of `wanted` follow one another in `parts`."""
    return any(tuple(parts[index : index + len(wanted)]) == wanted for index in range(len(parts)))


def _folded(name: str) -> str:
    """Return the name as compared by a file system that ignores case, and dots and spaces at the end."""
    plain = unicodedata.normalize("NFC", name.translate(_IGNORABLE)).casefold()
    return plain.rstrip(". ") or plain


_Compiled: TypeAlias = tuple[tuple[tuple[str, ...], ...], frozenset[str], tuple[str, ...]]


def _compiled(entries: Iterable[str]) -> _Compiled:
    """Return folders and files in folders as their names, the names of files, and patterns of names."""
    entries = tuple(entries)
    paths = [entry for entry in entries if "/" in entry]
    names = [entry for entry in entries if "/" not in entry]
    return (
        tuple(tuple(path.rstrip("/").split("/")) for path in paths),
        frozenset(name for name in names if "*" not in name),
        tuple(name for name in names if "*" in name),
    )


_STARTING_TABLE = _compiled(
    path for by_consumer in (*STARTING.values(), *AT_HOME.values()) for paths in by_consumer.values() for path in paths
)
_TABLE = {effect: _compiled(entries) for effect, entries in GUARDED.items()}
