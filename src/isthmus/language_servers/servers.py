"""The language servers that are known: their command lines, their files, and where their programs may be.

A server that loads code of the project when it opens a folder needs the user's word for it, as do programs inside the
folder: an agent that may edit files could otherwise have its own code run. Nothing here is read from a project.
"""

import os
import shutil
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from isthmus.encoding.codec import JsonObject
from isthmus.record import record


class ServerPrograms(StrEnum):
    """Programs of language servers that may be started in a trusted folder."""

    INSTALLED = "installed"
    """Programs outside of the folder, of servers that load no code of it."""
    PROJECT = "project"
    """Programs of the folder, too, and servers that load code of it."""
    NONE = "none"


@record
class LanguageServer:
    """A language server: ``arguments`` follow its program, ``languages`` are LSP's ids of languages by suffix.

    ``options`` are for its initialization, ``settings`` what it asks for by the name of a section. ``variables`` are
    added to its environment. ``loads_code``: it loads or runs code of the project. ``says_status``: it says when it has
    loaded.
    """

    program: str
    arguments: tuple[str, ...]
    languages: Mapping[str, str]
    options: JsonObject
    settings: JsonObject
    variables: Mapping[str, str]
    loads_code: bool = False
    says_status: bool = False


_C = {".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp"}
_SCRIPT = {
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".mts": "typescript",
    ".cts": "typescript",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".mjs": "javascript",
    ".cjs": "javascript",
}
_RUST: JsonObject = {
    "cargo": {"buildScripts": {"enable": False}},
    "procMacro": {"enable": False},
    "checkOnSave": False,
    "cachePriming": {"enable": False},
}
SERVERS = (
    LanguageServer(
        "pyright-langserver",
        ("--stdio",),
        {".py": "python", ".pyi": "python"},
        {},
        {"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
        {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    ),
    LanguageServer("typescript-language-server", ("--stdio",), _SCRIPT, {}, {}, {}, loads_code=True),
    LanguageServer(
        "gopls",
        ("serve",),
        {".go": "go"},
        {},
        {},
        {
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=readonly -buildvcs=false",
        },
    ),
    # It runs Cargo, and Cargo the compiler that the project's .cargo/config.toml or rust-toolchain.toml names.
    LanguageServer(
        "rust-analyzer", (), {".rs": "rust"}, _RUST, {"rust-analyzer": _RUST}, {}, loads_code=True, says_status=True
    ),
    LanguageServer("clangd", ("--background-index=false",), _C, {}, {}, {}),
)
_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Folders of a project with programs, in the order in which they are looked through."""


def server_for(path: Path) -> LanguageServer | None:
    """Return the language server for a file, by its suffix; None if none is known."""
    suffix = path.suffix.lower()
    return next((server for server in SERVERS if suffix in server.languages), None)


def settings_of(server: LanguageServer, workspace: Path) -> JsonObject:
    """Return the settings of a server for a folder, by the names of their sections. Blocks.

    Packages of a virtual environment in the folder are named to pyright, which would otherwise run its Python.
    """
    if "python" not in server.settings:
        return server.settings
    places = (workspace.glob(f"{folder}/lib/python3*/site-packages") for folder in (".venv", "venv"))
    found = sorted(str(path) for each in places for path in each)
    analysis = server.settings["python"]["analysis"]
    return {**server.settings, "python": {"analysis": {**analysis, "extraPaths": found}}}


def environment_for(workspace: Path, allowed: ServerPrograms, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of a server; PATH has folders of the project only if its programs are allowed. Blocks."""
    if allowed is ServerPrograms.PROJECT or "PATH" not in environment:
        return environment
    return {**environment, "PATH": _outside(environment["PATH"], workspace)}


def _outside(path: str, workspace: Path) -> str:
    """Return PATH without the folders of a project, by whatever name, as with an active virtual environment."""
    root = workspace.resolve()
    folders = [folder for folder in path.split(os.pathsep) if folder and os.path.isabs(folder)]  # noqa: PTH117
    return os.pathsep.join(folder for folder in folders if not Path(folder).resolve().is_relative_to(root))


def program_of(
    server: LanguageServer, workspace: Path, allowed: ServerPrograms, environment: Mapping[str, str]
) -> str | None:
    """Return the path of the program of a server; None if it is not installed, or may not be started. Blocks."""
    match allowed:
        case ServerPrograms.NONE:
            return None
        case ServerPrograms.INSTALLED if server.loads_code:
            return None
        case ServerPrograms.PROJECT:
            inside = (workspace / folder / server.program for folder in _FOLDERS)
            if (
                found := next((path for path in inside if path.is_file() and os.access(path, os.X_OK)), None)
            ) is not None:
                return str(found)
        case ServerPrograms.INSTALLED:
            pass
    path = environment_for(workspace, allowed, {"PATH": environment.get("PATH", os.defpath)})["PATH"]
    found_outside = shutil.which(server.program, path=path) if path else None
    if found_outside is None or allowed is ServerPrograms.PROJECT:
        return found_outside
    return None if Path(found_outside).resolve().is_relative_to(workspace.resolve()) else found_outside
