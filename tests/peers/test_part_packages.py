"""The example of a part (examples/parts), installed by pip and named in the settings, in the real program."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar, cast

import pytest

from isthmus.agent.part import Part, PartBase, PartTools, PartTurn
from isthmus.parts import packages as part_packages
from isthmus.parts.packages import GuardedPart, PartError, PartPlace, load_parts
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import LocalAgentOptions
from isthmus.programs.setup.setup import GivenOptions, decide
from isthmus.tools.port.tool_set import ToolScope
from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.scripted_wire import Reply, Say

pytestmark = pytest.mark.anyio

EXAMPLE = Path(__file__).parents[2] / "examples" / "parts" / "open_issues"
TURN = PartTurn(ToolScope(Path("/project"), "c", "t"), "c")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the example from a copy."""
    copy, target = (tmp_path_factory.mktemp(name) for name in ("copy", "target"))
    for name in ("open_issues.py", "pyproject.toml"):
        (copy / name).write_bytes((EXAMPLE / name).read_bytes())
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(target))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True, timeout=100)
    return target


def ask(workspace: Path, data: Path, extra: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [*ISTHMUS, "-p", "what is open?", "-m", "gemini:gemini-test", "--no-ide", "--data-dir", str(data)]
    return subprocess.run(
        command, cwd=workspace, env={**os.environ, **extra}, capture_output=True, text=True, check=False, timeout=60
    )


def write_settings(folder: Path, parts: list[str]) -> None:
    path = folder / ".gemini" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"isthmus": {"parts": parts}}), "utf-8")


@pytest.mark.parametrize(("of_user", "of_project"), [(True, False), (False, True), (False, False)])
def test_only_a_part_that_the_users_settings_name_tells_the_model_something(
    workspace: Path,
    tmp_path: Path,
    isolated_folders: IsolatedFolders,
    installed: Path,
    of_user: bool,
    of_project: bool,
) -> None:
    (workspace / "ISSUES.md").write_text("# Issues\n- [ ] The bell is silent\n- [x] The door is open\n", "utf-8")
    if of_user:
        write_settings(isolated_folders.home, ["open_issues"])
    if of_project:
        write_settings(workspace, ["open_issues"])
    with GeminiWire(lambda _: Reply.of(Say("The bell."))) as wire:
        variables = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        done = ask(workspace, tmp_path / "data", {**variables, "PYTHONPATH": str(installed)})
        assert done.returncode == 0, done.stderr
        told = json.dumps(wire.model_requests[-1].json["contents"])
    assert ("The bell is silent" in told) is of_user
    assert "The door is open" not in told
    assert ("only your own settings may set it: isthmus.parts" in done.stderr) is of_project


def test_a_part_without_a_package_ends_the_start_with_advice(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    write_settings(isolated_folders.home, ["open_issues"])
    done = ask(workspace, tmp_path / "data", {"GEMINI_API_KEY": "test-key"})
    assert done.returncode != 0
    assert done.stderr == (
        "isthmus: isthmus.parts in the settings names 'open_issues', which no installed package brings (installed:"
        " none). Install its package into the environment of isthmus, or remove the name.\n"
    )


def fail(place: PartPlace) -> Part:
    """Fail as a broken package does."""
    raise RuntimeError(f"no file in {place.folder.name}")


class FaultyPart(PartBase):
    """Part that fails, hangs, or returns what is no note."""

    name = "faulty"

    def __init__(self, note: object) -> None:
        self._note = note

    async def at_prompt(self, turn: PartTurn) -> str | None:
        if isinstance(self._note, BaseException):
            raise self._note
        return self._note  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    async def tools(self, scope: ToolScope) -> PartTools:
        if isinstance(self._note, BaseException):
            raise self._note
        return self._note  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    async def instructions(self, scope: ToolScope) -> str:
        return await self.at_prompt(TURN)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        raise ValueError(path)

    def task_ended(self, task_id: str) -> None:
        raise ValueError(task_id)

    async def aclose(self) -> None:
        raise ValueError


async def test_a_package_that_cannot_be_loaded_is_named_with_its_fault(tmp_path: Path) -> None:
    entry = EntryPoint("bad", f"{__name__}:fail", part_packages.GROUP)
    with pytest.raises(
        PartError, match=r"'?bad'? of isthmus.parts cannot be loaded from .*RuntimeError: no file in bad"
    ):
        await load_parts(["bad"], tmp_path, lambda: [entry])


class ClosingPart(PartBase):
    """Part that notes its end."""

    name = "closing"
    closed: ClassVar[list[str]] = []

    def __init__(self, place: PartPlace) -> None:
        self._folder = place.folder.name

    async def aclose(self) -> None:
        self.closed.append(self._folder)


async def test_a_package_that_cannot_be_loaded_closes_the_parts_before_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated_folders: IsolatedFolders
) -> None:
    closing, failing = f"{__name__}:{ClosingPart.__name__}", f"{__name__}:{fail.__name__}"
    entries = [EntryPoint(name, value, part_packages.GROUP) for name, value in (("a", closing), ("b", closing))]
    monkeypatch.setattr(ClosingPart, "closed", [])
    entries.append(EntryPoint("bad", failing, part_packages.GROUP))

    def entry_points(group: str) -> list[EntryPoint]:
        assert group == part_packages.GROUP
        return entries

    monkeypatch.setattr(part_packages, "entry_points", entry_points)
    monkeypatch.setenv("GEMINI_API_KEY", "test-key")
    write_settings(isolated_folders.home, ["a", "b", "bad"])
    setup = decide(GivenOptions("gemini:test", workspace=workspace, data_dir=tmp_path / "data"), may_ask=True)
    with pytest.raises(PartError, match="'bad'"):
        async with local_agent(setup, rule_for(setup), LocalAgentOptions()):
            pass
    assert ClosingPart.closed == ["b", "a"]
    write_settings(isolated_folders.home, ["a", "b"])
    setup = decide(GivenOptions("gemini:test", workspace=workspace, data_dir=tmp_path / "data"), may_ask=True)
    async with local_agent(setup, rule_for(setup), LocalAgentOptions()):
        assert ClosingPart.closed == ["b", "a"]
    assert ClosingPart.closed == ["b", "a"] * 2


@pytest.mark.parametrize(
    ("note", "expected"),
    [("short", "short"), (None, None), (5, None), (ValueError("broken"), None), ("x" * 20_001, "1 more characters")],
)
async def test_the_faults_of_a_part_end_nothing(note: object, expected: str | None) -> None:
    part = GuardedPart("faulty", FaultyPart(note))
    found = await part.at_prompt(TURN)
    assert found == expected or (expected is not None and found is not None and expected in found)
    assert await part.instructions(TURN.scope) == (found or "")
    assert await part.tools(TURN.scope) == PartTools()
    await part.before_edit(TURN, Path("/project/a.py"))
    part.task_ended("t")
    await part.aclose()


async def test_a_part_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(PartBase):
        name = "hanging"

        async def at_prompt(self, turn: PartTurn) -> str | None:
            await asyncio.Event().wait()
            return "never"

    monkeypatch.setattr(part_packages, "NOTE_SECONDS", 0.01)
    assert await GuardedPart("hanging", Hanging()).at_prompt(TURN) is None


async def test_a_part_that_cannot_be_cancelled_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = asyncio.Event()

    class Stubborn(PartBase):
        name = "stubborn"

        async def at_prompt(self, turn: PartTurn) -> str | None:
            while not goes_on.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await goes_on.wait()
            return "late"

    part = GuardedPart("stubborn", Stubborn())
    try:
        monkeypatch.setattr(part_packages, "NOTE_SECONDS", 0.01)
        async with asyncio.timeout(10):
            assert await part.at_prompt(TURN) is None
        monkeypatch.setattr(part_packages, "NOTE_SECONDS", 60.0)
        asking = asyncio.create_task(part.at_prompt(TURN))
        await asyncio.sleep(0)
        asking.cancel()  # as a task that its user cancels
        await asyncio.wait({asking}, timeout=10)
        assert asking.cancelled()
    finally:
        goes_on.set()


async def test_a_part_that_cancels_itself_does_not_cancel_the_task() -> None:
    assert await GuardedPart("faulty", FaultyPart(asyncio.CancelledError())).at_prompt(TURN) is None


async def test_a_part_with_methods_of_another_kind_ends_nothing() -> None:
    class Other:
        def at_prompt(self, turn: PartTurn) -> str | None:
            raise ValueError(turn)

        def before_model(self, turn: PartTurn) -> str | None:
            return "not awaited"

    part = GuardedPart("other", cast(Part, Other()))
    assert await part.tools(TURN.scope) == PartTools()
    assert await part.instructions(TURN.scope) == ""
    assert await part.at_prompt(TURN) is None
    assert await part.before_model(TURN) is None
    await part.before_edit(TURN, Path("/project/a.py"))
    part.task_ended("t")
    await part.aclose()
