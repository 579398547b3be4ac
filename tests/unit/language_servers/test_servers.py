"""Choice of the program of a language server: never by a file of the project."""

from pathlib import Path

import pytest

from isthmus.language_servers.servers import (
    SERVERS,
    ServerPrograms,
    environment_for,
    program_of,
    server_for,
    settings_of,
)

PYRIGHT = server_for(Path("a.py"))
INSTALLED, PROJECT, NONE = ServerPrograms.INSTALLED, ServerPrograms.PROJECT, ServerPrograms.NONE


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_each_suffix_has_one_server() -> None:
    suffixes = [suffix for server in SERVERS for suffix in server.languages]
    assert len(suffixes) == len(set(suffixes))
    assert server_for(Path("a.txt")) is None
    assert server_for(Path("A.PY")) is PYRIGHT


@pytest.mark.parametrize(("allowed", "found"), [(INSTALLED, "outside"), (PROJECT, "inside"), (NONE, None)])
def test_a_program_of_the_folder_needs_the_users_word(tmp_path: Path, allowed: ServerPrograms, found: str) -> None:
    assert PYRIGHT is not None
    workspace = tmp_path / "project"
    inside = program(workspace / ".venv" / "bin", PYRIGHT.program)
    outside = program(tmp_path / "bin", PYRIGHT.program)
    environment = {"PATH": f"{workspace / '.venv' / 'bin'}:{tmp_path / 'bin'}"}
    expected = {"outside": outside, "inside": inside, None: None}[found]
    assert program_of(PYRIGHT, workspace, allowed, environment) == expected


@pytest.mark.parametrize("path", ["{project}/.venv/bin", "link", ".", ""])
def test_a_folder_of_the_project_on_path_is_no_installation(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PYRIGHT is not None
    workspace = tmp_path / "project"
    program(workspace / ".venv" / "bin", PYRIGHT.program)
    program(workspace, PYRIGHT.program)
    monkeypatch.chdir(workspace)
    if path == "link":
        (tmp_path / "link").symlink_to(workspace / ".venv" / "bin")
        path = str(tmp_path / "link")
    environment = {"PATH": path.format(project=workspace)}
    assert program_of(PYRIGHT, workspace, INSTALLED, environment) is None


def test_a_link_outside_to_a_program_of_the_project_is_no_installation(tmp_path: Path) -> None:
    assert PYRIGHT is not None
    workspace = tmp_path / "project"
    inside = program(workspace / "tools", PYRIGHT.program)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / PYRIGHT.program).symlink_to(inside)
    assert program_of(PYRIGHT, workspace, INSTALLED, {"PATH": str(tmp_path / "bin")}) is None


@pytest.mark.parametrize("file", ["a.tsx", "a.rs"])
def test_a_server_that_loads_code_of_the_project_needs_the_users_word(tmp_path: Path, file: str) -> None:
    server = server_for(Path(file))
    assert server is not None
    outside = program(tmp_path / "bin", server.program)
    environment = {"PATH": str(tmp_path / "bin")}
    assert program_of(server, tmp_path / "project", INSTALLED, environment) is None
    assert program_of(server, tmp_path / "project", PROJECT, environment) == outside


def test_servers_find_no_program_of_the_project_on_path(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    (tmp_path / "link").symlink_to(workspace / "bin")
    path = f"{workspace}/.venv/bin:/usr/bin:{tmp_path}/link:bin::/bin"
    assert environment_for(workspace, INSTALLED, {"PATH": path, "HOME": "/h"}) == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/h",
    }
    assert environment_for(workspace, PROJECT, {"PATH": path, "HOME": "/h"}) == {"PATH": path, "HOME": "/h"}


def test_pyright_knows_the_packages_of_the_project_without_its_python(tmp_path: Path) -> None:
    packages = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    assert PYRIGHT is not None
    assert settings_of(PYRIGHT, tmp_path)["python"]["analysis"]["extraPaths"] == [str(packages)]


def test_no_server_runs_code_of_a_project_unless_it_says_so() -> None:
    rust, go = server_for(Path("a.rs")), server_for(Path("a.go"))
    assert rust is not None
    assert go is not None
    assert rust.options["cargo"] == {"buildScripts": {"enable": False}}
    assert (rust.options["procMacro"], rust.options["checkOnSave"]) == ({"enable": False}, False)
    assert go.variables["GOTOOLCHAIN"] == "local"
    assert "-buildvcs=false" in go.variables["GOFLAGS"]
