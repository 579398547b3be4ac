"""Files of a workspace on which other programs act without being asked: one table for edits and for the sandbox.

Each edit of such a file needs an approval (:mod:`isthmus.agent.approval.policy`), and a confined command cannot write
it (:mod:`isthmus.sandbox.mounts`). Names count in any folder and in any case, because some file systems ignore case.
Does not contain build files (Makefile, package.json, conftest.py): they are the work itself, and run only when a user
builds.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path, PurePath


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
    """Shells, package managers and debuggers, which take secrets, registries and programs to start from the file."""


GUARDED: Mapping[Effect, tuple[str, ...]] = {
    Effect.AGENT: (
        ".aider.conf.yml",
        ".aiderignore",
        ".aiexclude",
        ".amazonq/",
        ".augment/",
        ".claude.json",
        ".claude/",
        ".clinerules/",
        ".codex/",
        ".continue/",
        ".crush.json",
        ".cursor/",
        ".cursorignore",
        ".cursorrules",
        ".gemini/",
        ".geminiignore",
        ".github/agents/",
        ".github/chatmodes/",
        ".github/copilot-instructions.md",
        ".github/instructions/",
        ".github/prompts/",
        ".goosehints",
        ".junie/",
        ".kilocode/",
        ".kiro/",
        ".mcp.json",
        ".opencode/",
        ".qwen/",
        ".qwenignore",
        ".roo/",
        ".trae/",
        ".windsurf/",
        ".windsurfrules",
        "agents.local.md",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "crush.json",
        "gemini.md",
        "opencode.json",
        "opencode.jsonc",
        "qwen.md",
    ),
    Effect.EDITOR: (
        "*.code-workspace",
        "*.sublime-project",
        ".devcontainer.json",
        ".devcontainer/",
        ".dir-locals-2.el",
        ".dir-locals.el",
        ".exrc",
        ".fleet/",
        ".gvimrc",
        ".helix/",
        ".idea/",
        ".lazy.lua",
        ".local.vimrc",
        ".lvimrc",
        ".neoconf.json",
        ".nvim.lua",
        ".nvimrc",
        ".vim/",
        ".vimrc",
        ".vimspector.json",
        ".vscode/",
        ".zed/",
        "_exrc",
        "_gvimrc",
        "_vimrc",
    ),
    Effect.VERSION_CONTROL: (
        ".git/",
        ".gitattributes",
        ".gitconfig",
        ".githooks/",
        ".gitmodules",
        ".hg/",
        ".husky/",
        ".huskyrc*",
        ".jj/",
        ".lefthook-local.*",
        ".lefthook.*",
        ".lefthook/",
        ".lintstagedrc*",
        ".overcommit.yml",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        ".svn/",
        "lefthook-local.*",
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
        ".bash_login",
        ".bash_profile",
        ".bashrc",
        ".bazelrc",
        ".bundle/",
        ".cargo/",
        ".env",
        ".env.*",
        ".envrc",
        ".gdbinit",
        ".lldbinit",
        ".mise.*",
        ".mise/",
        ".netrc",
        ".npmrc",
        ".pdbrc",
        ".pnpmfile.cjs",
        ".profile",
        ".pypirc",
        ".tool-versions",
        ".yarn/releases/",
        ".yarnrc",
        ".yarnrc.*",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "mise.local.toml",
        "mise.toml",
        "pip.conf",
    ),
}
"""Guarded paths in lower case, by effect.

A path that ends in a slash is a folder with all of its content, or a file of that name; ``*`` matches any text in the
name of a file.
"""

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
    for effect, (folders, files, patterns) in _TABLE.items():
        if parts[-1] in files or any(fnmatchcase(parts[-1], pattern) for pattern in patterns):
            return effect
        if any(_has(parts, folder) for folder in folders):
            return effect
    return None


def _has(parts: list[str], wanted: tuple[str, ...]) -> bool:
    """Return whether the names of `wanted` follow one another in `parts`."""
    return any(tuple(parts[index : index + len(wanted)]) == wanted for index in range(len(parts)))


def _folded(name: str) -> str:
    """Return the name as compared by a file system that ignores case, and dots and spaces at the end."""
    plain = unicodedata.normalize("NFC", name.translate(_IGNORABLE)).casefold()
    return plain.rstrip(". ") or plain


def _compiled(entries: Iterable[str]) -> tuple[tuple[tuple[str, ...], ...], frozenset[str], tuple[str, ...]]:
    """Return folders and files in folders as their names, the names of files, and patterns of names."""
    paths = [entry for entry in entries if "/" in entry]
    names = [entry for entry in entries if "/" not in entry]
    return (
        tuple(tuple(path.rstrip("/").split("/")) for path in paths),
        frozenset(name for name in names if "*" not in name),
        tuple(name for name in names if "*" in name),
    )


_TABLE = {effect: _compiled(entries) for effect, entries in GUARDED.items()}
