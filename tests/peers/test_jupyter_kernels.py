"""Code in real Jupyter kernels: those of notebooks on a real server, and one known by its connection file."""

import asyncio
import base64
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jupyter_client.channels import HBChannel

from isthmus.editors.jupyter import editor as jupyter
from isthmus.editors.jupyter.editor import JupyterEditor
from isthmus.editors.jupyter.server import JupyterServer, JupyterSession
from isthmus.ide.editor import CodeExecution, EditorError, ExecutionImage, ExecutionText
from support.extended import first_of
from support.jupyter import RunningJupyter, jupyter_environment, shared_jupyter
from support.waiting import eventually, eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


class Notebook:
    """An open notebook on a server, and the editor that runs code in its kernel."""

    def __init__(self, editor: JupyterEditor, server: RunningJupyter, kernel_id: str, path: Path) -> None:
        self.editor = editor
        self.server = server
        self.kernel_id = kernel_id
        self.path = path


@pytest.fixture
async def server(workspace: Path) -> AsyncGenerator[RunningJupyter]:
    async with shared_jupyter(workspace) as server:
        yield server


@pytest.fixture
async def notebook(server: RunningJupyter, workspace: Path) -> AsyncGenerator[Notebook]:
    path = _notebook(workspace / "analysis.ipynb")
    kernel_id = await server.open(path)
    editor = await jupyter.attach(server.file, (str(workspace),), poll_seconds=0.1)
    yield Notebook(editor, server, kernel_id, path)
    await editor.aclose()


@asynccontextmanager
async def _bare_kernel(folder: Path) -> "AsyncGenerator[tuple[JupyterEditor, subprocess.Popen[bytes]]]":
    file = folder / "kernel-bare.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "ipykernel_launcher", "-f", str(file)],
        env=jupyter_environment(folder / "jupyter"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        eventually(lambda: file.is_file() and file.stat().st_size, 60, what="the kernel's connection file")
        editor = await jupyter.attach(str(file), (str(folder),), opened=(str(file),))
        try:
            yield editor, process
        finally:
            await editor.aclose()
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture(scope="module", params=first_of(["server", "bare kernel"]))
async def editor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[JupyterEditor]:
    """Yield an editor for tests that accept earlier code in the kernel."""
    workspace = tmp_path_factory.mktemp("kernel") / "workspace"
    workspace.mkdir()
    if request.param == "server":
        async with shared_jupyter(workspace) as server:
            await server.open(_notebook(workspace / "analysis.ipynb"))
            editor = await jupyter.attach(server.file, (str(workspace),), poll_seconds=0.1)
            yield editor
            await editor.aclose()
    else:
        async with _bare_kernel(workspace) as (editor, _):
            yield editor


def _notebook(path: Path) -> Path:
    path.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


def _texts(execution: CodeExecution) -> list[str]:
    return [output.text for output in execution.outputs if isinstance(output, ExecutionText)]


async def test_streams_and_the_value_come_in_order_and_variables_last(editor: JupyterEditor) -> None:
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr, flush=True)\nx = 20\nx + 1"
    assert await editor.execute_code(code) == CodeExecution((ExecutionText("out\nerr\n"), ExecutionText("21")))
    assert await editor.execute_code("x") == CodeExecution((ExecutionText("20"),))
    assert await editor.execute_code("y = x") == CodeExecution()


async def test_images_are_images_and_other_forms_are_text(editor: JupyterEditor) -> None:
    png = await editor.execute_code(f"from IPython.display import *\ndisplay(Image({_PIXEL!r}))\nprint('after')")
    assert png.outputs == (ExecutionImage(_PIXEL, "image/png"), ExecutionText("after\n"))
    jpeg = await editor.execute_code("Image(b'\\xff\\xd8\\xff\\xe0not drawn here', format='jpeg')")
    assert jpeg.outputs == (ExecutionImage(b"\xff\xd8\xff\xe0not drawn here", "image/jpeg"),)
    html = await editor.execute_code("display(HTML('<b>x</b>'))\ndisplay(SVG('<svg/>'))\nMarkdown('*m*')")
    assert [text.partition(" object")[0] for text in _texts(html)] == [
        "<IPython.core.display.HTML",
        "<IPython.core.display.SVG",
        "<IPython.core.display.Markdown",
    ]


async def test_an_exception_is_an_error_with_its_traceback_last_and_without_colours(editor: JupyterEditor) -> None:
    failed = await editor.execute_code("print('before')\nraise ValueError('no \\x1b[31mred')")
    assert failed.is_error
    before, traceback = _texts(failed)
    assert before == "before\n"
    assert traceback.splitlines()[-1] == "ValueError: no red"
    assert "Traceback (most recent call last)" in traceback
    assert "\x1b" not in traceback
    assert (await editor.execute_code("1")).is_error is False


async def test_displays_that_are_replaced_and_outputs_that_are_cleared_show_what_stays(editor: JupyterEditor) -> None:
    code = (
        "from IPython.display import clear_output, display\n"
        "print('gone')\nclear_output(wait=True)\n"
        "handle = display('first', display_id=True)\nprint('10%\\r50%\\r100%')\nhandle.update('second')"
    )
    assert _texts(await editor.execute_code(code)) == ["'second'", "100%\n"]


async def test_nothing_is_asked_of_the_user_by_code(editor: JupyterEditor) -> None:
    refused = await editor.execute_code("input('name? ')")
    assert refused.is_error
    assert "StdinNotImplementedError" in _texts(refused)[-1]


async def test_cancelling_interrupts_the_code_and_keeps_the_variables(editor: JupyterEditor, workspace: Path) -> None:
    running = asyncio.create_task(editor.execute_code(_waiting(workspace, "kept = 'yes'")))
    await eventually_async(lambda: (workspace / "started").exists(), 60, what="the code runs")
    running.cancel()
    await asyncio.wait({running}, timeout=30)
    assert running.cancelled()
    assert await editor.execute_code("kept") == CodeExecution((ExecutionText("'yes'"),))


async def test_one_execution_runs_after_the_other_in_the_order_they_were_asked(editor: JupyterEditor) -> None:
    codes = ["order = []", *(f"order.append({number})" for number in range(5)), "order"]
    *_, last = await asyncio.gather(*(editor.execute_code(code) for code in codes))
    assert _texts(last) == ["[0, 1, 2, 3, 4]"]


@pytest.mark.parametrize("code", first_of(["1", "import time; time.sleep(0.7)"]))
async def test_code_that_ends_while_the_heartbeat_begins_leaves_no_thread(
    editor: JupyterEditor, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    create_socket = HBChannel._create_socket  # pyright: ignore[reportPrivateUsage]
    ended = threading.Event()

    def create_late(channel: HBChannel) -> None:
        ended.wait(0.3)
        create_socket(channel)

    monkeypatch.setattr(HBChannel, "_create_socket", create_late)
    assert not (await editor.execute_code(code)).is_error

    def has_ended() -> bool:
        return not any(isinstance(thread, HBChannel) for thread in threading.enumerate())

    await eventually_async(has_ended, what="the end of the thread")


async def test_executions_keep_their_order_however_the_server_answers(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(notebook.path.relative_to(notebook.server.address.root))
    unanswered: list[asyncio.Future[tuple[JupyterSession, ...]]] = []

    async def sessions(_server: JupyterServer) -> tuple[JupyterSession, ...]:
        answer = asyncio.get_running_loop().create_future()
        unanswered.append(answer)
        return await answer

    async def answer_the_newest_first() -> None:
        while True:
            await asyncio.sleep(0)
            if unanswered and not (newest := unanswered.pop()).done():
                newest.set_result((JupyterSession("s", path, "notebook", notebook.kernel_id, 0.0),))

    monkeypatch.setattr(JupyterServer, "sessions", sessions)
    codes = ["order = []", *(f"order.append({number})" for number in range(3)), "order"]
    executions = asyncio.gather(*(notebook.editor.execute_code(code) for code in codes))
    answering = asyncio.create_task(answer_the_newest_first())
    *_, last = await executions
    answering.cancel()
    assert _texts(last) == ["[0, 1, 2]"]


async def test_a_kernel_that_dies_is_said_to_have_died(notebook: Notebook) -> None:
    with pytest.raises(EditorError, match="died or was restarted"):
        await notebook.editor.execute_code("import os\nos._exit(1)")

    async def works_again() -> bool:
        try:
            return _texts(await notebook.editor.execute_code("'new'")) == ["'new'"]
        except EditorError:
            return False

    await eventually_async(works_again, 60, what="the server has started it anew")


async def test_a_bare_kernel_that_dies_is_said_to_have_died(workspace: Path) -> None:
    async with _bare_kernel(workspace) as (editor, process):
        assert [file.path for file in await editor.open_files()] == [str(workspace / "kernel-bare.json")]
        with pytest.raises(EditorError, match="died or was restarted"):
            await editor.execute_code("import os\nos._exit(1)")
        process.wait(30)


async def test_without_jupyter_client_a_bare_kernel_is_refused_naming_the_extra(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workspace / "kernel-1.json"
    file.write_text('{"shell_port": 1}', encoding="utf-8")
    monkeypatch.setitem(sys.modules, "jupyter_client.asynchronous", None)
    with pytest.raises(EditorError, match=r"install isthmus\[jupyter\]"):
        await jupyter.attach(str(file), (str(workspace),))


async def test_the_state_is_shared_with_the_users_own_cells(notebook: Notebook) -> None:
    await notebook.server.run(notebook.kernel_id, "theirs = 41")
    await notebook.editor.execute_code("ours = theirs + 1")
    async with notebook.server.channels(notebook.kernel_id) as browser:
        await browser.send("print(ours)")
        message = await browser.until("stream")
        assert message["content"]["text"] == "42\n"


async def test_cancelled_code_that_waits_for_the_users_cell_does_not_interrupt_it(
    notebook: Notebook, workspace: Path
) -> None:
    async with notebook.server.channels(notebook.kernel_id) as browser:
        await browser.send(_waiting(workspace, "") + "\nprint('came to its end')")
        await eventually_async(lambda: (workspace / "started").exists(), 60, what="the user's cell runs")
        waiting = asyncio.create_task(notebook.editor.execute_code("while True: pass"))
        # It is in the kernel's queue when a later request of another client was answered on the control channel.
        await notebook.server.request("GET", f"api/kernels/{notebook.kernel_id}")
        waiting.cancel()
        await asyncio.wait({waiting}, timeout=30)
        (workspace / "go on").touch()
        assert (await browser.until("stream"))["content"]["text"] == "came to its end\n"
    assert _texts(await notebook.editor.execute_code("'free'")) == ["'free'"]


async def test_code_runs_in_the_notebook_that_was_active_last(notebook: Notebook, workspace: Path) -> None:
    other = _notebook(workspace / "other.ipynb")
    other_kernel = await notebook.server.open(other)
    await notebook.server.run(other_kernel, "name = 'other'")
    assert _texts(await notebook.editor.execute_code("name")) == ["'other'"]
    await notebook.server.run(notebook.kernel_id, "name = 'analysis'")
    assert _texts(await notebook.editor.execute_code("name")) == ["'analysis'"]
    assert _texts(await notebook.editor.execute_code("name", str(other))) == ["'other'"]
    with pytest.raises(EditorError, match=r"closed\.ipynb is not open in Jupyter any more"):
        await notebook.editor.execute_code("name", str(workspace / "closed.ipynb"))


async def test_without_a_notebook_the_error_says_what_to_do(server: RunningJupyter, workspace: Path) -> None:
    editor = await jupyter.attach(server.file, (str(workspace),))
    for asked in (editor.require_kernel(), editor.execute_code("1")):
        with pytest.raises(EditorError, match="no notebook with a kernel is open in Jupyter; open one"):
            await asked
    await editor.aclose()


def _waiting(folder: Path, first: str) -> str:
    """Return code that prints a line, and waits for a file."""
    return (
        f"{first}\nimport pathlib, time\nfolder = pathlib.Path({str(folder)!r})\n(folder / 'started').touch()\n"
        "while not (folder / 'go on').exists():\n    time.sleep(0.02)"
    )
