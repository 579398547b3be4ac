"""Diagnostics for editors without any: the real ruff and the real pyright, and programs that misbehave."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.errors import DecodeError
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, Diagnostic, EditorError, Position, Range, Severity
from isthmus.ide.linters.linter import decode_pyright, decode_ruff
from isthmus.ide.linters.process import LinterError, run_to_end
from isthmus.ide.linters.runner import LinterRunner
from isthmus.ide.options import CompanionOptions
from support.editor_deadlines import PATIENT_LIMITS
from support.isthmus_program import companion_program, isthmus, process_ends
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio

TEXT = 's = "😀"; import sys\nx = undefined\n'


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the pyright of the development environment; do not look for a newer one."""
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")


@asynccontextmanager
async def running(names: tuple[str, ...], folder: Path) -> AsyncGenerator[LinterRunner]:
    runner = LinterRunner(names, (str(folder),))
    try:
        yield runner
    finally:
        await runner.aclose()


async def found(runner: LinterRunner, path: Path, source: str) -> list[Diagnostic]:
    """Return the diagnostics of a file from one linter, as soon as it finds any."""

    async def known() -> list[Diagnostic]:
        return [one for one in await runner.diagnostics((str(path),)) if one.source == source]

    return await eventually_async(known, 90, what=f"{source} on {path}")


def made(folder: Path, name: str = "a.py", text: str = TEXT) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def at(line: int, character: int, end: int) -> Range:
    return Range(Position(line, character), Position(line, end))


async def test_a_project_makes_ruff_write_nowhere(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (workspace / "ruff.toml").write_text(f'cache-dir = "{elsewhere}"\n', encoding="utf-8")
    path = made(workspace)
    async with running(("ruff",), workspace) as runner:
        assert await found(runner, path, "ruff")
    assert not elsewhere.exists()
    assert sorted(file.name for file in workspace.iterdir()) == ["a.py", "ruff.toml"]


async def test_ruff_finds_what_it_finds_where_it_is(workspace: Path) -> None:
    path = made(workspace)
    async with running(("ruff",), workspace) as runner:
        by_code = {one.code: one for one in await found(runner, path, "ruff")}
    assert by_code["F821"].range == at(1, 4, 13)
    assert by_code["F821"].severity is Severity.ERROR
    assert by_code["F401"].range == at(0, 17, 20)  # in UTF-16 units: the emoji has two
    assert by_code["F401"].severity is Severity.WARNING


async def test_pyright_finds_what_it_finds_where_it_is(workspace: Path) -> None:
    path = made(workspace)
    async with running(("pyright",), workspace) as runner:
        by_code = {one.code: one for one in await found(runner, path, "Pyright")}
    assert by_code["reportUndefinedVariable"].range == at(1, 4, 13)
    assert by_code["reportUndefinedVariable"].severity is Severity.ERROR


async def test_a_written_file_is_looked_at_again_and_a_clean_one_has_nothing(workspace: Path) -> None:
    path = made(workspace)
    async with running(("ruff",), workspace) as runner:
        assert await found(runner, path, "ruff")
        path.write_text("x = 1\n", encoding="utf-8")

        async def clean() -> bool:
            return await runner.diagnostics((str(path),)) == ()

        await eventually_async(clean, what="nothing is left of it")


async def test_files_behind_links_and_with_strange_names_are_found(workspace: Path, tmp_path: Path) -> None:
    made(workspace, "-- a b.py")
    (tmp_path / "linked").symlink_to(workspace)
    async with running(("ruff",), tmp_path / "linked") as runner:
        path = tmp_path / "linked" / "-- a b.py"
        assert {one.path for one in await found(runner, path, "ruff")} == {str(path)}


async def test_only_files_of_the_workspace_and_of_its_languages_are_looked_at(workspace: Path, tmp_path: Path) -> None:
    outside, link, text = made(tmp_path), workspace / "link.py", made(workspace, "a.txt")
    link.symlink_to(outside)
    async with running(("ruff",), workspace) as runner:
        assert await found(runner, made(workspace), "ruff")
        for path in (outside, link, text, workspace / "missing.py"):
            assert await runner.diagnostics((str(path),)) == ()


def program(folder: Path, name: str, code: str) -> None:
    """Put a program on PATH that is not a linter."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts another ruff on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda code: program(folder, "ruff", code)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no such option')", "no such option"),
        ("print('found nothing')", "expected JSON"),
        ("print('{}')", "expected a list"),
        ("print('[' * 100000)", "expected JSON"),
        ("pass", "it printed nothing"),
    ],
)
async def test_a_linter_that_does_not_work_says_why(
    workspace: Path, pretend: Callable[[str], None], code: str, said: str
) -> None:
    pretend(code)
    async with running(("ruff",), workspace) as runner:
        with pytest.raises(LinterError, match=said):
            await runner.diagnostics((str(made(workspace)),), seconds=60)


async def test_while_a_linter_runs_the_answer_is_what_is_known(workspace: Path, pretend: Callable[[str], None]) -> None:
    pretend(f"import os, time; open({str(workspace / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    async with running(("ruff",), workspace) as runner:
        assert await runner.diagnostics((str(made(workspace)),), seconds=0.01) == ()
        pid = await eventually_async(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text("utf-8"))
    process_ends(int(str(pid)))


async def test_what_takes_too_long_is_ended_with_all_that_it_started(workspace: Path) -> None:
    code = "sleep 600 & echo $! > child; wait"
    running_it = asyncio.create_task(run_to_end(["/bin/sh", "-c", code], str(workspace), 2.0))
    child = await eventually_async(lambda: (workspace / "child").exists() and (workspace / "child").read_text("utf-8"))
    with pytest.raises(LinterError, match="sh was stopped after 2 s"):
        await running_it
    process_ends(int(str(child)))


async def test_what_prints_without_end_is_ended(workspace: Path) -> None:
    with pytest.raises(LinterError, match="bytes"):
        await run_to_end(["/bin/sh", "-c", "exec cat /dev/zero"], str(workspace), 60.0)


def test_only_known_and_installed_linters_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(LinterError, match="unknown linter 'mypy'; expected one of ruff, pyright"):
        LinterRunner(("mypy",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(LinterError, match="ruff is not installed"):
        LinterRunner(("ruff",))


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff", b'[{"filename": "a"}]'])
def test_output_that_is_something_else_is_refused(data: bytes) -> None:
    for decode in (decode_ruff, decode_pyright):
        with pytest.raises(DecodeError):
            decode(data, {})


@asynccontextmanager
async def companion_of(editor: HeadlessEditor, *linters: str) -> AsyncGenerator[Companion]:
    companion = Companion(editor, CompanionOptions(linters=linters), limits=PATIENT_LIMITS)
    task = asyncio.create_task(companion.run())
    yield companion
    editor.quit()
    await asyncio.wait_for(task, 30)


async def test_what_linters_find_comes_beside_what_the_editor_knows(workspace: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    path = str(made(workspace))
    known = Diagnostic(path, at(0, 0, 1), Severity.HINT, "the editor's own")
    async with companion_of(editor, "ruff") as companion:
        await editor.open_file(path)
        editor.set_diagnostics(path, [known])

        async def both() -> bool:
            codes = {one.code for one in await companion.diagnostics()}
            return {None, "F821"} <= codes and await companion.diagnostics(path) == await companion.diagnostics()

        await eventually_async(both, what="both are told, of one file and of all")


async def test_a_hidden_file_is_not_linted(workspace: Path) -> None:
    (workspace / ".geminiignore").write_text("secret.py\n", encoding="utf-8")
    editor = HeadlessEditor((str(workspace),))
    path = str(made(workspace, "secret.py"))
    async with companion_of(editor, "ruff") as companion:
        await editor.open_file(path)
        assert await companion.diagnostics(path) == ()
        assert await companion.diagnostics() == ()


class WithoutDiagnostics(HeadlessEditor):
    """An editor without diagnostics, like most."""

    @property
    def unavailable(self) -> dict[Capability, str]:
        return {Capability.DIAGNOSTICS: "it has none"}


async def test_linters_stand_in_for_an_editor_without_diagnostics(
    workspace: Path, pretend: Callable[[str], None]
) -> None:
    path = str(made(workspace))
    async with companion_of(WithoutDiagnostics((str(workspace),))) as companion:
        with pytest.raises(EditorError, match="it has none"):
            await companion.diagnostics(path)
    async with companion_of(WithoutDiagnostics((str(workspace),)), "ruff") as companion:
        await eventually_async(lambda: companion.diagnostics(path), what="ruff's diagnostics")
    pretend("import sys; sys.exit('broken')")
    async with companion_of(WithoutDiagnostics((str(workspace),)), "ruff") as companion:

        async def broken() -> bool:
            try:
                await companion.diagnostics(path)
            except EditorError as error:
                return "broken" in str(error)
            return False

        await eventually_async(broken, what="the reason")


def test_the_program_takes_linters_and_refuses_unknown_ones(workspace: Path) -> None:
    with companion_program(workspace, "--diagnostics", "ruff, pyright") as companion:
        assert companion.end() == 0
    done = isthmus("companion", "--editor", "headless", "--diagnostics", "mypy", folder=workspace)
    assert done.returncode == 1
    assert "expected one of ruff, pyright" in done.stderr


def test_the_user_sees_what_linters_find_and_adds_to_what_the_editor_has_alone(workspace: Path) -> None:
    made(workspace)
    (workspace / ".env.py").write_text(TEXT, encoding="utf-8")
    with companion_program(workspace, "--diagnostics", "ruff", "--open", "a.py", "--open", ".env.py"):

        def found(*arguments: str) -> str:
            return isthmus("ide", "diagnostics", *arguments, folder=workspace).stdout

        eventually(lambda: "a.py:2:5: error: Undefined name `undefined`" in found(), what="what ruff found")
        assert found("a.py", "--add", "1", "mine").count("Undefined name") == 1
        assert "mine" in found()
        found(".env.py", "--add", "1", "of a file that agents are not told of")
        assert "not told of" in found()


async def test_findings_in_a_notebook_name_the_cell_and_are_placed_in_it(workspace: Path) -> None:
    cells: list[dict[str, Any]] = []
    for number, (kind, source) in enumerate([("markdown", "# x"), ("code", "y = 1"), ("code", TEXT)]):
        cells.append(
            {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
        )
        if kind == "code":
            cells[-1] |= {"execution_count": None, "outputs": []}
    notebook: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = made(workspace, "a.ipynb", json.dumps(notebook, indent=1))
    async with running(("ruff",), workspace) as runner:
        undefined = next(one for one in await found(runner, path, "ruff") if one.code == "F821")
        assert undefined.message == "cell 3: Undefined name `undefined`"
        assert undefined.range == at(1, 4, 13)
