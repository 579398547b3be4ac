"""Errors after edits, as pyright reports them: which are told to the model, when, and where no server is started."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from isthmus.agent.part import PartTurn
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from isthmus.parts.language_servers import MAXIMUM_SERVERS, LanguageServersPart, LanguageServerUse
from isthmus.tools.port.tool_set import ToolScope
from support.extended import first_of
from support.gemini_wire import GeminiWire
from support.loaded_program import LoadedProgram
from support.programs import node_package
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
BROKEN = 'def f(x: int) -> int:\n    return x\n\n\nf("a")\n'


ERROR = '\\"y\\" is not defined'
"""An error of pyright in a text in JSON."""


@asynccontextmanager
async def part(
    *,
    path: str = PATH,
    programs: str = "installed",
    is_trusted: bool = True,
    has_editor: bool = False,
    wait_seconds: float = 60.0,
) -> AsyncGenerator[LanguageServersPart]:
    async def editor(_: ToolScope) -> bool:
        return has_editor

    environment = {"PATH": path, "HOME": os.environ["HOME"], "OPENAI_API_KEY": "secret"}
    made = LanguageServersPart(LanguageServerUse(programs, lambda _: is_trusted, environment, editor, wait_seconds))
    try:
        yield made
    finally:
        await made.aclose()


def turn(workspace: Path, task: str = "t", user: str = "") -> PartTurn:
    return PartTurn(ToolScope(workspace, "c", task, user=user), "c")


async def edit(at: LanguageServersPart, path: Path, text: str, task: str = "t") -> None:
    await at.before_edit(turn(path.parent, task), path)
    path.write_text(text, encoding="utf-8")


async def test_only_errors_that_the_edit_caused_are_told_and_once(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text(BROKEN, encoding="utf-8")
    async with part() as at:
        await edit(at, path, "import os\n\n\n" + BROKEN.replace("return x", "return y"))
        told = await at.before_model(turn(workspace)) or ""
        assert await at.before_model(turn(workspace)) is None
    assert told.startswith("<new-diagnostics>After the last edits a language server of the project reports")
    assert 'a.py:\n  ✘ [Line 5:12] "y" is not defined' in told
    assert told.count("✘") == 1
    assert "Literal" not in told, "this error was there before"


async def test_packages_of_the_project_are_known_and_its_programs_are_not_run(workspace: Path) -> None:
    packages = workspace / ".venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "of_project.py").write_text("VALUE: int = 1\n", encoding="utf-8")
    (workspace / ".venv" / "bin").mkdir()
    for name in ("python", "python3", "pyright-langserver"):
        program = workspace / ".venv" / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch {workspace}/was-run\n", encoding="utf-8")
        program.chmod(0o755)
    path = f"{workspace}/.venv/bin{os.pathsep}{PATH}"
    async with part(path=path) as at:
        await edit(at, workspace / "a.py", "from of_project import VALUE, MISSING\n")
        told = await at.before_model(turn(workspace)) or ""
    assert '"MISSING" is unknown import symbol' in told
    assert told.count("✘") == 1
    assert not (workspace / "was-run").exists()


async def test_two_edits_of_a_file_are_compared_with_the_text_before_both(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("x = 1\n", encoding="utf-8")
    async with part() as at:
        await edit(at, path, "x = y\n")
        await edit(at, path, "x = 2\n")
        await edit(at, workspace / "new.py", "x = z\n")
        told = await at.before_model(turn(workspace)) or ""
    assert '"y"' not in told
    assert 'new.py:\n  ✘ [Line 1:5] "z" is not defined' in told


async def test_the_typescript_of_the_project_finds_what_an_edit_broke(workspace: Path) -> None:
    (workspace / "node_modules" / ".bin").mkdir(parents=True)
    for name in ("typescript", "typescript-language-server"):
        (workspace / "node_modules" / name).symlink_to(node_package(name))
    program = workspace / "node_modules" / ".bin" / "typescript-language-server"
    program.symlink_to("../typescript-language-server/lib/cli.mjs")
    (workspace / "tsconfig.json").write_text('{"compilerOptions": {"strict": true, "noLib": true}}', encoding="utf-8")
    path = workspace / "a.ts"
    path.write_text("export const x: number = 1;\nold;\n", encoding="utf-8")
    async with part(programs="project") as at:
        await edit(at, path, 'export const x: number = "one";\nold;\n')
        told: str | None = None
        async with asyncio.timeout(60):  # the project is loaded first
            while told is None:
                told = await at.before_model(turn(workspace))
    assert "a.ts:\n  ✘ [Line 1:14] Type 'string' is not assignable to type 'number'." in told
    assert told.count("✘") == 1, "the name that is not known was there before"


async def test_what_comes_too_late_is_told_before_a_later_message(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("x = 1\n", encoding="utf-8")
    async with part(wait_seconds=0.01) as at:
        await edit(at, path, "x = y\n")
        told: str | None = None
        async with asyncio.timeout(60):
            while told is None:
                told = await at.before_model(turn(workspace))
    assert '"y" is not defined' in told


@pytest.mark.parametrize(
    "options",
    first_of([{"is_trusted": False}, {"programs": "none"}, {"has_editor": True}]),
    ids=lambda each: next(iter(each)),
)
async def test_no_server_is_started_where_none_may_be(workspace: Path, options: dict[str, object]) -> None:
    path = workspace / "a.py"
    path.write_text("x = 1\n", encoding="utf-8")
    async with part(**options) as at:  # pyright: ignore[reportArgumentType]
        await edit(at, path, "x = y\n")
        assert await at.before_model(turn(workspace)) is None
        assert not any(map(_is_server, psutil.Process().children(recursive=True)))


async def test_other_users_files_outside_and_other_languages_start_nothing(workspace: Path, tmp_path: Path) -> None:
    async with part() as at:
        await at.before_edit(turn(workspace, user="ann"), workspace / "a.py")
        await at.before_edit(turn(workspace), tmp_path / "b.py")
        await at.before_edit(turn(workspace), workspace / "c.txt")
        assert not any(map(_is_server, psutil.Process().children(recursive=True)))


async def test_one_server_serves_all_tasks_of_a_folder_and_gets_no_keys(workspace: Path) -> None:
    path = workspace / "a.py"
    async with part() as at:
        for task in ("one", "two"):
            await edit(at, path, f"x = {task}\n", task)
            assert f'"{task}" is not defined' in (await at.before_model(turn(workspace, task)) or "")
        servers = [each for each in psutil.Process().children(recursive=True) if _is_server(each)]
        assert len({each.pid for each in servers}) == len(servers) > 0
        leaders = [each for each in servers if each.pid == os.getpgid(each.pid)]
        assert len(leaders) == 1
        assert all("OPENAI_API_KEY" not in each.environ() for each in servers)
        at.task_ended("two")


SILENT = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["HOME"] + "/started", "a") as log:
    log.write(os.getcwd() + "\\n")
while line := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    request = json.loads(sys.stdin.buffer.read(int(line.split()[1])))
    if request.get("method") == "exit":
        break
    if "id" in request:
        body = json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": {{"capabilities": {{}}}}}})
        sys.stdout.write(f"Content-Length: {{len(body)}}\\r\\n\\r\\n{{body}}")
        sys.stdout.flush()
"""
"""A language server that finds nothing in any file, and takes its time for that."""


async def test_a_server_that_made_room_for_others_is_started_again(workspace: Path, tmp_path: Path) -> None:
    program, log = tmp_path / "pyright-langserver", Path.home() / "started"
    program.write_text(SILENT, encoding="utf-8")
    program.chmod(0o755)
    folders = [workspace / str(number) for number in range(MAXIMUM_SERVERS + 1)]
    log.touch()

    async def begin(at: LanguageServersPart, folder: Path, task: str) -> None:
        count = len(log.read_text("utf-8").splitlines())
        await edit(at, folder / "a.py", "x = y\n", task)
        await eventually_async(lambda: len(log.read_text("utf-8").splitlines()) > count, what="a start")

    async with part(path=f"{tmp_path}{os.pathsep}{PATH}") as at:
        for number, folder in enumerate(folders):
            folder.mkdir()
            (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
            await begin(at, folder, str(number))
        assert await at.before_model(turn(folders[0], "0")) is None, "its server was ended, and the look with it"
        await begin(at, folders[0], "later")


def _is_server(process: psutil.Process) -> bool:
    try:
        return any("pyright" in word for word in process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.parametrize(
    ("is_trusted", "settings", "is_told"),
    first_of([(True, {}, True), (False, {}, False), (True, {"languageServers": "none"}, False)], are_rows=True),
)
def test_the_program_tells_the_model_what_its_edit_broke(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    loaded_isthmus: LoadedProgram,
    is_trusted: bool,
    settings: dict[str, str],
    is_told: bool,
) -> None:
    (workspace / "a.py").write_text("x = 1\n", encoding="utf-8")
    (Path.home() / ".gemini").mkdir(exist_ok=True)
    (Path.home() / ".gemini" / "settings.json").write_text(json.dumps({"isthmus": settings}), "utf-8")
    if is_trusted:
        state_trust(Path.home(), workspace, TrustRule.FOLDER)
    change = Call("replace", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = y"})
    deadline = time.monotonic() + 120

    def reply(request: WireRequest) -> Reply:
        if len(wire.model_requests) == 1:
            return Reply.of(change)
        # On a busy machine a server takes longer than the wait for one message.
        if is_told and ERROR not in request.body.decode() and time.monotonic() < deadline:
            return Reply.of(Call("read_file", {"file_path": "a.py", "start_line": len(wire.model_requests)}))
        return Reply.of(Say("Done."))

    with GeminiWire(reply) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        monkeypatch.setenv("PATH", PATH)
        done = loaded_isthmus.run("-p", "Break it.", "--approval-mode", "auto_edit", folder=workspace)
        assert (ERROR in wire.model_requests[-1].body.decode()) is is_told
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
